//! Builds of the program, and its crashes.

use crate::Result;
use crate::program::{Bug, source};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One crash.
pub(crate) struct Crash {
    pub(crate) bug: &'static str,
    /// Processor, optimisation, release, way: `x86_64 -O2 1 menu`.
    pub(crate) build: String,
    pub(crate) core: PathBuf,
    /// Where the build's debug information is.
    pub(crate) symbols: PathBuf,
}

/// Compilers, and what runs their programs. Cores of qemu do not name the program's files, so that there are none of arm64.
const ARCHITECTURES: [(&str, &str, &str, Option<&str>); 1] = [("x86_64", "g++", "objcopy", None)];

const LEVELS: [&str; 3] = ["-O0", "-O2", "-O3"];

/// Releases of the program.
const RELEASES: usize = 3;

/// The ways on which each bug is reached.
const WAYS: [&str; 2] = ["menu", "script"];

/// Builds the program and crashes it, in the builds that are wanted, at each of these bugs on each way; what is there from an earlier run is taken.
pub(crate) fn crash_all(
    directory: &Path,
    bugs: &[&'static Bug],
    is_wanted: fn(&str) -> bool,
) -> Result<Vec<Crash>> {
    let mut crashes = Vec::new();
    for (arch, compiler, objcopy, runner) in ARCHITECTURES {
        let is_there = |program: &str| {
            Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok()
        };
        if !is_there(compiler) || !runner.is_none_or(is_there) {
            println!("{arch} is left out: {compiler} or {} is not there", runner.unwrap_or_default());
            continue;
        }
        for release in 0..RELEASES {
            for level in LEVELS {
                let place = directory.join(format!("{arch}{level}-{release}"));
                let names = WAYS.map(|way| (way, format!("{arch} {level} {release} {way}")));
                let ways: Vec<_> = names.into_iter().filter(|(_, build)| is_wanted(build)).collect();
                if ways.is_empty() {
                    continue;
                }
                let symbols = build(&place, compiler, objcopy, level, release)?;
                for bug in bugs {
                    for (way, build) in &ways {
                        if let Some(core) = crash(&place, runner, bug.name, way)? {
                            let (build, symbols) = (build.clone(), symbols.clone());
                            crashes.push(Crash { bug: bug.name, build, core, symbols });
                        }
                    }
                }
            }
        }
    }
    Ok(crashes)
}

/// The program that runs is stripped, as programs are where they crash; its debug information lies elsewhere.
fn build(place: &Path, compiler: &str, objcopy: &str, level: &str, release: usize) -> Result<PathBuf> {
    let symbols = place.join("symbols");
    fs::create_dir_all(&symbols).map_err(|error| format!("{}: {error}", place.display()))?;
    let debug = symbols.join("app.debug");
    if debug.exists() {
        return Ok(symbols);
    }
    let file = place.join("app.cpp");
    fs::write(&file, source(release)).map_err(|error| format!("{}: {error}", file.display()))?;
    let app = place.join("app");
    succeed(
        Command::new(compiler)
            // GCC folds functions whose code is equal; those of several bugs are. The symbols then name another one.
            .args(["-std=c++17", "-g", "-w", "-pthread", "-Wl,--build-id", "-fno-ipa-icf", level])
            .arg(&file)
            .arg("-o")
            .arg(&app),
    )?;
    succeed(Command::new(objcopy).arg("--only-keep-debug").arg(&app).arg(&debug))?;
    succeed(Command::new(objcopy).arg("--strip-all").arg(&app))?;
    Ok(symbols)
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}

/// Runs into a bug. `None` where nothing crashed: some undefined behaviour is harmless on one processor.
fn crash(place: &Path, runner: Option<&str>, bug: &str, way: &str) -> Result<Option<PathBuf>> {
    let core = place.join(format!("{bug}-{way}.core"));
    if core.exists() {
        return Ok(Some(core));
    }
    let room = place.join("room");
    let _ = fs::remove_dir_all(&room);
    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    let app = fs::canonicalize(place.join("app")).map_err(|error| format!("{}: {error}", place.display()))?;
    let start = match runner {
        Some(runner) => format!("{runner} -L /usr/aarch64-linux-gnu"),
        None => String::new(),
    };
    let script = format!("ulimit -c unlimited; ulimit -s 512; exec {start} \"$0\" {bug} {way}");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(&app).current_dir(&room).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_err(|error| format!("sh: {error}"))?;
    let found = fs::read_dir(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    let Some(found) = found.flatten().map(|entry| entry.path()).next() else { return Ok(None) };
    fs::rename(&found, &core).map_err(|error| format!("{}: {error}", core.display()))?;
    Ok(Some(core))
}
