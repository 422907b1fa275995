//! Which processors to work on: not those that the process runs on.

use crate::ThreadState;
use crate::procfs::Stat;
use backtrail_sys::linux::KeptOff;
use std::num::NonZero;

/// The calling thread, and those that it starts, run elsewhere than the process's threads that were seen to run, as long as
/// this lives. Beside one of them on the same processor, whatever this program does would be a pause of that thread, for
/// a slice of the scheduler's at a time: milliseconds, where its stop takes microseconds.
///
/// Where all processors are the process's, none is kept off.
#[derive(Debug, Default)]
pub struct CpuAvoidance {
    busy: Vec<u32>,
    kept: Option<KeptOff>,
}

impl CpuAvoidance {
    pub(super) fn saw(&mut self, stat: &Stat) {
        if stat.state == ThreadState::Running {
            self.keep_off(stat.processor);
        }
    }

    /// Whether the process runs on every processor that there is.
    pub(super) fn is_crowded(&self) -> bool {
        self.kept.is_none() && !self.busy.is_empty()
    }

    pub(super) fn join(&mut self, busy: Vec<u32>) {
        self.keep_off(busy);
    }

    pub(super) fn busy(self) -> Vec<u32> {
        self.busy
    }

    fn keep_off(&mut self, busy: impl IntoIterator<Item = u32>) {
        let before = self.busy.len();
        for processor in busy {
            if !self.busy.contains(&processor) {
                self.busy.push(processor);
            }
        }
        if self.busy.len() > before {
            // The old one ends first: what it goes back to is not what the new one has to.
            self.kept = None;
            self.kept = KeptOff::new(&self.busy);
        }
    }
}

/// How many threads of this program may work side by side: this one, and one for each processor that nothing runs on now.
/// What the process runs on is left to it: it is to notice nothing but its threads' stops.
pub fn workers() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let text = std::fs::read("/proc/loadavg").unwrap_or_default();
    // This thread is one of those that run.
    let free = crate::procfs::parse_running(&text).map_or(0, |running| processors.saturating_sub(running));
    1 + free
}
