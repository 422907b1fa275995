//! What an entry of the index leads to. EHABI sections 6 and 7.

use super::op::Code;
use super::prel31;
use crate::read;
use crate::row::Malformed;
use crate::sections::Section;
use backtrail_core::{AddrRange, Svma};

const CANTUNWIND: u32 = 1;
const IS_COMPACT: u32 = 1 << 31;

/// One function of the index.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'d> {
    /// From the function's start to the next one's.
    pub range: AddrRange<Svma>,
    /// Where the second word lies.
    place: Svma,
    word: u32,
    table: Section<'d>,
}

/// What undoes a function's frame.
#[derive(Clone, Copy, Debug)]
pub enum Content<'d> {
    /// Nothing goes up from here: an outermost function, or a place between functions.
    CannotUnwind,
    /// Instructions.
    Unwind {
        /// Who wrote them.
        model: Model,
        /// The instructions.
        code: Code<'d>,
        /// Where the descriptors or the language's data begin; `None` for entries in line, which have neither.
        data: Option<Svma>,
    },
}

/// The form of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Model {
    /// In the index itself: the first compact model.
    Inline,
    /// A compact model in `.ARM.extab`: `__aeabi_unwind_cpp_pr0`, `1` or `2`.
    Compact(u8),
    /// A personality routine of a language, at this address (without its Thumb bit).
    Generic(Svma),
}

impl<'d> Entry<'d> {
    pub(super) fn new(range: AddrRange<Svma>, place: Svma, word: u32, table: Section<'d>) -> Self {
        Self { range, place, word, table }
    }

    pub(super) fn place(&self) -> Svma {
        self.place
    }

    /// Reads on in `.ARM.extab`, where the entry is there.
    ///
    /// # Errors
    /// Where it points outside of the table, is of an unknown model, or says that it is longer than the table.
    pub fn content(&self) -> Result<Content<'d>, Malformed> {
        if self.word == CANTUNWIND {
            return Ok(Content::CannotUnwind);
        }
        let Some(at) = self.table_place() else {
            return compact(self.place, self.word, None);
        };
        let word = word_at(self.table, at, "an entry of .ARM.extab")?;
        if word & IS_COMPACT != 0 {
            return compact(at, word, Some(self.table));
        }
        let second = after(at, 4)?;
        let first = word_at(self.table, second, "a word of instructions after the personality routine")?;
        let (words, data) = more_words(second, first >> 24, self.table)?;
        let routine = Svma::new(prel31(at, word).get() & !1);
        Ok(Content::Unwind {
            model: Model::Generic(routine),
            code: Code::new(first, 3, words),
            data: Some(data),
        })
    }

    /// Where in `.ARM.extab` the entry goes on; `None` for those that are whole in the index.
    pub fn table_place(&self) -> Option<Svma> {
        (self.word != CANTUNWIND && self.word & IS_COMPACT == 0).then(|| prel31(self.place, self.word))
    }
}

/// An entry of a compact model; `table` is where it lies, `None` for the index.
fn compact(at: Svma, word: u32, table: Option<Section<'_>>) -> Result<Content<'_>, Malformed> {
    let [kind, more, ..] = word.to_be_bytes();
    let (index, more) = (kind & 0x7f, u32::from(more));
    let model = if table.is_some() { Model::Compact(index) } else { Model::Inline };
    match (index, table) {
        (0, None) => Ok(Content::Unwind { model, code: Code::new(word, 3, &[]), data: None }),
        (0, Some(_)) => {
            Ok(Content::Unwind { model, code: Code::new(word, 3, &[]), data: Some(after(at, 4)?) })
        }
        // The ABI wants model 0 alone in the index; LLVM's readers take the others where they need no further word.
        (1 | 2, None) if more == 0 => {
            Ok(Content::Unwind { model, code: Code::new(word, 2, &[]), data: None })
        }
        (1 | 2, Some(table)) => {
            let (words, data) = more_words(at, more, table)?;
            Ok(Content::Unwind { model, code: Code::new(word, 2, words), data: Some(data) })
        }
        _ => Err(Malformed { at, expected: "compact model 0, 1 or 2, and only 0 in the index" }),
    }
}

/// The `count` words behind the one at `at`, and what comes after them.
fn more_words(at: Svma, count: u32, table: Section<'_>) -> Result<(&[u8], Svma), Malformed> {
    let start = after(at, 4)?;
    let size = 4 * usize::try_from(count & 0xff).unwrap_or(0);
    let words = match size {
        0 => Some(&[][..]),
        _ => table.from(start).and_then(|bytes| bytes.get(..size)),
    };
    let words =
        words.ok_or(Malformed { at, expected: "no more words of instructions than the table has" })?;
    Ok((words, after(start, size as u64)?))
}

fn word_at(table: Section<'_>, at: Svma, expected: &'static str) -> Result<u32, Malformed> {
    read::word(table, at).ok_or(Malformed { at, expected })
}

fn after(at: Svma, bytes: u64) -> Result<Svma, Malformed> {
    at.checked_add(bytes).ok_or(Malformed { at, expected: "an entry inside the address space" })
}
