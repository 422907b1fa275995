//! The watcher: what happens to a process and its children, one after the other.

use crate::error::{KeepError, WatchError};
use crate::file;
use crate::followed::{self, Later};
use crate::hang::HangWatch;
use crate::signals;
use backtrail_capture::Fault;
use backtrail_capture::crash_file::format::Event as FileEvent;
use backtrail_core::Avma;
use backtrail_model::Detail;
use backtrail_stacks::{StackOptions, Standing, standing};
use backtrail_store::Index;
use backtrail_sys::linux::Interrupts;
use backtrail_sys::linux::ptrace::RawRegisters;
use backtrail_sys::linux::tracer::{Event, Exit, Tracer};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// What is watched.
#[derive(Debug)]
pub enum Watched {
    /// A process that runs, by its id.
    Process(u32),
    /// A program that is started.
    Program(Command),
}

/// How to watch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where crash files are written; made where it is not there.
    pub directory: PathBuf,
    /// The first thread of the process neither ran nor entered another wait for so long: a hang. `None` looks for none.
    pub hang: Option<Duration>,
    /// Whether a process that ends with an exit code other than 0 is reported, with its last stacks.
    pub on_exit: bool,
    /// Reports that are kept. What comes later is counted.
    pub max_reports: usize,
}

impl Options {
    /// The usual options.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), hang: None, on_exit: false, max_reports: 100 }
    }
}

/// Why a report was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// A signal is about to end the process.
    Crash {
        /// Its number.
        signal: i32,
    },
    /// The first thread has not run for so long.
    Hang(Duration),
    /// The process ends with this exit code.
    Exit(i32),
}

/// A report that was kept, or why it was not.
#[derive(Debug)]
pub struct KeptReport {
    /// The process.
    pub pid: u32,
    /// Why.
    pub cause: Cause,
    /// The crash file; or why there is none, which does not end the watching.
    pub file: Result<PathBuf, String>,
    /// For how long the process stood still for it.
    pub stood: Duration,
}

/// Watches until the process and its children have ended, and says how the process did; `tell` gets each report. Files of images
/// that unwinding needs are looked for in `index`, in the system's debug directories and where the process has them.
///
/// The calling thread has to have no children that it waits for itself: their ends are taken for those of what is watched. A hang
/// is looked for by help of a real-time signal that nothing handles.
///
/// # Errors
/// Where the program cannot be started or the process cannot be followed.
pub fn watch(
    watched: Watched,
    options: &Options,
    index: &Index,
    tell: &mut dyn FnMut(KeptReport),
) -> Result<Exit, WatchError> {
    std::fs::create_dir_all(&options.directory)
        .map_err(|source| WatchError::Directory { path: options.directory.clone(), source })?;
    let tracer = Tracer::new(options.on_exit);
    let pid = match watched {
        Watched::Process(pid) => {
            tracer.attach(pid).map_err(|source| WatchError::Attach { pid, source })?;
            pid
        }
        Watched::Program(command) => {
            let program = command.get_program().to_string_lossy().into_owned();
            let pid = tracer.spawn(command).map_err(|source| WatchError::Start { program, source })?;
            tracer.leave_terminal_signals();
            pid
        }
    };
    let hang = options.hang.map(|limit| HangWatch::new(pid, limit));
    let watcher = Watcher {
        tracer,
        pid,
        options,
        index,
        tell,
        later: Later::default(),
        hang,
        exits: HashSet::new(),
        kept: 0,
        ended: None,
    };
    watcher.run()
}

struct Watcher<'w> {
    tracer: Tracer,
    pid: u32,
    options: &'w Options,
    index: &'w Index,
    tell: &'w mut dyn FnMut(KeptReport),
    later: Later,
    hang: Option<HangWatch>,
    /// Processes whose end has been reported: each of their threads ends.
    exits: HashSet<u32>,
    kept: usize,
    /// How the watched process itself ended.
    ended: Option<Exit>,
}

