//! Encoded pointers of `.eh_frame` and `.eh_frame_hdr` (LSB Core 5.0, section 10.5.1).

use super::cursor::{Cursor, Result};
use crate::sections::Sections;
use backtrail_core::{Arch, Svma};

/// "There is no value."
pub(crate) const OMIT: u8 = 0xff;
const INDIRECT: u8 = 0x80;

/// What relative pointers are relative to, and how wide an absolute one is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bases<'s, 'd> {
    pub(crate) sections: &'s Sections<'d>,
    /// What `DW_EH_PE_datarel` counts from: the header's own start within `.eh_frame_hdr`, else the GOT.
    pub(crate) data: Option<Svma>,
    /// What `DW_EH_PE_funcrel` counts from, where a function is known.
    pub(crate) function: Option<Svma>,
    pub(crate) pointer_size: u8,
}

impl<'s, 'd> Bases<'s, 'd> {
    pub(crate) fn new(sections: &'s Sections<'d>) -> Self {
        let pointer_size = sections.arch.map_or(8, Arch::pointer_size);
        Self { sections, data: sections.got, function: None, pointer_size }
    }

    /// An address cut to the width of the target's.
    pub(crate) fn wrap(&self, address: u64) -> u64 {
        if self.pointer_size == 4 { address & 0xffff_ffff } else { address }
    }
}

/// Reads the number alone: no base added, nothing followed.
pub(crate) fn number(cursor: &mut Cursor<'_>, encoding: u8, pointer_size: u8) -> Result<u64> {
    Ok(match encoding & 0x0f {
        0x00 if pointer_size == 4 => u64::from(cursor.u32()?),
        // `DW_EH_PE_signed` is a pointer too, and sign-extended.
        0x08 if pointer_size == 4 => i64::from(cursor.u32()?.cast_signed()).cast_unsigned(),
        0x00 | 0x08 | 0x04 | 0x0c => cursor.u64()?,
        0x01 => cursor.uleb()?,
        0x02 => u64::from(cursor.u16()?),
        0x03 => u64::from(cursor.u32()?),
        0x09 => cursor.sleb()?.cast_unsigned(),
        0x0a => i64::from(cursor.u16()?.cast_signed()).cast_unsigned(),
        0x0b => i64::from(cursor.u32()?.cast_signed()).cast_unsigned(),
        _ => return Err(cursor.fault("a known pointer encoding")),
    })
}

/// Reads a pointer and makes it an address. Zero stays zero: it stands for "none", whatever it is relative to.
pub(crate) fn pointer(cursor: &mut Cursor<'_>, encoding: u8, bases: &Bases<'_, '_>) -> Result<Svma> {
    if encoding & 0x70 == 0x50 {
        align(cursor, bases.pointer_size)?;
    }
    let at = cursor.address();
    let value = number(cursor, encoding, bases.pointer_size)?;
    if value == 0 && encoding & 0x70 != 0x10 {
        return Ok(Svma::new(0));
    }
    let base = match encoding & 0x70 {
        0x00 | 0x50 => Some(Svma::new(0)),
        0x10 => Some(at),
        0x20 => bases.sections.text.first().map(|text| text.start),
        0x30 => bases.data,
        0x40 => bases.function,
        _ => None,
    };
    let base = base.ok_or_else(|| cursor.fault("a pointer whose base is known"))?;
    let address = Svma::new(bases.wrap(base.get().wrapping_add(value)));
    if encoding & INDIRECT == 0 { Ok(address) } else { follow(cursor, address, bases) }
}

fn align(cursor: &mut Cursor<'_>, to: u8) -> Result<()> {
    let rest = cursor.address().get() % u64::from(to);
    if rest != 0 {
        cursor.bytes(usize::from(to) - usize::try_from(rest).unwrap_or(0))?;
    }
    Ok(())
}

fn follow(cursor: &Cursor<'_>, address: Svma, bases: &Bases<'_, '_>) -> Result<Svma> {
    let bytes = bases.sections.bytes_at(address).unwrap_or_default();
    let mut place = Cursor::new(address, bytes);
    let value = number(&mut place, 0, bases.pointer_size);
    value.map(Svma::new).map_err(|_| cursor.fault("an indirect pointer into the file"))
}
