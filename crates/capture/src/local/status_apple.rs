//! What the kernel tells of a thread of this process. Nobody has run this yet.

use super::ThreadId;
use crate::ThreadState;
use crate::mach::{QueueOffsets, queue_name};
use backtrail_core::Avma;
use backtrail_sys::macos::{Facts, OwnMemory, RunState, queue_offsets};

/// What is known of a thread. A value of fixed size: neither reading nor keeping it allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    facts: Facts,
    /// What it is at.
    pub state: ThreadState,
}

impl Status {
    /// Asks the kernel. `None` where the thread is gone.
    pub fn read(thread: ThreadId) -> Option<Self> {
        let facts = thread.facts().ok()?;
        let state = match facts.state {
            RunState::Running => ThreadState::Running,
            RunState::Waiting => ThreadState::Sleeping,
            RunState::Uninterruptible => ThreadState::Uninterruptible,
            RunState::Stopped | RunState::Halted => ThreadState::Stopped,
            _ => ThreadState::Other('?'),
        };
        Some(Self { facts, state })
    }

    /// The same: a thread has one number.
    pub fn of(thread: ThreadId) -> Option<Self> {
        Self::read(thread)
    }

    /// The low half of the number that the thread has in the whole system.
    #[allow(clippy::cast_possible_truncation, reason = "that half is what is asked for")]
    pub fn number(&self) -> u32 {
        self.facts.id as u32
    }

    /// The thread's name, which programs set for debuggers. What is not UTF-8 is left out.
    pub fn name(&self) -> &str {
        let name = self.facts.name.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(name).unwrap_or("")
    }

    /// The name of the dispatch queue that the thread serves at the moment. Allocates.
    pub fn queue(&self) -> Option<String> {
        let offsets = QueueOffsets::new(queue_offsets()?)?;
        queue_name(&OwnMemory::without_stack(), self.facts.queue_place, offsets)
    }

    /// No signals are sent here.
    pub fn blocks(&self, _signal: i32) -> bool {
        false
    }

    /// No signals are sent here.
    pub fn has_pending(&self, _signal: i32) -> bool {
        false
    }

    /// Where the thread keeps its dispatch queue.
    pub fn queue_place(&self) -> Avma {
        self.facts.queue_place
    }
}
