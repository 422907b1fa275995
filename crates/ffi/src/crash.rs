//! The crash handler.

use crate::pass::{self, Sized32};
use crate::status::{BACKTRAIL_INVALID, BACKTRAIL_SYSTEM, Failure, guard};
use backtrail_crash::{self as crash, Handler, InstallError, Options, Requests, Seen, SignalStack};
use std::cell::OnceCell;
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use std::time::Duration;

/// `SIGQUIT` is caught as well.
pub const BACKTRAIL_CRASH_QUIT: u32 = 1;
/// `SIGTERM` is caught as well.
pub const BACKTRAIL_CRASH_TERMINATE: u32 = 2;
/// `SIGXCPU` is caught as well.
pub const BACKTRAIL_CRASH_PROCESSOR_TIME: u32 = 4;

/// Code of this process.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailCrashCode {
    /// Its first byte.
    pub start: u64,
    /// Behind its last.
    pub end: u64,
}

/// What a filter sees of a crash; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailCrashSeen {
    /// Bytes of the structure.
    pub size: u32,
    /// The signal's number.
    pub signal: i32,
    /// `si_code`.
    pub code: i32,
    /// Kernel id of the thread that crashed.
    pub thread: u32,
    /// Of the bad access, or 0.
    pub address: u64,
    /// Frames of that thread, innermost first.
    pub frames: *const u64,
    /// 256 at most.
    pub frame_count: u32,
    /// 0.
    pub reserved: u32,
}

/// Says whether a crash is kept; see the header.
pub type BacktrailCrashFilter = Option<unsafe extern "C" fn(crash: *const BacktrailCrashSeen) -> u32>;

/// The program's filter. A handler has one.
static FILTER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Asks the program's filter. Neither allocates nor locks.
fn filter(seen: &Seen<'_>) -> bool {
    let filter = FILTER.load(SeqCst);
    if filter.is_null() {
        return true;
    }
    // SAFETY: `install` put a function of this type there.
    let filter: unsafe extern "C" fn(*const BacktrailCrashSeen) -> u32 =
        unsafe { std::mem::transmute(filter) };
    let mut frames = [0; 256];
    let mut count = 0;
    for (to, frame) in frames.iter_mut().zip(seen.frames()) {
        *to = frame;
        count += 1;
    }
    let seen = BacktrailCrashSeen {
        size: u32::try_from(size_of::<BacktrailCrashSeen>()).unwrap_or(0),
        signal: seen.signal(),
        code: seen.code(),
        thread: seen.thread(),
        address: seen.address().unwrap_or(0),
        frames: frames.as_ptr(),
        frame_count: count,
        reserved: 0,
    };
    // SAFETY: the header's demand; the structure and its frames live for the call.
    unsafe { filter(&raw const seen) != 0 }
}

/// What is caught and kept; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailCrashOptions {
    /// Bytes of the structure.
    pub size: u32,
    /// Signals beside those of faults.
    pub requests: u32,
    /// Where crash files are written.
    pub directory: *const c_char,
    /// Bytes of the stack of the thread that crashed; 0 for 64 KiB.
    pub stack_bytes: u32,
    /// Bytes of each other stack; 0 for 16 KiB.
    pub other_stack_bytes: u32,
    /// Threads beside the one that crashed; 0 for 1,000.
    pub max_threads: u32,
    /// Frames of one thread; 0 for 256.
    pub max_frames: u32,
    /// How long the thread that crashed waits for the file; 0 for 5 seconds.
    pub patience_ms: u32,
    /// Ranges in `own_code`; 0 for all code.
    pub own_code_count: u32,
    /// Only crashes with a frame in these are kept.
    pub own_code: *const BacktrailCrashCode,
    /// Or null.
    pub filter: BacktrailCrashFilter,
    /// Path of the program `backtrail`, or null.
    pub watcher: *const c_char,
    /// The program's release, or null.
    pub release: *const c_char,
}

