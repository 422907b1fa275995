//! Where a function has not made its frame yet, by the ways that lead there from its start.
//!
//! Compilers put the push behind a switch if only some of its cases need it: the cases before it look like code in the
//! body, whose frame the table describes. For ARM code; of Thumb's switches the nearest case is read (see
//! [`super::prologue`]).

use super::a32;
use super::effect::{Effect, LR, SP, bits, signed};
use crate::arch::Code;
use crate::read;
use backtrail_core::Svma;

/// How many places that jumps lead to, and how many instructions, are looked at.
const MAX_PLACES: usize = 64;
const MAX_INSTRUCTIONS: usize = 512;

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

/// Whether a way leads from the function's start to `code.at` on which neither the stack pointer nor the link register
/// changes.
pub(super) fn before_frame(code: &Code<'_>) -> Option<()> {
    let mut places = Places { all: [code.function?; MAX_PLACES], count: 1 };
    let mut budget = MAX_INSTRUCTIONS;
    let mut next = 0;
    while next < places.count {
        let mut at = *places.all.get(next)?;
        next += 1;
        while at != code.at {
            budget = budget.checked_sub(1)?;
            let Some(word) = read::word(code.text, at) else { break };
            let after = at.checked_add(4)?;
            if let Some(target) = branch(word, at) {
                places.add(target);
            }
            for case in 0..cases(code, at, word) {
                places.add(after.checked_add(4 * case)?);
            }
            if changes(a32::decode(word)) {
                break;
            }
            at = after;
        }
        if at == code.at {
            return Some(());
        }
    }
    None
}

/// Whether the way ends at an instruction, or the stack pointer or the link register is another one behind it.
fn changes(effect: Effect) -> bool {
    match effect {
        Effect::Call | Effect::Jump(_) | Effect::JumpRegister(_) | Effect::Trap => true,
        Effect::Move { to, .. } => matches!(to, SP | LR),
        Effect::Transfer(transfer) => {
            let is_loaded = transfer.is_load && transfer.set & (1 << SP | 1 << LR | 1 << 15) != 0;
            is_loaded || transfer.base == SP && transfer.writeback != 0
        }
        Effect::Clobber(set) => set & (1 << SP | 1 << LR) != 0,
        _ => false,
    }
}

/// Where `b` leads, conditional or not.
fn branch(word: u32, at: Svma) -> Option<Svma> {
    let is_branch = bits(word, 24, 4) == 0xa && word >> 28 != 0xf;
    let distance = signed(bits(word, 0, 24), 24) * 4 + 8;
    is_branch.then(|| Svma::new(at.get().wrapping_add_signed(distance)))
}

/// How many branches follow `cmp rN, #last; addls pc, pc, rN, lsl #2`: one for what is larger, and one for each case.
fn cases(code: &Code<'_>, at: Svma, word: u32) -> u64 {
    let compared = at.checked_sub(4).and_then(|before| read::word(code.text, before));
    let register = bits(word, 0, 4);
    match compared {
        Some(compared) if word & !0xf == 0x908f_f100 && compared & !0xff == 0xe350_0000 | register << 16 => {
            u64::from(bits(compared, 0, 8)) + 2
        }
        _ => 0,
    }
}
