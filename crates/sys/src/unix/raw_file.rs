//! Files by system calls alone: for signal handlers, and for threads that must not allocate or lock.

use crate::error::OsError;
use std::ffi::{CStr, CString, c_void};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::SeqCst};

/// A file, or none: one that a thread opens and another may close in need.
#[derive(Debug)]
pub struct RawFile {
    file: AtomicI32,
    /// The kernel's number of the first write that failed, or zero.
    failed: AtomicI32,
}

impl RawFile {
    /// None.
    pub const fn none() -> Self {
        Self { file: AtomicI32::new(-1), failed: AtomicI32::new(0) }
    }

    /// Creates a file in a directory that is open; only its owner can read it, and one that is there is an error. All methods are safe in
    /// a signal handler.
    pub(super) fn create(&self, directory: libc::c_int, name: &CStr) -> Result<(), OsError> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the name is a C string.
        let file = unsafe { libc::openat(directory, name.as_ptr(), flags, 0o600) };
        if file < 0 {
            return Err(OsError::last("open"));
        }
        // Programs' masks (umask(2)) may take that from the owner, too.
        // SAFETY: takes numbers only.
        unsafe { libc::fchmod(file, 0o600) };
        self.failed.store(0, SeqCst);
        self.file.store(file, SeqCst);
        Ok(())
    }

    /// Writes all of it. Where that fails a part of it is written, and nothing from then on: what came later, where a full disk has
    /// room again, would stand in the place of the rest.
    ///
    /// # Errors
    /// The kernel's, of this call or an earlier one.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OsError> {
        match self.failed.load(SeqCst) {
            0 => self.write_all(bytes).inspect_err(|error| self.failed.store(error.number, SeqCst)),
            number => Err(OsError { call: "write", number }),
        }
    }

    fn write_all(&self, mut bytes: &[u8]) -> Result<(), OsError> {
        while !bytes.is_empty() {
            // SAFETY: the pointer and the size are those of `bytes`.
            let size =
                unsafe { libc::write(self.file.load(SeqCst), bytes.as_ptr().cast::<c_void>(), bytes.len()) };
            match usize::try_from(size) {
                Ok(0) => return Err(OsError { call: "write", number: libc::EIO }),
                Ok(size) => bytes = bytes.get(size..).unwrap_or_default(),
                Err(_) if OsError::last("write").number == libc::EINTR => {}
                Err(_) if OsError::last("write").number == libc::ENOSPC && give_back() => {}
                Err(_) => return Err(OsError::last("write")),
            }
        }
        Ok(())
    }

    /// Waits until the disk has what was written, and closes it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn finish(&self) -> Result<(), OsError> {
        let file = self.file.swap(-1, SeqCst);
        // SAFETY: the file is ours; after the swap nobody else closes it.
        unsafe {
            let answer = sync(file);
            let error = OsError::last("fsync");
            libc::close(file);
            if answer == 0 { Ok(()) } else { Err(error) }
        }
    }

    /// Waits until the disk has what was written; it stays open, since another thread may be writing.
    ///
    /// # Errors
    /// The kernel's.
    pub fn sync(&self) -> Result<(), OsError> {
        if sync(self.file.load(SeqCst)) == 0 { Ok(()) } else { Err(OsError::last("fsync")) }
    }

    /// Has it be a file that is open already, until [`RawFile::release`]: a socket, say.
    pub fn borrow(&self, file: BorrowedFd<'static>) {
        self.failed.store(0, SeqCst);
        self.file.store(file.as_raw_fd(), SeqCst);
    }

    /// Lets go of a file that was borrowed. It stays open. Says whether all that was written went out.
    pub fn release(&self) -> bool {
        self.file.store(-1, SeqCst);
        self.failed.load(SeqCst) == 0
    }

    /// Whether it is the file with this number.
    pub fn is(&self, number: u32) -> bool {
        u32::try_from(self.file.load(SeqCst)).is_ok_and(|own| own == number)
    }

    /// Whether there is a file.
    pub fn is_open(&self) -> bool {
        self.file.load(SeqCst) >= 0
    }

    /// Closes it: it is not wanted any more.
    pub fn close(&self) {
        // SAFETY: the file is ours; after the swap nobody else closes it.
        unsafe { libc::close(self.file.swap(-1, SeqCst)) };
    }
}

