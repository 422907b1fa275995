//! Runs of the program, for rates of crashes: how each ended is known at the next start.
//!
//! A run has a file, `TIME-PROCESS-START.btsession`, with its release and system. An exit that the program wanted adds `.ended`. The
//! next start finds how the others ended, and makes of each a file `….btsession.json`: a body for a server's `/api/P/sessions/`.

use crate::pending::{ENDING, PART};
use backtrail_sys::os::at_exit::at_exit;
use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::SystemTime;

/// What the file of a run ends with.
const SESSION: &str = ".btsession";
/// That of one that ended as it wanted to.
const ENDED: &str = ".btsession.ended";
/// What is known of one that is over.
const SETTLED: &str = ".btsession.json";
/// Ones that are over and were not sent; older ones are removed.
const MAX_SETTLED: usize = 1000;
/// A server takes no longer release or system.
const LONGEST: usize = 200;

/// This process and its run's file.
static OWN: OnceLock<(u32, PathBuf)> = OnceLock::new();

/// A run, as its file's name tells it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Run {
    /// Microseconds since 1970.
    begun: u128,
    pid: u32,
    /// When the process began, in the kernel's count: a later process of the same number has another.
    start: u64,
}

impl Run {
    fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let run = Self {
            begun: parts.next()?.parse().ok()?,
            pid: parts.next()?.parse().ok()?,
            start: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(run)
    }

    fn name(&self) -> String {
        format!("{}-{}-{}", self.begun, self.pid, self.start)
    }
}

/// When a process began; `None` of one that has ended, also where nobody has waited for it yet. proc(5), `stat`.
#[cfg(target_os = "linux")]
fn start_of(pid: u32) -> Option<u64> {
    let stat = backtrail_capture::procfs::Stat::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?;
    (!stat.state.is_gone()).then_some(stat.start)
}

/// When a process began, in microseconds since 1970.
#[cfg(not(target_os = "linux"))]
fn start_of(pid: u32) -> Option<u64> {
    u64::try_from(backtrail_sys::macos::process_start(pid)?.as_micros()).ok()
}

/// Begins the run of this process. Where its file cannot be written it is not counted.
pub(crate) fn begin(directory: &Path, release: &str, system: &str) {
    let pid = std::process::id();
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let Some(start) = start_of(pid) else { return };
    let run = Run { begun: time.as_micros(), pid, start };
    let line =
        |text: &str| text.chars().filter(|letter| !letter.is_control()).take(LONGEST).collect::<String>();
    let path = directory.join(run.name() + SESSION);
    if std::fs::write(&path, format!("{}\n{}\n", line(release), line(system))).is_ok()
        && OWN.set((pid, path)).is_ok()
    {
        at_exit(ended);
    }
}

/// Runs when the program exits.
extern "C" fn ended() {
    // A child by `fork` exits, too.
    if let Some((_, path)) = OWN.get().filter(|(pid, _)| *pid == std::process::id()) {
        let _ = std::fs::rename(path, path.with_extension("btsession.ended"));
    }
}

