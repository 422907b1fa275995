//! Numbers of Apple's systems that reporters write in place of names.

/// `EXC_…` by number (`mach/exception_types.h`).
const EXCEPTIONS: [(u64, &str); 13] = [
    (1, "EXC_BAD_ACCESS"),
    (2, "EXC_BAD_INSTRUCTION"),
    (3, "EXC_ARITHMETIC"),
    (4, "EXC_EMULATION"),
    (5, "EXC_SOFTWARE"),
    (6, "EXC_BREAKPOINT"),
    (7, "EXC_SYSCALL"),
    (8, "EXC_MACH_SYSCALL"),
    (9, "EXC_RPC_ALERT"),
    (10, "EXC_CRASH"),
    (11, "EXC_RESOURCE"),
    (12, "EXC_GUARD"),
    (13, "EXC_CORPSE_NOTIFY"),
];

/// Signals by number (`sys/signal.h`).
const SIGNALS: [(u64, &str); 10] = [
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (10, "SIGBUS"),
    (11, "SIGSEGV"),
    (12, "SIGSYS"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
];

/// The name of a Mach exception, or that it is none that is known.
pub(crate) fn exception_name(number: u64) -> String {
    known_exception(number).map_or_else(|| format!("exception {number}"), str::to_owned)
}

/// The name of a Mach exception.
pub(crate) fn known_exception(number: u64) -> Option<&'static str> {
    EXCEPTIONS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// The name of a signal.
pub(crate) fn known_signal(number: u64) -> Option<&'static str> {
    SIGNALS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}
