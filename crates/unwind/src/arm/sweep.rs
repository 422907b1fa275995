//! Reading instructions of 32-bit ARM one after the other, in either instruction set.

use super::effect::{Effect, MEMORY};
use super::{a32, t32};
use crate::code::Code;
use crate::read;
use backtrail_core::Svma;

/// Reads instructions of one set.
pub(super) struct Reader<'c, 'd> {
    pub(super) code: &'c Code<'d>,
    pub(super) thumb: bool,
}

impl Reader<'_, '_> {
    /// The instruction at `at` and its size.
    pub(super) fn at(&self, at: Svma) -> Option<(Effect, u64)> {
        if !self.thumb {
            return Some((a32::decode(read::word(self.code.text, at)?), 4));
        }
        let first = read::half(self.code.text, at)?;
        if t32::size(first) == 2 {
            return Some((t32::decode_short(first), 2));
        }
        Some((t32::decode_long(first, read::half(self.code.text, at.checked_add(2)?)?), 4))
    }
}

impl Reader<'_, '_> {
    /// The table of a `tbb` or `tbh` at `at`, which would be read as code: where it begins, the size of its entries, and how
    /// far it is to the nearest of its targets. Targets are told in half words from the table's start.
    pub(super) fn table(&self, at: Svma) -> Option<(Svma, u64, u64)> {
        let text = self.code.text;
        let is_branch = read::half(text, at)? == 0xe8df;
        let second = read::half(text, at.checked_add(2)?)?;
        let size = match second >> 4 {
            0xf00 if is_branch => 1,
            0xf01 if is_branch => 2,
            _ => return None,
        };
        let table = at.checked_add(4)?;
        let mut nearest = u64::MAX;
        let mut offset = 0;
        while offset < nearest {
            let entry = table.checked_add(offset)?;
            let half = read::half(text, entry)?;
            nearest = nearest.min(2 * u64::from(if size == 1 { half & 0xff } else { half }));
            offset += size;
        }
        Some((table, size, nearest))
    }

    fn behind_table(&self, at: Svma) -> Option<Svma> {
        let (table, _, nearest) = self.table(at)?;
        table.checked_add(nearest)
    }
}

/// Instructions one after the other, those of `it` blocks marked as conditional.
pub(super) struct Sweep<'c, 'd> {
    reader: &'c Reader<'c, 'd>,
    pub(super) at: Svma,
    conditional: u8,
}

impl<'c, 'd> Sweep<'c, 'd> {
    pub(super) fn new(reader: &'c Reader<'c, 'd>, at: Svma) -> Self {
        Self { reader, at, conditional: 0 }
    }

    /// The instruction's address and effect.
    pub(super) fn next(&mut self) -> Option<(Svma, Effect)> {
        let at = self.at;
        let (effect, size) = self.reader.at(at)?;
        self.at = at.checked_add(size)?;
        if let Effect::If(count) = effect {
            self.conditional = count;
            return Some((at, Effect::Nothing));
        }
        if effect == Effect::JumpRegister(MEMORY) && self.reader.thumb {
            self.at = self.reader.behind_table(at).unwrap_or(self.at);
        }
        let effect = if self.conditional > 0 { effect.conditional() } else { effect };
        self.conditional = self.conditional.saturating_sub(1);
        Some((at, effect))
    }
}
