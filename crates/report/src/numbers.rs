//! Numbers that reports state where others print the word.

/// The Mach exception of that number: `osfmk/mach/exception_types.h` of XNU.
pub(crate) fn mach_exception(number: u64) -> Option<&'static str> {
    Some(match number {
        1 => "EXC_BAD_ACCESS",
        2 => "EXC_BAD_INSTRUCTION",
        3 => "EXC_ARITHMETIC",
        4 => "EXC_EMULATION",
        5 => "EXC_SOFTWARE",
        6 => "EXC_BREAKPOINT",
        7 => "EXC_SYSCALL",
        8 => "EXC_MACH_SYSCALL",
        9 => "EXC_RPC_ALERT",
        10 => "EXC_CRASH",
        11 => "EXC_RESOURCE",
        12 => "EXC_GUARD",
        13 => "EXC_CORPSE_NOTIFY",
        _ => return None,
    })
}

/// The signal of that number. Linux and Apple's systems agree on most.
pub(crate) fn signal(number: u64, is_linux: bool) -> Option<&'static str> {
    Some(match (number, is_linux) {
        (1, _) => "SIGHUP",
        (2, _) => "SIGINT",
        (3, _) => "SIGQUIT",
        (4, _) => "SIGILL",
        (5, _) => "SIGTRAP",
        (6, _) => "SIGABRT",
        (7, true) | (10, false) => "SIGBUS",
        (8, _) => "SIGFPE",
        (9, _) => "SIGKILL",
        (11, _) => "SIGSEGV",
        (31, true) | (12, false) => "SIGSYS",
        (13, _) => "SIGPIPE",
        (14, _) => "SIGALRM",
        (15, _) => "SIGTERM",
        _ => return None,
    })
}

/// A number with `0x` before it.
pub(crate) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Whether a text is a decimal number of digits alone.
pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The signal that words stand for, as C libraries and runtimes have them: `Segmentation fault`, `Bus error: 10`.
pub(crate) fn signal_in_words(words: &str) -> Option<&'static str> {
    const WORDS: [(&str, &str); 9] = [
        ("segmentation fault", "SIGSEGV"),
        ("segmentation violation", "SIGSEGV"),
        ("bus error", "SIGBUS"),
        ("illegal instruction", "SIGILL"),
        ("floating point exception", "SIGFPE"),
        ("floating-point exception", "SIGFPE"),
        ("aborted", "SIGABRT"),
        ("abort", "SIGABRT"),
        ("trace/breakpoint trap", "SIGTRAP"),
    ];
    let words = words.trim();
    let begins = |known: &str| words.get(..known.len()).is_some_and(|head| head.eq_ignore_ascii_case(known));
    WORDS.iter().find(|(known, _)| begins(known)).map(|(_, signal)| *signal)
}
