//! Prologues, epilogues and stubs of 32-bit ARM, in both instruction sets. The ways are those of 64-bit ARM
//! ([`crate::aarch64`]): ahead to where the function returns, and from its start.
//!
//! Thumb code cannot be read backwards. Where the function's start is not known, the code is read from the start of
//! the table's entry, which may be an earlier function's.

use super::a32::{self, PLT_PUSH};
use super::effect::{Effect, LR, MEMORY, PC, SP, Transfer};
use super::frame::Frame;
use super::frame_setup;
use super::sweep::{Reader, Sweep};
use crate::code::Code;
use crate::read;
use crate::row::{Cfa, Row, Rule};
use backtrail_core::{Register, Svma};

/// How many instructions are followed to the end of a function.
const MAX_AHEAD: usize = 64;
/// How many instructions a prologue may have, with what the compiler puts in between.
const MAX_PROLOGUE: u64 = 64;
/// How many instructions of a prologue that has not begun are looked at.
const MAX_BEFORE: usize = 16;
/// How many instructions are followed to see whether the link register is needed.
const MAX_NEED: usize = 256;
/// How many instructions are read in search of where the function at hand begins.
const MAX_SWEEP: usize = 4096;

/// `r0` to `r3`, `r12`, `lr`.
const CHANGED_BY_CALLS: u16 = 0x500f;

/// See [`crate::arch::analyse`].
pub(crate) fn analyse(code: &Code<'_>, body: Option<&Row>) -> Option<Row> {
    let reader = Reader { code, thumb: code.thumb || is_thumb(code) };
    let certain = ahead(&reader);
    if code.is_described {
        return certain;
    }
    let known = certain.or_else(|| from_start(&reader)).or_else(|| from_body(&reader, body?));
    known.or_else(|| frame_setup::before_frame(&reader).map(|()| link_row()))
}

/// Nothing was done yet: the caller is where the link register says.
fn link_row() -> Row {
    Row::new(Cfa::RegisterOffset(Register(SP), 0), Rule::Register(Register(LR)))
}

/// Words looked at to tell the instruction sets apart, on each side.
const SAMPLE: usize = 8;

/// Whether the code is Thumb where its address does not tell. Of ARM instructions at least every other is
/// unconditional (in tight loops every third), and begins with the digit e; of pairs of Thumb instructions every twelfth
/// does. NEON's loads and stores begin with f4 and may fill a whole `memcpy`. Where fewer are unconditional the others have
/// one condition, and so one digit, as all of glibc's `memset` for long stretches.
fn is_thumb(code: &Code<'_>) -> bool {
    if !code.at.get().is_multiple_of(4) {
        return true;
    }
    let is_always = |word: &[u8; 4]| {
        let word = u32::from_le_bytes(*word);
        word >> 28 == 0xe || word & 0xff10_0000 == 0xf400_0000
    };
    let ends = |word: &[u8; 4]| is_always(word) && ends_block(a32::decode(u32::from_le_bytes(*word)));
    let (ahead, _) = code.ahead().as_chunks::<4>();
    // Constants follow the end of a function.
    let end = ahead.iter().take(SAMPLE).position(ends).map_or(SAMPLE, |last| last + 1);
    let before = code.text.up_to(code.at).unwrap_or_default();
    let (_, before) = before.as_rchunks::<4>();
    let sample = ahead.iter().take(end).chain(before.iter().rev().take(SAMPLE));
    let always = sample.clone().filter(|word| is_always(word)).count();
    let count = sample.clone().count();
    let alike = |digit: u8| sample.clone().filter(|word| !is_always(word) && word[3] >> 4 == digit).count();
    let alike = (0..14).map(alike).max().unwrap_or(0);
    let is_one_condition = count >= SAMPLE && 6 * (always + alike) >= 5 * count;
    7 * always < 2 * count && !is_one_condition
}

fn loads_pc(transfer: &Transfer) -> bool {
    transfer.is_load && transfer.set & (1 << PC) != 0
}

