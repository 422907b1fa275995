//! From load commands to segments, sections, identity, and where the other tables lie.

use backtrail_core::{AddrRange, Family, FileOffset, ImageId, Svma};
use object::macho::{
    DyldInfoCommand, DysymtabCommand, FileType, LC_DYLD_EXPORTS_TRIE, LC_DYLD_INFO, LC_DYLD_INFO_ONLY,
    LC_DYSYMTAB, LC_FUNCTION_STARTS, LC_SEGMENT, LC_SEGMENT_64, LC_SYMTAB, LC_UUID, LinkeditDataCommand,
    MH_OBJECT, S_ATTR_PURE_INSTRUCTIONS, S_ATTR_SOME_INSTRUCTIONS, S_GB_ZEROFILL, S_THREAD_LOCAL_ZEROFILL,
    S_ZEROFILL, SegmentCommand32, SegmentCommand64, SymtabCommand, UuidCommand, VM_PROT_EXECUTE,
    VM_PROT_READ, VM_PROT_WRITE,
};
use object::pod::slice_from_bytes;
use object::read::macho::{Section as RawSection, Segment as RawSegment};
use object::{Endianness, ReadRef};

use super::header::{self, Command, Commands, Header, kind};
use super::placement::Placement;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::object::{Endian, Format, Headers, Object};
use crate::section::{FileRange, Section, Segment};
use crate::symbol::text;
use crate::view::View;

/// Where the rest of a Mach-O image lies. Offsets count from the start of the slice.
#[derive(Debug)]
pub(crate) struct Tables<'d> {
    pub(super) header: Header,
    pub(super) commands: Commands<'d>,
    pub(super) placement: Placement,
    pub(super) symtab: Option<Symtab>,
    pub(super) exports: Option<FileRange>,
    pub(super) function_starts: Option<FileRange>,
}

/// `LC_SYMTAB`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symtab {
    pub(super) symoff: u64,
    pub(super) nsyms: u64,
    pub(super) stroff: u64,
    pub(super) strsize: u64,
}

pub(crate) fn parse<'d, R: ReadRef<'d>>(
    view: View<R>,
    placement: &Placement,
    limits: &Limits,
) -> Result<(Headers<'d>, Tables<'d>)> {
    let header = header::read(view, placement.header())?;
    let commands = Commands::new(view, &header)?;
    let mut parser = Parser {
        limits,
        placement,
        file_type: header.file_type,
        segments: Vec::new(),
        sections: Vec::new(),
        problems: Vec::new(),
        id: None,
        symtab: None,
        exports: None,
        function_starts: None,
        defines: None,
    };
    for command in commands.clone() {
        if let Err(error) = command.and_then(|command| parser.command(command)) {
            parser.problems.push(error);
        }
    }
    Ok(parser.finish(header, commands))
}

struct Parser<'d, 'p> {
    limits: &'p Limits,
    placement: &'p Placement,
    file_type: FileType,
    segments: Vec<Segment<'d>>,
    sections: Vec<Section<'d>>,
    problems: Vec<Error>,
    id: Option<ImageId>,
    symtab: Option<Symtab>,
    exports: Option<FileRange>,
    function_starts: Option<FileRange>,
    /// Whether the symbol table has more than imports; dSYMs do not say.
    defines: Option<bool>,
}

fn range(offset: impl Into<u64>, size: impl Into<u64>) -> FileRange {
    FileRange::from_size(FileOffset::new(offset.into()), size.into())
}

