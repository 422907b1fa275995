//! Following the code of a prologue or epilogue, one instruction at a time.

use super::effect::{Effect, LR, PC, SP, Transfer};
use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

/// The value that a register has where the code begins, plus bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BaseOffset {
    base: u8,
    offset: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// Computed from what was there at first.
    Place(BaseOffset),
    /// Loaded from memory that the code did not write.
    Loaded(BaseOffset),
    Unknown,
}

/// Words that the code stored, at most: the oldest give way.
const SLOTS: usize = 24;

/// The frame's registers and what the code stored, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    values: [Value; 16],
    slots: [Option<(BaseOffset, Value)>; SLOTS],
    next_slot: usize,
    /// Whether the stack pointer was raised.
    pub(super) is_undone: bool,
    /// Whether the stack pointer was lowered.
    pub(super) is_made: bool,
}

/// The registers that a call preserves, and that rows speak of.
const CALLEE_SAVED: core::ops::RangeInclusive<u8> = 4..=11;
/// Frame pointers: of Thumb code and Apple's, of ARM code.
const FRAME_POINTERS: [u8; 2] = [7, 11];

impl Frame {
    pub(super) fn new() -> Self {
        let mut values = [Value::Unknown; 16];
        for (base, value) in (0..).zip(&mut values) {
            *value = Value::Place(BaseOffset { base, offset: 0 });
        }
        Self { values, slots: [None; SLOTS], next_slot: 0, is_undone: false, is_made: false }
    }

    /// Follows an instruction that is no jump.
    pub(super) fn run(&mut self, effect: Effect) {
        match effect {
            Effect::Move { to, from, bytes } => {
                let value = self.place(from, bytes).map_or(Value::Unknown, Value::Place);
                if to == SP {
                    self.note_move(self.value(SP), value);
                }
                self.set(to, value);
            }
            Effect::Transfer(transfer) => self.transfer(&transfer),
            Effect::Clobber(set) => {
                for register in (0..16).filter(|register| set & (1 << register) != 0) {
                    self.set(register, Value::Unknown);
                }
            }
            _ => {}
        }
    }

    fn value(&self, register: u8) -> Value {
        self.values.get(usize::from(register)).copied().unwrap_or(Value::Unknown)
    }

    fn set(&mut self, register: u8, value: Value) {
        if let Some(place) = self.values.get_mut(usize::from(register)) {
            *place = value;
        }
    }

    /// `register + bytes`, where the register was computed.
    fn place(&self, register: u8, bytes: i64) -> Option<BaseOffset> {
        match self.value(register) {
            Value::Place(place) => Some(BaseOffset { offset: place.offset.checked_add(bytes)?, ..place }),
            _ => None,
        }
    }

    fn note_move(&mut self, before: Value, after: Value) {
        match (before, after) {
            (Value::Place(before), Value::Place(after)) if before.base == after.base => {
                self.is_undone |= after.offset > before.offset;
                self.is_made |= after.offset < before.offset;
            }
            _ => self.is_undone = true,
        }
    }

    fn transfer(&mut self, transfer: &Transfer) {
        let base = transfer.base;
        let registers = (0..16).filter(|register| transfer.set & (1 << register) != 0);
        // The base stays in use until all are moved, and may be one of them.
        let after = self.place(base, transfer.writeback).map_or(Value::Unknown, Value::Place);
        let first = self.place(base, transfer.offset);
        for (number, register) in (0..).zip(registers) {
            let place = first.map(|first| BaseOffset { offset: first.offset + 4 * number, ..first });
            if transfer.is_load {
                let value = place.map_or(Value::Unknown, |place| self.load(place));
                if register == SP {
                    self.is_undone = true;
                }
                self.set(register, value);
            } else if let Some(place) = place {
                self.store(place, self.value(register));
            }
        }
        let is_loaded = transfer.is_load && transfer.set & (1 << base) != 0;
        if transfer.writeback != 0 && !is_loaded {
            if base == SP {
                self.note_move(self.value(SP), after);
            }
            self.set(base, after);
        }
    }

    fn load(&self, place: BaseOffset) -> Value {
        let stored = self.slots.iter().flatten().find(|(at, _)| *at == place);
        stored.map_or(Value::Loaded(place), |(_, value)| *value)
    }

    fn store(&mut self, place: BaseOffset, value: Value) {
        if let Some(slot) = self.slots.iter_mut().flatten().find(|(at, _)| *at == place) {
            slot.1 = value;
            return;
        }
        if let Some(slot) = self.slots.get_mut(self.next_slot % SLOTS) {
            *slot = Some((place, value));
        }
        self.next_slot += 1;
    }

