//! Encodings as rows. libunwind's `CompactUnwinder.hpp` is the reference.

use super::encoding::{Mode, Saved, arm_pushed};
use super::{Compact, Entry};
use crate::read;
use crate::row::{Cfa, Malformed, Miss, Row, Rule};
use backtrail_core::{Family, Register, Svma};

impl Compact<'_> {
    /// The row of an entry's body; not for DWARF mode.
    pub(super) fn row(&self, entry: &Entry) -> Result<Row, Miss> {
        let broken = |expected| Malformed { at: entry.range.start(), expected };
        let row = match entry.encoding.mode() {
            Mode::Nothing | Mode::Dwarf { .. } => return Err(Miss::NotCovered),
            Mode::Frame { first, saved } => self.x86_frame(first, &saved),
            Mode::Stack { size, saved } => self.x86_stack(size, &saved),
            Mode::StackIndirect { at, adjust, saved } => {
                let size = self.immediate(entry.range.start(), at).and_then(|size| size.checked_add(adjust));
                let size = size.ok_or_else(|| broken("a `sub` of the stack pointer in the code"))?;
                self.x86_stack(size, &saved)
            }
            Mode::Arm64Frame { pairs } => Some(arm64_frame(pairs)),
            Mode::Arm64Frameless { size, pairs } => arm64_frameless(size, pairs),
            Mode::ArmFrame { adjust, pushed, .. } => arm_frame(adjust, pushed),
            Mode::Unknown => None,
        };
        row.ok_or_else(|| broken("a compact unwind encoding of this architecture").into())
    }

    /// The operand of the function's `sub`.
    fn immediate(&self, function: Svma, at: u32) -> Option<u32> {
        let place = function.checked_add(at.into())?;
        self.text.iter().find_map(|text| read::word(*text, place))
    }

    fn x86_frame(&self, first: u32, saved: &Saved) -> Option<Row> {
        let word = i32::from(self.family.word_size());
        let fp = self.family.fp();
        let mut row = Row::new(Cfa::RegisterOffset(fp, 2 * word), Rule::Offset(-word));
        row.set(fp, Rule::Offset(-2 * word));
        let lowest = (-2 * word).checked_sub(i32::try_from(first).ok()?)?;
        for (place, register) in (0..).zip(saved) {
            if let Some(register) = register {
                row.set(*register, Rule::Offset(lowest + place * word));
            }
        }
        Some(row)
    }

    fn x86_stack(&self, size: u32, saved: &Saved) -> Option<Row> {
        let word = i32::from(self.family.word_size());
        let count = i32::try_from(saved.iter().flatten().count()).ok()?;
        let size = i32::try_from(size).ok().filter(|size| *size >= (count + 1) * word)?;
        let mut row = Row::new(Cfa::RegisterOffset(self.family.sp(), size), Rule::Offset(-word));
        for (place, register) in (0..).zip(saved.iter().flatten()) {
            row.set(*register, Rule::Offset((place - count - 1) * word));
        }
        Some(row)
    }
}

const X29: Register = Register(29);
const X30: Register = Register(30);

fn arm64_frame(pairs: u16) -> Row {
    let mut row = Row::new(Cfa::RegisterOffset(X29, 16), Rule::Offset(-8));
    row.set(X30, Rule::Offset(-8));
    row.set(X29, Rule::Offset(-16));
    set_pairs(&mut row, pairs, -16);
    row
}

fn arm64_frameless(size: u32, pairs: u16) -> Option<Row> {
    let sp = Family::Aarch64.sp();
    let mut row = Row::new(Cfa::RegisterOffset(sp, i32::try_from(size).ok()?), Rule::Register(X30));
    set_pairs(&mut row, pairs, 0);
    Some(row)
}

/// Pairs lie downwards from `below`, the lower-numbered register of each higher up. Floating-point registers take no
/// place that a general one is in: they come last.
fn set_pairs(row: &mut Row, pairs: u16, below: i32) {
    let mut at = below;
    for pair in (0..5).filter(|pair| pairs & (1 << pair) != 0) {
        for register in [Register(19 + 2 * pair), Register(20 + 2 * pair)] {
            at -= 8;
            row.set(register, Rule::Offset(at));
        }
    }
}

fn arm_frame(adjust: u32, pushed: u8) -> Option<Row> {
    const R7: Register = Register(7);
    const LR: Register = Register(14);
    let above = i32::try_from(adjust).ok()?;
    let mut row = Row::new(Cfa::RegisterOffset(R7, 8 + above), Rule::Offset(-4 - above));
    row.set(LR, Rule::Offset(-4 - above));
    row.set(R7, Rule::Offset(-8 - above));
    for (place, register) in (1..).zip(arm_pushed(pushed)) {
        row.set(register, Rule::Offset(-8 - above - 4 * place));
    }
    Some(row)
}
