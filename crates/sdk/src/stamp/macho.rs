//! Mach-O objects: section headers, changed where they stand, and a symbol more. `<mach-o/loader.h>`, `<mach-o/nlist.h>`.

use super::edit::Edit;
use super::{Changed, Names};
use crate::error::{Error, ErrorKind, Result};

const SEGMENT_32: u32 = 0x1;
const SYMTAB: u32 = 0x2;
const DYSYMTAB: u32 = 0xb;
const SEGMENT_64: u32 = 0x19;
/// `N_WEAK_DEF`.
const WEAK: u16 = 0x80;
/// Commands that one object may have.
const MOST: u32 = 10_000;

/// Sections of instructions that compilers make. That of old compilers for weak code, `__textcoal_nt`, is shared.
const CODE: [&str; 2] = ["__text", "__StaticInit"];

pub(super) fn stamp(object: &[u8], names: &Names, symbol: Option<&str>) -> Result<Changed> {
    let layout = Layout::read(object)?;
    let mut edit = Edit::new(object);
    let mut marked = Vec::new();
    for (index, place) in layout.sections.iter().enumerate() {
        let name = object.get(*place..*place + 32).ok_or_else(|| short(*place, "a section header"))?;
        let (name, segment) = name.split_at(16);
        if text(segment) == "__TEXT" && CODE.contains(&text(name)) {
            let mut new = [0; 16];
            new.iter_mut().zip(names.mach_o.bytes()).for_each(|(byte, new)| *byte = new);
            edit.set(*place, &new)?;
            marked.push(index + 1);
        }
    }
    if marked.is_empty() {
        return Ok(Changed::default());
    }
    layout.add_symbol(object, &mut edit, symbol)?;
    let has_shared = layout.has_weak(object, &marked);
    Ok(Changed { bytes: Some(edit.finish()), sections: marked.len(), has_shared })
}

/// Where things stand in an object.
pub(super) struct Layout {
    pub(super) is_64: bool,
    /// Where the section headers are.
    sections: Vec<usize>,
    /// Where the command of the symbol table is.
    symtab: Option<usize>,
    dysymtab: Option<usize>,
    /// The commands that say for which system the object is.
    pub(super) platform: Vec<(usize, usize)>,
}

impl Layout {
    pub(super) fn read(object: &[u8]) -> Result<Self> {
        let (header, is_64) = match word(object, 0)? {
            0xfeed_facf => (32, true),
            0xfeed_face => (28, false),
            _ => {
                return Err(Error::at(ErrorKind::Unsupported, 0, "expected a little-endian Mach-O object"));
            }
        };
        let (wanted, segment, section) = if is_64 { (SEGMENT_64, 72, 80) } else { (SEGMENT_32, 56, 68) };
        let (mut symtab, mut dysymtab) = (None, None);
        let (mut sections, mut platform) = (Vec::new(), Vec::new());
        let mut at = header;
        for _ in 0..word(object, 16)?.min(MOST) {
            let (kind, size) = (word(object, at)?, index(word(object, at + 4)?));
            let end = at.checked_add(size).filter(|end| size >= 8 && *end <= object.len());
            let end = end.ok_or_else(|| short(at, "a load command that fits the object"))?;
            match kind {
                _ if kind == wanted => {
                    let count = index(word(object, at + segment - 8)?);
                    let fits = size.saturating_sub(segment) / section;
                    sections.extend((0..count.min(fits)).map(|number| at + segment + number * section));
                }
                SYMTAB => symtab = Some(at),
                DYSYMTAB => dysymtab = Some(at),
                // `LC_VERSION_MIN_…`, `LC_BUILD_VERSION`.
                0x24 | 0x25 | 0x2f | 0x30 | 0x32 => platform.push((at, end)),
                _ => {}
            }
            at = end;
        }
        Ok(Self { is_64, sections, symtab, dysymtab, platform })
    }

