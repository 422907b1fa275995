//! Static archives (`.a`): BSD and GNU spellings of member names, and thin archives, which are only recognised.
//!
//! A member has a header of 60 bytes of text and starts at an even offset. `ar(5)`; `<ar.h>`.

use backtrail_core::{Arch, FileOffset};
use object::ReadRef;
use object::archive::{Header, TERMINATOR, THIN_MAGIC};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::listed_object::{ListedObject, too_many};
use crate::macho::Placement;
use crate::section::FileRange;
use crate::sniff::{ENOUGH, Sniffed, sniff};
use crate::view::{View, until_nul};
use crate::{elf, macho};

struct Member {
    name: String,
    modified: Option<u64>,
    offset: u64,
    size: u64,
    next: u64,
}

/// The members of an archive that are object files; everything else in it is passed over.
pub(crate) fn find<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<ListedObject>> {
    let magic = view.bytes(0, 8, "the magic number of an archive")?;
    if magic == THIN_MAGIC {
        let detail = "a thin archive holds only the names of its members; give the object files themselves";
        return Err(Error::new(ErrorKind::Unsupported, view.absolute(0), detail));
    }
    let mut found = Vec::new();
    let mut long_names: &[u8] = &[];
    let (mut offset, mut members) = (magic.len() as u64, 0usize);
    while offset < view.len() {
        members += 1;
        if members > limits.slices {
            return Err(too_many(view.absolute(offset), limits));
        }
        let member = match read_member(view, offset, long_names) {
            Ok(member) => member,
            Err(error) => {
                found.push(ListedObject {
                    problem: Some(error),
                    ..ListedObject::whole(Arch::Unknown, view.absolute(offset), 0)
                });
                break;
            }
        };
        offset = member.next;
        if member.name == "//" {
            long_names =
                view.bytes(member.offset, member.size, "the long names of an archive").unwrap_or(&[]);
        } else if !is_index(&member.name) {
            found.extend(object_in(view, member)?);
        }
    }
    Ok(found)
}

fn is_index(name: &str) -> bool {
    matches!(name, "/" | "/SYM64/" | "/<ECSYMBOLS>/") || name.starts_with("__.SYMDEF")
}

fn object_in<'d, R: ReadRef<'d>>(view: View<R>, member: Member) -> Result<Option<ListedObject>> {
    let there = view.len().saturating_sub(member.offset).min(member.size);
    let start = view.bytes(member.offset, there.min(ENOUGH), "the start of a member")?;
    let arch = match sniff(start) {
        Sniffed::MachO => macho::arch_of(start),
        Sniffed::Elf => elf::arch_of(start),
        _ => return Ok(None),
    };
    let range = FileRange::from_size(FileOffset::new(view.absolute(member.offset)), there);
    let (member, modified) = (Some(member.name), member.modified);
    Ok(Some(ListedObject {
        arch,
        member,
        modified,
        range,
        placement: Placement::Whole,
        id: None,
        problem: None,
    }))
}

fn read_member<'d, R: ReadRef<'d>>(view: View<R>, offset: u64, long_names: &[u8]) -> Result<Member> {
    let header = view.pod::<Header>(offset, "the header of an archive member")?;
    if header.terminator != TERMINATOR {
        return Err(view.malformed(offset, "expected the header of an archive member, ending in 60 0a"));
    }
    let size = number(&header.size)
        .ok_or_else(|| view.malformed(offset + 48, "expected the decimal size of an archive member"))?;
    let start = offset + size_of::<Header>() as u64;
    let end =
        start.checked_add(size).ok_or_else(|| view.malformed(offset + 48, "a member of impossible size"))?;
    let next = end.saturating_add(end % 2);
    let modified = number(&header.date);
    let raw = header.name.trim_ascii_end();
    if let Some(length) = raw.strip_prefix(b"#1/").and_then(number) {
        // BSD: the name stands before the data and counts as part of it, padded with zeros.
        let length = length.min(size);
        let name = until_nul(view.bytes(start, length, "the name of an archive member")?);
        let name = String::from_utf8_lossy(name).into_owned();
        return Ok(Member { name, modified, offset: start + length, size: size - length, next });
    }
    let name = String::from_utf8_lossy(member_name(raw, long_names)).into_owned();
    Ok(Member { name, modified, offset: start, size, next })
}

fn member_name<'a>(raw: &'a [u8], long_names: &'a [u8]) -> &'a [u8] {
    if matches!(raw, b"/" | b"//" | b"/SYM64/" | b"/<ECSYMBOLS>/") {
        return raw;
    }
    if let Some(at) = raw.strip_prefix(b"/").and_then(number) {
        let tail = usize::try_from(at).ok().and_then(|at| long_names.get(at..)).unwrap_or_default();
        let end = tail.iter().position(|byte| matches!(byte, b'\n' | 0)).unwrap_or(tail.len());
        let name = tail.get(..end).unwrap_or_default();
        return name.strip_suffix(b"/").unwrap_or(name);
    }
    raw.strip_suffix(b"/").unwrap_or(raw)
}

/// A decimal number, padded with spaces.
fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii_end();
    std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests;
