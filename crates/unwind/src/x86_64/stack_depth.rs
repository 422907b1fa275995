//! How much lies on the stack at an address, by the paths that lead there from the function's start.
//!
//! Straight code and jumps whose targets the instructions tell are followed; a call, a return, a jump through a table and
//! what is not understood end a path. A function has the same amount on the stack however an instruction is reached, so
//! that paths which disagree prove the reading wrong. For tables of hand-written code that cannot be right.

use super::instruction::{Effect, decode};
use super::prologue::Machine;
use crate::code::Code;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Register, Svma};

/// How many places that jumps lead to, and how many instructions, are looked at.
const MAX_PLACES: usize = 256;
const MAX_INSTRUCTIONS: usize = 4096;
/// As many as [`Machine::callee_saved`] names at most.
pub(super) const MAX_SAVED: usize = 6;

/// What is on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Stack {
    /// How far the CFA lies above the stack pointer.
    above_sp: i32,
    /// How far it lies above where each of the callee-saved registers is; zero for those that are not on the stack.
    saved: [i32; MAX_SAVED],
}

/// Where paths begin: the place that was asked for, and what jumps lead to; each with its state.
pub(super) struct Places<S, const MOST: usize> {
    all: [(Svma, S); MOST],
    count: usize,
}

impl<S: Copy, const MOST: usize> Places<S, MOST> {
    pub(super) fn new(first: Svma, state: S) -> Self {
        Self { all: [(first, state); MOST], count: 1 }
    }

    /// The place of a number, counted from 0.
    pub(super) fn get(&self, number: usize) -> Option<(Svma, S)> {
        self.all.get(..self.count)?.get(number).copied()
    }

    /// Whether no further place can be added.
    pub(super) fn is_full(&self) -> bool {
        self.count >= MOST
    }

    /// `None` where the place is known with a state that contradicts this one, or there are too many.
    pub(super) fn add(&mut self, at: Svma, state: S, agree: impl FnOnce(&S, &S) -> bool) -> Option<()> {
        if let Some((_, known)) = self.all.iter().take(self.count).find(|(known, _)| *known == at) {
            return agree(known, &state).then_some(());
        }
        *self.all.get_mut(self.count)? = (at, state);
        self.count += 1;
        Some(())
    }
}

impl Machine {
    /// The row at `code.at`; `None` where no path leads there, or paths disagree.
    pub(crate) fn by_stack_depth(&self, code: &Code<'_>) -> Option<Row> {
        let first = Stack { above_sp: self.word, ..Stack::default() };
        let mut places = Places::<_, MAX_PLACES>::new(code.function?, first);
        let mut found = None;
        let mut budget = MAX_INSTRUCTIONS;
        let mut next = 0;
        while let Some((mut at, mut stack)) = places.get(next) {
            next += 1;
            loop {
                budget = budget.checked_sub(1)?;
                if at == code.at && *found.get_or_insert(stack) != stack {
                    return None;
                }
                let Some((length, effect)) = code.text.from(at).and_then(|bytes| decode(bytes, self.is_64))
                else {
                    break;
                };
                let after = at.checked_add(u64::try_from(length).ok()?)?;
                if let Some(target) = target(code, at, after) {
                    places.add(target, stack, Stack::eq)?;
                }
                let Some(then) = self.follow(stack, effect) else { break };
                (at, stack) = (after, then);
            }
        }
        found.map(|stack| self.row(&stack))
    }

    /// What is on the stack behind an instruction; `None` where control or the stack pointer goes elsewhere.
    fn follow(&self, mut stack: Stack, effect: Effect) -> Option<Stack> {
        match effect {
            Effect::Neutral | Effect::Store | Effect::Load(_) => {}
            Effect::Push(register) => {
                stack.above_sp = stack.above_sp.checked_add(self.word)?;
                if let Some(saved) = self.place(&mut stack.saved, register).filter(|saved| **saved == 0) {
                    *saved = stack.above_sp;
                }
            }
            Effect::Pop(register) => {
                let above_sp = stack.above_sp;
                if let Some(saved) =
                    self.place(&mut stack.saved, Some(register)).filter(|saved| **saved == above_sp)
                {
                    *saved = 0;
                }
                stack.above_sp = above_sp.checked_sub(self.word)?;
            }
            Effect::MoveSp(by) => stack.above_sp = stack.above_sp.checked_sub(by)?,
            _ => return None,
        }
        (stack.above_sp >= self.word).then_some(stack)
    }

