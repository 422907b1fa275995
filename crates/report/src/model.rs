//! One model for every kind of crash report.
//!
//! A field is `None` or empty where the report did not say; nothing is guessed here. What a report says beyond the
//! model stays readable in [`Report::fields`] and [`Report::sections`].

use backtrail_core::{Arch, Avma, FrameAddress, Function, ImageId, Reason, Svma, Symbol, Trust};
use std::ops::Range;

/// A crash report as read, later with symbols filled in.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Which format it was read from.
    pub kind: ReportKind,
    /// The process that it is about.
    pub process: Process,
    /// Operating system, version and build as printed: `iPhone OS 13.3.1 (17D50)`.
    pub os: Option<String>,
    /// Hardware model: `iPhone9,4`.
    pub device: Option<String>,
    /// When it happened, as printed.
    pub time: Option<String>,
    /// The report's own identifier.
    pub incident: Option<String>,
    /// What the processor or kernel raised.
    pub exception: Option<Exception>,
    /// Who ended the process, and why.
    pub termination: Option<Termination>,
    /// Position in [`Report::threads`] of the thread that the report blames.
    pub crashed_thread: Option<usize>,
    /// The threads, in the report's order.
    pub threads: Vec<Thread>,
    /// Stacks that belong to no living thread: where an uncaught exception was thrown, and those that libraries
    /// left in the application-specific information. Often the true place of the fault.
    pub backtraces: Vec<Backtrace>,
    /// The images, in the report's order.
    pub images: Vec<Image>,
    /// What libraries wrote down before the process ended (`asi`, "Application Specific Information").
    pub app_info: Vec<AppInfo>,
    /// Header and exception fields that the model has no place for, in the report's order.
    pub fields: Vec<Field>,
    /// Titled blocks that the model has no place for (VM regions, kernel triage, syslog…), as text.
    pub sections: Vec<Section>,
    /// What the reader found odd, one sentence each.
    pub notes: Vec<String>,
}

/// The formats, by the words that JSON uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ReportKind {
    /// Apple's text report (`.crash`), or another reporter's imitation of it.
    #[default]
    AppleText,
    /// Apple's JSON report (`.ips`), crash body.
    AppleIps,
    /// No report: the stacks of an ELF core.
    ElfCore,
    /// No report: the stacks of a minidump.
    Minidump,
    /// No report: a saved stack in libunwindstack's layout.
    Offline,
    /// No report: the stacks of a process that runs.
    Process,
}

impl ReportKind {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AppleText => "apple-text",
            Self::AppleIps => "apple-ips",
            Self::ElfCore => "elf-core",
            Self::Minidump => "minidump",
            Self::Offline => "offline",
            Self::Process => "process",
        }
    }
}

/// The process that a report is about.
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
}

/// What was raised.
#[derive(Clone, Debug, Default)]
pub struct Exception {
    /// The Mach exception: `EXC_BAD_ACCESS`. `None` where the reporter knew the signal only.
    pub kind: Option<String>,
    /// The BSD signal: `SIGSEGV`.
    pub signal: Option<String>,
    /// The codes as printed: `KERN_INVALID_ADDRESS at 0x10`, `0x1, 0x10`.
    pub codes: Option<String>,
    /// The codes as numbers (Mach code and subcode), where printed as numbers.
    pub raw_codes: Vec<u64>,
    /// The subtype as printed: `KERN_INVALID_ADDRESS at 0x0000000000000010`.
    pub subtype: Option<String>,
    /// A message, as written by the reporter.
    pub message: Option<String>,
    /// `EXC_CORPSE_NOTIFY`, `SIMULATED (this is NOT a crash)`, `NON-FATAL CONDITION (this is NOT a crash)`.
    pub note: Option<String>,
    /// The address whose access failed.
    pub address: Option<Avma>,
}

