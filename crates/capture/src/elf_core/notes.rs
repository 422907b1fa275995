//! The notes of a core. gABI, "Note Section".

use super::header::{Header, PT_NOTE};
use crate::bytes::u32_at;
use crate::{Error, ErrorKind};

pub(super) const NT_PRSTATUS: u32 = 1;
pub(super) const NT_PRPSINFO: u32 = 3;
pub(super) const NT_AUXV: u32 = 6;
pub(super) const NT_FILE: u32 = 0x4649_4c45;
pub(super) const NT_SIGINFO: u32 = 0x5349_4749;
pub(super) const NT_ARM_TLS: u32 = 0x401;
pub(super) const NT_ARM_PAC_MASK: u32 = 0x406;

/// One note.
#[derive(Clone, Copy, Debug)]
pub(super) struct Note<'d> {
    pub(super) name: &'d [u8],
    pub(super) kind: u32,
    pub(super) data: &'d [u8],
    /// Where its data begins in the file.
    pub(super) offset: u64,
    /// Whether the file ends inside of it.
    pub(super) is_cut: bool,
}

/// All notes, in the file's order. One that the file ends in is the last.
pub(super) fn read<'d>(data: &'d [u8], header: &Header) -> Result<Vec<Note<'d>>, Error> {
    let mut notes = Vec::new();
    let mut segments = header.segments.iter().filter(|segment| segment.kind == PT_NOTE).peekable();
    let Some(first) = segments.peek() else {
        return Err(Error::new(
            ErrorKind::Malformed,
            "expected a segment with notes (PT_NOTE), the core has none",
        ));
    };
    if first.offset >= data.len() as u64 {
        let message = format!("expected notes here, the file ends after {} bytes", data.len());
        return Err(Error::at(ErrorKind::Truncated, first.offset, message));
    }
    for segment in segments {
        let part = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
        let (start, end) = (part(segment.offset), part(segment.offset.saturating_add(segment.file_size)));
        read_segment(data.get(start..end).unwrap_or_default(), start, &mut notes);
    }
    Ok(notes)
}

fn read_segment<'d>(segment: &'d [u8], base: usize, notes: &mut Vec<Note<'d>>) {
    let mut at = 0;
    while let Some(next) = read_one(segment, at, base, notes) {
        at = next;
    }
}

/// Adds the note at `at`; where the next one begins.
fn read_one<'d>(segment: &'d [u8], at: usize, base: usize, notes: &mut Vec<Note<'d>>) -> Option<usize> {
    let size = |at: usize| usize::try_from(u32_at(segment, at)?).ok();
    let (name_size, data_size) = (size(at)?, size(at.checked_add(4)?)?);
    let kind = u32_at(segment, at.checked_add(8)?)?;
    let name_at = at.checked_add(12)?;
    let name = segment.get(name_at..name_at.checked_add(name_size)?)?;
    let data_at = name_at.checked_add(name_size)?.checked_next_multiple_of(4)?;
    let end = data_at.checked_add(data_size)?;
    let rest = segment.get(data_at..)?;
    notes.push(Note {
        name: name.strip_suffix(b"\0").unwrap_or(name),
        kind,
        data: rest.get(..data_size).unwrap_or(rest),
        offset: (base + data_at) as u64,
        is_cut: end > segment.len(),
    });
    end.checked_next_multiple_of(4)
}

/// The first note of a kind.
pub(super) fn find<'n, 'd>(notes: &'n [Note<'d>], kind: u32) -> Option<&'n Note<'d>> {
    notes.iter().find(|note| note.kind == kind && matches!(note.name, b"CORE" | b"LINUX"))
}