    fn place<'s>(&self, saved: &'s mut [i32; MAX_SAVED], register: Option<u8>) -> Option<&'s mut i32> {
        saved.get_mut(self.callee_saved_index(register?)?)
    }

    /// Which of the callee-saved registers an instruction's register is.
    pub(super) fn callee_saved_index(&self, register: u8) -> Option<usize> {
        let number = self.numbers.get(usize::from(register))?;
        self.callee_saved.iter().position(|callee_saved| callee_saved == number)
    }

    fn row(&self, stack: &Stack) -> Row {
        let cfa = Cfa::RegisterOffset(self.sp, stack.above_sp);
        let mut row = Row::new(cfa, Rule::Offset(-self.word));
        for (number, saved) in self.callee_saved.iter().zip(stack.saved).filter(|(_, saved)| *saved != 0) {
            row.set(Register(*number), Rule::Offset(-saved));
        }
        row
    }
}

/// Where a jump, conditional or not, leads to. Its distance is its last part.
pub(super) fn target(code: &Code<'_>, at: Svma, after: Svma) -> Option<Svma> {
    let bytes = code.text.from(at)?;
    let distance = match bytes {
        [0x70..=0x7f | 0xeb, distance, ..] => i64::from(distance.cast_signed()),
        [0x0f, 0x80..=0x8f, a, b, c, d, ..] | [0xe9, a, b, c, d, ..] => {
            i64::from(i32::from_le_bytes([*a, *b, *c, *d]))
        }
        _ => return None,
    };
    Some(Svma::new(after.get().wrapping_add_signed(distance)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch;
    use crate::sections::Section;
    use alloc::vec::Vec;
    use backtrail_core::Family;

    const TEXT: u64 = 0x4000;

    fn row(code: &[u8], offset: u64) -> Option<(Cfa, Vec<(u8, Rule)>)> {
        let code = Code {
            text: Section::new(Svma::new(TEXT), code),
            at: Svma::new(TEXT + offset),
            function: Some(Svma::new(TEXT)),
            thumb: false,
            is_described: true,
        };
        let row = arch::by_stack_depth(Family::X86, &code)?;
        Some((row.cfa, row.rules().map(|(register, rule)| (register.0, rule)).collect()))
    }

    const CODE: [u8; 22] = [
        0x53, //             push ebx
        0x72, 0x0a, //       jb 13
        0x57, //             push edi
        0x5f, //             pop edi
        0xe8, 0, 0, 0, 0,    // call
        0x5b, //             pop ebx
        0xc3, //             ret
        0x90, //             nop
        0x57, //             push edi, at 13
        0x83, 0xec, 0x08, // sub esp, 8
        0xff, 0xe3, //       jmp ebx
        0x90, //             nop, which nothing leads to
        0xeb, 0xf7, //       jmp 13, likewise
    ];

    #[test]
    fn what_is_pushed_before_a_jump_is_there_behind_it() {
        let at = |words: i32| Cfa::RegisterOffset(Register(4), 4 * words);
        let (ebx, edi) = ((3, Rule::Offset(-8)), (7, Rule::Offset(-12)));
        assert_eq!(row(&CODE, 0), Some((at(1), [].to_vec())));
        assert_eq!(row(&CODE, 4), Some((at(3), [ebx, edi].to_vec())));
        assert_eq!(row(&CODE, 5), Some((at(2), [ebx].to_vec())));
        assert_eq!(row(&CODE, 13), Some((at(2), [ebx].to_vec())));
        assert_eq!(row(&CODE, 17), Some((at(5), [ebx, edi].to_vec())));
    }

    #[test]
    fn behind_calls_and_where_no_way_leads_nothing_is_known() {
        assert_eq!(row(&CODE, 10), None);
        assert_eq!(row(&CODE, 12), None);
        assert_eq!(row(&CODE, 19), None);
        // Within an instruction.
        assert_eq!(row(&CODE, 2), None);
    }

    #[test]
    fn ways_that_disagree_prove_nothing() {
        // push ebx; jb 4; push edi; nop
        assert_eq!(row(&[0x53, 0x72, 0x01, 0x57, 0x90, 0xc3], 4), None);
        // A loop that pushes: 0: push ebx; jmp 0
        assert_eq!(row(&[0x53, 0xeb, 0xfd], 1), None);
    }
}
