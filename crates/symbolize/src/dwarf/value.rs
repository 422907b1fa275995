//! Attribute values, read without yet following what they point at.

use super::reader::Encoding;
use gimli::constants as dw;

/// What an attribute holds. Offsets are as the form states them; [`View`](super::view::View) resolves them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Value {
    /// An address.
    Address(u64),
    /// An index into the unit's part of `.debug_addr`.
    AddressIndex(u64),
    /// A constant, or before DWARF 4 an offset into another section.
    Unsigned(u64),
    /// A signed constant.
    Signed(i64),
    /// An offset into another section.
    SectionOffset(u64),
    /// An index into the unit's offsets of `.debug_rnglists`.
    RangeListIndex(u64),
    /// A DIE by its offset from the unit's start.
    UnitRef(u64),
    /// A DIE by its section offset.
    InfoRef(u64),
    /// A DIE of the supplementary file by its section offset.
    SupRef(u64),
    /// A type unit's signature.
    Signature(u64),
    /// A string right here: its offset in the section that is being read.
    InlineString(u64),
    /// An offset into `.debug_str`.
    Str(u64),
    /// An offset into `.debug_line_str`.
    LineStr(u64),
    /// An index into the unit's part of `.debug_str_offsets`.
    StrIndex(u64),
    /// An offset into the supplementary file's `.debug_str`.
    SupStr(u64),
    /// Yes or no.
    Flag(bool),
    /// Bytes of a block or expression, of no interest here.
    Block,
}

impl Value {
    /// The value as a number that cannot be negative.
    pub(crate) fn unsigned(self) -> Option<u64> {
        match self {
            Self::Unsigned(value) | Self::SectionOffset(value) => Some(value),
            Self::Signed(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// The value as an offset into another section; DWARF 2 and 3 write those as plain constants.
    pub(crate) fn section_offset(self) -> Option<u64> {
        match self {
            Self::SectionOffset(value) | Self::Unsigned(value) => Some(value),
            _ => None,
        }
    }
}

/// What a DIE states about its addresses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pcs {
    pub(crate) low: Option<Value>,
    pub(crate) high: Option<Value>,
    pub(crate) ranges: Option<Value>,
}

impl Pcs {
    /// Whether there are addresses at all.
    pub(crate) fn is_some(&self) -> bool {
        self.ranges.is_some() || (self.low.is_some() && self.high.is_some())
    }
}

/// What a value is, apart from its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    /// There is no value.
    #[default]
    None,
    Address,
    AddressIndex,
    Unsigned,
    Signed,
    SectionOffset,
    RangeListIndex,
    UnitRef,
    InfoRef,
    SupRef,
    Signature,
    InlineString,
    Str,
    LineStr,
    StrIndex,
    SupStr,
    Flag,
    Block,
}

impl Kind {
    /// The value of this kind with a number.
    #[inline]
    pub(crate) fn value(self, number: u64) -> Option<Value> {
        Some(match self {
            Self::None => return None,
            Self::Address => Value::Address(number),
            Self::AddressIndex => Value::AddressIndex(number),
            Self::Unsigned => Value::Unsigned(number),
            Self::Signed => Value::Signed(number.cast_signed()),
            Self::SectionOffset => Value::SectionOffset(number),
            Self::RangeListIndex => Value::RangeListIndex(number),
            Self::UnitRef => Value::UnitRef(number),
            Self::InfoRef => Value::InfoRef(number),
            Self::SupRef => Value::SupRef(number),
            Self::Signature => Value::Signature(number),
            Self::InlineString => Value::InlineString(number),
            Self::Str => Value::Str(number),
            Self::LineStr => Value::LineStr(number),
            Self::StrIndex => Value::StrIndex(number),
            Self::SupStr => Value::SupStr(number),
            Self::Flag => Value::Flag(number != 0),
            Self::Block => Value::Block,
        })
    }
}

/// How the bytes of a form are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Layout {
    /// A number of so many bytes.
    Bytes(u8),
    Uleb,
    Sleb,
    /// No bytes: the number is this one.
    Fixed(u64),
    /// No bytes: the number stands in the abbreviation.
    Constant,
    /// A string, whose number is the place where it starts.
    String,
    /// The form stands before the value.
    Indirect,
    /// Bytes of no interest.
    Other,
}

