//! What Rust said when it panicked last, and on which thread: a panic that cannot unwind ends with `SIGABRT`.

use crate::fixed_text::FixedText;
use backtrail_sys::os::ThreadId;
use std::fmt::{self, Write as _};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

static THREAD: AtomicU32 = AtomicU32::new(0);
static TEXT: FixedText<128> = FixedText::new();

/// Keeps what panics say, and has the hook from before go on.
pub(crate) fn install() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        keep(info);
        before(info);
    }));
}

fn keep(info: &PanicHookInfo<'_>) {
    let mut text = Room { bytes: [0; 1024], used: 0 };
    let thread = std::thread::current();
    // Where there is no more room the rest is cut off.
    let _ = write!(text, "thread '{}' {info}", thread.name().unwrap_or("<unnamed>"));
    // What Rust itself says of a panic that must not unwind would hide why it panicked first.
    let is_second = THREAD.load(SeqCst) == ThreadId::current().get()
        && text.bytes().windows(NO_UNWIND.len()).any(|words| words == NO_UNWIND);
    if !is_second && TEXT.set(text.bytes()) {
        THREAD.store(ThreadId::current().get(), SeqCst);
    }
}

/// `core::panicking::panic_cannot_unwind` and `panic_in_cleanup` say "panic in a function that cannot unwind", "panic in a destructor
/// during cleanup".
const NO_UNWIND: &[u8] = b"panic in a ";

/// What the thread's last panic said. Safe in a signal handler.
pub(crate) fn said_by(thread: ThreadId, into: &mut [u8]) -> Option<&[u8]> {
    TEXT.get(into).filter(|_| THREAD.load(SeqCst) == thread.get())
}

struct Room {
    bytes: [u8; 1024],
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
        let size = room.len().min(text.len());
        room.iter_mut().zip(text.as_bytes()).for_each(|(to, from)| *to = *from);
        self.used += size;
        if size == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}
