//! The images of this process. Nobody has run this yet.

use crate::mach::{MappedImage, read_image};
use backtrail_core::{AddrRange, Avma, Bias, ImageId};
use backtrail_sys::macos::{self, Loaded, OwnMemory};
use std::path::PathBuf;

pub use backtrail_sys::macos::Counters;

/// One image of this process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoadedImage {
    /// The file, or what it would be: libraries of the shared cache have none.
    pub path: PathBuf,
    /// Its `__TEXT` segment.
    pub range: AddrRange<Avma>,
    /// Its code: the same.
    pub code: Vec<AddrRange<Avma>>,
    /// From the file's addresses to the process's ("slide").
    pub bias: Bias,
    /// Its UUID.
    pub id: Option<ImageId>,
    /// Whether it is the program itself.
    pub is_program: bool,
    /// Its load commands.
    pub mapped: MappedImage,
}

/// The counters of dyld's callbacks. Takes no lock.
pub fn counters() -> Option<Counters> {
    macos::follow_images();
    Some(macos::counters())
}

/// Every image of this process, and the counters of that moment. Takes none of dyld's locks.
pub fn images() -> (Vec<LoadedImage>, Counters) {
    macos::follow_images();
    let (loaded, counters) = macos::images();
    let images = loaded.into_iter().enumerate();
    (images.filter_map(|(index, loaded)| image(loaded, index == 0)).collect(), counters)
}

fn image(loaded: Loaded, is_program: bool) -> Option<LoadedImage> {
    let mapped = read_image(&OwnMemory::without_stack(), loaded.header)?;
    let range = AddrRange::from_size(loaded.header, mapped.text.size());
    Some(LoadedImage {
        path: PathBuf::from(loaded.path),
        range,
        code: vec![range],
        bias: mapped.bias,
        id: mapped.id,
        is_program,
        mapped,
    })
}
