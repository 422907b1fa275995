//! Files by their content: `objects/ab/cdef…`, named by SHA-256, written once and never changed.

use crate::secret;
use backtrail_store::NewFile;
use std::collections::HashSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The directory of files.
#[derive(Clone, Debug)]
pub(crate) struct Objects {
    directory: PathBuf,
}

/// A file of [`Objects`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    /// The SHA-256 of its bytes.
    pub(crate) digest: String,
    /// How many bytes it has.
    pub(crate) size: u64,
}

impl Objects {
    /// Uses the directory, and makes it and the 256 below it: later ones need no directory of their own to be made durable.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        for byte in 0..=u8::MAX {
            fs::create_dir_all(directory.join(format!("{byte:02x}")))?;
        }
        fs::File::open(directory)?.sync_all()?;
        Ok(Self::at(directory))
    }

    /// The same without making anything.
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// Writes a file, unless it is there. When this returns it is on disk.
    pub(crate) fn put(&self, bytes: &[u8]) -> io::Result<Object> {
        let object = Object { digest: secret::digest(bytes), size: bytes.len() as u64 };
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
    pub(crate) fn adopt(&self, file: &Path, object: &Object) -> io::Result<Object> {
        let path = self.path(&object.digest);
        if !self.has(object) {
            fs::rename(file, &path)?;
        }
        fs::File::open(path.parent().unwrap_or(&self.directory))?.sync_all()?;
        Ok(object.clone())
    }

    /// Whether a file is there, whole.
    pub(crate) fn has(&self, object: &Object) -> bool {
        fs::metadata(self.path(&object.digest)).is_ok_and(|metadata| metadata.len() == object.size)
    }

    /// A file's bytes.
    pub(crate) fn get(&self, digest: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(digest))
    }

    /// Where a file is.
    pub(crate) fn path(&self, digest: &str) -> PathBuf {
        // Digests are our own; what is none has no file.
        let (first, rest) = digest.split_at_checked(2).unwrap_or(("00", "none"));
        self.directory.join(first).join(rest)
    }

    /// Removes files that nothing needs: those of requests that a crash cut off between the file and its row. Only while no
    /// requests are taken.
    pub(crate) fn sweep(&self, needed: &HashSet<String>) -> io::Result<usize> {
        let mut removed = 0;
        for directory in fs::read_dir(&self.directory)? {
            let directory = directory?;
            for file in fs::read_dir(directory.path())? {
                let file = file?;
                let digest = [directory.file_name(), file.file_name()];
                let digest: String = digest.iter().map(|part| part.to_string_lossy()).collect();
                if !needed.contains(&digest) {
                    fs::remove_file(file.path())?;
                    removed += 1;
                }
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    #[test]
    fn equal_files_are_one() {
        let directory = TempDir::new("server-objects");
        let objects = Objects::open(directory.path()).unwrap();
        let one = objects.put(b"one").unwrap();
        assert_eq!(objects.put(b"one").unwrap(), one);
        let two = objects.put(b"two").unwrap();
        assert_eq!((objects.get(&one.digest).unwrap(), one.size), (b"one".to_vec(), 3));
        assert_eq!(objects.sweep(&HashSet::from([two.digest.clone()])).unwrap(), 1);
        assert!(objects.get(&one.digest).is_err());
        assert_eq!(objects.get(&two.digest).unwrap(), b"two");
    }

    #[test]
    fn a_file_that_was_cut_is_written_again() {
        let directory = TempDir::new("server-cut");
        let objects = Objects::open(directory.path()).unwrap();
        let object = objects.put(b"whole").unwrap();
        fs::write(objects.path(&object.digest), b"who").unwrap();
        objects.put(b"whole").unwrap();
        assert_eq!(objects.get(&object.digest).unwrap(), b"whole");
    }
}
