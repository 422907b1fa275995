//! Archives whose members change in size, and get one more or less: headers and the index of symbols are written anew. GNU's
//! and BSD's `ar(5)`.

use std::collections::HashMap;

use crate::error::{Error, ErrorKind, Result};

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;
/// The name of the member with the record.
const RECORD: &str = "backtrail.o";

pub(super) fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Fails where a member is bitcode: the linker compiles it anew, and its sections are not there yet.
pub(super) fn refuse_bitcode(bytes: &[u8]) -> Result<()> {
    super::fat::each(bytes, |thin| {
        if is_bitcode(thin) {
            return Err(bitcode("the file"));
        }
        if is_archive(thin) {
            for member in members(thin)? {
                if is_bitcode(thin.get(member.data..member.end).unwrap_or_default()) {
                    return Err(bitcode(&format!("member {}", member.name)));
                }
            }
        }
        Ok(None)
    })
    .map(drop)
}

fn bitcode(what: &str) -> Error {
    let detail = format!(
        "{what} is LLVM bitcode, which a linker compiles anew: it cannot be stamped. Build the library without LTO"
    );
    Error::new(ErrorKind::Unsupported, detail)
}

fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b")
}

pub(super) struct Member {
    /// As the header has it, or what BSD writes before the content.
    name: String,
    pub(super) header: usize,
    /// Behind a name that BSD writes before the content.
    pub(super) data: usize,
    pub(super) end: usize,
}

impl Member {
    /// Whether it has the name of the member with the record.
    pub(super) fn is_record(&self) -> bool {
        self.name.trim_end_matches('/') == RECORD
    }

    /// An error of this member's content, with its name.
    pub(super) fn in_it(&self, error: Error) -> Error {
        error.in_part(&format!("member {}", self.name), self.data as u64)
    }
}

/// The members of the archive that `bytes` starts with.
pub(super) fn members(bytes: &[u8]) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    let mut at = MAGIC.len();
    while let Some(header) = bytes.get(at..at + HEADER) {
        if header.get(58..60) != Some(b"`\n") {
            return Err(malformed(at, "the header of an archive's member"));
        }
        let size = number(header.get(48..58).unwrap_or_default());
        let size = size.ok_or_else(|| malformed(at + 48, "the size of a member"))?;
        let start = at + HEADER;
        let end = start.checked_add(size).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| malformed(at + 48, "a member that fits the archive"))?;
        let mut name = String::from_utf8_lossy(header.get(..16).unwrap_or_default()).trim_end().to_owned();
        let before = name.strip_prefix("#1/").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
        let data = (start + before).min(end);
        if before > 0 {
            let text = bytes.get(start..data).unwrap_or_default();
            name = String::from_utf8_lossy(text).trim_end_matches('\0').to_owned();
        }
        found.push(Member { name, header: at, data, end });
        at = end + end % 2;
    }
    if at < bytes.len() {
        return Err(malformed(at, "the header of an archive's member"));
    }
    Ok(found)
}

fn malformed(at: usize, expected: &str) -> Error {
    Error::at(ErrorKind::Malformed, at as u64, format!("expected {expected}"))
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// What becomes of the member with the record.
pub(super) enum Record<'a> {
    Add {
        object: &'a [u8],
        /// What it defines.
        symbol: &'a str,
    },
    /// With this header.
    Remove(usize),
    Keep,
}

/// The archive with some members replaced, each by the place of its header, and with or without the record.
pub(super) fn rewrite(
    bytes: &[u8],
    replaced: &HashMap<usize, Vec<u8>>,
    record: &Record<'_>,
) -> Result<Vec<u8>> {
    let members = members(bytes)?;
    let mut out = MAGIC.to_vec();
    let mut moved: HashMap<usize, usize> = HashMap::new();
    let mut index: Option<(usize, usize, Index)> = None;
    let mut is_bsd = false;
    for member in &members {
        if matches!(record, Record::Remove(header) if *header == member.header) {
            continue;
        }
        moved.insert(member.header, out.len());
        let header = bytes.get(member.header..member.header + HEADER).unwrap_or_default();
        let before = bytes.get(member.header + HEADER..member.data).unwrap_or_default();
        is_bsd |= header.starts_with(b"#1/");
        let old = bytes.get(member.data..member.end).unwrap_or_default();
        let kind = Index::of(&member.name);
        let changed = match (&kind, record) {
            (Some(kind), Record::Add { symbol, .. }) => Some(kind.with(old, symbol, bytes.len())?),
            (Some(kind), Record::Remove(header)) => Some(kind.without(old, *header)?),
            _ => None,
        };
        let new = changed.as_ref().or_else(|| replaced.get(&member.header)).map_or(old, Vec::as_slice);
        write_member(&mut out, header, before, new)?;
        if let Some(kind) = kind {
            let start = moved.get(&member.header).map_or(0, |at| at + HEADER + before.len());
            index = Some((start, start + new.len(), kind));
        }
    }
    if let Record::Add { object, .. } = record {
        // In the old archive no member starts at its end.
        moved.insert(bytes.len(), out.len());
        add_record(&mut out, object, is_bsd)?;
    }
    if let Some((start, end, kind)) = index {
        kind.repoint(out.get_mut(start..end).unwrap_or_default(), &moved)?;
    }
    Ok(out)
}

