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
const SIGCHLD: u64 = 17;
const SIGIO: u64 = 29;
const SIGSYS: u64 = 31;

/// Codes above zero, by signal, from 1 on. An empty name for those that no Linux of these architectures gives.
const CODES: [(u64, &[&str]); 8] = [
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
            "ILL_BADIADDR",
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
            // ia64 only.
            "",
            "",
            "",
            "",
            "",
            "FPE_FLTUNK",
            "FPE_CONDTRAP",
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
    (SIGCHLD, &["CLD_EXITED", "CLD_KILLED", "CLD_DUMPED", "CLD_TRAPPED", "CLD_STOPPED", "CLD_CONTINUED"]),
    (SIGIO, &["POLL_IN", "POLL_OUT", "POLL_MSG", "POLL_ERR", "POLL_PRI", "POLL_HUP"]),
    (SIGSYS, &["SYS_SECCOMP", "SYS_USER_DISPATCH"]),
];
/// Codes of any signal: how it was sent.
const SENT: [(i32, &str); 10] = [
    (0, "SI_USER"),
    (0x80, "SI_KERNEL"),
    (-1, "SI_QUEUE"),
    (-2, "SI_TIMER"),
    (-3, "SI_MESGQ"),
    (-4, "SI_ASYNCIO"),
    (-5, "SI_SIGIO"),
    (-6, "SI_TKILL"),
    (-7, "SI_DETHREAD"),
    (-60, "SI_ASYNCNL"),
];

