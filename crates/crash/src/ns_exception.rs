//! The exception of Objective-C that ends the program, as Foundation's handler tells it.

use crate::fixed_text::FixedText;
use crate::sections::Section;
use backtrail_stacks::own::ThreadId;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Whose it is; zero for nobody's.
static THREAD: AtomicU32 = AtomicU32::new(0);
static NAME: FixedText<32> = FixedText::new();
static REASON: FixedText<128> = FixedText::new();
static COUNT: AtomicUsize = AtomicUsize::new(0);
static THROWN_AT: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// Keeps it, where nobody has yet: the first one's thread is what ends the program.
pub(crate) fn keep(name: &[u8], reason: &[u8], thrown_at: &[u64]) {
    if THREAD.compare_exchange(0, ThreadId::current().get(), SeqCst, SeqCst).is_err() {
        return;
    }
    NAME.set(name);
    REASON.set(reason);
    for (place, address) in THROWN_AT.iter().zip(thrown_at) {
        place.store(*address, SeqCst);
    }
    COUNT.store(thrown_at.len().min(THROWN_AT.len()), SeqCst);
}

/// Puts what this thread's exception was into a section; `false` where it had none. Safe in a signal handler.
pub(crate) fn put(thread: ThreadId, section: &mut Section) -> bool {
    let mut room = [0; 1024];
    if THREAD.load(SeqCst) != thread.get() {
        return false;
    }
    section.begin();
    for text in [NAME.get(&mut [0; 256]), REASON.get(&mut room)] {
        let text = text.unwrap_or_default();
        section.u16(u16::try_from(text.len()).unwrap_or(0)).put(text);
    }
    let count = COUNT.load(SeqCst);
    section.u16(u16::try_from(count).unwrap_or(0));
    for address in THROWN_AT.iter().take(count) {
        section.u64(address.load(SeqCst));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sections::header;
    use backtrail_capture::Limits;
    use backtrail_capture::crash_file::{format::Kind, read};

    #[test]
    fn what_was_kept_is_read_back() {
        let mut section = Section::new();
        let own = ThreadId::current();
        assert!(!put(own, &mut section));
        keep(b"NSRangeException", b"index 2 beyond bounds", &[0x1_0000_4000, 0x1_8000_0000]);
        keep(b"Later", b"of the same thread", &[]);
        assert!(!put(ThreadId::new(own.get() + 1), &mut section));
        assert!(put(own, &mut section));
        let mut file = header().to_vec();
        file.extend(section.finish(Kind::NsException));
        let read = read(&file, &Limits::default()).unwrap().ns_exception.unwrap();
        assert_eq!((&*read.name, &*read.reason), ("NSRangeException", "index 2 beyond bounds"));
        let addresses: Vec<_> = read.thrown_at.iter().map(|address| address.get()).collect();
        assert_eq!(addresses, [0x1_0000_4000, 0x1_8000_0000]);
    }
}