// SAFETY: C layout, the size first, integers and pointers only; no function is a null one.
unsafe impl Sized32 for BacktrailCrashOptions {
    const EMPTY: Self = Self {
        size: 0,
        requests: 0,
        directory: std::ptr::null(),
        stack_bytes: 0,
        other_stack_bytes: 0,
        max_threads: 0,
        max_frames: 0,
        patience_ms: 0,
        own_code_count: 0,
        own_code: std::ptr::null(),
        filter: None,
        watcher: std::ptr::null(),
        release: std::ptr::null(),
    };
}

impl BacktrailCrashOptions {
    /// # Safety
    /// Pointers are null or what the header demands.
    unsafe fn options(self) -> Result<Options, Failure> {
        // SAFETY: the caller's promise.
        let mut options = Options::new(unsafe { pass::needed_text(self.directory, "directory") }?);
        let known = BACKTRAIL_CRASH_QUIT | BACKTRAIL_CRASH_TERMINATE | BACKTRAIL_CRASH_PROCESSOR_TIME;
        if self.requests & !known != 0 {
            let message = format!("requests {:#x}: expected BACKTRAIL_CRASH_… only", self.requests);
            return Err(Failure::new(BACKTRAIL_INVALID, message));
        }
        options.requests = Requests {
            quit: self.requests & BACKTRAIL_CRASH_QUIT != 0,
            terminate: self.requests & BACKTRAIL_CRASH_TERMINATE != 0,
            processor_time: self.requests & BACKTRAIL_CRASH_PROCESSOR_TIME != 0,
        };
        let or = |given: u32, usual: usize| match given {
            0 => usual,
            given => usize::try_from(given).unwrap_or(usize::MAX),
        };
        options.stack_bytes = or(self.stack_bytes, options.stack_bytes);
        options.other_stack_bytes = or(self.other_stack_bytes, options.other_stack_bytes);
        options.max_threads = or(self.max_threads, options.max_threads);
        options.max_frames = or(self.max_frames, options.max_frames);
        if self.patience_ms != 0 {
            options.patience = Duration::from_millis(self.patience_ms.into());
        }
        options.own_code = match self.own_code_count {
            0 => Vec::new(),
            _ if self.own_code.is_null() => return Err(Failure::null("own_code")),
            count => {
                let count = usize::try_from(count).unwrap_or(0);
                // SAFETY: the caller's promise.
                let own = unsafe { std::slice::from_raw_parts(self.own_code, count) };
                own.iter().map(|code| Range { start: code.start, end: code.end }).collect()
            }
        };
        // SAFETY: the caller's promise.
        options.watcher = unsafe { pass::optional_text(self.watcher, "watcher") }?.map(Into::into);
        // SAFETY: the caller's promise.
        options.release = unsafe { pass::optional_text(self.release, "release") }?.map(Into::into);
        options.filter = self.filter.is_some().then_some(filter as fn(&Seen<'_>) -> bool);
        Ok(options)
    }
}

/// Tells which C++ exception is about to end the process.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_exception(type_name: *const c_char, what: *const c_char) {
    let type_name = match type_name.is_null() {
        true => &[][..],
        // SAFETY: the header's demand.
        false => unsafe { CStr::from_ptr(type_name) }.to_bytes(),
    };
    crash::exception_at(type_name, what.cast());
}

/// What [`backtrail_crash_pending`] calls; see the header.
pub type BacktrailCrashFileHandler = Option<unsafe extern "C" fn(context: *mut c_void, path: *const c_char)>;

static HANDLER: OnceLock<Handler> = OnceLock::new();

thread_local! {
    /// Taken back when the thread ends.
    static STACK: OnceCell<SignalStack> = const { OnceCell::new() };
}

fn system(error: impl std::fmt::Display) -> Failure {
    Failure::new(BACKTRAIL_SYSTEM, error.to_string())
}

/// Installs the handler.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_install(options: *const BacktrailCrashOptions) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let given = unsafe { pass::options(options)? };
        // SAFETY: the header's demand.
        let options = unsafe { given.options() }?;
        if let Some(filter) = given.filter
            && HANDLER.get().is_none()
        {
            FILTER.store(filter as *mut c_void, SeqCst);
        }
        let handler = crash::install(options).map_err(|error| match error {
            InstallError::Installed => Failure::new(BACKTRAIL_INVALID, error.to_string()),
            error => system(error),
        })?;
        let _ = HANDLER.set(handler);
        Ok(())
    })
}

