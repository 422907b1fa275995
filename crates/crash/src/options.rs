//! What is caught and kept.

use crate::extra::Extra;
use crate::seen::Seen;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Signals that ask a program to end: a report of them is wanted by few.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requests {
    /// `SIGQUIT`.
    pub quit: bool,
    /// `SIGTERM`.
    pub terminate: bool,
    /// `SIGXCPU`: the limit of processor time.
    pub processor_time: bool,
}

/// What is caught and kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where crash files are written; made where it is not there.
    pub directory: PathBuf,
    /// Signals beside those of faults (SEGV, BUS, ILL, FPE, TRAP, ABRT, SYS).
    pub requests: Requests,
    /// Bytes of the stack of the thread that crashed.
    pub stack_bytes: usize,
    /// Bytes of the stack of each other thread.
    pub other_stack_bytes: usize,
    /// Threads beside the one that crashed.
    pub max_threads: usize,
    /// Frames of one thread.
    pub max_frames: usize,
    /// How long the thread that crashed waits for the file. Other threads are left out where they would take longer than half of it.
    pub patience: Duration,
    /// Files of earlier crashes that stay when the handler is installed; older ones are removed, and what did not come to its end
    /// is after a week.
    pub keep: usize,
    /// Bytes that are taken on the disk now, by a file in the directory, and given back when a crash finds the disk full. Where there is no
    /// room for them now, it goes without. 0: none.
    pub reserve: u64,
    /// The release of the program. With it each run is counted, for rates of crashes: a file beside the crash files tells the next
    /// start how it ended ([`pending_sessions`](crate::pending_sessions)). It is the note `release` as well. 200 characters at most.
    pub release: Option<String>,
    /// Only crashes are kept where a frame of the thread that crashed lies in one of these ranges of addresses, for an SDK within
    /// somebody else's program: see [`image_of`](crate::image_of). Empty: all are kept.
    pub own_code: Vec<Range<u64>>,
    /// Says of each crash whether it is kept, before anything of the program's memory is written. It runs in the midst of the crash:
    /// it must not allocate or lock; if it crashes itself or does not return in time, a shorter file is kept, which says so. If it panics,
    /// the crash is kept.
    pub filter: Option<fn(&Seen<'_>) -> bool>,
    /// The program `backtrail`, to be started now as a watcher: it writes the file of a crash from outside. Where it has ended by then,
    /// does not answer for half of `patience`, or the process is a child of this one, the process writes the file itself, as
    /// without. Linux alone: elsewhere [`Handler::watcher`](crate::Handler::watcher) says that there is none.
    pub watcher: Option<PathBuf>,
    /// What the program adds when everything else is written; twice where a watcher does not answer. It runs in the midst of a crash: it must not allocate or lock; if it
    /// crashes, the file says so and is whole nevertheless.
    pub add: Option<fn(&mut Extra<'_>)>,
}

impl Options {
    /// The usual options.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into(), ..Self::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("crashes"),
            requests: Requests::default(),
            stack_bytes: 64 << 10,
            other_stack_bytes: 16 << 10,
            max_threads: 1000,
            max_frames: 256,
            patience: Duration::from_secs(5),
            keep: 50,
            reserve: 1 << 20,
            release: None,
            own_code: Vec::new(),
            filter: None,
            watcher: None,
            add: None,
        }
    }
}
