//! Slots: where a thread that was asked by signal finds what to do and leaves what came of it.
//!
//! A slot lives for ever. Its word says whose it is at the moment, and which use of it this is (the generation). Asker
//! and handler hand the slot's work to each other by changing the word, so that never both have it: a handler that comes
//! too late finds another generation and does nothing; an asker that stops waiting while the handler is at work leaves
//! the slot to it.
//!
//! Generations come round again, after some millions of uses, and a thread may block the signal for as long: so the slot
//! also says which thread is asked, and no other serves it. A fork leaves the child without the threads that had slots:
//! there, these slots are nobody's.

use super::futex;
use super::stopped::Stopped;
use super::{OsError, ThreadId};
use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// What a thread does when it is asked to.
///
/// # Signal safety
///
/// [`Work::run`] runs in a signal handler: it must not allocate, lock or panic.
pub trait Work: Send + 'static {
    /// Runs on the thread that was asked, in its signal handler.
    fn run(&mut self, at: &Stopped);
}

/// Nobody's.
const FREE: u32 = 0;
/// The asker's, before and after.
const CLAIMED: u32 = 1;
/// The signal is on its way.
const ARMED: u32 = 2;
/// The handler's.
const RUNNING: u32 = 3;
/// The asker's again, if it still waits.
const DONE: u32 = 4;
/// The handler's; the asker has gone.
const ABANDONED: u32 = 5;

const STATE: u32 = 0xff;
const GENERATION: u32 = 0x100;

/// More slots than can be of use; the number of one fits into a byte.
const MOST: usize = 256;

/// All slots, as the handler sees them.
static SLOTS: [AtomicPtr<Head>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];
static USED: AtomicUsize = AtomicUsize::new(0);

struct Head {
    /// Generation and state.
    word: AtomicU32,
    number: u32,
    /// Who asks, as the C library has it: the same in the child of a fork. Good while the slot is somebody's.
    asker: AtomicUsize,
    /// Who is asked. Good from `ARMED` on.
    asked: AtomicU32,
    run: unsafe fn(*const Head, &Stopped),
}

#[repr(C)]
struct Slot<W> {
    /// First, so that the handler finds it without knowing `W`.
    head: Head,
    work: UnsafeCell<W>,
}

// SAFETY: the work belongs to who has set the word: the asker (`CLAIMED`, `DONE`) or the handler (`RUNNING`,
// `ABANDONED`). It is sent from one to the other.
unsafe impl<W: Send> Sync for Slot<W> {}

/// # Safety
///
/// `head` is that of a `Slot<W>`, and its work is the caller's.
unsafe fn run<W: Work>(head: *const Head, at: &Stopped) {
    // SAFETY: the caller's promise; `head` is the slot's first field.
    let work = unsafe { &mut *(*head.cast::<Slot<W>>()).work.get() };
    work.run(at);
}

/// The handler's part. A signal whose slot has gone on to something else is too late, and nothing is done.
pub(super) fn serve(value: u32, at: impl FnOnce() -> Stopped) {
    let Some(place) = SLOTS.get((value & STATE) as usize) else { return };
    // SAFETY: slots live for ever.
    let Some(head) = (unsafe { place.load(SeqCst).as_ref() }) else { return };
    let generation = value & !STATE;
    if head.asked.load(SeqCst) != ThreadId::current().get() {
        return;
    }
    if head.word.compare_exchange(generation | ARMED, generation | RUNNING, SeqCst, SeqCst).is_err() {
        return;
    }
    // SAFETY: the word says that the work is ours; `run` is for this slot's kind.
    unsafe { (head.run)(head, &at()) };
    match head.word.compare_exchange(generation | RUNNING, generation | DONE, SeqCst, SeqCst) {
        Ok(_) => futex::wake(&head.word),
        // Abandoned.
        Err(_) => head.word.store(generation.wrapping_add(GENERATION) | FREE, SeqCst),
    }
}

fn calling_thread() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

unsafe extern "C" {
    // POSIX; the `libc` crate has it for other systems only.
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> libc::c_int;
}

/// Has forks run [`forget_others`]. Where the C library has no room for that, the child has fewer slots.
fn follow_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function may run in the child of a fork: it touches atomics only.
        unsafe { pthread_atfork(None, None, Some(forget_others)) };
    });
}

/// In the child of a fork, which has only the thread that forked: what others had is free.
extern "C" fn forget_others() {
    let own = calling_thread();
    for place in &SLOTS {
        // SAFETY: slots live for ever.
        let Some(head) = (unsafe { place.load(SeqCst).as_ref() }) else { return };
        let word = head.word.load(SeqCst);
        if word & STATE != FREE && head.asker.load(SeqCst) != own {
            head.word.store((word & !STATE).wrapping_add(GENERATION) | FREE, SeqCst);
        }
    }
}

