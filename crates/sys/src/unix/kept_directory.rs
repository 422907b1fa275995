//! The directory of crash files, held open.

use super::kept::{DIRECTORY, Kept, is_prepared, prepare, with_room};
use super::raw_file::RawFile;
use crate::error::OsError;
use std::ffi::{CStr, CString};

/// A directory that is held open, for files that a crash makes in it.
#[derive(Debug)]
pub struct KeptDirectory {
    path: CString,
    kept: Kept,
}

impl KeptDirectory {
    /// Opens it, and two files that are closed where no other can be opened. Not for signal handlers,
    /// which all other methods are safe in.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open(path: CString) -> Result<Self, OsError> {
        // SAFETY: the path is a C string.
        let kept = Kept::new(unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | DIRECTORY) }, "open")?;
        prepare(kept.file);
        Ok(Self { path, kept })
    }

    /// Its path when it was opened.
    pub fn path(&self) -> &CStr {
        &self.path
    }

    /// Creates a file that only its owner can read; one that is there is an error. Where the directory is not there any more, it is made
    /// again.
    ///
    /// # Errors
    /// The kernel's.
    pub fn create(&self, file: &RawFile, name: &CStr) -> Result<(), OsError> {
        let open = || {
            let at = self.at().or_else(|error| match error.number {
                libc::ENOENT => {
                    make(&self.path);
                    self.at()
                }
                _ => Err(error),
            })?;
            file.create(at.0, name)
        };
        with_room(open)
    }

    /// Renames a file in it, and waits until the disk has the directory.
    ///
    /// # Errors
    /// The kernel's.
    pub fn rename_durably(&self, from: &CStr, to: &CStr) -> Result<(), OsError> {
        let at = self.at()?;
        // SAFETY: the names are C strings, the directory is open.
        unsafe {
            if libc::renameat(at.0, from.as_ptr(), at.0, to.as_ptr()) != 0 {
                return Err(OsError::last("rename"));
            }
            if libc::fsync(at.0) != 0 {
                return Err(OsError::last("fsync"));
            }
        }
        Ok(())
    }

    /// Removes a file in it. Where that fails it stays.
    pub fn remove(&self, name: &CStr) {
        if let Ok(at) = self.at() {
            // SAFETY: the name is a C string, the directory is open.
            unsafe { libc::unlinkat(at.0, name.as_ptr(), 0) };
        }
    }

    /// Whether a file is one of those that are held open for a crash.
    pub fn holds(&self, number: u32) -> bool {
        self.kept.is(number) || is_prepared(number)
    }

    fn at(&self) -> Result<At, OsError> {
        // One that was removed takes no files.
        if self.kept.same().is_some_and(|about| about.st_nlink > 0) {
            return Ok(At(self.kept.file, false));
        }
        // SAFETY: the path is a C string.
        let file = unsafe { libc::open(self.path.as_ptr(), libc::O_RDONLY | DIRECTORY) };
        if file < 0 { Err(OsError::last("open")) } else { Ok(At(file, true)) }
    }
}

impl Drop for KeptDirectory {
    fn drop(&mut self) {
        self.kept.close();
    }
}

/// An open directory, and whether it was opened for this once.
struct At(libc::c_int, bool);

impl Drop for At {
    fn drop(&mut self) {
        if self.1 {
            // SAFETY: opened for this.
            unsafe { libc::close(self.0) };
        }
    }
}

/// Makes a directory and those that it lies in, without allocating.
fn make(path: &CStr) {
    let mut room = [0_u8; libc::PATH_MAX as usize];
    let bytes = path.to_bytes();
    let Some(part) = room.get_mut(..bytes.len()).filter(|part| part.len() < libc::PATH_MAX as usize) else {
        return;
    };
    part.copy_from_slice(bytes);
    for end in 1..=bytes.len() {
        if bytes.get(end).is_some_and(|byte| *byte != b'/') {
            continue;
        }
        if let Some(place) = room.get_mut(end) {
            let before = std::mem::replace(place, 0);
            // SAFETY: the string ends with that zero. Of one that is there nothing is changed.
            unsafe { libc::mkdir(room.as_ptr().cast(), 0o777) };
            if let Some(place) = room.get_mut(end) {
                *place = before;
            }
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn numbers() -> Vec<u32> {
        let mut numbers = Vec::new();
        crate::linux::raw_file::open_files(|number, _| numbers.push(number)).unwrap();
        numbers
    }

    #[test]
    fn a_directory_is_found_again_whatever_became_of_it() {
        let base = std::env::temp_dir().join(format!("backtrail-kept-{}", std::process::id()));
        let (path, moved) = (base.join("a/b"), base.join("moved"));
        std::fs::create_dir_all(&path).unwrap();
        let directory = KeptDirectory::open(crate::linux::raw_file::c_path(&path).unwrap()).unwrap();
        let file = RawFile::none();
        let write = |name: &CStr| {
            directory.create(&file, name).unwrap();
            file.write(b"x").unwrap();
            file.finish().unwrap();
        };
        // It has another name.
        std::fs::rename(&path, &moved).unwrap();
        write(c"one.part");
        directory.rename_durably(c"one.part", c"one").unwrap();
        assert!(moved.join("one").is_file());
        // It is gone, and the one above.
        std::fs::remove_dir_all(&moved).unwrap();
        std::fs::remove_dir_all(base.join("a")).unwrap();
        write(c"two.part");
        directory.rename_durably(c"two.part", c"two").unwrap();
        assert!(path.join("two").is_file());
        // Its number was given to another file.
        std::fs::create_dir_all(&moved).unwrap();
        let other = std::fs::File::open(&moved).unwrap();
        // SAFETY: the number is that of the directory, which looks at it before it uses it.
        unsafe { libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&other), directory.kept.file) };
        assert!(!directory.holds(directory.kept.file.unsigned_abs()));
        write(c"three.part");
        directory.remove(c"three.part");
        write(c"four");
        assert!(path.join("four").is_file() && !path.join("three.part").exists());
        // SAFETY: made by `dup2` above.
        unsafe { libc::close(directory.kept.file) };
        std::fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn held_files_are_told_and_given_up_where_there_is_no_other() {
        let path = std::env::temp_dir();
        let directory = KeptDirectory::open(crate::linux::raw_file::c_path(&path).unwrap()).unwrap();
        let held = numbers().into_iter().filter(|number| directory.holds(*number)).count();
        assert_eq!(held, 3, "the directory, two spare ones");
        let attempts = std::cell::Cell::new(0);
        let full = || {
            attempts.set(attempts.get() + 1);
            Err::<(), _>(OsError { call: "open", number: libc::EMFILE })
        };
        assert!(with_room(full).is_err() && attempts.get() == 2);
        assert!(with_room(full).is_err() && attempts.get() == 3);
        let held = numbers().into_iter().filter(|number| directory.holds(*number)).count();
        assert_eq!(held, 1);
    }
}
