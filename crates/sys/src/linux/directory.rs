//! Small files of one directory, many of them: those that `/proc` has of each thread.

use super::OsError;
use std::ffi::{CStr, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// An open directory. Files are named from there on, so that the kernel does not look the whole path up again for each of
/// thousands.
#[derive(Debug)]
pub struct Directory(File);

impl Directory {
    /// Opens it.
    ///
    /// # Errors
    /// Where it is not there, or must not be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }

    /// Reads the beginning of a file, as much as one read gives and `into` has room for; says how many bytes that was.
    /// Allocates nothing.
    ///
    /// # Errors
    /// Where the file is not there (any more), or must not be read.
    pub fn read(&self, name: &CStr, into: &mut [u8]) -> Result<usize, OsError> {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the directory is open as long as `self` lives, and the name ends with a zero.
        let file = unsafe { libc::openat(self.0.as_raw_fd(), name.as_ptr(), flags) };
        if file < 0 {
            return Err(OsError::last("openat"));
        }
        // SAFETY: the pointer and the size are those of `into`, which lives until the call is over.
        let size = unsafe { libc::read(file, into.as_mut_ptr().cast::<c_void>(), into.len()) };
        let read = usize::try_from(size).map_err(|_| OsError::last("read"));
        // SAFETY: opened above, and used by nothing else.
        unsafe { libc::close(file) };
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_directory_on() {
        let tasks = Directory::open(Path::new("/proc/self/task")).unwrap();
        let name = std::ffi::CString::new(format!("{}/comm", std::process::id())).unwrap();
        let mut bytes = [0; 64];
        let size = tasks.read(&name, &mut bytes).unwrap();
        assert_eq!(
            std::fs::read(format!("/proc/self/task/{}/comm", std::process::id())).unwrap(),
            bytes[..size]
        );
        assert_eq!(tasks.read(&name, &mut bytes[..2]), Ok(2));
        assert_eq!(tasks.read(c"none/comm", &mut bytes).unwrap_err().number, libc::ENOENT);
        assert!(Directory::open(Path::new("/proc/self/none")).is_err());
    }
}
