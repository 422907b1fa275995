//! Where the return address lies, by the paths that lead from an address to the function's return: for code without tables.
//!
//! Jumps whose targets the instructions tell are followed and passed by, calls are taken to leave the stack as it was (as they do
//! on `x86_64`), a jump through a table and what is not understood end a path. Paths that disagree prove the reading wrong. What
//! a call that never comes back is followed by is another function: who calls this checks what comes out.

use super::instruction::{Effect, decode};
use super::prologue::Machine;
use super::stack_depth::{MAX_SAVED, Places, target};
use crate::code::Code;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Register, Svma};

/// How many places that jumps lead to, and how many instructions, are looked at.
const MAX_PLACES: usize = 128;
const MAX_INSTRUCTIONS: usize = 2048;
/// How many instructions are looked at between a system call and the return.
const MAX_BEHIND_SYSTEM_CALL: usize = 8;
const FP: u8 = 5;
/// The length of a call that tells where it goes.
const CALL: u64 = 5;

/// What a place is counted from: the stack or the frame pointer at the address.
#[derive(Clone, Copy, PartialEq, Eq)]
struct StackSlot {
    from_fp: bool,
    offset: i32,
}

/// A register on a path to the return.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Restored {
    /// No path has touched it.
    Kept,
    /// Popped from there.
    Popped(StackSlot),
    /// Loaded from somewhere, or paths differ.
    Lost,
}

#[derive(Clone, Copy)]
struct State {
    sp: StackSlot,
    /// What the frame pointer is, where that is known.
    fp: Option<StackSlot>,
    /// What became of the callee-saved registers.
    restored: [Restored; MAX_SAVED],
}

