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
use backtrail_model::{LockKind, LockSource};

/// What a thread waits for in `futex`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// Where the lock is, as a debugger shows it; of [`LockKind::Unknown`] the word itself.
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

/// Who holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockHolder {
    /// A thread of the process.
    Thread(u32),
    /// A thread of the process that has ended without unlocking.
    Ended(u32),
    /// No thread of the process, of a lock that several processes may share.
    OtherProcess(u32),
    /// Nothing tells.
    Unknown,
}

/// What lies before the word that a lock may need, and all that is copied. musl's thread descriptor begins 56 bytes before the
/// word that `pthread_join` waits for; 16 bytes are enough for all locks.
const BEFORE: usize = 56;
const BEFORE_LOCKS: usize = 16;
const BYTES: usize = BEFORE + 48;

/// The memory around a word that a thread waits for, as it was while the thread stood still.
#[derive(Clone, Copy, Debug)]
pub(super) struct FutexMemory {
    bytes: [u8; BYTES],
    /// How many of the bytes before the word could be read.
    before: usize,
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
/// The largest id that the kernel gives (`PID_MAX_LIMIT`).
const MOST_ID: u32 = 1 << 22;
/// More threads than these wait for no lock.
const MOST_USERS: u32 = 1 << 16;

impl FutexMemory {
    /// Copies what lies around the word of a call, which is `futex` or may be. Allocates nothing.
    pub(super) fn read(call: &SystemCall, memory: &LiveMemory) -> Option<Self> {
        let [word, operation, ..] = call.arguments;
        if !matches!(operation & OPERATION, WAIT | WAIT_BITSET | LOCK_PI | LOCK_PI2) {
            return None;
        }
        let mut bytes = [0; BYTES];
        // What is before the word may be in a page that is not there.
        for before in [BEFORE, BEFORE_LOCKS, 0] {
            let Some(start) = word.checked_sub(before as u64) else { continue };
            let skipped = BEFORE - before;
            let size = memory.copy_now(Avma::new(start), bytes.get_mut(skipped..)?);
            if size > before {
                return Some(Self { bytes, before, size: skipped + size });
            }
        }
        None
    }

    /// A number so many bytes from the word.
    fn at(&self, offset: isize) -> Option<u32> {
        let at = BEFORE.checked_add_signed(offset).filter(|at| *at >= BEFORE - self.before)?;
        u32_at(self.bytes.get(..self.size)?, at)
    }

    fn u64_at(&self, offset: isize) -> Option<u64> {
        Some(u64::from(self.at(offset)?) | u64::from(self.at(offset.checked_add(4)?)?) << 32)
    }

    /// Whether so many bytes from the word on are zero.
    fn is_zero(&self, from: isize, size: usize) -> bool {
        (from..).step_by(4).take(size / 4).all(|offset| self.at(offset) == Some(0))
    }
}

/// The threads of a process, as locks name them.
pub(super) trait Threads {
    /// Whether there is a thread of this id that has not ended.
    fn is_alive(&self, id: u32) -> bool;
    /// Whether there is none of this id, or it has ended.
    fn is_ended(&self, id: u32) -> bool;
}

/// What tells a lock's holder.
struct Lookup<'l, T> {
    threads: &'l T,
    family: Family,
    memory: &'l FutexMemory,
    /// Whether the word is of this process alone.
    is_private: bool,
    has_time_limit: bool,
    is_bitset: bool,
}

