//! Stacks of a minidump.

use crate::build::Builder;
use crate::core::search;
use crate::images;
use crate::{Captured, StackOptions, StacksError};
use backtrail_capture::{Limits, MappedImage, crash_file, minidump as reader};
use backtrail_core::Bias;
use backtrail_store::{ImageFiles, Index, Unpacked, unpack_file};
use std::path::Path;

/// Reads and walks the threads of a minidump. Modules' files are found by identity below the paths of `index` and in the
/// system's debug directories, and by path.
///
/// # Errors
/// Where `path` is no minidump that can be read.
pub fn minidump(path: &Path, index: &Index, options: &StackOptions) -> Result<Captured, StacksError> {
    let Unpacked { data, note } = unpack_file(path).map_err(StacksError::new)?;
    let mut captured = minidump_bytes(&data, index, options).map_err(|error| error.within(path.display()))?;
    captured.report.notes.splice(0..0, note);
    Ok(captured)
}

/// The same for the bytes of a minidump.
///
/// # Errors
/// Where they are no minidump that can be read.
pub fn minidump_bytes(data: &[u8], index: &Index, options: &StackOptions) -> Result<Captured, StacksError> {
    let snapshot = reader::read(data, &Limits::default()).map_err(StacksError::from_error)?;
    let mut builder = Builder::new(&snapshot);
    let mut parts = Vec::new();
    for image in &snapshot.images {
        let search = search(image, None, options);
        let found = index.image_files(&images::wanted(image, snapshot.arch), &search);
        let bias = bias(image, &found);
        parts.extend(images::add(&mut builder, &snapshot, image, found, bias));
    }
    images::add_unclaimed(&mut builder, &snapshot, &mut parts);
    builder.add_jit(&parts, Vec::new());
    Ok(builder.finish(options))
}

/// A crash file as a minidump, for tools that read nothing else. It has what a minidump has room for: not the frames that the handler
/// walked, notes, breadcrumbs and messages.
///
/// # Errors
/// Where the bytes are no crash file that can be read, or one of Apple's systems.
pub fn minidump_of_crash_file(data: &[u8]) -> Result<Vec<u8>, StacksError> {
    let file = crash_file::read(data, &Limits::default()).map_err(StacksError::from_error)?;
    if file.is_apple() {
        let message = "a crash file of one of Apple's systems; minidumps are written of Linux's alone";
        return Err(StacksError::new(message));
    }
    reader::write(&file.snapshot).map_err(StacksError::from_error)
}

/// A module's base is where its image base lies.
fn bias(image: &MappedImage, found: &ImageFiles) -> Option<Bias> {
    let object = found.unwinding().find_map(|file| file.object())?;
    Some(Bias::between(image.range?.start(), object.image_base()))
}
