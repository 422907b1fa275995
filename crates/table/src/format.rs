//! Header, directory of sections and the small facts of a table.

use crate::bytes::{Cursor, put_uleb};
use crate::error::{Error, ErrorKind, Result};
use crate::types::{DropReason, Header, SourceKind};
use backtrail_core::{Arch, ImageId, Svma};

pub(crate) const MAGIC: [u8; 8] = *b"\x89BTSYM\r\n";
pub(crate) const VERSION: u32 = 1;
pub(crate) const HEADER_SIZE: usize = 160;
pub(crate) const ENTRY_SIZE: usize = 32;
/// Far more sections than any version will have.
const MAX_SECTIONS: u32 = 256;
const CHECKED: usize = HEADER_SIZE - 4;

/// The sections of version 1, in the order of the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub(crate) enum SectionKind {
    Names = 1,
    Bodies = 2,
    Index = 3,
    Files = 4,
    Regions = 5,
    Facts = 6,
}

pub(crate) const SECTIONS: [SectionKind; 6] = [
    SectionKind::Names,
    SectionKind::Bodies,
    SectionKind::Index,
    SectionKind::Files,
    SectionKind::Regions,
    SectionKind::Facts,
];

impl SectionKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Index => "index",
            Self::Names => "names",
            Self::Files => "files",
            Self::Regions => "regions",
            Self::Facts => "facts",
        }
    }
}

/// Where a section lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: u32,
    pub(crate) checksum: u32,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

impl Entry {
    /// The section's bytes.
    pub(crate) fn bytes<'d>(&self, data: &'d [u8]) -> Option<&'d [u8]> {
        let start = usize::try_from(self.offset).ok()?;
        let end = start.checked_add(usize::try_from(self.size).ok()?)?;
        data.get(start..end)
    }
}

/// The header and the directory as they stand at the start of the file.
pub(crate) fn put_header(header: &Header, entries: &[Entry], file_size: u64) -> Vec<u8> {
    let mut directory = Vec::with_capacity(entries.len() * ENTRY_SIZE);
    for entry in entries {
        directory.extend(entry.kind.to_le_bytes());
        directory.extend(entry.checksum.to_le_bytes());
        directory.extend(entry.offset.to_le_bytes());
        directory.extend(entry.size.to_le_bytes());
        directory.extend([0; 8]);
    }
    let mut out = Vec::with_capacity(HEADER_SIZE + directory.len());
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend((HEADER_SIZE as u32).to_le_bytes());
    out.extend(file_size.to_le_bytes());
    out.extend(header.image_base.get().to_le_bytes());
    put_padded(&mut out, header.arch.name().as_bytes(), 16);
    let (kind, id) = match &header.id {
        None => (0, [].as_slice()),
        Some(id @ ImageId::Uuid(_)) => (1, id.as_bytes()),
        Some(id @ ImageId::BuildId(_)) => (2, id.as_bytes()),
        Some(id) => (3, id.as_bytes()),
    };
    out.extend([kind, id.len() as u8, header.source as u8, 0]);
    out.extend((entries.len() as u32).to_le_bytes());
    put_padded(&mut out, id, 64);
    out.extend([0; 32]);
    out.extend(crc32fast::hash(&directory).to_le_bytes());
    let checksum = crc32fast::hash(&out);
    out.extend(checksum.to_le_bytes());
    out.extend(directory);
    out
}

fn put_padded(out: &mut Vec<u8>, bytes: &[u8], size: usize) {
    let end = out.len() + size;
    out.extend(bytes.iter().take(size));
    out.resize(end, 0);
}

/// Reads what [`put_header`] wrote.
pub(crate) fn read_header(data: &[u8]) -> Result<(Header, Vec<Entry>)> {
    let Fixed { header, sections, checksum } = read_start(data, data.len() as u64)?;
    let size = sections as usize * ENTRY_SIZE;
    let directory =
        data.get(HEADER_SIZE..HEADER_SIZE + size).ok_or_else(|| truncated(data, HEADER_SIZE + size))?;
    if crc32fast::hash(directory) != checksum {
        let detail = "expected the directory's checksum";
        return Err(Error::new(ErrorKind::Checksum, CHECKED as u64 - 4, detail));
    }
    let mut entries = Vec::with_capacity(sections as usize);
    for (index, bytes) in directory.chunks_exact(ENTRY_SIZE).enumerate() {
        let entry = read_entry(bytes).filter(|entry| entry.bytes(data).is_some());
        let at = (HEADER_SIZE + index * ENTRY_SIZE) as u64;
        entries.push(
            entry
                .ok_or_else(|| Error::new(ErrorKind::Truncated, at, "expected a section within the file"))?,
        );
    }
    Ok((header, entries))
}