impl<'d> Parser<'d, '_> {
    fn command(&mut self, command: Command<'d>) -> Result<()> {
        let endian = command.endian;
        match command.kind {
            LC_SEGMENT => self.segment::<SegmentCommand32<Endianness>>(command)?,
            LC_SEGMENT_64 => self.segment::<SegmentCommand64<Endianness>>(command)?,
            LC_UUID => {
                let id = ImageId::Uuid(command.pod::<UuidCommand<Endianness>>("LC_UUID")?.uuid);
                // The first counts, as for dyld; all zero is how some linkers write "none".
                self.id = self.id.or(Some(id).filter(|id| !id.is_nil()));
            }
            LC_SYMTAB => {
                let raw = command.pod::<SymtabCommand<Endianness>>("LC_SYMTAB")?;
                self.symtab = Some(Symtab {
                    symoff: raw.symoff.get(endian).into(),
                    nsyms: raw.nsyms.get(endian).into(),
                    stroff: raw.stroff.get(endian).into(),
                    strsize: raw.strsize.get(endian).into(),
                });
            }
            LC_DYLD_INFO | LC_DYLD_INFO_ONLY => {
                let raw = command.pod::<DyldInfoCommand<Endianness>>("LC_DYLD_INFO")?;
                let exports = range(raw.export_off.get(endian), raw.export_size.get(endian));
                self.exports = self.exports.or(Some(exports)).filter(|range| !range.is_empty());
            }
            LC_DYLD_EXPORTS_TRIE => self.exports = linkedit(command)?,
            LC_FUNCTION_STARTS => self.function_starts = linkedit(command)?,
            LC_DYSYMTAB => {
                let raw = command.pod::<DysymtabCommand<Endianness>>("LC_DYSYMTAB")?;
                self.defines = Some(raw.nlocalsym.get(endian) > 0 || raw.nextdefsym.get(endian) > 0);
            }
            _ => {}
        }
        Ok(())
    }

    fn segment<S: RawSegment<Endian = Endianness>>(&mut self, command: Command<'d>) -> Result<()> {
        let raw = command.pod::<S>("a segment command")?;
        let endian = command.endian;
        if self.segments.len() >= self.limits.segments {
            return Err(too_many(command.offset, "segments", self.limits.segments));
        }
        let address = AddrRange::from_size(Svma::new(raw.vmaddr(endian).into()), raw.vmsize(endian).into());
        let stated = range(raw.fileoff(endian).into(), raw.filesize(endian).into());
        let file = self.placed(address.start(), stated);
        let protection = raw.initprot(endian);
        self.segments.push(Segment {
            name: text(raw.name()),
            address,
            file,
            readable: protection.contains(VM_PROT_READ),
            writable: protection.contains(VM_PROT_WRITE),
            executable: protection.contains(VM_PROT_EXECUTE),
        });
        let count = usize::try_from(raw.nsects(endian)).unwrap_or(usize::MAX);
        let table = command.bytes.get(size_of::<S>()..).unwrap_or_default();
        let (sections, _) = slice_from_bytes::<S::Section>(table, count).map_err(|()| {
            let room = table.len() / size_of::<S::Section>();
            Error::malformed(
                command.offset,
                format!("expected {count} sections in a segment, {room} have room"),
            )
        })?;
        if self.sections.len() + sections.len() > self.limits.sections {
            return Err(too_many(command.offset, "sections", self.limits.sections));
        }
        self.sections(sections, endian, address, stated);
        Ok(())
    }

    fn sections<S: RawSection<Endian = Endianness>>(
        &mut self,
        raw: &'d [S],
        endian: Endianness,
        segment: AddrRange<Svma>,
        segment_file: FileRange,
    ) {
        let mut last = segment_file.start().get();
        for raw in raw {
            let address = AddrRange::from_size(Svma::new(raw.addr(endian).into()), raw.size(endian).into());
            let offset = unwrapped(raw.offset(endian).into(), last, segment_file);
            let flags = raw.flags(endian);
            let is_zero = matches!(flags.typ(), S_ZEROFILL | S_GB_ZEROFILL | S_THREAD_LOCAL_ZEROFILL);
            let has_bits = !is_zero && offset != 0 && !segment_file.is_empty();
            let name = text(raw.name());
            if has_bits {
                last = offset;
            }
            let segment_name = text(raw.segment_name());
            self.sections.push(Section {
                file: has_bits.then(|| self.placed(address.start(), range(offset, address.size()))),
                is_code: flags.contains(S_ATTR_PURE_INSTRUCTIONS) || flags.contains(S_ATTR_SOME_INSTRUCTIONS),
                is_loaded: segment_name != "__DWARF" && !segment.is_empty(),
                is_compressed: name.starts_with("__zdebug_"),
                index: self.sections.len(),
                name,
                segment: segment_name,
                address,
            });
        }
    }

    /// Where bytes stated at `stated` really are: in a shared cache, wherever their address is mapped from.
    fn placed(&self, address: Svma, stated: FileRange) -> FileRange {
        let Placement::Cached { cache, .. } = self.placement else { return stated };
        cache.file_range(address, stated.size())
    }

    /// Takes back the tables of a cached image whose `__LINKEDIT` is in another file: their offsets count there.
    fn drop_foreign_linkedit(&mut self) {
        let is_foreign = |segment: &Segment<'_>| segment.name == "__LINKEDIT" && segment.file.is_empty();
        if matches!(self.placement, Placement::Cached { .. }) && self.segments.iter().any(is_foreign) {
            (self.symtab, self.exports, self.function_starts) = (None, None, None);
            let detail = "the symbols of this image lie in another file of the shared cache";
            self.problems.push(Error::nowhere(ErrorKind::Unsupported, detail));
        }
    }

    fn finish(mut self, header: Header, commands: Commands<'d>) -> (Headers<'d>, Tables<'d>) {
        self.drop_foreign_linkedit();
        let text = self.segments.iter().find(|segment| segment.name == "__TEXT");
        let image_base = text.map_or(Svma::new(0), |segment| segment.address.start());
        let is_debug_info = |section: &Section<'_>| {
            section.is_named(".debug_info") && section.file.is_some_and(|file| !file.is_empty())
        };
        let headers = Headers {
            format: Format::MachO,
            kind: kind(header.file_type),
            arch: header.arch,
            is_64: header.is_64,
            endian: if header.endian == Endianness::Little { Endian::Little } else { Endian::Big },
            id: self.id,
            image_base: if self.file_type == MH_OBJECT { Svma::new(0) } else { image_base },
            entry: None,
            has_debug_info: self.sections.iter().any(is_debug_info),
            has_symbols: self.exports.is_some()
                || self.symtab.is_some_and(|symtab| symtab.nsyms > 0 && self.defines != Some(false)),
            segments: self.segments,
            sections: self.sections,
            problems: self.problems,
        };
        let tables = Tables {
            header,
            commands,
            placement: self.placement.clone(),
            symtab: self.symtab,
            exports: self.exports,
            function_starts: self.function_starts,
        };
        (headers, tables)
    }
}

