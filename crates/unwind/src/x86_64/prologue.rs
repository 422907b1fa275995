//! Prologues, epilogues and stubs of `x86_64`, and with other numbers of x86.
//!
//! Straight code is followed from the function's start to the address (a prologue), or from the address to the return
//! (an epilogue). Both are certain: what is pushed on the way is on the stack, and the return pops what it pops. A jump
//! that ends the way is taken for a tail call, but only where no table says anything.

use super::instruction::{Effect, decode};
use crate::code::Code;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

/// What differs between 32 and 64 bits.
pub(crate) struct Machine {
    pub(crate) is_64: bool,
    pub(crate) word: i32,
    pub(crate) sp: Register,
    pub(crate) fp: Register,
    /// DWARF's numbers for the processor's.
    pub(crate) numbers: &'static [u8],
    /// The registers, in DWARF's numbers, that a function must give back as they were.
    pub(crate) callee_saved: &'static [u8],
}

const MACHINE: Machine = Machine {
    is_64: true,
    word: 8,
    sp: Register(7),
    fp: Register(6),
    numbers: &[0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15],
    callee_saved: &[3, 6, 12, 13, 14, 15],
};

/// How far an epilogue is followed, and a prologue from the function's start.
const MAX_EPILOGUE: usize = 32;
const MAX_PROLOGUE: usize = 64;

/// See [`crate::arch::analyse`].
pub(crate) fn analyse(code: &Code<'_>) -> Option<Row> {
    MACHINE.analyse(code)
}

/// See [`crate::arch::behind_system_call`].
pub(crate) fn behind_system_call(code: &Code<'_>) -> Option<Row> {
    MACHINE.behind_system_call(code)
}

/// See [`crate::arch::by_stack_depth`].
pub(crate) fn by_stack_depth(code: &Code<'_>) -> Option<Row> {
    MACHINE.by_stack_depth(code)
}

/// See [`crate::arch::by_return_path`].
pub(crate) fn by_return_path(code: &Code<'_>, is_generated: bool) -> Option<Row> {
    MACHINE.by_return_path(code, is_generated)
}

impl Machine {
    pub(crate) fn analyse(&self, code: &Code<'_>) -> Option<Row> {
        let prologue = code.function.and_then(|_| self.prologue(code.behind()));
        let stub = || if code.is_described { None } else { self.stub(code) };
        prologue.or_else(|| self.epilogue(code.ahead(), code.is_described)).or_else(stub)
    }

    /// Follows the code from the function's first instruction to the end of `code`.
    fn prologue(&self, mut code: &[u8]) -> Option<Row> {
        // How far the CFA lies above the stack pointer, and above the frame pointer once that is set.
        let mut above_sp = Some(self.word);
        let mut above_fp = None;
        let mut saved = Row::new(Cfa::RegisterOffset(self.sp, self.word), Rule::Offset(-self.word));
        for _ in 0..MAX_PROLOGUE {
            if code.is_empty() {
                saved.cfa = match (above_sp, above_fp) {
                    (_, Some(offset)) => Cfa::RegisterOffset(self.fp, offset),
                    (offset, None) => Cfa::RegisterOffset(self.sp, offset?),
                };
                return Some(saved);
            }
            let (length, effect) = decode(code, self.is_64)?;
            code = code.get(length..)?;
            match effect {
                Effect::Neutral | Effect::Store | Effect::Load(_) => {}
                Effect::Push(register) => {
                    let offset = above_sp?.checked_add(self.word)?;
                    above_sp = Some(offset);
                    self.save(&mut saved, register, -offset);
                }
                Effect::MoveSp(by) => above_sp = above_sp.and_then(|offset| offset.checked_sub(by)),
                Effect::SetFp(offset) => above_fp = Some(above_sp?.checked_sub(offset)?),
                Effect::AlignSp if above_fp.is_some() => above_sp = None,
                _ => return None,
            }
        }
        None
    }

    /// The first push of a register saves it; what is pushed later is something else.
    fn save(&self, row: &mut Row, register: Option<u8>, offset: i32) {
        let number = register.and_then(|register| self.numbers.get(usize::from(register)));
        let Some(number) = number.filter(|number| self.callee_saved.contains(number)) else { return };
        if row.rule(Register(*number)) == Rule::Same {
            row.set(Register(*number), Rule::Offset(offset));
        }
    }

