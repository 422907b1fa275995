//! The build id, or what stands in for it.

use backtrail_core::ImageId;
use object::elf::{NT_GNU_BUILD_ID, NoteHeader32, PT_LOAD, PT_NOTE, SHT_NOTE};
use object::{Endianness, ReadRef};

use super::tables::Tables;
use crate::object::Kind;
use crate::section::{FileRange, Section};
use crate::view::{View, pod_at};

/// Notes that identify are small; kernels keep some kilobytes of others beside.
const MAX_NOTES: u64 = 64 << 10;

/// The build id; for programs and libraries without one the hash of their code that Breakpad made up, so that at
/// least its symbol files still match.
pub(super) fn read<'d, R: ReadRef<'d>>(
    view: View<R>,
    tables: &Tables,
    sections: &[Section<'_>],
    kind: Kind,
) -> Option<ImageId> {
    // A core's notes are those of its process.
    if kind == Kind::Core {
        return None;
    }
    // Sections first: a debug file's program headers point to where the notes were in the other file.
    let is_note = |(_, raw): &(&Section<'_>, &super::tables::RawSection)| raw.kind == SHT_NOTE;
    let by_section = sections.iter().zip(&tables.raw_sections).filter(is_note);
    let by_section = by_section.filter_map(|(section, _)| section.file.map(|file| (file, 4)));
    let by_program = tables.programs.iter().filter(|program| program.kind == PT_NOTE);
    let by_program = by_program.map(|program| (program.file, program.align));
    let id = by_section.chain(by_program).find_map(|(range, align)| build_id(view, tables, range, align));
    match kind {
        Kind::Executable | Kind::Library => id.or_else(|| code_hash(view, tables, sections)),
        _ => id,
    }
}

fn build_id<'d, R: ReadRef<'d>>(
    view: View<R>,
    tables: &Tables,
    range: FileRange,
    align: u64,
) -> Option<ImageId> {
    let size = range.size().min(MAX_NOTES);
    let mut bytes = view.bytes_up_to(range.start().get(), size, "notes").ok()?;
    // 8 only in segments of property notes; other values mean 4 (gABI, "Note Section", as linkers do it).
    let align = if align == 8 { 8 } else { 4 };
    while let Some((header, rest)) = pod_at::<NoteHeader32<Endianness>>(bytes, 0).zip(bytes.get(12..)) {
        let endian = tables.header.endian;
        let name_size = usize::try_from(header.n_namesz.get(endian)).ok()?;
        let desc_size = usize::try_from(header.n_descsz.get(endian)).ok()?;
        let desc_start = (12 + name_size).checked_next_multiple_of(align)?;
        let end = desc_start.checked_add(desc_size)?;
        let (name, desc) = (rest.get(..name_size)?, bytes.get(desc_start..end)?);
        if header.n_type.get(endian) == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return ImageId::from_build_id(desc).filter(|id| !id.is_nil());
        }
        bytes = bytes.get(end.checked_next_multiple_of(align)?..)?;
    }
    None
}

/// 16 bytes, XORed over the first page of `.text`; of the first executable segment where sections are stripped off.
fn code_hash<'d, R: ReadRef<'d>>(
    view: View<R>,
    tables: &Tables,
    sections: &[Section<'_>],
) -> Option<ImageId> {
    const PAGE: u64 = 4096;
    let text = sections.iter().find(|section| section.name == ".text").and_then(|section| section.file);
    let mut programs = tables.programs.iter();
    let code = text.or_else(|| {
        programs.find(|program| program.kind == PT_LOAD && program.executable).map(|program| program.file)
    })?;
    let bytes = view.bytes_up_to(code.start().get(), code.size().min(PAGE), "code").ok()?;
    let mut hash = [0; 16];
    for chunk in bytes.chunks(hash.len()) {
        for (sum, byte) in hash.iter_mut().zip(chunk) {
            *sum ^= byte;
        }
    }
    Some(ImageId::CodeHash(hash)).filter(|id| !id.is_nil())
}
