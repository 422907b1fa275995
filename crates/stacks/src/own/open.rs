//! Opening an image of this process.

use super::file;
use crate::unwind_image::UnwindImage;
use backtrail_capture::local::LoadedImage;
use backtrail_core::ImageId;
use backtrail_unwind::Rules;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// What leads on from an image's frames.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) rules: Option<Rules>,
    /// Kept only where copies of stacks are walked.
    pub(crate) tables: Option<UnwindImage>,
}

impl Opened {
    pub(crate) fn open(image: &LoadedImage, keep_tables: bool) -> Self {
        let tables = file::open(image).and_then(|file| file::tables(image, &file));
        let rules = tables.as_ref().map(|tables| tables.module().compile());
        Self { rules, tables: tables.filter(|_| keep_tables) }
    }
}

/// What an image's rules are kept under: its file, as exactly as it is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Key {
    path: PathBuf,
    id: Option<ImageId>,
    file: Option<(u64, u64, i64, i64, u64)>,
}

pub(crate) fn key(image: &LoadedImage) -> Key {
    let file = || {
        let data = std::fs::metadata(&image.path).ok()?;
        Some((data.dev(), data.ino(), data.mtime(), data.mtime_nsec(), data.size()))
    };
    let file = if image.id.is_none() { file() } else { None };
    Key { path: image.path.clone(), id: image.id, file }
}