impl Watcher<'_> {
    fn run(mut self) -> Result<Exit, WatchError> {
        const ECHILD: i32 = 10;
        let mut looked = Instant::now();
        let pause = self.hang.as_ref().map(HangWatch::pause);
        let interrupts = pause.map(Interrupts::every).transpose().map_err(WatchError::Wait)?;
        loop {
            let happened = match self.later.next() {
                Some(happened) => Some(happened),
                None => match self.tracer.wait() {
                    Ok(happened) => happened,
                    // Nothing is left to be followed.
                    Err(error) if error.number == ECHILD => {
                        drop(interrupts);
                        return Ok(self.ended.unwrap_or(Exit::Code(0)));
                    }
                    Err(error) => return Err(WatchError::Wait(error)),
                },
            };
            if let Some((id, event)) = happened {
                self.handle(id, event);
            }
            if let Some(hang) = &mut self.hang
                && looked.elapsed() >= hang.pause()
            {
                looked = Instant::now();
                if let Some(stood) = hang.look() {
                    self.report(self.pid, None, Cause::Hang(stood));
                }
            }
        }
    }

    fn handle(&mut self, id: u32, event: Event) {
        match event {
            Event::Signal(signal) => {
                if signals::is_crash(id, signal) {
                    self.report(process_of(id), Some(id), Cause::Crash { signal });
                }
                self.tracer.go_on(id, signal);
            }
            Event::Stopped(_) => self.tracer.leave_stopped(id),
            Event::Ending(exit) => {
                if let Exit::Code(code) = exit
                    && code != 0
                    && self.exits.insert(process_of(id))
                {
                    self.report(process_of(id), Some(id), Cause::Exit(code));
                }
                self.tracer.go_on(id, 0);
            }
            Event::Interrupted | Event::Began(_) | Event::Executed => self.tracer.go_on(id, 0),
            Event::Ended(exit) => {
                if id == self.pid {
                    self.ended = Some(exit);
                    self.hang = None;
                }
                self.exits.remove(&id);
            }
        }
    }

    /// Stops a process, keeps a report of it, and lets all go on but for the thread that `event` is of.
    fn report(&mut self, pid: u32, thread: Option<u32>, cause: Cause) {
        self.kept += 1;
        let begun = Instant::now();
        let file = if self.kept > self.options.max_reports {
            Err(format!("{} reports have been kept, more are not", self.options.max_reports))
        } else {
            let stopped = followed::stop(&self.tracer, pid, thread, &mut self.later);
            let kept = self.keep(pid, thread, cause, &stopped.registers);
            stopped.go_on(&self.tracer);
            kept.map_err(|error| error.to_string())
        };
        if let Some(hang) = &mut self.hang {
            hang.was_stopped();
        }
        (self.tell)(KeptReport { pid, cause, file, stood: begun.elapsed() });
    }

    fn keep(
        &self,
        pid: u32,
        thread: Option<u32>,
        cause: Cause,
        registers: &HashMap<u32, RawRegisters>,
    ) -> Result<PathBuf, KeepError> {
        let fault = |signal: i32| {
            let info = thread.and_then(|id| self.tracer.signal_info(id).ok()).unwrap_or_default();
            let number = u64::from(signal.unsigned_abs());
            Fault::of_signal(number, info.code, info.address.map(Avma::new), info.sender.map(u64::from))
        };
        let (crashed, event) = match cause {
            Cause::Crash { signal } => (thread.map(|id| (id, fault(signal))), None),
            Cause::Hang(stood) => {
                (None, Some(FileEvent::Hang(u64::try_from(stood.as_millis()).unwrap_or(u64::MAX))))
            }
            Cause::Exit(code) => {
                let code = u64::from(code.unsigned_abs());
                (None, Some(FileEvent::Exit { thread: thread.unwrap_or(pid), code }))
            }
        };
        let process = Standing { pid, registers, crashed, event };
        let captured = standing(process, self.index, &options_of_stacks()).map_err(KeepError::Capture)?;
        file::keep(&self.options.directory, pid, &captured.file)
            .map_err(|(path, error)| KeepError::Write(path, error))
    }
}

/// Frames without names: those come when the file is read.
pub(crate) fn options_of_stacks() -> StackOptions {
    let mut options = StackOptions::default();
    options.detail = Detail::Addresses;
    options.cpu_window = Duration::ZERO;
    options
}

/// The process of a thread; of one that is gone, itself.
fn process_of(thread: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|id| id.trim().parse().ok()).unwrap_or(thread)
}
