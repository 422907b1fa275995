//! Tables that are made when they are first wanted, and kept.

use crate::convert;
use crate::image_symbolizer::ImageSymbolizer;
use backtrail_core::{Arch, ImageId};
use backtrail_store::{FileData, Index, OpenFile};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A folder with tables of debug files that were asked before.
///
/// A table is found by the identity and architecture of its image, the sizes and ends of the files that it was made from,
/// and the version that made it, so that other files of the same image get a table of their own. It is checked as a whole
/// before it is used, and made again where it is not what was written. Whoever can write to the folder decides what
/// addresses are called: it has to belong to the user. Nothing in it is ever removed.
#[derive(Clone, Debug)]
pub struct TableCache {
    folder: PathBuf,
}

/// Bytes of a file's start and end that tell it from others of its size.
const ENDS: usize = 1 << 16;

impl TableCache {
    /// Keeps tables below `folder`, which is made when there is one to keep.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The same image with a table to answer from; `None` where it has no debug info, or already has a table, or the
    /// table could not say all that its files do.
    pub(crate) fn with_table(&self, image: &ImageSymbolizer, index: &Index) -> Option<ImageSymbolizer> {
        let (id, arch) = image.debug_identity()?;
        let place = self.place(&id, arch, image);
        let table = match read(&place, &id, arch) {
            Some(table) => table,
            None => {
                make(image, index, &place)?;
                read(&place, &id, arch)?
            }
        };
        image.with_table(table)
    }

    /// Where an image's table is kept: `ab/cdef…-x86_64-0123456789abcdef.btsym`.
    fn place(&self, id: &ImageId, arch: Arch, image: &ImageSymbolizer) -> PathBuf {
        let digits = id.as_bytes().iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        let (first, rest) = digits.split_at_checked(2).unwrap_or((&digits, ""));
        let name = format!("{rest}-{}-{:016x}.btsym", arch.name(), fingerprint(image));
        self.folder.join(first).join(name)
    }
}

/// A number of the files that an image was opened from, and of the program that would convert them (FNV-1a).
fn fingerprint(image: &ImageSymbolizer) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    add(env!("CARGO_PKG_VERSION").as_bytes());
    for file in image.given_files().iter().map(|file| file.bytes()) {
        add(&(file.len() as u64).to_le_bytes());
        add(file.get(..ENDS).unwrap_or(file));
        add(file.get(file.len().saturating_sub(ENDS)..).unwrap_or_default());
    }
    hash
}

/// The table at a place, if it is whole and of that image.
fn read(place: &Path, id: &ImageId, arch: Arch) -> Option<Arc<OpenFile>> {
    let data = FileData::map(place).ok()?;
    let file = OpenFile::new(place.display().to_string(), place, data);
    let table = file.table()?;
    let is_right = table.header().id == Some(*id) && table.header().arch == arch && table.check().is_ok();
    is_right.then_some(file)
}

/// Converts on threads of its own: one of the caller's pool would do other work while it waits, which may want the very
/// image that is being opened.
fn make(image: &ImageSymbolizer, index: &Index, place: &Path) -> Option<()> {
    fs::create_dir_all(place.parent()?).ok()?;
    std::thread::scope(|scope| {
        let maker = scope.spawn(|| convert::keep(image, index, place));
        maker.join().ok().flatten()
    })
}
