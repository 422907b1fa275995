//! What Linux tells of processes and threads below `/proc`. proc(5); Linux `fs/proc/array.c`.
//!
//! The parsers take bytes and open nothing. The kernel writes these files, but a thread chooses its own name, so every
//! field is found however the name looks.

mod kernel_stack;
mod stat;
mod status;
mod syscall;
mod syscalls;

pub use kernel_stack::parse_kernel_stack;
pub use stat::Stat;
pub use status::Status;
pub use syscall::{Calling, SystemCall, parse_syscall};
#[cfg(target_os = "linux")]
pub(crate) use syscall::{called_by_code, is_restarted_by_number, restarted_call};
pub use syscalls::Syscalls;

/// The CPU time of a thread in nanoseconds: the first number of `/proc/PID/task/TID/schedstat`. Finer than the ticks of
/// `stat`, and missing where the kernel is built without it (`CONFIG_SCHED_INFO`).
pub fn parse_schedstat(text: &[u8]) -> Option<u64> {
    number(text.split(u8::is_ascii_whitespace).next()?)
}

/// How many threads run or want to, of all that the machine has: the fourth word of `/proc/loadavg`, before the slash.
pub fn parse_running(text: &[u8]) -> Option<usize> {
    let word = text.split(u8::is_ascii_whitespace).nth(3)?;
    number(word.split(|byte| *byte == b'/').next()?)
}

/// The thread ids among the names in `/proc/PID/task`.
pub fn parse_id(name: &[u8]) -> Option<u32> {
    number(name)
}

/// A decimal number, all of `text`.
fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_on_the_processor_is_the_first_number() {
        assert_eq!(parse_schedstat(b"821793 25688 2\n"), Some(821_793));
        assert_eq!(parse_schedstat(b"0 0 0\n"), Some(0));
        assert_eq!(parse_running(b"0.20 0.18 0.12 3/80 11206\n"), Some(3));
        assert_eq!((parse_running(b"0.20 0.18 0.12"), parse_running(b"")), (None, None));
        for text in [&b""[..], b"\n", b"-1 0 0", b"99999999999999999999999 1 1", b"\xff"] {
            assert_eq!(parse_schedstat(text), None);
        }
        assert_eq!((parse_id(b"4242"), parse_id(b".."), parse_id(b"4294967296")), (Some(4242), None, None));
    }
}
