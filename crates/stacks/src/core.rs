//! Stacks of a core dump.

use crate::build::Builder;
use crate::images;
use crate::{Captured, StackOptions, StacksError};
use backtrail_capture::{Limits, MappedImage, elf_core};
use backtrail_store::{Index, Search, Unpacked, unpack_file};
use std::path::Path;

/// Reads and walks the threads of an ELF core. Images' files are found by build id below the paths of `index` and in the
/// system's debug directories, by path, and in the core itself; `executable` is the program where the caller has it.
///
/// # Errors
/// Where `path` is no core that can be read, or `executable` cannot be.
pub fn core(
    path: &Path,
    executable: Option<&Path>,
    index: &Index,
    options: &StackOptions,
) -> Result<Captured, StacksError> {
    let Unpacked { data, note } = unpack_file(path).map_err(StacksError::new)?;
    let mut captured =
        core_bytes(&data, executable, index, options).map_err(|error| error.within(path.display()))?;
    captured.report.notes.splice(0..0, note);
    Ok(captured)
}

/// The same for the bytes of a core.
///
/// # Errors
/// Where they are no core that can be read, or `executable` cannot be.
pub fn core_bytes(
    data: &[u8],
    executable: Option<&Path>,
    index: &Index,
    options: &StackOptions,
) -> Result<Captured, StacksError> {
    let program = executable.map(|path| index.object_at_path(path)).transpose();
    let program = program.map_err(StacksError::from_error)?;
    let snapshot = elf_core::read(data, program.as_ref().map(|file| &**file.bytes()), &Limits::default())
        .map_err(StacksError::from_error)?;
    let mut builder = Builder::new(&snapshot);
    let mut parts = Vec::new();
    for image in &snapshot.images {
        let search = search(image, executable, options);
        let found = index.image_files(&images::wanted(image, snapshot.arch), &search);
        parts.extend(images::add(&mut builder, &snapshot, image, found, image.bias));
    }
    images::add_unclaimed(&mut builder, &snapshot, &mut parts);
    builder.add_abort_message(&parts);
    builder.add_jit(&parts, Vec::new());
    Ok(builder.finish(options))
}

/// Where to look for the files of an image of a capture.
pub(crate) fn search<'s>(
    image: &MappedImage,
    executable: Option<&'s Path>,
    options: &StackOptions,
) -> Search<'s> {
    Search {
        named: executable.filter(|_| image.is_executable),
        use_path: options.use_mapped_paths,
        by_name: true,
        needs_binary: true,
    }
}
