//! Stacks of this process: of the calling thread, of any other, of all.
//!
//! ```
//! use backtrail::Symbols;
//! use backtrail::capture::{self, Capturer, Options, RawStack, ThreadId};
//!
//! // Ahead of time: reads what the images' unwind tables say.
//! let capturer = Capturer::new(Options::default())?;
//!
//! // This thread, from the caller of `current` on.
//! let mut stack = RawStack::new();
//! capturer.current(&mut stack);
//!
//! // Any other, or all of them.
//! let worker = std::thread::spawn(std::thread::park);
//! let id = ThreadId::of(&worker).ok_or("the thread has ended")?;
//! capturer.thread(id, &mut stack)?;
//!
//! // Names, later and elsewhere.
//! for frame in capture::symbolize(&capturer, &stack, &Symbols::new()) {
//!     println!("{}", capture::line(&frame));
//! }
//! # worker.thread().unpark();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`print()`] does all of it in one call, for the calling thread.

pub use backtrail_stacks::own::{
    CaptureError, Capturer, Cpu, End, ExpressionError, Failure, Malformed, Method, Options, OsError,
    OwnMemory, OwnStack, RawFrame, RawStack, ReadMemory, Register, Registers, StackCopy, Stopped,
    ThreadCache, ThreadId, ThreadStack, ThreadState, Unreadable, WalkEnd,
};

use backtrail_core::FrameAddress;
use backtrail_model::{Detail, Frame, Process};
use backtrail_resolve::{SymbolizeLoaded as _, Symbols};
use backtrail_stacks::own::CapturedProcess as _;
use backtrail_store::LoadedFiles;
use std::io::{self, Write};

/// Names a stack's frames: by debug info and symbols of the images' own files, their separate debug files where those are
/// installed, and what `symbols` has. Files stay open, so that the next stack costs less.
///
/// # Signal safety
///
/// Not safe: it opens files and allocates.
pub fn symbolize(capturer: &Capturer, stack: &RawStack, symbols: &Symbols) -> Vec<Frame> {
    named(capturer.process(stack, symbols.index()), symbols)
}

/// Names one address of this process, with the images as they were listed last: of a function pointer, or of a frame that
/// something else has captured.
///
/// # Signal safety
///
/// Not safe, as [`symbolize`] is not.
pub fn symbolize_address(capturer: &Capturer, address: FrameAddress, symbols: &Symbols) -> Frame {
    let frames = named(capturer.process_at(address, symbols.index()), symbols);
    frames.into_iter().next().unwrap_or_else(|| Frame::new(0))
}

fn named((mut process, files): (Process, Vec<LoadedFiles>), symbols: &Symbols) -> Vec<Frame> {
    symbols.symbolize_loaded(&mut process, &files, Detail::Lines);
    process.threads.pop().map(|thread| thread.frames).unwrap_or_default()
}

/// Captures the calling thread's stack from the caller on, names it and writes it, a line each frame.
///
/// It makes all that it needs and throws it away: milliseconds. Who captures more than once keeps a [`Capturer`].
///
/// # Errors
/// Where the stack cannot be captured, or `out` cannot be written to.
///
/// # Signal safety
///
/// Not safe: it opens files and allocates.
#[inline(never)]
pub fn print(mut out: impl Write) -> io::Result<()> {
    let capturer = Capturer::new(Options::default()).map_err(io::Error::other)?;
    let mut stack = RawStack::new();
    capturer.current_skipping(1, &mut stack);
    for frame in symbolize(&capturer, &stack, &Symbols::new()) {
        writeln!(out, "{}", line(&frame))?;
    }
    Ok(())
}

/// A frame as one line of text, or several where functions were inlined: `  3 0x… main (src/main.rs:12)`.
///
/// # Signal safety
///
/// Not safe.
pub fn line(frame: &Frame) -> String {
    let address = frame.address.map(|address| address.raw().to_string()).unwrap_or_default();
    let head = format!("{:3} {address:>18}", frame.index);
    let mut lines: Vec<String> = Vec::new();
    for function in &frame.functions {
        let place = match (&function.file, function.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            (Some(file), None) => format!(" ({file})"),
            _ => String::new(),
        };
        let inlined = if function.inlined { " [inlined]" } else { "" };
        lines.push(format!("{head} {}{place}{inlined}", function.name));
    }
    if lines.is_empty() {
        let image = frame.image_name.as_deref().unwrap_or("no image");
        lines.push(match &frame.symbol {
            Some(symbol) => format!("{head} {} + {} ({image})", symbol.name, symbol.offset),
            None => format!("{head} ? ({image})"),
        });
    }
    lines.join("\n")
}