    fn is_kept(&self, register: u8) -> bool {
        self.value(register) == Value::Place(BaseOffset { base: register, offset: 0 })
    }

    /// Where the code stored a register's first value.
    fn stored(&self, register: u8) -> Option<BaseOffset> {
        let first = Value::Place(BaseOffset { base: register, offset: 0 });
        self.slots.iter().flatten().find(|(_, value)| *value == first).map(|(place, _)| *place)
    }

    /// Whether the link register still has its first value.
    pub(super) fn keeps_link(&self) -> bool {
        self.is_kept(LR)
    }

    /// Whether the link register's first value was pushed.
    pub(super) fn has_stored_link(&self) -> bool {
        self.stored(LR).is_some_and(|place| place.base == SP && place.offset < 0)
    }

    /// The row where the code ends, if it began where the function did.
    pub(super) fn row_after_start(&self) -> Option<Row> {
        let by_sp = |register: u8| match self.value(register) {
            Value::Place(BaseOffset { base: SP, offset }) if offset <= 0 => Some((register, offset)),
            _ => None,
        };
        let (register, offset) = by_sp(SP).or_else(|| FRAME_POINTERS.into_iter().find_map(by_sp))?;
        // What lies below the stack pointer is gone.
        let lowest = if register == SP { offset } else { i64::MIN };
        let rule = |register: u8| match self.stored(register) {
            Some(BaseOffset { base: SP, offset }) if offset >= lowest => {
                i32::try_from(offset).ok().map(Rule::Offset)
            }
            _ if self.is_kept(register) => Some(Rule::Same),
            _ => Some(Rule::Undefined),
        };
        let cfa = Cfa::RegisterOffset(Register(register), i32::try_from(offset.checked_neg()?).ok()?);
        with_rules(cfa, rule, rule(LR)?)
    }

    /// The row where the code ends, if `body` holds where it begins.
    pub(super) fn row_after_body(&self, body: &Row) -> Option<Row> {
        let Cfa::RegisterOffset(Register(base), above) = body.cfa else { return None };
        let Value::Place(BaseOffset { base: from, offset }) = self.value(SP) else { return None };
        let Rule::Offset(link) = body.return_address else { return None };
        if from != base {
            return None;
        }
        let cfa = i32::try_from(i64::from(above).checked_sub(offset)?).ok()?;
        let was_loaded = |register: u8, at: i32| {
            let offset = i64::from(above) + i64::from(at);
            self.value(register) == Value::Loaded(BaseOffset { base, offset })
        };
        let in_link = was_loaded(LR, link);
        let link = if in_link { Rule::Register(Register(LR)) } else { Rule::Offset(link) };
        let mut row = Row::new(Cfa::RegisterOffset(Register(SP), cfa), link);
        for (register, rule) in body.rules().filter(|(register, _)| register.0 < PC) {
            match rule {
                Rule::Offset(at) if was_loaded(register.0, at) => {}
                rule => row.set(register, rule),
            }
        }
        Some(row)
    }

    /// The row where the code begins, if it ends with a jump by `register` out of the function.
    pub(super) fn row_before_jump(&self, register: u8) -> Option<Row> {
        let Value::Place(end) = self.value(SP) else { return None };
        if end.base == SP && end.offset < 0 {
            return None;
        }
        let rule_of = |value: Value, register: u8| match value {
            Value::Loaded(place) if place.base == end.base => {
                i32::try_from(place.offset.checked_sub(end.offset)?).ok().map(Rule::Offset)
            }
            Value::Place(place) if place == BaseOffset { base: register, offset: 0 } => Some(Rule::Same),
            _ => Some(Rule::Undefined),
        };
        let rule = |register: u8| rule_of(self.value(register), register);
        let cfa = Cfa::RegisterOffset(Register(end.base), i32::try_from(end.offset).ok()?);
        // By whichever register it goes back: it must be what the link register was at first.
        let link = rule_of(self.value(register), LR)?;
        with_rules(cfa, rule, link)
    }
}

/// A row of the callee-saved registers' rules and the link register's.
fn with_rules(cfa: Cfa, rule: impl Fn(u8) -> Option<Rule>, link: Rule) -> Option<Row> {
    let return_address = match link {
        Rule::Same => Rule::Register(Register(LR)),
        Rule::Undefined => return None,
        saved => saved,
    };
    let mut row = Row::new(cfa, return_address);
    if let saved @ Rule::Offset(_) = return_address {
        row.set(Register(LR), saved);
    }
    for register in CALLEE_SAVED {
        match rule(register)? {
            Rule::Same => {}
            rule => row.set(Register(register), rule),
        }
    }
    debug_assert!(usize::from(PC) < 16);
    Some(row)
}
