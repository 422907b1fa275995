//! Keeping off the processors that the process runs on.

use crate::ThreadState;
use crate::procfs::Stat;
use backtrail_sys::linux::KeptOff;

/// The calling thread, and those that it starts, run elsewhere than the process's threads that were seen to run, as long as
/// this lives. Beside one of them on the same processor, whatever this program does would be a pause of that thread, for
/// a slice of the scheduler's at a time: milliseconds, where its stop takes microseconds.
///
/// Where all processors are the process's, none is kept off.
#[derive(Debug, Default)]
pub struct Away {
    busy: Vec<u32>,
    kept: Option<KeptOff>,
}

impl Away {
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
