//! System calls that threads wait in: `/proc/PID/task/TID/syscall`, and what one is that the kernel began again.

use backtrail_core::Avma;

/// A system call of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemCall {
    /// Its number, which [`Syscalls`](super::Syscalls) knows the name of.
    pub number: u64,
    /// What it was called with.
    pub arguments: [u64; 6],
}

/// What a thread that was not running had called, and where its own code stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calling {
    /// It was on a processor.
    Running,
    /// It waited, or was ready to run.
    Waiting {
        /// The system call that it waits in, where it does.
        call: Option<SystemCall>,
        /// Its stack pointer.
        stack_pointer: Avma,
        /// Its program counter.
        program_counter: Avma,
    },
}

/// Reads the line: `running`, or a number (-1 outside of system calls), six arguments where it is one, the stack pointer
/// and the program counter. proc(5); Linux `fs/proc/base.c`, `proc_pid_syscall`.
pub fn parse_syscall(line: &[u8]) -> Option<Calling> {
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Calling::Running);
    }
    let mut hex = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    let call = match first.parse::<i64>().ok()? {
        number @ 0.. => {
            let mut arguments = [0; 6];
            for argument in &mut arguments {
                *argument = hex()?;
            }
            Some(SystemCall { number: number.unsigned_abs(), arguments })
        }
        _ => None,
    };
    Some(Calling::Waiting { call, stack_pointer: Avma::new(hex()?), program_counter: Avma::new(hex()?) })
}

/// Which system call a thread waits in, whose registers say `restart_syscall`: the kernel begins some calls anew by that
/// after the thread was stopped, whoever stopped it. `wait_channel` is `/proc/PID/task/TID/wchan`, the kernel's function that the
/// thread sleeps in. `None` where that leaves it open.
///
/// The arguments are still those of the first time. The calls are those that have a time to wait for and set a function to go
/// on with (`set_restart_fn`): Linux `kernel/futex/waitwake.c`, `kernel/time/hrtimer.c`, `posix-cpu-timers.c`, `alarmtimer.c`,
/// `fs/select.c`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn restarted_call(call: &SystemCall, wait_channel: &str) -> Option<&'static str> {
    let begins = |names: &[&str]| names.iter().any(|name| wait_channel.starts_with(name));
    if begins(&["futex_", "__futex_"]) {
        return Some("futex");
    }
    if begins(&["poll_schedule_timeout", "do_poll", "do_sys_poll", "do_restart_poll"]) {
        return Some("poll");
    }
    // `nanosleep` has none of these clocks.
    if begins(&["do_cpu_nanosleep", "posix_cpu_nsleep", "alarmtimer_do_nsleep", "alarm_timer_nsleep"]) {
        return Some("clock_nanosleep");
    }
    // The function that goes on with these two is left before the thread sleeps (a tail call), so that the kernel tells the
    // one that begins any system call. Seen on Linux 6.18, x86_64: `do_syscall_64`.
    let begins_calls = ["syscall", "sys_call", "SYSENTER", "el0_svc"];
    if begins(&["hrtimer_nanosleep"]) || begins_calls.iter().any(|name| wait_channel.contains(name)) {
        /// The last number of a clock, `CLOCK_TAI`. Linux `include/uapi/linux/time.h`.
        const LAST_CLOCK: u64 = 11;
        /// Nothing is mapped below.
        const FIRST_ADDRESS: u64 = 4096;
        return match call.arguments {
            [0..=LAST_CLOCK, ..] => Some("clock_nanosleep"),
            [(FIRST_ADDRESS..), ..] => Some("nanosleep"),
            _ => None,
        };
    }
    None
}

/// The number that the code of x86 before a program counter calls with: `mov $number, %eax` and `syscall` or `int $0x80`.
/// `code` is what ends at the program counter.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn called_by_code(code: &[u8]) -> Option<u64> {
    let [.., before, 0xb8, a, b, c, d, first, second] = *code else { return None };
    let is_call = matches!([first, second], [0x0f, 0x05] | [0xcd, 0x80]);
    // With a prefix it is another register that is set (REX.B), or another part of it.
    let has_prefix = matches!(before, 0x40..=0x4f | 0x66);
    (is_call && !has_prefix).then_some(u64::from(u32::from_le_bytes([a, b, c, d])))
}

