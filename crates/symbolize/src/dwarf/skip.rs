//! Passing over values by their forms.

use super::reader::{Encoding, Reader};
use gimli::constants as dw;

/// A step of passing over a DIE, packed: below [`FIRST_OP`] it is a number of bytes.
pub(crate) type Skip = u16;
const FIRST_OP: Skip = 0xfff0;
const SKIP_LEB: Skip = 0xfff0;
const SKIP_STRING: Skip = 0xfff1;
const SKIP_BLOCK1: Skip = 0xfff2;
const SKIP_BLOCK2: Skip = 0xfff3;
const SKIP_BLOCK4: Skip = 0xfff4;
pub(crate) const SKIP_BLOCK: Skip = 0xfff5;
const SKIP_INDIRECT: Skip = 0xfff6;
const SKIP_IMPOSSIBLE: Skip = 0xfff7;

/// Appends a step to those from `first` on, joined with the one before where both are plain byte counts.
pub(super) fn push_skip<T>(
    steps: &mut Vec<T>,
    first: usize,
    skip: Skip,
    as_skip: impl Fn(&mut T) -> Option<&mut Skip>,
    step: impl Fn(Skip) -> T,
) {
    if skip == 0 {
        return;
    }
    if let Some(last) = steps.get_mut(first..).and_then(|steps| as_skip(steps.last_mut()?))
        && *last < FIRST_OP
        && skip < FIRST_OP
        && last.checked_add(skip).is_some_and(|sum| sum < FIRST_OP)
    {
        *last += skip;
        return;
    }
    steps.push(step(skip));
}

/// Whether a step is nothing but a number of bytes.
pub(crate) fn is_count(skip: Skip) -> bool {
    skip < FIRST_OP
}

/// Passes over one value of this form.
pub(crate) fn skip_form(form: u16, encoding: Encoding, reader: &mut Reader<'_>) -> Option<()> {
    run_skip(skip_of(form, encoding), encoding, reader)
}

#[inline(always)]
pub(crate) fn run_skip(skip: Skip, encoding: Encoding, reader: &mut Reader<'_>) -> Option<()> {
    match skip {
        SKIP_LEB => reader.skip_leb(),
        SKIP_STRING => reader.cstr().map(|_| ()),
        SKIP_BLOCK1 => reader.u8().and_then(|length| reader.skip(u64::from(length))),
        SKIP_BLOCK2 => reader.u16().and_then(|length| reader.skip(u64::from(length))),
        SKIP_BLOCK4 => reader.u32().and_then(|length| reader.skip(u64::from(length))),
        SKIP_BLOCK => reader.uleb().and_then(|length| reader.skip(length)),
        SKIP_INDIRECT => skip_indirect(encoding, reader),
        SKIP_IMPOSSIBLE => None,
        bytes => reader.skip(u64::from(bytes)),
    }
}

/// The form stands before the value; one level, since no producer nests them.
fn skip_indirect(encoding: Encoding, reader: &mut Reader<'_>) -> Option<()> {
    let form = u16::try_from(reader.uleb()?).ok()?;
    match skip_of(form, encoding) {
        SKIP_INDIRECT | SKIP_IMPOSSIBLE => None,
        // An implicit constant cannot be named indirectly: its value would have no place.
        _ if form == dw::DW_FORM_implicit_const.0 => None,
        skip => run_skip(skip, encoding, reader),
    }
}

/// How values of a form are passed over: a flat table of DWARF 5 section 7.5.6, GNU's split DWARF and dwz forms.
pub(crate) fn skip_of(form: u16, encoding: Encoding) -> Skip {
    let offset = Skip::from(encoding.offset_size);
    match gimli::DwForm(form) {
        dw::DW_FORM_flag_present | dw::DW_FORM_implicit_const => 0,
        dw::DW_FORM_data1 | dw::DW_FORM_flag | dw::DW_FORM_ref1 | dw::DW_FORM_strx1 | dw::DW_FORM_addrx1 => 1,
        dw::DW_FORM_data2 | dw::DW_FORM_ref2 | dw::DW_FORM_strx2 | dw::DW_FORM_addrx2 => 2,
        dw::DW_FORM_strx3 | dw::DW_FORM_addrx3 => 3,
        dw::DW_FORM_data4
        | dw::DW_FORM_ref4
        | dw::DW_FORM_ref_sup4
        | dw::DW_FORM_strx4
        | dw::DW_FORM_addrx4 => 4,
        dw::DW_FORM_data8 | dw::DW_FORM_ref8 | dw::DW_FORM_ref_sig8 | dw::DW_FORM_ref_sup8 => 8,
        dw::DW_FORM_data16 => 16,
        dw::DW_FORM_addr => Skip::from(encoding.address_size),
        // DWARF 2 wrote these as wide as an address.
        dw::DW_FORM_ref_addr if encoding.version <= 2 => Skip::from(encoding.address_size),
        dw::DW_FORM_ref_addr
        | dw::DW_FORM_sec_offset
        | dw::DW_FORM_strp
        | dw::DW_FORM_line_strp
        | dw::DW_FORM_strp_sup
        | dw::DW_FORM_GNU_ref_alt
        | dw::DW_FORM_GNU_strp_alt => offset,
        dw::DW_FORM_sdata
        | dw::DW_FORM_udata
        | dw::DW_FORM_ref_udata
        | dw::DW_FORM_strx
        | dw::DW_FORM_addrx
        | dw::DW_FORM_loclistx
        | dw::DW_FORM_rnglistx
        | dw::DW_FORM_GNU_addr_index
        | dw::DW_FORM_GNU_str_index => SKIP_LEB,
        dw::DW_FORM_string => SKIP_STRING,
        dw::DW_FORM_block1 => SKIP_BLOCK1,
        dw::DW_FORM_block2 => SKIP_BLOCK2,
        dw::DW_FORM_block4 => SKIP_BLOCK4,
        dw::DW_FORM_block | dw::DW_FORM_exprloc => SKIP_BLOCK,
        dw::DW_FORM_indirect => SKIP_INDIRECT,
        _ => SKIP_IMPOSSIBLE,
    }
}
