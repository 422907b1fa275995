//! ELF objects: section names, and a symbol more. The tables of names and symbols are written anew behind the object.
//!
//! A name that is a C identifier makes linkers define `__start_NAME` and `__stop_NAME`, and keeps the section apart. It also
//! keeps it from being dropped while anything mentions these.

use super::edit::Edit;
use super::{Changed, Names};
use crate::error::{Error, ErrorKind, Result};

const PROGBITS: u64 = 1;
const SYMTAB: u64 = 2;
/// `SHT_SYMTAB_SHNDX`: section numbers of symbols where 16 bits are too few.
const SYMTAB_SHNDX: u64 = 18;
const ALLOC_AND_CODE: u64 = 2 | 4;
/// `SHF_GROUP`.
const GROUP: u64 = 0x200;

/// Fields of a section header.
#[derive(Clone, Copy)]
enum Field {
    Name,
    Type,
    Flags,
    Offset,
    Size,
    Link,
}

/// Where things stand in an object.
pub(super) struct Layout {
    pub(super) is_64: bool,
    headers: usize,
    size: usize,
    count: usize,
    names: usize,
}

pub(super) fn stamp(object: &[u8], names: &Names, symbol: Option<&str>) -> Result<Changed> {
    let layout = Layout::read(object)?;
    let mut edit = Edit::new(object);
    let mut changed = Changed::default();
    let section_names = layout.data(object, layout.names)?;
    let new_name = u32::try_from(section_names.len()).map_err(|_| malformed(0, "names of 32 bits"))?;
    for section in 0..layout.count {
        if layout.field(object, section, Field::Type)? != PROGBITS {
            continue;
        }
        let flags = layout.field(object, section, Field::Flags)?;
        let name = string_at(section_names, layout.field(object, section, Field::Name)?);
        // With `-ffunction-sections` each function has its own; all become one for the linker.
        let is_wanted = name == ".text" || name.starts_with(".text.");
        if flags & ALLOC_AND_CODE != ALLOC_AND_CODE || !is_wanted {
            continue;
        }
        if flags & GROUP != 0 {
            changed.has_shared = true;
            continue;
        }
        edit.set(layout.headers + section * layout.size, &new_name.to_le_bytes())?;
        changed.sections += 1;
    }
    if changed.sections == 0 {
        return Ok(changed);
    }
    let mut new_names = names.elf.as_bytes().to_vec();
    new_names.push(0);
    layout.add_symbol(object, &mut edit, &mut new_names, symbol)?;
    let at = edit.append(&[section_names, &new_names]);
    layout.set(&mut edit, layout.names, Field::Offset, at)?;
    layout.set(&mut edit, layout.names, Field::Size, section_names.len() + new_names.len())?;
    changed.bytes = Some(edit.finish());
    Ok(changed)
}

impl Layout {
    pub(super) fn read(object: &[u8]) -> Result<Self> {
        let [_, _, _, _, class, order, ..] = *object else {
            return Err(malformed(0, "an ELF header"));
        };
        if order != 1 {
            return Err(Error::at(ErrorKind::Unsupported, 5, "expected a little-endian ELF object"));
        }
        let is_64 = class == 2;
        let number = |at: usize, size: usize| read(object, at, size);
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
        if layout.size < least || layout.names >= layout.count || end.is_none_or(|end| end > object.len()) {
            return Err(malformed(headers, "section headers of an ELF object"));
        }
        Ok(layout)
    }

