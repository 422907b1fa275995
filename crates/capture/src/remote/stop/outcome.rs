//! What comes of stopping threads.

use crate::remote::lock_wait::FutexMemory;
use crate::remote::stack_arena::{CopiedStacks, StackSlice};
use crate::remote::thread_info::Waiting;
use backtrail_core::{Avma, Registers};
use std::fmt;
use std::time::Duration;

/// How long threads stood still, as measured from outside: from the last moment they were seen running (or asleep in the
/// kernel) to the one they were let go of. At most as long they really stood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stops {
    /// How many were.
    pub threads: usize,
    /// The longest time that one was.
    pub longest: Duration,
    /// How long all of them were stopped together, where they were.
    pub together: Option<Duration>,
    /// How long of these those that ran were at most, where any did.
    pub running: Option<Duration>,
}

impl fmt::Display for Stops {
    /// As one sentence for a person.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1000.0);
        match self.threads {
            0 => return f.write_str("no thread was stopped"),
            1 => f.write_str("1 thread")?,
            count => write!(f, "{count} threads")?,
        }
        match (self.together, self.running) {
            (Some(time), None) => write!(f, " stopped together for {}", milliseconds(time)),
            (Some(time), Some(running)) => write!(
                f,
                " stopped together for {}, those that ran for at most {}",
                milliseconds(time),
                milliseconds(running)
            ),
            (None, _) if self.threads == 1 => {
                write!(f, " stopped for at most {}", milliseconds(self.longest))
            }
            (None, _) => write!(f, " stopped one by one, each for at most {}", milliseconds(self.longest)),
        }
    }
}

/// What came of stopping a thread.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are the large one, and room for all is made at once"
)]
pub(in crate::remote) enum Outcome {
    Copied(Copied),
    /// It did not stop in this time.
    Unstoppable(Duration),
    /// This process traces it.
    Traced(u32),
    /// It has ended.
    Gone,
    Denied(String),
}

/// What came of stopping all threads.
pub(in crate::remote) struct Stopped {
    /// Parallel to the threads.
    pub(in crate::remote) outcomes: Vec<Outcome>,
    pub(in crate::remote) stacks: CopiedStacks,
    pub(in crate::remote) stops: Stops,
}

/// A thread's registers and stack.
#[derive(Debug)]
pub(in crate::remote) struct Copied {
    pub(in crate::remote) registers: Registers,
    /// The system call that it was in.
    pub(in crate::remote) call: Option<Waiting>,
    /// What lay around the word that it waited for, if that call is `futex`.
    pub(in crate::remote) futex: Option<FutexMemory>,
    pub(in crate::remote) start: Avma,
    pub(in crate::remote) stack: StackSlice,
    /// Whether the stack is deeper than that.
    pub(in crate::remote) is_cut: bool,
    pub(in crate::remote) stopped_for: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stops_are_told_by_what_was_stopped() {
        let told = |threads, together| {
            let stops = Stops { threads, longest: Duration::from_micros(20), together, running: None };
            stops.to_string()
        };
        assert_eq!(told(0, None), "no thread was stopped");
        assert_eq!(told(0, Some(Duration::from_millis(5))), "no thread was stopped");
        assert_eq!(told(1, None), "1 thread stopped for at most 0.02 ms");
        assert_eq!(told(2, None), "2 threads stopped one by one, each for at most 0.02 ms");
        assert_eq!(told(2, Some(Duration::from_millis(5))), "2 threads stopped together for 5.00 ms");
    }
}
