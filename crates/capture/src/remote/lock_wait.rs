//! Which lock a thread waits for, and who holds it: what the C library keeps beside the word that the thread waits for
//! (`futex`).
//!
//! glibc `sysdeps/nptl/bits/thread-shared-types.h`, `struct_mutex.h`, `struct_rwlock.h`, `nptl/pthread_mutex_lock.c`,
//! `pthread_rwlock_common.c` (layouts since 2.25); musl `src/internal/pthread_impl.h`, `src/thread/pthread_mutex_timedlock.c`;
//! Linux `include/uapi/linux/futex.h`.
//!
//! A word in memory does not say what it belongs to. A lock is told only where all that its C library keeps fits: the word and
//! what the call expected there, the kind, the number of users, and an owner that is a thread of the process.

use super::memory::LiveMemory;
use crate::bytes::u32_at;
use crate::procfs::SystemCall;
use backtrail_core::{Avma, Family};

/// What a thread waits for in `futex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// Where the lock is, as a debugger shows it; of [`LockKind::Unknown`] the word itself.
    pub address: Avma,
    /// What it is.
    pub kind: LockKind,
    /// The thread that holds it, or that is to end. `None` where nothing tells.
    pub owner: Option<u32>,
    /// Who says so.
    pub told_by: LockSource,
}

/// Kinds of what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockKind {
    /// A mutex (`pthread_mutex_t`).
    Mutex,
    /// A lock for readers and writers (`pthread_rwlock_t`) that a writer holds.
    RwLock,
    /// The end of a thread (`pthread_join`).
    ThreadEnd,
    /// A word that could be anything: a condition variable, a semaphore, a lock of another library.
    Unknown,
}

/// What tells a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockSource {
    /// The call: the kernel itself hands over locks with priority inheritance, and knows their owner by the word.
    Kernel,
    /// Memory that is laid out as glibc does.
    Glibc,
    /// Memory that is laid out as musl does.
    Musl,
    /// Nothing but the call's first argument.
    Address,
}

/// What lies before the word that a lock may need, and behind it.
const BEFORE: usize = 16;
const BYTES: usize = 64;

/// The memory around a word that a thread waits for, as it was while the thread stood still.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutexMemory {
    bytes: [u8; BYTES],
    /// Whether what lies before the word could be read.
    has_before: bool,
    size: usize,
}

/// What `futex` was called for. The upper bits of an operation are flags.
const WAIT: u64 = 0;
const WAIT_BITSET: u64 = 9;
const LOCK_PI: u64 = 6;
const LOCK_PI2: u64 = 13;
const PRIVATE: u64 = 0x80;
const OPERATION: u64 = 0x7f;
/// Bits of a word that the kernel looks at: there are waiters; the owner's id.
const HAS_WAITERS: u32 = 0x8000_0000;
const OWNER: u32 = 0x3fff_ffff;

impl FutexMemory {
    /// Copies what lies around the word of a call, which is `futex` or may be. Allocates nothing.
    pub(super) fn read(call: &SystemCall, memory: &LiveMemory) -> Option<Self> {
        let [word, operation, ..] = call.arguments;
        if !matches!(operation & OPERATION, WAIT | WAIT_BITSET | LOCK_PI | LOCK_PI2) {
            return None;
        }
        let mut bytes = [0; BYTES];
        if let Some(start) = word.checked_sub(BEFORE as u64) {
            let size = memory.copy_now(Avma::new(start), &mut bytes);
            if size > BEFORE {
                return Some(Self { bytes, has_before: true, size });
            }
        }
        let size = memory.copy_now(Avma::new(word), bytes.get_mut(BEFORE..)?);
        (size > 0).then_some(Self { bytes, has_before: false, size: BEFORE + size })
    }

    /// A number so many bytes from the word.
    fn at(&self, offset: isize) -> Option<u32> {
        let at = BEFORE.checked_add_signed(offset).filter(|at| self.has_before || *at >= BEFORE)?;
        u32_at(self.bytes.get(..self.size)?, at)
    }
}