impl Machine {
    /// The row at `code.at`; `None` where no path leads to a return, or paths disagree.
    // A function of its own: the places take 9 kB of stack, which walks in a signal handler, having no code to follow, must
    // not pay for.
    #[inline(never)]
    pub(crate) fn by_return_path(&self, code: &Code<'_>, is_generated: bool) -> Option<Row> {
        // HotSpot marks each call by such a `nop` behind it (since version 20).
        let is_end = |bytes: &[u8]| !is_generated && is_between_functions(bytes);
        if is_end(code.ahead()) || is_generated && super::generated::is_deoptimized(code) {
            return None;
        }
        let place = |from_fp| StackSlot { from_fp, offset: 0 };
        let start = State { sp: place(false), fp: Some(place(true)), restored: [Restored::Kept; MAX_SAVED] };
        let mut places = Places::<_, MAX_PLACES>::new(code.at, start);
        let mut found: Option<State> = None;
        let mut budget = MAX_INSTRUCTIONS;
        let mut next = 0;
        'paths: while let Some((mut at, mut state)) = places.get(next) {
            next += 1;
            let mut is_undone = false;
            while let Some((length, effect, is_call)) =
                code.text.from(at).and_then(|bytes| self.decode_with_calls(bytes))
            {
                if budget == 0 {
                    break 'paths;
                }
                budget -= 1;
                let after = at.checked_add(u64::try_from(length).ok()?)?;
                let target = target(code, at, after);
                let is_outside = target.is_some_and(|target| !code.text.range().contains(target));
                if effect == Effect::Return
                    || effect == Effect::Jump && is_generated && is_undone && is_outside
                {
                    found = Some(joined(found, &state)?);
                    break;
                }
                if let Some(target) = target {
                    let is_new = places.add(target, state, |known, other| known.sp == other.sp);
                    if is_new.is_none() && is_generated && places.is_full() {
                        break 'paths;
                    }
                    is_new?;
                }
                // The call does not come back: so `__stack_chk_fail`, at the end of functions with a stack protector.
                if is_call && (code.text.from(after).is_none_or(is_end) || traps(code, after)) {
                    break;
                }
                is_undone = matches!(effect, Effect::Pop(_) | Effect::Leave);
                let Some(then) = self.follow_out(state, effect) else { break };
                (at, state) = (after, then);
            }
        }
        let is_seen = budget > 0 || is_generated;
        self.row_out(&found.filter(|_| is_seen)?)
    }

    /// `vfork` of C libraries without tables, as musl's: parent and child share the stack, so that the return address must not lie
    /// there, and is pushed again when the call is over (`pop %rdx; mov $58, %eax; syscall; push %rdx; …; jmp`).
    pub(crate) fn behind_system_call(&self, code: &Code<'_>) -> Option<Row> {
        let before = code.text.up_to(code.at)?;
        if !matches!(before, [.., 0x0f, 0x05 | 0x34] | [.., 0xcd, 0x80]) {
            return None;
        }
        let (mut length, effect) = decode(code.ahead(), self.is_64)?;
        let Effect::Push(Some(pushed)) = effect else { return None };
        let mut ahead = code.ahead();
        for _ in 0..MAX_BEHIND_SYSTEM_CALL {
            ahead = ahead.get(length..)?;
            let (next, effect) = decode(ahead, self.is_64)?;
            match effect {
                Effect::Neutral => length = next,
                Effect::Return | Effect::Jump => {
                    let number = *self.numbers.get(usize::from(pushed))?;
                    return Some(Row::new(Cfa::RegisterOffset(self.sp, 0), Rule::Register(Register(number))));
                }
                _ => return None,
            }
        }
        None
    }

    /// An instruction's length and effect, and whether it is a call.
    fn decode_with_calls(&self, bytes: &[u8]) -> Option<(usize, Effect, bool)> {
        let prefix = usize::from(matches!(bytes, [0x40..=0x4f | 0x67 | 0xf2 | 0x3e, ..]));
        match bytes.get(prefix..)? {
            [0xe8, _, _, _, _, ..] => Some((prefix + 5, Effect::Neutral, true)),
            [0xff, modrm, rest @ ..] if modrm & 0x38 == 0x10 => {
                Some((prefix + 2 + super::call::operand_size(*modrm, rest)?, Effect::Neutral, true))
            }
            _ => decode(bytes, self.is_64).map(|(length, effect)| (length, effect, false)),
        }
    }

    /// What there is behind an instruction; `None` where control or the stack pointer goes elsewhere.
    fn follow_out(&self, mut state: State, effect: Effect) -> Option<State> {
        match effect {
            Effect::Neutral | Effect::Store => {}
            Effect::Load(register) => self.restore(&mut state, register, Restored::Lost),
            Effect::LoadFp(above) => {
                let from = above.and_then(|above| state.sp.offset.checked_add(above));
                let from = from.map(|offset| Restored::Popped(StackSlot { offset, ..state.sp }));
                self.restore(&mut state, FP, from.unwrap_or(Restored::Lost));
            }
            Effect::Push(_) => state.sp.offset = state.sp.offset.checked_sub(self.word)?,
            Effect::Pop(register) => self.pop_into(&mut state, register)?,
            Effect::MoveSp(by) => state.sp.offset = state.sp.offset.checked_add(by)?,
            Effect::SetFp(by) => {
                let offset = state.sp.offset.checked_add(by)?;
                state.fp = Some(StackSlot { offset, ..state.sp });
            }
            Effect::SetSpFromFp(by) => {
                let fp = state.fp?;
                state.sp = StackSlot { offset: fp.offset.checked_add(by)?, ..fp };
            }
            Effect::Leave => {
                state.sp = state.fp?;
                self.pop_into(&mut state, FP)?;
            }
            _ => return None,
        }
        Some(state)
    }

    fn pop_into(&self, state: &mut State, register: u8) -> Option<()> {
        self.restore(state, register, Restored::Popped(state.sp));
        state.sp.offset = state.sp.offset.checked_add(self.word)?;
        Some(())
    }

    fn restore(&self, state: &mut State, register: u8, restored: Restored) {
        if register == FP {
            state.fp = None;
        }
        let index = self.callee_saved_index(register);
        if let Some(known) = index.and_then(|index| state.restored.get_mut(index)) {
            *known = restored;
        }
    }

    fn row_out(&self, state: &State) -> Option<Row> {
        let above = state.sp.offset.checked_add(self.word)?;
        let base = if state.sp.from_fp { self.fp } else { self.sp };
        let mut row = Row::new(Cfa::RegisterOffset(base, above), Rule::Offset(-self.word));
        for (number, restored) in self.callee_saved.iter().zip(state.restored) {
            let rule = match restored {
                Restored::Kept => continue,
                // Pushed on a path, so that it still has its value.
                Restored::Popped(StackSlot { from_fp: false, offset: i32::MIN..0 }) => continue,
                Restored::Popped(from) if from.from_fp == state.sp.from_fp => {
                    Rule::Offset(from.offset.checked_sub(above)?)
                }
                _ => Rule::Undefined,
            };
            row.set(Register(*number), rule);
        }
        (state.sp.from_fp || above >= self.word).then_some(row)
    }
}