/// Whether a call of this name is one that the kernel may begin anew by `restart_syscall`.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn is_restarted_by_number(name: &str) -> bool {
    let name = name.strip_suffix("_time64").unwrap_or(name);
    matches!(name, "futex" | "poll" | "nanosleep" | "clock_nanosleep")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_began_anew_is_told_by_where_the_kernel_waits() {
        let call = |first| SystemCall { number: 219, arguments: [first, 0, 0, 0, 0, 0] };
        let (clock, address, cpu_clock) = (1, 0x7ffd_1d55_2ca8, 0xffff_fffa);
        for (first, channel, name) in [
            (address, "futex_do_wait", Some("futex")),
            (address, "futex_wait_queue_me", Some("futex")),
            (address, "__futex_wait", Some("futex")),
            (0, "poll_schedule_timeout.constprop.0", Some("poll")),
            (address, "do_sys_poll", Some("poll")),
            (clock, "do_syscall_64", Some("clock_nanosleep")),
            (address, "do_syscall_64", Some("nanosleep")),
            (address, "__do_fast_syscall_32", Some("nanosleep")),
            (address, "invoke_syscall", Some("nanosleep")),
            (clock, "hrtimer_nanosleep", Some("clock_nanosleep")),
            (cpu_clock, "do_cpu_nanosleep", Some("clock_nanosleep")),
            (9, "alarmtimer_do_nsleep", Some("clock_nanosleep")),
            // No number of a clock, and no address.
            (12, "do_syscall_64", None),
            (address, "ptrace_stop", None),
            (address, "0", None),
            (address, "", None),
        ] {
            assert_eq!(restarted_call(&call(first), channel), name, "{first:#x} {channel}");
        }
    }

    #[test]
    fn the_code_before_tells_the_number_where_it_is_one() {
        // glibc's poll, x86_64; musl's and glibc's 32-bit calls.
        assert_eq!(called_by_code(&[0x90, 0xb8, 7, 0, 0, 0, 0x0f, 0x05]), Some(7));
        assert_eq!(called_by_code(&[0x90, 0xb8, 0x97, 1, 0, 0, 0xcd, 0x80]), Some(0x197));
        // `mov $7, %r8d`, as little as `mov %rdi, %rax`, and other instructions.
        assert_eq!(called_by_code(&[0x41, 0xb8, 7, 0, 0, 0, 0x0f, 0x05]), None);
        assert_eq!(called_by_code(&[0, 0, 0, 0x48, 0x89, 0xf8, 0x0f, 0x05]), None);
        assert_eq!(called_by_code(&[0x90, 0xb8, 7, 0, 0, 0, 0x0f, 0x80]), None);
        assert_eq!(called_by_code(&[0xb8, 7, 0, 0, 0, 0x0f, 0x05]), None);
        assert!(is_restarted_by_number("futex_time64") && !is_restarted_by_number("ppoll"));
    }

    #[test]
    fn every_form_of_the_line() {
        let waiting = parse_syscall(b"202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd1d552ca8 0x7f08ee4662ad\n");
        let expected = Calling::Waiting {
            call: Some(SystemCall { number: 202, arguments: [1, 2, 3, 4, 5, 6] }),
            stack_pointer: Avma::new(0x7ffd_1d55_2ca8),
            program_counter: Avma::new(0x7f08_ee46_62ad),
        };
        assert_eq!(waiting, Some(expected));
        let (stack_pointer, program_counter) = (Avma::new(16), Avma::new(32));
        let outside = Calling::Waiting { call: None, stack_pointer, program_counter };
        assert_eq!(parse_syscall(b"-1 0x10 0x20\n"), Some(outside));
        assert_eq!(parse_syscall(b"running\n"), Some(Calling::Running));
        for odd in [&b""[..], b"\n", b"0 0x1", b"0 1 2 3 4 5 6 7 8", b"-1 0x10", b"\xff"] {
            assert_eq!(parse_syscall(odd), None, "{odd:?}");
        }
    }
}
