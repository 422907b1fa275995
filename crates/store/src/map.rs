//! The one unsafe seam of this crate: a file's bytes as memory.
#![allow(unsafe_code, reason = "mapping a file is unsafe, and reading 100 MB debug files whole is too slow")]

use std::fs::File;
use std::io;
use std::ops::Deref;

/// A whole file, mapped for reading. Pages are read from the disk when they are touched.
///
/// A file that is shortened while it is mapped makes the next access beyond its new end raise SIGBUS, which ends
/// the process; that is how every tool behaves that maps files, and no check beforehand can rule it out. A file that
/// is written to while it is mapped may show old or new bytes. Debug files are replaced by a rename in practice,
/// which leaves the mapped one as it was. Where neither can be risked, copy the files first.
#[derive(Debug)]
pub(crate) struct Map(memmap2::Mmap);

impl Map {
    /// Maps all of `file`, which must not be empty.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only, and lives as long as every slice of it, which borrow `self`.
        // What remains is that another process changes the file meanwhile: then bytes may differ from one read to
        // the next, which the parsers bear since they check each value that they read where they use it; or pages
        // vanish, which raises SIGBUS (see above) and cannot corrupt memory.
        unsafe { memmap2::Mmap::map(file) }.map(Self)
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
