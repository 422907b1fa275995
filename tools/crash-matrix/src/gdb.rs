//! The frames of a report against those that gdb finds in the core of the same crash.

use crate::Result;
use crate::build::{Libraries, has};
use crate::hosts::Host;
use crate::kinds::{Kind, Leaves};
use crate::run;
use backtrail_capture::crash_file;
use backtrail_capture::{Limits, Snapshot};
use backtrail_core::{AddrRange, Avma};
use stacks_compared::compare::{self, Verdict};
use stacks_compared::gdb::{self, Answer, Stack};
use stacks_compared::ours::{self, Thread};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long gdb may take, in seconds.
const PATIENCE: &str = "300";

/// What became of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Beside {
    /// The frames are the same, or how they differ is explained: in words.
    Same(String),
    /// How they differ.
    Different(String),
    /// There is nothing to compare, and why.
    NotCompared(String),
}

/// Says why nothing can be compared on this machine.
pub(crate) fn is_possible() -> Result<()> {
    has("gdb", "--version")?;
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    match pattern.trim() {
        // Into the directory that the program is in; the number of the process may be added.
        "core" | "core.%p" => Ok(()),
        other => Err(format!("cores go elsewhere: kernel.core_pattern is {other:?}")),
    }
}

/// Crashes a host once more, has it leave a core as well, and compares the thread that crashed and those that stood still.
pub(crate) fn compare(host: &Host, kind: &Kind, libraries: &Libraries, scratch: &Path) -> Result<Beside> {
    if matches!(kind.leaves, Leaves::CutOff | Leaves::Nothing) {
        return Ok(Beside::NotCompared("there is no whole report".to_owned()));
    }
    let environment = [("MATRIX_CORE", "1".to_owned()), ("GOTRACEBACK", "crash".to_owned())];
    let ended = run::with_environment(host, kind, libraries, scratch, &environment)?;
    let Some(core) = core_in(scratch) else {
        return Ok(Beside::NotCompared("left no core".to_owned()));
    };
    let [(_, bytes)] = &ended.files[..] else {
        return Ok(Beside::Different(format!("left {} files beside the core", ended.files.len())));
    };
    let report = scratch.join("beside.btcrash");
    std::fs::write(&report, bytes).map_err(|error| format!("{}: {error}", report.display()))?;
    let mut symbolicate = Command::new(&libraries.program);
    symbolicate.args(["symbolicate", "--format", "json"]).arg(&report);
    let threads = ours::read(&ours::asked(&mut symbolicate)?)?;
    let file = crash_file::read(bytes, &Limits::default()).map_err(|error| error.to_string())?;
    let program = file.snapshot.process.executable.as_deref().unwrap_or_default().to_owned();
    let stacks = match gdb::asked(gdb::command("gdb", PATIENCE).arg(program).arg("-c").arg(&core))? {
        Answer::Stacks(stacks) => stacks,
        Answer::Late => return Ok(Beside::NotCompared("gdb did not come to an end".to_owned())),
    };
    let _ = std::fs::remove_file(&core);
    let case = format!("{}/{}", host.name, kind.name);
    let mut counts = Counts::default();
    for thread in threads.iter().filter(|thread| thread.is_crashed || thread.name.starts_with("worker ")) {
        let Some(stack) = stacks.get(&thread.id) else {
            return Ok(Beside::Different(format!("thread {}: not in the core", thread.id)));
        };
        if let Err(how) = counts.add(&case, thread, stack, &file.snapshot) {
            return Ok(Beside::Different(format!("thread {} {:?}: {how}", thread.id, thread.name)));
        }
    }
    let crashed = threads.iter().filter(|thread| thread.is_crashed).count();
    if crashed != 1 {
        return Ok(Beside::Different(format!("{crashed} threads that crashed")));
    }
    Ok(Beside::Same(counts.shown()))
}

fn core_in(directory: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_core = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name == "core" || name.starts_with("core.")
    };
    entries.map(|entry| entry.path()).find(is_core)
}