/// What a thread waits for in `futex`. `is_thread` says whether an id is that of a thread of the process. `None` for calls that
/// wait for nothing.
pub(super) fn lock_wait(
    family: Family,
    call: &SystemCall,
    memory: Option<&FutexMemory>,
    is_thread: impl Fn(u32) -> bool,
) -> Option<LockWait> {
    let [address, operation, expected, ..] = call.arguments;
    let word_address = Avma::new(address);
    let is_wait = match operation & OPERATION {
        WAIT | WAIT_BITSET => true,
        LOCK_PI | LOCK_PI2 => false,
        _ => return None,
    };
    let unknown = LockWait {
        address: word_address,
        kind: LockKind::Unknown,
        owner: None,
        told_by: LockSource::Address,
    };
    let Some(memory) = memory else { return Some(unknown) };
    let owner_of = |word: u32| Some(word & OWNER).filter(|owner| *owner != 0 && is_thread(*owner));
    let Some(word) = memory.at(0) else { return Some(unknown) };
    if !is_wait {
        let told_by = LockSource::Kernel;
        return Some(LockWait { kind: LockKind::Mutex, owner: owner_of(word), told_by, ..unknown });
    }
    let expected = expected as u32;
    // Somebody has changed it: the thread is about to go on.
    if word != expected {
        return Some(unknown);
    }
    let (told_by, is_private) = (LockSource::Glibc, operation & PRIVATE != 0);
    let found = glibc_mutex(family, memory, word, &owner_of)
        .map(|owner| LockWait { kind: LockKind::Mutex, owner: Some(owner), told_by, ..unknown })
        .or_else(|| {
            let (owner, offset) = glibc_rwlock(family, memory, word, &owner_of)?;
            let address = word_address.checked_sub(offset)?;
            Some(LockWait { address, kind: LockKind::RwLock, owner: Some(owner), told_by })
        })
        .or_else(|| {
            let owner = musl_mutex(memory, word, &owner_of)?;
            let address = word_address.checked_sub(4)?;
            Some(LockWait { address, kind: LockKind::Mutex, owner: Some(owner), told_by: LockSource::Musl })
        })
        .or_else(|| {
            // `pthread_join` of glibc waits for the kernel to clear the thread's own id, which it does as for another process.
            let is_id = !is_private && word & !OWNER == 0;
            let owner = owner_of(word).filter(|_| is_id)?;
            Some(LockWait { kind: LockKind::ThreadEnd, owner: Some(owner), told_by, ..unknown })
        });
    Some(found.unwrap_or(unknown))
}

/// The owner of glibc's mutex whose first word is waited for.
fn glibc_mutex(
    family: Family,
    memory: &FutexMemory,
    word: u32,
    owner_of: &impl Fn(u32) -> Option<u32>,
) -> Option<u32> {
    const RECURSIVE: u32 = 1;
    const TYPE: u32 = 3;
    const ROBUST: u32 = 16;
    const PRIORITY_INHERIT: u32 = 32;
    const PRIORITY_PROTECT: u32 = 64;
    const SHARED: u32 = 128;
    const ELISION: u32 = 256 | 512;
    let (users_at, kind_at) = if family.word_size() == 8 { (12, 16) } else { (16, 12) };
    let (count, owner) = (memory.at(4)?, memory.at(8)?);
    let (users, kind) = (memory.at(users_at)?, memory.at(kind_at)?);
    if kind & !(TYPE | ROBUST | PRIORITY_PROTECT | SHARED | ELISION) != 0 || kind & PRIORITY_INHERIT != 0 {
        return None;
    }
    // Of robust ones glibc sets the count whatever their type.
    let fits_count = kind & ROBUST != 0 || (kind & TYPE == RECURSIVE) == (count > 0);
    let holder = owner_of(owner).filter(|holder| *holder == owner && users > 0 && fits_count)?;
    let fits_word = if kind & ROBUST != 0 {
        word == holder | HAS_WAITERS
    } else if kind & PRIORITY_PROTECT != 0 {
        // Above it is the highest priority of those that wait.
        word & 0x7_ffff == 2
    } else {
        word == 2
    };
    fits_word.then_some(holder)
}

