//! Running programs and listing files.

use crate::Result;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    // Asked at run time first: work trees that share a target folder also share this program.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    here.parent().unwrap_or(&here).to_path_buf()
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a program with our own output; an exit code other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| cannot_start(command, &error))?;
    if status.success() { Ok(()) } else { Err(format!("{} ended with {status}", shown(command))) }
}

/// Runs a program and returns what it printed; an exit code other than 0 is an error that quotes its stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| cannot_start(command, &error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(format!("{} ended with {}:\n{}", shown(command), output.status, text(&output.stderr)))
    }
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Writes a file, making the folders that it lies in.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, bytes))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// All files below a folder whose name ends in `.extension`, sorted; none where the folder is missing. `target`
/// folders and those whose name starts with a dot are left out.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        for path in entries(&folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && !path.is_symlink() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension() == Some(OsStr::new(extension)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// What a folder holds, sorted; nothing where it is missing.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A path as people write it: from the workspace's folder on, with slashes.
pub(crate) fn shown_path(path: &Path) -> String {
    let relative = path.strip_prefix(root()).unwrap_or(path);
    relative.display().to_string().replace('\\', "/")
}

/// One error of all faults, or none.
pub(crate) fn faults(faults: &[String]) -> Result<()> {
    match faults {
        [] => Ok(()),
        [fault] => Err(fault.clone()),
        _ => Err(format!("{} faults\n{}", faults.len(), faults.join("\n"))),
    }
}

fn cannot_start(command: &Command, error: &std::io::Error) -> String {
    format!("cannot run {}: {error}", command.get_program().to_string_lossy())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
