//! Locks that threads wait for.

use super::Hex;
use backtrail_model::{Deadlock, DeadlockedThread, LockHolder, LockWait};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct LockWaitJson<'a> {
    kind: &'static str,
    address: Hex,
    holder: Option<LockHolderJson<'a>>,
    has_time_limit: bool,
    told_by: &'static str,
}

#[derive(Debug, Serialize)]
struct LockHolderJson<'a> {
    id: u64,
    name: Option<&'a str>,
    status: &'static str,
}

#[derive(Debug, Serialize)]
pub(super) struct DeadlockJson<'a> {
    certain: bool,
    threads: Vec<DeadlockedThreadJson<'a>>,
    waiting_behind: u64,
}

#[derive(Debug, Serialize)]
struct DeadlockedThreadJson<'a> {
    id: u64,
    name: Option<&'a str>,
    waits_for: LockWaitJson<'a>,
}

pub(super) fn lock_wait(waits: &LockWait) -> LockWaitJson<'_> {
    LockWaitJson {
        kind: waits.kind.as_str(),
        address: waits.address.into(),
        holder: holder(&waits.holder),
        has_time_limit: waits.has_time_limit,
        told_by: waits.told_by.as_str(),
    }
}

fn holder(holder: &LockHolder) -> Option<LockHolderJson<'_>> {
    let (id, name, status) = match holder {
        LockHolder::Thread { id, name } => (*id, name.as_deref(), "alive"),
        LockHolder::Ended(id) => (*id, None, "ended"),
        LockHolder::OtherProcess(id) => (*id, None, "other-process"),
        _ => return None,
    };
    Some(LockHolderJson { id, name, status })
}

pub(super) fn deadlock(deadlock: &Deadlock) -> DeadlockJson<'_> {
    DeadlockJson {
        certain: deadlock.is_certain,
        threads: deadlock.threads.iter().map(deadlocked_thread).collect(),
        waiting_behind: deadlock.waiting_behind,
    }
}

fn deadlocked_thread(thread: &DeadlockedThread) -> DeadlockedThreadJson<'_> {
    DeadlockedThreadJson {
        id: thread.id,
        name: thread.name.as_deref(),
        waits_for: lock_wait(&thread.waits_for),
    }
}
