//! Stacks of a minidump.

use super::build::Builder;
use super::find::{Finder, Found};
use super::{StackOptions, Stacks, StacksError, images};
use crate::Symbols;
use crate::unpack::{self, Capture};
use backtrail_capture::{Image, Limits, minidump};
use backtrail_core::Bias;
use backtrail_object::Object;
use std::path::Path;

impl Stacks {
    /// Reads, walks and names the threads of a minidump. Modules' files are found by identity below `symbols` and in the
    /// system's debug folders, and by path.
    ///
    /// # Errors
    /// Where `path` is no minidump that can be read.
    pub fn minidump(path: &Path, symbols: &Symbols, options: &StackOptions) -> Result<Self, StacksError> {
        let Capture { data, note } = unpack::open(path).map_err(StacksError)?;
        let snapshot = minidump::read(&data, &Limits::default())
            .map_err(|error| StacksError(format!("{}: {error}", path.display())))?;
        let use_mapped_paths = options.use_mapped_paths;
        let finder = Finder { symbols, arch: snapshot.arch, executable: None, use_mapped_paths };
        let mut builder = Builder::new(&snapshot);
        builder.notes(note);
        let mut parts = Vec::new();
        for image in &snapshot.images {
            let found = finder.find(image);
            let bias = bias(image, &found);
            parts.extend(images::add(&mut builder, &snapshot, image, found, bias));
        }
        images::add_unclaimed(&mut builder, &snapshot, &mut parts);
        builder.add_jit(&parts, Vec::new());
        Ok(builder.finish(symbols, options))
    }
}

/// A module's base is where its image base lies.
fn bias(image: &Image, found: &Found) -> Option<Bias> {
    let mut files = found.binary.iter().chain(&found.debug);
    let object = files.find_map(|(_, data)| Object::parse(data).ok())?;
    Some(Bias::between(image.range?.start(), object.image_base()))
}
