//! Texts of a bounded size that a crash can read at any moment.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// As much of a text as fits into so many bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    (0..=bytes.min(text.len())).rev().find_map(|end| text.get(..end)).unwrap_or_default()
}

/// A text of up to `WORDS` times eight bytes. Written and read without a lock: a reader that meets a writer gets nothing.
pub(crate) struct FixedText<const WORDS: usize> {
    /// Odd while it is written.
    version: AtomicU32,
    size: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl<const WORDS: usize> FixedText<WORDS> {
    pub(crate) const fn new() -> Self {
        Self {
            version: AtomicU32::new(0),
            size: AtomicU32::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
        }
    }

    /// Replaces the text by as much of this one as there is room for; says whether nobody else did so at the same time. Safe in a
    /// signal handler.
    pub(crate) fn set(&self, text: &[u8]) -> bool {
        let version = self.version.load(SeqCst);
        let odd = version.wrapping_add(1);
        if version % 2 == 1 || self.version.compare_exchange(version, odd, SeqCst, SeqCst).is_err() {
            return false;
        }
        let text = text.get(..WORDS * 8).unwrap_or(text);
        for (place, bytes) in self.words.iter().zip(text.chunks(8)) {
            let mut word = [0; 8];
            word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            place.store(u64::from_le_bytes(word), SeqCst);
        }
        self.size.store(u32::try_from(text.len()).unwrap_or(0), SeqCst);
        self.version.store(odd.wrapping_add(1), SeqCst);
        true
    }

    /// The text, as far as there is room for it; `None` where there is none, or it is being written. Safe in a signal handler.
    pub(crate) fn get<'b>(&self, into: &'b mut [u8]) -> Option<&'b [u8]> {
        let version = self.version.load(SeqCst);
        if version % 2 == 1 || version == 0 {
            return None;
        }
        let size = (self.size.load(SeqCst) as usize).min(into.len());
        for (place, bytes) in self.words.iter().zip(into.get_mut(..size)?.chunks_mut(8)) {
            let word = place.load(SeqCst).to_le_bytes();
            bytes.iter_mut().zip(word).for_each(|(to, from)| *to = from);
        }
        (self.version.load(SeqCst) == version).then_some(into.get(..size)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn letters_are_kept_as_a_whole() {
        for (text, bytes, expected) in
            [("abc", 9, "abc"), ("abc", 2, "ab"), ("aé", 2, "a"), ("é", 1, ""), ("aé", 3, "aé"), ("", 0, "")]
        {
            assert_eq!(cut(text, bytes), expected);
        }
    }

    #[test]
    fn what_is_read_is_one_of_the_texts_that_were_written() {
        let text = FixedText::<4>::new();
        assert_eq!(text.get(&mut [0; 32]), None);
        assert!(text.set(b"a text that is longer than 32 bytes"));
        assert_eq!(text.get(&mut [0; 64]), Some(&b"a text that is longer than 32 by"[..]));
        assert!(text.set(b"b"));
        assert_eq!(text.get(&mut [0; 64]), Some(&b"b"[..]));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..20_000_u32 {
                    let digit = b'0' + (number % 10) as u8;
                    text.set(&vec![digit; 1 + number as usize % 31]);
                }
                stop.store(true, SeqCst);
            });
            while !stop.load(SeqCst) {
                if let Some(read) = text.get(&mut [0; 32]) {
                    assert!(read.iter().all(|byte| *byte == read[0]), "{read:?}");
                }
            }
        });
    }
}
