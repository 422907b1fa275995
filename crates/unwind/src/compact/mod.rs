//! Apple's compact unwind information: `__TEXT,__unwind_info`.
//!
//! There is no specification but Apple's and LLVM's own code: `mach-o/compact_unwind_encoding.h` (the layout, in
//! comments), libunwind's `CompactUnwinder.hpp` (what encodings mean), ld64's and lld's writers. All numbers are
//! little-endian, and addresses count from the image base (`__TEXT`'s start).
//!
//! # Layout
//! A header of seven words: version 1; offset and count of the common encodings, of the personalities, of the
//! first-level index. An entry of the index has three words: the first function, the offset of a page, the offset of
//! its LSDA entries (function, LSDA: two words each, up to where those of the next entry begin). The last entry has no
//! page: it says where the last function ends. A *regular* page (kind 2) has entries of two words, function and
//! encoding. A *compressed* page (kind 3) has entries of one word: 24 bits of distance from the page's first function,
//! 8 bits of index into the common encodings and, from there on, the page's own.
//!
//! # What misleads
//! - **Bodies only.** A row holds after the prologue and before the epilogue. At an exact address (a first frame, or
//!   one that a signal interrupted) the code has to be read before.
//! - **Entries are merged.** Linkers give consecutive functions of one encoding a single entry (unless it has an LSDA
//!   or needs the function's start), so that an entry's start is no function's start: in NativeScript 8.1 for arm64 39,000
//!   functions share 4,000 entries. Whoever reads a prologue must find its beginning another way.
//! - **Gaps are covered.** An entry reaches to the next one, also over functions that had no unwind information at all
//!   (assembly), which then have the rule of the function before them. ld64 writes encoding 0 for such functions; lld
//!   leaves them out. Encoding 0 says nothing and is no rule for a leaf function.
//! - **Stubs have no entries.** `__stubs`, `__objc_stubs` and `__auth_stubs` jump on without touching the stack.
//!   `__stub_helper` pushes two registers (16 bytes) before it jumps to `dyld_stub_binder`. The sections lie behind
//!   `__text`, behind the end that the last index entry states.
//! - **`objc_msgSend`** and the other messengers are leaf functions until the method cache misses: libobjc states
//!   `NoFrame` for them (`objc-msg-arm64.s`, `UNWIND`), that is "frameless, no stack" (arm64 0x02000000), and then
//!   `__objc_msgSend_uncached` takes over with a frame (0x04000000). Both are right in their bodies. On `x86_64` the
//!   uncached path is entered by a jump *after* the messenger's entry, and pushes `rbp` itself: its first two
//!   instructions are a prologue.
//! - **`_sigtramp`** of arm64 has neither FDE nor encoding that leads over a signal; debuggers know it by name
//!   (llvm/llvm-project#91321 and #92093). Its caller is exact.
//! - **Hand-written assembly** with CFI that no encoding can express gets one that is wrong, where `.cfi` directives
//!   were not enough to force DWARF mode (dotnet/coreclr#452).
//! - **Frameless arm64 with saved registers**: the first one lies right below the CFA, as the code of such functions
//!   shows (pyarrow 18.1's libarrow has a hundred of them). libunwind reads it from the CFA itself, one word too high,
//!   and takes the lowered address for the stack pointer; the rows here do as the code does.
//!
//! A caller cannot be frameless on arm64 (its return address would be lost with the call); the row says "link register"
//! and the walker, who knows which frame it is, judges.

mod encoding;
mod page;
mod row;

pub use encoding::{Encoding, Mode};

use crate::read;
use crate::row::{CoveredRow, Malformed, Miss};
use crate::sections::{Section, Sections};
use alloc::vec::Vec;
use backtrail_core::{AddrRange, Family, Svma, Trust};
use page::Page;

/// `__unwind_info` of one file.
#[derive(Clone, Debug)]
pub struct Compact<'d> {
    info: Section<'d>,
    image_base: Svma,
    family: Family,
    common: Array,
    personalities: Array,
    index: Array,
    /// For sizes that only an instruction states.
    text: Vec<Section<'d>>,
}

