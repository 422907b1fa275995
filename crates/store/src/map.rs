//! The one unsafe seam of this crate: a file's bytes as memory.
#![allow(unsafe_code, reason = "mapping a file is unsafe, and reading 100 MB debug files whole is too slow")]

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use backtrail_sys::MappedRange;

/// A whole file, mapped for reading. Pages are read from the disk when they are touched.
///
/// A file that another process shortens while it is mapped reads as zeros beyond its new end, and
/// [`is_truncated`](Self::is_truncated) says so: see [`MappedRange`], without which the access ends the process. A file
/// that is written to while it is mapped may show old or new bytes. Debug files are replaced by a rename in practice,
/// which leaves the mapped one as it was.
#[derive(Debug)]
pub(crate) struct Map {
    /// First, so that it is dropped before the file is unmapped.
    range: MappedRange,
    bytes: memmap2::Mmap,
    origin: Arc<Origin>,
}

/// The file on the disk.
#[derive(Debug)]
struct Origin {
    path: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    is_truncated: AtomicBool,
}

/// What the system says of a file: two that have the same stamp are the same file with the same content, as far as times
/// tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileStamp {
    /// Device and inode.
    pub file: (u64, u64),
    /// Bytes.
    pub size: u64,
    /// When its content was changed last: seconds since 1970, nanoseconds.
    pub modified: (i64, i64),
    /// When anything of it was changed last.
    pub changed: (i64, i64),
}

impl Map {
    /// Maps all of `file`, which must not be empty, and was opened at `path`.
    pub(crate) fn new(file: &File, metadata: &Metadata, path: &Path) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only, and lives as long as every slice of it, which borrow `self`.
        // What remains is that another process changes the file meanwhile: then bytes may differ from one read to
        // the next, or become zeros, which the parsers bear since they check each value that they read where they use
        // it; where there is no handler, pages that vanish raise SIGBUS, which cannot corrupt memory.
        let bytes = unsafe { memmap2::Mmap::map(file) }?;
        // SAFETY: the range is that of the mapping, which is dropped after it; zeros are borne as is said above.
        let range = unsafe { MappedRange::new(bytes.as_ptr(), bytes.len()) };
        let origin = Arc::new(Origin {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            size: bytes.len() as u64,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            is_truncated: AtomicBool::new(false),
        });
        watch(&origin);
        Ok(Self { range, bytes, origin })
    }

    /// What the system said of the file when it was opened.
    pub(crate) fn stamp(&self) -> FileStamp {
        let Origin { device, inode, size, modified, changed, .. } = *self.origin;
        FileStamp { file: (device, inode), size, modified, changed }
    }

    /// Where it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.origin.path
    }

    /// Whether the file became shorter since it was mapped: a read found out, or its size says so now. The size is
    /// what tells of an end within the last page, whose rest reads as zeros without a fault.
    pub(crate) fn is_truncated(&self) -> bool {
        if self.range.is_truncated() || self.origin.is_shorter() {
            self.origin.is_truncated.store(true, SeqCst);
        }
        self.origin.is_truncated.load(SeqCst)
    }

    /// Gives the memory of all pages back; they are read anew from the system's cache when they are touched again.
    /// Where the system cannot do that, nothing happens.
    pub(crate) fn release(&self) {
        // SAFETY: the mapping is read-only and no page of it was ever written to, so that every page comes back with
        // what the file holds, which is all that its readers may rely on (see `new`).
        #[cfg(unix)]
        let _ = unsafe { self.bytes.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
    }

    /// Lets go of the whole pages in a part of the mapping; reading them again brings them back from the file.
    pub(crate) fn release_part(&self, start: usize, len: usize) {
        const PAGE: usize = 1 << 12;
        let end = start.saturating_add(len).min(self.bytes.len());
        let start = start.next_multiple_of(PAGE);
        // The last page of the file may be shorter than a page, and belongs to nobody else.
        let end = if end == self.bytes.len() { end } else { end / PAGE * PAGE };
        if start < end {
            // SAFETY: the mapping is of a file, read-only and never written to through it, so that the pages that are
            // read anew hold the file's bytes, as the ones before did; what another process does to the file meanwhile
            // is borne as `new` says.
            let advised = unsafe {
                self.bytes.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
            };
            // It is only advice: where it is not taken, memory stays in use for longer.
            let _ = advised;
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.is_truncated() {
            let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
            // A server may run for years; nobody reads a list of thousands.
            const MOST: usize = 1000;
            if watched.truncated.len() < MOST && !watched.truncated.contains(&self.origin.path) {
                watched.truncated.push(self.origin.path.clone());
            }
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Origin {
    /// Whether the same file, if it is still there under its name, is shorter now.
    fn is_shorter(&self) -> bool {
        std::fs::metadata(&self.path)
            .is_ok_and(|now| (now.dev(), now.ino()) == (self.device, self.inode) && now.size() < self.size)
    }
}

/// All files that this process has mapped, for [`truncated_files`].
static WATCHED: Mutex<Watched> = Mutex::new(Watched { mapped: Vec::new(), truncated: Vec::new() });

struct Watched {
    mapped: Vec<Weak<Origin>>,
    truncated: Vec<PathBuf>,
}

fn watch(origin: &Arc<Origin>) {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    // Only where the list would grow, so that thousands of files do not each go through it.
    if watched.mapped.len() == watched.mapped.capacity() {
        watched.mapped.retain(|origin| origin.strong_count() > 0);
    }
    watched.mapped.push(Arc::downgrade(origin));
}

/// The files that became shorter while this process had them mapped, sorted: what was read of them may be wrong.
///
/// For a program that is about to end: it should say so, and not claim success. A library's caller learns the same of
/// one file from [`FileData::check`](crate::FileData::check).
pub fn truncated_files() -> Vec<PathBuf> {
    let watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let mut files = watched.truncated.clone();
    let mapped: Vec<_> = watched.mapped.iter().filter_map(Weak::upgrade).collect();
    drop(watched);
    let is_truncated = |origin: &Arc<Origin>| origin.is_truncated.load(SeqCst) || origin.is_shorter();
    files.extend(mapped.into_iter().filter(is_truncated).map(|origin| origin.path.clone()));
    files.sort_unstable();
    files.dedup();
    files
}
