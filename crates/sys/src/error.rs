//! A call that failed.

use std::fmt;

/// A call that failed: which one, and the kernel's number: of an error (`errno`), or of Mach's calls `kern_return_t`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OsError {
    /// The call by its usual name: `ptrace(PTRACE_SEIZE)`.
    pub call: &'static str,
    /// The number, `ESRCH` or `KERN_INVALID_ARGUMENT` and their like.
    pub number: i32,
}

impl OsError {
    /// What the last call of this thread left in `errno`. Safe in a signal handler: it reads one variable.
    pub fn last(call: &'static str) -> Self {
        // SAFETY: the location is this thread's own and always valid.
        Self { call, number: unsafe { *location() } }
    }
}

/// Where `errno` of this thread is.
pub(crate) fn location() -> *mut libc::c_int {
    #[cfg(target_os = "linux")]
    // SAFETY: no preconditions.
    unsafe {
        libc::__errno_location()
    }
    #[cfg(not(target_os = "linux"))]
    // SAFETY: no preconditions.
    unsafe {
        libc::__error()
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if cfg!(target_os = "linux") {
            write!(f, "{}: {}", self.call, std::io::Error::from_raw_os_error(self.number))
        } else {
            write!(f, "{}: code {}", self.call, self.number)
        }
    }
}

impl std::error::Error for OsError {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn the_call_and_the_systems_words_are_shown() {
        let error = OsError { call: "kill", number: libc::ESRCH };
        assert_eq!(error.to_string(), "kill: No such process (os error 3)");
    }

    #[test]
    fn the_last_error_is_the_one_of_the_last_call() {
        // SAFETY: closing a file that cannot exist only sets errno.
        assert_eq!(unsafe { libc::close(-1) }, -1);
        assert_eq!(OsError::last("close").number, libc::EBADF);
    }
}
