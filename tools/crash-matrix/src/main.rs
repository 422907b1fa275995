//! Crashes programs of many languages in many ways, and looks whether each left a complete report and ended as it does without the
//! handler: `cargo run --manifest-path tools/Cargo.toml -p crash-matrix -- DIR`. docs/crash.md has its figures. Needs gcc and g++; Go,
//! a JDK and Python where they are; root for full disks.
//!
//! DIR gets the programs and a journal: a chore that was ended goes on where it stood.
//!
//! Once in each cell the program leaves a core, too, where gdb is installed and cores go where the program is: the frames of the report are
//! held against gdb's.
//!
//! `--runs N` and `--other-runs N` say how often each kind is run in C (100) and in each other host (3), `--host` and `--kind` choose
//! some, `--cost` measures what a crash costs instead, with crashpad's handler beside (`--runs` rounds), `--debug` has the library without
//! optimization, `--short` begins anew and runs each kind once in C and some in other hosts, without gdb, `--without-gdb` leaves gdb out, `--program` names a
//! `backtrail` that is there, in the place of building one.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod build;
mod cost;
mod gdb;
mod hosts;
mod journal;
mod judge;
mod kinds;
mod power_cut;
mod run;

use build::Libraries;
use gdb::Beside;
use hosts::Host;
use journal::Journal;
use kinds::Kind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What fails with a sentence.
type Result<T> = std::result::Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match Chore::read(&arguments).and_then(|chore| chore.run()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("crash-matrix: {message}");
            ExitCode::from(2)
        }
    }
}

struct Chore {
    directory: PathBuf,
    /// `backtrail`, where it is not to be built.
    program: Option<PathBuf>,
    hosts: Vec<&'static str>,
    kinds: Vec<Kind>,
    runs: usize,
    other_runs: usize,
    is_release: bool,
    is_short: bool,
    is_cost: bool,
    /// Whether gdb looks at a core of each cell, too.
    is_beside_gdb: bool,
}

/// In the short form other hosts have these: what their runtimes do with faults differs most.
const SHORT: [&str; 5] = ["abort", "throw", "null", "overflow-in-thread", "in-fork"];

impl Chore {
    fn read(arguments: &[String]) -> Result<Self> {
        let usage = "expected DIR [--runs N] [--other-runs N] [--host NAME]… [--kind NAME]… [--cost] [--program BACKTRAIL] [--debug] [--short] [--without-gdb]";
        let mut chore = Self {
            directory: PathBuf::new(),
            program: None,
            hosts: Vec::new(),
            kinds: Vec::new(),
            runs: 100,
            other_runs: 3,
            is_release: true,
            is_short: false,
            is_cost: false,
            is_beside_gdb: true,
        };
        let known = kinds::all();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument}: {usage}"));
            let number = |text: &String| text.parse().map_err(|_| format!("{text}: expected a number"));
            match argument.as_str() {
                "--runs" => chore.runs = number(value()?)?,
                "--other-runs" => chore.other_runs = number(value()?)?,
                "--program" => chore.program = Some(value()?.into()),
                "--cost" => chore.is_cost = true,
                "--debug" => chore.is_release = false,
                "--without-gdb" => chore.is_beside_gdb = false,
                "--short" => {
                    (chore.is_short, chore.runs, chore.other_runs) = (true, 1, 1);
                    chore.is_beside_gdb = false;
                }
                "--host" => {
                    let wanted = value()?;
                    let host = hosts::NAMES.into_iter().find(|name| name == wanted);
                    chore
                        .hosts
                        .push(host.ok_or_else(|| format!("{wanted}: expected one of {:?}", hosts::NAMES))?);
                }
                "--kind" => {
                    let wanted = value()?;
                    let before = chore.kinds.len();
                    chore
                        .kinds
                        .extend(known.iter().filter(|kind| kind.name.starts_with(wanted.as_str())).cloned());
                    if chore.kinds.len() == before {
                        let names: Vec<_> = known.iter().map(|kind| kind.name.as_str()).collect();
                        return Err(format!("{wanted}: expected one of {names:?}"));
                    }
                }
                path if chore.directory.as_os_str().is_empty() && !path.starts_with("--") => {
                    chore.directory = path.into();
                }
                _ => return Err(usage.to_owned()),
            }
        }
        if chore.directory.as_os_str().is_empty() {
            return Err(usage.to_owned());
        }
        if chore.hosts.is_empty() {
            chore.hosts = hosts::NAMES.to_vec();
        }
        if chore.kinds.is_empty() {
            chore.kinds = known;
        }
        Ok(chore)
    }

    fn run(&self) -> Result<bool> {
        let shown = |error: std::io::Error| format!("{}: {error}", self.directory.display());
        std::fs::create_dir_all(&self.directory).map_err(shown)?;
        let directory = self.directory.canonicalize().map_err(shown)?;
        let libraries = build::libraries(&directory, self.is_release, self.program.as_deref())?;
        if self.is_cost {
            return cost::run(&directory, &libraries, self.runs).map(|()| true);
        }
        hosts::shared(&directory)?;
        if self.is_short {
            let _ = std::fs::remove_file(directory.join("journal"));
        }
        let journal = Mutex::new(Journal::open(&directory.join("journal"), &build::commit())?);
        let possible = if self.is_beside_gdb { gdb::is_possible() } else { Err(String::new()) };
        let beside_gdb = possible.is_ok();
        if let Err(why) = possible
            && self.is_beside_gdb
        {
            println!("not beside gdb: {why}");
        }
        // The kinds of C take as long as all the others together.
        let (first, second): (Vec<_>, Vec<_>) =
            self.hosts.iter().copied().partition(|name| !self.is_short || *name == "c");
        let run = |hosts: &[&'static str]| {
            hosts.iter().try_for_each(|name| match hosts::build(name, &directory, &libraries) {
                Ok(host) => self.run_host(&host, &directory, &libraries, beside_gdb, &journal),
                Err(why) => self
                    .kinds
                    .iter()
                    .try_for_each(|kind| locked(&journal).add(name, &kind.name, "missing", &why)),
            })
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(&second));
            let own = run(&first);
            own.and(other.join().map_err(|_| "a thread failed".to_owned())?)
        })?;
        let kinds: Vec<_> = self.kinds.iter().map(|kind| kind.name.clone()).collect();
        let (table, mut is_good) = locked(&journal).table(&self.hosts, &kinds);
        println!("{table}");
        if self.hosts.contains(&"c") {
            is_good &= power_cuts(&directory, &libraries)?;
        }
        Ok(is_good)
    }

    fn run_host(
        &self,
        host: &Host,
        directory: &Path,
        libraries: &Libraries,
        is_beside_gdb: bool,
        journal: &Mutex<Journal>,
    ) -> Result<()> {
        let runs = if host.name == "c" { self.runs } else { self.other_runs };
        for kind in &self.kinds {
            if self.is_short && host.name != "c" && !SHORT.contains(&kind.name.as_str()) {
                continue;
            }
            // It damages a list of glibc's, and would take memory for ever where there is another malloc.
            if host.aborts_instead() && kind.name == "malloc-locked" {
                locked(journal).add(
                    host.name,
                    &kind.name,
                    "missing",
                    "AddressSanitizer has its own malloc",
                )?;
                continue;
            }
            let scratch = directory.join("run").join(host.name).join(&kind.name);
            std::fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
            run_cell(host, kind, runs, libraries, &scratch, journal)?;
            if is_beside_gdb {
                run_beside_gdb(host, kind, libraries, &scratch, journal)?;
            }
            let _ = std::fs::remove_dir_all(&scratch);
        }
        Ok(())
    }
}