/// The whole offset of a section in a segment of more than 4 GiB, of which the header has 32 bits: sections follow each
/// other. Seen in dSYMs of Chromium.
fn unwrapped(offset: u64, last: u64, segment: FileRange) -> u64 {
    const WRAP: u64 = 1 << 32;
    if offset == 0 || segment.end().get() <= WRAP {
        return offset;
    }
    let whole = last / WRAP * WRAP + offset;
    if whole < last { whole.saturating_add(WRAP) } else { whole }
}

fn linkedit(command: Command<'_>) -> Result<Option<FileRange>> {
    let raw = command.pod::<LinkeditDataCommand<Endianness>>("a linkedit data command")?;
    let range = range(raw.dataoff.get(command.endian), raw.datasize.get(command.endian));
    Ok(Some(range).filter(|range| !range.is_empty()))
}

pub(super) fn too_many(offset: u64, what: &str, limit: usize) -> Error {
    Error::new(ErrorKind::LimitExceeded, offset, format!("more than {limit} {what}"))
}

/// Where code starts: 32-bit ARM marks Thumb code by the lowest bit in some tables.
pub(super) fn code_address(object: &Object<'_>, value: u64, is_code: bool) -> Svma {
    let is_thumb = is_code && object.headers.arch.family() == Family::Arm;
    Svma::new(if is_thumb { value & !1 } else { value })
}

#[cfg(test)]
mod tests;
