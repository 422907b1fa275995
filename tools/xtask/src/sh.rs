//! Running programs and listing files.

use crate::Result;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's directory, which is that of the product's workspace.
pub(crate) fn root() -> PathBuf {
    // Asked at run time first: work trees that share a target directory also share this program.
    let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let own = own.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    own.ancestors().nth(2).unwrap_or(&own).to_path_buf()
}

/// The directory of the workspace that this program and the other tools are in.
pub(crate) fn tools() -> PathBuf {
    root().join("tools")
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

/// Runs a program and returns what it printed; an exit code other than 0 is an error that quotes it
/// and its stderr.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| cannot_start(command, &error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        Err(format!("{} ended with {}:\n{said}", shown(command), output.status))
    }
}

/// Runs a program and returns what it printed, however it ended; its stderr is ours.
pub(crate) fn output_of_any_end(command: &mut Command) -> Result<String> {
    let output = command.stderr(std::process::Stdio::inherit()).output();
    let output = output.map_err(|error| cannot_start(command, &error))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Writes a file, making the directories that it lies in.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, bytes))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Makes a directory and those that it lies in.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// Moves a file within a file system.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    std::fs::rename(from, to)
        .map_err(|error| format!("cannot move {} to {}: {error}", from.display(), to.display()))
}

/// Builds a program in release mode and gives its path; `arguments` name it for `cargo build`.
pub(crate) fn built(arguments: &[&str]) -> Result<PathBuf> {
    built_for_tests(&[&["--release"], arguments].concat())
}

/// Builds a program as tests are built and gives its path.
pub(crate) fn built_for_tests(arguments: &[&str]) -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--message-format=json-render-diagnostics"]).args(arguments);
    let printed = output(command.stderr(std::process::Stdio::inherit()))?;
    let messages = printed.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter_map(|message| Some(message.get("executable")?.as_str()?.to_owned()));
    let program = programs.next_back();
    program.map(PathBuf::from).ok_or_else(|| format!("cargo build {}: made no program", arguments.join(" ")))
}

/// Builds a program of the tools' workspace in release mode and gives its path.
pub(crate) fn built_tool(package: &str, program: &str) -> Result<PathBuf> {
    built_tool_with(package, program, "tools", &[])
}

/// The same with further arguments for cargo, in a directory below `target/` of its own, since they make everything
/// build anew.
pub(crate) fn built_tool_with(
    package: &str,
    program: &str,
    target: &str,
    arguments: &[&str],
) -> Result<PathBuf> {
    let (manifest, target) = (tools().join("Cargo.toml"), root().join("target").join(target));
    let (manifest, target) = (manifest.to_string_lossy(), target.to_string_lossy());
    let place = ["--manifest-path", &*manifest, "--target-dir", &*target, "-p", package, "--bin", program];
    built(&[&place, arguments].concat())
}

/// The program with LLVM's major version in its name, as Debian has it.
pub(crate) const LLVM_SYMBOLIZER: &str = "llvm-symbolizer-22";

/// All files below a directory whose name ends in `.extension`, sorted; none where the directory is missing. `target`
/// directories and those whose name starts with a dot are left out.
pub(crate) fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        for path in entries(&directory) {
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

/// What a directory holds, sorted; nothing where it is missing.
pub(crate) fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A path as people write it: from the workspace's directory on, with slashes.
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