    /// The entries of the symbol table, and its strings.
    fn symbols<'o>(&self, object: &'o [u8]) -> Result<Option<(&'o [u8], &'o [u8])>> {
        let Some(at) = self.symtab else { return Ok(None) };
        let part = |start: usize, size: usize| {
            let end = start.checked_add(size);
            end.and_then(|end| object.get(start..end)).ok_or_else(|| short(start, "the symbols of an object"))
        };
        let count = index(word(object, at + 12)?);
        let entries = part(index(word(object, at + 8)?), count.saturating_mul(self.symbol_size()))?;
        Ok(Some((entries, part(index(word(object, at + 16)?), index(word(object, at + 20)?))?)))
    }

    fn symbol_size(&self) -> usize {
        if self.is_64 { 16 } else { 12 }
    }

    /// Writes symbols and strings anew behind the object, with an undefined symbol at their end: linkers then take the record
    /// out of the archive. The strings reach to the end of the file, with what is kept: Apple's tools want nothing behind them.
    fn add_symbol(&self, object: &[u8], edit: &mut Edit, symbol: Option<&str>) -> Result<()> {
        let (Some(at), Some((entries, strings))) = (self.symtab, self.symbols(object)?) else {
            return Ok(());
        };
        let count = word(object, at + 12)?;
        let mut name = symbol.unwrap_or_default().as_bytes().to_vec();
        let mut entry = Vec::new();
        if symbol.is_some() {
            name.push(0);
            let size = u32::try_from(strings.len()).map_err(|_| short(at, "strings of 32 bits"))?;
            entry.extend_from_slice(&size.to_le_bytes());
            // `N_UNDF | N_EXT`, no section, no flags.
            entry.push(1);
            entry.resize(self.symbol_size(), 0);
            if let Some(dysymtab) = self.dysymtab {
                let (first, undefined) = (word(object, dysymtab + 24)?, word(object, dysymtab + 28)?);
                if first.checked_add(undefined) != Some(count) {
                    let detail = "expected undefined symbols at the end of the symbol table";
                    return Err(Error::at(ErrorKind::Unsupported, dysymtab as u64, detail));
                }
                edit.set(dysymtab + 28, &(undefined + 1).to_le_bytes())?;
            }
            edit.set(at + 12, &count.saturating_add(1).to_le_bytes())?;
        }
        let offset = |at: usize| u32::try_from(at).map_err(|_| short(at, "an object below 4 GB"));
        let symbols = edit.append(&[entries, &entry]);
        edit.set(at + 8, &offset(symbols)?.to_le_bytes())?;
        let strings = edit.append(&[strings, &name]);
        edit.set(at + 16, &offset(strings)?.to_le_bytes())?;
        edit.set(at + 20, &[0; 4])?;
        let size = offset(edit.final_size() - strings)?;
        edit.correct(at + 20, &size.to_le_bytes());
        Ok(())
    }

    /// Whether one of these sections has a weak definition.
    fn has_weak(&self, object: &[u8], sections: &[usize]) -> bool {
        let entries = self.symbols(object).ok().flatten().map_or(&[][..], |(entries, _)| entries);
        entries.chunks_exact(self.symbol_size()).any(|entry| {
            let Some([kind, section, low, high]) = entry.get(4..8) else { return false };
            let is_debug = kind & 0xe0 != 0;
            !is_debug
                && kind & 0x0e == 0x0e
                && u16::from_le_bytes([*low, *high]) & WEAK != 0
                && sections.contains(&usize::from(*section))
        })
    }
}

fn text(field: &[u8]) -> &str {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    std::str::from_utf8(field.get(..end).unwrap_or_default()).unwrap_or_default()
}

fn short(at: usize, expected: &str) -> Error {
    Error::at(ErrorKind::Malformed, at as u64, format!("expected {expected} (Mach-O)"))
}

fn word(bytes: &[u8], at: usize) -> Result<u32> {
    let field = bytes.get(at..).and_then(|rest| rest.first_chunk());
    field.map(|field| u32::from_le_bytes(*field)).ok_or_else(|| short(at, "four more bytes"))
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