/// Words in the section: the offset of the first and how many items there are.
#[derive(Clone, Copy, Debug)]
struct Array {
    start: u32,
    count: u32,
}

/// One entry of the first-level index.
#[derive(Clone, Copy, Debug)]
struct IndexEntry {
    function: u32,
    page: u32,
    lsdas: u32,
}

/// What compact unwind says about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "handed from call to call, never kept")]
pub enum CompactFound {
    /// A row that holds in the function's body.
    Row(CoveredRow),
    /// The FDE at this offset in `__eh_frame` says it. Zero where the linker could not say where (the offset has 24
    /// bits): then the FDE is to be searched for.
    EhFrame(u32),
}

/// One function, or several in a row that share an encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// From the first function's start to where the next entry begins.
    pub range: AddrRange<Svma>,
    /// How their frames are undone.
    pub encoding: Encoding,
    /// Where the pointer to the personality routine lies (a slot of `__got`).
    pub personality: Option<Svma>,
    /// The function's language-specific data.
    pub lsda: Option<Svma>,
}

/// Bytes of an entry of the first-level index, and of an LSDA entry.
const INDEX_ENTRY: u32 = 12;
const LSDA_ENTRY: u32 = 8;

impl<'d> Compact<'d> {
    /// The file's table; `None` where it has none, or one of an unknown version.
    pub fn new(sections: &Sections<'d>) -> Option<Self> {
        let info = sections.unwind_info?;
        let field = |number: u64| read::word(info, info.start.checked_add(4 * number)?);
        if field(0)? != 1 {
            return None;
        }
        let array = |number: u64| Some(Array { start: field(number)?, count: field(number + 1)? });
        Some(Self {
            info,
            image_base: sections.image_base,
            family: sections.arch.map_or(Family::Other, backtrail_core::Arch::family),
            common: array(1)?,
            personalities: array(3)?,
            index: array(5)?,
            text: sections.text.clone(),
        })
    }

    /// The rules at `at`.
    ///
    /// # Errors
    /// [`Miss::NotCovered`] outside of all functions and where the encoding is zero.
    pub fn find(&self, at: Svma) -> Result<CompactFound, Miss> {
        self.row_of(&self.entry_at(at)?.ok_or(Miss::NotCovered)?)
    }

    /// The rules of an entry.
    ///
    /// # Errors
    /// [`Miss::NotCovered`] where the encoding is zero.
    pub fn row_of(&self, entry: &Entry) -> Result<CompactFound, Miss> {
        if let Mode::Dwarf { offset } = entry.encoding.mode() {
            return Ok(CompactFound::EhFrame(offset));
        }
        let row = self.row(entry)?;
        Ok(CompactFound::Row(CoveredRow { row, trust: Trust::CompactUnwind, covered: entry.range }))
    }

    /// Whose registers the rows are about.
    pub fn family(&self) -> Family {
        self.family
    }

