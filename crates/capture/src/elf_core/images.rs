//! Which images a process had: from the mapped files, from headers that lie in memory, from the loader's list.

use super::auxv::{AT_ENTRY, AT_PHDR, AT_SYSINFO_EHDR, AuxVector};
use super::dynamic::{self, Loaded};
use super::header::Header;
use super::memory_elf::{self, MemoryElf};
use crate::{Limits, MappedImage, Mapping, Memory};
use backtrail_core::{AddrRange, Avma, Bias, ImageId};
use std::collections::{BTreeMap, HashMap, HashSet};

const PAGE: u64 = 4096;
/// Ranges of one image that begin at the same place of its file.
const PARTS: usize = 16;

/// What is known before.
pub(crate) struct Known<'k, 'd> {
    pub(crate) header: &'k Header,
    pub(crate) memory: &'k Memory<'d>,
    pub(crate) mappings: &'k [Mapping],
    pub(crate) vector: &'k AuxVector,
    /// The program's file.
    pub(crate) program: Option<&'k [u8]>,
}

/// Images that were found, by where they lie.
#[derive(Default)]
struct Found {
    all: Vec<MappedImage>,
    by_start: BTreeMap<Avma, usize>,
    by_name: HashSet<(String, Option<Bias>)>,
}

impl Found {
    /// Adds one, unless there are too many.
    fn push(&mut self, image: MappedImage, limits: &Limits) {
        if self.all.len() >= limits.images {
            return;
        }
        if let Some(range) = image.range {
            self.by_start.insert(range.start(), self.all.len());
        }
        self.by_name.insert((image.path.clone(), image.bias));
        self.all.push(image);
    }

    /// The image that has `address`.
    fn holder(&mut self, address: Avma) -> Option<&mut MappedImage> {
        let (_, &at) = self.by_start.range(..=address).next_back()?;
        self.all.get_mut(at).filter(|image| image.range.is_some_and(|range| range.contains(address)))
    }

    /// Whether one was added with this path and bias.
    fn has(&self, loaded: &Loaded) -> bool {
        self.by_name.contains(&(loaded.name.clone(), Some(loaded.bias)))
    }
}

pub(crate) fn find(known: &Known<'_, '_>, limits: &Limits) -> Vec<MappedImage> {
    let groups = groups(known, limits);
    let mut found = Found::default();
    for group in groups.iter().filter(|group| is_code(group)) {
        image(known, group, limits).into_iter().for_each(|image| found.push(image, limits));
    }
    add_from_memory(known, &mut found, limits);
    let mut program = dynamic::program(known.memory, known.vector, known.header.is_64);
    if let (None, Some(file)) = (program, known.program)
        && let Some((told, range)) = dynamic::program_of_file(file, known.vector, known.header.is_64)
    {
        program = Some(told);
        if found.holder(range.start()).is_none() {
            let image = MappedImage { range: Some(range), bias: Some(told.bias), ..MappedImage::default() };
            found.push(image, limits);
        }
    }
    if let Some(program) = &program {
        for loaded in dynamic::loaded(known.memory, program, known.header.pointer_size(), limits) {
            add_loaded(&mut found, loaded, limits);
        }
    }
    let entry = known.vector.get(AT_ENTRY).or(known.vector.get(AT_PHDR)).map(Avma::new);
    if let Some(image) = entry.and_then(|entry| found.holder(entry)) {
        image.is_executable = true;
        image.bias = image.bias.or(program.map(|program| program.bias));
    } else if let Some(program) = program {
        // Neither listed as code nor with headers in memory: an old core of a program alone; or one of gcore, which leaves out code and
        // has its file in the list.
        let file =
            entry.and_then(|entry| known.mappings.iter().find(|mapping| mapping.range.contains(entry)));
        let image = MappedImage {
            path: file.map(|file| file.name.clone()).unwrap_or_default(),
            bias: Some(program.bias),
            is_executable: true,
            ..MappedImage::default()
        };
        found.push(image, limits);
    }
    add_copies(known, &groups, &mut found, limits);
    found.all.sort_by_key(|image| image.range.map(|range| (range.start(), range.end())));
    found.all
}

/// Ranges of one file side by side, in the order of its offsets, are one image. Files without code are none: fonts,
/// archives of locales.
fn groups<'k>(known: &Known<'k, '_>, limits: &Limits) -> Vec<Vec<&'k Mapping>> {
    let mut groups: Vec<Vec<&Mapping>> = Vec::new();
    for mapping in known.mappings {
        match groups.last_mut() {
            Some(group) if continues(known, group, mapping, limits) => group.push(mapping),
            _ if !mapping.name.is_empty() => groups.push(vec![mapping]),
            _ => {}
        }
    }
    groups
}

