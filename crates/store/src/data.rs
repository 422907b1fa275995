//! The bytes of a file or of a zip member.

use std::fmt;
use std::fs::OpenOptions;
use std::ops::{Deref, Range};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use backtrail_core::FileOffset;

use crate::error::{Error, ErrorKind, Fault, ShownPath};
use crate::map::{FileStamp, Map};

/// Bytes of a file: mapped, or inflated into memory out of a zip. Cheap to clone; all clones share the bytes.
///
/// What a mapped file no longer has, because another process made it shorter, reads as zeros: whoever has read all
/// that is wanted of a file [checks](Self::check) that it was still whole. For that, mapping the first file installs a
/// handler for SIGBUS, which hands on what is not its own; [`handle_bus_errors`](crate::handle_bus_errors) keeps it away.
#[derive(Clone)]
pub struct FileData {
    backing: Arc<Backing>,
    range: Range<usize>,
}

pub(crate) enum Backing {
    Mapped(Map),
    Held(Vec<u8>),
}

impl Backing {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Held(bytes) => bytes,
        }
    }
}

impl FileData {
    /// Maps a regular file.
    ///
    /// # Errors
    /// When it cannot be opened, or is anything but a regular file: a fifo or device could block for ever.
    pub fn map(path: &Path) -> Result<Self, Error> {
        Self::map_file(&open_regular(path).map_err(|fault| fault.at(ShownPath(path)))?, path)
    }

    /// Maps a regular file that was opened at `path`.
    pub(crate) fn map_file(file: &std::fs::File, path: &Path) -> Result<Self, Error> {
        let place = || ShownPath(path);
        let metadata = file.metadata().map_err(|error| Fault::io("cannot be read", &error).at(place()))?;
        if metadata.len() == 0 {
            return Ok(Self::from(Vec::new()));
        }
        let map = Map::new(file, &metadata, path);
        let map = map.map_err(|error| Fault::io("cannot be mapped", &error).at(place()))?;
        Ok(Self::new(Backing::Mapped(map)))
    }

    fn new(backing: Backing) -> Self {
        let range = 0..backing.bytes().len();
        Self { backing: Arc::new(backing), range }
    }

    pub(crate) fn from_shared(backing: Arc<Backing>) -> Self {
        let range = 0..backing.bytes().len();
        Self { backing, range }
    }

    pub(crate) fn backing(&self) -> &Arc<Backing> {
        &self.backing
    }

    /// Whether these are not all of the bytes that are mapped or held.
    pub(crate) fn is_part(&self) -> bool {
        self.range.len() != self.backing.bytes().len()
    }

    /// Lets go of the memory that `part`, a part of these bytes, takes, where they are mapped: whole pages of it. Reading
    /// it again brings it back. Parts of anything else are passed over.
    pub fn release_part(&self, part: &[u8]) {
        let Backing::Mapped(map) = &*self.backing else { return };
        let (all, first) = (map.as_ptr().addr(), part.as_ptr().addr());
        if let Some(start) = first.checked_sub(all)
            && start.checked_add(part.len()).is_some_and(|end| end <= map.len())
        {
            map.release_part(start, part.len());
        }
    }

    /// What the system said of the file when it was mapped, and which bytes of it these are; `None` for bytes that are
    /// held.
    pub fn stamp(&self) -> Option<(FileStamp, Range<usize>)> {
        match &*self.backing {
            Backing::Mapped(map) => Some((map.stamp(), self.range.clone())),
            Backing::Held(_) => None,
        }
    }

    /// Whether the bytes are mapped from a file rather than held in memory.
    pub fn is_mapped(&self) -> bool {
        matches!(*self.backing, Backing::Mapped(_))
    }

    /// Gives the memory of a mapped file back to the system; what is read again comes from its cache. For readers of
    /// hundreds of megabytes who do not need them all at a time. Nothing happens to bytes that are held.
    pub fn release(&self) {
        if let Backing::Mapped(map) = &*self.backing {
            map.release();
        }
    }

    /// Whether the file was made shorter while it was mapped, so that zeros may have been read in place of its bytes.
    pub fn is_truncated(&self) -> bool {
        matches!(&*self.backing, Backing::Mapped(map) if map.is_truncated())
    }

    /// To be asked when all that is wanted has been read, before anybody relies on it.
    ///
    /// # Errors
    /// When the file was made shorter meanwhile.
    pub fn check(&self) -> Result<(), Error> {
        match &*self.backing {
            Backing::Mapped(map) => self.check_whole().map_err(|fault| fault.at(ShownPath(map.path()))),
            Backing::Held(_) => Ok(()),
        }
    }

    pub(crate) fn check_whole(&self) -> Result<(), Fault> {
        if self.is_truncated() {
            return Err(Fault::new(ErrorKind::Changed, "shrank while it was read"));
        }
        Ok(())
    }

    /// A part of these bytes, sharing them. What reaches beyond the end is cut off there, since a file that was cut
    /// in half still has its first half; `None` when it begins beyond the end.
    #[must_use]
    pub fn part(&self, offset: FileOffset, size: u64) -> Option<Self> {
        let offset = usize::try_from(offset.get()).ok().filter(|offset| *offset <= self.range.len())?;
        let size = usize::try_from(size).unwrap_or(usize::MAX).min(self.range.len() - offset);
        let start = self.range.start + offset;
        Some(Self { backing: Arc::clone(&self.backing), range: start..start + size })
    }
}

impl From<Vec<u8>> for FileData {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Backing::Held(bytes))
    }
}

impl Deref for FileData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.backing.bytes().get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for FileData {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for FileData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_mapped() { "mapped" } else { "held" };
        write!(f, "FileData({} bytes, {how})", self.len())
    }
}

/// Opens what is a regular file, and nothing else: opening a fifo would block, opening a device may do anything.
pub(crate) fn open_regular(path: &Path) -> Result<std::fs::File, Fault> {
    let cannot = |error: std::io::Error| Fault::io("cannot be opened", &error);
    let not_a_file = || Fault::new(ErrorKind::NotAFile, "expected a regular file");
    let metadata = std::fs::metadata(path).map_err(cannot)?;
    if !metadata.is_file() {
        return Err(not_a_file());
    }
    // Between these two calls a fifo may have taken the file's place.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(cannot)?;
    let is_file = file.metadata().map_err(cannot)?.is_file();
    if is_file { Ok(file) } else { Err(not_a_file()) }
}
