//! A file that is there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A file on its way. Written beside its place under another name, and moved there when it is whole and on the disk;
/// dropped before that, nothing of it stays.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) file: File,
    temporary: PathBuf,
    place: PathBuf,
    is_done: bool,
}

/// Names that are tried before giving up; more than one is in use only after the same process number was killed.
const TRIES: u32 = 64;

impl Pending {
    pub(super) fn create(place: &Path) -> io::Result<Self> {
        let name = place.file_name().ok_or_else(|| io::Error::other("expected the name of a file"))?;
        let name = name.to_string_lossy();
        for attempt in 0..TRIES {
            let temporary = place.with_file_name(format!(".{name}.{}-{attempt}.part", std::process::id()));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&temporary) {
                Ok(file) => return Ok(Self { file, temporary, place: place.to_owned(), is_done: false }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Where it is until it is whole.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Puts it in its place, over what was there.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.place)?;
        self.is_done = true;
        // So that the name survives a power cut, too. Not every file system can; the file itself is safe.
        let folder = self.place.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
