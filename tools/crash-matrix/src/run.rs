//! One run of one program.

use crate::Result;
use crate::build::{Libraries, output};
use crate::hosts::Host;
use crate::kinds::{Folder, Kind};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A program that has not ended by then hangs. Far more than any patience of a handler.
const LONGEST: Duration = Duration::from_secs(180);

/// How a run ended, and the files that it left, with their names.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: it hung.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

/// Runs a host without the handler.
pub(crate) fn without(
    host: &Host,
    kind: &Kind,
    libraries: &Libraries,
    scratch: &Path,
) -> Result<Option<ExitStatus>> {
    let mut command = command(&host.command(&kind.name, None), host, kind, libraries, scratch);
    let status = end_of(&mut command)?;
    end_left(scratch);
    Ok(status)
}

/// Runs a host with the handler, or under `backtrail watch` if no handler can see the crash.
pub(crate) fn with(host: &Host, kind: &Kind, libraries: &Libraries, scratch: &Path) -> Result<Ended> {
    with_environment(host, kind, libraries, scratch, &[])
}

/// The same with further variables of the environment.
pub(crate) fn with_environment(
    host: &Host,
    kind: &Kind,
    libraries: &Libraries,
    scratch: &Path,
    environment: &[(&str, String)],
) -> Result<Ended> {
    let folder = scratch.join("crashes");
    let folder = PreparedFolder::new(&folder, kind.folder)?;
    let mut line = host.command(&kind.name, Some(&folder.path));
    if kind.is_followed {
        let out = folder.path.display().to_string();
        let watch = [libraries.program.display().to_string(), "watch".to_owned(), "--quiet".to_owned()];
        let to = ["--out".to_owned(), out, "--".to_owned()];
        line = watch.into_iter().chain(to).chain(line).collect();
    }
    let mut command = command(&line, host, kind, libraries, scratch);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let status = end_of(&mut command)?;
    // A watcher that stands still, children of a program that hung.
    end_left(&folder.path);
    let files = folder.files()?;
    Ok(Ended { status, files })
}

fn command(line: &[String], host: &Host, kind: &Kind, libraries: &Libraries, scratch: &Path) -> Command {
    // Through `env`: the library that gives threads stacks is for the program alone, not for whoever starts or follows it.
    let mut command = Command::new(line.first().map_or("", String::as_str));
    command.args(line.iter().skip(1)).current_dir(scratch);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.envs(host.environment().map(|(name, value)| (name, value)));
    command.env("MATRIX_WATCHER", &libraries.program);
    if kind.name.contains("overflow") {
        command.env("LD_PRELOAD", &libraries.altstack);
    }
    command
}

fn end_of(command: &mut Command) -> Result<Option<ExitStatus>> {
    let mut child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Ok(Some(status));
        }
        if begun.elapsed() > LONGEST {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Ends processes that have this path, which nobody else uses, in their command line.
fn end_left(path: &Path) {
    let path = path.as_os_str().as_encoded_bytes();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        if !id.bytes().all(|byte| byte.is_ascii_digit()) || id == std::process::id().to_string() {
            continue;
        }
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.split(|byte| *byte == 0).any(|argument| argument == path) {
            let _ = Command::new("kill").args(["-KILL", &id]).stderr(Stdio::null()).status();
        }
    }
}

/// A status as shells tell it, where the program was run by one that passes it on.
pub(crate) fn passed_on(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

/// Where reports go.
struct PreparedFolder {
    path: PathBuf,
    is_mounted: bool,
}

impl PreparedFolder {
    fn new(path: &Path, folder: Folder) -> Result<Self> {
        let _ = Command::new("umount").arg(path).stderr(Stdio::null()).status();
        let _ = std::fs::remove_dir_all(path);
        std::fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut made = Self { path: path.to_owned(), is_mounted: false };
        let size = match folder {
            Folder::Usual => return Ok(made),
            Folder::Own => 1 << 20,
            Folder::Room(size) => size,
        };
        // The system gives whole pages, and none for 0.
        let size = format!("size={}", size.max(4096));
        output(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(path))?;
        made.is_mounted = true;
        if folder == Folder::Room(0) {
            let filled = std::fs::write(path.join("filled"), [1; 4096]);
            filled.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(made)
    }

    fn files(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let shown = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(shown)? {
            let entry = entry.map_err(shown)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "filled" && name != "btcrash.reserve" {
                files.push((name, std::fs::read(entry.path()).map_err(shown)?));
            }
        }
        Ok(files)
    }
}

impl Drop for PreparedFolder {
    fn drop(&mut self) {
        if self.is_mounted {
            let _ = Command::new("umount").arg(&self.path).status();
        }
        let _ = std::fs::remove_dir_all(&self.path);
    }
}
