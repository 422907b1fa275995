//! CIEs and FDEs (DWARF 5, section 6.4.1; LSB Core 5.0, section 10.6).

use super::cursor::{Cursor, Result};
use super::pointer::{self, Bases, OMIT};
use backtrail_core::{AddrRange, Svma};

/// Which of the two section formats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flavour {
    /// `.eh_frame`
    EhFrame,
    /// `.debug_frame`
    DebugFrame,
}

/// What several FDEs share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cie {
    /// Offset in the section.
    pub offset: usize,
    /// Version: 1, 3 or 4.
    pub version: u8,
    /// What `advance_loc` counts in.
    pub code_alignment: u64,
    /// What offsets count in.
    pub data_alignment: i64,
    /// The column of the return address, which may be a register's.
    pub return_address_register: u64,
    /// Whether frames of its FDEs are signal frames (augmentation `S`).
    pub is_signal_frame: bool,
    /// Whether its FDEs have augmentation data (`z`).
    pub(crate) has_augmentation_data: bool,
    /// Encoding of the FDEs' addresses (`R`).
    pub(crate) encoding: u8,
    pub(crate) address_size: u8,
    pub(crate) instructions: (usize, usize),
}

/// One function's, or one part of a function's, unwind program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fde {
    /// Offset in the section.
    pub offset: usize,
    /// The addresses that it covers.
    pub range: AddrRange<Svma>,
    /// Its CIE.
    pub cie: Cie,
    pub(crate) instructions: (usize, usize),
}

/// One entry's frame: where it begins and ends, and what its id field says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) offset: usize,
    /// Behind the id field.
    pub(crate) body: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// A length of zero. It should end `.eh_frame`; linkers leave it in the middle too, where they joined an object
    /// that ends so (crtend.o) with others.
    Terminator,
    Cie,
    /// With the offset of its CIE.
    Fde(usize),
}

/// Reads the entry's length and id at the cursor and moves behind the entry.
pub(crate) fn head(cursor: &mut Cursor<'_>, flavour: Flavour) -> Result<Head> {
    let offset = cursor.position();
    let short = cursor.u32()?;
    let is_64 = short == 0xffff_ffff;
    let length = if is_64 { cursor.u64()? } else { u64::from(short) };
    if length == 0 {
        return Ok(Head { offset, body: cursor.position(), end: cursor.position(), kind: Kind::Terminator });
    }
    let limited = cursor.limited(length)?;
    let start = cursor.position();
    let end = start + usize::try_from(length).map_err(|_| cursor.fault("a length within the section"))?;
    let mut inner = limited;
    // In `.eh_frame` the id has four bytes whatever the length has (LSB; so do GNU ld, LLVM).
    let wide = is_64 && flavour == Flavour::DebugFrame;
    let id = if wide { inner.u64()? } else { u64::from(inner.u32()?) };
    let kind = match flavour {
        Flavour::EhFrame if id == 0 => Kind::Cie,
        // A CIE pointer to outside of the section finds no CIE when it is followed; the next entry is not lost.
        Flavour::EhFrame => {
            Kind::Fde(usize::try_from(id).ok().and_then(|id| start.checked_sub(id)).unwrap_or(usize::MAX))
        }
        Flavour::DebugFrame if id == if wide { u64::MAX } else { 0xffff_ffff } => Kind::Cie,
        Flavour::DebugFrame => Kind::Fde(usize::try_from(id).unwrap_or(usize::MAX)),
    };
    cursor.seek(end)?;
    Ok(Head { offset, body: inner.position(), end, kind })
}

/// Bytes of a CIE, which is read again for each FDE: a large one shared by many would take quadratic time. Those of compilers
/// have less than a hundred.
const MAX_CIE: usize = 4096;

