//! Second-level pages: functions and their encodings.

use crate::read;
use crate::row::Malformed;
use crate::sections::Section;
use backtrail_core::Svma;
use core::ops::Range;

const REGULAR: u32 = 2;
const COMPRESSED: u32 = 3;

/// One page.
#[derive(Clone, Debug)]
pub(super) struct Page<'d> {
    info: Section<'d>,
    /// Offset of the page in the section.
    pub(super) start: u32,
    is_compressed: bool,
    entries: u32,
    count: u32,
    encodings: Range<u32>,
    /// What distances count from.
    base: u32,
    /// Where the page's last function ends.
    pub(super) end: u32,
    /// Offsets of the first and behind the last LSDA entry.
    pub(super) lsdas: Range<u32>,
}

/// Where an entry's encoding is.
pub(super) enum EncodingAt {
    /// In the entry.
    Here(u32),
    /// In the common encodings and, behind them, the page's own.
    Index(u32),
    /// The page ends before.
    Nowhere,
}

impl<'d> Page<'d> {
    pub(super) fn open(info: Section<'d>, start: u32, base: u32, end: u32) -> Result<Self, Malformed> {
        let at = |offset: u64| Some(Svma::new(info.start.get().checked_add(u64::from(start) + offset)?));
        let malformed = |expected| Malformed { at: at(0).unwrap_or(info.start), expected };
        let half = |offset: u64| at(offset).and_then(|at| read::half(info, at)).map(u32::from);
        let kind = at(0).and_then(|at| read::word(info, at));
        let is_compressed = match kind {
            Some(REGULAR) => false,
            Some(COMPRESSED) => true,
            _ => return Err(malformed("a page of kind 2 or 3")),
        };
        let header = || {
            let (entries, count) = (start.checked_add(half(4)?)?, half(6)?);
            let encodings = if is_compressed {
                let first = start.checked_add(half(8)?)?;
                first..first.checked_add(4 * half(10)?)?
            } else {
                0..0
            };
            Some((entries, count, encodings))
        };
        let (entries, count, encodings) = header().ok_or_else(|| malformed("a whole page header"))?;
        Ok(Self { info, start, is_compressed, entries, count, encodings, base, end, lsdas: 0..0 })
    }

    pub(super) fn with_lsdas(mut self, start: u32, end: u32) -> Self {
        self.lsdas = start..end.max(start);
        self
    }

    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// The start of the function at this position, from the image base.
    pub(super) fn function(&self, position: u32) -> Option<u32> {
        if position >= self.count {
            return None;
        }
        if self.is_compressed {
            self.base.checked_add(self.word(self.entries.checked_add(4 * position)?)? & 0x00ff_ffff)
        } else {
            self.word(self.entries.checked_add(8 * position)?)
        }
    }

    pub(super) fn encoding(&self, position: u32) -> EncodingAt {
        let found = if self.is_compressed {
            self.entries
                .checked_add(4 * position)
                .and_then(|at| self.word(at))
                .map(|word| EncodingAt::Index(word >> 24))
        } else {
            self.entries.checked_add(8 * position + 4).and_then(|at| self.word(at)).map(EncodingAt::Here)
        };
        found.unwrap_or(EncodingAt::Nowhere)
    }

    /// The page's own encoding with this number.
    pub(super) fn own_encoding(&self, number: u32) -> Option<u32> {
        let at = self.encodings.start.checked_add(number.checked_mul(4)?)?;
        if self.encodings.contains(&at) { self.word(at) } else { None }
    }

    /// The last function that starts at or before `function`.
    pub(super) fn position_of(&self, function: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.function(middle)? <= function {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    fn word(&self, offset: u32) -> Option<u32> {
        read::word(self.info, self.info.start.checked_add(offset.into())?)
    }
}