/// Follows the code to the function's end.
fn ahead(reader: &Reader<'_, '_>) -> Option<Row> {
    let mut frame = Frame::new();
    let mut sweep = Sweep::new(reader, reader.code.at);
    // The row as it would be if the last jump left the function.
    let mut if_tail_call = None;
    for _ in 0..MAX_AHEAD {
        let Some((at, effect)) = sweep.next() else { return if_tail_call };
        match effect {
            Effect::JumpRegister(LR) => return frame.row_before_jump(LR),
            Effect::JumpRegister(register) if register != MEMORY && frame.is_undone => {
                return frame.row_before_jump(LR);
            }
            Effect::JumpRegister(_) | Effect::Call | Effect::Trap => return if_tail_call,
            Effect::Transfer(transfer) if loads_pc(&transfer) && transfer.base != SP => {
                return through_memory(reader, frame, at, &transfer).or(if_tail_call);
            }
            Effect::Transfer(transfer) if loads_pc(&transfer) => {
                frame.run(effect);
                return frame.row_before_jump(PC);
            }
            Effect::Jump(distance) => {
                if frame.is_undone && if_tail_call.is_none() {
                    if_tail_call = frame.row_before_jump(LR);
                }
                sweep.at = Svma::new(at.get().wrapping_add_signed(distance));
            }
            effect => frame.run(effect),
        }
    }
    if_tail_call
}

/// A jump to a loaded address by `r12` ends an entry of a `.plt`, one by `lr` the first entry, which has pushed `lr`.
/// Others are switches, but for what comes back by `ldm fp, {fp, sp, pc}`.
fn through_memory(reader: &Reader<'_, '_>, mut frame: Frame, at: Svma, transfer: &Transfer) -> Option<Row> {
    const IP: u8 = 12;
    if transfer.set & (1 << SP) != 0 {
        frame.run(Effect::Transfer(*transfer));
        return frame.row_before_jump(PC);
    }
    match transfer.base {
        IP => frame.row_before_jump(LR),
        LR if !reader.thumb => {
            let word = |back: u64| read::word(reader.code.text, at.checked_sub(back)?);
            let push = (1..=4).find(|back| word(4 * back) == Some(PLT_PUSH))?;
            let is_pushed = at.checked_sub(4 * push)? < reader.code.at;
            let lr = Transfer { is_load: true, set: 1 << LR, base: SP, offset: 0, writeback: 4 };
            // What the entry itself did to `lr` comes after the push.
            let mut after = if is_pushed { frame } else { Frame::new() };
            if is_pushed {
                after.run(Effect::Transfer(lr));
            }
            after.row_before_jump(LR)
        }
        _ => None,
    }
}

/// Follows the code from the function's start.
fn from_start(reader: &Reader<'_, '_>) -> Option<Row> {
    let code = reader.code;
    let (start, mut frame) = (start_of_block(reader)?, Frame::new());
    let mut sweep = Sweep::new(reader, start);
    while sweep.at < code.at {
        match sweep.next()?.1 {
            // What a call leaves of the frame is what the function made of it; so it goes to a tail call whose frame was
            // undone, in functions without a jump before that.
            Effect::Call => frame.run(Effect::Clobber(CHANGED_BY_CALLS)),
            effect if ends_block(effect) => return None,
            effect => {
                if saves_link(&effect) && is_untouched(&frame) {
                    frame = Frame::new();
                }
                frame.run(effect);
            }
        }
    }
    if sweep.at != code.at {
        return None;
    }
    let goes_on = makes_frame(reader, &frame);
    if goes_on && is_untouched(&frame) {
        frame = Frame::new();
    }
    // Behind the last push the table knows as much.
    let is_prologue = goes_on || frame.keeps_link();
    let is_start = code.function == Some(start) || frame.is_made || goes_on;
    if is_prologue && is_start { frame.row_after_start() } else { None }
}

fn saves_link(effect: &Effect) -> bool {
    matches!(effect, Effect::Transfer(transfer) if !transfer.is_load && transfer.set & (1 << LR) != 0)
}

/// Whether nothing has been saved yet, so that no register has changed that has to be. What was read as changing one were
/// constants in front of the function.
fn is_untouched(frame: &Frame) -> bool {
    !frame.is_made && frame.keeps_link()
}