/// Who ended the process.
#[derive(Clone, Debug, Default)]
pub struct Termination {
    /// `SPRINGBOARD`, `SIGNAL`, `DYLD`…
    pub namespace: Option<String>,
    /// The code in that namespace.
    pub code: Option<u64>,
    /// The reason in words, as printed.
    pub reason: Option<String>,
    /// Further lines: the watchdog's account, dyld's list of libraries, the termination description.
    pub details: Vec<String>,
    /// The process that did it.
    pub by_process: Option<String>,
    /// That process's id.
    pub by_pid: Option<u64>,
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
    /// The share of one processor that it used over a short while, 1 for all of it.
    pub cpu_usage: Option<f64>,
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

/// One frame. First what the report says, then what symbolizing adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The number that the report gives it, plus one for each frame put before it
    /// ([`add_register_frames`](crate::add_register_frames)). Inline rows share their machine frame's.
    pub index: u32,
    /// The code address, and how it is to be looked up; `None` where the report has none.
    pub address: Option<FrameAddress>,
    /// How it was found.
    pub trust: Trust,
    /// Position in [`Report::images`] of the image that it lies in.
    pub image: Option<usize>,
    /// The image's name as the frame states it.
    pub image_name: Option<String>,
    /// Bytes from the image's load address, where the report states it.
    pub image_offset: Option<u64>,
    /// The name that the report itself gives.
    pub reported: Option<ReportedSymbol>,
    /// Whether the report marks this row as inlined into the next.
    pub inlined: bool,
    /// Where the frame stands in the report's text, in bytes: a whole line without its line break, or a JSON
    /// object. `None` where it does not stand there.
    pub span: Option<Range<usize>>,
    /// The functions here, innermost first; filled by symbolizing.
    pub functions: Vec<Function>,
    /// A symbol table's answer, where debug info had none.
    pub symbol: Option<Symbol>,
    /// Why there is no name, where symbolizing found none.
    pub reason: Option<Reason>,
    /// Bytes from the start of the function that the code belongs to (the last of [`Frame::functions`]) to the
    /// address that the report states, also where that is a return address; where symbolizing knew it.
    pub function_offset: Option<u64>,
    /// The stated address of the frame's instruction; of a return address, that of the call before it. What Android's
    /// tools print as `pc`, the Thumb bit included. Only for stacks that were walked here.
    pub relative_pc: Option<Svma>,
}

/// A name that a report states for a frame.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReportedSymbol {
    /// The name, as printed; possibly cut.
    pub name: String,
    /// Bytes from its start.
    pub offset: Option<u64>,
    /// The source file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
}

/// One image of the process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Image {
    /// Its file's name.
    pub name: String,
    /// Its path on the device.
    pub path: Option<String>,
    /// Its identity.
    pub id: Option<ImageId>,
    /// Its architecture.
    pub arch: Option<Arch>,
    /// Where its first byte was mapped.
    pub load_address: Avma,
    /// The first address behind it, where the report states a size.
    pub end_address: Option<Avma>,
    /// Its bundle identifier.
    pub bundle_id: Option<String>,
    /// Its version as printed.
    pub version: Option<String>,
    /// Whether the report marks it as third party's (`+` before its name); reports that use no marks have `false`
    /// everywhere.
    pub third_party: bool,
    /// Where the system found it, in Apple's letter: `P` process, `S` shared cache, `K` kernel…
    pub source: Option<String>,
}

/// A library's last words.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AppInfo {
    /// The library that wrote them, where the report says.
    pub image: Option<String>,
    /// The lines.
    pub lines: Vec<String>,
}

/// A `Key: value` line, or a JSON member printed as one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Field {
    /// The key as printed.
    pub key: String,
    /// The value as printed, without surrounding blanks.
    pub value: String,
}

/// A titled block of text.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Section {
    /// The title, without its colon.
    pub title: String,
    /// The text below it.
    pub text: String,
}

impl Frame {
    /// A frame of which nothing is known but its number.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            address: None,
            trust: Trust::Report,
            image: None,
            image_name: None,
            image_offset: None,
            reported: None,
            inlined: false,
            span: None,
            functions: Vec::new(),
            symbol: None,
            reason: None,
            function_offset: None,
            relative_pc: None,
        }
    }

    /// The readable names at this frame, innermost first: what symbolizing found, else what the report says.
    /// `<redacted>` is no name.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let reported = self.reported.as_ref().map(|symbol| symbol.name.as_str());
        let symbol = self.symbol.as_ref().map(|symbol| symbol.name.as_str());
        let fallback = if self.functions.is_empty() { symbol.or(reported) } else { None };
        let functions = self.functions.iter().map(|function| function.name.as_str());
        functions.chain(fallback).filter(|name| !name.is_empty() && *name != "<redacted>")
    }
}

impl Report {
    /// The thread that the report blames.
    pub fn crashed(&self) -> Option<&Thread> {
        self.threads.get(self.crashed_thread?)
    }

    /// The frames whose code tells whose fault it is: where the uncaught exception was thrown if the report has
    /// that, else the blamed thread. A report without threads is a bare backtrace, which then is all there is.
    pub fn fault_frames(&self) -> &[Frame] {
        let thrown = self.backtraces.iter().find(|backtrace| backtrace.is_exception);
        let crashed = self.crashed().map(|thread| thread.frames.as_slice());
        let bare = self.backtraces.first().filter(|_| self.threads.is_empty());
        thrown
            .map(|backtrace| backtrace.frames.as_slice())
            .or(crashed)
            .or(bare.map(|backtrace| backtrace.frames.as_slice()))
            .unwrap_or_default()
    }

    /// Every frame of the report, threads first.
    pub fn frames_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        let threads = self.threads.iter_mut().flat_map(|thread| &mut thread.frames);
        threads.chain(self.backtraces.iter_mut().flat_map(|backtrace| &mut backtrace.frames))
    }
}