/// Crashes a host once more in this way, beside gdb.
fn run_beside_gdb(
    host: &Host,
    kind: &Kind,
    libraries: &Libraries,
    scratch: &Path,
    journal: &Mutex<Journal>,
) -> Result<()> {
    if locked(journal).cell(host.name, &kind.name).beside.is_some() {
        return Ok(());
    }
    let beside = gdb::compare(host, kind, libraries, scratch)?;
    if let Beside::Different(how) = &beside {
        eprintln!("{} {}: beside gdb: {how}", host.name, kind.name);
    }
    locked(journal).add_beside(host.name, &kind.name, &beside)
}

fn locked(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Crashes a host in one way, as often as is wanted and has not been done yet.
fn run_cell(
    host: &Host,
    kind: &Kind,
    runs: usize,
    libraries: &Libraries,
    scratch: &Path,
    journal: &Mutex<Journal>,
) -> Result<()> {
    let done = locked(journal).cell(host.name, &kind.name).runs();
    if done >= runs {
        return Ok(());
    }
    let without = run::without(host, kind, libraries, scratch)?;
    for _ in done..runs {
        let ended = match run::with(host, kind, libraries, scratch) {
            Ok(ended) => ended,
            // No file system could be mounted.
            Err(why) if kind.folder != kinds::Folder::Usual => {
                locked(journal).add(host.name, &kind.name, "missing", &why)?;
                break;
            }
            Err(why) => return Err(why),
        };
        let judged = judge::judge(host, kind, without, &ended);
        // From within by the C++ host's handler of `terminate`; from outside it is read wherever it is. Rust's runtime catches it,
        // and ends the process without it.
        let is_told = (kind.name == "throw" && host.name == "c++")
            || (kind.name == "watcher-throw" && host.name != "rust");
        let tells = !is_told || ended.files.first().is_some_and(|(_, bytes)| judge::has_exception(bytes));
        let told = if tells { Ok(()) } else { Err("the exception is not told".to_owned()) };
        match judged.and(told) {
            Ok(()) => locked(journal).add(host.name, &kind.name, "good", "")?,
            Err(why) => {
                eprintln!("{} {}: {why}", host.name, kind.name);
                locked(journal).add(host.name, &kind.name, "bad", &why)?;
            }
        }
    }
    Ok(())
}

/// The process's own file, and the watcher's.
fn power_cuts(directory: &Path, libraries: &Libraries) -> Result<bool> {
    let host = hosts::build("c", directory, libraries)?;
    let mut is_good = true;
    for name in ["null", "watcher", "in-fork"] {
        let Some(kind) = kinds::all().into_iter().find(|kind| kind.name == name) else { continue };
        let scratch = directory.join("run").join("power-cut").join(name);
        std::fs::create_dir_all(&scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
        let record = scratch.join("record");
        let _ = std::fs::remove_file(&record);
        let crashes = scratch.join("crashes").display().to_string();
        let environment = [
            ("LD_PRELOAD", directory.join("librecord.so").display().to_string()),
            ("MATRIX_DIRECTORY", crashes.clone()),
            ("MATRIX_RECORD", record.display().to_string()),
        ];
        run::with_environment(&host, &kind, libraries, &scratch, &environment)?;
        let bytes = std::fs::read(&record).map_err(|error| format!("{}: {error}", record.display()))?;
        let changes = power_cut::read(&bytes)?;
        match power_cut::check(&crashes, &changes, &scratch.join("left")) {
            Ok(folders) => println!("power cut, {name}: {} calls, {folders} folders: good", changes.len()),
            Err(why) => {
                println!("power cut, {name}: {why}");
                is_good = false;
            }
        }
        let _ = std::fs::remove_dir_all(&scratch);
    }
    Ok(is_good)
}
