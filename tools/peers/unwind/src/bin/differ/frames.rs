//! framehop as an independent reading: the caller that it finds from made-up registers and a made-up stack.
//!
//! The stack holds at each place a number that tells the place, so that the same number means the same place.

use crate::tables::Tables;
use backtrail_core::{Arch, Family, Register};
use backtrail_unwind::{Cfa, Row, Rule};
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, Unwinder};

pub const SP: u64 = 0x20_0000_0000;
const STACK: std::ops::Range<u64> = SP - 0x1000..SP + 0x400_0000;
pub const LR: u64 = 0x30_0000_0040;

/// What lies at a place on the stack: enough above it to be a frame pointer that goes on, and no two alike.
pub fn word(at: u64) -> Result<u64, ()> {
    if STACK.contains(&at) { Ok(at + 0x100_0000) } else { Err(()) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    Caller { address: u64, sp: u64, fp: u64 },
    End,
    None,
}

/// The caller by a row; `None` where the row needs what this program does not have (expressions).
pub fn apply(row: &Row, family: Family, fp: u64) -> Option<Answer> {
    let value = |register: Register| match register {
        it if it == family.sp() => Some(SP),
        it if it == family.fp() => Some(fp),
        it if Some(it) == family.lr() => Some(LR),
        _ => None,
    };
    let Cfa::RegisterOffset(register, offset) = row.cfa else { return None };
    let cfa = value(register)?.wrapping_add_signed(offset.into());
    let rule = |rule: Rule, register| match rule {
        Rule::Same => value(register),
        Rule::Undefined => Some(0),
        Rule::Offset(at) => word(cfa.wrapping_add_signed(at.into())).ok(),
        Rule::ValueOffset(at) => Some(cfa.wrapping_add_signed(at.into())),
        Rule::Register(from) => value(from),
        Rule::Expression(_) | Rule::ValueExpression(_) => None,
    };
    if row.return_address == Rule::Undefined {
        return Some(Answer::End);
    }
    Some(Answer::Caller {
        address: rule(row.return_address, family.pc())?,
        sp: cfa,
        fp: rule(row.rule(family.fp()), family.fp())?,
    })
}

pub enum Theirs {
    X86_64(UnwinderX86_64<&'static [u8]>, CacheX86_64),
    Aarch64(UnwinderAarch64<&'static [u8]>, CacheAarch64),
}

impl Theirs {
    pub fn new(tables: &Tables) -> Self {
        if tables.arch == Arch::X86_64 {
            let mut unwinder = UnwinderX86_64::new();
            unwinder.add_module(tables.theirs());
            Self::X86_64(unwinder, CacheX86_64::new())
        } else {
            let mut unwinder = UnwinderAarch64::new();
            unwinder.add_module(tables.theirs());
            Self::Aarch64(unwinder, CacheAarch64::new())
        }
    }

    pub fn answer(&mut self, at: u64, fp: u64) -> Answer {
        let Some(address) = FrameAddress::from_return_address(at + 1) else { return Answer::None };
        let (found, sp, fp) = match self {
            Self::X86_64(unwinder, cache) => {
                let mut registers = UnwindRegsX86_64::new(at + 1, SP, fp);
                let found = unwinder.unwind_frame(address, &mut registers, cache, &mut word);
                (found, registers.sp(), registers.bp())
            }
            Self::Aarch64(unwinder, cache) => {
                let mut registers = UnwindRegsAarch64::new(LR, SP, fp);
                let found = unwinder.unwind_frame(address, &mut registers, cache, &mut word);
                (found, registers.sp(), registers.fp())
            }
        };
        match found {
            Ok(Some(address)) => Answer::Caller { address, sp, fp },
            Ok(None) => Answer::End,
            Err(_) => Answer::None,
        }
    }
}