    /// Follows the code up to the return.
    fn epilogue(&self, mut code: &[u8], is_described: bool) -> Option<Row> {
        let mut base = self.sp;
        let mut offset = 0i32;
        let mut popped = Row::new(Cfa::RegisterOffset(self.sp, 0), Rule::Undefined);
        for _ in 0..MAX_EPILOGUE {
            let (length, effect) = decode(code, self.is_64)?;
            code = code.get(length..)?;
            let fp_is_whole = popped.rule(self.fp) == Rule::Same;
            match effect {
                Effect::Neutral => {}
                // From a place that only the frame's layout tells.
                Effect::Load(register) => self.pop(&mut popped, register, Rule::Undefined),
                Effect::Pop(register) => {
                    self.pop(&mut popped, register, Rule::Offset(offset));
                    offset = offset.checked_add(self.word)?;
                }
                Effect::MoveSp(by) => offset = offset.checked_add(by)?,
                Effect::SetSpFromFp(by) if fp_is_whole => (base, offset) = (self.fp, by),
                Effect::Leave if fp_is_whole => {
                    popped.set(self.fp, Rule::Offset(0));
                    (base, offset) = (self.fp, self.word);
                }
                // glibc's `_dl_runtime_resolve` for i386 writes the address that it goes to on top of the stack, and
                // leaves by `ret $12`: only a table knows where the caller's is.
                Effect::ReturnAndDrop if is_described => return None,
                Effect::Return | Effect::ReturnAndDrop => return self.returned(&popped, base, offset),
                // Only behind what restores the stack is a jump known to leave the function.
                Effect::Jump if !is_described && (offset > 0 || base == self.fp) => {
                    return self.returned(&popped, base, offset);
                }
                _ => return None,
            }
        }
        None
    }

    fn pop(&self, row: &mut Row, register: u8, rule: Rule) {
        let number = self.numbers.get(usize::from(register));
        if let Some(number) = number.filter(|number| self.callee_saved.contains(number)) {
            row.set(Register(*number), rule);
        }
    }

    /// Counts the places from the CFA, which lies one word above the return address.
    fn returned(&self, popped: &Row, base: Register, offset: i32) -> Option<Row> {
        let cfa = offset.checked_add(self.word)?;
        let mut row = Row::new(Cfa::RegisterOffset(base, cfa), Rule::Offset(-self.word));
        for (register, rule) in popped.rules() {
            let rule = if let Rule::Offset(at) = rule { Rule::Offset(at.checked_sub(cfa)?) } else { rule };
            row.set(register, rule);
        }
        Some(row)
    }

    /// Entries of procedure linkage tables: `jmp *slot`, `push index; jmp first`, and the first, `push slot; jmp *slot`.
    /// Linkers other than GNU's give them no table.
    fn stub(&self, code: &Code<'_>) -> Option<Row> {
        let word = self.word;
        let mut row = Row::new(Cfa::RegisterOffset(self.sp, word), Rule::Offset(-word));
        match self.frame_setup(code) {
            Some(0) => return Some(row),
            Some(_) => {
                row.cfa = Cfa::RegisterOffset(self.sp, 2 * word);
                return Some(row.with(self.fp, Rule::Offset(-2 * word)));
            }
            None => {}
        }
        let depth = match (code.text.up_to(code.at)?, skip_markers(code.ahead())) {
            ([.., 0xff, 0x35 | 0xb3, _, _, _, _], [0xff, 0x25 | 0xa3, ..]) => 3,
            (_, [0xff, 0x35 | 0xb3, _, _, _, _, 0xff, 0x25 | 0xa3, ..]) => 2,
            (_, [0xff, 0x35 | 0xb3, _, _, _, _, 0xf2, 0xff, 0x25 | 0xa3, ..]) => 2,
            (_, [0xff, 0x25 | 0xa3, ..]) => 1,
            (_, [0x68, _, _, _, _, 0xe9, ..] | [0x68, _, _, _, _, 0xf2, 0xe9, ..]) => 1,
            ([.., 0x68, _, _, _, _], [0xe9, ..]) => 2,
            _ => return None,
        };
        row.cfa = Cfa::RegisterOffset(self.sp, depth * word);
        Some(row)
    }

    /// Whether the frame pointer is about to be set up, and how many words of that are already pushed: known by the
    /// two instructions, even where nothing tells the function's start.
    fn frame_setup(&self, code: &Code<'_>) -> Option<i32> {
        let ahead = skip_markers(code.ahead());
        let is_copy = |code: &[u8]| {
            let copy = code.strip_prefix(&[0x48]).filter(|_| self.is_64);
            let copy = if self.is_64 { copy? } else { code };
            (copy.starts_with(&[0x89, 0xe5]) || copy.starts_with(&[0x8b, 0xec])).then_some(())
        };
        let (first, rest) = ahead.split_first()?;
        if *first == 0x55 && is_copy(rest).is_some() {
            return Some(0);
        }
        let pushed = matches!(code.text.up_to(code.at)?, [.., 0x55]);
        (pushed && is_copy(ahead).is_some()).then_some(1)
    }
}

/// Behind `endbr64`, `endbr32` and `bnd`.
fn skip_markers(code: &[u8]) -> &[u8] {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfb]).unwrap_or(code);
    code.strip_prefix(&[0xf2]).unwrap_or(code)
}

#[cfg(test)]
mod tests;
