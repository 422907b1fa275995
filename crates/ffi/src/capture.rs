//! Captures of this process's threads.

use crate::names::BacktrailNames;
use crate::pass::{self, Sized32};
use crate::status::{
    BACKTRAIL_GONE, BACKTRAIL_INVALID, BACKTRAIL_OK, BACKTRAIL_SILENT, BACKTRAIL_SYSTEM, Failure, guard,
    quiet,
};
use backtrail::capture::{
    self, CaptureError, Capturer, Method, Options, RawFrame, RawStack, Stopped, ThreadId, WalkEnd,
};
use backtrail::{Avma, FrameAddress, Symbols, Trust};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

/// What captures.
#[derive(Debug)]
pub struct BacktrailCapturer(pub(crate) Arc<Capturer>);

/// How capturing is to be done; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BacktrailCaptureOptions {
    /// Bytes of the structure.
    pub size: u32,
    /// The signal that threads are asked by; 0 for the highest real-time signal that nothing handles.
    pub signal: i32,
    /// How long a thread is waited for, in milliseconds; 0 for 200.
    pub timeout_ms: u32,
    /// Frames of one thread; 0 for 256.
    pub max_frames: u32,
    /// How stacks are walked.
    pub method: u32,
    /// Bytes of the stack that are copied; 0 for 64 KiB.
    pub stack_bytes: u32,
}

// SAFETY: C layout, the size first, integers only.
unsafe impl Sized32 for BacktrailCaptureOptions {
    const EMPTY: Self = Self { size: 0, signal: 0, timeout_ms: 0, max_frames: 0, method: 0, stack_bytes: 0 };
}

/// By the images' unwind tables.
pub const BACKTRAIL_BY_RULES: u32 = 0;
/// Along the frame pointers.
pub const BACKTRAIL_BY_FRAME_POINTERS: u32 = 1;
/// The stack is copied and walked afterwards.
pub const BACKTRAIL_BY_COPY: u32 = 2;

impl BacktrailCaptureOptions {
    fn options(self) -> Result<Options, Failure> {
        let mut options = Options::default();
        options.signal = Some(self.signal).filter(|signal| *signal != 0);
        if self.timeout_ms != 0 {
            options.timeout = Duration::from_millis(u64::from(self.timeout_ms));
        }
        if self.max_frames != 0 {
            options.max_frames = usize::try_from(self.max_frames).unwrap_or(usize::MAX).min(MAX_FRAMES);
        }
        options.method = match (self.method, self.stack_bytes) {
            (BACKTRAIL_BY_RULES, _) => Method::Rules,
            (BACKTRAIL_BY_FRAME_POINTERS, _) => Method::FramePointers,
            (BACKTRAIL_BY_COPY, 0) => Method::CopyStack(64 << 10),
            (BACKTRAIL_BY_COPY, bytes) => Method::CopyStack(usize::try_from(bytes).unwrap_or(usize::MAX)),
            (other, _) => return Err(Failure::new(BACKTRAIL_INVALID, format!("{other} is no method"))),
        };
        Ok(options)
    }
}

/// Frames that a stack has room for at most: a number from C may be anything.
const MAX_FRAMES: usize = 1 << 20;

/// One frame as C sees it; see the header.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BacktrailFrame {
    /// The code address.
    pub address: u64,
    /// The stack pointer.
    pub stack_pointer: u64,
    /// Whether the address is that of an instruction that ran, not the one behind a call.
    pub exact: u32,
    /// How it was found.
    pub trust: u32,
}

/// A stack, with room for so many frames.
#[derive(Debug)]
pub struct BacktrailStack {
    raw: RawStack,
    /// The same frames for C; as long as `raw` has room.
    frames: Box<[BacktrailFrame]>,
}

impl BacktrailStack {
    pub(crate) fn new(raw: RawStack) -> Self {
        let frames = vec![BacktrailFrame::default(); raw.capacity()].into_boxed_slice();
        let mut stack = Self { raw, frames };
        stack.mirror();
        stack
    }

    /// Allocates nothing.
    fn mirror(&mut self) {
        for (place, frame) in self.frames.iter_mut().zip(self.raw.frames()) {
            *place = frame_for_c(frame);
        }
    }
}

fn frame_for_c(frame: &RawFrame) -> BacktrailFrame {
    BacktrailFrame {
        address: frame.address.raw().get(),
        stack_pointer: frame.stack_pointer.get(),
        exact: u32::from(matches!(frame.address, FrameAddress::Exact(_))),
        trust: match frame.trust {
            Trust::Context => 1,
            Trust::Cfi => 2,
            Trust::CompactUnwind => 3,
            Trust::Exidx => 4,
            Trust::FramePointer => 5,
            Trust::LinkRegister => 6,
            Trust::Analysis => 7,
            Trust::Scan => 8,
            Trust::RuntimeTable => 9,
            _ => 0,
        },
    }
}

/// How a capture that failed is told.
pub(crate) fn failure(error: CaptureError) -> Failure {
    let status = match error {
        CaptureError::Gone => BACKTRAIL_GONE,
        CaptureError::System(_) => BACKTRAIL_SYSTEM,
        _ => BACKTRAIL_SILENT,
    };
    Failure::new(status, error.to_string())
}

/// Makes a capturer.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_capturer_new(
    options: *const BacktrailCaptureOptions,
    out: *mut *mut BacktrailCapturer,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let options = unsafe { pass::options(options) }?.options()?;
        let capturer =
            Capturer::new(options).map_err(|error| Failure::new(BACKTRAIL_SYSTEM, error.to_string()))?;
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailCapturer(Arc::new(capturer))) }
    })
}

