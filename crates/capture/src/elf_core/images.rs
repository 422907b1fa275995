//! Which images a process had: from the mapped files, from headers that lie in memory, from the loader's list.

use super::auxv::{AT_ENTRY, AT_PHDR, AT_SYSINFO_EHDR, AuxVector};
use super::dynamic::{self, Loaded};
use super::header::Header;
use super::memory_elf::{self, MemoryElf};
use crate::{Limits, MappedImage, Mapping, Memory};
use backtrail_core::{AddrRange, Avma};

/// What is known before.
pub(crate) struct Known<'k, 'd> {
    pub(crate) header: &'k Header,
    pub(crate) memory: &'k Memory<'d>,
    pub(crate) mappings: &'k [Mapping],
    pub(crate) vector: &'k AuxVector,
    /// The program's file.
    pub(crate) program: Option<&'k [u8]>,
}

pub(crate) fn find(known: &Known<'_, '_>, limits: &Limits) -> Vec<MappedImage> {
    let mut images = mapped_files(known, limits);
    add_from_memory(known, &mut images, limits);
    let mut program = dynamic::program(known.memory, known.vector, known.header.is_64);
    if let (None, Some(file)) = (program, known.program)
        && let Some((told, range)) = dynamic::program_of_file(file, known.vector, known.header.is_64)
    {
        program = Some(told);
        if holder(&mut images, range.start()).is_none() {
            images.push(MappedImage { range: Some(range), bias: Some(told.bias), ..MappedImage::default() });
        }
    }
    if let Some(program) = &program {
        for loaded in dynamic::loaded(known.memory, program, known.header.pointer_size(), limits) {
            add_loaded(&mut images, loaded, limits);
        }
    }
    let entry = known.vector.get(AT_ENTRY).or(known.vector.get(AT_PHDR)).map(Avma::new);
    let is_program = |image: &&mut MappedImage| {
        let (Some(range), Some(entry)) = (image.range, entry) else { return false };
        range.contains(entry)
    };
    if let Some(image) = images.iter_mut().find(is_program) {
        image.is_executable = true;
        image.bias = image.bias.or(program.map(|program| program.bias));
    } else if let Some(program) = program {
        // Neither listed as code nor with headers in memory: an old core of a program alone; or one of gcore, which leaves out code and
        // has its file in the list.
        let file =
            entry.and_then(|entry| known.mappings.iter().find(|mapping| mapping.range.contains(entry)));
        images.push(MappedImage {
            path: file.map(|file| file.name.clone()).unwrap_or_default(),
            bias: Some(program.bias),
            is_executable: true,
            ..MappedImage::default()
        });
    }
    images.sort_by_key(|image| image.range.map(|range| (range.start(), range.end())));
    images
}

/// Ranges of one file side by side, in the order of its offsets, are one image. Files without code are none: fonts,
/// archives of locales.
fn mapped_files(known: &Known<'_, '_>, limits: &Limits) -> Vec<MappedImage> {
    let mut groups: Vec<Vec<&Mapping>> = Vec::new();
    for mapping in known.mappings {
        match groups.last_mut() {
            Some(group) if continues(known, group, mapping, limits) => group.push(mapping),
            _ if !mapping.name.is_empty() => groups.push(vec![mapping]),
            _ => {}
        }
    }
    groups
        .iter()
        .filter(|group| is_code(group))
        .take(limits.images)
        .filter_map(|group| image(known, group, limits))
        .collect()
}

/// Whether `mapping` is a further part of the image that `group` is the parts of so far. Between the parts there may be
/// holes.
fn continues(known: &Known<'_, '_>, group: &[&Mapping], mapping: &Mapping, limits: &Limits) -> bool {
    let Some(last) = group.last() else { return false };
    if mapping.name.is_empty() || last.name != mapping.name || mapping.offset < last.offset {
        return false;
    }
    // Code that a process has mapped once more, as V8 does with its builtins in each thread: each copy has its own place.
    let is_copy = |part: &&Mapping| part.executable && part.offset >= mapping.offset;
    if mapping.executable && mapping.offset.get() != 0 && group.iter().any(is_copy) {
        return false;
    }
    mapping.offset.get() != 0 || shares_first_page(known, group, mapping, limits)
}

