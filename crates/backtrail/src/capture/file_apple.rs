//! An image's file, where there is one: libraries of the shared cache have none. Nobody has run this yet.

use crate::stacks::UnwindImage;
use crate::unwind_tables::UnwindTables;
use backtrail_capture::local::{FAMILY, LoadedImage, OwnMemory};
use backtrail_core::Arch;
use backtrail_object::{Limits, slices};
use backtrail_store::FileData;

/// The image's unwind tables, as they are mapped.
pub(super) fn tables(image: &LoadedImage) -> Option<UnwindImage> {
    let memory = OwnMemory::without_stack();
    UnwindImage::from_tables(UnwindTables::mapped(&memory, &image.mapped, Arch::HOST))
}

/// The image's part of its file, which may hold one for each architecture, with a name for it. `None` where the file's
/// UUID is another by now.
pub(super) fn data(image: &LoadedImage) -> Option<(String, FileData)> {
    let file = FileData::map(&image.path).ok()?;
    let limits = Limits::default();
    let all = slices(&file, &limits).ok()?;
    let own = all.iter().find(|slice| {
        let object = slice.parse(&limits);
        object.is_ok_and(|object| object.id() == image.id && object.arch().family() == FAMILY)
    })?;
    let part = file.part(own.range.start(), own.data.len() as u64)?;
    Some((image.path.display().to_string(), part))
}