/// Frees a capturer.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_capturer_free(capturer: *mut BacktrailCapturer) {
    // SAFETY: the header's demand.
    unsafe { pass::free(capturer) }
}

/// Brings the list of images up to date.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_capturer_refresh(capturer: *const BacktrailCapturer) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let capturer = unsafe { pass::handle(capturer, "capturer") }?;
        let is_new = capturer.0.refresh();
        is_new.then_some(()).ok_or_else(|| Failure::new(BACKTRAIL_SILENT, "the loader is busy"))
    })
}

/// Makes a stack.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_stack_new(max_frames: usize) -> *mut BacktrailStack {
    let frames = if max_frames == 0 { RawStack::CAPACITY } else { max_frames.min(MAX_FRAMES) };
    quiet(std::ptr::null_mut(), || {
        Box::into_raw(Box::new(BacktrailStack::new(RawStack::with_capacity(frames))))
    })
}

/// Frees a stack.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_stack_free(stack: *mut BacktrailStack) {
    // SAFETY: the header's demand.
    unsafe { pass::free(stack) }
}

/// The frames.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_stack_frames(
    stack: *const BacktrailStack,
    count: *mut usize,
) -> *const BacktrailFrame {
    // SAFETY: the header's demand.
    let (stack, count) = unsafe { (stack.as_ref(), count.as_mut()) };
    let frames = stack.and_then(|stack| stack.frames.get(..stack.raw.frames().len())).unwrap_or_default();
    if let Some(count) = count {
        *count = frames.len();
    }
    frames.as_ptr()
}

/// Whose stack it is.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_stack_thread(stack: *const BacktrailStack) -> u32 {
    // SAFETY: the header's demand.
    let thread = unsafe { stack.as_ref() }.and_then(|stack| stack.raw.thread());
    thread.map_or(0, ThreadId::get)
}

/// Whether the outermost frame is where the thread began.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_stack_is_complete(stack: *const BacktrailStack) -> u32 {
    // SAFETY: the header's demand.
    let ended = unsafe { stack.as_ref() }.and_then(|stack| stack.raw.ended());
    u32::from(matches!(ended, Some(WalkEnd::EndOfStack(_))))
}

/// The calling thread's kernel id.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_current_thread() -> u32 {
    ThreadId::current().get()
}

/// The kernel id of the process's first thread.
#[unsafe(no_mangle)]
pub extern "C" fn backtrail_main_thread() -> u32 {
    ThreadId::main().get()
}

/// The calling thread's stack. Calls no guard: it may be a signal handler that asks.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
#[inline(never)]
pub unsafe extern "C" fn backtrail_capture_current(
    capturer: *const BacktrailCapturer,
    skip: usize,
    stack: *mut BacktrailStack,
) -> i32 {
    // SAFETY: the header's demand.
    let (capturer, stack) = unsafe { (capturer.as_ref(), stack.as_mut()) };
    let (Some(capturer), Some(stack)) = (capturer, stack) else { return BACKTRAIL_INVALID };
    // This function is none of the caller's.
    capturer.0.current_skipping(skip.saturating_add(1), &mut stack.raw);
    stack.mirror();
    BACKTRAIL_OK
}

/// The stack that a signal has interrupted.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_capture_interrupted(
    capturer: *const BacktrailCapturer,
    context: *const c_void,
    stack: *mut BacktrailStack,
) -> i32 {
    // SAFETY: the header's demand.
    let (capturer, stack) = unsafe { (capturer.as_ref(), stack.as_mut()) };
    let (Some(capturer), Some(stack)) = (capturer, stack) else { return BACKTRAIL_INVALID };
    if context.is_null() {
        return BACKTRAIL_INVALID;
    }
    // SAFETY: not null; the header demands that it is the handler's third argument.
    let at = unsafe { Stopped::interrupted(context) };
    capturer.0.at(&at, 0, &mut stack.raw);
    stack.mirror();
    BACKTRAIL_OK
}

/// Any thread's stack.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_capture_thread(
    capturer: *const BacktrailCapturer,
    thread: u32,
    stack: *mut BacktrailStack,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let (capturer, stack) = unsafe { (pass::handle(capturer, "capturer")?, stack.as_mut()) };
        let stack = stack.ok_or_else(|| Failure::null("stack"))?;
        let captured = capturer.0.thread(ThreadId::new(thread), &mut stack.raw);
        stack.mirror();
        captured.map_err(failure)
    })
}

/// Names a stack.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_stack_symbolize(
    capturer: *const BacktrailCapturer,
    stack: *const BacktrailStack,
    out: *mut *mut BacktrailNames,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let (capturer, stack) =
            unsafe { (pass::handle(capturer, "capturer")?, pass::handle(stack, "stack")?) };
        let frames = capture::symbolize(&capturer.0, &stack.raw, &Symbols::new());
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailNames::of_frames(&frames)) }
    })
}

/// Names an address of this process.
///
/// # Safety
/// See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn backtrail_address_symbolize(
    capturer: *const BacktrailCapturer,
    address: u64,
    exact: u32,
    out: *mut *mut BacktrailNames,
) -> i32 {
    guard(|| {
        // SAFETY: the header's demand.
        let capturer = unsafe { pass::handle(capturer, "capturer") }?;
        let address = Avma::new(address);
        let address = if exact == 0 { FrameAddress::Return(address) } else { FrameAddress::Exact(address) };
        let frame = capture::symbolize_address(&capturer.0, address, &Symbols::new());
        // SAFETY: the header's demand.
        unsafe { pass::give(out, BacktrailNames::of_frames(&[frame])) }
    })
}