/// Some slots for one kind of work.
pub struct Slots<W: 'static> {
    slots: Vec<&'static Slot<W>>,
}

impl<W: Work> Slots<W> {
    /// Makes up to `count` slots, fewer where the process has too many already. They are never freed.
    pub fn new(count: usize, mut make: impl FnMut() -> W) -> Self {
        follow_forks();
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            let number = USED.fetch_add(1, SeqCst);
            let (Some(place), Ok(short)) = (SLOTS.get(number), u32::try_from(number)) else {
                USED.store(MOST, SeqCst);
                break;
            };
            let head = Head {
                word: AtomicU32::new(FREE),
                number: short,
                asker: AtomicUsize::new(0),
                asked: AtomicU32::new(0),
                run: run::<W>,
            };
            let slot: &'static Slot<W> = Box::leak(Box::new(Slot { head, work: UnsafeCell::new(make()) }));
            place.store((&raw const *slot).cast::<Head>().cast_mut(), SeqCst);
            slots.push(slot);
        }
        Self { slots }
    }

    /// A slot that nobody uses. Neither allocates nor locks.
    pub fn claim(&self) -> Option<Claim<W>> {
        self.slots.iter().find_map(|slot| {
            let word = slot.head.word.load(SeqCst);
            if word & STATE != FREE {
                return None;
            }
            let generation = word & !STATE;
            // A claim frees its slot when it is dropped: it must not be made before the slot is ours.
            let claimed = slot.head.word.compare_exchange(word, generation | CLAIMED, SeqCst, SeqCst);
            claimed.ok().map(|_| {
                slot.head.asker.store(calling_thread(), SeqCst);
                Claim { slot, generation }
            })
        })
    }
}

impl<W> fmt::Debug for Slots<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} slots", self.slots.len())
    }
}

/// A slot in the asker's hands; free again when this is dropped.
pub struct Claim<W: 'static> {
    slot: &'static Slot<W>,
    generation: u32,
}

impl<W: Work> Claim<W> {
    /// The work, to be prepared before and looked at afterwards.
    pub fn work(&mut self) -> &mut W {
        // SAFETY: the word says `CLAIMED`, in this generation: the work is this claim's.
        unsafe { &mut *self.slot.work.get() }
    }

    /// Has a thread do the work: `send` gives it the number of the slot and of its use.
    ///
    /// # Errors
    /// Those of `send`.
    pub(super) fn send_by(
        self,
        thread: ThreadId,
        send: impl FnOnce(u32) -> Result<(), OsError>,
    ) -> Result<Sent<W>, OsError> {
        let head = &self.slot.head;
        let generation = self.generation;
        head.asked.store(thread.get(), SeqCst);
        head.word.store(generation | ARMED, SeqCst);
        match send(generation | head.number) {
            Ok(()) => {
                let slot = self.slot;
                std::mem::forget(self);
                Ok(Sent { slot, generation })
            }
            Err(error) => {
                head.word.store(generation | CLAIMED, SeqCst);
                Err(error)
            }
        }
    }
}

impl<W: 'static> Drop for Claim<W> {
    fn drop(&mut self) {
        self.slot.head.word.store(self.generation.wrapping_add(GENERATION) | FREE, SeqCst);
    }
}

impl<W> fmt::Debug for Claim<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.slot.head.number)
    }
}

/// Work that a thread was asked for. Whoever drops it does not wait any longer.
pub struct Sent<W: 'static> {
    slot: &'static Slot<W>,
    generation: u32,
}

impl<W: Work> Sent<W> {
    /// Waits until the work is done, up to `deadline`. Neither allocates nor locks.
    ///
    /// # Errors
    /// Gives itself back when the time is over: waiting may go on.
    pub fn wait(self, deadline: Instant) -> Result<Claim<W>, Self> {
        let word = &self.slot.head.word;
        loop {
            let now = word.load(SeqCst);
            if now == self.generation | DONE {
                word.store(self.generation | CLAIMED, SeqCst);
                let claim = Claim { slot: self.slot, generation: self.generation };
                std::mem::forget(self);
                return Ok(claim);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self);
            }
            futex::wait(word, now, left.min(Duration::from_secs(60)));
        }
    }
}

impl<W: 'static> Drop for Sent<W> {
    fn drop(&mut self) {
        let word = &self.slot.head.word;
        let (generation, next) = (self.generation, self.generation.wrapping_add(GENERATION) | FREE);
        // Not begun: it never will be. Else the handler frees the slot, or has done with it already.
        if word.compare_exchange(generation | ARMED, next, SeqCst, SeqCst).is_err()
            && word.compare_exchange(generation | RUNNING, generation | ABANDONED, SeqCst, SeqCst).is_err()
        {
            word.store(next, SeqCst);
        }
    }
}

impl<W> fmt::Debug for Sent<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}, sent", self.slot.head.number)
    }
}

#[cfg(test)]
mod tests;
