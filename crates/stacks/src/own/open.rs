//! Opening an image of this process, and the files that belong to it.

use super::{Method, file};
use crate::unwind_image::UnwindImage;
use backtrail_capture::local::LoadedImage;
use backtrail_core::{Arch, ImageId};
use backtrail_model::SymbolStatus;
use backtrail_store::{ImageFiles, Index};
use backtrail_unwind::Rules;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// What leads on from an image's frames.
#[derive(Debug)]
pub(crate) enum Opened {
    /// All of its rules, ahead of time.
    Compiled(Rules),
    /// Its tables, of which a walk reads what it needs.
    Tables(UnwindImage),
    /// There are none, or none are needed.
    Nothing,
}

impl Opened {
    pub(crate) fn open(image: &LoadedImage, method: Method) -> Self {
        if method == Method::FramePointers {
            return Self::Nothing;
        }
        let Some(file) = file::open(image) else { return Self::Nothing };
        let Some(tables) = file::tables(image, &file) else { return Self::Nothing };
        if method == Method::Rules {
            return Self::Compiled(tables.module().compile());
        }
        // What it took to open them is not needed again soon.
        file.bytes().release();
        Self::Tables(tables)
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

/// The files of images that were asked for. They stay open, so that the next stack costs less.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles(Mutex<Vec<(Key, Arc<ImageFiles>)>>);

/// Images that stay open.
const KEPT: usize = 256;

impl OpenFiles {
    pub(super) fn find(&self, image: &LoadedImage, index: &Index) -> Arc<ImageFiles> {
        let key = key(image);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = all.iter().find(|(known, _)| *known == key) {
            return Arc::clone(known);
        }
        let found = Arc::new(find(image, index));
        if all.len() >= KEPT {
            all.remove(0);
        }
        all.push((key, Arc::clone(&found)));
        found
    }
}

/// The image's own file, and what belongs to it.
fn find(image: &LoadedImage, index: &Index) -> ImageFiles {
    let mut found = match file::open(image).filter(|file| file.problem().is_none()) {
        Some(file) => ImageFiles::of_binary(file),
        None => ImageFiles { status: SymbolStatus::Missing, ..ImageFiles::default() },
    };
    found.main_file.clone_from(&image.path);
    if let Some(id) = &image.id {
        index.add_by_identity(id, Some(Arch::HOST), true, &mut found);
    }
    index.add_separate_debug_file(&mut found);
    if found.binary.is_some() || !found.debug.is_empty() {
        found.status = SymbolStatus::Found;
    }
    found
}
