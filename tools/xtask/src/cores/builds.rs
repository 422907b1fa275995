//! How a program is built.

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What it runs on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Machine {
    /// This one, with 64 or 32 bits.
    Host,
    /// Another one, emulated by qemu-user: its name there, and the directory of its libraries.
    Qemu(&'static str, &'static str),
}

/// Where a program's debug info is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DebugInfo {
    /// In it.
    Inside,
    /// Nowhere: all symbols are stripped too.
    Nowhere,
    /// In a file beside it that `.gnu_debuglink` names.
    Beside,
    /// In a directory of build ids.
    ByBuildId,
    /// In it, compressed.
    Compressed,
}

/// One way to build one source.
#[derive(Clone, Debug)]
pub(super) struct Build {
    /// What it is counted with.
    pub(super) family: &'static str,
    pub(super) name: String,
    /// Below `fixtures`.
    pub(super) source: &'static str,
    /// The compiler and its first arguments.
    pub(super) compiler: &'static [&'static str],
    pub(super) flags: Vec<&'static str>,
    pub(super) debug_info: DebugInfo,
    pub(super) machine: Machine,
}

/// A program, built.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) program: PathBuf,
    /// Directory of build ids with the debug info.
    pub(super) debug_directory: Option<PathBuf>,
}

/// `None` where the compiler is not installed, or has no libraries for what is asked.
pub(super) fn build(build: &Build, scratch: &Path) -> Result<Option<Built>> {
    let directory = scratch.join(format!("built-{}", build.name.replace('/', "_")));
    let program = directory.join("program");
    let debug_directory = directory.join("debug");
    let built = Built {
        program: program.clone(),
        debug_directory: Some(debug_directory.clone()).filter(|_| build.debug_info == DebugInfo::ByBuildId),
    };
    if program.is_file() {
        return Ok(Some(built));
    }
    if !compile(build, &directory)? {
        return Ok(None);
    }
    let whole = directory.join("whole");
    match build.debug_info {
        DebugInfo::Inside => sh::rename(&whole, &program)?,
        DebugInfo::Nowhere => objcopy(&["--strip-all"], &whole, &program)?,
        DebugInfo::Compressed => objcopy(&["--compress-debug-sections"], &whole, &program)?,
        DebugInfo::Beside => {
            let debug = directory.join("program.debug");
            objcopy(&["--only-keep-debug"], &whole, &debug)?;
            let link = format!("--add-gnu-debuglink={}", debug.display());
            objcopy(&["--strip-all", "-R", ".note.gnu.build-id", &link], &whole, &program)?;
        }
        DebugInfo::ByBuildId => {
            let id = build_id(&whole)?;
            let (first, rest) = id.split_at_checked(2).ok_or("the build id is too short")?;
            let file = debug_directory.join(".build-id").join(first).join(format!("{rest}.debug"));
            sh::make_directory(file.parent().unwrap_or(&debug_directory))?;
            objcopy(&["--only-keep-debug"], &whole, &file)?;
            objcopy(&["--strip-all"], &whole, &program)?;
        }
    }
    Ok(Some(built))
}

/// Whether it could be. Installed compilers must compile; only what they lack the libraries for is left out.
fn compile(build: &Build, directory: &Path) -> Result<bool> {
    sh::make_directory(directory)?;
    let source = sh::root().join("fixtures").join(build.source);
    let [name, first @ ..] = build.compiler else { return Err("no compiler".to_owned()) };
    let mut command = Command::new(name);
    command.args(first).args(&build.flags).arg("-o").arg(directory.join("whole")).arg(source);
    // Go keeps what it built before in the user's directory.
    command.env("GOCACHE", directory.join("go-cache")).env("GOFLAGS", "-trimpath").env("GO111MODULE", "off");
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(format!("cannot run {name}: {error}")),
    };
    let complaints = String::from_utf8_lossy(&output.stderr);
    let lacks = ["cannot find", "unable to find library", "No such file or directory"];
    if lacks.iter().any(|words| complaints.contains(words)) {
        return Ok(false);
    }
    let _ = std::fs::remove_dir_all(directory.join("go-cache"));
    if output.status.success() { Ok(true) } else { Err(format!("{}: {complaints}", build.name)) }
}

fn objcopy(arguments: &[&str], from: &Path, to: &Path) -> Result<()> {
    sh::run(Command::new("objcopy").args(arguments).arg(from).arg(to))
}

fn build_id(program: &Path) -> Result<String> {
    let notes = sh::output(Command::new("readelf").arg("-n").arg(program))?;
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.map(str::to_owned).ok_or_else(|| format!("{}: has no build id", program.display()))
}
