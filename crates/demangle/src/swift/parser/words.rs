//! The words of identifiers, which later identifiers may repeat.

use alloc::vec::Vec;

/// How many words can be referred to.
const MAX_WORDS: usize = 26;

/// Where the words of a name are. They are looked for when one is referred to: most names refer to few.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Where the texts of identifiers are: start and length.
    texts: Vec<(usize, usize)>,
    /// How many of the texts have been searched.
    searched: usize,
    words: Vec<(usize, usize)>,
}

impl Words {
    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.words.clear();
        self.searched = 0;
    }

    /// Takes note of an identifier's text.
    pub(super) fn add(&mut self, start: usize, len: usize) {
        self.texts.push((start, len));
    }

    /// Where the word of this number is: start and length.
    pub(super) fn get(&mut self, index: usize, name: &str) -> Option<(usize, usize)> {
        while self.words.len() <= index {
            let &(start, len) = self.texts.get(self.searched)?;
            self.searched += 1;
            self.search(start, name.as_bytes().get(start..start + len)?);
        }
        self.words.get(..MAX_WORDS.min(self.words.len()))?.get(index).copied()
    }

    /// Words begin at a letter after `_` or a digit, and at a capital after anything else than a capital; those of one
    /// byte do not count.
    fn search(&mut self, offset: usize, text: &[u8]) {
        let mut at = 0;
        while let Some(&first) = text.get(at) {
            if first == b'_' || first.is_ascii_digit() {
                at += 1;
                continue;
            }
            let start = at;
            let mut is_capital = first.is_ascii_uppercase();
            at += 1;
            while let Some(&byte) = text.get(at) {
                let was_capital = is_capital;
                is_capital = byte.is_ascii_uppercase();
                if byte == b'_' || (is_capital && !was_capital) {
                    break;
                }
                at += 1;
            }
            if at - start >= 2 {
                self.words.push((offset + start, at - start));
            }
        }
    }
}
