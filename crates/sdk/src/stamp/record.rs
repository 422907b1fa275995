//! The record of a stamp: name and version, in an object of its own that linkers keep.
//!
//! It is an ELF note (`elf(5)`) in both formats: the section `.note.backtrail`, which linkers never drop, or
//! `__TEXT,__backtrail`, marked against dead stripping. The symbol that names it says the same: a dSYM has no other content.

use backtrail_object::{Format, Limits, Object, Section};

use super::{elf, macho};
use crate::error::Result;

const OWNER: &[u8; 12] = b"Backtrail\0\0\0";
/// Bytes of the owner that count.
const OWNER_SIZE: u32 = 10;
/// The type of note.
const STAMP: u32 = 1;
const MACH_O_SECTION: &str = "__backtrail";
const ELF_SECTION: &str = ".note.backtrail";
const SYMBOL: &str = "backtrail_sdk$";
/// Stamps that one app may have.
const MOST: usize = 10_000;

/// The symbol that a record defines, as C would say it.
pub(super) fn symbol(name: &str, version: Option<&str>) -> String {
    format!("{SYMBOL}{name}${}", version.unwrap_or_default())
}

/// The symbol as an object of this format has it.
pub(super) fn linkage_name(like: &[u8], symbol: &str) -> String {
    if like.starts_with(b"\x7fELF") { symbol.to_owned() } else { format!("_{symbol}") }
}

/// The object with the record, for the processor and system of another one.
pub(super) fn object(like: &[u8], name: &str, version: Option<&str>, symbol: &str) -> Result<Vec<u8>> {
    let note = note(name, version.unwrap_or_default());
    let symbol = linkage_name(like, symbol);
    if like.starts_with(b"\x7fELF") {
        elf_object(like, &note, &symbol)
    } else {
        mach_o_object(like, &note, &symbol)
    }
}

fn note(name: &str, version: &str) -> Vec<u8> {
    let mut content = format!("{name}\0{version}\0").into_bytes();
    let mut note = Vec::new();
    for number in [OWNER_SIZE, u32::try_from(content.len()).unwrap_or(0), STAMP] {
        note.extend_from_slice(&number.to_le_bytes());
    }
    note.extend_from_slice(OWNER);
    content.resize(content.len().next_multiple_of(4), 0);
    note.extend_from_slice(&content);
    note
}

/// Numbers of 32 or 64 bits, one after another.
struct Writer {
    bytes: Vec<u8>,
    is_64: bool,
}

impl Writer {
    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.bytes.extend_from_slice(&word.to_le_bytes()));
    }

    fn longs(&mut self, longs: &[usize]) {
        for long in longs {
            let bytes = (*long as u64).to_le_bytes();
            self.bytes.extend_from_slice(bytes.get(..if self.is_64 { 8 } else { 4 }).unwrap_or_default());
        }
    }

    fn text(&mut self, text: &str, size: usize) {
        let end = self.bytes.len() + size;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.resize(end, 0);
    }
}

/// `<mach-o/loader.h>`, `<mach-o/nlist.h>`.
fn mach_o_object(like: &[u8], note: &[u8], symbol: &str) -> Result<Vec<u8>> {
    let layout = macho::Layout::read(like)?;
    let is_64 = layout.is_64;
    let system: Vec<u8> =
        layout.platform.iter().filter_map(|(start, end)| like.get(*start..*end)).flatten().copied().collect();
    let (header, segment, section, entry) = if is_64 { (32, 72, 80, 16) } else { (28, 56, 68, 12) };
    let commands = segment + section + system.len() + 24 + 80;
    let data = (header + commands).next_multiple_of(8);
    let symbols = (data + note.len()).next_multiple_of(8);
    let strings = symbols + entry;
    let names = (symbol.len() + 2).next_multiple_of(8);
    let small = |number: usize| u32::try_from(number).unwrap_or(0);
    let mut out = Writer { bytes: like.get(..12).unwrap_or_default().to_vec(), is_64 };
    // `MH_OBJECT`, `MH_SUBSECTIONS_VIA_SYMBOLS`.
    out.words(&[1, small(layout.platform.len() + 3), small(commands), 0x2000]);
    out.bytes.resize(header, 0);
    out.words(&[if is_64 { 0x19 } else { 1 }, small(segment + section)]);
    out.text("", 16);
    out.longs(&[0, note.len(), data, note.len()]);
    out.words(&[7, 7, 1, 0]);
    out.text(MACH_O_SECTION, 16);
    out.text("__TEXT", 16);
    out.longs(&[0, note.len()]);
    // Alignment 2^2; `S_ATTR_NO_DEAD_STRIP`.
    out.words(&[small(data), 2, 0, 0, 0x1000_0000, 0, 0]);
    if is_64 {
        out.words(&[0]);
    }
    out.bytes.extend_from_slice(&system);
    out.words(&[2, 24, small(symbols), 1, small(strings), small(names)]);
    // `LC_DYSYMTAB`: no local symbol, one that is defined.
    out.words(&[0xb, 80, 0, 0, 0, 1, 1, 0]);
    out.bytes.resize(data, 0);
    out.bytes.extend_from_slice(note);
    out.bytes.resize(symbols, 0);
    // `N_SECT | N_EXT | N_PEXT` in section 1; `N_NO_DEAD_STRIP | N_WEAK_DEF`: of several libraries of one stamp, one record.
    out.words(&[1]);
    out.bytes.extend_from_slice(&[0x1f, 1, 0xa0, 0]);
    out.longs(&[0]);
    out.text("\0", 1);
    out.text(symbol, names - 1);
    Ok(out.bytes)
}

