//! From an object file's sections to what unwinding reads.

use backtrail_core::{Family, Svma};
use backtrail_object::{Format, Object, Section as ObjectSection};
use backtrail_unwind::{Section, Sections};
use std::borrow::Cow;

/// The unwind tables and the code of one file. `keep` holds what had to be decompressed for as long as the file's own
/// bytes live.
pub(crate) fn unwind_sections<'d>(object: &Object<'d>, keep: &dyn Fn(Vec<u8>) -> &'d [u8]) -> Sections<'d> {
    let named = |name: &str| object.section(name).and_then(|section| bytes_of(object, section, keep));
    let mut sections = Sections {
        arch: Some(object.arch()),
        is_mach_o: object.format() == Format::MachO,
        image_base: object.image_base(),
        eh_frame_hdr: named(".eh_frame_hdr"),
        eh_frame: named(".eh_frame"),
        debug_frame: named(".debug_frame"),
        exidx: named(".ARM.exidx").filter(|_| object.arch().family() == Family::Arm),
        extab: named(".ARM.extab"),
        unwind_info: named("__unwind_info"),
        text: text(object, keep),
        got: object.section(".got").map(|section| section.address.start()),
        data: segments(object, false),
        entry: entry(object),
        thread_starts: Vec::new(),
    };
    if sections.eh_frame.is_none() {
        sections.eh_frame = sections.eh_frame_hdr.and_then(|header| behind_header(object, &header));
    }
    if sections.extab.is_none() {
        let index = sections.exidx.map(|index| index.start);
        sections.extab = index.and_then(|index| segment_with(object, index));
    }
    sections
}

/// A section's bytes at its address; `None` without bytes.
fn bytes_of<'d>(
    object: &Object<'d>,
    section: &ObjectSection<'_>,
    keep: &dyn Fn(Vec<u8>) -> &'d [u8],
) -> Option<Section<'d>> {
    let data = match object.section_data(section).ok()? {
        Cow::Borrowed(bytes) => bytes,
        Cow::Owned(bytes) => keep(bytes),
    };
    (!data.is_empty()).then(|| Section::new(section.address.start(), data))
}

/// Everything executable: sections, or segments where there are no sections of code.
fn text<'d>(object: &Object<'d>, keep: &dyn Fn(Vec<u8>) -> &'d [u8]) -> Vec<Section<'d>> {
    let code = object.sections().iter().filter(|section| section.is_code && section.is_loaded);
    let sections: Vec<_> = code.filter_map(|section| bytes_of(object, section, keep)).collect();
    if sections.is_empty() { segments(object, true) } else { sections }
}

fn segments<'d>(object: &Object<'d>, executable: bool) -> Vec<Section<'d>> {
    let wanted = object.segments().iter().filter(|segment| segment.executable == executable);
    let bytes = |start: Svma| Some(Section::new(start, object.bytes_at(start, u64::MAX)?));
    wanted.filter_map(|segment| bytes(segment.address.start())).collect()
}

/// The segment's bytes that have `address`, from its start.
fn segment_with<'d>(object: &Object<'d>, address: Svma) -> Option<Section<'d>> {
    let segment = object.segments().iter().find(|segment| segment.address.contains(address))?;
    let start = segment.address.start();
    Some(Section::new(start, object.bytes_at(start, u64::MAX)?))
}

/// Without section headers only `PT_GNU_EH_FRAME` is known, and the first pointer in it says where `.eh_frame` begins.
/// LSB, "The .eh_frame_hdr section".
fn behind_header<'d>(object: &Object<'d>, header: &Section<'d>) -> Option<Section<'d>> {
    const RELATIVE_SIGNED_4: u8 = 0x1b;
    let [1, encoding, _, _, rest @ ..] = header.data else { return None };
    if *encoding != RELATIVE_SIGNED_4 {
        return None;
    }
    let offset = i32::from_le_bytes(*rest.first_chunk()?);
    let at = header.start.get().checked_add(4)?.checked_add_signed(i64::from(offset)).map(Svma::new)?;
    Some(Section::new(at, object.bytes_at(at, u64::MAX)?))
}

/// `e_entry` of a program; libraries have none. gABI, "ELF Header".
fn entry(object: &Object<'_>) -> Option<Svma> {
    if object.format() != Format::Elf {
        return None;
    }
    let header = object.bytes_at(object.image_base(), 32)?;
    let value = if object.is_64() {
        u64::from_le_bytes(*header.get(24..)?.first_chunk()?)
    } else {
        u64::from(u32::from_le_bytes(*header.get(24..)?.first_chunk()?))
    };
    Some(Svma::new(value)).filter(|entry| header.starts_with(b"\x7fELF") && entry.get() != 0)
}
