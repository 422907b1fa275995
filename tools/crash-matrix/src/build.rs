//! Building what crashes are caught with.

use crate::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo built.
#[derive(Debug)]
pub(crate) struct Libraries {
    pub(crate) program: PathBuf,
    pub(crate) altstack: PathBuf,
    is_release: bool,
}

impl Libraries {
    /// Builds the host in Rust.
    pub(crate) fn rust_host(&self) -> Result<PathBuf> {
        // Into the directory that this program is in: `DIRECTORY/debug/crash-matrix`.
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let target = program.ancestors().nth(2).unwrap_or(&program).display().to_string();
        let host = ["-p", "crash-matrix", "--example", "rust_host", "--target-dir", &target];
        one(&cargo(&root().join("tools"), &host, profile(self.is_release))?, "rust_host")
    }
}

fn profile(is_release: bool) -> &'static [&'static str] {
    if is_release { &["--release"] } else { &[] }
}

/// One of the files that cargo built.
fn one(files: &[String], name: &str) -> Result<PathBuf> {
    let found = files.iter().find(|file| Path::new(file).file_name().is_some_and(|own| own == name));
    found.map(PathBuf::from).ok_or_else(|| format!("cargo build: made no {name}"))
}

/// Runs a program that has to succeed, and gives what it printed on both outputs.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    if output.status.success() { Ok(text) } else { Err(format!("{command:?}: {}\n{text}", output.status)) }
}

pub(crate) fn has(program: &str, argument: &str) -> Result<()> {
    let found = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    if found { Ok(()) } else { Err(format!("no {program} here")) }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The commit, which a journal is of.
pub(crate) fn commit() -> String {
    let described =
        Command::new("git").args(["describe", "--always", "--dirty"]).current_dir(root()).output();
    let described = described.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    described.ok().filter(|commit| !commit.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// Builds the libraries, and the program where there is none; puts the library for C into `directory` under the names that linkers look
/// for.
pub(crate) fn libraries(directory: &Path, is_release: bool, program: Option<&Path>) -> Result<Libraries> {
    let mut packages = vec!["-p", "backtrail-ffi", "-p", "backtrail-altstack"];
    if program.is_none() {
        packages.extend(["-p", "backtrail-cli"]);
    }
    let own = cargo(&root(), &packages, profile(is_release))?;
    let library = one(&own, "libbacktrail_ffi.so")?;
    let soname = directory.join("libbacktrail.so.0");
    std::fs::copy(&library, &soname).map_err(|error| format!("{}: {error}", soname.display()))?;
    let link = directory.join("libbacktrail.so");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(&soname, &link).map_err(|error| format!("{}: {error}", link.display()))?;
    let program = match program {
        Some(program) => program.canonicalize().map_err(|error| format!("{}: {error}", program.display()))?,
        None => one(&own, "backtrail")?,
    };
    Ok(Libraries { program, altstack: one(&own, "libbacktrail_altstack.so")?, is_release })
}

fn cargo(directory: &Path, arguments: &[&str], profile: &[&str]) -> Result<Vec<String>> {
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.arg("build").args(arguments).args(profile).arg("--message-format=json").current_dir(directory);
    let output = build.output().map_err(|error| format!("{build:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{build:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files = messages.filter_map(|message| message.get("filenames")?.as_array().cloned()).flatten();
    Ok(files.filter_map(|file| Some(file.as_str()?.to_owned())).collect())
}