/// `elf(5)`. With the object's own `.note.gnu.property`: a linker turns protections off where one object has none. And with
/// `.note.GNU-stack`: without it GNU's linker makes the stack executable.
fn elf_object(like: &[u8], note: &[u8], symbol: &str) -> Result<Vec<u8>> {
    const NAMES: &str = "\0.note.backtrail\0.note.GNU-stack\0.symtab\0.strtab\0.note.gnu.property\0";
    let layout = elf::Layout::read(like)?;
    let is_64 = layout.is_64;
    let property = layout.named(like, ".note.gnu.property")?.unwrap_or_default();
    let (header, section, entry) = if is_64 { (64, 64, 24) } else { (52, 40, 16) };
    let name_of = |name: &str| NAMES.find(name).unwrap_or(0);
    let names = [NAMES.as_bytes(), symbol.as_bytes(), &[0]].concat();
    let property_at = (header + note.len()).next_multiple_of(8);
    let symbols = (property_at + property.len()).next_multiple_of(8);
    let strings = symbols + 2 * entry;
    let headers = (strings + names.len()).next_multiple_of(8);
    let count = if property.is_empty() { 5 } else { 6 };
    let small = |number: usize| u32::try_from(number).unwrap_or(0);
    let mut out = Writer { bytes: like.get(..header).unwrap_or_default().to_vec(), is_64 };
    // Processor and flags are those of the other object.
    let (section_headers, counts) = if is_64 { (0x28, 0x3a) } else { (0x20, 0x2e) };
    let mut table = Writer { bytes: Vec::new(), is_64 };
    table.longs(&[headers]);
    for (at, new) in [
        (section_headers, table.bytes.as_slice()),
        (counts, [section, 0, count, 0, 4, 0].map(|number| number as u8).as_slice()),
    ] {
        out.bytes.iter_mut().skip(at).zip(new).for_each(|(byte, new)| *byte = *new);
    }
    out.bytes.extend_from_slice(note);
    out.bytes.resize(property_at, 0);
    out.bytes.extend_from_slice(property);
    out.bytes.resize(symbols + entry, 0);
    // Weak, an object, hidden, in section 1: of several libraries of one stamp, any.
    let (size, tag) = (note.len(), [0x21, 2, 1, 0]);
    out.words(&[small(NAMES.len())]);
    if is_64 {
        out.bytes.extend_from_slice(&tag);
        out.longs(&[0, size]);
    } else {
        out.longs(&[0, size]);
        out.bytes.extend_from_slice(&tag);
    }
    out.bytes.extend_from_slice(&names);
    out.bytes.resize(headers, 0);
    let mut write =
        |name: &str, kind: u32, flags: usize, place: (usize, usize), link: [u32; 2], sizes: [usize; 2]| {
            out.words(&[small(name_of(name)), kind]);
            out.longs(&[flags, 0, place.0, place.1]);
            out.words(&link);
            out.longs(&sizes);
        };
    write("\0", 0, 0, (0, 0), [0, 0], [0, 0]);
    write(ELF_SECTION, 7, 2, (header, note.len()), [0, 0], [4, 0]);
    write(".note.GNU-stack", 1, 0, (property_at, 0), [0, 0], [1, 0]);
    write(".symtab", 2, 0, (symbols, 2 * entry), [4, 1], [8, entry]);
    write(".strtab", 3, 0, (strings, names.len()), [0, 0], [1, 0]);
    if !property.is_empty() {
        let align = if is_64 { 8 } else { 4 };
        write(".note.gnu.property", 7, 2, (property_at, property.len()), [0, 0], [align, 0]);
    }
    Ok(out.bytes)
}

/// Name and version of the record that an object is.
pub(super) fn read_object(bytes: &[u8]) -> Option<(String, String)> {
    let object = Object::parse_with(bytes, &Limits::default()).ok()?;
    read(&object).into_iter().next()
}

/// Names and versions of all records of an app: of its notes, else of the symbols.
pub(super) fn read(object: &Object<'_>) -> Vec<(String, String)> {
    let is_mach_o = object.format() == Format::MachO;
    let is_ours = |section: &&Section<'_>| match is_mach_o {
        true => section.name == MACH_O_SECTION && section.segment == "__TEXT",
        false => section.name == ELF_SECTION,
    };
    let mut found: Vec<(String, String)> = Vec::new();
    for section in object.sections().iter().filter(is_ours) {
        let data = object.section_data(section).unwrap_or_default();
        found.extend(notes(&data));
    }
    if found.is_empty() {
        let prefix = if is_mach_o { format!("_{SYMBOL}") } else { SYMBOL.to_owned() };
        let symbols = object.symbols().unwrap_or_default();
        let named =
            symbols.iter().filter_map(|symbol| symbol.name.strip_prefix(prefix.as_str())?.split_once('$'));
        found.extend(named.map(|(name, version)| (name.to_owned(), version.to_owned())).take(MOST));
    }
    found.sort();
    found.dedup();
    found
}

fn notes(data: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = data;
    // Owner, size, type, owner's name; a linker may have aligned one with zeros before it.
    while rest.len() > 24 && found.len() < MOST {
        let word = |at: usize| {
            rest.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
        };
        if (word(0), word(8)) != (OWNER_SIZE, STAMP) || rest.get(12..24) != Some(OWNER) {
            rest = rest.get(4..).unwrap_or_default();
            continue;
        }
        let size = usize::try_from(word(4)).unwrap_or(usize::MAX);
        let Some(content) = rest.get(24..).and_then(|rest| rest.get(..size)) else { break };
        let mut parts =
            content.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        if let (Some(name), Some(version)) = (parts.next(), parts.next()) {
            found.push((name, version));
        }
        rest = rest.get(24 + size.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}
