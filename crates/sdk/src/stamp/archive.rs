//! Archives whose members grow: their headers and the index at the start are written anew. GNU's and BSD's `ar(5)`.

use crate::error::{Error, ErrorKind, Result};

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// Fails where a member is bitcode: the linker compiles it anew, and its sections are not there yet.
pub(super) fn refuse_bitcode(bytes: &[u8]) -> Result<()> {
    if is_bitcode(bytes) {
        return Err(bitcode("the file"));
    }
    for start in archives(bytes) {
        let archive = bytes.get(start..).unwrap_or_default();
        for member in members(archive)? {
            let content = archive.get(member.data..member.end).unwrap_or_default();
            if is_bitcode(content) {
                return Err(bitcode(&format!("member {}", member.name)));
            }
        }
    }
    Ok(())
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

/// Where archives start: at the start of the file, or of the slices of a fat one.
fn archives(bytes: &[u8]) -> Vec<usize> {
    if bytes.starts_with(MAGIC) {
        return vec![0];
    }
    let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
    if word(0) != Some(0xcafe_babe) {
        return Vec::new();
    }
    let count = word(4).unwrap_or(0).min(64);
    let offsets =
        (0..count).filter_map(|number| usize::try_from(word(usize::try_from(number).ok()? * 20 + 16)?).ok());
    offsets.filter(|at| bytes.get(*at..).is_some_and(|slice| slice.starts_with(MAGIC))).collect()
}

struct Member {
    name: String,
    header: usize,
    /// Behind a name that BSD writes before the content.
    data: usize,
    end: usize,
}

/// The members of the archive that `bytes` starts with; ends at the first thing that is none.
fn members(bytes: &[u8]) -> Result<Vec<Member>> {
    let mut found = Vec::new();
    let mut at = MAGIC.len();
    while let Some(header) = bytes.get(at..at + HEADER) {
        if header.get(58..60) != Some(b"`\n") {
            break;
        }
        let size = number(header.get(48..58).unwrap_or_default());
        let size = size.ok_or_else(|| {
            Error::at(ErrorKind::Malformed, at as u64 + 48, "expected the size of a member")
        })?;
        let start = at + HEADER;
        let end = start.checked_add(size).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| {
            Error::at(ErrorKind::Malformed, at as u64 + 48, "expected a member that fits the archive")
        })?;
        let name = String::from_utf8_lossy(header.get(..16).unwrap_or_default()).trim_end().to_owned();
        let before = name.strip_prefix("#1/").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
        found.push(Member { name, header: at, data: (start + before).min(end), end });
        at = end + end % 2;
    }
    Ok(found)
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// The file with some members replaced by longer ones: each by its range and its new bytes.
pub(super) fn replace(bytes: &[u8], grown: &[(usize, usize, Vec<u8>)]) -> Result<Vec<u8>> {
    if !bytes.starts_with(MAGIC) {
        // An object by itself.
        return match grown {
            [(0, end, new)] if *end == bytes.len() => Ok(new.clone()),
            _ => Err(Error::new(ErrorKind::Unsupported, "expected ELF objects in an archive, or one alone")),
        };
    }
    let mut out = MAGIC.to_vec();
    let mut moved: Vec<(usize, usize)> = Vec::new();
    let mut index: Option<(usize, usize, Index)> = None;
    for member in members(bytes)? {
        moved.push((member.header, out.len()));
        let header = bytes.get(member.header..member.header + HEADER).unwrap_or_default();
        let before = bytes.get(member.header + HEADER..member.data).unwrap_or_default();
        let old = bytes.get(member.data..member.end).unwrap_or_default();
        let new =
            grown.iter().find(|(start, ..)| *start == member.data).map_or(old, |(.., new)| new.as_slice());
        if member.name == "/" || member.name == "/SYM64/" {
            let start = out.len() + HEADER;
            index = Some((
                start,
                start + new.len(),
                if member.name == "/" { Index::Gnu(4) } else { Index::Gnu(8) },
            ));
        } else if member.name.starts_with("__.SYMDEF") || before.starts_with(b"__.SYMDEF") {
            let start = out.len() + HEADER + before.len();
            index = Some((start, start + new.len(), Index::Bsd));
        }
        let size = format!("{:<10}", before.len() + new.len());
        out.extend_from_slice(header.get(..48).unwrap_or_default());
        out.extend_from_slice(size.as_bytes().get(..10).unwrap_or_default());
        out.extend_from_slice(b"`\n");
        out.extend_from_slice(before);
        out.extend_from_slice(new);
        if out.len() % 2 == 1 {
            out.push(b'\n');
        }
    }
    if let Some((start, end, kind)) = index {
        let index = out.get_mut(start..end).unwrap_or_default();
        match kind {
            Index::Gnu(width) => repoint(index, width, &moved),
            Index::Bsd => repoint_bsd(index, &moved),
        }
    }
    Ok(out)
}

/// Whose form an archive's index of symbols has.
enum Index {
    /// With the bytes of a number.
    Gnu(usize),
    Bsd,
}

/// BSD's index: its size in bytes, then pairs of a name's and a member's place, in little-endian numbers.
fn repoint_bsd(index: &mut [u8], moved: &[(usize, usize)]) {
    let read = |bytes: &[u8]| bytes.iter().rev().fold(0usize, |value, byte| value << 8 | usize::from(*byte));
    let count = index.get(..4).map_or(0, read) / 8;
    for pair in index.get_mut(4..).unwrap_or_default().chunks_exact_mut(8).take(count) {
        let Some(field) = pair.get_mut(4..) else { continue };
        let old = read(field);
        if let Ok(at) = moved.binary_search_by_key(&old, |(old, _)| *old)
            && let Some((_, new)) = moved.get(at)
            && let Ok(new) = u32::try_from(*new)
        {
            field.copy_from_slice(&new.to_le_bytes());
        }
    }
}

/// The index of symbols: a count, then where each symbol's member starts, in big-endian numbers.
fn repoint(index: &mut [u8], width: usize, moved: &[(usize, usize)]) {
    let read = |bytes: &[u8]| bytes.iter().fold(0usize, |value, byte| value << 8 | usize::from(*byte));
    let count = index.get(..width).map_or(0, read);
    for field in index.chunks_exact_mut(width).skip(1).take(count) {
        let old = read(field);
        if let Ok(at) = moved.binary_search_by_key(&old, |(old, _)| *old)
            && let Some((_, new)) = moved.get(at)
        {
            let bytes = (*new as u64).to_be_bytes();
            if let Some(tail) = bytes.get(8 - width..) {
                field.copy_from_slice(tail);
            }
        }
    }
}