fn truncated(data: &[u8], size: usize) -> Error {
    Error::new(ErrorKind::Truncated, data.len() as u64, format!("expected {size} bytes"))
}

/// What the fixed part of the file says.
pub(crate) struct Fixed {
    /// Without a name, which stands among the facts.
    pub(crate) header: Header,
    sections: u32,
    /// Of the directory.
    checksum: u32,
}

/// Reads the fixed part, of which `data` has to have all bytes.
pub(crate) fn read_start(data: &[u8], file_size: u64) -> Result<Fixed> {
    if data.get(..MAGIC.len()) != Some(MAGIC.as_slice()) {
        return Err(Error::new(ErrorKind::NotATable, 0, "expected the bytes 89 42 54 53 59 4d 0d 0a"));
    }
    let mut cursor = Cursor::at(data, MAGIC.len());
    let version = cursor.u32().ok_or_else(|| truncated(data, HEADER_SIZE))?;
    if version != VERSION {
        let detail = format!("expected version {VERSION}, found {version}");
        return Err(Error::new(ErrorKind::UnsupportedVersion, 8, detail));
    }
    let fixed = data.get(..HEADER_SIZE).ok_or_else(|| truncated(data, HEADER_SIZE))?;
    let stated = fixed.last_chunk().map(|bytes| u32::from_le_bytes(*bytes));
    if stated != fixed.get(..CHECKED).map(crc32fast::hash) {
        return Err(Error::new(ErrorKind::Checksum, CHECKED as u64, "expected the header's checksum"));
    }
    read_fixed(file_size, cursor)
        .ok_or_else(|| Error::malformed(12, "expected a header of version 1 and of a file of this size"))
}

/// Reads what stands behind the version.
fn read_fixed(file_size: u64, mut cursor: Cursor<'_>) -> Option<Fixed> {
    if cursor.u32()? != HEADER_SIZE as u32 || cursor.u64()? != file_size {
        return None;
    }
    let image_base = Svma::new(cursor.u64()?);
    let name: [u8; 16] = cursor.array()?;
    let name = name.split(|byte| *byte == 0).next()?;
    let arch = std::str::from_utf8(name).ok().and_then(Arch::from_name).unwrap_or(Arch::Unknown);
    let [kind, size, source, _] = cursor.array()?;
    let sections = cursor.u32().filter(|count| *count <= MAX_SECTIONS)?;
    let id: [u8; 64] = cursor.array()?;
    let id = id.get(..usize::from(size))?;
    let id = match kind {
        1 => Some(ImageId::Uuid(id.try_into().ok()?)),
        2 => Some(ImageId::from_build_id(id)?),
        3 => Some(ImageId::CodeHash(id.try_into().ok()?)),
        _ => None,
    };
    cursor.take(32)?;
    let checksum = cursor.u32()?;
    let source = SourceKind::from_code(source);
    let header = Header { id, arch, source, image_base, name: String::new() };
    Some(Fixed { header, sections, checksum })
}

fn read_entry(bytes: &[u8]) -> Option<Entry> {
    let mut cursor = Cursor::new(bytes);
    let (kind, checksum) = (cursor.u32()?, cursor.u32()?);
    Some(Entry { kind, checksum, offset: cursor.u64()?, size: cursor.u64()? })
}

/// What opening a table reads besides the header.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) name: Vec<u8>,
    pub(crate) counts: Counts,
    pub(crate) dropped: Vec<(DropReason, u64)>,
    /// The languages that names refer to by number.
    pub(crate) languages: Vec<u16>,
}

