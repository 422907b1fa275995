//! What `capture` tells of locks, as the model has it: with the threads' names.

use backtrail_capture::remote::{self, ThreadInfo};
use backtrail_model::{Deadlock, DeadlockedThread, LockHolder, LockWait};
use std::collections::HashMap;

/// The threads by their ids.
pub(crate) struct Locks<'t> {
    threads: HashMap<u32, &'t ThreadInfo>,
}

impl<'t> Locks<'t> {
    pub(crate) fn new(threads: &'t [ThreadInfo]) -> Self {
        Self { threads: threads.iter().map(|thread| (thread.id, thread)).collect() }
    }

    fn name(&self, id: u32) -> Option<String> {
        self.threads.get(&id).map(|thread| thread.name.clone()).filter(|name| !name.is_empty())
    }

    pub(crate) fn wait(&self, waits: remote::LockWait) -> LockWait {
        LockWait {
            address: waits.address,
            kind: waits.kind,
            holder: match waits.holder {
                remote::LockHolder::Thread(id) => LockHolder::Thread { id: id.into(), name: self.name(id) },
                remote::LockHolder::Ended(id) => LockHolder::Ended(id.into()),
                remote::LockHolder::OtherProcess(id) => LockHolder::OtherProcess(id.into()),
                _ => LockHolder::Unknown,
            },
            has_time_limit: waits.has_time_limit,
            told_by: waits.told_by,
        }
    }

    pub(crate) fn deadlock(&self, deadlock: &remote::Deadlock) -> Deadlock {
        let thread = |id: &u32| {
            let waits = self.threads.get(id)?.waits_for?;
            Some(DeadlockedThread { id: (*id).into(), name: self.name(*id), waits_for: self.wait(waits) })
        };
        Deadlock {
            threads: deadlock.threads.iter().filter_map(thread).collect(),
            is_certain: deadlock.is_certain,
            waiting_behind: deadlock.waiting_behind as u64,
        }
    }
}
