//! Section headers, and the header of compressed sections.

use backtrail_core::{AddrRange, FileOffset, Svma};
use object::elf::{
    CompressionHeader32, CompressionHeader64, CompressionType, ELFCOMPRESS_ZLIB, ELFCOMPRESS_ZSTD, EM_ARM,
    PT_DYNAMIC, PT_GNU_EH_FRAME, ProgramType, SHF_ALLOC, SHF_COMPRESSED, SHF_EXECINSTR, SHT_DYNAMIC,
    SHT_NOBITS, SHT_NULL, SHT_PROGBITS,
};
use object::pod::Pod;
use object::read::elf::{CompressionHeader, FileHeader, SectionHeader};
use object::{Endianness, ReadRef};

use super::header::{Header, table};
use super::tables::{Program, RawSection};
use crate::compress::{Compressed, Format};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::object::Endian;
use crate::section::{FileRange, Section};
use crate::symbol::{Names, text};
use crate::view::{View, pod_at};

/// `PT_ARM_EXIDX`; other processors give the number other meanings.
pub(super) const EXCEPTION_INDEX: ProgramType = ProgramType(0x7000_0001);

/// The sections, in the file's order. Without their names where those are broken; none where the table itself is.
pub(super) fn read<'d, E, R>(
    view: View<R>,
    header: &Header,
    limits: &Limits,
    problems: &mut Vec<Error>,
) -> (Vec<Section<'d>>, Vec<RawSection>)
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let endian = header.endian;
    let raw =
        table::<E::SectionHeader, R>(view, header.shoff, header.shnum, limits.sections, "section headers");
    let raw = raw.unwrap_or_else(|error| {
        problems.push(error);
        &[]
    });
    let names = names(view, raw, header).unwrap_or_else(|error| {
        problems.push(error);
        &[]
    });
    let mut names = Names::new(names, raw.len());
    let sections = raw.iter().enumerate().map(|(index, raw)| section(index, raw, endian, &mut names));
    let sections = sections.collect();
    let for_linkers = |raw: &E::SectionHeader| RawSection {
        kind: raw.sh_type(endian),
        link: raw.sh_link(endian),
        info: raw.sh_info(endian),
    };
    (sections, raw.iter().map(for_linkers).collect())
}

/// What program headers say of sections, for files whose section headers were stripped off: images copied out of memory,
/// packed libraries.
pub(super) fn stand_ins(header: &Header, programs: &[Program]) -> (Vec<Section<'static>>, Vec<RawSection>) {
    let known = [
        (PT_DYNAMIC, ".dynamic", SHT_DYNAMIC),
        (PT_GNU_EH_FRAME, ".eh_frame_hdr", SHT_PROGBITS),
        (EXCEPTION_INDEX, ".ARM.exidx", SHT_PROGBITS),
    ];
    let known = known.into_iter().filter(|(kind, ..)| *kind != EXCEPTION_INDEX || header.machine == EM_ARM);
    let found = known.filter_map(|(kind, name, section_kind)| {
        let program = programs.iter().find(|program| program.kind == kind)?;
        let section = Section {
            name: name.into(),
            segment: "".into(),
            address: program.address,
            file: Some(program.file),
            is_code: false,
            is_loaded: true,
            is_compressed: false,
            index: 0,
        };
        Some((section, RawSection { kind: section_kind, link: 0, info: 0 }))
    });
    let (mut sections, raw): (Vec<Section<'_>>, Vec<_>) = found.unzip();
    sections.iter_mut().enumerate().for_each(|(index, section)| section.index = index);
    (sections, raw)
}

fn names<'d, S, R>(view: View<R>, raw: &[S], header: &Header) -> Result<&'d [u8]>
where
    S: SectionHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    if raw.is_empty() {
        return Ok(&[]);
    }
    let index = header.shstrndx;
    let section = usize::try_from(index).ok().and_then(|index| raw.get(index)).ok_or_else(|| {
        let detail = format!("expected the sections' names in section {index}, there are {}", raw.len());
        view.malformed(header.shoff, detail)
    })?;
    let (offset, size) = (section.sh_offset(header.endian).into(), section.sh_size(header.endian).into());
    view.bytes_up_to(offset, size, "the sections' names")
}

fn section<'d, S: SectionHeader<Endian = Endianness>>(
    index: usize,
    raw: &S,
    endian: Endianness,
    names: &mut Names<'d>,
) -> Section<'d> {
    let (kind, flags) = (raw.sh_type(endian), raw.sh_flags(endian));
    let (address, size) = (Svma::new(raw.sh_addr(endian).into()), raw.sh_size(endian).into());
    let is_loaded = flags.contains(SHF_ALLOC);
    let has_bits = kind != SHT_NOBITS && kind != SHT_NULL;
    let name = text(names.get(raw.sh_name(endian).into()).unwrap_or_default());
    Section {
        address: AddrRange::from_size(address, if is_loaded { size } else { 0 }),
        file: has_bits.then(|| FileRange::from_size(FileOffset::new(raw.sh_offset(endian).into()), size)),
        is_code: flags.contains(SHF_EXECINSTR),
        is_loaded,
        is_compressed: has_bits && (flags.contains(SHF_COMPRESSED) || name.starts_with(".zdebug_")),
        segment: "".into(),
        name,
        index,
    }
}

/// Reads the header of a section that is compressed as the gABI has it.
pub(crate) fn compressed(bytes: &[u8], offset: u64, is_64: bool, endian: Endian) -> Result<Compressed<'_>> {
    let endian = if endian == Endian::Little { Endianness::Little } else { Endianness::Big };
    if is_64 {
        compressed_as::<CompressionHeader64<Endianness>>(bytes, offset, endian)
    } else {
        compressed_as::<CompressionHeader32<Endianness>>(bytes, offset, endian)
    }
}

fn compressed_as<C>(bytes: &[u8], offset: u64, endian: Endianness) -> Result<Compressed<'_>>
where
    C: CompressionHeader<Endian = Endianness> + Pod,
{
    let wanted = size_of::<C>();
    let (header, data) = pod_at::<C>(bytes, 0).zip(bytes.get(wanted..)).ok_or_else(|| {
        let detail =
            format!("expected the header of a compressed section ({wanted} bytes), found {}", bytes.len());
        Error::malformed(offset, detail)
    })?;
    let format = match header.ch_type(endian) {
        ELFCOMPRESS_ZLIB => Format::Zlib,
        ELFCOMPRESS_ZSTD => Format::Zstd,
        CompressionType(other) => {
            let detail = format!("a section compressed in format {other} (zlib is 1, zstd is 2)");
            return Err(Error::new(ErrorKind::Unsupported, offset, detail));
        }
    };
    let size = header.ch_size(endian).into();
    Ok(Compressed { format, bytes: data, size, offset: offset.saturating_add(wanted as u64) })
}
