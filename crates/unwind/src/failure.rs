//! Why a step outwards cannot be made.

use crate::ExpressionError;
use crate::row::Malformed;
use backtrail_core::{Avma, Family, Register, Unreadable};
use core::fmt;

/// Why a walk could not go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A register that the rules need is not known.
    MissingRegister(Register, Family),
    /// The address is in no image and nothing else leads on.
    NotInImage(Avma),
    /// The image's tables say nothing about the address and nothing else leads on.
    NoRules(Avma),
    /// A table's entry for the frame breaks its format.
    Malformed(Malformed),
    /// A DWARF expression could not be evaluated.
    Expression(ExpressionError),
    /// A place where the rules look lies in memory that cannot be read.
    Unreadable(Unreadable),
    /// The return address lies where no code is.
    NotCode(Avma),
    /// No call precedes the return address, though code of its kind is only ever called.
    NotCalled(Avma),
    /// No unwind information, and the next caller may be at this address: its code is missing, so nothing tells.
    MissingCode(Avma),
    /// No table says how to go on from this address, and what a scan of the stack finds is confirmed by nothing.
    NothingCertain(Avma),
    /// The caller's stack pointer would be this, no further out than the frame's own.
    NotAdvancing(Avma),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingRegister(register, family) => {
                write!(
                    f,
                    "register {} is not known",
                    family.register_name(*register).unwrap_or("of another kind")
                )
            }
            Self::NotInImage(at) => write!(f, "{at} is in no image"),
            Self::NoRules(at) => write!(f, "no unwind information for {at}"),
            Self::Malformed(malformed) => write!(f, "broken unwind information at {malformed}"),
            Self::Expression(why) => write!(f, "the frame's expression has no value: {why}"),
            Self::Unreadable(why) => why.fmt(f),
            Self::NotCode(at) => write!(f, "the return address {at} is not in code"),
            Self::NotCalled(at) => write!(f, "no call precedes the return address {at}"),
            Self::MissingCode(at) => write!(f, "the caller may be {at}, but that code is missing"),
            Self::NothingCertain(at) => {
                write!(
                    f,
                    "no unwind information for {at}, and nothing on the stack is certain to be its caller"
                )
            }
            Self::NotAdvancing(at) => write!(f, "the stack does not go on: its pointer would be {at}"),
        }
    }
}
