//! An image's file, or what lies in memory where the file is another by now.

use crate::from_memory::InMemory;
use crate::unwind_image::UnwindImage;
use backtrail_capture::Memory;
use backtrail_capture::local::{FAMILY, LoadedImage, OwnMemory};
use backtrail_core::{Arch, Avma, ReadMemory as _};
use backtrail_store::{FileData, OpenFile};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The file of an image; from memory where there is no file with its identity.
pub(crate) fn open(image: &LoadedImage) -> Option<Arc<OpenFile>> {
    // Leads to the program that runs, also where its path leads to another file by now.
    let link = Path::new("/proc/self/exe");
    let is_linked = image.is_program && std::fs::read_link(link).is_ok_and(|path| path == image.path);
    let path = if is_linked { link } else { &image.path };
    let shown = image.path.display().to_string();
    let file = Some(path).filter(|path| path.is_absolute()).and_then(|path| FileData::map(path).ok());
    let file = file.map(|file| OpenFile::new(shown.clone(), &image.path, file));
    let file = file.filter(|file| is_the_same(file, image));
    file.or_else(|| Some(OpenFile::new(shown, &image.path, from_memory(image)?)))
}

/// The image's unwind tables.
pub(crate) fn tables(_: &LoadedImage, file: &Arc<OpenFile>) -> Option<UnwindImage> {
    UnwindImage::open([file])
}

fn is_the_same(file: &OpenFile, image: &LoadedImage) -> bool {
    let same_id = image.id.is_none() || file.id() == image.id;
    file.object().is_some() && same_id && file.arch().family() == FAMILY
}

/// Larger images are not copied out of memory.
const MOST: u64 = 512 << 20;
const PIECE: usize = 64 << 10;

fn from_memory(image: &LoadedImage) -> Option<FileData> {
    let memory = OwnMemory::without_stack();
    let size = usize::try_from(image.range.size()).ok().filter(|size| *size as u64 <= MOST)?;
    let mut bytes = vec![0; size];
    let mut at = image.range.start();
    for piece in bytes.chunks_mut(PIECE) {
        // Between segments nothing need be mapped, and what is not may begin with any page.
        if memory.read(at, piece).is_err() {
            by_pages(&memory, at, piece);
        }
        at = at.checked_add(piece.len() as u64)?;
    }
    let copy = Memory::new([(image.range.start(), Cow::Owned(bytes))]);
    let file = InMemory::new(&copy).image(image.range.start(), Arch::HOST)?;
    Some(FileData::from(file))
}

fn by_pages(memory: &OwnMemory, mut at: Avma, piece: &mut [u8]) {
    const PAGE: usize = 4096;
    for page in piece.chunks_mut(PAGE) {
        let _ = memory.read(at, page);
        at = at.checked_add(page.len() as u64).unwrap_or(at);
    }
}
