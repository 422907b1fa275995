//! Following the code of a prologue or epilogue, one instruction at a time.

use super::instruction::{Effect, FP, LR, SP, Transfer};
use crate::row::{Cfa, Row, Rule};
use backtrail_core::Register;

/// What values are counted from: the registers as they are where the code begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    Sp,
    Fp,
}

/// A base and a distance from it, in bytes.
type BaseOffset = (Base, i64);

/// A register on the stack.
#[derive(Clone, Copy, Debug)]
struct Spill {
    place: BaseOffset,
    is_kept: bool,
    loaded: Option<BaseOffset>,
}

/// The frame's registers, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    sp: Option<BaseOffset>,
    fp: Option<BaseOffset>,
    /// Whether each register still has the value that it had where the code begins, by number.
    is_kept: [bool; 31],
    /// Where such a value was stored, by number.
    stored: [Option<BaseOffset>; 31],
    /// Where a value was loaded from last, by number.
    loaded: [Option<BaseOffset>; 31],
    /// The last store of each register, and what it stored: a later load from there gives that back.
    spilled: [Option<Spill>; 31],
    /// Whether the stack pointer was raised: the end of a frame. (Loading the link register is none: long functions use
    /// it for whatever they need.)
    pub(super) is_undone: bool,
    /// Whether anything of a frame was made.
    pub(super) is_made: bool,
}

fn is_below(place: Option<BaseOffset>) -> bool {
    matches!(place, Some((Base::Sp, at)) if at < 0)
}

impl Frame {
    pub(super) fn new() -> Self {
        Self {
            sp: Some((Base::Sp, 0)),
            fp: Some((Base::Fp, 0)),
            is_kept: [true; 31],
            stored: [None; 31],
            loaded: [None; 31],
            spilled: [None; 31],
            is_undone: false,
            is_made: false,
        }
    }

    /// Follows an instruction that is no branch.
    pub(super) fn run(&mut self, effect: Effect) {
        match effect {
            Effect::Add { to, from, bytes } => {
                let place =
                    self.value(from).and_then(|(base, offset)| Some((base, offset.checked_add(bytes)?)));
                self.set(to, place);
                if to == SP {
                    self.is_undone |= from == FP || bytes > 0;
                    self.is_made |= from == SP && bytes < 0;
                }
            }
            Effect::Transfer(transfer) => self.transfer(&transfer),
            Effect::Clobber(register) => self.set(register, None),
            _ => {}
        }
    }

    fn value(&self, register: u8) -> Option<BaseOffset> {
        if register == SP { self.sp } else { self.fp }
    }

    fn set(&mut self, register: u8, place: Option<BaseOffset>) {
        match register {
            SP => self.sp = place,
            FP => {
                self.fp = place;
                self.forget(FP);
            }
            other => self.forget(other),
        }
    }

    fn forget(&mut self, register: u8) {
        if let Some(is_kept) = self.is_kept.get_mut(usize::from(register)) {
            *is_kept = false;
        }
        if let Some(loaded) = self.loaded.get_mut(usize::from(register)) {
            *loaded = None;
        }
    }

    fn transfer(&mut self, transfer: &Transfer) {
        let base = self.value(transfer.base);
        let writes_base = transfer.writeback != 0;
        for (number, place) in (0..).zip(transfer.registers) {
            let Some(register) = place.filter(|register| usize::from(*register) < self.is_kept.len()) else {
                continue;
            };
            let place = base.and_then(|(base, at)| {
                Some((base, at.checked_add(transfer.offset)?.checked_add(8 * number)?))
            });
            if transfer.is_load {
                self.load(register, place);
            } else {
                self.store(register, place);
            }
        }
        if writes_base {
            let moved = base.and_then(|(base, at)| Some((base, at.checked_add(transfer.writeback)?)));
            self.set(transfer.base, moved);
            self.is_undone |= transfer.is_load && transfer.writeback > 0;
            self.is_made |= !transfer.is_load && transfer.writeback < 0;
        }
    }

    fn load(&mut self, register: u8, place: Option<BaseOffset>) {
        let index = usize::from(register);
        let spill = self.spilled.get(index).copied().flatten().filter(|spill| Some(spill.place) == place);
        self.set(register, None);
        if let (Some(is_kept), Some(loaded)) = (self.is_kept.get_mut(index), self.loaded.get_mut(index)) {
            match spill {
                Some(spill) => (*is_kept, *loaded) = (spill.is_kept, spill.loaded),
                None => *loaded = place,
            }
        }
        if register == FP && self.is_kept(FP) {
            self.fp = Some((Base::Fp, 0));
        }
    }

