//! What the codes of signals say on Android, whose C library and `debuggerd` print them.

use super::bad_access::as_text;
use super::draft::Draft;
use super::facts::Facts;

/// Codes of signals on Linux: what they are, and what often is behind them.
const CODES: [(&str, &str, &str, &str); 17] = [
    (
        "SEGV_MAPERR",
        "Access to memory that is not mapped",
        "Nothing is mapped at the address.",
        "A pointer that was freed, overwritten or never set.",
    ),
    (
        "SEGV_ACCERR",
        "Access to memory that forbids it",
        "The memory at the address is mapped, but not for this kind of access.",
        "A write to constants or code, a jump to data, or a guard page: the end of a stack or of a guarded allocation.",
    ),
    (
        "SEGV_MTESERR",
        "Memory tag mismatch",
        "The pointer's tag is not that of the memory: it was freed or is another allocation's.",
        "Use after free, or an access beyond the end of an allocation.",
    ),
    (
        "SEGV_MTEAERR",
        "Memory tag mismatch, found late",
        "Some access before this point used a pointer whose tag is not that of the memory. The frames show where it was noticed, not where it was.",
        "Use after free, or an access beyond the end of an allocation.",
    ),
    (
        "SEGV_CPERR",
        "Control flow protection fault",
        "A return or a jump went where none may go.",
        "A return address that was overwritten.",
    ),
    (
        "BUS_ADRALN",
        "Misaligned access",
        "The address is not a multiple of what the instruction needs.",
        "A pointer that was cast to a type of larger alignment.",
    ),
    (
        "BUS_ADRERR",
        "Access behind the end of a mapped file",
        "The memory belongs to a mapped file that is shorter than the mapping, or whose storage failed.",
        "A file that was made shorter while it is mapped; a full or failing storage.",
    ),
    (
        "BUS_OBJERR",
        "Hardware error at an access",
        "The hardware could not give the memory.",
        "Failing memory or storage.",
    ),
    (
        "ILL_ILLOPC",
        "Illegal instruction",
        "The processor does not know the instruction.",
        "A trap of the compiler (code that cannot be reached, an overflow that is checked), a jump to data, or code for another processor.",
    ),
    (
        "ILL_ILLOPN",
        "Illegal instruction",
        "The processor does not know the instruction.",
        "A trap of the compiler, a jump to data, or code for another processor.",
    ),
    (
        "ILL_ILLTRP",
        "Trap",
        "The code has an instruction that stops it.",
        "A check that the compiler or the code made failed.",
    ),
    (
        "TRAP_BRKPT",
        "Trap",
        "The code has a breakpoint instruction.",
        "A check that the compiler or the code made failed (`__builtin_trap`, `CHECK`).",
    ),
    ("TRAP_TRACE", "Trace trap", "A debugger's single step.", "A debugger."),
    ("FPE_INTDIV", "Division by zero", "An integer was divided by zero.", "A divisor that was not checked."),
    (
        "FPE_FLTDIV",
        "Division by zero",
        "A floating-point number was divided by zero.",
        "A divisor that was not checked.",
    ),
    (
        "SYS_SECCOMP",
        "System call that apps may not make",
        "The process made a system call that Android's filter forbids.",
        "Native code that makes a call which the C library of this version does not make.",
    ),
    (
        "SI_KERNEL",
        "Fault without an address",
        "The processor gave no address: the pointer is no address at all.",
        "A pointer that was overwritten.",
    ),
];

/// Codes that the C library logged as numbers only, up to Android 8 (`signal.h`).
const NUMBERS: [(&str, u64, &str); 8] = [
    ("SIGSEGV", 1, "SEGV_MAPERR"),
    ("SIGSEGV", 2, "SEGV_ACCERR"),
    ("SIGBUS", 1, "BUS_ADRALN"),
    ("SIGBUS", 2, "BUS_ADRERR"),
    ("SIGILL", 1, "ILL_ILLOPC"),
    ("SIGTRAP", 1, "TRAP_BRKPT"),
    ("SIGFPE", 1, "FPE_INTDIV"),
    ("SIGSEGV", 128, "SI_KERNEL"),
];

/// The name of the signal's code.
pub(super) fn code_name(facts: &Facts<'_>) -> Option<&'static str> {
    let codes = facts.exception().codes.as_deref()?;
    if let Some((name, ..)) = CODES.iter().find(|(name, ..)| codes.contains(name)) {
        return Some(name);
    }
    let number: u64 = codes.strip_prefix("code ")?.split([',', ' ']).next()?.parse().ok()?;
    let is_named = codes.contains('(');
    NUMBERS
        .iter()
        .find(|(signal, known, _)| !is_named && *signal == facts.signal() && *known == number)
        .map(|(.., name)| *name)
}

/// The code of a signal tells what it was.
pub(super) fn signal_code(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let named = code_name(facts);
    let found = CODES.iter().find(|(name, ..)| named == Some(*name));
    let Some((name, title, meaning, cause)) = found else { return false };
    let address = facts.exception().address.filter(|_| name.starts_with("SEGV") || name.starts_with("BUS"));
    let title = address.map_or_else(|| (*title).to_owned(), |address| format!("{title}, at {address}"));
    draft.lead(format!("{title} ({})", facts.signal()), meaning);
    if let Some((address, text)) = address.and_then(|address| Some((address, as_text(address)?))) {
        draft.evidence(format!("The bytes of {address} read \"{text}\" as text"));
        draft.cause("The pointer was overwritten by text, or text was taken for a pointer (code and data of two builds that do not fit).");
    }
    draft.cause(cause);
    true
}