/// The writer that holds glibc's lock, and how far behind the lock's start the word is that is waited for.
fn glibc_rwlock(
    family: Family,
    memory: &FutexMemory,
    word: u32,
    owner_of: &impl Fn(u32) -> Option<u32>,
) -> Option<(u32, u64)> {
    const WRITE_LOCKED: u32 = 2;
    /// It is locked, and somebody waits.
    const LOCKED_AND_WAITED_FOR: u32 = 3;
    if word != LOCKED_AND_WAITED_FOR {
        return None;
    }
    // Readers wait for the end of a phase of writing, writers for each other.
    [8_isize, 12].into_iter().find_map(|offset| {
        let field = |at: isize| memory.at(at - offset);
        let readers = field(0)?;
        // 64 bits: the writer, whether it is shared, and behind what is reserved the kind. 32 bits: that, and the writer last.
        let (writer_at, shared, kind) = if family.word_size() == 8 {
            (24, field(28)?, field(48).unwrap_or_default())
        } else {
            let bytes = field(24)?.to_le_bytes();
            let [kind, shared, ..] = bytes;
            (28, shared.into(), kind.into())
        };
        let writer = field(writer_at)?;
        let fits = readers & WRITE_LOCKED != 0 && shared <= 1 && kind <= 2;
        let owner = owner_of(writer).filter(|owner| *owner == writer && fits)?;
        Some((owner, offset.unsigned_abs() as u64))
    })
}

