//! `/proc`, held open.

use super::OsError;
use crate::unix::kept::{DIRECTORY, Kept, with_room};
use std::ffi::CStr;
use std::sync::OnceLock;

/// `/proc`, of which the process keeps reading after `chroot`.
static PROC: OnceLock<Kept> = OnceLock::new();

/// Opens what a crash needs beside the directory: `/proc`. Once a process. Not for signal handlers.
pub fn keep_open() {
    if PROC.get().is_none() {
        // SAFETY: the path is a C string.
        let file = unsafe { libc::open(c"/proc".as_ptr(), libc::O_PATH | DIRECTORY) };
        let _ = Kept::new(file, "open(/proc)").map(|kept| PROC.set(kept));
    }
}

/// Whether a file is one that [`keep_open`] opened.
pub fn is_kept(number: u32) -> bool {
    PROC.get().is_some_and(|kept| kept.is(number))
}

/// Opens a file below `/proc` to read it, also after `chroot`.
///
/// # Signal safety
///
/// Safe.
pub(super) fn open_proc(path: &CStr, flags: libc::c_int) -> Result<libc::c_int, OsError> {
    let flags = flags | libc::O_RDONLY | libc::O_CLOEXEC;
    let open_at = |directory: libc::c_int, path: &CStr| {
        // SAFETY: the path is a C string. One that begins with a slash is the same from every directory.
        let file = unsafe { libc::openat(directory, path.as_ptr(), flags) };
        if file < 0 { Err(OsError::last("open")) } else { Ok(file) }
    };
    with_room(|| {
        open_at(libc::AT_FDCWD, path).or_else(|error| {
            let below = path.to_bytes_with_nul().strip_prefix(b"/proc/");
            let below = below.and_then(|below| CStr::from_bytes_with_nul(below).ok());
            match (PROC.get().and_then(Kept::get), below) {
                (Some(proc), Some(below)) if error.number == libc::ENOENT => open_at(proc, below),
                _ => Err(error),
            }
        })
    })
}
