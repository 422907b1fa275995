//! Where a function has not made its frame yet, by the paths that lead there from its start.
//!
//! Compilers put the push behind a switch if only some of its cases need it: the cases before it look like code in the
//! body, whose frame the table describes.

use super::effect::{Effect, LR, MEMORY, PC, SP, bits, signed};
use super::sweep::{Reader, Sweep};
use crate::read;
use backtrail_core::Svma;

/// How many places that jumps lead to, and how many instructions, are looked at.
const MAX_PLACES: usize = 64;
const MAX_INSTRUCTIONS: usize = 512;
/// How far before a switch its number is compared.
const MAX_BACK: u64 = 8;

struct Places {
    all: [Svma; MAX_PLACES],
    count: usize,
}

impl Places {
    fn add(&mut self, at: Svma) {
        if !self.all.iter().take(self.count).any(|known| *known == at)
            && let Some(place) = self.all.get_mut(self.count)
        {
            *place = at;
            self.count += 1;
        }
    }
}

/// Whether a path leads from the function's start to the code at hand on which neither the stack pointer nor the link
/// register changes.
pub(super) fn before_frame(reader: &Reader<'_, '_>) -> Option<()> {
    let mut places = Places { all: [reader.code.function?; MAX_PLACES], count: 1 };
    let mut budget = MAX_INSTRUCTIONS;
    let mut next = 0;
    while next < places.count {
        let mut sweep = Sweep::new(reader, *places.all.get(next)?);
        next += 1;
        loop {
            if sweep.at == reader.code.at {
                return Some(());
            }
            budget = budget.checked_sub(1)?;
            let Some((at, effect)) = sweep.next() else { break };
            reader.add_targets(at, effect, &mut places);
            if changes(effect) {
                break;
            }
        }
    }
    None
}

/// Whether the path ends at an instruction, or the stack pointer or the link register is another one behind it.
fn changes(effect: Effect) -> bool {
    match effect {
        Effect::Call | Effect::Jump(_) | Effect::JumpRegister(_) | Effect::Trap => true,
        Effect::Move { to, .. } => matches!(to, SP | LR),
        Effect::Transfer(transfer) => {
            let is_loaded = transfer.is_load && transfer.set & (1 << SP | 1 << LR | 1 << PC) != 0;
            is_loaded || transfer.base == SP && transfer.writeback != 0
        }
        Effect::Clobber(set) => set & (1 << SP | 1 << LR) != 0,
        _ => false,
    }
}

impl Reader<'_, '_> {
    /// Where an instruction leads, but for the one behind it. Of Thumb's conditional branches that is not told.
    fn add_targets(&self, at: Svma, effect: Effect, places: &mut Places) {
        if let Effect::Jump(distance) = effect {
            places.add(Svma::new(at.get().wrapping_add_signed(distance)));
        }
        if self.thumb {
            if effect == Effect::JumpRegister(MEMORY) {
                self.add_cases(at, places);
            }
            return;
        }
        let Some(word) = read::word(self.code.text, at) else { return };
        if bits(word, 24, 4) == 0xa && word >> 28 < 0xe {
            let distance = signed(bits(word, 0, 24), 24) * 4 + 8;
            places.add(Svma::new(at.get().wrapping_add_signed(distance)));
        }
        self.add_branches(at, word, places);
        self.add_distances(at, word, places);
    }

    /// Thumb's `tbb` and `tbh`.
    fn add_cases(&self, at: Svma, places: &mut Places) {
        let Some((table, size, end)) = self.table(at) else { return };
        for offset in (0..end).step_by(size as usize) {
            let half = table.checked_add(offset).and_then(|entry| read::half(self.code.text, entry));
            let target = half.map(|half| 2 * u64::from(if size == 1 { half & 0xff } else { half }));
            // The last byte of a table may be there for alignment.
            if let Some(target) = target.filter(|target| *target >= end) {
                places.add(Svma::new(table.get().wrapping_add(target)));
            }
        }
    }

    /// gcc's `addls pc, pc, rN, lsl #2`: a branch follows for what is larger, and one for each case.
    fn add_branches(&self, at: Svma, word: u32, places: &mut Places) {
        let last = (word & !0xf == 0x908f_f100).then(|| self.last_case(at, bits(word, 0, 4))).flatten();
        for case in 0..last.map_or(0, |last| last + 2) {
            places.add(Svma::new(at.get().wrapping_add(4 + 4 * case)));
        }
    }

    /// clang's `add rT, pc, #n; ldr rN, [rT, rN, lsl #2]; add pc, rT, rN`: distances from a table, which begins there.
    fn add_distances(&self, at: Svma, word: u32, places: &mut Places) {
        let (base, number) = (bits(word, 16, 4), bits(word, 0, 4));
        let before = |back: u64| read::word(self.code.text, at.checked_sub(back)?);
        let is_switch = word & !0xf_000f == 0xe080_f000
            && before(4) == Some(0xe790_0100 | base << 16 | number << 12 | number)
            && before(8).is_some_and(|word| word & !0xff == 0xe28f_0000 | base << 12);
        let last = is_switch.then(|| self.last_case(at, number)).flatten();
        let Some((last, from)) = last.zip(before(8)) else { return };
        // The program counter is eight bytes ahead.
        let table = at.get().wrapping_add(u64::from(bits(from, 0, 8)));
        for case in 0..=last {
            if let Some(distance) = read::word(self.code.text, Svma::new(table.wrapping_add(4 * case))) {
                places.add(Svma::new(table.wrapping_add_signed(distance.cast_signed().into())));
            }
        }
    }

    /// The number that `cmp rN, #n` before a switch compares with.
    fn last_case(&self, at: Svma, number: u32) -> Option<u64> {
        let words = (1..=MAX_BACK).map_while(|back| read::word(self.code.text, at.checked_sub(4 * back)?));
        let mut compared = words.filter(|word| word & !0xff == 0xe350_0000 | number << 16);
        compared.next().map(|word| u64::from(bits(word, 0, 8)))
    }
}
