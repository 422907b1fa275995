//! Files of earlier crashes, sent.

use crate::pass::Sized32;
use crate::status::{Failure, guard};
use std::ffi::{c_char, c_void};
#[cfg(feature = "upload")]
use {
    crate::pass,
    crate::status::{BACKTRAIL_INVALID, BACKTRAIL_SYSTEM},
    crate::text,
    backtrail_crash::upload::{Upload, send_pending},
    std::ffi::CString,
    std::os::unix::ffi::OsStrExt as _,
    std::path::Path,
    std::time::Duration,
};

/// A file is the body of a POST.
pub const BACKTRAIL_CRASH_BODY: u32 = 0;
/// Sentry's envelopes.
pub const BACKTRAIL_CRASH_SENTRY: u32 = 1;

/// Where crash files are sent; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailCrashUpload {
    /// Bytes of the structure.
    pub size: u32,
    /// `BACKTRAIL_CRASH_BODY` or `BACKTRAIL_CRASH_SENTRY`.
    pub protocol: u32,
    /// The address, or the DSN.
    pub url: *const c_char,
    /// Where runs are told, or null.
    pub sessions: *const c_char,
    /// Of one file; 0 for 5.
    pub attempts: u32,
    /// Before the second attempt; 0 for 2 seconds.
    pub first_wait_ms: u32,
    /// For an answer; 0 for 30 seconds.
    pub timeout_ms: u32,
}

// SAFETY: C layout, the size first, integers and pointers only.
unsafe impl Sized32 for BacktrailCrashUpload {
    const EMPTY: Self = Self {
        size: 0,
        protocol: BACKTRAIL_CRASH_BODY,
        url: std::ptr::null(),
        sessions: std::ptr::null(),
        attempts: 0,
        first_wait_ms: 0,
        timeout_ms: 0,
    };
}

/// What became of the files; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailCrashOutcome {
    /// Bytes of the structure.
    pub size: u32,
    /// Taken, and removed.
    pub sent: u32,
    /// Runs that were told.
    pub sessions: u32,
    /// Files that are still there.
    pub left: u32,
}

// SAFETY: C layout, the size first, integers only.
unsafe impl Sized32 for BacktrailCrashOutcome {
    const EMPTY: Self = Self { size: 0, sent: 0, sessions: 0, left: 0 };
}

/// What is called for each file that is left; see the header.
pub type BacktrailCrashLeftHandler =
    Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char, reason: *const c_char)>;

/// Sends the files of a directory.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_send_pending(
    directory: *const c_char,
    upload: *const BacktrailCrashUpload,
    outcome: *mut BacktrailCrashOutcome,
    left: BacktrailCrashLeftHandler,
    context: *mut c_void,
) -> i32 {
    // SAFETY: the header's demand.
    guard(|| unsafe { send(directory, upload, outcome, left, context) })
}

#[cfg(not(feature = "upload"))]
unsafe fn send(
    _: *const c_char,
    _: *const BacktrailCrashUpload,
    _: *mut BacktrailCrashOutcome,
    _: BacktrailCrashLeftHandler,
    _: *mut c_void,
) -> Result<(), Failure> {
    use crate::status::BACKTRAIL_ABSENT;
    Err(Failure::new(BACKTRAIL_ABSENT, "this library was built without the feature `upload`"))
}

/// # Safety
/// See the header.
#[cfg(feature = "upload")]
unsafe fn send(
    directory: *const c_char,
    upload: *const BacktrailCrashUpload,
    outcome: *mut BacktrailCrashOutcome,
    left: BacktrailCrashLeftHandler,
    context: *mut c_void,
) -> Result<(), Failure> {
    // SAFETY: the header's demand.
    let directory = Path::new(unsafe { pass::needed_text(directory, "directory") }?);
    // SAFETY: the header's demand.
    let upload = unsafe { pass::options(upload)?.upload() }?;
    let ended = send_pending(directory, &upload)
        .map_err(|error| Failure::new(BACKTRAIL_SYSTEM, format!("{}: {error}", directory.display())))?;
    if let Some(left) = left {
        for (path, reason) in &ended.left {
            let path = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
            let reason = text::text(reason);
            // SAFETY: the header's demand; both texts live for the call.
            unsafe { left(context, path.as_ptr(), reason.as_ptr()) };
        }
    }
    if outcome.is_null() {
        return Ok(());
    }
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let ended = BacktrailCrashOutcome {
        size: 0,
        sent: count(ended.sent),
        sessions: count(ended.sessions),
        left: count(ended.left.len()),
    };
    // SAFETY: not null, and the header's demand.
    unsafe { pass::fill(outcome, ended) }
}

#[cfg(feature = "upload")]
impl BacktrailCrashUpload {
    /// # Safety
    /// Pointers are null or what the header demands.
    unsafe fn upload(self) -> Result<Upload, Failure> {
        // SAFETY: the caller's promise.
        let url = unsafe { pass::needed_text(self.url, "url") }?;
        let mut upload = match self.protocol {
            BACKTRAIL_CRASH_BODY => Upload::to(url),
            BACKTRAIL_CRASH_SENTRY => Upload::to_sentry(url),
            other => {
                let message =
                    format!("protocol {other}: expected BACKTRAIL_CRASH_BODY or BACKTRAIL_CRASH_SENTRY");
                return Err(Failure::new(BACKTRAIL_INVALID, message));
            }
        };
        // SAFETY: the caller's promise.
        if let Some(sessions) = unsafe { pass::optional_text(self.sessions, "sessions") }? {
            upload.sessions = Some(sessions.to_owned());
        }
        if self.attempts != 0 {
            upload.attempts = self.attempts;
        }
        for (given, own) in
            [(self.first_wait_ms, &mut upload.first_wait), (self.timeout_ms, &mut upload.timeout)]
        {
            if given != 0 {
                *own = Duration::from_millis(given.into());
            }
        }
        Ok(upload)
    }
}

#[cfg(all(test, not(feature = "upload")))]
mod tests {
    use super::*;
    use crate::status::{BACKTRAIL_ABSENT, backtrail_last_error};

    #[test]
    fn a_library_without_it_says_so() {
        // SAFETY: null is no pointer to anything.
        let status = unsafe {
            let no_outcome = std::ptr::null_mut();
            let no_context = std::ptr::null_mut();
            backtrail_crash_send_pending(c"crashes".as_ptr(), std::ptr::null(), no_outcome, None, no_context)
        };
        // SAFETY: a text that lives until the next call.
        let said = unsafe { std::ffi::CStr::from_ptr(backtrail_last_error()) };
        assert_eq!(status, BACKTRAIL_ABSENT);
        assert!(said.to_string_lossy().contains("`upload`"), "{said:?}");
    }
}
