//! Stacks of a saved stack.

use crate::build::{Builder, Sources};
use crate::directory::Directory;
use crate::loaded_image::{self, Part};
use crate::{Captured, StackOptions, StacksError};
use backtrail_capture::{Limits, offline as reader, parse_maps};
use backtrail_core::{Arch, Family};
use backtrail_model::SymbolStatus;
use backtrail_object::Object;
use backtrail_store::{ImageFiles, Index};
use std::path::Path;

/// Reads and walks a saved stack: a directory in the layout of libunwindstack's offline cases. What the directory's
/// binaries do not name is looked for in `index`.
///
/// # Errors
/// Where the directory has no `regs.txt` or `maps.txt`, or they cannot be read.
pub fn offline(path: &Path, index: &Index, options: &StackOptions) -> Result<Captured, StacksError> {
    let mut directory = Directory::open(path).map_err(StacksError::new)?;
    let registers = directory.required("regs.txt").map_err(StacksError::new)?;
    let maps = directory.required("maps.txt").map_err(StacksError::new)?;
    let limits = Limits::default();
    let arch = arch_of_binaries(&maps, &mut directory, &limits);
    let parts = reader::Parts { registers: &registers, maps: &maps, memory: directory.memory(), arch };
    let snapshot = reader::read(parts, &limits).map_err(|error| StacksError::of(path.display(), error))?;
    let arch = snapshot.arch;
    let mut open = |name: &str| {
        let base = name.rsplit('/').next().unwrap_or(name);
        Some((path.join(base).display().to_string(), directory.mapped(name)?))
    };
    let parts = loaded_image::parts(&snapshot.mappings, arch, &snapshot.memory, &mut open);
    let mut builder = Builder::new(&snapshot);
    for part in &parts {
        builder.add(part, sources(part, path, index), None);
    }
    let mapped: Vec<_> = snapshot.mappings.iter().map(|mapping| mapping.name.as_str()).collect();
    builder.add_jit(&parts, directory.others(&mapped));
    Ok(builder.finish(options))
}

/// What the mapped binaries are built for: `pc` and `sp` alone do not tell.
fn arch_of_binaries(maps: &[u8], directory: &mut Directory, limits: &Limits) -> Option<Arch> {
    let (mappings, _) = parse_maps(maps, limits.mappings);
    let named = mappings.iter().filter(|mapping| mapping.executable && !mapping.name.is_empty());
    let archs = named.filter_map(|mapping| {
        let file = directory.mapped(&mapping.name)?;
        Some(Object::parse(&file).ok()?.arch())
    });
    archs.into_iter().find(|arch| arch.family() != Family::Other)
}

/// The image's own file, named as Android's tools do: `name.apk!soname` inside of an archive.
fn sources(part: &Part, directory: &Path, index: &Index) -> Sources {
    let base = part.name.rsplit('/').next().unwrap_or(&part.name);
    let headers = part.headers();
    let inside = part.file_offset.get() != 0;
    let soname = headers.as_ref().and_then(|headers| headers.soname.clone()).filter(|_| inside);
    let name = match soname {
        Some(soname) => format!("{base}!{soname}"),
        None if base.is_empty() => crate::images::anonymous(part),
        None => base.to_owned(),
    };
    let id = headers.and_then(|headers| headers.id);
    let mut files = ImageFiles { main_file: directory.join(base), ..ImageFiles::default() };
    files.binary.clone_from(&part.file);
    if let Some(id) = id {
        index.add_by_identity(&id, None, true, &mut files);
    }
    files.status = if part.file.is_some() { SymbolStatus::Found } else { SymbolStatus::Missing };
    Sources { name, path: Some(part.name.clone()).filter(|path| !path.is_empty()), id, files }
}