/// The owner of musl's mutex whose second word is waited for. Of plain ones it keeps none.
fn musl_mutex(memory: &FutexMemory, word: u32, owner_of: &impl Fn(u32) -> Option<u32>) -> Option<u32> {
    const TYPES: u32 = 3 | 4 | 8 | 128;
    const PLAIN: u32 = 0;
    let (kind, waiters) = (memory.at(-4)?, memory.at(4)?);
    let has_owner = kind & !TYPES == 0 && kind & 15 != PLAIN;
    let is_waited_for = word & HAS_WAITERS != 0 && (1..0x1_0000).contains(&waiters);
    owner_of(word).filter(|_| has_owner && is_waited_for)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    const WORD: u64 = 0x7000_0010;
    const OWNER_ID: u32 = 4711;

    /// Memory with these numbers, so many bytes from the word.
    fn memory(numbers: &[(isize, u32)]) -> FutexMemory {
        let mut memory = FutexMemory { bytes: [0; BYTES], has_before: true, size: BYTES };
        for (offset, value) in numbers {
            let at = BEFORE.checked_add_signed(*offset).unwrap();
            memory.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        memory
    }

    fn wait(family: Family, operation: u64, expected: u32, memory: &FutexMemory) -> LockWait {
        let arguments = [WORD, operation, expected.into(), 0, 0, 0];
        lock_wait(family, &SystemCall { number: 202, arguments }, Some(memory), |id| id == OWNER_ID).unwrap()
    }

    const X64: Family = Family::X86_64;
    const MUTEX: [(isize, u32); 3] = [(0, 2), (8, OWNER_ID), (12, 1)];

    #[test]
    fn mutexes_of_glibc_have_their_owner_beside_the_word() {
        let waits = wait(X64, WAIT | PRIVATE, 2, &memory(&MUTEX));
        let address = Avma::new(WORD);
        let (kind, owner, told_by) = (LockKind::Mutex, Some(OWNER_ID), LockSource::Glibc);
        assert_eq!(waits, LockWait { address, kind, owner, told_by });
        // With a time limit, recursive, shared, and where it may be elided.
        for (count, kind) in [(3, 1), (0, 2), (0, 3 | 128), (0, 256)] {
            let memory = memory(&[&MUTEX[..], &[(4, count), (16, kind)]].concat());
            assert_eq!(wait(X64, WAIT_BITSET | PRIVATE, 2, &memory).owner, owner, "{kind}");
        }
        // 32 bits: the kind comes before the number of users.
        let memory = memory(&[(0, 2), (8, OWNER_ID), (12, 3), (16, 1)]);
        assert_eq!(wait(Family::X86, WAIT | PRIVATE, 2, &memory).owner, owner);
    }

    #[test]
    fn robust_mutexes_have_it_in_the_word_too() {
        let word = OWNER_ID | HAS_WAITERS;
        let robust = [(0, word), (4, 1), (8, OWNER_ID), (12, 1), (16, 16)];
        assert_eq!(wait(X64, WAIT | PRIVATE, word, &memory(&robust)).kind, LockKind::Mutex);
        let other = [(0, word + 1), (4, 1), (8, OWNER_ID), (12, 1), (16, 16)];
        assert_eq!(wait(X64, WAIT | PRIVATE, word + 1, &memory(&other)).kind, LockKind::Unknown);
    }

    #[test]
    fn the_kernels_own_locks_have_it_in_the_word() {
        let waits = wait(X64, LOCK_PI | PRIVATE, 0, &memory(&[(0, OWNER_ID | HAS_WAITERS)]));
        assert_eq!((waits.owner, waits.told_by), (Some(OWNER_ID), LockSource::Kernel));
        // A thread of another process.
        let waits = wait(X64, LOCK_PI2, 0, &memory(&[(0, 9)]));
        assert_eq!((waits.kind, waits.owner), (LockKind::Mutex, None));
    }

    #[test]
    fn read_and_write_locks_have_their_writer_behind_the_word() {
        for offset in [8_isize, 12] {
            let fields = [(0, 2), (offset, 3), (24, OWNER_ID)];
            let waits =
                wait(X64, WAIT | PRIVATE, 3, &memory(&fields.map(|(at, value)| (at - offset, value))));
            assert_eq!((waits.kind, waits.owner), (LockKind::RwLock, Some(OWNER_ID)));
            assert_eq!(waits.address, Avma::new(WORD - offset.unsigned_abs() as u64));
        }
        // Nobody writes.
        let waits = wait(X64, WAIT | PRIVATE, 3, &memory(&[(-8, 8), (0, 3), (16, OWNER_ID)]));
        assert_eq!(waits.kind, LockKind::Unknown);
    }

    #[test]
    fn musls_mutexes_have_it_in_the_second_word() {
        let word = OWNER_ID | HAS_WAITERS;
        let waits = wait(X64, WAIT | PRIVATE, word, &memory(&[(-4, 1), (0, word), (4, 1)]));
        assert_eq!((waits.told_by, waits.owner), (LockSource::Musl, Some(OWNER_ID)));
        assert_eq!(waits.address, Avma::new(WORD - 4));
    }

    #[test]
    fn the_end_of_a_thread_is_waited_for_by_its_id() {
        let joins = memory(&[(0, OWNER_ID)]);
        let waits = wait(X64, WAIT_BITSET | 0x100, OWNER_ID, &joins);
        assert_eq!((waits.kind, waits.owner), (LockKind::ThreadEnd, Some(OWNER_ID)));
        // glibc never waits so for what is its own process's.
        assert_eq!(wait(X64, WAIT_BITSET | PRIVATE, OWNER_ID, &joins).kind, LockKind::Unknown);
    }

    #[test]
    fn what_does_not_fit_in_all_is_no_lock() {
        let with = |changes: &[(isize, u32)]| memory(&[&MUTEX[..], changes].concat());
        for (odd, why) in [
            (with(&[(8, OWNER_ID + 1)]), "the owner is no thread of the process"),
            (with(&[(12, 0)]), "nobody uses it"),
            (with(&[(16, 0x400)]), "there is no such kind"),
            (with(&[(16, 1)]), "recursive, and never locked"),
            (with(&[(4, 1)]), "not recursive, and locked twice"),
            (with(&[(0, 1)]), "another value than was waited for"),
            (memory(&[(0, 2)]), "a lock without an owner, as malloc has"),
        ] {
            assert_eq!(wait(X64, WAIT | PRIVATE, 2, &odd).kind, LockKind::Unknown, "{why}");
        }
        let call = SystemCall { number: 202, arguments: [WORD, 1, 0, 0, 0, 0] };
        assert_eq!(lock_wait(X64, &call, None, |_| true), None, "FUTEX_WAKE");
        let short = FutexMemory { size: BEFORE + 3, ..memory(&MUTEX) };
        assert_eq!(wait(X64, WAIT | PRIVATE, 2, &short).kind, LockKind::Unknown);
    }
}
