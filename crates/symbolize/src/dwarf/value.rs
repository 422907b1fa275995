//! Attribute values, read without yet following what they point at.

use super::abbrev::{AbbrevTable, Spec};
use super::reader::Reader;
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

/// Reads the value of one attribute. `None` when the bytes do not suffice or the form is unknown.
pub(crate) fn read(table: &AbbrevTable, spec: Spec, reader: &mut Reader<'_>) -> Option<Value> {
    if spec.form == dw::DW_FORM_indirect.0 {
        let form = u16::try_from(reader.uleb()?).ok()?;
        if form == dw::DW_FORM_indirect.0 || form == dw::DW_FORM_implicit_const.0 {
            return None;
        }
        return read_form(table, Spec { form, ..spec }, reader);
    }
    read_form(table, spec, reader)
}

/// A flat table of DWARF 5 section 7.5.6, GNU's split DWARF and dwz forms.
fn read_form(table: &AbbrevTable, spec: Spec, reader: &mut Reader<'_>) -> Option<Value> {
    let encoding = table.encoding();
    let offset_size = encoding.offset_size;
    let value = match gimli::DwForm(spec.form) {
        dw::DW_FORM_addr => Value::Address(reader.uint(encoding.address_size)?),
        dw::DW_FORM_addrx | dw::DW_FORM_GNU_addr_index => Value::AddressIndex(reader.uleb()?),
        dw::DW_FORM_addrx1 => Value::AddressIndex(reader.uint(1)?),
        dw::DW_FORM_addrx2 => Value::AddressIndex(reader.uint(2)?),
        dw::DW_FORM_addrx3 => Value::AddressIndex(reader.uint(3)?),
        dw::DW_FORM_addrx4 => Value::AddressIndex(reader.uint(4)?),
        dw::DW_FORM_data1 => Value::Unsigned(reader.uint(1)?),
        dw::DW_FORM_data2 => Value::Unsigned(reader.uint(2)?),
        dw::DW_FORM_data4 => Value::Unsigned(reader.uint(4)?),
        dw::DW_FORM_data8 => Value::Unsigned(reader.u64()?),
        dw::DW_FORM_udata => Value::Unsigned(reader.uleb()?),
        dw::DW_FORM_sdata => Value::Signed(reader.sleb()?),
        dw::DW_FORM_implicit_const => Value::Signed(table.constant(spec)),
        dw::DW_FORM_sec_offset => Value::SectionOffset(reader.uint(offset_size)?),
        dw::DW_FORM_rnglistx => Value::RangeListIndex(reader.uleb()?),
        dw::DW_FORM_ref1 => Value::UnitRef(reader.uint(1)?),
        dw::DW_FORM_ref2 => Value::UnitRef(reader.uint(2)?),
        dw::DW_FORM_ref4 => Value::UnitRef(reader.uint(4)?),
        dw::DW_FORM_ref8 => Value::UnitRef(reader.u64()?),
        dw::DW_FORM_ref_udata => Value::UnitRef(reader.uleb()?),
        dw::DW_FORM_ref_addr if encoding.version <= 2 => Value::InfoRef(reader.uint(encoding.address_size)?),
        dw::DW_FORM_ref_addr => Value::InfoRef(reader.uint(offset_size)?),
        dw::DW_FORM_ref_sup4 => Value::SupRef(reader.uint(4)?),
        dw::DW_FORM_ref_sup8 => Value::SupRef(reader.u64()?),
        dw::DW_FORM_GNU_ref_alt => Value::SupRef(reader.uint(offset_size)?),
        dw::DW_FORM_ref_sig8 => Value::Signature(reader.u64()?),
        dw::DW_FORM_string => {
            let start = reader.offset();
            reader.cstr()?;
            Value::InlineString(start)
        }
        dw::DW_FORM_strp => Value::Str(reader.uint(offset_size)?),
        dw::DW_FORM_line_strp => Value::LineStr(reader.uint(offset_size)?),
        dw::DW_FORM_strx | dw::DW_FORM_GNU_str_index => Value::StrIndex(reader.uleb()?),
        dw::DW_FORM_strx1 => Value::StrIndex(reader.uint(1)?),
        dw::DW_FORM_strx2 => Value::StrIndex(reader.uint(2)?),
        dw::DW_FORM_strx3 => Value::StrIndex(reader.uint(3)?),
        dw::DW_FORM_strx4 => Value::StrIndex(reader.uint(4)?),
        dw::DW_FORM_strp_sup | dw::DW_FORM_GNU_strp_alt => Value::SupStr(reader.uint(offset_size)?),
        dw::DW_FORM_flag => Value::Flag(reader.u8()? != 0),
        dw::DW_FORM_flag_present => Value::Flag(true),
        _ => {
            super::abbrev::skip_form(spec.form, encoding, reader)?;
            Value::Block
        }
    };
    Some(value)
}
