//! `/proc/PID/task/TID/syscall`: what a thread waits in.

use backtrail_core::Avma;

/// What a thread that was not running had called, and where its own code stood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calling {
    /// It was on a processor.
    Running,
    /// It waited, or was ready to run.
    Waiting {
        /// The system call's number, where it waits in one, and its arguments.
        call: Option<(u64, [u64; 6])>,
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
            Some((number.unsigned_abs(), arguments))
        }
        _ => None,
    };
    Some(Calling::Waiting { call, stack_pointer: Avma::new(hex()?), program_counter: Avma::new(hex()?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_line() {
        let waiting = parse_syscall(b"202 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd1d552ca8 0x7f08ee4662ad\n");
        let expected = Calling::Waiting {
            call: Some((202, [1, 2, 3, 4, 5, 6])),
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
