//! Hangs that an earlier run did not survive.

use crate::Hang;
use crate::read::{self, ReadError};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// What the names of hangs' files begin with.
pub(crate) const PREFIX: &str = "hang-";
/// What tells the file of a hang that lasts, or that its process did not survive.
pub(crate) const OPEN: &str = ".open.jsonl";

/// Bytes of a file that are looked at; a watch writes far less.
const MAX_BYTES: u64 = 64 << 20;

/// A hang that was still on when its process ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Unfinished {
    /// Its file.
    pub path: PathBuf,
    /// What the file says. Where not even its first line can be read, why.
    pub hang: Result<Hang, ReadError>,
}

impl Unfinished {
    /// Removes the file, so that it is not found again.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// The hangs in `directory` that no process that still runs is writing to, oldest first. A directory that is not there has none.
///
/// # Errors
/// Where the directory cannot be read. Files that cannot be are left out.
pub fn unfinished(directory: &Path) -> io::Result<Vec<Unfinished>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(OPEN) && path.is_file()
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_one).collect();
    paths.sort();
    Ok(paths.into_iter().filter_map(open).collect())
}

/// `None` for the file of a process that still runs, and for one that cannot be read.
fn open(path: PathBuf) -> Option<Unfinished> {
    let mut bytes = Vec::new();
    fs::File::open(&path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    match read::read(&bytes) {
        Ok(read) => {
            let pid = read.hang.process.pid;
            let is_running = read.incarnation.is_some() && pid.and_then(incarnation) == read.incarnation;
            (!is_running).then_some(Unfinished { path, hang: Ok(read.hang) })
        }
        // Its first line may be on its way.
        Err(error) => (!is_being_begun(&path)).then_some(Unfinished { path, hang: Err(error) }),
    }
}

/// Whether the process that a file is named after runs: `hang-TIME-PID-THREAD-NUMBER`.
fn is_being_begun(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut words = name.strip_suffix(OPEN).unwrap_or_default().rsplit('-');
    words.nth(2).and_then(|pid| pid.parse().ok()).and_then(incarnation).is_some()
}

/// What tells a process from a later one with the same id: when it began. `None` where there is no such process.
#[cfg(any(target_os = "macos", target_os = "ios"))]
pub(crate) fn incarnation(pid: u64) -> Option<String> {
    let started = backtrail_capture::local::process_start(u32::try_from(pid).ok()?)?;
    Some(format!("{}.{:06}", started.as_secs(), started.subsec_micros()))
}

/// What tells a process from a later one with the same id: the boot, and the time since then at which it began. `None` where
/// there is no such process, or the system does not tell.
#[cfg(not(any(target_os = "macos", target_os = "ios")))]
pub(crate) fn incarnation(pid: u64) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Fields 3 and 22, counted from behind the name, which may hold anything. proc(5).
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    // A process that has ended and that nobody has waited for yet is still listed.
    fields.next().filter(|state| !matches!(*state, "Z" | "X" | "x"))?;
    let started = fields.nth(18)?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    Some(format!("{}:{started}", boot.trim_end()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_nobody_waited_for_does_not_run() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = u64::from(child.id());
        while !fs::read_to_string(format!("/proc/{pid}/stat")).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        assert_eq!(incarnation(pid), None);
        child.wait().unwrap();
        assert!(incarnation(u64::from(std::process::id())).is_some());
    }
}