/// How much of everything a table holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) functions: u64,
    pub(crate) ranges: u64,
    pub(crate) inlines: u64,
    pub(crate) rows: u64,
    pub(crate) symbols: u64,
    /// Bytes of the bodies that tell inlined calls.
    pub(crate) call_bytes: u64,
}

impl Facts {
    pub(crate) fn put(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_uleb(&mut out, self.name.len() as u64);
        out.extend(&self.name);
        let Counts { functions, ranges, inlines, rows, symbols, call_bytes } = self.counts;
        let counts = [functions, ranges, inlines, rows, symbols, call_bytes];
        put_uleb(&mut out, counts.len() as u64);
        counts.into_iter().for_each(|count| put_uleb(&mut out, count));
        put_uleb(&mut out, self.dropped.len() as u64);
        for (reason, count) in &self.dropped {
            out.push(*reason as u8);
            put_uleb(&mut out, *count);
        }
        put_uleb(&mut out, self.languages.len() as u64);
        self.languages.iter().for_each(|code| put_uleb(&mut out, u64::from(*code)));
        out
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let size = usize::try_from(cursor.uleb()?).ok()?;
        let name = cursor.take(size)?.to_vec();
        let counts = read_counts(&mut cursor)?;
        let mut facts = Self { name, counts, ..Self::default() };
        for _ in 0..cursor.uleb()? {
            facts.dropped.push((DropReason::from_code(cursor.u8()?), cursor.uleb()?));
        }
        for _ in 0..cursor.uleb()? {
            facts.languages.push(u16::try_from(cursor.uleb()?).ok()?);
        }
        Some(facts)
    }
}

fn read_counts(cursor: &mut Cursor<'_>) -> Option<Counts> {
    let mut values = [0; 6];
    for index in 0..cursor.uleb()? {
        let value = cursor.uleb()?;
        if let Some(slot) = usize::try_from(index).ok().and_then(|index| values.get_mut(index)) {
            *slot = value;
        }
    }
    let [functions, ranges, inlines, rows, symbols, call_bytes] = values;
    Some(Counts { functions, ranges, inlines, rows, symbols, call_bytes })
}

impl SourceKind {
    fn from_code(code: u8) -> Self {
        use SourceKind as Kind;
        let known = [
            Kind::ElfDwarf,
            Kind::MachODwarf,
            Kind::ElfSymbols,
            Kind::MachOSymbols,
            Kind::Gsym,
            Kind::Breakpad,
        ];
        known.into_iter().find(|kind| *kind as u8 == code).unwrap_or(Kind::Unknown)
    }
}

impl Header {
    /// Bytes at the start of a table that [`peek`](Self::peek) needs.
    pub const SIZE: usize = HEADER_SIZE;

    /// The first bytes of every table.
    pub const MAGIC: [u8; 8] = MAGIC;

    /// Reads a table's identity from its first bytes alone. The name stands deeper in the file and is left out.
    ///
    /// # Errors
    /// When that is no start of a table of a file of this many bytes.
    pub fn peek(start: &[u8], file_size: u64) -> Result<Self> {
        read_start(start, file_size).map(|fixed| fixed.header)
    }
}

impl DropReason {
    /// All that this version has words for.
    pub const ALL: [Self; 12] = [
        Self::Other,
        Self::DeadFunction,
        Self::DeadRows,
        Self::MergedFunction,
        Self::EmptyInline,
        Self::DeepInline,
        Self::BrokenUnit,
        Self::BrokenLines,
        Self::MissingFile,
        Self::Limit,
        Self::MergedRows,
        Self::TooLarge,
    ];

    fn from_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|reason| *reason as u8 == code).unwrap_or(Self::Other)
    }

    /// The word that `--json` uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::DeadFunction => "dead-function",
            Self::DeadRows => "dead-rows",
            Self::MergedFunction => "merged-function",
            Self::EmptyInline => "empty-inline",
            Self::DeepInline => "deep-inline",
            Self::BrokenUnit => "broken-unit",
            Self::BrokenLines => "broken-lines",
            Self::MissingFile => "missing-file",
            Self::Limit => "limit",
            Self::MergedRows => "merged-rows",
            Self::TooLarge => "too-large",
        }
    }
}
