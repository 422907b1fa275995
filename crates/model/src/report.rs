//! What one input says: the event, its processes, and everything that has no field of its own.

use crate::{Field, Frame, Process, Section, Thread};
use backtrail_core::Avma;

/// Everything that one input says: a crash report, a core, a minidump, a saved stack, or the capture of a process that
/// runs. Names are filled in later.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it was read from.
    pub source: Source,
    /// The process that it is about, with its threads and images.
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
    /// What the program's own language threw, where a reporter inside of the program states it apart from any text.
    pub thrown: Option<ThrownException>,
    /// Who ended the process, and why.
    pub termination: Option<Termination>,
    /// The other processes, where the input has several: stackshots, spindumps, the table of a jetsam report.
    pub processes: Vec<Process>,
    /// What happened, in the input's words, where it is no crash: `hang`, `wakeups`, `jetsam (memory) event`.
    pub event: Option<String>,
    /// What libraries wrote down before the process ended (`asi`, "Application Specific Information").
    pub app_info: Vec<AppInfo>,
    /// Header and exception fields that the model has no place for, in the report's order.
    pub fields: Vec<Field>,
    /// Titled blocks that the model has no place for (VM regions, kernel triage, syslog…), as text.
    pub sections: Vec<Section>,
    /// What the reader found odd, one sentence each.
    pub notes: Vec<String>,
}

/// What a report was read from, by the words that JSON uses (`kind`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Source {
    /// Apple's text report (`.crash`), or another reporter's imitation of it.
    #[default]
    AppleText,
    /// Apple's JSON report (`.ips`), crash body.
    AppleIps,
    /// What iOS or macOS wrote down when it ended processes for want of memory.
    AppleJetsam,
    /// A kernel panic of Apple's systems, as JSON or text.
    ApplePanic,
    /// The stacks of all processes at one moment, as JSON.
    AppleStackshot,
    /// Samples of processes as text: `sample`, spindump, reports of hangs and of limits on CPU, wake-ups and disk writes.
    AppleSamples,
    /// Another `.ips` report of Apple's systems.
    AppleIpsOther,
    /// A payload of MetricKit.
    MetricKit,
    /// A crash log of Swift's runtime, as text or JSON.
    SwiftBacktrace,
    /// KSCrash's or SentryCrash's JSON report.
    KsCrash,
    /// PLCrashReporter's binary report.
    PlCrash,
    /// A Sentry event.
    Sentry,
    /// A Bugsnag event.
    Bugsnag,
    /// A log of an uncaught Objective-C exception, as apps write it.
    ExceptionLog,
    /// An ELF core.
    ElfCore,
    /// A minidump.
    Minidump,
    /// What backtrail's crash handler wrote inside of the process.
    CrashFile,
    /// A saved stack in libunwindstack's layout.
    SavedStack,
    /// A process that runs.
    Process,
    /// A tombstone of Android, as text or as a protocol buffer, or a reporter's imitation.
    AndroidTombstone,
    /// Android's trace of a process that did not respond.
    AndroidAnr,
    /// A Java exception with its stack.
    JavaTrace,
    /// The stacks of all threads of a Java virtual machine.
    JavaThreadDump,
    /// What a sanitizer of compilers found: AddressSanitizer and its kin, and libFuzzer's words.
    Sanitizer,
    /// Stacks as a debugger prints them: gdb, LLDB, eu-stack.
    DebuggerBacktrace,
    /// A panic, fatal error or data race of a Go program, or the stacks of its goroutines.
    GoTrace,
    /// A panic of a Rust program.
    RustPanic,
    /// The error log of a Java virtual machine that crashed (`hs_err_pid`).
    JavaErrorLog,
    /// A traceback of Python, or what its fault handler wrote.
    PythonTraceback,
    /// A diagnostic report of Node.js.
    NodeReport,
    /// An error of JavaScript with its stack.
    JavaScriptError,
    /// An unhandled exception of .NET.
    DotNetException,
    /// What Linux's kernel says of its own errors: oopses, warnings, stalls, panics.
    LinuxKernel,
    /// What Linux's kernel logs of programs: faults, and whom it killed for want of memory.
    KernelLog,
    /// A stack of Dart with addresses instead of names, as Flutter's programs print it.
    DartTrace,
    /// A report of CASR.
    Casr,
    /// What Windows wrote into its event log of a crash.
    WindowsEvent,
    /// An error that the runtime of PHP, Ruby, Erlang, Elixir, OCaml, Haskell, Lua, Julia or Tcl printed.
    RuntimeError,
}