/// What stopped the process; `None` for a core of a process that nothing stopped.
pub(super) fn fault(header: &Header, notes: &[Note<'_>]) -> Option<Fault> {
    let details = notes::find(notes, NT_SIGINFO).map(|note| note.data);
    let told = details.and_then(|data| u32_at(data, 0)).filter(|signal| *signal != 0).map(u64::from);
    let current = notes::find(notes, NT_PRSTATUS).and_then(threads::signal_of).map(u64::from);
    let number = told.or(current).filter(|signal| *signal != 0)?;
    let code = details.filter(|_| told.is_some()).and_then(|data| u32_at(data, 8)).map(u32::cast_signed);
    let address = details
        .filter(|_| code.is_some_and(|code| is_fault(number, code)))
        .and_then(|data| word_at(data, if header.is_64 { 16 } else { 12 }, header.is_64));
    Some(Fault {
        name: name_of(number),
        number,
        code: code.map(|code| code_name(number, code)),
        address: address.map(Avma::new),
        sender: details.filter(|_| code.is_some_and(is_sent)).and_then(|data| sender(header, data)),
    })
}

/// Whether a signal is about an address. Only codes that the kernel gives for a fault come with one; `SI_KERNEL`'s is zero whatever it
/// was.
pub(crate) fn is_fault(signal: u64, code: i32) -> bool {
    matches!(signal, SIGILL | SIGTRAP | SIGBUS | SIGFPE | SIGSEGV) && (1..0x80).contains(&code)
}

/// Whether a process sent a signal of that code, so that `siginfo` has its id: by kill(), sigqueue() or tgkill().
fn is_sent(code: i32) -> bool {
    matches!(code, 0 | -1 | -6)
}

/// The id of the process that sent it. It is 0 for one outside of the namespace of ids.
fn sender(header: &Header, siginfo: &[u8]) -> Option<u64> {
    u32_at(siginfo, if header.is_64 { 16 } else { 12 }).map(u64::from).filter(|pid| *pid != 0)
}

impl Fault {
    /// A signal of Linux with its `si_code`, the address that it is about, and the process that sent it.
    pub fn of_signal(number: u64, code: i32, address: Option<Avma>, sender: Option<u64>) -> Self {
        Self { name: name_of(number), number, code: Some(code_name(number, code)), address, sender }
    }
}

pub(crate) fn name_of(signal: u64) -> String {
    let name = usize::try_from(signal).ok().and_then(|signal| NAMES.get(signal));
    name.map_or_else(|| format!("signal {signal}"), |name| (*name).to_owned())
}

pub(crate) fn code_name(signal: u64, code: i32) -> String {
    let of_signal = CODES
        .iter()
        .find(|(known, _)| *known == signal)
        .and_then(|(_, names)| names.get(usize::try_from(code).ok()?.checked_sub(1)?))
        .filter(|name| !name.is_empty());
    let sent = || SENT.iter().find(|(known, _)| *known == code).map(|(_, name)| name);
    of_signal.or_else(sent).map_or_else(|| format!("code {code}"), |name| (*name).to_owned())
}

/// The number that [`code_name`] names.
pub(crate) fn code_number(signal: u64, name: &str) -> Option<i32> {
    let number = name.strip_prefix("code ").and_then(|number| number.parse().ok());
    let known = || SENT.iter().map(|(code, _)| *code).chain(1..0x80);
    number.or_else(|| known().find(|code| code_name(signal, *code) == name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_their_signal() {
        for (signal, code, name) in [
            (SIGSYS, 1, "SYS_SECCOMP"),
            (SIGSYS, 2, "SYS_USER_DISPATCH"),
            (SIGSEGV, 2, "SEGV_ACCERR"),
            (SIGSEGV, 10, "SEGV_CPERR"),
            (SIGFPE, 15, "FPE_CONDTRAP"),
            (SIGFPE, 9, "code 9"),
            (SIGCHLD, 3, "CLD_DUMPED"),
            (6, -6, "SI_TKILL"),
            (6, 0, "SI_USER"),
            (SIGSEGV, 0x80, "SI_KERNEL"),
            (15, -60, "SI_ASYNCNL"),
            (15, 1, "code 1"),
            (SIGSEGV, i32::MIN, "code -2147483648"),
        ] {
            assert_eq!(code_name(signal, code), name);
            assert_eq!(code_number(signal, name), Some(code));
        }
    }

    #[test]
    fn a_signal_that_a_process_sent_has_a_sender() {
        let header = Header::new(backtrail_core::Arch::X86_64, true, Vec::new());
        let sender = |code: i32, pid: u32| {
            let words = [11, 0, code.cast_unsigned(), 0, pid, 1000];
            let data: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
            let note = Note { name: b"CORE", kind: NT_SIGINFO, data: &data, offset: 0, is_cut: false };
            fault(&header, &[note]).unwrap().sender
        };
        assert_eq!(sender(0, 77), Some(77));
        assert_eq!(sender(-6, 77), Some(77));
        assert_eq!(sender(0, 0), None);
        // Of a fault the same bytes are the address.
        assert_eq!(sender(1, 77), None);
    }

    #[test]
    fn names_and_numbers_are_those_of_the_systems_header() {
        let Ok(header) = std::fs::read_to_string("/usr/include/asm-generic/siginfo.h") else {
            return eprintln!("skipped: no kernel headers here");
        };
        let signals = [("ILL_", 4), ("TRAP_", 5), ("BUS_", 7), ("FPE_", 8), ("SEGV_", 11), ("CLD_", 17)];
        let signals = signals.into_iter().chain([("POLL_", 29), ("SYS_", 31), ("SI_", 0)]);
        let signals: Vec<_> = signals.collect();
        let mut count = 0;
        for line in header.lines() {
            let mut words = line.split_ascii_whitespace().skip_while(|word| matches!(*word, "#" | "#define"));
            let (Some(name), Some(value)) = (words.next(), words.next()) else { continue };
            let signal = signals.iter().find(|(prefix, _)| name.starts_with(prefix) && name != "SI_MAX_SIZE");
            let Some((_, signal)) = signal else { continue };
            let value = value
                .strip_prefix("0x")
                .map_or_else(|| value.parse().ok(), |digits| i32::from_str_radix(digits, 16).ok());
            if let Some(value) = value.filter(|_| line.contains("define")) {
                assert_eq!(code_name(*signal, value), name);
                count += 1;
            }
        }
        assert!(count > 50, "{count}");
    }
}
