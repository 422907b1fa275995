//! What a conversion's walk reads of a DIE.

use super::value::{Kind, Value};
use gimli::constants as dw;

/// What a walk does with a DIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Passed over; children, if any, are walked.
    Plain,
    /// A type, a function without code and the like: nothing in it has code, as a rule.
    Closed,
    /// A function that states addresses.
    Function,
    /// An inlined call.
    Call,
}

/// What is read of a DIE, by its place in [`Fields`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Slot {
    Low,
    High,
    Ranges,
    Sibling,
    Origin,
    Specification,
    CallFile,
    CallLine,
    CallColumn,
    Name,
    LinkageName,
}

pub(super) const SLOTS: usize = 11;

impl Slot {
    pub(super) fn of(name: u16, role: Role) -> Option<Self> {
        let slot = match gimli::DwAt(name) {
            dw::DW_AT_sibling => return Some(Self::Sibling),
            _ if !matches!(role, Role::Function | Role::Call) => return None,
            dw::DW_AT_low_pc => Self::Low,
            dw::DW_AT_high_pc => Self::High,
            dw::DW_AT_ranges => Self::Ranges,
            dw::DW_AT_abstract_origin => Self::Origin,
            dw::DW_AT_specification if role == Role::Function => Self::Specification,
            _ if role == Role::Function => return None,
            dw::DW_AT_call_file => Self::CallFile,
            dw::DW_AT_call_line => Self::CallLine,
            dw::DW_AT_call_column => Self::CallColumn,
            _ => return None,
        };
        Some(slot)
    }

    pub(super) fn of_name(name: u16) -> Option<Self> {
        Some(match gimli::DwAt(name) {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => Self::LinkageName,
            dw::DW_AT_name => Self::Name,
            dw::DW_AT_abstract_origin => Self::Origin,
            dw::DW_AT_specification => Self::Specification,
            _ => return None,
        })
    }
}

/// What a walk reads of a DIE.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    pub(super) kinds: [Kind; SLOTS],
    numbers: [u64; SLOTS],
}

impl Fields {
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<Value> {
        self.kind(slot).value(self.number(slot))
    }

    #[inline]
    pub(crate) fn kind(&self, slot: Slot) -> Kind {
        self.kinds.get(slot as usize).copied().unwrap_or_default()
    }

    /// The number alone, where there is one.
    #[inline]
    pub(crate) fn number(&self, slot: Slot) -> u64 {
        self.numbers.get(slot as usize).copied().unwrap_or_default()
    }

    #[inline]
    pub(super) fn set(&mut self, slot: Slot, number: u64) {
        if let Some(field) = self.numbers.get_mut(slot as usize) {
            *field = number;
        }
    }
}
