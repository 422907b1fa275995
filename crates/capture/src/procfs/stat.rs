//! `/proc/PID/task/TID/stat`: one line of numbers, with the name in parentheses second.

use super::number;
use crate::ThreadState;
use std::time::Duration;

/// What `stat` says of a thread; of a process, of its first thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The thread's id, as the reader's namespace of processes has it.
    pub id: u32,
    /// Its name; the kernel keeps 15 bytes.
    pub name: String,
    /// What it was doing.
    pub state: ThreadState,
    /// The process that started its own.
    pub parent: u32,
    /// Time in its own code, in ticks ([`Stat::TICKS_PER_SECOND`]).
    pub user_ticks: u64,
    /// Time in the kernel on its behalf, in ticks.
    pub system_ticks: u64,
    /// The kernel's priority: 20 plus the nice value; for real-time threads minus one minus their priority.
    pub priority: i64,
    /// 19 (nice to the others) to -20.
    pub nice: i64,
    /// Threads of its process.
    pub threads: u64,
    /// When it started, in ticks since the system did. Tells a thread from a later one with the same id.
    pub start: u64,
    /// The processor that it runs on, or ran on last.
    pub processor: Option<u32>,
    /// Whether it is the kernel's own: such have no memory and no stack to read.
    pub is_kernel_thread: bool,
}

/// `PF_KTHREAD`; Linux `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Stat {
    /// `USER_HZ`, which is 100 on every architecture that is captured.
    pub const TICKS_PER_SECOND: u64 = 100;

    /// Reads the line. `None` where it is cut off before the last field that is kept here, or is none.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let open = line.iter().position(|byte| *byte == b'(')?;
        // A name can have parentheses and line breaks; what follows it cannot.
        let close = line.iter().rposition(|byte| *byte == b')')?;
        let name = line.get(open + 1..close)?;
        let fields: Vec<&[u8]> =
            line.get(close + 1..)?.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).collect();
        let letter = *fields.first()?.first()?;
        // Fields count from 1 in proc(5), and the state is the third.
        let field = |number_in_manual: usize| fields.get(number_in_manual - 3).copied();
        Some(Self {
            id: number(line.get(..open)?.trim_ascii())?,
            name: String::from_utf8_lossy(name).into_owned(),
            state: ThreadState::from_letter(letter),
            parent: number(field(4)?)?,
            user_ticks: number(field(14)?)?,
            system_ticks: number(field(15)?)?,
            priority: number(field(18)?)?,
            nice: number(field(19)?)?,
            threads: number(field(20)?)?,
            start: number(field(22)?)?,
            processor: field(39).and_then(number),
            is_kernel_thread: number::<u64>(field(9)?)? & KERNEL_THREAD != 0,
        })
    }

    /// When it started, since the system did.
    pub fn start_time(&self) -> Duration {
        ticks(self.start)
    }

    /// Time in its own code.
    pub fn user_time(&self) -> Duration {
        ticks(self.user_ticks)
    }

    /// Time in the kernel.
    pub fn system_time(&self) -> Duration {
        ticks(self.system_ticks)
    }
}

fn ticks(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(1000 / Stat::TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "4550 (a) (b\n) R) S 4544 4544 21115 0 -1 4194304 96 0 0 0 12 345 0 0 39 19 3 0 7731 \
        3133440 400 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_cannot_shift_the_fields() {
        let stat = Stat::parse(LINE.as_bytes()).unwrap();
        assert_eq!((stat.id, stat.name.as_str(), stat.state), (4550, "a) (b\n) R", ThreadState::Sleeping));
        assert_eq!((stat.parent, stat.priority, stat.nice, stat.threads), (4544, 39, 19, 3));
        assert_eq!(stat.user_time(), Duration::from_millis(120));
        assert_eq!(stat.system_time(), Duration::from_millis(3450));
        assert_eq!((stat.start, stat.is_kernel_thread, stat.processor), (7731, false, Some(1)));
    }

    #[test]
    fn what_is_cut_off_is_no_line() {
        let whole = LINE.as_bytes();
        let end_of_start = whole.windows(5).position(|part| part == b"7731 ").unwrap();
        for size in 0..end_of_start {
            assert_eq!(Stat::parse(&whole[..size]), None, "{size}");
        }
        assert!(Stat::parse(&whole[..end_of_start + 5]).is_some());
        assert_eq!(Stat::parse(b") ("), None);
    }

    #[test]
    fn this_thread_is_running() {
        let line = std::fs::read("/proc/thread-self/stat").unwrap();
        let stat = Stat::parse(&line).unwrap();
        assert_eq!((stat.state, stat.is_kernel_thread), (ThreadState::Running, false));
        assert!(stat.threads >= 1 && stat.start > 0);
    }
}
