//! Prologues, epilogues and stubs of aarch64.
//!
//! Two ways, both by following instructions in their order in memory:
//! - **Ahead**, to the end of the function. Where it returns, the stack pointer is the caller's and the link register
//!   (unless loaded on the way) has been the return address all along. That holds whatever any table says; only calls
//!   stop it, since some do not come back.
//! - **From the start** of the function, through its prologue.
//!
//! Where the function starts is not always known: Apple's linkers merge the table entries of functions that look
//! alike. Then the start is what follows the last instruction that control cannot pass, and it counts as one only if
//! what follows makes a frame.

use super::frame::Frame;
use super::instruction::{Effect, LR, decode};
use crate::code::Code;
use crate::row::Row;
use backtrail_core::Svma;

/// How many instructions are followed to the end of a function.
const MAX_AHEAD: usize = 64;
/// How many instructions a prologue may have, with what the compiler puts in between.
const MAX_PROLOGUE: usize = 96;
/// How many instructions of a prologue that has not begun are looked at.
const MAX_BEFORE: usize = 24;
/// How many instructions are followed to see whether the link register is needed.
const MAX_NEED: usize = 256;

/// See [`crate::arch::analyse`].
pub(crate) fn analyse(code: &Code<'_>) -> Option<Row> {
    let certain = ahead(code);
    // Where DWARF has a row, a guess at where the function starts is worth less.
    if code.is_described { certain } else { certain.or_else(|| from_start(code)) }
}

fn instruction(code: &Code<'_>, at: Svma) -> Option<u32> {
    code.text.from(at)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Follows the code to the function's end.
fn ahead(code: &Code<'_>) -> Option<Row> {
    let mut frame = Frame::new();
    let mut at = code.at;
    // The row as it would be if the last jump left the function.
    let mut if_tail_call = None;
    for _ in 0..MAX_AHEAD {
        let Some(word) = instruction(code, at) else { return if_tail_call };
        match decode(word) {
            Effect::Return => return frame.row_before_return(),
            Effect::JumpRegister(16 | 17) if is_stub(code, at) => {
                frame.run(pushed_by_stub(code, at));
                return frame.row_before_return();
            }
            // Else it may be a switch.
            Effect::JumpRegister(_) => {
                return if frame.is_undone { frame.row_before_return() } else { if_tail_call };
            }
            Effect::Jump(distance) => {
                if frame.is_undone && if_tail_call.is_none() {
                    if_tail_call = frame.row_before_return();
                }
                at = Svma::new(at.get().wrapping_add_signed(distance));
                continue;
            }
            Effect::Call | Effect::Trap => return if_tail_call,
            effect => frame.run(effect),
        }
        at = at.checked_add(4)?;
    }
    if_tail_call
}

/// `stp x16, x17, [sp, #-16]!` of `__stub_helper`, and `stp x16, x30, [sp, #-16]!` of the first entry of a `.plt`: what
/// they jump to takes both off again.
const STUB_PUSHES: [u32; 2] = [0xa9bf_47f0, 0xa9bf_7bf0];
/// How many instructions a stub has before its jump, at most: `__objc_stubs` have four, a `.plt`'s first entry four and
/// a landing pad.
const MAX_STUB: u64 = 6;

/// The instructions before a jump at `jump`, the nearest first, as far as they belong to a stub.
fn stub_instructions(code: &Code<'_>, jump: Svma) -> impl Iterator<Item = u32> {
    let word = move |number: u64| instruction(code, jump.checked_sub(4 * number)?);
    (1..=MAX_STUB).map_while(word).take_while(|word| is_stub_instruction(*word))
}

/// `adr`, `adrp`, `add`, `ldr`, hints, and the pushes.
fn is_stub_instruction(word: u32) -> bool {
    let to = word & 0x1f;
    let is_address = word & 0x1f00_0000 == 0x1000_0000 || word & 0xff80_0000 == 0x9100_0000;
    let is_load = word & 0xffc0_0000 == 0xf940_0000 || word & 0xbf00_0000 == 0x1800_0000;
    let is_hint = word & 0xffff_f01f == 0xd503_201f;
    ((is_address || is_load) && [1, 16, 17].contains(&to)) || is_hint || STUB_PUSHES.contains(&word)
}

/// Whether a jump at `jump` ends a stub. Hardened switches jump by `x16` too, from longer code.
fn is_stub(code: &Code<'_>, jump: Svma) -> bool {
    let mut before = stub_instructions(code, jump);
    // At least an address and a load.
    before.next().is_some() && before.next().is_some()
}

fn pushed_by_stub(code: &Code<'_>, jump: Svma) -> Effect {
    let pushes = stub_instructions(code, jump).any(|word| STUB_PUSHES.contains(&word));
    if pushes { Effect::Add { to: 31, from: 31, bytes: 16 } } else { Effect::Nothing }
}

/// Follows the code from the function's start.
fn from_start(code: &Code<'_>) -> Option<Row> {
    let start = start_of_block(code)?;
    let is_function = code.function == Some(start);
    let mut frame = Frame::new();
    let mut at = start;
    while at < code.at {
        match decode(instruction(code, at)?) {
            Effect::Call => return None,
            effect => frame.run(effect),
        }
        at = at.checked_add(4)?;
    }
    if frame.has_record() {
        return None;
    }
    let is_prologue = is_function || frame.is_made || makes_frame(code, &frame);
    if is_prologue { frame.row_after_start() } else { None }
}

/// Where the straight code that leads to `code.at` begins: the function's start, or behind the last instruction that
/// control does not pass. `None` where that is too far away.
fn start_of_block(code: &Code<'_>) -> Option<Svma> {
    let mut at = code.at;
    for _ in 0..MAX_PROLOGUE {
        if code.function == Some(at) || at == code.text.start {
            return Some(at);
        }
        let before = at.checked_sub(4)?;
        match decode(instruction(code, before)?) {
            Effect::Return | Effect::Jump(_) | Effect::JumpRegister(_) | Effect::Trap => return Some(at),
            _ => at = before,
        }
    }
    None
}

/// See [`crate::arch::needs_link`]. Of a branch, the way straight on is taken.
pub(crate) fn needs_link(code: &Code<'_>) -> bool {
    let mut at = code.at;
    for _ in 0..MAX_NEED {
        let Some(word) = instruction(code, at) else { return false };
        let distance = match decode(word) {
            Effect::Return => return true,
            Effect::Transfer(transfer) if transfer.registers.contains(&Some(LR)) => return !transfer.is_load,
            Effect::Clobber(LR) | Effect::Call | Effect::JumpRegister(_) | Effect::Trap => return false,
            Effect::Jump(distance) => distance,
            _ => 4,
        };
        at = Svma::new(at.get().wrapping_add_signed(distance));
    }
    false
}

/// Whether the code from here on saves a link register that is still the function's first.
fn makes_frame(code: &Code<'_>, frame: &Frame) -> bool {
    let mut frame = *frame;
    if !frame.keeps_link() {
        return false;
    }
    let mut at = code.at;
    for _ in 0..MAX_BEFORE {
        let Some(word) = instruction(code, at) else { return false };
        match decode(word) {
            Effect::Call | Effect::Return | Effect::Jump(_) | Effect::JumpRegister(_) | Effect::Trap => {
                return false;
            }
            effect => frame.run(effect),
        }
        if frame.has_stored_link() {
            return true;
        }
        let Some(next) = at.checked_add(4) else { return false };
        at = next;
    }
    false
}

#[cfg(test)]
mod tests;