/// What a thread waits for in `futex`. `None` for calls that wait for nothing.
pub(super) fn lock_wait(
    family: Family,
    call: &SystemCall,
    memory: Option<&FutexMemory>,
    threads: &impl Threads,
) -> Option<LockWait> {
    let [address, operation, expected, time_limit, ..] = call.arguments;
    let is_wait = match operation & OPERATION {
        WAIT | WAIT_BITSET => true,
        LOCK_PI | LOCK_PI2 => false,
        _ => return None,
    };
    let has_time_limit = time_limit != 0;
    let unknown = LockWait {
        address: Avma::new(address),
        kind: LockKind::Unknown,
        holder: LockHolder::Unknown,
        has_time_limit,
        told_by: LockSource::Address,
    };
    let Some(memory) = memory else { return Some(unknown) };
    let Some(word) = memory.at(0) else { return Some(unknown) };
    let is_private = operation & PRIVATE != 0;
    let is_bitset = operation & OPERATION == WAIT_BITSET;
    let lookup = Lookup { threads, family, memory, is_private, has_time_limit, is_bitset };
    if !is_wait {
        let told_by = LockSource::Kernel;
        let holder = lookup.holder(word & OWNER);
        return Some(LockWait { kind: LockKind::Mutex, holder, told_by, ..unknown });
    }
    // Where it differs somebody has changed it: the thread is about to go on.
    let found = if word == expected as u32 { lookup.find(unknown.address, word) } else { None };
    let Some((kind, address, holder, told_by)) = found else { return Some(unknown) };
    Some(LockWait { address, kind, holder, told_by, has_time_limit })
}

type LockSeen = (LockKind, Avma, LockHolder, LockSource);