fn write_member(out: &mut Vec<u8>, header: &[u8], before: &[u8], content: &[u8]) -> Result<()> {
    let size = format!("{:<10}", before.len() + content.len());
    if size.len() > 10 {
        return Err(malformed(out.len(), "members below 10 GB"));
    }
    out.extend_from_slice(header.get(..48).unwrap_or_default());
    out.extend_from_slice(size.as_bytes());
    out.extend_from_slice(b"`\n");
    out.extend_from_slice(before);
    out.extend_from_slice(content);
    if out.len() % 2 == 1 {
        out.push(b'\n');
    }
    Ok(())
}

/// BSD's names before the content are padded so that the content is aligned, as Apple's linkers want it.
fn add_record(out: &mut Vec<u8>, object: &[u8], is_bsd: bool) -> Result<()> {
    let mut before = Vec::new();
    let mut name = format!("{RECORD}/");
    if is_bsd {
        before.extend_from_slice(RECORD.as_bytes());
        let start = out.len() + HEADER;
        before.resize((start + before.len() + 1).next_multiple_of(8) - start, 0);
        name = format!("#1/{}", before.len());
    }
    let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}", 0, 0, 0, 644);
    write_member(out, header.as_bytes(), &before, object)
}

/// Whose form an archive's index of symbols has, with the bytes of its numbers.
#[derive(Clone, Copy)]
enum Index {
    /// A count, then where each symbol's member starts, big-endian; then the names in that order.
    Gnu(usize),
    /// The bytes of all pairs, pairs of a name's and a member's place, the bytes of the names, the names; little-endian.
    Bsd { width: usize, is_sorted: bool },
}

impl Index {
    fn of(name: &str) -> Option<Self> {
        match name {
            "/" => Some(Self::Gnu(4)),
            "/SYM64/" => Some(Self::Gnu(8)),
            _ if name.starts_with("__.SYMDEF_64") => {
                Some(Self::Bsd { width: 8, is_sorted: name.ends_with("SORTED") })
            }
            _ if name.starts_with("__.SYMDEF") => {
                Some(Self::Bsd { width: 4, is_sorted: name.ends_with("SORTED") })
            }
            _ => None,
        }
    }

    fn width(self) -> usize {
        match self {
            Self::Gnu(width) | Self::Bsd { width, .. } => width,
        }
    }

    fn get(self, bytes: &[u8], at: usize) -> Result<usize> {
        let field = at.checked_add(self.width()).and_then(|end| bytes.get(at..end));
        let field = field.ok_or_else(|| malformed(at, "more bytes of an archive's index"))?;
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let number = match self {
            Self::Gnu(_) => field.iter().fold(0, add),
            Self::Bsd { .. } => field.iter().rev().fold(0, add),
        };
        Ok(usize::try_from(number).unwrap_or(usize::MAX))
    }

    fn put(self, bytes: &mut [u8], at: usize, number: usize) -> Result<()> {
        let too_small = || malformed(at, "an archive that its index can describe");
        let number = (number as u64).to_le_bytes();
        let (low, high) = number.split_at(self.width());
        let place = bytes.get_mut(at..at + self.width()).filter(|_| high.iter().all(|byte| *byte == 0));
        let place = place.ok_or_else(too_small)?;
        place.copy_from_slice(low);
        if matches!(self, Self::Gnu(_)) {
            place.reverse();
        }
        Ok(())
    }

    /// Where the members' places start, the bytes from one to the next, and how many there are.
    fn entries(self, index: &[u8]) -> Result<(usize, usize, usize)> {
        let width = self.width();
        let first = self.get(index, 0)?;
        let (step, count) = match self {
            Self::Gnu(_) => (width, first),
            Self::Bsd { .. } => (2 * width, first / (2 * width)),
        };
        let end = count.checked_mul(step).and_then(|size| size.checked_add(width));
        if end.is_none_or(|end| end > index.len()) {
            return Err(malformed(0, "an index that has as many symbols as it states"));
        }
        Ok((width, step, count))
    }

