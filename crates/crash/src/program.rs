//! What the program tells of itself: notes and breadcrumbs.

use crate::fixed_text::{FixedText, cut};
use backtrail_sys::os::monotonic_time;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// Keys of up to 64 bytes, values of up to 512.
struct Note {
    key: FixedText<{ LONGEST_KEY / 8 }>,
    value: FixedText<{ LONGEST / 8 }>,
}

struct Breadcrumb {
    /// Which one it is, from 1 on; zero for none.
    number: AtomicU64,
    /// Milliseconds of the monotonic clock.
    time: AtomicU64,
    text: FixedText<{ LONGEST_LINE / 8 }>,
}

const NOTES: usize = 64;
const BREADCRUMBS: usize = 128;
/// Bytes that the longest of them has.
pub(crate) const LONGEST: usize = 512;
const LONGEST_KEY: usize = 64;
const LONGEST_LINE: usize = 192;

static ALL_NOTES: [Note; NOTES] = [const { Note { key: FixedText::new(), value: FixedText::new() } }; NOTES];
static RING: [Breadcrumb; BREADCRUMBS] =
    [const { Breadcrumb { number: AtomicU64::new(0), time: AtomicU64::new(0), text: FixedText::new() } };
        BREADCRUMBS];
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// Among those who write; a crash only reads.
static WRITING: Mutex<()> = Mutex::new(());

/// Keeps `value` under `key` for the crash file; replaces what was kept under it. Says whether there was room: 64 notes, of 64 and 512
/// bytes at most, of which the rest is cut off.
///
/// # Signal safety
///
/// Not safe: it locks.
pub fn note(key: &str, value: &str) -> bool {
    let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    let (key, value) = (cut(key, LONGEST_KEY).as_bytes(), cut(value, LONGEST).as_bytes());
    let mut room = [0; LONGEST];
    for note in &ALL_NOTES {
        match note.key.get(&mut room) {
            Some(known) if known == key => return note.value.set(value),
            Some(_) => {}
            // The value first: a crash meanwhile must not find a key with another's.
            None => return note.value.set(value) && note.key.set(key),
        }
    }
    false
}

/// Adds a line to the last 128 that a crash file has. It is cut to 192 bytes.
///
/// # Signal safety
///
/// Safe.
pub fn breadcrumb(text: &str) {
    let number = NEXT.fetch_add(1, SeqCst);
    let Some(place) = RING.get(number % BREADCRUMBS) else { return };
    place.number.store(0, SeqCst);
    place.time.store(now(), SeqCst);
    if place.text.set(cut(text, LONGEST_LINE).as_bytes()) {
        place.number.store(number as u64 + 1, SeqCst);
    }
}

/// Milliseconds of the monotonic clock. Safe in a signal handler.
pub(crate) fn now() -> u64 {
    monotonic_time().map_or(0, |time| u64::try_from(time.as_millis()).unwrap_or(0))
}

/// Every note. Safe in a signal handler.
pub(crate) fn each_note(mut each: impl FnMut(&[u8], &[u8])) {
    let (mut key, mut value) = ([0; LONGEST], [0; LONGEST]);
    for note in &ALL_NOTES {
        if let (Some(key), Some(value)) = (note.key.get(&mut key), note.value.get(&mut value)) {
            each(key, value);
        }
    }
}

/// Every breadcrumb, oldest first, with its time. Safe in a signal handler.
pub(crate) fn each_breadcrumb(mut each: impl FnMut(u64, &[u8])) {
    let next = NEXT.load(SeqCst);
    let mut room = [0; LONGEST];
    for number in next.saturating_sub(BREADCRUMBS)..next {
        let Some(place) = RING.get(number % BREADCRUMBS) else { continue };
        let is_it = || place.number.load(SeqCst) == number as u64 + 1;
        let time = place.time.load(SeqCst);
        if is_it()
            && let Some(text) = place.text.get(&mut room)
            && is_it()
        {
            each(time, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_in_their_order() {
        for number in 0..300 {
            breadcrumb(&format!("line {number}"));
        }
        let mut all = Vec::new();
        each_breadcrumb(|_, text| all.push(String::from_utf8_lossy(text).into_owned()));
        let expected: Vec<_> = (300 - BREADCRUMBS..300).map(|number| format!("line {number}")).collect();
        assert_eq!(all, expected);
        assert!(note("colour", "red") && note("size", "1") && note("colour", "blue"));
        breadcrumb(&"é".repeat(200));
        breadcrumb(&format!("a{}", "é".repeat(200)));
        let mut sizes = Vec::new();
        each_breadcrumb(|_, text| sizes.push(std::str::from_utf8(text).unwrap().len()));
        assert_eq!(sizes[BREADCRUMBS - 2..], [192, 191], "no half letters");
        let mut all = Vec::new();
        each_note(|key, value| all.push((key.to_vec(), value.to_vec())));
        assert_eq!(all, [(b"colour".to_vec(), b"blue".to_vec()), (b"size".to_vec(), b"1".to_vec())]);
    }
}