/// The path of the file that [`set_aside`] made. Never freed: who writes may be looking.
static SET_ASIDE: AtomicPtr<libc::c_char> = AtomicPtr::new(std::ptr::null_mut());

/// Takes room on the disk, by a file of so many bytes. The first write of a [`RawFile`] that finds the disk full gives it back, once. Not
/// for signal handlers.
///
/// # Errors
/// The kernel's; no file is left then.
pub fn set_aside(path: CString, size: u64) -> Result<(), OsError> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    let size = libc::off_t::try_from(size).unwrap_or(libc::off_t::MAX);
    // SAFETY: the path is a C string; the file is closed as it was opened.
    unsafe {
        let file = libc::open(path.as_ptr(), flags, 0o600);
        if file < 0 {
            return Err(OsError::last("open"));
        }
        let number = allocate(file, size);
        libc::close(file);
        if number != 0 {
            libc::unlink(path.as_ptr());
            return Err(OsError { call: "posix_fallocate", number });
        }
    }
    SET_ASIDE.store(path.into_raw(), SeqCst);
    Ok(())
}

#[cfg(target_os = "linux")]
unsafe fn allocate(file: libc::c_int, size: libc::off_t) -> libc::c_int {
    // SAFETY: takes numbers only.
    unsafe { libc::posix_fallocate(file, 0, size) }
}

/// fcntl(2), `F_PREALLOCATE`. The room is the file's up to its size.
#[cfg(not(target_os = "linux"))]
unsafe fn allocate(file: libc::c_int, size: libc::off_t) -> libc::c_int {
    let mut wanted = libc::fstore_t {
        fst_flags: libc::F_ALLOCATEALL,
        fst_posmode: libc::F_PEOFPOSMODE,
        fst_offset: 0,
        fst_length: size,
        fst_bytesalloc: 0,
    };
    // SAFETY: the pointer is valid; the file is open.
    let is_there = unsafe {
        libc::fcntl(file, libc::F_PREALLOCATE, &raw mut wanted) >= 0 && libc::ftruncate(file, size) == 0
    };
    if is_there { 0 } else { OsError::last("fcntl(F_PREALLOCATE)").number }
}

/// Waits until the disk has a file. Apple's `fsync` does not wait for the disk itself (fsync(2)).
fn sync(file: libc::c_int) -> libc::c_int {
    #[cfg(not(target_os = "linux"))]
    // SAFETY: takes numbers only.
    if unsafe { libc::fcntl(file, libc::F_FULLFSYNC) } >= 0 {
        return 0;
    }
    // SAFETY: takes numbers only.
    unsafe { libc::fsync(file) }
}

/// Gives back what was set aside; says whether there was something. Safe in a signal handler.
fn give_back() -> bool {
    let path = SET_ASIDE.swap(std::ptr::null_mut(), SeqCst);
    // SAFETY: the path is a C string that is never freed.
    !path.is_null() && unsafe { libc::unlink(path) } == 0
}

/// The kernel's name, release and version. Not for signal handlers.
pub fn system() -> String {
    // SAFETY: all zeros is a valid `utsname`; the call fills it in with strings that end.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        if libc::uname(&raw mut name) != 0 {
            return String::new();
        }
        let text = |field: &[libc::c_char]| -> String {
            let bytes =
                field.iter().map(|byte| u8::from_ne_bytes(byte.to_ne_bytes())).take_while(|byte| *byte != 0);
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        format!("{} {} {}", text(&name.sysname), text(&name.release), text(&name.machine))
    }
}

/// A path as the kernel wants it.
pub fn c_path(path: &std::path::Path) -> Option<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes()).ok()
}
