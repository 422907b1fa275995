//! Tables that are made when they are first wanted, and kept.

use crate::convert;
use crate::image_symbolizer::ImageSymbolizer;
use backtrail_core::{Arch, ImageId};
use backtrail_store::{FileData, FileStamp, Index, OpenFile};
use blake3::{Hash, Hasher};
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A directory with tables of debug files that were asked before.
///
/// A table is found by the identity and architecture of its image, the content of the files that it was made from, and the
/// version that made it, so that other files of the same image get a table of their own. The content counts by its BLAKE3
/// hash, which is taken again unless device, inode, size and both times of the file are what they were. A table is checked
/// as a whole before it is used, and made again where it is not what was written. Whoever can write to the directory
/// decides what addresses are called: it has to belong to the user. Nothing in it is ever removed.
#[derive(Clone, Debug)]
pub struct TableCache {
    directory: PathBuf,
}

impl TableCache {
    /// Keeps tables below `directory`, which is made when there is one to keep.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
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
        let fingerprint = self.fingerprint(image).to_hex();
        let fingerprint = fingerprint.get(..32).unwrap_or_default();
        let name = format!("{rest}-{}-{fingerprint}.btsym", arch.name());
        self.directory.join(first).join(name)
    }

    /// Where it is kept whose code is where in a binary.
    pub(crate) fn owners_place(&self, key: &Hash) -> PathBuf {
        let key = key.to_hex();
        self.directory.join("owners").join(key.get(..32).unwrap_or_default())
    }

    /// A hash of the files that an image was opened from, and of the program that would convert them.
    fn fingerprint(&self, image: &ImageSymbolizer) -> Hash {
        let mut hasher = Hasher::new();
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        for file in image.given_files() {
            hasher.update(self.content(file.bytes()).as_bytes());
        }
        hasher.finalize()
    }

    /// The hash of a file's content: the one that is kept of it, where nothing of the file has changed since.
    pub(crate) fn content(&self, data: &FileData) -> Hash {
        let kept = data.stamp().map(|stamp| self.directory.join("content").join(stamp_name(&stamp)));
        let known = kept.as_deref().and_then(|kept| fs::read_to_string(kept).ok());
        if let Some(hash) = known.and_then(|hash| Hash::from_hex(hash.trim_end()).ok()) {
            return hash;
        }
        let hash = blake3::hash(data);
        data.release();
        if let (Some(kept), Some((stamp, _))) = (kept, data.stamp())
            && is_settled(&stamp)
            && data.check().is_ok()
        {
            // Without it the hash is taken again the next time.
            let _ = convert::write_whole(&kept, hash.to_hex().as_bytes());
        }
        hash
    }
}

/// What a file's hash is kept under: everything that changes when the file does.
fn stamp_name((stamp, range): &(FileStamp, Range<usize>)) -> String {
    let FileStamp { file, size, modified, changed } = stamp;
    let text = format!("{file:?} {size} {modified:?} {changed:?} {range:?}");
    let name = blake3::hash(text.as_bytes()).to_hex();
    name.get(..32).unwrap_or_default().to_owned()
}

/// Whether a further change of the file would show in its times: file systems count in steps of up to two seconds.
fn is_settled(stamp: &FileStamp) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    now.saturating_sub(stamp.changed.0.max(stamp.modified.0)) > 2
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

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    fn content(cache: &TableCache, path: &Path) -> Hash {
        cache.content(&FileData::map(path).unwrap())
    }

    /// Seen with a debug file whose size, start and end stayed the same: the old names were kept.
    #[test]
    fn every_byte_of_a_file_counts_however_often_it_changes() {
        let directory = TempDir::new("content");
        let cache = TableCache::new(directory.join("cache"));
        let mut bytes = vec![7; 300_000];
        let file = directory.write("file", &bytes);
        let first = content(&cache, &file);
        assert_eq!(content(&cache, &file), first);
        bytes[150_000] = 8;
        std::fs::write(&file, &bytes).unwrap();
        assert_ne!(content(&cache, &file), first);
        assert_ne!(cache.content(&FileData::from(vec![7; 5])), cache.content(&FileData::from(vec![7; 6])));
    }

    #[test]
    fn a_hash_is_kept_once_the_files_times_can_tell_a_change() {
        let directory = TempDir::new("content-kept");
        let cache = TableCache::new(directory.join("cache"));
        let file = directory.write("file", "content");
        let stamp = FileData::map(&file).unwrap().stamp().unwrap();
        let kept = cache.directory.join("content").join(stamp_name(&stamp));
        assert_eq!(content(&cache, &file), blake3::hash(b"content"));
        assert!(!kept.exists(), "the file may change once more within the same tick");
        convert::write_whole(&kept, blake3::hash(b"other").to_hex().as_bytes()).unwrap();
        assert_eq!(content(&cache, &file), blake3::hash(b"other"), "what is kept is not taken again");
        std::fs::write(&file, "contents").unwrap();
        assert_eq!(content(&cache, &file), blake3::hash(b"contents"));
    }
}
