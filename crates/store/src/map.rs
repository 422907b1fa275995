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

    /// Gives the memory of all pages back; they are read anew from the system's cache when they are touched again.
    /// Where the system cannot do that, nothing happens.
    pub(crate) fn release(&self) {
        // SAFETY: the mapping is read-only and no page of it was ever written to, so that every page comes back with
        // what the file holds, which is all that its readers may rely on (see `new`).
        #[cfg(unix)]
        let _ = unsafe { self.0.unchecked_advise(memmap2::UncheckedAdvice::DontNeed) };
    }

    /// Lets go of the whole pages in a part of the mapping; reading them again brings them back from the file.
    pub(crate) fn release_part(&self, start: usize, len: usize) {
        const PAGE: usize = 1 << 12;
        let end = start.saturating_add(len).min(self.0.len());
        let start = start.next_multiple_of(PAGE);
        // The last page of the file may be shorter than a page, and belongs to nobody else.
        let end = if end == self.0.len() { end } else { end / PAGE * PAGE };
        if start < end {
            // SAFETY: the mapping is of a file, read-only and never written to through it, so that the pages that are
            // read anew hold the file's bytes, as the ones before did; what another process does to the file meanwhile
            // is borne as `new` says.
            let advised = unsafe {
                self.0.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start)
            };
            // It is only advice: where it is not taken, memory stays in use for longer.
            let _ = advised;
        }
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
