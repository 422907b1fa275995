//! What Rust said when threads panicked last: a panic that cannot unwind ends with `SIGABRT`.

use crate::extra::IN_PROGRAM;
use crate::fixed_text::{FixedText, cut};
use backtrail_sys::os::ThreadId;
use std::fmt::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};

/// The last panics of one thread.
struct Panics {
    thread: AtomicU32,
    /// When it panicked last, by the count of panics: the thread that did so the longest ago gives its place to another.
    order: AtomicU32,
    last: FixedText<WORDS>,
    before: FixedText<WORDS>,
    /// Whether the last one came from a destructor that the one before had run.
    is_second: AtomicBool,
}

/// Words of eight bytes.
const WORDS: usize = 128;
pub(crate) const LONGEST: usize = WORDS * 8;

/// Threads whose panics are kept: where one panics, others that wait for it do as a rule.
const THREADS: usize = 16;
static ALL: [Panics; THREADS] = [const { Panics::new() }; THREADS];
/// Among those who panic; how many did. A crash only reads.
static WRITING: Mutex<u32> = Mutex::new(0);

impl Panics {
    const fn new() -> Self {
        Self {
            thread: AtomicU32::new(0),
            order: AtomicU32::new(0),
            last: FixedText::new(),
            before: FixedText::new(),
            is_second: AtomicBool::new(false),
        }
    }

    fn is_of(&self, thread: u32) -> bool {
        self.thread.load(SeqCst) == thread
    }
}

/// Keeps what panics say, and has the hook from before go on.
pub(crate) fn install() {
    // On Apple's systems the standard library's lock allocates when it is taken for the first time.
    drop(WRITING.lock());
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // One within a report is none that the report is about.
        if !IN_PROGRAM.load(SeqCst) {
            keep(info);
        }
        before(info);
    }));
}

fn keep(info: &PanicHookInfo<'_>) {
    let mut text = Room { bytes: [0; LONGEST], used: 0 };
    let thread = std::thread::current();
    // Where there is no more room the rest is cut off.
    let _ = write!(text, "thread '{}' {info}", thread.name().unwrap_or("<unnamed>"));
    // A thread that panics in a signal handler may have been interrupted here.
    let tries = std::iter::repeat_with(|| {
        std::thread::yield_now();
        WRITING.try_lock().ok()
    });
    if let Some(mut count) = tries.take(TRIES).flatten().next() {
        *count = count.wrapping_add(1);
        put(ThreadId::current().get(), *count, says_no_unwind(info), text.bytes());
    }
}

const TRIES: usize = 1000;

fn put(thread: u32, order: u32, no_unwind: Option<NoUnwind>, text: &[u8]) {
    let known = ALL.iter().find(|panics| panics.is_of(thread));
    if let (Some(panics), Some(no_unwind)) = (known, no_unwind) {
        // It would hide why the thread panicked first.
        panics.is_second.store(no_unwind == NoUnwind::InCleanup, SeqCst);
        return;
    }
    let oldest = || ALL.iter().min_by_key(|panics| panics.order.load(SeqCst));
    let Some(panics) = known.or_else(oldest) else { return };
    let mut room = [0; LONGEST];
    let before = if known.is_some() { panics.last.get(&mut room) } else { None };
    panics.before.set(before.unwrap_or_default());
    panics.is_second.store(false, SeqCst);
    // Whose it is comes last: a crash meanwhile must not find another thread's words.
    if known.is_none() {
        panics.thread.store(0, SeqCst);
    }
    panics.last.set(text);
    panics.order.store(order, SeqCst);
    panics.thread.store(thread, SeqCst);
}

/// What Rust itself panics with where a panic must not go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoUnwind {
    InFunction,
    InCleanup,
}

/// `core::panicking::panic_cannot_unwind` and `panic_in_cleanup`, by place and words: what tells them apart (`can_unwind`) is not stable.
fn says_no_unwind(info: &PanicHookInfo<'_>) -> Option<NoUnwind> {
    let is_cores = info.location()?.file().ends_with("core/src/panicking.rs");
    match *info.payload().downcast_ref::<&str>().filter(|_| is_cores)? {
        "panic in a function that cannot unwind" => Some(NoUnwind::InFunction),
        "panic in a destructor during cleanup" => Some(NoUnwind::InCleanup),
        _ => None,
    }
}

/// What the thread's last panic said. Safe in a signal handler.
pub(crate) fn said_by(thread: ThreadId, into: &mut [u8]) -> Option<&[u8]> {
    ALL.iter().find(|panics| panics.is_of(thread.get()))?.last.get(into)
}

/// What the panic said whose destructors the last one came from. Safe in a signal handler.
pub(crate) fn said_before_by(thread: ThreadId, into: &mut [u8]) -> Option<&[u8]> {
    let panics = ALL.iter().find(|panics| panics.is_of(thread.get()))?;
    panics.before.get(into).filter(|text| panics.is_second.load(SeqCst) && !text.is_empty())
}

struct Room {
    bytes: [u8; LONGEST],
    used: usize,
}

impl Room {
    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

impl fmt::Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.used..).unwrap_or_default();
        let fits = cut(text, room.len());
        room.iter_mut().zip(fits.as_bytes()).for_each(|(to, from)| *to = *from);
        self.used += fits.len();
        if fits.len() == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(thread: u32) -> Option<String> {
        let mut room = [0; LONGEST];
        said_by(ThreadId::new(thread), &mut room).map(|text| String::from_utf8(text.to_vec()).unwrap())
    }

    #[test]
    fn each_thread_keeps_its_own_words_until_many_others_have_panicked() {
        let mut count = 0;
        let mut panicked = |thread, no_unwind, text: &str| {
            count += 1;
            put(thread, count, no_unwind, text.as_bytes());
        };
        let before = |thread| {
            let mut room = [0; LONGEST];
            said_before_by(ThreadId::new(thread), &mut room).map(<[u8]>::to_vec)
        };
        panicked(1, None, "first");
        panicked(2, None, "of another");
        assert_eq!(said(1).as_deref(), Some("first"));
        panicked(1, None, "second");
        assert_eq!((said(1).as_deref(), before(1)), (Some("second"), None));
        panicked(1, Some(NoUnwind::InCleanup), "panic in a destructor during cleanup");
        assert_eq!((said(1).as_deref(), before(1)), (Some("second"), Some(b"first".to_vec())));
        panicked(1, None, "third");
        panicked(1, Some(NoUnwind::InFunction), "panic in a function that cannot unwind");
        assert_eq!((said(1).as_deref(), before(1)), (Some("third"), None));
        // Where it is all that there is, it is kept.
        panicked(3, Some(NoUnwind::InFunction), "panic in a function that cannot unwind");
        assert_eq!(said(3).as_deref(), Some("panic in a function that cannot unwind"));
        for thread in 10..10 + 14 {
            panicked(thread, None, "too");
        }
        assert_eq!((said(2), said(1).as_deref()), (None, Some("third")));
        assert_eq!(before(10), None, "words of the thread that had the place");
    }
}
