//! Section names of an ELF object. The table of names is written anew behind the object, with the new name at its end.
//!
//! A name that is a C identifier makes linkers define `__start_NAME` and `__stop_NAME`, and keeps the section apart. It also
//! keeps it from being dropped while anything mentions these.

use super::{Direction, Names};
use crate::error::{Error, ErrorKind, Result};

/// What came of one object.
pub(super) struct Renamed {
    /// `None` where nothing changed.
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) sections: usize,
    /// Whether it has code in groups (COMDAT), which is left as it is.
    pub(super) has_shared: bool,
}

const PROGBITS: u32 = 1;
const ALLOC_AND_CODE: u64 = 2 | 4;
/// `SHF_GROUP`.
const GROUP: u64 = 0x200;

struct Layout {
    is_64: bool,
    headers: usize,
    size: usize,
    count: usize,
    names: usize,
}

/// Ends what a stamp appends: the names before, so that they can be put back.
const END: &[u8; 8] = b"BTSTAMP1";

pub(super) fn rename(member: &[u8], names: &Names, direction: Direction) -> Result<Renamed> {
    let layout = Layout::read(member)?;
    if direction == Direction::Unstamp
        && let Some(renamed) = put_back(member, &layout, names)?
    {
        return Ok(renamed);
    }
    let mut renamed = Renamed { bytes: None, sections: 0, has_shared: false };
    let mut changed = member.to_vec();
    let table = layout.field(member, layout.names, 4)?;
    let table_size = layout.field(member, layout.names, 5)?;
    let strings = part(member, table, table_size)?;
    let mut strings = strings.to_vec();
    let new = match direction {
        Direction::Stamp => names.elf.as_str(),
        Direction::Unstamp => ".text",
    };
    let mut before: Vec<u8> = Vec::new();
    let name_at =
        u32::try_from(strings.len()).map_err(|_| malformed(table, "a table of names of 32 bits"))?;
    strings.extend_from_slice(new.as_bytes());
    strings.push(0);
    for section in 0..layout.count {
        let kind = layout.field(member, section, 1)?;
        let flags = layout.field(member, section, 2)?;
        if kind != u64::from(PROGBITS) || flags & ALLOC_AND_CODE != ALLOC_AND_CODE {
            continue;
        }
        let name = layout.field(member, section, 0)?;
        let name = string_at(part(member, table, table_size)?, name);
        let is_wanted = match direction {
            // With `-ffunction-sections` each function has its own; all become one for the linker.
            Direction::Stamp => name == ".text" || name.starts_with(".text."),
            Direction::Unstamp => name == names.elf,
        };
        if !is_wanted {
            continue;
        }
        if flags & GROUP != 0 {
            renamed.has_shared = true;
            continue;
        }
        let at = layout.headers + section * layout.size;
        before.extend_from_slice(&u32::try_from(section).unwrap_or(u32::MAX).to_le_bytes());
        before.extend_from_slice(member.get(at..at + 4).unwrap_or_default());
        if let Some(field) = changed.get_mut(at..at + 4) {
            field.copy_from_slice(&name_at.to_le_bytes());
        }
        renamed.sections += 1;
    }
    if renamed.sections > 0 {
        // The old table stays where it is, unused.
        let offset = changed.len() as u64;
        changed.extend_from_slice(&strings);
        layout.set(&mut changed, layout.names, 4, offset)?;
        layout.set(&mut changed, layout.names, 5, strings.len() as u64)?;
        for number in [member.len() as u64, table, table_size, before.len() as u64] {
            before.extend_from_slice(&number.to_le_bytes());
        }
        changed.extend_from_slice(&before);
        changed.extend_from_slice(END);
        renamed.bytes = Some(changed);
    }
    Ok(renamed)
}