/// Follows the code from a jump's target in the function's body, where the table's row holds: behind
/// `ldm sp!, {r4, lr}`, with which compilers undo a frame some instructions before a tail call.
fn from_body(reader: &Reader<'_, '_>, body: &Row) -> Option<Row> {
    let start = start_of_block(reader)?;
    if reader.code.function == Some(start) {
        return None;
    }
    let mut frame = Frame::new();
    let mut sweep = Sweep::new(reader, start);
    while sweep.at < reader.code.at {
        match sweep.next()?.1 {
            Effect::Call => frame.run(Effect::Clobber(CHANGED_BY_CALLS)),
            effect if ends_block(effect) => return None,
            effect => frame.run(effect),
        }
    }
    let is_there = sweep.at == reader.code.at && frame.is_undone;
    if is_there { frame.row_after_body(body) } else { None }
}

/// Where the straight code that leads to the address begins; `None` where that is too far away.
fn start_of_block(reader: &Reader<'_, '_>) -> Option<Svma> {
    if reader.thumb { start_by_reading(reader) } else { start_by_going_back(reader) }
}

fn ends_block(effect: Effect) -> bool {
    match effect {
        Effect::Jump(_) | Effect::JumpRegister(_) | Effect::Trap => true,
        Effect::Transfer(transfer) => loads_pc(&transfer),
        _ => false,
    }
}

fn start_by_going_back(reader: &Reader<'_, '_>) -> Option<Svma> {
    let mut at = reader.code.at;
    for _ in 0..MAX_PROLOGUE {
        if reader.code.function == Some(at) || at == reader.code.text.start {
            return Some(at);
        }
        let before = at.checked_sub(4)?;
        if ends_block(reader.at(before)?.0) {
            return Some(at);
        }
        at = before;
    }
    None
}

fn start_by_reading(reader: &Reader<'_, '_>) -> Option<Svma> {
    let mut start = reader.code.function?;
    let mut sweep = Sweep::new(reader, start);
    for _ in 0..MAX_SWEEP {
        if sweep.at >= reader.code.at {
            let is_near = reader.code.at.offset_from(start).is_some_and(|bytes| bytes <= 4 * MAX_PROLOGUE);
            return (sweep.at == reader.code.at && is_near).then_some(start);
        }
        if ends_block(sweep.next()?.1) {
            start = sweep.at;
        }
    }
    None
}

/// See [`crate::arch::needs_link`]. Of a branch, the way straight on is taken.
pub(crate) fn needs_link(code: &Code<'_>) -> bool {
    let reader = Reader { code, thumb: code.thumb || is_thumb(code) };
    let mut sweep = Sweep::new(&reader, code.at);
    for _ in 0..MAX_NEED {
        let Some((at, effect)) = sweep.next() else { return false };
        match effect {
            Effect::JumpRegister(register) => return register == LR,
            Effect::Transfer(transfer) if transfer.set & (1 << LR) != 0 => return !transfer.is_load,
            Effect::Transfer(transfer) if loads_pc(&transfer) => return false,
            Effect::Clobber(set) if set & (1 << LR) != 0 => return false,
            Effect::Move { to: LR, .. } | Effect::Call | Effect::Trap => return false,
            Effect::Jump(distance) => sweep.at = Svma::new(at.get().wrapping_add_signed(distance)),
            _ => {}
        }
    }
    false
}

/// Whether the code from here on saves a link register that is still the function's first.
fn makes_frame(reader: &Reader<'_, '_>, frame: &Frame) -> bool {
    let mut frame = *frame;
    if !frame.keeps_link() {
        return false;
    }
    let had_stored = frame.has_stored_link();
    let mut sweep = Sweep::new(reader, reader.code.at);
    for _ in 0..MAX_BEFORE {
        let Some((_, effect)) = sweep.next() else { return false };
        if ends_block(effect) || effect == Effect::Call {
            return false;
        }
        frame.is_made = false;
        frame.run(effect);
        if frame.is_made && (had_stored || frame.has_stored_link()) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests;
