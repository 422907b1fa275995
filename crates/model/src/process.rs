//! One process: threads, stacks, registers.

use crate::{Deadlock, Field, Frame, Image, LockWait, Tree};
use backtrail_core::Arch;

/// One process: what it is, what its threads did, and which images its addresses lie in.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its name.
    pub name: Option<String>,
    /// Its process id.
    pub pid: Option<u64>,
    /// The path of its executable.
    pub path: Option<String>,
    /// Its bundle identifier.
    pub identifier: Option<String>,
    /// Its version as printed, usually with the build in parentheses.
    pub version: Option<String>,
    /// The architecture that its code was built for.
    pub arch: Option<Arch>,
    /// Foreground, background…, as printed.
    pub role: Option<String>,
    /// The parent's name.
    pub parent: Option<String>,
    /// The command line, as far as it is known.
    pub command_line: Option<String>,
    /// The memory that it held when it was looked at, in bytes.
    pub memory: Option<u64>,
    /// Why the system ended it, in the input's word: `per-process-limit`.
    pub kill_reason: Option<String>,
    /// Whether its code was translated from another architecture's while it ran (Rosetta).
    pub translated: bool,
    /// Position in [`Process::threads`] of the thread that is blamed.
    pub crashed_thread: Option<usize>,
    /// The threads, in the input's order.
    pub threads: Vec<Thread>,
    /// Stacks that belong to no living thread: where an uncaught exception was thrown, and those that libraries
    /// left in the application-specific information. Often the true place of the fault.
    pub backtraces: Vec<Backtrace>,
    /// The images, in the input's order. [`Frame::image`] is a position in this list.
    pub images: Vec<Image>,
    /// Samples of its stacks.
    pub trees: Vec<Tree>,
    /// What the input says of this process that the model has no place for, in the input's order.
    pub fields: Vec<Field>,
    /// Threads that wait for each other.
    pub deadlocks: Vec<Deadlock>,
}

impl Process {
    /// Frames without names in none of the images, whose symbols nobody can look for: of threads and backtraces. Not the program
    /// counter that a thread jumped to, where it lies in nothing that has a name.
    pub fn frames_without_image(&self) -> impl Iterator<Item = &Frame> {
        let threads = self.threads.iter().map(|thread| &thread.frames);
        let stacks = threads.chain(self.backtraces.iter().map(|backtrace| &backtrace.frames));
        let is_named = |frame: &Frame| frame.image_name.as_deref().is_some_and(|name| name != "???");
        stacks.flatten().filter(move |frame| {
            let is_wanted = frame.index > 0 || is_named(frame);
            frame.image.is_none() && frame.is_unnamed() && frame.address.is_some() && is_wanted
        })
    }

    /// Whether a frame stayed without a name, for want of symbols or of an image.
    pub fn is_incomplete(&self) -> bool {
        self.images.iter().any(|image| image.symbols.is_incomplete())
            || self.frames_without_image().next().is_some()
    }

    /// The thread that is blamed.
    pub fn crashed(&self) -> Option<&Thread> {
        self.threads.get(self.crashed_thread?)
    }

    /// Every frame: threads first, then stacks of no thread, then trees.
    pub fn frames_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        let (frames, _) = self.frames_and_images_mut();
        frames
    }

    /// Every frame, with the images that they lie in.
    pub fn frames_and_images_mut(&mut self) -> (impl Iterator<Item = &mut Frame>, &mut Vec<Image>) {
        let threads = self.threads.iter_mut().flat_map(|thread| &mut thread.frames);
        let backtraces = self.backtraces.iter_mut().flat_map(|backtrace| &mut backtrace.frames);
        let nodes = self.trees.iter_mut().flat_map(|tree| &mut tree.nodes).map(|node| &mut node.frame);
        (threads.chain(backtraces).chain(nodes), &mut self.images)
    }
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// The number that the report gives it.
    pub number: u64,
    /// The kernel's thread id.
    pub id: Option<u64>,
    /// Its name.
    pub name: Option<String>,
    /// The dispatch queue that it served.
    pub queue: Option<String>,
    /// Whether the report blames it.
    pub crashed: bool,
    /// Innermost frame first.
    pub frames: Vec<Frame>,
    /// Its registers, in the report's order.
    pub registers: Vec<Register>,
    /// What the report left out of a deep recursion.
    pub recursion: Option<Recursion>,
    /// What it was doing, in words: `running`, `sleeping`.
    pub state: Option<String>,
    /// The system call, or the kernel's function, that it waited in.
    pub waiting_in: Option<String>,
    /// What that call was about: the file behind its file descriptor.
    pub waiting_on: Option<String>,
    /// What it waits for in `futex`: a lock and who holds it.
    pub waits_for: Option<LockWait>,
    /// The functions of the kernel that it waited in, innermost first, where they are known.
    pub kernel_stack: Vec<String>,
    /// The innermost of them alone, where no more is known.
    pub wait_channel: Option<String>,
    /// The share of one processor that it used over a short while, 1 for all of it.
    pub cpu_usage: Option<f64>,
    /// When it began, in seconds since the system did.
    pub start_time: Option<f64>,
    /// Seconds in its own code since it began.
    pub user_time: Option<f64>,
    /// Seconds in the kernel on its behalf since it began.
    pub system_time: Option<f64>,
    /// The kernel's priority.
    pub priority: Option<i64>,
    /// 19 (nice to the others) to -20.
    pub nice: Option<i64>,
    /// Its id as its own process knows it, where that is another: in a namespace of processes.
    pub namespace_id: Option<u64>,
    /// How the walk that found the frames ended; `None` where a report stated them.
    pub ended: Option<Ended>,
    /// What the input says of this thread that the model has no place for, in the input's order.
    pub fields: Vec<Field>,
}

/// How a walk over a stack ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether there are more frames.
    pub kind: EndKind,
    /// Why it ended there, in words.
    pub why: String,
}

/// Whether a stack is complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndKind {
    /// It is: the last frame called by nobody.
    EndOfStack,
    /// It may not be: the walk could not go on.
    Failed,
    /// It is not: the walk was ended by a limit.
    Truncated,
}

impl EndKind {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::EndOfStack => "end-of-stack",
            Self::Failed => "failed",
            Self::Truncated => "truncated",
        }
    }
}

/// Frames that a report left out since they repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recursion {
    /// How many frames the stack really had.
    pub depth: u64,
    /// Index of the first frame that was left out, counted from the innermost.
    pub first_elided: Option<u64>,
    /// Index of the last one.
    pub last_elided: Option<u64>,
}

/// A stack that is no thread's.
#[derive(Clone, Debug, Default)]
pub struct Backtrace {
    /// The report's title: `Last Exception Backtrace`, `Application Specific Backtrace 1`.
    pub title: String,
    /// Whether this is where the uncaught exception was thrown.
    pub is_exception: bool,
    /// Innermost frame first.
    pub frames: Vec<Frame>,
}

/// One register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name as the report spells it.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// What the report says of the value: `(Data Abort) byte read Translation fault`, a symbol.
    pub note: Option<String>,
}
