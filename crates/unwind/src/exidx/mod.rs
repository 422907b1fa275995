//! ARM's exception index tables: `.ARM.exidx` and the entries of `.ARM.extab`.
//!
//! "Exception Handling ABI for the Arm Architecture" (EHABI, IHI 0038), sections 6 (the index), 7 (the entries of the
//! table) and 10.3 (the instructions). 32-bit ARM alone has them.
//!
//! # What they say
//! The index has two words for each function, ascending: where it starts, and what undoes its frame. The second is
//! `EXIDX_CANTUNWIND`, or up to three instruction bytes in line, or the place of an entry in `.ARM.extab`. An entry
//! begins with a word that says by which model it is written: one of the three compact models that the ABI defines, or
//! the address of a personality routine, whose data begins with instructions too (that is no promise of the ABI, but
//! what the C++, Objective-C and Rust routines of GCC and LLVM do).
//!
//! # What they do not say
//! The instructions hold for places where the function may call another, not for its prologue and epilogue; there the
//! code is read instead. A function reaches to where the next one starts: what has no entry of its own (PLT stubs,
//! assembly without `.fnstart`) falls to the entry before it, unless the linker put a `CANTUNWIND` between.
//!
//! All numbers are little-endian: no supported system runs 32-bit ARM big-endian.

mod entry;
mod execute;
mod op;
mod row;

pub use entry::{Content, Entry, Model};
pub use execute::{Executed, Stopped, execute};
pub use op::{Code, Op, RegisterSet, VfpForm};
pub use row::row;

use crate::read;
use crate::row::{CoveredRow, Malformed, Miss};
use crate::sections::{Section, Sections};
use backtrail_core::{AddrRange, Family, Svma, Trust};

/// Bytes of one entry of the index: two words.
const ENTRY_SIZE: usize = 8;

/// `.ARM.exidx` and `.ARM.extab` of one file.
#[derive(Clone, Copy, Debug)]
pub struct Exidx<'d> {
    index: Section<'d>,
    table: Section<'d>,
    /// Where the last function ends.
    end: Svma,
}

impl<'d> Exidx<'d> {
    /// The file's tables; `None` where it has none.
    pub fn new(sections: &Sections<'d>) -> Option<Self> {
        let is_arm = sections.arch.is_some_and(|arch| arch.family() == Family::Arm);
        let index = sections.exidx.filter(|index| is_arm && index.data.len() >= ENTRY_SIZE)?;
        // Without `.ARM.extab` (its section headers are stripped) entries may still lie around the index.
        let table = sections.extab.unwrap_or(index);
        let last = sections.text.iter().map(|text| text.range().end()).max();
        Some(Self { index, table, end: last.unwrap_or(Svma::new(u64::from(u32::MAX) + 1)) })
    }

    /// How many entries the index has.
    pub fn len(&self) -> usize {
        self.index.data.len() / ENTRY_SIZE
    }

    /// Whether the index has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rules at `at` (without the Thumb bit), as far as a row can say them. What it cannot say, [`execute()`] does.
    ///
    /// # Errors
    /// [`Miss::CannotUnwind`] where the table says so or refuses to unwind; [`Miss::Malformed`] for broken entries and
    /// [`Miss::NoRow`] for the rare instructions that no row expresses.
    pub fn find(&self, at: Svma) -> Result<CoveredRow, Miss> {
        let entry = self.entry_at(at).ok_or(Miss::NotCovered)?;
        match entry.content()? {
            Content::CannotUnwind => Err(Miss::CannotUnwind),
            Content::Unwind { code, .. } => {
                let row = row(code).map_err(|stopped| match stopped {
                    Stopped::Refused => Miss::CannotUnwind,
                    Stopped::Spare(_) | Stopped::Truncated | Stopped::OutOfRange => {
                        Malformed { at: entry.place(), expected: "unwind instructions of EHABI32" }.into()
                    }
                    _ => Miss::NoRow,
                })?;
                Ok(CoveredRow { row, trust: Trust::Exidx, covered: entry.range })
            }
        }
    }

    /// The addresses where the rows may change, for compiling: the start of every entry, ascending.
    pub fn starts(&self) -> impl Iterator<Item = Svma> + '_ {
        self.entries().map(|entry| entry.range.start())
    }

    /// The entry of the function that `at` (without its Thumb bit) lies in: the last one that starts at or before it.
    /// `None` before the first function and behind the end of the code.
    ///
    /// The index is searched by halves, as the ABI says that it is sorted. Where it is not, some functions are not
    /// found, and none is found that does not contain the address.
    pub fn entry_at(&self, at: Svma) -> Option<Entry<'d>> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.start(middle)? <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        self.entry(low.checked_sub(1)?).filter(|entry| entry.range.contains(at))
    }

    /// Every entry, in the order of the index.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'d>> + use<'d> {
        let all = *self;
        (0..all.len()).filter_map(move |position| all.entry(position))
    }

    fn entry(&self, position: usize) -> Option<Entry<'d>> {
        let start = self.start(position)?;
        let end = self.start(position + 1).unwrap_or(self.end);
        let place = self.index.start.checked_add((position * ENTRY_SIZE + 4) as u64)?;
        let word = read::word(self.index, place)?;
        Some(Entry::new(AddrRange::new(start, end), place, word, self.table))
    }

    fn start(&self, position: usize) -> Option<Svma> {
        let place = self.index.start.checked_add((position as u64).checked_mul(ENTRY_SIZE as u64)?)?;
        let start = prel31(place, read::word(self.index, place)?);
        // The relocation of the word may add the Thumb bit (AAELF32, R_ARM_PREL31).
        Some(Svma::new(start.get() & !1))
    }
}

/// The address that a word at `place` means: its lower 31 bits are the signed distance to it.
fn prel31(place: Svma, word: u32) -> Svma {
    let distance = (word << 1).cast_signed() >> 1;
    let target = place.get().wrapping_add(i64::from(distance).cast_unsigned());
    Svma::new(target & u64::from(u32::MAX))
}

#[cfg(test)]
mod tests;
