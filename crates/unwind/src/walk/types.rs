//! What a walk gives: frames, and how it ended.

use crate::failure::Failure;
use backtrail_core::{AddrRange, Avma, FrameAddress, Trust};
use core::fmt;

/// One frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The code address and how to look it up. Pointer authentication bits are stripped; the Thumb bit is kept.
    pub address: FrameAddress,
    /// The stack pointer while the frame's function is at that address.
    pub stack_pointer: Avma,
    /// How the frame was found.
    pub trust: Trust,
    /// Whether the kernel made this frame to run a signal handler. Known once its caller was looked for: false in
    /// the frame that a walk gives, except that its caller's address is exact.
    pub is_after_signal: bool,
    /// The bytecode address that an interpreter's frame works on, where its tables say it (Android's runtime). It
    /// belongs to the frame before this one.
    pub bytecode: Option<Avma>,
}

/// What came of one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The next frame outwards.
    Caller(Frame),
    /// There is none: the stack is complete.
    EndOfStack(End),
    /// There may be one, but it cannot be found.
    Failed(Failure),
}

/// Why a stack is complete.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum End {
    /// The tables mark the frame as outermost: its return address is undefined.
    Undefined,
    /// The tables say that the function cannot be unwound, which is how ARM's mark outermost frames.
    CannotUnwind,
    /// The function at the file's entry point.
    EntryPoint,
    /// A function known to be the first of a thread.
    ThreadStart,
    /// The frame pointer is zero, as the first frame of a thread sets it.
    ZeroFramePointer,
    /// The return address is zero.
    ZeroReturnAddress,
    /// A language's runtime has come to this stack from another one, and does not go back to where it was.
    StackSwitch,
}

impl End {
    /// A few words for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Undefined => "outermost frame",
            Self::CannotUnwind => "function that cannot be unwound",
            Self::EntryPoint => "entry point",
            Self::ThreadStart => "start of the thread",
            Self::ZeroFramePointer => "frame pointer is zero",
            Self::ZeroReturnAddress => "return address is zero",
            Self::StackSwitch => "switch of stacks by the runtime",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WalkEnd {
    /// The stack is complete.
    EndOfStack(End),
    /// It could not go on.
    Failed(Failure),
    /// It gave as many frames as [`Options::max_frames`] allows.
    Limit,
}

impl fmt::Display for WalkEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndOfStack(end) => write!(f, "end of stack: {end}"),
            Self::Failed(why) => write!(f, "could not go on: {why}"),
            Self::Limit => f.write_str("limit of frames reached"),
        }
    }
}

/// How a walk is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many frames are given at most.
    pub max_frames: u64,
    /// The bounds of the thread's stack, where they are known. A signal stack may lie elsewhere.
    pub stack: Option<AddrRange<Avma>>,
    /// How many words a scan for a return address looks at; zero forbids scanning.
    pub scan_words: u32,
    /// Which registers are recovered.
    pub recover: Recover,
    /// Whether the images have all executable memory: then an address outside of them is nobody's caller.
    pub knows_all_code: bool,
}

/// Which registers a walk recovers from frame to frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Recover {
    /// All that the tables tell of.
    #[default]
    All,
    /// Those that finding frames needs: the program counter, the stack and frame pointers, the link register, and what
    /// some rule of the images counts from. The frames are the same. Saves time where all images are compiled.
    Needed,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_frames: 1 << 24,
            stack: None,
            scan_words: 1024,
            recover: Recover::All,
            knows_all_code: true,
        }
    }
}