    /// The addresses where the rows may change, for compiling: the start of every function entry, ascending.
    pub fn starts(&self) -> impl Iterator<Item = Svma> + '_ {
        self.entries().map(|entry| entry.range.start())
    }

    /// The entry that `at` lies in.
    ///
    /// # Errors
    /// Where pages or encodings lie outside of the section, or a page is of an unknown kind.
    pub fn entry_at(&self, at: Svma) -> Result<Option<Entry>, Malformed> {
        let Some(function) = at.offset_from(self.image_base).and_then(|offset| u32::try_from(offset).ok())
        else {
            return Ok(None);
        };
        let (mut low, mut high) = (0, self.index_len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.index_entry(middle).is_some_and(|entry| entry.function <= function) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(first) = low.checked_sub(1) else { return Ok(None) };
        let Some(page) = self.page(first)? else { return Ok(None) };
        let Some(position) = page.position_of(function) else { return Ok(None) };
        self.entry(&page, position).map(|entry| Some(entry).filter(|entry| entry.range.contains(at)))
    }

    /// Every entry, ascending. Broken pages and entries are passed over.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        let pages = (0..self.index_len()).filter_map(|number| self.page(number).ok().flatten());
        pages.flat_map(move |page| {
            let count = page.len();
            (0..count).filter_map(move |position| self.entry(&page, position).ok())
        })
    }

    fn index_len(&self) -> u32 {
        let there = self.info.data.len() / INDEX_ENTRY as usize;
        self.index.count.min(u32::try_from(there).unwrap_or(u32::MAX))
    }

    fn index_entry(&self, number: u32) -> Option<IndexEntry> {
        let at = self.index.start.checked_add(number.checked_mul(INDEX_ENTRY)?)?;
        Some(IndexEntry {
            function: self.word(at)?,
            page: self.word(at.checked_add(4)?)?,
            lsdas: self.word(at.checked_add(8)?)?,
        })
    }

    /// The page of an entry of the index; `None` for the last one and beyond.
    fn page(&self, number: u32) -> Result<Option<Page<'d>>, Malformed> {
        let (Some(entry), Some(next)) =
            (self.index_entry(number), self.index_entry(number.saturating_add(1)))
        else {
            return Ok(None);
        };
        if entry.page == 0 {
            return Ok(None);
        }
        let page = Page::open(self.info, entry.page, entry.function, next.function)?;
        Ok(Some(page.with_lsdas(entry.lsdas, next.lsdas)))
    }

    fn entry(&self, page: &Page<'d>, position: u32) -> Result<Entry, Malformed> {
        let expected = "an entry within the page";
        let function = page.function(position).ok_or_else(|| self.malformed(page.start, expected))?;
        let end = page.function(position + 1).unwrap_or(page.end);
        let raw = self.raw_encoding(page, position)?;
        let encoding = Encoding::new(raw, self.family);
        Ok(Entry {
            range: AddrRange::new(self.svma(function), self.svma(end)),
            encoding,
            personality: encoding.personality().and_then(|number| self.personality(number)),
            lsda: if encoding.has_lsda() { self.lsda(page, function) } else { None },
        })
    }

    fn raw_encoding(&self, page: &Page<'d>, position: u32) -> Result<u32, Malformed> {
        let expected = "an encoding of the page, or an index of one";
        let found = match page.encoding(position) {
            page::EncodingAt::Here(raw) => Some(raw),
            page::EncodingAt::Index(index) if index < self.common.count => {
                self.common.start.checked_add(4 * index).and_then(|at| self.word(at))
            }
            page::EncodingAt::Index(index) => page.own_encoding(index - self.common.count),
            page::EncodingAt::Nowhere => None,
        };
        found.ok_or_else(|| self.malformed(page.start, expected))
    }

    fn personality(&self, number: u32) -> Option<Svma> {
        let index = number.checked_sub(1).filter(|index| *index < self.personalities.count)?;
        let slot = self.word(self.personalities.start.checked_add(4 * index)?)?;
        Some(self.svma(slot))
    }

    fn lsda(&self, page: &Page<'d>, function: u32) -> Option<Svma> {
        let count = page.lsdas.end.checked_sub(page.lsdas.start)? / LSDA_ENTRY;
        let at = |number: u32| page.lsdas.start.checked_add(number.checked_mul(LSDA_ENTRY)?);
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(at(middle)?)? {
                start if start == function => return self.word(at(middle)? + 4).map(|lsda| self.svma(lsda)),
                start if start < function => low = middle + 1,
                _ => high = middle,
            }
        }
        None
    }

    fn svma(&self, offset: u32) -> Svma {
        Svma::new(self.image_base.get().saturating_add(offset.into()))
    }

    fn word(&self, offset: u32) -> Option<u32> {
        read::word(self.info, self.info.start.checked_add(offset.into())?)
    }

    fn malformed(&self, offset: u32, expected: &'static str) -> Malformed {
        Malformed { at: Svma::new(self.info.start.get().saturating_add(offset.into())), expected }
    }
}

#[cfg(test)]
mod tests;
