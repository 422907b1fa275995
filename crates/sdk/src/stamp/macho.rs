//! Section headers of a Mach-O object, changed where they stand. `<mach-o/loader.h>`.

use super::{Direction, Names};
use crate::error::{Error, ErrorKind, Result};

const SEGMENT_32: u32 = 0x1;
const SEGMENT_64: u32 = 0x19;

/// Sections of instructions that compilers make. That of old compilers for weak code, `__textcoal_nt`, is shared.
const CODE: [&str; 2] = ["__text", "__StaticInit"];

/// Renames the sections of code of one object; how many.
pub(super) fn rename(member: &mut [u8], names: &Names, direction: Direction) -> Result<usize> {
    let magic = word(member, 0)?;
    let (header, is_64) = match magic {
        0xfeed_facf => (32, true),
        0xfeed_face => (28, false),
        _ => return Err(Error::at(ErrorKind::Unsupported, 0, "expected a little-endian Mach-O object")),
    };
    let count = word(member, 16)?;
    let (wanted, segment, section) = if is_64 { (SEGMENT_64, 72, 80) } else { (SEGMENT_32, 56, 68) };
    let mut at = header;
    let mut renamed = 0;
    for _ in 0..count {
        let (kind, size) = (word(member, at)?, index(word(member, at + 4)?));
        if size < 8 {
            return Err(Error::at(
                ErrorKind::Malformed,
                at as u64,
                "expected a load command of at least 8 bytes",
            ));
        }
        if kind == wanted {
            let sections = index(word(member, at + segment - 8)?);
            for number in 0..sections.min(size / section) {
                let place = at + segment + number * section;
                renamed += usize::from(rename_one(member, place, names, direction)?);
            }
        }
        at = at
            .checked_add(size)
            .ok_or_else(|| Error::at(ErrorKind::Malformed, at as u64, "a size that fits"))?;
    }
    Ok(renamed)
}

fn rename_one(member: &mut [u8], place: usize, names: &Names, direction: Direction) -> Result<bool> {
    let short =
        || Error::at(ErrorKind::Malformed, place as u64, "expected a section header of a Mach-O object");
    let header = member.get_mut(place..place + 32).ok_or_else(short)?;
    let (name, segment) = header.split_at_mut(16);
    if text(segment) != "__TEXT" {
        return Ok(false);
    }
    let new = match direction {
        Direction::Stamp if CODE.contains(&text(name)) => names.mach_o.as_str(),
        Direction::Unstamp if text(name) == names.mach_o => "__text",
        _ => return Ok(false),
    };
    name.fill(0);
    name.iter_mut().zip(new.bytes()).for_each(|(byte, new)| *byte = new);
    Ok(true)
}

fn text(field: &[u8]) -> &str {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(field.get(..end).unwrap_or_default()).unwrap_or_default()
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map(|field| u32::from_le_bytes(*field)).ok_or_else(|| {
        Error::at(ErrorKind::Malformed, at as u64, "expected four more bytes of a Mach-O object")
    })
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