/// The process id of the watcher, or 0.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_crash_watcher() -> u32 {
    HANDLER.get().and_then(Handler::watcher).and_then(Result::ok).unwrap_or(0)
}

/// The image that a function lies in.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_image_of(
    function: *const c_void,
    out: *mut BacktrailCrashCode,
) -> i32 {
    guard(|| {
        let missing = || Failure::new(BACKTRAIL_INVALID, "the address lies in no image");
        let code = crash::image_of(function.cast()).ok_or_else(missing)?;
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: not null, and the header's demand.
        unsafe { out.write(BacktrailCrashCode { start: code.start, end: code.end }) };
        Ok(())
    })
}

/// Lists the images anew.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_crash_refresh_images() -> i32 {
    guard(|| {
        let missing =
            || Failure::new(BACKTRAIL_INVALID, "there is no crash handler: backtrail_crash_install");
        HANDLER.get().ok_or_else(missing)?.refresh_images();
        Ok(())
    })
}

/// Gives the calling thread a stack for signal handlers.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_crash_protect_thread() -> i32 {
    guard(|| {
        let stack = crash::protect_thread().map_err(system)?;
        let ends = |_| Failure::new(BACKTRAIL_INVALID, "the thread is ending");
        STACK.try_with(|own| own.set(stack).ok()).map_err(ends)?;
        Ok(())
    })
}

/// Keeps a note for the crash file.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_note(key: *const c_char, value: *const c_char) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let (key, value) = unsafe { (pass::needed_text(key, "key")?, pass::needed_text(value, "value")?) };
        let full = || Failure::new(BACKTRAIL_INVALID, "there are 64 notes already");
        crash::note(key, value).then_some(()).ok_or_else(full)
    })
}

/// Keeps a line of what the program does.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_breadcrumb(text: *const c_char) {
    // SAFETY: the header's demand.
    if let Some(text) = unsafe { pass::valid_text(text) } {
        crash::breadcrumb(text);
    }
}

/// Calls the handler with every whole crash file of a directory.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_pending(
    directory: *const c_char,
    handler: BacktrailCrashFileHandler,
    context: *mut c_void,
) -> i32 {
    // SAFETY: the header's demand.
    guard(|| unsafe { tell_files(directory, crash::pending, handler, context) })
}

/// Calls the handler with the file of every run that is over.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_pending_sessions(
    directory: *const c_char,
    handler: BacktrailCrashFileHandler,
    context: *mut c_void,
) -> i32 {
    // SAFETY: the header's demand.
    guard(|| unsafe { tell_files(directory, crash::pending_sessions, handler, context) })
}

/// # Safety
/// See the header.
unsafe fn tell_files(
    directory: *const c_char,
    files: fn(&Path) -> std::io::Result<Vec<PathBuf>>,
    handler: BacktrailCrashFileHandler,
    context: *mut c_void,
) -> Result<(), Failure> {
    let handler = handler.ok_or_else(|| Failure::null("handler"))?;
    // SAFETY: the header's demand.
    let directory = Path::new(unsafe { pass::needed_text(directory, "directory") }?);
    for file in files(directory).map_err(|error| system(format!("{}: {error}", directory.display())))? {
        let path = std::ffi::CString::new(file.as_os_str().as_bytes()).map_err(system)?;
        // SAFETY: the header's demand; the path lives for the call.
        unsafe { handler(context, path.as_ptr()) };
    }
    Ok(())
}

/// Removes a crash file, or that of a run.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_crash_sent(path: *const c_char) -> i32 {
    guard(|| {
        if path.is_null() {
            return Err(Failure::null("path"));
        }
        // Not a text: paths are any bytes, and this one came from `backtrail_crash_pending`.
        // SAFETY: the header's demand.
        let path = Path::new(std::ffi::OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
        crash::sent(path).map_err(|error| system(format!("{}: {error}", path.display())))
    })
}
