//! What a crash asks of files and limits.

use std::ffi::c_int;

pub use crate::unix::{RawFile, c_path, set_aside, system};

/// The numbers of this process's open files, with what each leads to: a path, or nothing for what has none. Allocates nothing.
///
/// # Errors
/// Never here; the signature is that of other systems.
///
/// # Signal safety
///
/// Safe.
pub fn open_files(mut each: impl FnMut(u32, &[u8])) -> Result<(), super::OsError> {
    /// A process may allow itself millions.
    const MOST: c_int = 10_240;
    // SAFETY: no preconditions.
    let size = unsafe { libc::getdtablesize() };
    for number in 0..size.min(MOST) {
        let mut target = [0_u8; libc::PATH_MAX as usize];
        // SAFETY: the kernel writes `PATH_MAX` bytes at most, for which there is room; other calls take numbers only.
        let (is_open, has_path) = unsafe {
            let is_open = libc::fcntl(number, libc::F_GETFD) >= 0;
            (is_open, is_open && libc::fcntl(number, libc::F_GETPATH, target.as_mut_ptr()) >= 0)
        };
        if is_open {
            let path = target.split(|byte| *byte == 0).next().filter(|_| has_path);
            each(number.unsigned_abs(), path.unwrap_or_default());
        }
    }
    Ok(())
}

/// Soft and hard limit of a resource by Linux's number; `None` where there is no such resource. Safe in a signal handler.
pub fn limit(resource: u32) -> Option<(u64, u64)> {
    /// Linux's number and the one here; `sys/resource.h`.
    const NUMBERS: [(u32, c_int); 5] = [
        (3, libc::RLIMIT_STACK),
        (4, libc::RLIMIT_CORE),
        (6, libc::RLIMIT_NPROC),
        (7, libc::RLIMIT_NOFILE),
        (9, libc::RLIMIT_AS),
    ];
    let (_, number) = NUMBERS.into_iter().find(|(linux, _)| *linux == resource)?;
    let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid.
    let answer = unsafe { libc::getrlimit(number, &raw mut limits) };
    let value = |limit| if limit == libc::RLIM_INFINITY { u64::MAX } else { limit };
    (answer == 0).then_some((value(limits.rlim_cur), value(limits.rlim_max)))
}