/// Whether a range from the file's start on goes on with an image: lld packs small programs so that several segments
/// lie in the first page, which is then mapped once for each. Where the headers are not saved, such ranges follow each
/// other and differ in what is allowed there; a further copy of the image begins like the one before.
fn shares_first_page(known: &Known<'_, '_>, group: &[&Mapping], mapping: &Mapping, limits: &Limits) -> bool {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return false };
    if let Some(elf) = memory_elf::read(known.memory, first.range.start(), limits.name_bytes) {
        return elf.range.contains(mapping.range.start());
    }
    let access = |mapping: &Mapping| (mapping.readable, mapping.writable, mapping.executable);
    last.range.end() == mapping.range.start() && group.iter().all(|part| access(part) != access(mapping))
}

fn is_code(group: &[&Mapping]) -> bool {
    group.iter().any(|mapping| mapping.executable)
}

fn image(known: &Known<'_, '_>, group: &[&Mapping], limits: &Limits) -> Option<MappedImage> {
    let (first, last) = (group.first()?, group.last()?);
    let in_memory = memory_elf::read(known.memory, first.range.start(), limits.name_bytes);
    Some(MappedImage {
        path: first.name.clone(),
        id: in_memory.as_ref().and_then(|elf| elf.id),
        debug_file: None,
        range: Some(AddrRange::new(first.range.start(), last.range.end())),
        bias: in_memory.as_ref().map(|elf| elf.bias),
        file_offset: 0,
        is_executable: false,
        is_from_memory: in_memory.is_some(),
    })
}

/// Images whose ELF header begins a saved piece of memory, and the one that the kernel maps into every process.
fn add_from_memory(known: &Known<'_, '_>, images: &mut Vec<MappedImage>, limits: &Limits) {
    let vdso = known.vector.get(AT_SYSINFO_EHDR).map(Avma::new);
    let starts: Vec<_> = known.memory.ranges().map(AddrRange::start).chain(vdso).collect();
    for start in starts {
        if images.len() >= limits.images || holder(images, start).is_some() {
            continue;
        }
        let Some(elf) = memory_elf::read(known.memory, start, limits.name_bytes) else { continue };
        let is_vdso = vdso == Some(start);
        if is_vdso || (elf.has_code && runs(known, &elf)) {
            images.push(unlisted(elf, is_vdso));
        }
    }
}

/// Whether some of it is mapped to be executed: else it is a file that the process has only read.
fn runs(known: &Known<'_, '_>, elf: &MemoryElf) -> bool {
    let inside = |mapping: &Mapping| elf.range.contains(mapping.range.start());
    known.mappings.iter().any(|mapping| mapping.executable && inside(mapping))
}

fn unlisted(elf: MemoryElf, is_vdso: bool) -> MappedImage {
    let path = if is_vdso { "[vdso]".to_owned() } else { elf.soname.unwrap_or_default() };
    MappedImage {
        path,
        id: elf.id,
        debug_file: None,
        range: Some(elf.range),
        bias: Some(elf.bias),
        file_offset: 0,
        is_executable: false,
        is_from_memory: true,
    }
}

fn holder(images: &mut [MappedImage], address: Avma) -> Option<&mut MappedImage> {
    images.iter_mut().find(|image| image.range.is_some_and(|range| range.contains(address)))
}

/// Fills in what the loader knows of an image, or adds it.
fn add_loaded(images: &mut Vec<MappedImage>, loaded: Loaded, limits: &Limits) {
    if let Some(image) = holder(images, loaded.dynamic) {
        image.bias = image.bias.or(Some(loaded.bias));
        // A name of its own says more than the file's soname.
        if !loaded.name.is_empty() && !image.path.contains('/') && !image.path.starts_with('[') {
            image.path = loaded.name;
        }
        return;
    }
    let is_known = images.iter().any(|image| image.path == loaded.name && image.bias == Some(loaded.bias));
    if !loaded.name.is_empty() && !is_known && images.len() < limits.images {
        images.push(MappedImage { path: loaded.name, bias: Some(loaded.bias), ..MappedImage::default() });
    }
}