/// Undoes a stamp by what it appended; `None` where another tool wrote the object since.
fn put_back(member: &[u8], layout: &Layout, names: &Names) -> Result<Option<Renamed>> {
    const NUMBERS: usize = 4 * 8;
    let Some(rest) = member.strip_suffix(END) else { return Ok(None) };
    let Some(numbers) = rest.len().checked_sub(NUMBERS) else { return Ok(None) };
    let number = |index: usize| read(rest, numbers + index * 8, 8);
    let (size, table, table_size, listed) = (number(0)?, number(1)?, number(2)?, number(3)?);
    let listed = usize::try_from(listed).ok().and_then(|size| numbers.checked_sub(size));
    let size = usize::try_from(size).ok().filter(|size| *size < member.len());
    let (Some(listed), Some(size)) = (listed, size) else { return Ok(None) };
    let now = (layout.field(member, layout.names, 4)?, layout.field(member, layout.names, 5)?);
    let mut changed = member.get(..size).unwrap_or_default().to_vec();
    let (pairs, _) = rest.get(listed..numbers).unwrap_or_default().as_chunks::<8>();
    for pair in pairs {
        let section = usize::try_from(read(pair, 0, 4)?).unwrap_or(usize::MAX);
        if section >= layout.count
            || string_at(part(member, now.0, now.1)?, layout.field(member, section, 0)?) != names.elf
        {
            return Ok(None);
        }
        let at = layout.headers + section * layout.size;
        if let Some((field, name)) = changed.get_mut(at..at + 4).zip(pair.get(4..)) {
            field.copy_from_slice(name);
        }
    }
    layout.set(&mut changed, layout.names, 4, table)?;
    layout.set(&mut changed, layout.names, 5, table_size)?;
    Ok(Some(Renamed { bytes: Some(changed), sections: pairs.len(), has_shared: false }))
}

impl Layout {
    fn read(member: &[u8]) -> Result<Self> {
        let [_, _, _, _, class, order, ..] = *member else {
            return Err(malformed(0, "an ELF header"));
        };
        if order != 1 {
            return Err(Error::at(ErrorKind::Unsupported, 5, "expected a little-endian ELF object"));
        }
        let is_64 = class == 2;
        let number = |at: usize, size: usize| read(member, at, size);
        let (headers, at) = if is_64 { (number(0x28, 8)?, 0x3a) } else { (number(0x20, 4)?, 0x2e) };
        let layout = Self {
            is_64,
            headers: usize::try_from(headers).unwrap_or(usize::MAX),
            size: usize::try_from(number(at, 2)?).unwrap_or(0),
            count: usize::try_from(number(at + 2, 2)?).unwrap_or(0),
            names: usize::try_from(number(at + 4, 2)?).unwrap_or(0),
        };
        let least = if is_64 { 64 } else { 40 };
        let end = layout.count.checked_mul(layout.size).and_then(|size| size.checked_add(layout.headers));
        // More sections than 16 bits count are numbered elsewhere.
        if layout.size < least || layout.names >= layout.count || end.is_none_or(|end| end > member.len()) {
            return Err(malformed(headers, "section headers of an ELF object"));
        }
        Ok(layout)
    }

    /// Offset and size of a field: 0 name, 1 type, 2 flags, 4 offset, 5 size.
    fn place(&self, section: usize, field: usize) -> (usize, usize) {
        let (at, size) = if self.is_64 {
            [(0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8)].get(field).copied().unwrap_or((0, 4))
        } else {
            (field * 4, 4)
        };
        (self.headers + section * self.size + at, size)
    }

    fn field(&self, member: &[u8], section: usize, field: usize) -> Result<u64> {
        let (at, size) = self.place(section, field);
        read(member, at, size)
    }

    fn set(&self, member: &mut [u8], section: usize, field: usize, value: u64) -> Result<()> {
        let (at, size) = self.place(section, field);
        let bytes = value.to_le_bytes();
        let place = member.get_mut(at..at + size).zip(bytes.get(..size));
        let (place, bytes) = place.ok_or_else(|| malformed(at as u64, "a section header"))?;
        place.copy_from_slice(bytes);
        Ok(())
    }
}

fn malformed(at: u64, expected: &str) -> Error {
    Error::at(ErrorKind::Malformed, at, format!("expected {expected}"))
}

fn read(bytes: &[u8], at: usize, size: usize) -> Result<u64> {
    let field = at.checked_add(size).and_then(|end| bytes.get(at..end));
    let field = field.ok_or_else(|| malformed(at as u64, "more bytes of an ELF object"))?;
    Ok(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn part(bytes: &[u8], offset: u64, size: u64) -> Result<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
    bytes.get(start..end).ok_or_else(|| malformed(offset, "the names of sections"))
}

fn string_at(table: &[u8], at: u64) -> &str {
    let rest = usize::try_from(at).ok().and_then(|at| table.get(at..)).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    std::str::from_utf8(rest.get(..end).unwrap_or_default()).unwrap_or_default()
}
