//! All threads of this process at once.

use crate::capture::{BacktrailCapturer, BacktrailStack};
use crate::pass::{self, Sized32};
use crate::status::{BACKTRAIL_GONE, Failure, guard};
use crate::text;
use backtrail::capture::{RawStack, ThreadId, ThreadStack};
use std::ffi::{CString, c_char};

/// All threads, captured.
#[derive(Debug)]
pub struct BacktrailThreads(Vec<Thread>);

#[derive(Debug)]
struct Thread {
    id: u32,
    is_main: bool,
    name: CString,
    state: Option<CString>,
    cpu_seconds: f64,
    cpu_usage: f64,
    stack: Option<BacktrailStack>,
    problem: Option<CString>,
}

/// One thread as C sees it; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailThread {
    /// Bytes of the structure.
    pub size: u32,
    /// The kernel's number.
    pub id: u32,
    /// Its name.
    pub name: *const c_char,
    /// What it was at, or null.
    pub state: *const c_char,
    /// Its stack, or null.
    pub stack: *const BacktrailStack,
    /// Why there is no stack, or null.
    pub problem: *const c_char,
    /// Seconds that it was on a processor; below zero where that is not known.
    pub cpu_seconds: f64,
    /// The share of one processor since the last time; below zero where that is not known.
    pub cpu_usage: f64,
    /// Whether it is the process's first thread.
    pub is_main: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: C layout, the size first, numbers and pointers only.
unsafe impl Sized32 for BacktrailThread {
    const EMPTY: Self = Self {
        size: 0,
        id: 0,
        name: std::ptr::null(),
        state: std::ptr::null(),
        stack: std::ptr::null(),
        problem: std::ptr::null(),
        cpu_seconds: -1.0,
        cpu_usage: -1.0,
        is_main: 0,
        reserved: 0,
    };
}

impl From<ThreadStack> for Thread {
    fn from(thread: ThreadStack) -> Self {
        let (stack, problem) = match thread.stack {
            Ok(stack) => (Some(BacktrailStack::new(stack)), None),
            Err(error) => (None, Some(text::text(&error.to_string()))),
        };
        Self {
            id: thread.id.get(),
            is_main: thread.is_main,
            name: text::text(&thread.name),
            state: thread.state.map(|state| text::text(&state.to_string())),
            cpu_seconds: thread.cpu.map_or(-1.0, |cpu| cpu.time.as_secs_f64()),
            cpu_usage: thread.cpu.and_then(|cpu| cpu.usage).unwrap_or(-1.0),
            stack,
            problem,
        }
    }
}

/// Captures all threads.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn backtrail_capture_all(
    capturer: *const BacktrailCapturer,
    out: *mut *mut BacktrailThreads,
) -> i32 {
    // The calling thread's own stack is taken here, where this function's frame is the only one that is not the caller's.
    let mut own = RawStack::with_capacity(0);
    // SAFETY: the header's demand.
    if let Some(capturer) = unsafe { capturer.as_ref() } {
        own = RawStack::with_capacity(capturer.0.options().max_frames);
        capturer.0.current_skipping(1, &mut own);
    }
    guard(|| {
        // SAFETY: the header's demand.
        let capturer = unsafe { pass::handle(capturer, "capturer") }?;
        let mut threads = capturer.0.all();
        let this = threads.iter_mut().find(|thread| thread.id == ThreadId::current());
        if let Some(stack) = this.and_then(|thread| thread.stack.as_mut().ok()) {
            *stack = own;
        }
        let threads = threads.into_iter().map(Thread::from).collect();
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailThreads(threads)) }
    })
}

/// How many threads there are.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_threads_count(threads: *const BacktrailThreads) -> usize {
    // SAFETY: the header's demand.
    unsafe { threads.as_ref() }.map_or(0, |threads| threads.0.len())
}

/// One thread.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_threads_get(
    threads: *const BacktrailThreads,
    index: usize,
    out: *mut BacktrailThread,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let threads = unsafe { pass::handle(threads, "threads") }?;
        let thread = threads.0.get(index);
        let thread = thread.ok_or_else(|| Failure::new(BACKTRAIL_GONE, "there is no such row"))?;
        let for_c = BacktrailThread {
            id: thread.id,
            name: thread.name.as_ptr(),
            state: text::pointer(thread.state.as_ref()),
            stack: thread.stack.as_ref().map_or(std::ptr::null(), std::ptr::from_ref),
            problem: text::pointer(thread.problem.as_ref()),
            cpu_seconds: thread.cpu_seconds,
            cpu_usage: thread.cpu_usage,
            is_main: u32::from(thread.is_main),
            ..BacktrailThread::EMPTY
        };
        // SAFETY: the header's demand.
        unsafe { pass::fill(out, for_c) }
    })
}

/// Frees the threads and their stacks.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_threads_free(threads: *mut BacktrailThreads) {
    // SAFETY: the header's demand.
    unsafe { pass::free(threads) }
}