impl Source {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AppleText => "apple-text",
            Self::AppleIps => "apple-ips",
            Self::AppleJetsam => "apple-jetsam",
            Self::ApplePanic => "apple-panic",
            Self::AppleStackshot => "apple-stackshot",
            Self::AppleSamples => "apple-samples",
            Self::AppleIpsOther => "apple-ips-other",
            Self::MetricKit => "metrickit",
            Self::SwiftBacktrace => "swift-backtrace",
            Self::KsCrash => "kscrash",
            Self::PlCrash => "plcrash",
            Self::Sentry => "sentry-event",
            Self::Bugsnag => "bugsnag-event",
            Self::ExceptionLog => "exception-log",
            Self::ElfCore => "elf-core",
            Self::Minidump => "minidump",
            Self::CrashFile => "backtrail-crash",
            Self::SavedStack => "offline",
            Self::Process => "process",
            Self::AndroidTombstone => "android-tombstone",
            Self::AndroidAnr => "android-anr",
            Self::JavaTrace => "java-trace",
            Self::JavaThreadDump => "java-thread-dump",
            Self::Sanitizer => "sanitizer",
            Self::DebuggerBacktrace => "debugger-backtrace",
            Self::GoTrace => "go-trace",
            Self::RustPanic => "rust-panic",
            Self::JavaErrorLog => "java-error-log",
            Self::PythonTraceback => "python-traceback",
            Self::NodeReport => "node-report",
            Self::JavaScriptError => "javascript-error",
            Self::DotNetException => "dotnet-exception",
            Self::LinuxKernel => "linux-kernel",
            Self::KernelLog => "kernel-log",
            Self::DartTrace => "dart-trace",
            Self::Casr => "casr",
            Self::WindowsEvent => "windows-event",
            Self::RuntimeError => "runtime-error",
        }
    }

    /// Whether it is of Android or of a Java virtual machine.
    pub fn is_android_or_java(self) -> bool {
        matches!(self, Self::AndroidTombstone | Self::AndroidAnr | Self::JavaTrace | Self::JavaThreadDump)
    }

    /// Whether a program's runtime, a sanitizer, a debugger or Linux's kernel wrote it: what servers leave in their logs.
    pub fn is_runtimes(self) -> bool {
        matches!(
            self,
            Self::Sanitizer
                | Self::DebuggerBacktrace
                | Self::GoTrace
                | Self::RustPanic
                | Self::JavaErrorLog
                | Self::PythonTraceback
                | Self::NodeReport
                | Self::JavaScriptError
                | Self::DotNetException
                | Self::LinuxKernel
                | Self::KernelLog
                | Self::DartTrace
                | Self::Casr
                | Self::WindowsEvent
                | Self::RuntimeError
        )
    }

    /// Whether it holds registers and memory, from which its stacks were walked.
    pub fn is_capture(self) -> bool {
        matches!(self, Self::ElfCore | Self::Minidump | Self::CrashFile | Self::SavedStack | Self::Process)
    }

    /// Whether it has rows or objects that names can be written into.
    pub fn has_rows(self) -> bool {
        matches!(self, Self::AppleText | Self::AppleIps) || self.is_android_or_java()
    }

    /// Whether it is of one of Apple's systems, whoever wrote it.
    pub fn is_apple(self) -> bool {
        matches!(
            self,
            Self::AppleText
                | Self::AppleIps
                | Self::AppleJetsam
                | Self::ApplePanic
                | Self::AppleStackshot
                | Self::AppleSamples
                | Self::AppleIpsOther
                | Self::MetricKit
                | Self::KsCrash
                | Self::PlCrash
                | Self::ExceptionLog
        )
    }
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

/// An exception of a language, as a reporter inside of the program saw it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThrownException {
    /// What threw it.
    pub runtime: ThrowingRuntime,
    /// Its name or type: `NSRangeException`, `std::out_of_range`, `TypeError`.
    pub name: String,
    /// What it says.
    pub reason: Option<String>,
    /// Whether the program caught it and went on: it was reported, and ended nothing.
    pub is_handled: bool,
}

/// Whose exception it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ThrowingRuntime {
    /// Objective-C's.
    ObjectiveC,
    /// C++'s.
    Cpp,
    /// Another language's, or what the reporter itself noticed and words as one: an app that hangs.
    #[default]
    Other,
}

impl ThrownException {
    /// `NAME: reason`, or the one of them that is stated.
    pub fn text(&self) -> String {
        let parts = [Some(self.name.as_str()), self.reason.as_deref()];
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ")
    }
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

/// A library's last words.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AppInfo {
    /// The library that wrote them, where the report says.
    pub image: Option<String>,
    /// The lines.
    pub lines: Vec<String>,
}

impl Report {
    /// What the report says under a name that has no member here: a field's value, or a section's text where it is long. The
    /// case of letters does not count.
    pub fn text_of(&self, name: &str) -> Option<&str> {
        let fields = self.fields.iter().map(|field| (&field.key, &field.value));
        let sections = self.sections.iter().map(|section| (&section.title, &section.text));
        let mut all = fields.chain(sections);
        all.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, text)| text.as_str())
    }

    /// The thread that the report blames.
    pub fn crashed(&self) -> Option<&Thread> {
        self.process.crashed()
    }

    /// The frames whose code tells whose fault it is: where the uncaught exception was thrown if the report has
    /// that, else the blamed thread. A report without threads is a bare backtrace, which then is all there is.
    pub fn fault_frames(&self) -> &[Frame] {
        let process = &self.process;
        let thrown = process.backtraces.iter().find(|backtrace| backtrace.is_exception);
        let bare = process.backtraces.first().filter(|_| process.threads.is_empty());
        let crashed = self.crashed().map(|thread| thread.frames.as_slice());
        thrown
            .map(|backtrace| backtrace.frames.as_slice())
            .or(crashed)
            .or(bare.map(|backtrace| backtrace.frames.as_slice()))
            .unwrap_or_default()
    }

    /// Whether it has nothing of what a report is for: not even its process' path, which stands in its body.
    pub fn is_empty(&self) -> bool {
        self.event.is_none()
            && self.processes.is_empty()
            && self.process.trees.is_empty()
            && self.process.threads.is_empty()
            && self.process.backtraces.is_empty()
            && self.process.images.is_empty()
            && self.exception.is_none()
            && self.termination.is_none()
            && self.app_info.is_empty()
            && self.process.path.is_none()
            // Android's log may tell of an app that did not respond, and why, and no more.
            && !self.fields.iter().any(|field| field.key == "Subject")
    }

    /// The process that the report is about, then the others.
    pub fn all_processes_mut(&mut self) -> impl Iterator<Item = &mut Process> {
        std::iter::once(&mut self.process).chain(&mut self.processes)
    }
}