    fn store(&mut self, register: u8, place: Option<BaseOffset>) {
        let index = usize::from(register);
        let is_kept = self.is_kept(register);
        let loaded = self.loaded.get(index).copied().flatten();
        if let Some(spilled) = self.spilled.get_mut(index) {
            *spilled = place.map(|place| Spill { place, is_kept, loaded });
        }
        if let Some(stored) = self.stored.get_mut(index).filter(|_| is_kept) {
            *stored = stored.or(place);
        }
        self.is_made |= register == LR && is_kept && is_below(place);
    }

    fn is_kept(&self, register: u8) -> bool {
        self.is_kept.get(usize::from(register)) == Some(&true)
    }

    /// Whether the frame pointer leads to a whole frame record: the body of a function that keeps one.
    pub(super) fn has_record(&self) -> bool {
        let stored = |register: u8| self.stored.get(usize::from(register)).copied().flatten();
        match (self.fp, stored(FP), stored(LR)) {
            (Some(fp @ (Base::Sp, at)), Some(record), Some((Base::Sp, link))) => {
                fp == record && link == at + 8
            }
            _ => false,
        }
    }

    /// Whether the link register's first value went to the stack, below all that was there: a body may store the return
    /// address into its frame once more (`dlmopen` does), a prologue makes room first.
    pub(super) fn has_stored_link(&self) -> bool {
        self.stored.get(usize::from(LR)).is_some_and(|place| is_below(*place))
    }

    /// Whether the link register still has its first value.
    pub(super) fn keeps_link(&self) -> bool {
        self.is_kept(LR)
    }

    /// The row where the code ends, if it began where the function did.
    pub(super) fn row_after_start(&self) -> Option<Row> {
        let (register, distance) = match (self.sp, self.fp) {
            (Some((Base::Sp, at)), _) => (SP, at.checked_neg()?),
            (_, Some((Base::Sp, at))) => (FP, at.checked_neg()?),
            _ => return None,
        };
        if distance < 0 {
            return None;
        }
        // What lies below the stack pointer is gone; then the register has been loaded again.
        let is_gone = |at: i64| matches!(self.sp, Some((Base::Sp, sp)) if at < sp);
        let rule = |register: u8| match self.stored.get(usize::from(register)).copied().flatten() {
            Some((Base::Sp, at)) if !is_gone(at) => Some(Rule::Offset(i32::try_from(at).ok()?)),
            _ if self.is_kept(register) => Some(Rule::Same),
            Some((Base::Fp, _)) => None,
            _ => Some(Rule::Undefined),
        };
        let return_address = match rule(LR)? {
            Rule::Same => Rule::Register(Register(LR)),
            Rule::Undefined => return None,
            saved => saved,
        };
        let cfa = Cfa::RegisterOffset(Register(register), i32::try_from(distance).ok()?);
        self.with_rules(Row::new(cfa, return_address), rule)
    }

    /// The row where the code begins, if it ends where the function returns.
    pub(super) fn row_before_return(&self) -> Option<Row> {
        let (base, end) = self.sp?;
        if base == Base::Sp && end < 0 {
            return None;
        }
        let rule = |register: u8| match self.loaded.get(usize::from(register)).copied().flatten() {
            Some((from, at)) if from == base => Some(Rule::Offset(i32::try_from(at.checked_sub(end)?).ok()?)),
            Some(_) => Some(Rule::Undefined),
            None if self.is_kept(register) => Some(Rule::Same),
            None => Some(Rule::Undefined),
        };
        let return_address = match rule(LR)? {
            Rule::Same => Rule::Register(Register(LR)),
            Rule::Undefined => return None,
            saved => saved,
        };
        let register = if base == Base::Sp { SP } else { FP };
        let cfa = Cfa::RegisterOffset(Register(register), i32::try_from(end).ok()?);
        self.with_rules(Row::new(cfa, return_address), rule)
    }

    /// The callee-saved registers' rules.
    fn with_rules(&self, mut row: Row, rule: impl Fn(u8) -> Option<Rule>) -> Option<Row> {
        for register in 19..=LR {
            match rule(register)? {
                Rule::Same => {}
                rule => row.set(Register(register), rule),
            }
        }
        Some(row)
    }
}
