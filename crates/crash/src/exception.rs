//! The C++ exception that ends the program, as a terminate handler tells it.

use crate::fixed_text::FixedText;
use backtrail_core::{Avma, ReadMemory as _};
use backtrail_stacks::own::OwnMemory;
use backtrail_sys::os::ThreadId;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Whose it is; zero for nobody's.
static THREAD: AtomicU32 = AtomicU32::new(0);
static TYPE: FixedText<128> = FixedText::new();
static WHAT: FixedText<128> = FixedText::new();
/// Bytes that either text has at most.
pub(crate) const LONGEST: usize = 1024;

/// Tells which C++ exception is about to end the program: to be called in a terminate handler, on the thread that it was called
/// on. `type_name` is what `std::type_info::name` gives, `what` what the exception says, empty where it says nothing. The crash file
/// has both if that thread aborts next. Where several threads end at once, the first one's is kept.
///
/// # Signal safety
///
/// Safe.
pub fn exception(type_name: &[u8], what: &[u8]) {
    let own = ThreadId::current().get();
    if THREAD.compare_exchange(0, own, SeqCst, SeqCst).is_ok() || THREAD.load(SeqCst) == own {
        TYPE.set(type_name);
        WHAT.set(what);
    }
}

/// The same of words that lie in memory, up to a zero: what `std::exception::what` gives, which is the program's code and may be no pointer
/// to text at all. What cannot be read is left out.
///
/// # Signal safety
///
/// Safe.
pub fn exception_at(type_name: &[u8], what: *const u8) {
    let mut room = [0; LONGEST];
    exception(type_name, text_at(what.addr() as u64, &mut room));
}

/// Text up to a zero, or as far as it can be read, or there is room.
fn text_at(address: u64, into: &mut [u8; LONGEST]) -> &[u8] {
    let memory = OwnMemory::without_stack();
    let mut used = 0;
    while address != 0 && used < into.len() {
        let at = address.saturating_add(used as u64);
        let to_page = usize::try_from(PAGE - at % PAGE).unwrap_or(1);
        let Some(piece) = into.get_mut(used..).and_then(|rest| {
            let size = rest.len().min(to_page);
            rest.get_mut(..size)
        }) else {
            break;
        };
        if memory.read(Avma::new(at), piece).is_err() {
            break;
        }
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            used += end;
            break;
        }
        used += piece.len();
    }
    into.get(..used).unwrap_or_default()
}

/// What is read at once is readable or not as a whole.
const PAGE: u64 = 4096;

/// What the thread told: type and words. Safe in a signal handler.
pub(crate) fn of<'b>(
    thread: ThreadId,
    name: &'b mut [u8],
    what: &'b mut [u8],
) -> Option<(&'b [u8], &'b [u8])> {
    let name = TYPE.get(name).filter(|_| THREAD.load(SeqCst) == thread.get())?;
    Some((name, WHAT.get(what).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_far_as_they_are_there() {
        let read = |address: u64| {
            let mut room = [0; LONGEST];
            text_at(address, &mut room).to_vec()
        };
        assert_eq!(read(0), b"");
        assert_eq!(read(8), b"", "no page is there");
        assert_eq!(read(u64::MAX - 2), b"");
        assert_eq!(read(c"no order 17".as_ptr().addr() as u64), b"no order 17");
        let long = vec![b'x'; 2 * LONGEST];
        assert_eq!(read(long.as_ptr().addr() as u64), &long[..LONGEST]);
    }
}