impl<T: Threads> Lookup<'_, T> {
    fn find(&self, address: Avma, word: u32) -> Option<LockSeen> {
        use LockSource::{Glibc, Musl};
        if let Some(holder) = self.glibc_mutex(word) {
            return Some((LockKind::Mutex, address, holder, Glibc));
        }
        if let Some((holder, offset)) = self.glibc_rwlock(word) {
            return Some((LockKind::RwLock, address.checked_sub(offset)?, holder, Glibc));
        }
        if let Some(holder) = self.musl_mutex(word) {
            return Some((LockKind::Mutex, address.checked_sub(4)?, holder, Musl));
        }
        if let Some(holder) = self.musl_join(address, word) {
            return Some((LockKind::ThreadEnd, address, holder, Musl));
        }
        let holder = self.glibc_join(word)?;
        Some((LockKind::ThreadEnd, address, holder, Glibc))
    }

    /// Who has an id that a lock states.
    fn holder(&self, id: u32) -> LockHolder {
        match id {
            1..=MOST_ID if self.threads.is_alive(id) => LockHolder::Thread(id),
            1..=MOST_ID if !self.is_private => LockHolder::OtherProcess(id),
            1..=MOST_ID if self.threads.is_ended(id) => LockHolder::Ended(id),
            _ => LockHolder::Unknown,
        }
    }

    /// The same, where the lock is one for certain only if somebody holds it.
    fn certain_holder(&self, id: u32) -> Option<LockHolder> {
        Some(self.holder(id)).filter(|holder| *holder != LockHolder::Unknown)
    }

    fn live_holder(&self, id: u32) -> Option<LockHolder> {
        self.threads.is_alive(id).then_some(LockHolder::Thread(id))
    }

    /// The holder of glibc's mutex whose first word is waited for.
    fn glibc_mutex(&self, word: u32) -> Option<LockHolder> {
        const RECURSIVE: u32 = 1;
        const ADAPTIVE: u32 = 3;
        const TYPE: u32 = 3;
        const ROBUST: u32 = 16;
        const PRIORITY_INHERIT: u32 = 32;
        const PRIORITY_PROTECT: u32 = 64;
        const SHARED: u32 = 128;
        const ELISION: u32 = 256 | 512;
        const KNOWN: u32 = TYPE | ROBUST | PRIORITY_PROTECT | SHARED | ELISION;
        // `FUTEX_WAIT_BITSET` without a time limit is what Rust's standard library waits by: its locks have other things behind
        // the word. glibc waits so for a mutex only where there is a limit.
        if self.is_bitset && !self.has_time_limit {
            return None;
        }
        let memory = self.memory;
        let is_64 = self.family.word_size() == 8;
        let (users_at, kind_at) = if is_64 { (12, 16) } else { (16, 12) };
        let (count, owner) = (memory.at(4)?, memory.at(8)?);
        let (users, kind) = (memory.at(users_at)?, memory.at(kind_at)?);
        if kind & !KNOWN != 0 || kind & PRIORITY_INHERIT != 0 {
            return None;
        }
        let is_robust = kind & ROBUST != 0;
        // Of robust ones glibc sets the count whatever their type.
        let fits_count = is_robust || (kind & TYPE == RECURSIVE) == (count > 0);
        if owner == 0 || !(1..MOST_USERS).contains(&users) || !fits_count {
            return None;
        }
        let fits_word = if is_robust {
            word == owner | HAS_WAITERS
        } else if kind & PRIORITY_PROTECT != 0 {
            // Above it is the highest priority of those that wait.
            word & 0x7_ffff == 2
        } else {
            word == 2
        };
        if !fits_word {
            return None;
        }
        // A live thread's id is proof enough. Else all that is left has to fit too: only adaptive mutexes count how often they
        // were tried, only robust ones are in a list.
        let rest = if is_64 { 20 } else { 4 };
        let fits_rest =
            !is_robust && kind & TYPE != ADAPTIVE && kind & ELISION == 0 && memory.is_zero(20, rest);
        self.live_holder(owner).or_else(|| self.certain_holder(owner).filter(|_| fits_rest))
    }

    /// The writer that holds glibc's lock, and how far behind the lock's start the word is that is waited for.
    fn glibc_rwlock(&self, word: u32) -> Option<(LockHolder, u64)> {
        const WRITE_LOCKED: u32 = 2;
        /// It is locked, and somebody waits.
        const LOCKED_AND_WAITED_FOR: u32 = 3;
        if word != LOCKED_AND_WAITED_FOR {
            return None;
        }
        // Readers wait for the end of a phase of writing, writers for each other.
        [8_isize, 12].into_iter().find_map(|offset| {
            let field = |at: isize| self.memory.at(at - offset);
            let readers = field(0)?;
            // 64 bits: the writer, whether it is shared, and behind what is reserved the kind. 32 bits: that, and the writer last.
            let (writer_at, shared, kind) = if self.family.word_size() == 8 {
                (24, field(28)?, field(48).unwrap_or_default())
            } else {
                let bytes = field(24)?.to_le_bytes();
                let [kind, shared, ..] = bytes;
                (28, shared.into(), kind.into())
            };
            let fits = readers & WRITE_LOCKED != 0 && shared <= 1 && kind <= 2;
            let holder = self.live_holder(field(writer_at)?).filter(|_| fits)?;
            Some((holder, offset.unsigned_abs() as u64))
        })
    }

    /// The holder of musl's mutex whose second word is waited for. Of plain ones it keeps none.
    fn musl_mutex(&self, word: u32) -> Option<LockHolder> {
        const TYPES: u32 = 3 | 4 | 8 | 128;
        const PLAIN: u32 = 0;
        /// What a plain one has in the place of an owner: `EBUSY`.
        const BUSY: u32 = 16;
        let (kind, waiters) = (self.memory.at(-4)?, self.memory.at(4)?);
        if kind & !TYPES != 0 || word & HAS_WAITERS == 0 || !(1..MOST_USERS).contains(&waiters) {
            return None;
        }
        if kind & 15 == PLAIN {
            return (word == BUSY | HAS_WAITERS).then_some(LockHolder::Unknown);
        }
        // It is in the list of what its holder holds.
        let is_listed = self.family.word_size() == 8
            && [20, 28].into_iter().all(|at| self.memory.u64_at(at).is_some_and(|pointer| pointer != 0));
        let owner = word & OWNER;
        self.live_holder(owner).or_else(|| self.certain_holder(owner).filter(|_| is_listed))
    }

    /// The thread that musl's `pthread_join` waits for: the word is in its descriptor, which begins with its own address.
    fn musl_join(&self, address: Avma, word: u32) -> Option<LockHolder> {
        const DESCRIPTOR: isize = -56;
        const THREAD_ID: isize = -8;
        const JOINABLE: u32 = 2;
        let is_64 = self.family.word_size() == 8;
        let start =
            address.checked_sub(DESCRIPTOR.unsigned_abs() as u64).filter(|_| is_64 && word == JOINABLE)?;
        let id = self.memory.at(THREAD_ID)?;
        (self.memory.u64_at(DESCRIPTOR)? == start.get()).then(|| self.live_holder(id)).flatten()
    }

    /// The thread that glibc's `pthread_join` waits for: the kernel clears its id when it ends, and wakes as for another process.
    fn glibc_join(&self, word: u32) -> Option<LockHolder> {
        (!self.is_private).then(|| self.live_holder(word)).flatten()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    const WORD: u64 = 0x7000_0010;
    const OWNER_ID: u32 = 4711;

    /// Memory with these numbers, so many bytes from the word.
    fn memory(numbers: &[(isize, u32)]) -> FutexMemory {
        let mut memory = FutexMemory { bytes: [0; BYTES], before: BEFORE, size: BYTES };
        for (offset, value) in numbers {
            let at = BEFORE.checked_add_signed(*offset).unwrap();
            memory.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        memory
    }

    /// One that lives, and one that was there before.
    struct Two;
    const ENDED_ID: u32 = 4700;

    impl Threads for Two {
        fn is_alive(&self, id: u32) -> bool {
            id == OWNER_ID
        }

        fn is_ended(&self, id: u32) -> bool {
            id == ENDED_ID
        }
    }

    fn wait(family: Family, operation: u64, expected: u32, memory: &FutexMemory) -> LockWait {
        let time_limit = u64::from(operation & OPERATION == WAIT_BITSET);
        let arguments = [WORD, operation, expected.into(), time_limit, 0, 0];
        lock_wait(family, &SystemCall { number: 202, arguments }, Some(memory), &Two).unwrap()
    }

    const HELD: LockHolder = LockHolder::Thread(OWNER_ID);

    const X64: Family = Family::X86_64;
    const MUTEX: [(isize, u32); 3] = [(0, 2), (8, OWNER_ID), (12, 1)];

    #[test]
    fn mutexes_of_glibc_have_their_owner_beside_the_word() {
        let waits = wait(X64, WAIT | PRIVATE, 2, &memory(&MUTEX));
        let address = Avma::new(WORD);
        let (kind, holder, told_by) = (LockKind::Mutex, HELD, LockSource::Glibc);
        assert_eq!(waits, LockWait { address, kind, holder, has_time_limit: false, told_by });
        // With a time limit, recursive, shared, and where it may be elided.
        for (count, kind) in [(3, 1), (0, 2), (0, 3 | 128), (0, 256)] {
            let memory = memory(&[&MUTEX[..], &[(4, count), (16, kind)]].concat());
            assert_eq!(wait(X64, WAIT_BITSET | PRIVATE, 2, &memory).holder, HELD, "{kind}");
        }
        // 32 bits: the kind comes before the number of users.
        let memory = memory(&[(0, 2), (8, OWNER_ID), (12, 3), (16, 1)]);
        assert_eq!(wait(Family::X86, WAIT | PRIVATE, 2, &memory).holder, HELD);
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
        assert_eq!((waits.holder, waits.told_by), (HELD, LockSource::Kernel));
        // A thread of another process.
        let waits = wait(X64, LOCK_PI2, 0, &memory(&[(0, 9)]));
        assert_eq!((waits.kind, waits.holder), (LockKind::Mutex, LockHolder::OtherProcess(9)));
    }

    #[test]
    fn read_and_write_locks_have_their_writer_behind_the_word() {
        for offset in [8_isize, 12] {
            let fields = [(0, 2), (offset, 3), (24, OWNER_ID)];
            let waits =
                wait(X64, WAIT | PRIVATE, 3, &memory(&fields.map(|(at, value)| (at - offset, value))));
            assert_eq!((waits.kind, waits.holder), (LockKind::RwLock, HELD));
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
        assert_eq!((waits.told_by, waits.holder), (LockSource::Musl, HELD));
        assert_eq!(waits.address, Avma::new(WORD - 4));
        // Plain ones have an error's number in its place.
        let waits = wait(X64, WAIT | PRIVATE, 16 | HAS_WAITERS, &memory(&[(0, 16 | HAS_WAITERS), (4, 2)]));
        assert_eq!((waits.kind, waits.holder), (LockKind::Mutex, LockHolder::Unknown));
    }

    #[test]
    fn holders_that_have_ended_are_told_where_all_the_rest_fits() {
        let ended = [&MUTEX[..], &[(8, ENDED_ID)]].concat();
        let of = |memory: &FutexMemory| wait(X64, WAIT | PRIVATE, 2, memory).holder;
        assert_eq!(of(&memory(&ended)), LockHolder::Ended(ENDED_ID));
        for odd in [(20, 1), (24, 7), (36, 1), (16, 3)] {
            assert_eq!(of(&memory(&[&ended[..], &[odd]].concat())), LockHolder::Unknown, "{odd:?}");
        }
        // Of a process that shares the lock.
        let waits = wait(X64, WAIT, 2, &memory(&[&ended[..], &[(16, 128)]].concat()));
        assert_eq!((waits.kind, waits.holder), (LockKind::Mutex, LockHolder::OtherProcess(ENDED_ID)));
        let word = ENDED_ID | HAS_WAITERS;
        let musl = [(-4, 1), (0, word), (4, 1)];
        let of = |memory: &FutexMemory| wait(X64, WAIT | PRIVATE, word, memory).holder;
        assert_eq!(of(&memory(&musl)), LockHolder::Unknown);
        assert_eq!(of(&memory(&[&musl[..], &[(20, 8), (28, 8)]].concat())), LockHolder::Ended(ENDED_ID));
    }

    #[test]
    fn musls_joins_wait_in_the_thread_that_is_to_end() {
        let start = (WORD - 56) as u32;
        let joins = [(-56, start), (-8, OWNER_ID), (0, 2)];
        let waits = wait(X64, WAIT | PRIVATE, 2, &memory(&joins));
        assert_eq!((waits.kind, waits.holder, waits.told_by), (LockKind::ThreadEnd, HELD, LockSource::Musl));
        let other = [(-56, start + 8), (-8, OWNER_ID), (0, 2)];
        assert_eq!(wait(X64, WAIT | PRIVATE, 2, &memory(&other)).kind, LockKind::Unknown);
    }

    #[test]
    fn the_end_of_a_thread_is_waited_for_by_its_id() {
        let joins = memory(&[(0, OWNER_ID)]);
        let waits = wait(X64, WAIT_BITSET | 0x100, OWNER_ID, &joins);
        assert_eq!((waits.kind, waits.holder), (LockKind::ThreadEnd, HELD));
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
        assert_eq!(lock_wait(X64, &call, None, &Two), None, "FUTEX_WAKE");
        // As Rust's standard library waits for its own mutex, whatever is behind the word.
        let arguments = [WORD, WAIT_BITSET | PRIVATE, 2, 0, 0, 0];
        let call = SystemCall { number: 202, arguments };
        assert_eq!(lock_wait(X64, &call, Some(&memory(&MUTEX)), &Two).unwrap().kind, LockKind::Unknown);
        let short = FutexMemory { size: BEFORE + 3, ..memory(&MUTEX) };
        assert_eq!(wait(X64, WAIT | PRIVATE, 2, &short).kind, LockKind::Unknown);
    }
}
