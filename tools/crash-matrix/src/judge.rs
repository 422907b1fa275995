//! Whether a run left what it had to.

use crate::hosts::Host;
use crate::kinds::{Kind, Leaves};
use crate::run::{Ended, passed_on};
use backtrail_capture::Limits;
use backtrail_capture::crash_file::{self, CrashFile};
use std::process::ExitStatus;

type Judged = std::result::Result<(), String>;

fn expect(is_so: bool, why: impl FnOnce() -> String) -> Judged {
    if is_so { Ok(()) } else { Err(why()) }
}

/// `Err` says what is wrong.
pub(crate) fn judge(host: &Host, kind: &Kind, without: Option<ExitStatus>, ended: &Ended) -> Judged {
    let (Some(without), Some(status)) = (without, ended.status) else {
        return Err(
            if ended.status.is_none() { "hangs" } else { "hangs without the handler, too" }.to_owned()
        );
    };
    // What hosts end with where nothing crashed.
    let crashes = !status.code().is_some_and(|code| (95..100).contains(&code));
    expect(crashes, || format!("does not crash: {status}"))?;
    let is_same = match kind.is_followed {
        true => passed_on(status) == passed_on(without),
        false => status == without,
    };
    expect(is_same, || format!("ended with {status}; without the handler with {without}"))?;
    let names: Vec<_> = ended.files.iter().map(|(name, _)| name.as_str()).collect();
    if kind.leaves == Leaves::Nothing {
        // What the full disk has of it is an empty file, which is no report.
        let is_empty = ended.files.iter().all(|(_, bytes)| bytes.is_empty());
        return expect(is_empty, || format!("left {names:?} where there is no room"));
    }
    let [(name, bytes)] = &ended.files[..] else {
        return Err(format!("left {} files: {names:?}", names.len()));
    };
    expect(name.ends_with(".btcrash"), || format!("left {name}"))?;
    let file = crash_file::read(bytes, &Limits::default()).map_err(|error| error.to_string())?;
    let fault = file.snapshot.fault.as_ref().map_or("none", |fault| fault.name.as_str());
    // A runtime's other threads may come upon the list first, and find it wrong before they follow it.
    let may_abort = host.aborts_instead() || kind.name == "malloc-locked";
    let is_expected = fault == kind.signal || (may_abort && fault == "SIGABRT");
    expect(is_expected, || format!("signal {fault}; expected {}", kind.signal))?;
    expect(file.is_whole == (kind.leaves != Leaves::CutOff), || format!("whole: {}", file.is_whole))?;
    crashed_thread(kind, &file)?;
    match kind.leaves {
        Leaves::Report { workers } => complete(kind, &file, workers),
        Leaves::Shorter => {
            let says =
                file.snapshot.notes.iter().any(|note| note.contains("the program's own function crashed"));
            expect(says, || format!("does not say that the handler crashed: {:?}", file.snapshot.notes))
        }
        _ => Ok(()),
    }
}

fn crashed_thread(kind: &Kind, file: &CrashFile<'_>) -> Judged {
    let snapshot = &file.snapshot;
    let mut crashed = snapshot.threads.iter().filter(|thread| thread.is_crashed);
    let thread = crashed.next().ok_or("no thread that crashed")?;
    expect(crashed.next().is_none(), || "several threads that crashed".to_owned())?;
    expect(thread.registers.pc().is_some() && thread.registers.sp().is_some(), || "no registers".to_owned())?;
    let is_program = |image: &backtrail_capture::MappedImage| image.is_executable && image.id.is_some();
    expect(snapshot.images.iter().any(is_program), || "no program among the images".to_owned())?;
    if kind.leaves == Leaves::CutOff {
        return Ok(());
    }
    let frames = frames_of(file, thread.id);
    expect(frames >= kind.frames, || format!("{frames} frames; expected {} or more", kind.frames))
}

fn frames_of(file: &CrashFile<'_>, thread: Option<u64>) -> usize {
    file.walked.iter().find(|(id, _)| Some(*id) == thread).map_or(0, |(_, frames)| frames.len())
}

fn complete(kind: &Kind, file: &CrashFile<'_>, workers: usize) -> Judged {
    let snapshot = &file.snapshot;
    let named: Vec<_> = snapshot
        .threads
        .iter()
        .filter(|thread| thread.name.as_deref().is_some_and(|name| name.starts_with("worker ")))
        .collect();
    let walked = named
        .iter()
        .filter(|thread| thread.registers.pc().is_some() && frames_of(file, thread.id) >= 2)
        .count();
    expect(walked == workers, || {
        format!("{walked} of {} workers have stacks; expected {workers}: {:?}", named.len(), snapshot.notes)
    })?;
    expect(snapshot.memory.size() > 2048, || format!("{} bytes of memory", snapshot.memory.size()))?;
    expect(snapshot.mappings.len() > 10, || format!("{} mappings", snapshot.mappings.len()))?;
    expect(file.limits.len() == 5, || format!("{} limits", file.limits.len()))?;
    expect(file.open_file_count.is_some(), || "no open files".to_owned())?;
    let has_libc = snapshot.images.iter().any(|image| image.path.contains("libc.so") && image.id.is_some());
    expect(has_libc, || "the C library is no image".to_owned())?;
    if kind.is_followed {
        return Ok(());
    }
    let notes: Vec<_> = file.notes.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    expect(notes == [("version", "1.2.3")], || format!("notes {notes:?}"))?;
    expect(file.breadcrumbs.len() == 1, || format!("{} breadcrumbs", file.breadcrumbs.len()))
}

/// Whether the C++ host's handler of `terminate` told the exception.
pub(crate) fn has_exception(bytes: &[u8]) -> bool {
    let file = crash_file::read(bytes, &Limits::default());
    file.is_ok_and(|file| {
        file.exception.is_some_and(|(name, what)| name.contains("BadOrder") && what == "no order 17")
    })
}
