//! Files in a directory: `objects/ab/cdef…`.

use super::Object;
use crate::database::{Database, DatabaseError, Result};
use backtrail_store::NewFile;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The directory of files.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    directory: PathBuf,
}

impl Folder {
    /// Uses the directory, and makes it and the 256 below it: later ones need no directory of their own to be made durable.
    pub(super) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        for byte in 0..=u8::MAX {
            fs::create_dir_all(directory.join(format!("{byte:02x}")))?;
        }
        fs::File::open(directory)?.sync_all()?;
        Ok(Self::at(directory))
    }

    /// The same without making anything.
    pub(super) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Writes a file, unless it is there. When this returns it is on disk.
    pub(super) fn put(&self, bytes: &[u8]) -> io::Result<Object> {
        let object = Object::of(bytes);
        let path = self.path(&object.digest);
        // A file has its name only when it is whole and on disk.
        if self.has(&object) {
            // Who is writing it at this moment may not have come to that.
            fs::File::open(path.parent().unwrap_or(&self.directory))?.sync_all()?;
            return Ok(object);
        }
        let mut file = NewFile::create(&path)?;
        file.write_all(bytes)?;
        file.finish()?;
        Ok(object)
    }

    /// Takes a file that is on disk, whole, and has these bytes, unless it is there.
    pub(super) fn adopt(&self, file: &Path, object: &Object) -> io::Result<Object> {
        let path = self.path(&object.digest);
        if !self.has(object) {
            match fs::rename(file, &path) {
                Err(error) if error.kind() == io::ErrorKind::CrossesDevices => super::copy(file, &path)?,
                renamed => renamed?,
            }
        }
        fs::File::open(path.parent().unwrap_or(&self.directory))?.sync_all()?;
        Ok(object.clone())
    }

    /// Whether a file is there, whole.
    pub(super) fn has(&self, object: &Object) -> bool {
        fs::metadata(self.path(&object.digest)).is_ok_and(|metadata| metadata.len() == object.size)
    }

    /// Where a file is.
    pub(super) fn path(&self, digest: &str) -> PathBuf {
        self.directory.join(super::plain_name(digest))
    }

    /// Removes files that nothing needs: those of requests that a crash cut off between the file and its row.
    pub(super) fn sweep(&self, database: &Database) -> Result<()> {
        let others = self.others(&database.read(super::digests)?).map_err(DatabaseError::Thread)?;
        if others.is_empty() {
            return Ok(());
        }
        // Another replica may need one by now, or begin to: whoever writes has the word.
        database.write(move |connection| {
            let needed = super::digests(connection)?;
            let mut unneeded = others.iter().filter(|(digest, _)| !needed.contains_key(digest));
            unneeded.try_for_each(|(_, path)| remove(path)).map_err(DatabaseError::Thread)
        })
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, digest: &str) -> io::Result<()> {
        remove(&self.path(digest))
    }

    /// Files that nothing needs, by their digests.
    pub(super) fn others<T>(&self, needed: &HashMap<String, T>) -> io::Result<Vec<(String, PathBuf)>> {
        let mut others = Vec::new();
        for directory in fs::read_dir(&self.directory)? {
            let directory = directory?;
            for file in fs::read_dir(directory.path())? {
                let file = file?;
                let digest = [directory.file_name(), file.file_name()];
                let digest: String = digest.iter().map(|part| part.to_string_lossy()).collect();
                if !needed.contains_key(&digest) {
                    others.push((digest, file.path()));
                }
            }
        }
        Ok(others)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