#[derive(Default)]
struct Counts {
    threads: usize,
    frames: usize,
    /// Threads that did something else when the core was written: they had only been asked for their stacks.
    moved: usize,
    explained: Vec<&'static str>,
}

impl Counts {
    fn add(
        &mut self,
        case: &str,
        thread: &Thread,
        stack: &Stack,
        snapshot: &Snapshot<'_>,
    ) -> std::result::Result<(), String> {
        let Some(stack) = behind_handlers(thread, stack) else {
            if thread.is_crashed {
                let first = thread.frames.first().map(|frame| format!("{:#x}", frame.address));
                let theirs: Vec<_> =
                    stack.frames.iter().map(|frame| format!("{:#x}", frame.address)).collect();
                return Err(format!("its first frame, {first:?}, is none of gdb's: {}", theirs.join(" ")));
            }
            self.moved += 1;
            return Ok(());
        };
        match compare::compare(case, "gdb", thread, &stack, &[compare::ZERO_FRAME]) {
            Verdict::Different(how) => self.explained.push(why(thread, &stack, snapshot).ok_or(how)?),
            Verdict::Explained(_, why) => self.explained.push(why),
            Verdict::Same | Verdict::NotCompared => {}
        }
        self.threads += 1;
        self.frames += thread.frames.len();
        Ok(())
    }

    fn shown(&self) -> String {
        let mut text = format!("{} threads, {} frames", self.threads, self.frames);
        if self.moved > 0 {
            text += &format!(", {} threads had gone on", self.moved);
        }
        for why in &self.explained {
            text += &format!("; {why}");
        }
        text
    }
}

/// What a signal interrupted, where a handler was at work when the core was written: a runtime's that writes a report of its own and
/// aborts, or ours of a thread that had not been woken yet.
fn behind_handlers(thread: &Thread, stack: &Stack) -> Option<Stack> {
    let first = thread.frames.first()?.address;
    let is_first = |at: &usize| stack.frames.get(*at).is_some_and(|frame| frame.address == first);
    let is_behind_signal = |at: &usize| {
        at.checked_sub(1).is_none_or(|before| stack.frames.get(before).is_some_and(|frame| frame.is_signals))
    };
    let places = || (0..stack.frames.len()).filter(is_first);
    // Go has a fault go on as if it had called its panic.
    let begins = places().find(is_behind_signal).or_else(|| places().next().filter(|_| thread.is_crashed))?;
    let frames = stack.frames.get(begins..).unwrap_or_default().to_vec();
    Some(Stack { frames, stopped: stack.stopped.clone() })
}

/// Why a difference is gdb's mistake, where that can be proved; docs/crash.md has both reasons.
fn why(thread: &Thread, stack: &Stack, snapshot: &Snapshot<'_>) -> Option<&'static str> {
    let pairs = thread.frames.iter().zip(&stack.frames);
    let same = pairs.take_while(|(ours, theirs)| ours.address == theirs.address).count();
    let is_code = |address: u64| {
        let has = |range: &AddrRange<Avma>| range.contains(Avma::new(address));
        // A shorter report has images alone.
        snapshot.mappings.iter().any(|mapping| mapping.executable && has(&mapping.range))
            || snapshot.mappings.is_empty()
                && snapshot.images.iter().any(|image| image.range.as_ref().is_some_and(has))
    };
    match stack.frames.get(same) {
        // By the process's own mappings. The thread's first frame is where it stood, code or not.
        Some(theirs) if same > 0 && !is_code(theirs.address) => {
            Some("gdb goes on to an address that no code is at")
        }
        // It says that it has lost its way, and the source has it that all kinds come from there.
        None if !stack.stopped.is_empty() => {
            let mut rest = thread.frames.iter().skip(same).flat_map(|frame| &frame.functions);
            rest.any(|name| name == "host_run").then_some("gdb gives up before the function that called")
        }
        _ => None,
    }
}
