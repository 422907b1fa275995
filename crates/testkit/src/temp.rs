//! Temporary directories.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A new empty directory, removed with all that is in it when dropped.
///
/// `BACKTRAIL_KEEP_TEMP=1` keeps it, to look at after a failed test.
#[derive(Debug)]
pub struct TempDir {
    path: PathBuf,
}

impl TempDir {
    /// Makes a directory whose name holds `label`, different from every other of this and other processes.
    ///
    /// # Panics
    /// Where the system's temporary directory cannot be written to.
    pub fn new(label: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("backtrail-{label}-{process}-{number}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Self { path },
                // Left over from an earlier process of the same id.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => fail("make", &path, &error),
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path in the directory; nothing is made there.
    pub fn join(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.path.join(relative)
    }

    /// Writes a file, making the directories that it lies in, and returns its path.
    ///
    /// # Panics
    /// Where that fails.
    pub fn write(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(relative);
        if let Some(parent) = path.parent() {
            make_directories(parent);
        }
        if let Err(error) = std::fs::write(&path, bytes) {
            fail("write", &path, &error);
        }
        path
    }

    /// Makes a directory and those above it, and returns its path.
    ///
    /// # Panics
    /// Where that fails.
    pub fn create_dir(&self, relative: impl AsRef<Path>) -> PathBuf {
        let path = self.join(relative);
        make_directories(&path);
        path
    }

    /// Copies a directory with all that is in it, and returns the copy's path.
    ///
    /// # Panics
    /// Where that fails.
    pub fn copy_tree(&self, from: &Path, relative: impl AsRef<Path>) -> PathBuf {
        let path = self.join(relative);
        if let Err(error) = copy_tree(from, &path) {
            fail("make", &path, &error);
        }
        path
    }
}

fn copy_tree(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else {
            std::fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if std::env::var_os("BACKTRAIL_KEEP_TEMP").is_none() {
            // A directory that stays behind is no reason to fail a test that passed.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn make_directories(path: &Path) {
    if let Err(error) = std::fs::create_dir_all(path) {
        fail("make", path, &error);
    }
}

#[expect(clippy::panic, reason = "fails the test that called")]
fn fail(what: &str, path: &Path, error: &std::io::Error) -> ! {
    panic!("cannot {what} {}: {error}", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_new_and_gone_afterwards() {
        let (first, second) = (TempDir::new("temp"), TempDir::new("temp"));
        assert_ne!(first.path(), second.path());
        let file = first.write("a/b/c.txt", "text");
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
        assert!(second.create_dir("x/y").is_dir());
        let copy = second.copy_tree(first.path(), "copy");
        assert_eq!(std::fs::read(copy.join("a/b/c.txt")).unwrap(), b"text");
        let kept = first.path().to_path_buf();
        drop(first);
        assert_eq!(kept.exists(), std::env::var_os("BACKTRAIL_KEEP_TEMP").is_some());
    }
}
