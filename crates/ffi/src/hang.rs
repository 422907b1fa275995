//! The hang monitor.

use crate::capture::BacktrailCapturer;
use crate::pass::{self, Sized32};
use crate::status::{BACKTRAIL_INVALID, BACKTRAIL_SYSTEM, Failure, guard};
use crate::text;
use backtrail::Symbols;
use backtrail::capture::ThreadId;
use backtrail::hang::{Activity, Beat, End, Event, Hang, Options, Watch, unfinished};
use std::ffi::{CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Watches a thread.
#[derive(Debug)]
pub struct BacktrailWatch {
    beat: Beat,
    /// Held for its end.
    _watch: Watch,
}

/// One hang.
#[derive(Debug)]
pub struct BacktrailHang(Hang);

/// How a thread is watched; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailWatchOptions {
    /// Bytes of the structure.
    pub size: u32,
    /// How late a beat is when the thread hangs, in milliseconds; 0 for 250.
    pub threshold_ms: u32,
    /// Milliseconds between captures; 0 for 10.
    pub interval_ms: u32,
    /// Whether the files of hangs that are over stay.
    pub keep: u32,
    /// The directory that hangs are written to, or null.
    pub directory: *const c_char,
    /// The capturer to use, or null for one of the watch's own.
    pub capturer: *const BacktrailCapturer,
    /// Bytes of one hang's file; 0 for 1 MiB.
    pub max_bytes: u64,
}

// SAFETY: C layout, the size first, integers and pointers only.
unsafe impl Sized32 for BacktrailWatchOptions {
    const EMPTY: Self = Self {
        size: 0,
        threshold_ms: 0,
        interval_ms: 0,
        keep: 0,
        directory: std::ptr::null(),
        capturer: std::ptr::null(),
        max_bytes: 0,
    };
}

impl BacktrailWatchOptions {
    /// # Safety
    /// Its pointers are null or what the header demands.
    unsafe fn options(self) -> Result<Options, Failure> {
        let mut options = Options::default();
        let millis = |millis: u32| Duration::from_millis(u64::from(millis));
        if self.threshold_ms != 0 {
            options.threshold = millis(self.threshold_ms);
        }
        if self.interval_ms != 0 {
            options.interval = millis(self.interval_ms);
        }
        if self.max_bytes != 0 {
            options.max_bytes = self.max_bytes;
        }
        options.keep = self.keep != 0;
        // SAFETY: the caller's promise.
        let (directory, capturer) =
            unsafe { (pass::optional_text(self.directory, "directory")?, self.capturer.as_ref()) };
        options.directory = directory.map(PathBuf::from);
        options.capturer = capturer.map(|capturer| Arc::clone(&capturer.0));
        Ok(options)
    }
}

/// The thread hangs.
pub const BACKTRAIL_HANG_BEGAN: u32 = 1;
/// It got on, ended, or is no longer watched.
pub const BACKTRAIL_HANG_ENDED: u32 = 2;
/// Something does not work.
pub const BACKTRAIL_HANG_PROBLEM: u32 = 3;

/// What a watch calls; see the header.
pub type BacktrailHangHandler = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        event: u32,
        hang: *const BacktrailHang,
        problem: *const c_char,
    ),
>;

/// What [`backtrail_hang_unfinished`] calls; see the header.
pub type BacktrailUnfinishedHandler = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        path: *const c_char,
        hang: *const BacktrailHang,
        problem: *const c_char,
    ) -> u32,
>;

/// A function of C's with what it wants to know.
struct Handler {
    function: BacktrailHangHandler,
    context: *mut c_void,
}

// SAFETY: the header demands that the function may be called with this context on another thread.
unsafe impl Send for Handler {}

impl Handler {
    fn call(&self, event: u32, hang: Option<&Hang>, problem: Option<&str>) {
        let Some(function) = self.function else { return };
        let hang = hang.map(|hang| BacktrailHang(hang.clone()));
        let problem = problem.map(text::text);
        let told = hang.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the header demands a function of this type; both pointers last for the call.
        unsafe { function(self.context, event, told, text::pointer(problem.as_ref())) }
    }

    fn tell(&self, event: &Event<'_>) {
        match event {
            Event::Began(hang) => self.call(BACKTRAIL_HANG_BEGAN, Some(hang), None),
            Event::Ended(hang) => self.call(BACKTRAIL_HANG_ENDED, Some(hang), None),
            Event::Problem(problem) => self.call(BACKTRAIL_HANG_PROBLEM, None, Some(problem)),
            _ => {}
        }
    }
}

/// Watches a thread.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_watch_start(
    thread: u32,
    options: *const BacktrailWatchOptions,
    handler: BacktrailHangHandler,
    context: *mut c_void,
    out: *mut *mut BacktrailWatch,
) -> i32 {
    guard(|| {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        // SAFETY: the header's demand.
        let options = unsafe { pass::options(options)?.options() }?;
        let handler = Handler { function: handler, context };
        let thread = if thread == 0 { ThreadId::current() } else { ThreadId::new(thread) };
        let watch = Watch::thread(thread, options, move |event| handler.tell(&event));
        let watch = watch.map_err(|error| Failure::new(BACKTRAIL_SYSTEM, error.to_string()))?;
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailWatch { beat: watch.beat(), _watch: watch }) }
    })
}

