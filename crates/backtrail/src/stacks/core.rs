//! Stacks of a core dump.

use super::build::{Builder, Sources};
use super::find::{Finder, Found};
use super::from_memory::image_bytes;
use super::place::Part;
use super::{StackOptions, Stacks, StacksError};
use crate::Symbols;
use backtrail_capture::{Image, Limits, Mapping, Snapshot, elf_core};
use backtrail_core::{AddrRange, Avma, FileOffset};
use backtrail_object::Object;
use backtrail_store::FileData;
use std::path::Path;

impl Stacks {
    /// Reads, walks and names the threads of an ELF core. Images' files are found by build id below `symbols` and in the
    /// system's debug folders, by path, and in the core itself; `executable` is the program where the caller has it.
    ///
    /// # Errors
    /// Where `path` is no core that can be read, or `executable` cannot be.
    pub fn core(
        path: &Path,
        executable: Option<&Path>,
        symbols: &Symbols,
        options: &StackOptions,
    ) -> Result<Self, StacksError> {
        let data = FileData::map(path).map_err(|error| StacksError(error.to_string()))?;
        if let Some(executable) = executable {
            FileData::map(executable).map_err(|error| StacksError(error.to_string()))?;
        }
        let snapshot = elf_core::read(&data, &Limits::default())
            .map_err(|error| StacksError(format!("{}: {error}", path.display())))?;
        let finder =
            Finder { symbols, arch: snapshot.arch, executable, use_mapped_paths: options.use_mapped_paths };
        let mut builder = Builder::new(&snapshot);
        let mut parts = Vec::new();
        for image in &snapshot.images {
            parts.extend(add_image(&mut builder, &snapshot, image, finder.find(image)));
        }
        for part in unclaimed(&snapshot, &parts) {
            builder.add(&part, Sources { name: anonymous(&part), ..Sources::default() }, None);
            parts.push(part);
        }
        builder.add_jit(&parts, Vec::new());
        Ok(builder.finish(symbols, options))
    }
}

fn anonymous(part: &Part) -> String {
    if part.name.is_empty() {
        format!("<anonymous:{:x}>", part.range().start().get())
    } else {
        part.name.clone()
    }
}

fn add_image(
    builder: &mut Builder<'_, '_>,
    snapshot: &Snapshot<'_>,
    image: &Image,
    found: Found,
) -> Option<Part> {
    let range = image.range.or_else(|| range_of(image, &found))?;
    let inside = |mapping: &&Mapping| {
        range.contains(mapping.range.start())
            && (mapping.name.is_empty() || image.path.is_empty() || mapping.name == image.path)
    };
    let mut mappings: Vec<_> = snapshot.mappings.iter().filter(inside).cloned().collect();
    if mappings.is_empty() {
        mappings.push(whole(range));
    }
    let in_memory = || image_bytes(&snapshot.memory, range.start(), snapshot.arch).map(FileData::from);
    let binary = found.binary.as_ref().map(|(_, data)| data.clone());
    let is_from_memory = binary.is_none();
    let data = binary.or_else(in_memory);
    let part = Part {
        name: image.path.clone(),
        mappings,
        file_offset: FileOffset::new(image.file_offset),
        data,
        is_from_memory,
    };
    for problem in &found.tried {
        builder.note(problem.clone());
    }
    if found.is_unproven {
        builder.note(format!("{}: its identity is not in the core; taken by its path", image.path));
    }
    builder.add(&part, sources(image, &part, found), image.bias);
    Some(part)
}

/// Where an image lies of which only the bias is known.
fn range_of(image: &Image, found: &Found) -> Option<AddrRange<Avma>> {
    let object = Object::parse(&found.binary.as_ref()?.1).ok()?;
    let ends = object.segments().iter().map(|segment| segment.address.end());
    let (start, end) = (image.bias?.to_avma(object.image_base())?, image.bias?.to_avma(ends.max()?)?);
    Some(AddrRange::new(start, end))
}

fn whole(range: AddrRange<Avma>) -> Mapping {
    Mapping {
        range,
        offset: FileOffset::new(0),
        readable: true,
        writable: false,
        executable: true,
        name: String::new(),
    }
}

fn sources(image: &Image, part: &Part, found: Found) -> Sources {
    let mut files: Vec<_> = found.binary.into_iter().collect();
    if let (true, Some(data)) = (files.is_empty(), &part.data) {
        files.push((format!("memory of {}", image.name()), data.clone()));
    }
    let debug_files = if found.debug.is_empty() {
        Vec::new()
    } else {
        found.debug.into_iter().chain(files.clone()).collect()
    };
    Sources {
        name: image.name().to_owned(),
        path: Some(image.path.clone()).filter(|path| !path.is_empty()),
        id: image.id,
        files,
        debug_files,
        main_file: found.main_file,
        status: found.status,
        tried: found.tried,
    }
}

/// Code that belongs to no image: made at run time.
fn unclaimed(snapshot: &Snapshot<'_>, parts: &[Part]) -> Vec<Part> {
    let mut claimed: Vec<_> = parts.iter().map(Part::range).collect();
    claimed.sort_by_key(|range| range.start());
    let is_claimed = |address: Avma| {
        let after = claimed.partition_point(|range| range.start() <= address);
        after.checked_sub(1).and_then(|at| claimed.get(at)).is_some_and(|range| range.contains(address))
    };
    let code =
        snapshot.mappings.iter().filter(|mapping| mapping.executable && !is_claimed(mapping.range.start()));
    let part = |mapping: &Mapping| Part {
        name: mapping.name.clone(),
        mappings: vec![mapping.clone()],
        file_offset: FileOffset::new(0),
        data: None,
        is_from_memory: false,
    };
    code.map(part).collect()
}