/// Whether a function begins there, or, with a call before it, what is there to align one: nothing falls into either.
fn is_between_functions(bytes: &[u8]) -> bool {
    matches!(
        bytes,
        [0xf3, 0x0f, 0x1e, 0xfa, ..] | [0x66, 0x2e | 0x66, ..] | [0x66, 0x0f, 0x1f, ..] | [0x0f, 0x1f, ..]
    )
}

/// Whether the call before an address leads to what ends the program by its first instruction: `hlt` (musl's
/// `__stack_chk_fail`) or `ud2`.
fn traps(code: &Code<'_>, after: Svma) -> bool {
    let called = || {
        let call = code.text.from(after.checked_sub(CALL)?)?;
        let [0xe8, distance @ ..] = call.first_chunk::<{ CALL as usize }>()? else { return None };
        let target = after.get().wrapping_add_signed(i32::from_le_bytes(*distance).into());
        code.text.from(Svma::new(target))
    };
    matches!(called(), Some([0xf4, ..] | [0x0f, 0x0b, ..]))
}

/// What two paths agree on; `None` where they disagree on where the return address lies.
fn joined(found: Option<State>, state: &State) -> Option<State> {
    let Some(mut found) = found else { return Some(*state) };
    for (one, other) in found.restored.iter_mut().zip(state.restored) {
        if *one != other {
            *one = Restored::Lost;
        }
    }
    (found.sp == state.sp).then_some(found)
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
            function: None,
            thumb: false,
            is_described: false,
        };
        let row = arch::by_return_path(Family::X86_64, &code, false)?;
        Some((row.cfa, row.rules().map(|(register, rule)| (register.0, rule)).collect()))
    }

    const CODE: [u8; 26] = [
        0x53, //                         push rbx
        0x48, 0x83, 0xec, 0x10, //       sub rsp, 16
        0xe8, 0, 0, 0, 0, //             call, back at 10
        0x85, 0xc0, //                   test eax, eax
        0x75, 0x07, //                   jne 21
        0xff, 0x15, 0, 0, 0, 0,    //    call [rip]
        0x90, //                         nop
        0x48, 0x83, 0xc4, 0x10, // 21:   add rsp, 16
        0x5b, //                         pop rbx
    ];

    #[test]
    fn what_the_ways_to_the_return_undo_is_on_the_stack() {
        let code = [&CODE[..], &[0xc3]].concat();
        let sp = |bytes| Cfa::RegisterOffset(Register(7), bytes);
        let rbx = [(3, Rule::Offset(-16))].to_vec();
        assert_eq!(row(&code, 10), Some((sp(32), rbx.clone())));
        assert_eq!(row(&code, 20), Some((sp(32), rbx.clone())));
        assert_eq!(row(&code, 25), Some((sp(16), rbx)));
        assert_eq!(row(&code, 26), Some((sp(8), Vec::new())));
        // What is pushed from here on is not there yet.
        assert_eq!(row(&code, 0), Some((sp(8), Vec::new())));
    }

    #[test]
    fn frame_pointers_count_until_they_are_changed() {
        // call; leave; ret
        let fp = Cfa::RegisterOffset(Register(6), 16);
        assert_eq!(row(&[0xe8, 0, 0, 0, 0, 0xc9, 0xc3], 5), Some((fp, [(6, Rule::Offset(-16))].to_vec())));
        // mov rbx, [rbp - 8]; leave; ret
        let lost = [(3, Rule::Undefined), (6, Rule::Offset(-16))].to_vec();
        assert_eq!(row(&[0x48, 0x8b, 0x5d, 0xf8, 0xc9, 0xc3], 0), Some((fp, lost)));
        // pop rbp; leave; ret
        assert_eq!(row(&[0x5d, 0xc9, 0xc3], 0), None);
        // What fills space in Mono's code: lea rbp, [rbp]; lea rsp, [rsp]; leave; ret
        let filled = [0x48, 0x8d, 0xad, 0, 0, 0, 0, 0x48, 0x8d, 0x64, 0x24, 0, 0xc9, 0xc3];
        assert_eq!(row(&filled, 0), Some((fp, [(6, Rule::Offset(-16))].to_vec())));
        // Mono restores it by a load: mov rbp, [rsp + 8]; add rsp, 24; ret
        let loaded = [0x48, 0x8b, 0x6c, 0x24, 8, 0x48, 0x83, 0xc4, 24, 0xc3];
        let from_sp = Cfa::RegisterOffset(Register(7), 32);
        assert_eq!(row(&loaded, 0), Some((from_sp, [(6, Rule::Offset(-24))].to_vec())));
        // mov rbp, [rax]; ret: a number like any
        let lost = (Cfa::RegisterOffset(Register(7), 8), [(6, Rule::Undefined)].to_vec());
        assert_eq!(row(&[0x48, 0x8b, 0x28, 0xc3], 0), Some(lost));
        // lea rbp, [rbp + 8]; leave; ret
        assert_eq!(row(&[0x48, 0x8d, 0x6d, 8, 0xc9, 0xc3], 0), None);
    }

    #[test]
    fn ways_that_disagree_or_go_nowhere_prove_nothing() {
        // jne 3; push rbx; ret
        assert_eq!(row(&[0x75, 0x01, 0x53, 0xc3], 0), None);
        // jmp rax; ud2
        assert_eq!(row(&[0xff, 0xe0], 0), None);
        assert_eq!(row(&[0x0f, 0x0b], 0), None);
        // A function begins here: what was called does not come back.
        assert_eq!(row(&[0xf3, 0x0f, 0x1e, 0xfa, 0xc3], 0), None);
        // pxor xmm0, xmm0; ret: nothing that aligns a function.
        let leaf = Some((Cfa::RegisterOffset(Register(7), 8), Vec::new()));
        assert_eq!(row(&[0x66, 0x0f, 0xef, 0xc0, 0xc3], 0), leaf);
        // je 3; call; then the next function: push rbx; ret. With the stack protector of musl's `raise`.
        let next = [0x66, 0x0f, 0x1f, 0x44, 0, 0, 0x53, 0xc3];
        let protected = [&[0x75, 0x01, 0xc3, 0xe8, 0, 0, 0, 0][..], &next].concat();
        assert_eq!(row(&protected, 0), leaf);
        assert_eq!(row(&[&protected[..8], &next[6..]].concat(), 0), None);
        // The same with no space before the next function, where what is called is `hlt`.
        let trapped = [0x75, 0x01, 0xc3, 0xe8, 2, 0, 0, 0, 0x53, 0xc3, 0xf4, 0xc3];
        assert_eq!(row(&trapped, 0), leaf);
        // A loop that pushes.
        assert_eq!(row(&[0x53, 0xeb, 0xfd], 0), None);
    }
}