    /// Adds an undefined symbol: linkers then take the record out of the archive. Its name goes to the names of symbols, which
    /// may be those of sections, too (`section_names`).
    fn add_symbol(
        &self,
        object: &[u8],
        edit: &mut Edit,
        section_names: &mut Vec<u8>,
        symbol: Option<&str>,
    ) -> Result<()> {
        let Some(symbol) = symbol else { return Ok(()) };
        let mut table = None;
        for section in 0..self.count {
            match self.field(object, section, Field::Type)? {
                SYMTAB => table = Some(section),
                SYMTAB_SHNDX => {
                    let detail = "expected fewer sections than an object needs an extended index for";
                    return Err(Error::at(ErrorKind::Unsupported, self.headers as u64, detail));
                }
                _ => {}
            }
        }
        let Some(table) = table else { return Ok(()) };
        let symbols = self.data(object, table)?;
        let names = usize::try_from(self.field(object, table, Field::Link)?).unwrap_or(usize::MAX);
        let strings = self.data(object, names)?;
        let name_at = if names == self.names { strings.len() + section_names.len() } else { strings.len() };
        let name = u32::try_from(name_at).map_err(|_| malformed(0, "names of 32 bits"))?.to_le_bytes();
        // `STB_GLOBAL`, no type, undefined.
        let (size, info) = if self.is_64 { (24, 4) } else { (16, 12) };
        let mut entry = vec![0; size];
        entry.iter_mut().zip(name).for_each(|(byte, new)| *byte = new);
        if let Some(info) = entry.get_mut(info) {
            *info = 0x10;
        }
        let at = edit.append(&[symbols, &entry]);
        self.set(edit, table, Field::Offset, at)?;
        self.set(edit, table, Field::Size, symbols.len() + entry.len())?;
        if names == self.names {
            section_names.extend_from_slice(symbol.as_bytes());
            section_names.push(0);
        } else {
            let at = edit.append(&[strings, symbol.as_bytes(), &[0]]);
            self.set(edit, names, Field::Offset, at)?;
            self.set(edit, names, Field::Size, strings.len() + symbol.len() + 1)?;
        }
        Ok(())
    }

    /// The bytes of a section of that name.
    pub(super) fn named<'o>(&self, object: &'o [u8], wanted: &str) -> Result<Option<&'o [u8]>> {
        let names = self.data(object, self.names)?;
        for section in 0..self.count {
            if string_at(names, self.field(object, section, Field::Name)?) == wanted {
                return self.data(object, section).map(Some);
            }
        }
        Ok(None)
    }

    fn place(&self, section: usize, field: Field) -> (usize, usize) {
        let (at, size) = match (field, self.is_64) {
            (Field::Name, _) => (0, 4),
            (Field::Type, _) => (4, 4),
            (Field::Flags, true) => (8, 8),
            (Field::Flags, false) => (8, 4),
            (Field::Offset, true) => (24, 8),
            (Field::Offset, false) => (16, 4),
            (Field::Size, true) => (32, 8),
            (Field::Size, false) => (20, 4),
            (Field::Link, true) => (40, 4),
            (Field::Link, false) => (24, 4),
        };
        (self.headers.saturating_add(section.saturating_mul(self.size)).saturating_add(at), size)
    }

    fn field(&self, object: &[u8], section: usize, field: Field) -> Result<u64> {
        let (at, size) = self.place(section, field);
        read(object, at, size)
    }

    fn data<'o>(&self, object: &'o [u8], section: usize) -> Result<&'o [u8]> {
        let offset = self.field(object, section, Field::Offset)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let size = usize::try_from(self.field(object, section, Field::Size)?).unwrap_or(usize::MAX);
        let end = start.checked_add(size);
        end.and_then(|end| object.get(start..end)).ok_or_else(|| malformed(offset, "a section that fits"))
    }

    fn set(&self, edit: &mut Edit, section: usize, field: Field, value: usize) -> Result<()> {
        let (at, size) = self.place(section, field);
        let bytes = (value as u64).to_le_bytes();
        let (low, high) = bytes.split_at(size);
        if high.iter().any(|byte| *byte != 0) {
            return Err(malformed(at as u64, "an object below 4 GB"));
        }
        edit.set(at, low)
    }
}

fn malformed(at: u64, expected: &str) -> Error {
    Error::at(ErrorKind::Malformed, at, format!("expected {expected} (ELF)"))
}

fn read(bytes: &[u8], at: usize, size: usize) -> Result<u64> {
    let field = at.checked_add(size).and_then(|end| bytes.get(at..end));
    let field = field.ok_or_else(|| malformed(at as u64, "more bytes"))?;
    Ok(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn string_at(table: &[u8], at: u64) -> &str {
    let rest = usize::try_from(at).ok().and_then(|at| table.get(at..)).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    std::str::from_utf8(rest.get(..end).unwrap_or_default()).unwrap_or_default()
}