/// Parts of an image that are mapped once more, elsewhere: they have no headers, and the image's file tells what they hold. That
/// they are code is not known where gcore has left them out, which does not say either what may be done there.
fn add_copies(known: &Known<'_, '_>, groups: &[Vec<&Mapping>], found: &mut Found, limits: &Limits) {
    let whole = groups.iter().filter_map(|group| group.first().filter(|first| first.offset.get() == 0));
    let whole: HashSet<Avma> = whole.map(|first| first.range.start()).collect();
    let is_original = |image: &&MappedImage| image.range.is_none_or(|range| whole.contains(&range.start()));
    let originals: HashMap<String, Option<ImageId>> =
        found.all.iter().filter(is_original).map(|image| (image.path.clone(), image.id)).collect();
    for group in groups {
        let Some(first) = group.first().filter(|first| first.offset.get() != 0) else { continue };
        let Some(&id) = originals.get(&first.name) else { continue };
        match found.holder(first.range.start()) {
            Some(copy) if copy.path == first.name && copy.bias.is_none() => copy.id = id,
            None if is_untold(known, first) => {
                let copy = image(known, group, limits).map(|copy| MappedImage { id, ..copy });
                copy.into_iter().for_each(|copy| found.push(copy, limits));
            }
            _ => {}
        }
    }
}

/// Whether the core has no segment of it: then it does not say what may be done there.
fn is_untold(known: &Known<'_, '_>, mapping: &Mapping) -> bool {
    !known.header.segments.is_empty() && !known.header.has_loaded(mapping.range.start())
}

/// Whether `mapping` is a further part of the image that `group` is the parts of so far. Between the parts there may be
/// holes.
fn continues(known: &Known<'_, '_>, group: &[&Mapping], mapping: &Mapping, limits: &Limits) -> bool {
    let Some(last) = group.last() else { return false };
    if mapping.name.is_empty() || last.name != mapping.name || mapping.offset < last.offset {
        return false;
    }
    // Code that a process has mapped once more, as V8 does with its builtins in each thread: each copy has its own place.
    // Parts follow each other by offset: only the last can begin where this one does, and few of one image do.
    let mut same = group.iter().rev().take(PARTS).take_while(|part| part.offset >= mapping.offset);
    if mapping.executable && mapping.offset.get() != 0 && same.clone().any(|part| part.executable) {
        return false;
    }
    // The same where rights are not known. Of the parts of one image two may have a page of its file in common, no more.
    let is_same = |part: &&Mapping| part.range.size() == mapping.range.size() && part.range.size() > PAGE;
    if mapping.offset.get() != 0 && same.any(is_same) && is_untold(known, mapping) {
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
fn add_from_memory(known: &Known<'_, '_>, found: &mut Found, limits: &Limits) {
    let vdso = known.vector.get(AT_SYSINFO_EHDR).map(Avma::new);
    let mut code: Vec<_> = known
        .mappings
        .iter()
        .filter(|mapping| mapping.executable)
        .map(|mapping| mapping.range.start())
        .collect();
    code.sort_unstable();
    // Else it is a file that the process has only read.
    let runs = |elf: &MemoryElf| {
        let next = code.get(code.partition_point(|start| *start < elf.range.start()));
        next.is_some_and(|start| elf.range.contains(*start))
    };
    let starts: Vec<_> = known.memory.ranges().map(AddrRange::start).chain(vdso).collect();
    for start in starts {
        if found.holder(start).is_some() {
            continue;
        }
        let Some(elf) = memory_elf::read(known.memory, start, limits.name_bytes) else { continue };
        let is_vdso = vdso == Some(start);
        if is_vdso || (elf.has_code && runs(&elf)) {
            found.push(unlisted(elf, is_vdso), limits);
        }
    }
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

/// Fills in what the loader knows of an image, or adds it.
fn add_loaded(found: &mut Found, loaded: Loaded, limits: &Limits) {
    if let Some(image) = found.holder(loaded.dynamic) {
        image.bias = image.bias.or(Some(loaded.bias));
        // A name of its own says more than the file's soname.
        if !loaded.name.is_empty() && !image.path.contains('/') && !image.path.starts_with('[') {
            image.path = loaded.name;
        }
    } else if !loaded.name.is_empty() && !found.has(&loaded) {
        let image = MappedImage { path: loaded.name, bias: Some(loaded.bias), ..MappedImage::default() };
        found.push(image, limits);
    }
}
