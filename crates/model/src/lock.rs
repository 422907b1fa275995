//! Locks that threads wait for.

use backtrail_core::Avma;

/// What a thread waits for, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// Where the lock is; of [`LockKind::Unknown`] the word that the thread waits for.
    pub address: Avma,
    /// What it is.
    pub kind: LockKind,
    /// Who holds it; of [`LockKind::ThreadEnd`] the thread that is to end.
    pub holder: LockHolder,
    /// Whether the wait ends by itself at some time.
    pub has_time_limit: bool,
    /// Who says so.
    pub told_by: LockSource,
}

/// Kinds of what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockKind {
    /// A mutex.
    Mutex,
    /// A lock for readers and writers that a writer holds.
    RwLock,
    /// The end of a thread.
    ThreadEnd,
    /// A word that could be anything: a condition variable, a semaphore, a lock that does not say who holds it.
    Unknown,
}

impl LockKind {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutex => "mutex",
            Self::RwLock => "rwlock",
            Self::ThreadEnd => "thread-end",
            Self::Unknown => "unknown",
        }
    }
}

/// Who holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockHolder {
    /// A thread of the process.
    Thread {
        /// Its id.
        id: u64,
        /// Its name.
        name: Option<String>,
    },
    /// A thread of the process that has ended without unlocking; by the id that the lock states.
    Ended(u64),
    /// No thread of the process, of a lock that several processes may share; by the id that the lock states.
    OtherProcess(u64),
    /// Nothing tells.
    Unknown,
}

/// What tells a lock and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockSource {
    /// The kernel, which itself hands over locks with priority inheritance.
    Kernel,
    /// Memory that is laid out as glibc does.
    Glibc,
    /// Memory that is laid out as musl does.
    Musl,
    /// Nothing but the address that is waited for.
    Address,
}

impl LockSource {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Glibc => "glibc",
            Self::Musl => "musl",
            Self::Address => "address",
        }
    }
}

/// Threads that wait for each other in a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each waits for what the next one holds, the last for what the first one does.
    pub threads: Vec<DeadlockedThread>,
    /// Whether none of them can go on: all that is known of them is of one moment, and no wait has a time limit. Otherwise they may
    /// have held these locks one after the other.
    pub is_certain: bool,
    /// How many further threads wait for one of them, directly or by others.
    pub waiting_behind: u64,
}

/// One of the threads of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlockedThread {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// What it waits for.
    pub waits_for: LockWait,
}