/// Says that the watched thread got on.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_watch_tick(watch: *const BacktrailWatch) {
    // SAFETY: the header's demand.
    if let Some(watch) = unsafe { watch.as_ref() } {
        watch.beat.tick();
    }
}

/// Says that the watched thread waits for work.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_watch_rest(watch: *const BacktrailWatch) {
    // SAFETY: the header's demand.
    if let Some(watch) = unsafe { watch.as_ref() } {
        watch.beat.rest();
    }
}

/// Stops watching.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_watch_stop(watch: *mut BacktrailWatch) {
    // SAFETY: the header's demand.
    unsafe { pass::free(watch) }
}

/// What is told of a hang in numbers; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailHangInfo {
    /// Bytes of the structure.
    pub size: u32,
    /// The thread's kernel id, or 0.
    pub thread: u32,
    /// Milliseconds without a beat.
    pub lasted_ms: f64,
    /// Milliseconds on a processor; below zero where that is not known.
    pub cpu_ms: f64,
    /// What the thread did.
    pub activity: u32,
    /// How it ended.
    pub ended: u32,
    /// Stacks that were captured.
    pub samples: u64,
    /// Captures that failed.
    pub missed: u64,
}

// SAFETY: C layout, the size first, numbers only.
unsafe impl Sized32 for BacktrailHangInfo {
    const EMPTY: Self = Self {
        size: 0,
        thread: 0,
        lasted_ms: 0.0,
        cpu_ms: -1.0,
        activity: 0,
        ended: 0,
        samples: 0,
        missed: 0,
    };
}

/// What is known in numbers.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_hang_info_get(
    hang: *const BacktrailHang,
    out: *mut BacktrailHangInfo,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let hang = &unsafe { pass::handle(hang, "hang") }?.0;
        let info = BacktrailHangInfo {
            thread: hang.thread_id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0),
            lasted_ms: hang.lasted.as_secs_f64() * 1e3,
            cpu_ms: hang.cpu.map_or(-1.0, |cpu| cpu.as_secs_f64() * 1e3),
            activity: match hang.activity() {
                Activity::Busy => 1,
                Activity::Waiting => 2,
                Activity::Starved => 3,
                Activity::Mixed => 4,
                _ => 0,
            },
            ended: match hang.end {
                Some(End::Recovered) => 1,
                Some(End::ThreadEnded) => 2,
                Some(End::Unwatched) => 3,
                _ => 0,
            },
            samples: hang.samples,
            missed: hang.missed,
            ..BacktrailHangInfo::EMPTY
        };
        // SAFETY: the header's demand.
        unsafe { pass::fill(out, info) }
    })
}

/// For people.
pub const BACKTRAIL_TEXT: u32 = 0;
/// One line of JSON.
pub const BACKTRAIL_JSON: u32 = 1;
/// Collapsed stacks.
pub const BACKTRAIL_COLLAPSED: u32 = 2;

/// A hang as a text, with names.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_hang_format(
    hang: *const BacktrailHang,
    format: u32,
    out: *mut *mut c_char,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let mut hang = unsafe { pass::handle(hang, "hang") }?.0.clone();
        // SAFETY: the header's demand.
        let out = unsafe { out.as_mut() }.ok_or_else(|| Failure::null("out"))?;
        hang.name(&Symbols::new());
        let mut text = Vec::new();
        let written = match format {
            BACKTRAIL_TEXT => hang.write_text(&mut text),
            BACKTRAIL_JSON => backtrail::json::write_hang(&mut text, &hang),
            BACKTRAIL_COLLAPSED => hang.write_collapsed(&mut text),
            other => return Err(Failure::new(BACKTRAIL_INVALID, format!("{other} is no format"))),
        };
        written.map_err(|error| Failure::new(BACKTRAIL_SYSTEM, error.to_string()))?;
        *out = text::text(&String::from_utf8_lossy(&text)).into_raw();
        Ok(())
    })
}

/// Hangs that an earlier run did not survive.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_hang_unfinished(
    directory: *const c_char,
    handler: BacktrailUnfinishedHandler,
    context: *mut c_void,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let directory = unsafe { pass::needed_text(directory, "directory") }?;
        let handler = handler.ok_or_else(|| Failure::null("handler"))?;
        let system = |error: std::io::Error| Failure::new(BACKTRAIL_SYSTEM, error.to_string());
        for found in unfinished(Path::new(directory)).map_err(system)? {
            let path = text::text(&found.path.display().to_string());
            let problem: Option<CString> =
                found.hang.as_ref().err().map(|error| text::text(&error.to_string()));
            let hang = found.hang.as_ref().ok().map(|hang| BacktrailHang(hang.clone()));
            let told = hang.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: the header demands a function of this type; the pointers last for the call.
            let remove = unsafe { handler(context, path.as_ptr(), told, text::pointer(problem.as_ref())) };
            if remove != 0 {
                found.remove().map_err(system)?;
            }
        }
        Ok(())
    })
}