    /// Where the names start, and where the one of each entry does.
    fn names(self, index: &[u8]) -> Result<(usize, Vec<usize>)> {
        let (start, step, count) = self.entries(index)?;
        let width = self.width();
        let behind = start + count * step;
        match self {
            Self::Gnu(_) => {
                let mut at = behind;
                let mut places = Vec::with_capacity(count);
                for _ in 0..count {
                    places.push(at);
                    at += name_at(index, at)?.len() + 1;
                }
                Ok((behind, places))
            }
            Self::Bsd { .. } => {
                let place =
                    |entry: usize| Ok(self.get(index, start + entry * step)?.saturating_add(behind + width));
                Ok((behind + width, (0..count).map(place).collect::<Result<_>>()?))
            }
        }
    }

    /// The index with one more symbol, of the member at `header`.
    fn with(self, index: &[u8], symbol: &str, header: usize) -> Result<Vec<u8>> {
        let (start, step, count) = self.entries(index)?;
        let (names, places) = self.names(index)?;
        let width = self.width();
        let mut entry = vec![0; step];
        self.put(&mut entry, step - width, header)?;
        let mut new = index.to_vec();
        let name = name_in_index(self, symbol);
        match self {
            Self::Gnu(_) => {
                let end = match places.last() {
                    Some(last) => last + name_at(index, *last)?.len() + 1,
                    None => names,
                };
                new.splice(end..end, name);
                new.splice(names..names, entry);
                self.put(&mut new, 0, count + 1)?;
            }
            Self::Bsd { is_sorted, .. } => {
                let size = self.get(index, names - width)?;
                let end = names.checked_add(size).filter(|end| *end <= index.len());
                let end = end.ok_or_else(|| malformed(names - width, "names that fit the index"))?;
                self.put(&mut entry, 0, size)?;
                self.put(&mut new, names - width, size + name.len())?;
                let mut position = count;
                if is_sorted {
                    let name = |place: &usize| name_at(index, *place).unwrap_or_default();
                    position = places.partition_point(|place| name(place) < symbol.as_bytes());
                }
                let at = start + position * step;
                new.splice(end..end, name);
                new.splice(at..at, entry);
                self.put(&mut new, 0, (count + 1) * step)?;
            }
        }
        Ok(new)
    }

    /// The index without the symbol that the member at `header` was added for.
    fn without(self, index: &[u8], header: usize) -> Result<Vec<u8>> {
        let (start, step, count) = self.entries(index)?;
        let (names, places) = self.names(index)?;
        let width = self.width();
        let mut position = None;
        for entry in 0..count {
            if self.get(index, start + entry * step + step - width)? == header {
                position = Some(entry);
            }
        }
        let Some((position, place)) = position.and_then(|at| Some((at, *places.get(at)?))) else {
            return Ok(index.to_vec());
        };
        let name = String::from_utf8_lossy(name_at(index, place)?).into_owned();
        let size = name_in_index(self, &name).len();
        let mut new = index.to_vec();
        let end = place.checked_add(size).filter(|end| *end <= new.len());
        let end = end.ok_or_else(|| malformed(place, "names that fit the index"))?;
        match self {
            Self::Gnu(_) => self.put(&mut new, 0, count - 1)?,
            Self::Bsd { .. } => {
                let all = self.get(index, names - width)?.saturating_sub(size);
                self.put(&mut new, names - width, all)?;
                self.put(&mut new, 0, (count - 1) * step)?;
            }
        }
        let entry = start + position * step;
        new.drain(place..end);
        new.drain(entry..entry + step);
        Ok(new)
    }

    fn repoint(self, index: &mut [u8], moved: &HashMap<usize, usize>) -> Result<()> {
        let (start, step, count) = self.entries(index)?;
        for entry in 0..count {
            let at = start + entry * step + step - self.width();
            if let Some(new) = moved.get(&self.get(index, at)?) {
                self.put(index, at, *new)?;
            }
        }
        Ok(())
    }
}

/// BSD's index grows by a multiple of 8, so that the members behind it stay aligned.
fn name_in_index(kind: Index, symbol: &str) -> Vec<u8> {
    let mut name = symbol.as_bytes().to_vec();
    name.push(0);
    if matches!(kind, Index::Bsd { .. }) {
        name.resize(name.len().next_multiple_of(8), 0);
    }
    name
}

fn name_at(index: &[u8], at: usize) -> Result<&[u8]> {
    let rest = index.get(at..).unwrap_or_default();
    let end = rest.iter().position(|byte| *byte == 0);
    let end = end.ok_or_else(|| malformed(at, "a name that ends, in an archive's index"))?;
    Ok(rest.get(..end).unwrap_or_default())
}
