//! An image's file, where there is one: libraries of the shared cache have none. Nobody has run this yet.

use crate::mapped_tables;
use crate::unwind_image::UnwindImage;
use backtrail_capture::local::{FAMILY, LoadedImage, OwnMemory};
use backtrail_core::Arch;
use backtrail_object::{Limits, slices};
use backtrail_store::{FileData, OpenFile};
use std::sync::Arc;

/// The image's unwind tables, as they are mapped.
pub(crate) fn tables(image: &LoadedImage, _: &Arc<OpenFile>) -> Option<UnwindImage> {
    let memory = OwnMemory::without_stack();
    UnwindImage::from_tables(mapped_tables::read(&memory, &image.mapped, Arch::HOST))
}

/// The image's part of its file, which may hold one for each architecture. Where the file is gone or its UUID is another by
/// now, there is a file without anything in it.
pub(crate) fn open(image: &LoadedImage) -> Option<Arc<OpenFile>> {
    let name = image.path.display().to_string();
    let part = part(image).unwrap_or_else(|| FileData::from(Vec::new()));
    Some(OpenFile::new(name, &image.path, part))
}

fn part(image: &LoadedImage) -> Option<FileData> {
    let file = FileData::map(&image.path).ok()?;
    let limits = Limits::default();
    let all = slices(&file, &limits).ok()?;
    let own = all.iter().find(|slice| {
        let object = slice.parse(&limits);
        object.is_ok_and(|object| object.id() == image.id && object.arch().family() == FAMILY)
    })?;
    file.part(own.range.start(), own.data.len() as u64)
}
