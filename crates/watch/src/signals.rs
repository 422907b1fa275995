//! Which signals are crashes.

use std::fs;

/// Signals whose default is to end the process with a core dump. signal(7).
const CORE: [i32; 10] =
    [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS];
const SIGQUIT: i32 = 3;
const SIGILL: i32 = 4;
const SIGTRAP: i32 = 5;
const SIGABRT: i32 = 6;
const SIGBUS: i32 = 7;
const SIGFPE: i32 = 8;
const SIGSEGV: i32 = 11;
const SIGXCPU: i32 = 24;
const SIGXFSZ: i32 = 25;
const SIGSYS: i32 = 31;

/// Whether a thread that stands before this signal is about to crash: the signal is one of those that dump core, and the process
/// neither handles nor ignores it. Of a fault that cannot be handled or ignored (it was blocked, or came inside of the handler) the
/// kernel has taken the handler away by now.
pub(crate) fn is_crash(thread: u32, signal: i32) -> bool {
    CORE.contains(&signal)
        && fs::read_to_string(format!("/proc/{thread}/status"))
            .is_ok_and(|status| is_default(&status, signal))
}

/// By the masks of `/proc/TID/status`. proc(5).
fn is_default(status: &str, signal: i32) -> bool {
    let has = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let mask = line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    };
    !has("SigCgt") && !has("SigIgn")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handled_or_ignored_is_no_crash() {
        let status = "Name:\tcat\nSigIgn:\t0000000000000020\nSigCgt:\t0000000000000400\n";
        assert!(!is_default(status, SIGSEGV), "handled");
        assert!(!is_default(status, SIGABRT), "ignored");
        assert!(is_default(status, SIGBUS));
        // Nothing has a handler before its first instruction.
        assert!(is_crash(std::process::id(), SIGTRAP));
        assert!(!is_crash(std::process::id(), 15));
        assert!(!is_crash(u32::MAX, SIGTRAP));
    }
}
