//! Stacks of a core dump.

use super::build::Builder;
use super::find::Finder;
use super::{StackOptions, Stacks, StacksError, images};
use crate::Symbols;
use crate::unpack::{self, Capture};
use backtrail_capture::{Limits, elf_core};
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
        let Capture { data, note } = unpack::open(path).map_err(StacksError)?;
        let program =
            executable.map(FileData::map).transpose().map_err(|error| StacksError(error.to_string()))?;
        let snapshot = elf_core::read(&data, program.as_deref(), &Limits::default())
            .map_err(|error| StacksError(format!("{}: {error}", path.display())))?;
        let finder =
            Finder { symbols, arch: snapshot.arch, executable, use_mapped_paths: options.use_mapped_paths };
        let mut builder = Builder::new(&snapshot);
        builder.notes(note);
        let mut parts = Vec::new();
        for image in &snapshot.images {
            parts.extend(images::add(&mut builder, &snapshot, image, finder.find(image), image.bias));
        }
        images::add_unclaimed(&mut builder, &snapshot, &mut parts);
        builder.add_jit(&parts, Vec::new());
        Ok(builder.finish(symbols, options))
    }
}
