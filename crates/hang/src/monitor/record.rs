//! What is known of one hang.

use super::{Missed, Moment, Tree, Usage};
use std::time::Duration;

/// A hang, while it lasts or after it.
#[derive(Clone, Debug)]
pub struct Hang {
    /// Which of the monitor's it is, counted from 1.
    pub number: u64,
    /// When it was noticed: the last beat was late by the threshold.
    pub noticed: Moment,
    /// How long the thread has not beaten, gaps left out.
    pub lasted: Duration,
    /// What was left out of [`Hang::lasted`].
    pub excused: Excused,
    /// What the thread used up in [`Hang::measured`].
    pub usage: Option<Usage>,
    /// The part of the hang, up to all of it, that [`Hang::usage`] is about.
    pub measured: Duration,
    /// How many stacks there are, and how many there are not.
    pub samples: SampleCounts,
    /// The stacks.
    pub tree: Tree,
    /// How it ended; `None` while it lasts.
    pub end: Option<End>,
}

/// Captures of a hang, by what came of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SampleCounts {
    /// A stack.
    pub taken: u64,
    /// Of these, stacks that may have further frames.
    pub incomplete: u64,
    /// No stack.
    pub missed: u64,
    /// Why the last one of these failed.
    pub last_missed: Option<Missed>,
    /// Not tried, since there were as many as one hang may have.
    pub skipped: u64,
}

/// Time that is not the watched thread's fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Excused {
    /// The machine was suspended.
    pub suspended: Duration,
    /// The process did not run, or the thread was stopped: a debugger, `SIGSTOP`, a paused virtual machine.
    pub stopped: Duration,
    /// How often.
    pub gaps: u64,
}

/// How a hang ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum End {
    /// The thread beat again, or rests.
    Recovered,
    /// The thread ended.
    ThreadEnded,
    /// The thread was not watched any further.
    Unwatched,
}

impl End {
    /// The word that text and JSON use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::ThreadEnded => "thread-ended",
            Self::Unwatched => "unwatched",
        }
    }
}

/// What a thread did with its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Activity {
    /// It computed, for at least two thirds of the time.
    Busy,
    /// It waited, for at least nine tenths of the time.
    Waiting,
    /// It wanted to compute and had no processor, for at least half of the time.
    Starved,
    /// Some of each.
    Mixed,
    /// The system does not say.
    Unknown,
}

impl Activity {
    /// The word that text and JSON use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Waiting => "waiting",
            Self::Starved => "starved",
            Self::Mixed => "mixed",
            Self::Unknown => "unknown",
        }
    }

    /// From what was used in some time. Less than a few ticks of the coarsest processor clock (100 Hz) say nothing.
    pub fn of(usage: Option<Usage>, time: Duration) -> Self {
        let Some(usage) = usage.filter(|_| time >= Duration::from_millis(30)) else { return Self::Unknown };
        let share = |part: Duration| part.as_secs_f64() / time.as_secs_f64();
        let (cpu, queued) = (share(usage.cpu), share(usage.queued.unwrap_or_default()));
        match () {
            () if queued >= 0.5 => Self::Starved,
            () if cpu >= 2.0 / 3.0 => Self::Busy,
            () if cpu + queued <= 0.1 => Self::Waiting,
            () => Self::Mixed,
        }
    }
}

impl Hang {
    /// What the thread did most of the time.
    pub fn activity(&self) -> Activity {
        Activity::of(self.usage, self.measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activity_is_told_by_shares() {
        let ms = Duration::from_millis;
        let of = |cpu, queued, time| {
            Activity::of(Some(Usage { cpu: ms(cpu), queued: Some(ms(queued)) }), ms(time)).as_str()
        };
        assert_eq!(of(950, 10, 1000), "busy");
        assert_eq!(of(20, 5, 1000), "waiting");
        assert_eq!(of(300, 700, 1000), "starved");
        assert_eq!(of(300, 10, 1000), "mixed");
        assert_eq!(of(10, 0, 10), "unknown");
        assert_eq!(Activity::of(None, ms(1000)), Activity::Unknown);
        let untold = Some(Usage { cpu: ms(0), queued: None });
        assert_eq!(Activity::of(untold, ms(1000)), Activity::Waiting);
    }
}