/// Reads the CIE at the cursor.
pub(crate) fn cie(cursor: &mut Cursor<'_>, flavour: Flavour, bases: &Bases<'_, '_>) -> Result<Cie> {
    let at = *cursor;
    let head = head(cursor, flavour)?;
    if !matches!(head.kind, Kind::Cie) {
        return Err(at.fault("a CIE"));
    }
    let mut inner = at;
    inner.seek(head.body)?;
    if head.end - head.body > MAX_CIE {
        return Err(inner.fault("a CIE of at most 4,096 bytes"));
    }
    let mut inner = inner.limited((head.end - head.body) as u64)?;
    let version = inner.u8()?;
    if !matches!(version, 1 | 3 | 4) {
        return Err(inner.fault("CIE version 1, 3 or 4"));
    }
    let augmentation = inner.c_string()?;
    let mut cie = Cie {
        offset: head.offset,
        version,
        code_alignment: 1,
        data_alignment: 1,
        return_address_register: 0,
        is_signal_frame: false,
        has_augmentation_data: false,
        encoding: 0,
        address_size: bases.pointer_size,
        instructions: (0, head.end),
    };
    if version == 4 {
        cie.address_size = address_size(&mut inner)?;
    }
    if augmentation.starts_with(b"eh") {
        // GCC 2: a pointer to exception tables.
        pointer::number(&mut inner, 0, cie.address_size)?;
    }
    cie.code_alignment = inner.uleb()?;
    cie.data_alignment = inner.sleb()?;
    cie.return_address_register = if version == 1 { u64::from(inner.u8()?) } else { inner.uleb()? };
    augment(&mut inner, augmentation, &mut cie)?;
    cie.instructions.0 = inner.position();
    Ok(cie)
}

/// Version 4 states the sizes of addresses and of segment selectors.
fn address_size(inner: &mut Cursor<'_>) -> Result<u8> {
    let (size, segment_size) = (inner.u8()?, inner.u8()?);
    if matches!(size, 4 | 8) && segment_size == 0 {
        return Ok(size);
    }
    Err(inner.fault("addresses of 4 or 8 bytes without segments"))
}

/// Reads what the letters of the augmentation string announce. A letter that is not known ends the reading: with
/// `z` the length says where the instructions begin all the same.
fn augment(inner: &mut Cursor<'_>, letters: &[u8], cie: &mut Cie) -> Result<()> {
    let mut end = None;
    for letter in letters {
        match letter {
            b'z' => {
                cie.has_augmentation_data = true;
                let length = inner.uleb()?;
                let limited = inner.limited(length)?;
                let _ = limited;
                end = Some(inner.position() + usize::try_from(length).unwrap_or(0));
            }
            b'L' => drop(inner.u8()?),
            b'P' => {
                let encoding = inner.u8()?;
                if encoding & 0x70 == 0x50 {
                    return Err(inner.fault("a personality that is not aligned"));
                }
                pointer::number(inner, encoding, cie.address_size)?;
            }
            b'R' => cie.encoding = inner.u8()?,
            b'S' => cie.is_signal_frame = true,
            // AArch64: return addresses signed with the B key; memory tagging of the frame.
            b'B' | b'G' | b'e' | b'h' => {}
            _ if end.is_some() => break,
            _ => return Err(inner.fault("a known augmentation")),
        }
    }
    if cie.encoding == OMIT {
        return Err(inner.fault("an encoding for code addresses"));
    }
    end.map_or(Ok(()), |end| inner.seek(end))
}

/// Reads the FDE whose head was read, given its CIE.
pub(crate) fn fde(section: &Cursor<'_>, head: &Head, cie: Cie, bases: &Bases<'_, '_>) -> Result<Fde> {
    let (range, mut inner) = fde_range(section, head, &cie, bases)?;
    if cie.has_augmentation_data {
        let length = inner.uleb()?;
        let skip = usize::try_from(length).map_err(|_| inner.fault("augmentation data within the entry"))?;
        inner.bytes(skip)?;
    }
    Ok(Fde { offset: head.offset, range, cie, instructions: (inner.position(), head.end) })
}

/// The addresses that an FDE covers, and the cursor behind them.
pub(crate) fn fde_range<'d>(
    section: &Cursor<'d>,
    head: &Head,
    cie: &Cie,
    bases: &Bases<'_, '_>,
) -> Result<(AddrRange<Svma>, Cursor<'d>)> {
    let mut inner = *section;
    inner.seek(head.body)?;
    let mut inner = inner.limited((head.end - head.body) as u64)?;
    let bases = Bases { pointer_size: cie.address_size, ..*bases };
    let start = pointer::pointer(&mut inner, cie.encoding, &bases)?;
    let size = pointer::number(&mut inner, cie.encoding & 0x0f, cie.address_size)?;
    Ok((AddrRange::from_size(start, bases.wrap(size)), inner))
}
