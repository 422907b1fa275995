//! What is held open for a crash: by then the process may be unable to open a file, have another root, or have left the directory without
//! its name.
//!
//! Programs close files that they do not know, and the kernel gives the numbers away again. Each is therefore looked at before it is
//! used: what is not the file that was opened is not touched, and what was closed is opened by its path.

use crate::error::OsError;
use std::sync::OnceLock;

/// A file that was opened ahead of time.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) file: libc::c_int,
    device: libc::dev_t,
    inode: libc::ino_t,
}

impl Kept {
    /// Takes a file that was opened for it; fails with what the call left where that is none.
    pub(crate) fn new(file: libc::c_int, call: &'static str) -> Result<Self, OsError> {
        if file < 0 {
            return Err(OsError::last(call));
        }
        let mut kept = Self { file, device: 0, inode: 0 };
        let about = kept.about().ok_or_else(|| OsError::last("fstat"))?;
        (kept.device, kept.inode) = (about.st_dev, about.st_ino);
        Ok(kept)
    }

    fn about(&self) -> Option<libc::stat> {
        // SAFETY: all zeros is a valid `stat`; the call fills it in.
        let mut about: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid.
        (unsafe { libc::fstat(self.file, &raw mut about) } == 0).then_some(about)
    }

    /// What the kernel says of it, where its number is still the file that was opened.
    pub(crate) fn same(&self) -> Option<libc::stat> {
        self.about().filter(|about| (about.st_dev, about.st_ino) == (self.device, self.inode))
    }

    pub(crate) fn get(&self) -> Option<libc::c_int> {
        self.same().map(|_| self.file)
    }

    /// Whether it has this number, still.
    pub(crate) fn is(&self, number: u32) -> bool {
        self.file.unsigned_abs() == number && self.same().is_some()
    }

    pub(crate) fn close(&self) -> bool {
        // SAFETY: it is the file that was opened here.
        self.get().is_some_and(|file| unsafe { libc::close(file) } == 0)
    }
}

/// Files that stand in the way of none: they are closed where no other can be opened. One is for the crash file, one for what is read
/// meanwhile.
static SPARE: OnceLock<[Kept; 2]> = OnceLock::new();

pub(crate) const DIRECTORY: libc::c_int = libc::O_DIRECTORY | libc::O_CLOEXEC;

/// Opens spare files: the same as `file`. Once a process.
pub(crate) fn prepare(file: libc::c_int) {
    let spare = || {
        // SAFETY: takes numbers only.
        Kept::new(unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, 0) }, "fcntl(F_DUPFD_CLOEXEC)")
    };
    if SPARE.get().is_none()
        && let (Ok(one), Ok(other)) = (spare(), spare())
    {
        let _ = SPARE.set([one, other]);
    }
}

/// Whether a file is one of those that [`prepare`] opened.
pub(crate) fn is_prepared(number: u32) -> bool {
    let spare = SPARE.get().map_or(&[][..], |spare| spare);
    spare.iter().any(|kept| kept.is(number))
}

/// Opens a file; once more with the spare ones closed, where there may be no further one.
pub(crate) fn with_room<T>(open: impl Fn() -> Result<T, OsError>) -> Result<T, OsError> {
    open().or_else(|error| {
        let is_full = matches!(error.number, libc::EMFILE | libc::ENFILE);
        // Both in one go: a child of `vfork` has files of its own, and would find one of two closed.
        if is_full && SPARE.get().is_some_and(|spare| spare.iter().filter(|kept| kept.close()).count() > 0) {
            open()
        } else {
            Err(error)
        }
    })
}
