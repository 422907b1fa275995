//! From the ELF header to segments, sections and identity.

use backtrail_core::{AddrRange, FileOffset, Svma};
use object::elf::{
    DF_1_PIE, DT_FLAGS_1, DT_SONAME, DT_SYMTAB, ET_CORE, ET_DYN, ET_EXEC, ET_REL, FileHeader32, FileHeader64,
    PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD, SHT_DYNSYM, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadRef};

use super::header::{self, Header, table};
use super::tables::{Program, RawSection, Tables};
use super::{dynamic, id, sections};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::object::{Endian, Format, Headers, Kind};
use crate::section::{FileRange, Section, Segment};
use crate::view::View;

pub(crate) fn parse<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<(Headers<'d>, Tables)> {
    let header = header::read(view)?;
    if header.is_64 {
        parse_as::<FileHeader64<Endianness>, R>(view, header, limits)
    } else {
        parse_as::<FileHeader32<Endianness>, R>(view, header, limits)
    }
}

/// Sections besides symbol tables that name functions.
const NAMING_SECTIONS: [&str; 3] = [".gnu_debugdata", ".gopclntab", ".data.rel.ro.gopclntab"];

fn parse_as<'d, E, R>(view: View<R>, header: Header, limits: &Limits) -> Result<(Headers<'d>, Tables)>
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let mut problems = Vec::new();
    let programs = programs::<E, R>(view, &header, limits).unwrap_or_else(|error| {
        problems.push(error);
        Vec::new()
    });
    let (mut sections, mut raw_sections) = sections::read::<E, R>(view, &header, limits, &mut problems);
    if sections.is_empty() && header.file_type != ET_CORE {
        (sections, raw_sections) = sections::stand_ins(&header, &programs);
    }
    let tables = Tables { header, programs, raw_sections };
    let dynamic = dynamic::read(view, &tables, &sections).unwrap_or_else(|error| {
        problems.push(error);
        Vec::new()
    });
    let kind = kind(&tables, &sections, &dynamic);
    let has = |wanted: &str| {
        sections
            .iter()
            .any(|section| section.is_named(wanted) && section.file.is_some_and(|file| !file.is_empty()))
    };
    let is_symbols = |raw: &RawSection| raw.kind == SHT_SYMTAB || raw.kind == SHT_DYNSYM;
    let has_table = sections.iter().zip(&tables.raw_sections);
    let has_table = has_table.filter(|(_, raw)| is_symbols(raw)).any(|(section, _)| section.file.is_some());
    let headers = Headers {
        format: Format::Elf,
        kind,
        arch: header.arch(),
        is_64: header.is_64,
        endian: if header.endian == Endianness::Little { Endian::Little } else { Endian::Big },
        id: id::read(view, &tables, &sections, kind),
        image_base: image_base(&tables),
        entry: Some(Svma::new(header.entry)).filter(|entry| entry.get() != 0),
        has_debug_info: has(".debug_info") || has(".debug_info.dwo"),
        has_symbols: has_table
            || NAMING_SECTIONS.into_iter().any(has)
            || dynamic.iter().any(|entry| entry.tag == DT_SYMTAB),
        segments: segments(&tables, kind),
        sections,
        problems,
    };
    Ok((headers, tables))
}

fn programs<'d, E, R>(view: View<R>, header: &Header, limits: &Limits) -> Result<Vec<Program>, Error>
where
    E: FileHeader<Endian = Endianness>,
    R: ReadRef<'d>,
{
    let endian = header.endian;
    let raw =
        table::<E::ProgramHeader, R>(view, header.phoff, header.phnum, limits.segments, "program headers")?;
    let program = |raw: &E::ProgramHeader| {
        let flags = raw.p_flags(endian);
        Program {
            kind: raw.p_type(endian),
            address: AddrRange::from_size(Svma::new(raw.p_vaddr(endian).into()), raw.p_memsz(endian).into()),
            file: FileRange::from_size(
                FileOffset::new(raw.p_offset(endian).into()),
                raw.p_filesz(endian).into(),
            ),
            align: raw.p_align(endian).into(),
            readable: flags.contains(PF_R),
            writable: flags.contains(PF_W),
            executable: flags.contains(PF_X),
        }
    };
    Ok(raw.iter().map(program).collect())
}

fn segments(tables: &Tables, kind: Kind) -> Vec<Segment<'static>> {
    let loaded = tables.programs.iter().filter(|program| program.kind == PT_LOAD);
    let segment = |program: &Program| Segment {
        name: "LOAD".into(),
        address: program.address,
        // A debug file keeps the program headers of the file that it was split from: what they say of file offsets
        // holds there, not here (`eu-strip -f`).
        file: if kind == Kind::DebugCompanion {
            FileRange::from_size(FileOffset::new(0), 0)
        } else {
            program.file
        },
        readable: program.readable,
        writable: program.writable,
        executable: program.executable,
    };
    loaded.map(segment).collect()
}

fn image_base(tables: &Tables) -> Svma {
    const PAGE: u64 = 4096;
    let first = tables.programs.iter().find(|program| program.kind == PT_LOAD);
    let is_image = tables.header.file_type != ET_CORE;
    let base = first.filter(|_| is_image).map_or(0, |program| program.address.start().get());
    Svma::new(base & !(PAGE - 1))
}

fn kind(tables: &Tables, sections: &[Section<'_>], dynamic: &[dynamic::Entry]) -> Kind {
    let is_shared = match tables.header.file_type {
        ET_CORE => return Kind::Core,
        ET_REL => false,
        ET_EXEC => false,
        ET_DYN => true,
        _ => return Kind::Other,
    };
    if is_companion(sections) {
        return Kind::DebugCompanion;
    }
    if tables.header.file_type == ET_REL {
        return Kind::Relocatable;
    }
    let value = |tag| dynamic.iter().find(|entry| entry.tag == tag).map(|entry| entry.value);
    let is_pie = value(DT_FLAGS_1).is_some_and(|flags| flags & DF_1_PIE.0 != 0);
    let has_interpreter = tables.programs.iter().any(|program| program.kind == PT_INTERP);
    // Linkers before 2016 do not mark position independent programs. glibc's own libraries can be run as programs, and
    // have a name.
    if !is_shared || is_pie || (has_interpreter && value(DT_SONAME).is_none()) {
        Kind::Executable
    } else {
        Kind::Library
    }
}

/// Whether this is the debug info of another file: `objcopy --only-keep-debug` and `eu-strip` empty all code, `dwz`'s
/// shared files have none.
fn is_companion(sections: &[Section<'_>]) -> bool {
    let has_debug_info =
        sections.iter().any(|section| section.name.contains("debug_") && section.file.is_some());
    let mut code =
        sections.iter().filter(|section| section.is_code && section.is_loaded && !section.address.is_empty());
    let emptied = code.clone().all(Section::is_no_bits);
    let has_dwo = sections.iter().any(|section| section.name.ends_with(".dwo"));
    emptied && !has_dwo && (has_debug_info || code.next().is_some())
}

#[cfg(test)]
mod tests;
