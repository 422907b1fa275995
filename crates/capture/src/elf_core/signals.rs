//! Which signal stopped a process, and what for. Linux `include/uapi/asm-generic/signal.h` and `siginfo.h`.

use super::header::Header;
use super::notes::{self, NT_PRSTATUS, NT_SIGINFO, Note};
use super::threads;
use crate::Fault;
use crate::bytes::{u32_at, word_at};
use backtrail_core::Avma;

const NAMES: [&str; 32] = [
    "",
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

const SIGILL: u64 = 4;
const SIGTRAP: u64 = 5;
const SIGBUS: u64 = 7;
const SIGFPE: u64 = 8;
const SIGSEGV: u64 = 11;

/// Codes above zero, by signal, from 1 on.
const CODES: [(u64, &[&str]); 5] = [
    (
        SIGILL,
        &[
            "ILL_ILLOPC",
            "ILL_ILLOPN",
            "ILL_ILLADR",
            "ILL_ILLTRP",
            "ILL_PRVOPC",
            "ILL_PRVREG",
            "ILL_COPROC",
            "ILL_BADSTK",
        ],
    ),
    (SIGTRAP, &["TRAP_BRKPT", "TRAP_TRACE", "TRAP_BRANCH", "TRAP_HWBKPT", "TRAP_UNK", "TRAP_PERF"]),
    (SIGBUS, &["BUS_ADRALN", "BUS_ADRERR", "BUS_OBJERR", "BUS_MCEERR_AR", "BUS_MCEERR_AO"]),
    (
        SIGFPE,
        &[
            "FPE_INTDIV",
            "FPE_INTOVF",
            "FPE_FLTDIV",
            "FPE_FLTOVF",
            "FPE_FLTUND",
            "FPE_FLTRES",
            "FPE_FLTINV",
            "FPE_FLTSUB",
        ],
    ),
    (
        SIGSEGV,
        &[
            "SEGV_MAPERR",
            "SEGV_ACCERR",
            "SEGV_BNDERR",
            "SEGV_PKUERR",
            "SEGV_ACCADI",
            "SEGV_ADIDERR",
            "SEGV_ADIPERR",
            "SEGV_MTEAERR",
            "SEGV_MTESERR",
            "SEGV_CPERR",
        ],
    ),
];
/// Codes of any signal.
const SENT: [(i32, &str); 6] = [
    (0, "SI_USER"),
    (0x80, "SI_KERNEL"),
    (-1, "SI_QUEUE"),
    (-2, "SI_TIMER"),
    (-4, "SI_ASYNCIO"),
    (-6, "SI_TKILL"),
];

/// What stopped the process; `None` for a core of a process that nothing stopped.
pub(super) fn fault(header: &Header, notes: &[Note<'_>]) -> Option<Fault> {
    let details = notes::find(notes, NT_SIGINFO).map(|note| note.data);
    let told = details.and_then(|data| u32_at(data, 0)).filter(|signal| *signal != 0).map(u64::from);
    let current = notes::find(notes, NT_PRSTATUS).and_then(threads::signal_of).map(u64::from);
    let number = told.or(current).filter(|signal| *signal != 0)?;
    let code = details.filter(|_| told.is_some()).and_then(|data| u32_at(data, 8)).map(u32::cast_signed);
    // Only codes that the kernel gives for a fault come with an address; SI_KERNEL's is zero whatever it was.
    let is_fault = matches!(number, SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV)
        && code.is_some_and(|code| (1..0x80).contains(&code));
    let address = details
        .filter(|_| is_fault)
        .and_then(|data| word_at(data, if header.is_64 { 16 } else { 12 }, header.is_64));
    Some(Fault {
        name: name_of(number),
        number,
        code: code.map(|code| code_name(number, code)),
        address: address.map(Avma::new),
    })
}

fn name_of(signal: u64) -> String {
    let name = usize::try_from(signal).ok().and_then(|signal| NAMES.get(signal));
    name.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

fn code_name(signal: u64, code: i32) -> String {
    let of_signal = CODES
        .iter()
        .find(|(known, _)| *known == signal)
        .and_then(|(_, names)| names.get(usize::try_from(code).ok()?.checked_sub(1)?));
    let sent = || SENT.iter().find(|(known, _)| *known == code).map(|(_, name)| name);
    of_signal.or_else(sent).map_or_else(|| format!("code {code}"), |name| (*name).to_owned())
}