/// What values of a form are and how they are read: a flat table of DWARF 5 section 7.5.6, GNU's split DWARF and dwz
/// forms.
pub(crate) fn layout(form: u16, encoding: Encoding) -> (Kind, Layout) {
    use Layout::{Bytes, Constant, Fixed, Indirect, Sleb, String, Uleb};
    let offset = Bytes(encoding.offset_size);
    match gimli::DwForm(form) {
        dw::DW_FORM_addr => (Kind::Address, Bytes(encoding.address_size)),
        dw::DW_FORM_addrx | dw::DW_FORM_GNU_addr_index => (Kind::AddressIndex, Uleb),
        dw::DW_FORM_addrx1 => (Kind::AddressIndex, Bytes(1)),
        dw::DW_FORM_addrx2 => (Kind::AddressIndex, Bytes(2)),
        dw::DW_FORM_addrx3 => (Kind::AddressIndex, Bytes(3)),
        dw::DW_FORM_addrx4 => (Kind::AddressIndex, Bytes(4)),
        dw::DW_FORM_data1 => (Kind::Unsigned, Bytes(1)),
        dw::DW_FORM_data2 => (Kind::Unsigned, Bytes(2)),
        dw::DW_FORM_data4 => (Kind::Unsigned, Bytes(4)),
        dw::DW_FORM_data8 => (Kind::Unsigned, Bytes(8)),
        dw::DW_FORM_udata => (Kind::Unsigned, Uleb),
        dw::DW_FORM_sdata => (Kind::Signed, Sleb),
        dw::DW_FORM_implicit_const => (Kind::Signed, Constant),
        dw::DW_FORM_sec_offset => (Kind::SectionOffset, offset),
        dw::DW_FORM_rnglistx => (Kind::RangeListIndex, Uleb),
        dw::DW_FORM_ref1 => (Kind::UnitRef, Bytes(1)),
        dw::DW_FORM_ref2 => (Kind::UnitRef, Bytes(2)),
        dw::DW_FORM_ref4 => (Kind::UnitRef, Bytes(4)),
        dw::DW_FORM_ref8 => (Kind::UnitRef, Bytes(8)),
        dw::DW_FORM_ref_udata => (Kind::UnitRef, Uleb),
        // DWARF 2 wrote these as wide as an address.
        dw::DW_FORM_ref_addr if encoding.version <= 2 => (Kind::InfoRef, Bytes(encoding.address_size)),
        dw::DW_FORM_ref_addr => (Kind::InfoRef, offset),
        dw::DW_FORM_ref_sup4 => (Kind::SupRef, Bytes(4)),
        dw::DW_FORM_ref_sup8 => (Kind::SupRef, Bytes(8)),
        dw::DW_FORM_GNU_ref_alt => (Kind::SupRef, offset),
        dw::DW_FORM_ref_sig8 => (Kind::Signature, Bytes(8)),
        dw::DW_FORM_string => (Kind::InlineString, String),
        dw::DW_FORM_strp => (Kind::Str, offset),
        dw::DW_FORM_line_strp => (Kind::LineStr, offset),
        dw::DW_FORM_strx | dw::DW_FORM_GNU_str_index => (Kind::StrIndex, Uleb),
        dw::DW_FORM_strx1 => (Kind::StrIndex, Bytes(1)),
        dw::DW_FORM_strx2 => (Kind::StrIndex, Bytes(2)),
        dw::DW_FORM_strx3 => (Kind::StrIndex, Bytes(3)),
        dw::DW_FORM_strx4 => (Kind::StrIndex, Bytes(4)),
        dw::DW_FORM_strp_sup | dw::DW_FORM_GNU_strp_alt => (Kind::SupStr, offset),
        dw::DW_FORM_flag => (Kind::Flag, Bytes(1)),
        dw::DW_FORM_flag_present => (Kind::Flag, Fixed(1)),
        dw::DW_FORM_indirect => (Kind::None, Indirect),
        _ => (Kind::Block, Layout::Other),
    }
}
