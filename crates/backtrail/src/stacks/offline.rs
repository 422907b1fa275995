//! Stacks of a saved stack.

use super::build::{Builder, Sources};
use super::folder::Folder;
use super::place::{self, Part};
use super::{StackOptions, Stacks, StacksError};
use crate::{SymbolStatus, Symbols};
use backtrail_capture::{Limits, offline, parse_maps};
use backtrail_core::{Arch, Family};
use backtrail_object::Object;
use std::path::Path;

impl Stacks {
    /// Reads, walks and names a saved stack: a folder in the layout of libunwindstack's offline cases. What the folder's
    /// binaries do not name is looked for in `symbols`.
    ///
    /// # Errors
    /// Where the folder has no `regs.txt` or `maps.txt`, or they cannot be read.
    pub fn offline(path: &Path, symbols: &Symbols, options: &StackOptions) -> Result<Self, StacksError> {
        let mut folder = Folder::open(path).map_err(StacksError)?;
        let registers = folder.required("regs.txt").map_err(StacksError)?;
        let maps = folder.required("maps.txt").map_err(StacksError)?;
        let limits = Limits::default();
        let arch = arch_of_binaries(&maps, &mut folder, &limits);
        let parts = offline::Parts { registers: &registers, maps: &maps, memory: folder.memory(), arch };
        let snapshot = offline::read(parts, &limits)
            .map_err(|error| StacksError(format!("{}: {error}", path.display())))?;
        let arch = snapshot.arch;
        let mut open = |name: &str| folder.mapped(name);
        let parts = place::parts(&snapshot.mappings, arch, &snapshot.memory, &mut open);
        let mut builder = Builder::new(&snapshot);
        for part in &parts {
            builder.add(part, sources(part, path, symbols), None);
        }
        let mapped: Vec<_> = snapshot.mappings.iter().map(|mapping| mapping.name.as_str()).collect();
        builder.add_jit(&parts, folder.others(&mapped));
        Ok(builder.finish(symbols, options))
    }
}

/// What the mapped binaries are built for: `pc` and `sp` alone do not tell.
fn arch_of_binaries(maps: &[u8], folder: &mut Folder, limits: &Limits) -> Option<Arch> {
    let (mappings, _) = parse_maps(maps, limits.mappings);
    let named = mappings.iter().filter(|mapping| mapping.executable && !mapping.name.is_empty());
    let archs = named.filter_map(|mapping| {
        let file = folder.mapped(&mapping.name)?;
        Some(Object::parse(&file).ok()?.arch())
    });
    archs.into_iter().find(|arch| arch.family() != Family::Other)
}

/// The image's own file, named as Android's tools do: `name.apk!soname` inside of an archive.
fn sources(part: &Part, folder: &Path, symbols: &Symbols) -> Sources {
    let base = part.name.rsplit('/').next().unwrap_or(&part.name);
    let headers = part.headers();
    let inside = part.file_offset.get() != 0;
    let soname = headers.as_ref().and_then(|headers| headers.soname.clone()).filter(|_| inside);
    let name = match soname {
        Some(soname) => format!("{base}!{soname}"),
        None if base.is_empty() => super::images::anonymous(part),
        None => base.to_owned(),
    };
    let place = if part.is_from_memory {
        format!("memory of {base}")
    } else {
        folder.join(base).display().to_string()
    };
    let id = headers.and_then(|headers| headers.id);
    let files: Vec<_> = part.data.iter().map(|data| (place.clone(), data.clone())).collect();
    let debug_files = id.map(|id| super::find::debug_files(&id, part, symbols)).unwrap_or_default();
    Sources {
        name,
        path: Some(part.name.clone()).filter(|path| !path.is_empty()),
        id,
        debug_files: if debug_files.is_empty() {
            Vec::new()
        } else {
            debug_files.into_iter().chain(files.clone()).collect()
        },
        files,
        main_file: folder.join(base),
        status: if part.data.is_some() { SymbolStatus::Found } else { SymbolStatus::Missing },
        tried: Vec::new(),
    }
}