/// Finds how earlier runs ended, as long as their crash files are there. What cannot be read or written is left for the next time.
///
/// # Errors
/// Where the directory cannot be read.
pub(crate) fn settle(directory: &Path) -> io::Result<()> {
    let mut runs = Vec::new();
    let mut crashes = Vec::new();
    for name in names(directory)? {
        if let Some((run, has_ended)) = running(&name) {
            runs.push((run, has_ended, directory.join(&name)));
        } else {
            crashes.extend(crash(&name));
        }
    }
    runs.sort();
    for (position, (run, has_ended, path)) in runs.iter().enumerate() {
        // A later process may have the same number.
        let next = runs.iter().skip(position + 1).find(|(later, ..)| later.pid == run.pid);
        let until = next.map_or(u128::MAX, |(later, ..)| later.begun);
        let is_its = |(time, pid): &(u128, u32)| *pid == run.pid && (run.begun..until).contains(time);
        let outcome = if crashes.iter().any(is_its) {
            "crashed"
        } else if *has_ended {
            "well"
        } else if start_of(run.pid) == Some(run.start) {
            continue;
        } else {
            "abnormal"
        };
        if write_settled(directory, run, path, outcome).is_ok() {
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(())
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// A run that nothing is known of yet, and whether it ended as it wanted to.
fn running(name: &str) -> Option<(Run, bool)> {
    let of = |ending| name.strip_suffix(ending).and_then(Run::parse);
    of(SESSION).map(|run| (run, false)).or_else(|| of(ENDED).map(|run| (run, true)))
}

/// Time and process of a crash file, also of one that is not finished.
fn crash(name: &str) -> Option<(u128, u32)> {
    let name = name.strip_suffix(PART).map_or(name, |name| name.trim_end_matches('.'));
    let name = name.strip_suffix(ENDING)?.strip_suffix('.')?;
    let (time, pid) = name.split_once('-')?;
    Some((time.parse().ok()?, pid.parse().ok()?))
}

fn write_settled(directory: &Path, run: &Run, path: &Path, outcome: &str) -> io::Result<()> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(4096).read_to_string(&mut text)?;
    let mut lines = text.lines();
    let (release, system) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let (release, system) = (quoted(release), quoted(system));
    let id = run.name();
    let body = format!(
        r#"{{"release":{release},"os":{system},"sessions":[{{"id":"{id}","outcome":"{outcome}"}}]}}"#
    );
    let whole = directory.join(id + SETTLED);
    let part = whole.with_extension("json.part");
    std::fs::write(&part, body)?;
    std::fs::rename(part, whole)
}

/// A text as JSON has it: RFC 8259, section 7.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ..' ' => _ = write!(quoted, "\\u{:04x}", u32::from(letter)),
            letter => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Runs that are over, oldest first: each file is the body of a post that tells a server of one. How the runs of earlier processes
/// ended is found out before, by the crash files that are still there: to be called before those are removed or sent
/// (`upload::send_pending` does, with the feature `upload`).
///
/// # Errors
/// Where the directory cannot be read.
pub fn pending_sessions(directory: &Path) -> io::Result<Vec<PathBuf>> {
    settle(directory)?;
    let settled = names(directory)?.into_iter();
    let mut settled: Vec<_> =
        settled.filter_map(|name| Some((Run::parse(name.strip_suffix(SETTLED)?)?, name))).collect();
    settled.sort();
    Ok(settled.into_iter().map(|(_, name)| directory.join(name)).collect())
}

/// Finds how earlier runs ended, and removes what is far too much. What cannot be done is left.
pub(crate) fn tidy(directory: &Path) {
    let settled = pending_sessions(directory).unwrap_or_default();
    let too_many = settled.len().saturating_sub(MAX_SETTLED);
    for path in settled.into_iter().take(too_many) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    /// A process that has ended.
    fn gone() -> (u32, u64) {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, start) = (child.id(), start_of(child.id()).unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        (pid, start)
    }

    fn outcomes(directory: &Path) -> Vec<String> {
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
        pending_sessions(directory).unwrap().iter().map(read).collect()
    }

    #[test]
    fn how_runs_ended_is_told_by_what_they_left() {
        let directory = TempDir::new("sessions");
        let directory = directory.path();
        let (pid, start) = gone();
        let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
        let text = "orders \"1\"\nLinux 6.1\n";
        write(&format!("100-{pid}-{start}.btsession"), text);
        write(&format!("150-{pid}.btcrash"), "");
        // The same number, later: killed, then ended, then crashed with the disk full.
        write(&format!("200-{pid}-{}.btsession", start + 1), text);
        write(&format!("300-{pid}-{}.btsession.ended", start + 2), text);
        write(&format!("400-{pid}-{}.btsession", start + 3), text);
        write(&format!("450-{pid}.btcrash.part"), "");
        write("x.btsession", text);
        let own = std::process::id();
        let running = format!("500-{own}-{}.btsession", start_of(own).unwrap());
        write(&running, text);
        let told = |begun: u32, start: u64, outcome: &str| {
            format!(
                r#"{{"release":"orders \"1\"","os":"Linux 6.1","sessions":[{{"id":"{begun}-{pid}-{start}","outcome":"{outcome}"}}]}}"#
            )
        };
        let expected = [
            told(100, start, "crashed"),
            told(200, start + 1, "abnormal"),
            told(300, start + 2, "well"),
            told(400, start + 3, "crashed"),
        ];
        assert_eq!(outcomes(directory), expected);
        assert!(directory.join(running).exists());
        // Nothing is told otherwise once the crash files are gone.
        std::fs::remove_file(directory.join(format!("150-{pid}.btcrash"))).unwrap();
        assert_eq!(outcomes(directory), expected);
    }

    #[test]
    fn not_more_are_kept_than_anybody_wants() {
        let directory = TempDir::new("sessions");
        for number in 0..MAX_SETTLED + 5 {
            std::fs::write(directory.path().join(format!("{number}-1-1{SETTLED}")), "").unwrap();
        }
        tidy(directory.path());
        let left = pending_sessions(directory.path()).unwrap();
        assert_eq!(left.len(), MAX_SETTLED);
        assert!(left[0].ends_with(format!("5-1-1{SETTLED}")));
    }

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a\"b\\c\u{1}ü"), r#""a\"b\\c\u0001ü""#);
    }
}
