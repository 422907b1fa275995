//! `fuzz`: builds and runs the fuzz targets with libFuzzer, on stable Rust.
//!
//! A target is a file in `fuzz/fuzz_targets/`; its seeds lie in `fuzz/corpus/NAME/`. `--sync` (every run does it)
//! lists the files in `fuzz/Cargo.toml`, so that adding a target is adding its file; `cargo fuzz` works with the
//! same layout where it and a nightly toolchain are installed.

use crate::{Result, sh};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What `cargo fuzz` would pass, without a sanitizer (those need nightly): coverage counters and their table for
/// libFuzzer, compared values for it to steal magic numbers from, and every check that release builds leave out.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks";

/// Everything below this line of `fuzz/Cargo.toml` is ours to write.
const MARK: &str = "# Written by `cargo xtask fuzz --sync`: one entry for each file in fuzz_targets/.\n";

const DEFAULT_SECONDS: u32 = 60;

#[derive(Debug, PartialEq)]
struct Options {
    seconds: u32,
    list: bool,
    sync_only: bool,
    targets: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let known = targets();
    sync()?;
    if options.list {
        known.iter().for_each(|name| println!("{name}"));
    }
    if options.list || options.sync_only {
        return Ok(());
    }
    if let Some(unknown) = options.targets.iter().find(|name| !known.contains(*name)) {
        return Err(format!("no target fuzz/fuzz_targets/{unknown}.rs"));
    }
    let chosen: Vec<&String> =
        known.iter().filter(|name| options.targets.is_empty() || options.targets.contains(name)).collect();
    let binaries = build(&chosen)?;
    sh::faults(&fuzz_all(&chosen, &binaries, options.seconds))
}

/// As many targets at a time as there are processors: each uses one. What went wrong, in the targets' order.
fn fuzz_all(names: &[&String], binaries: &[PathBuf], seconds: u32) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(BTreeMap::new());
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(name), Some(binary)) = (names.get(index), binaries.get(index)) else { return };
            if let Err(error) = fuzz(name, binary, seconds) {
                let fault = format!("{name}: {error}; what did it is in fuzz/artifacts/{name}");
                faults.lock().unwrap_or_else(PoisonError::into_inner).insert(index, fault);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
    });
    faults.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options =
        Options { seconds: DEFAULT_SECONDS, list: false, sync_only: false, targets: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--list" => options.list = true,
            "--sync" => options.sync_only = true,
            "--seconds" => {
                let seconds = rest.next().and_then(|number| number.parse().ok());
                options.seconds = seconds.ok_or("--seconds takes a number")?;
            }
            flag if flag.starts_with('-') => return Err(format!("no flag {flag}")),
            target => options.targets.push(target.to_owned()),
        }
    }
    Ok(options)
}

/// What is wrong with the list of targets, for `deps`.
pub(crate) fn faults() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let known = targets();
    if !known.is_empty() && sh::read(&manifest())? != synced(&sh::read(&manifest())?, &known)? {
        faults
            .push("fuzz/Cargo.toml: out of step with fuzz_targets/; run cargo xtask fuzz --sync".to_owned());
    }
    for name in &known {
        if sh::entries(&seeds(name)).is_empty() {
            faults.push(format!("fuzz/corpus/{name}: no seeds for the target of that name"));
        }
    }
    let seeded = sh::entries(&directory().join("corpus"));
    let names = seeded.iter().filter_map(|path| path.file_name()).map(|name| name.to_string_lossy());
    faults.extend(
        names
            .filter(|name| !known.contains(name.as_ref()))
            .map(|name| format!("fuzz/corpus/{name}: no target of that name")),
    );
    Ok(faults)
}

fn directory() -> PathBuf {
    sh::root().join("fuzz")
}

fn manifest() -> PathBuf {
    directory().join("Cargo.toml")
}

fn seeds(target: &str) -> PathBuf {
    directory().join("corpus").join(target)
}

fn targets() -> BTreeSet<String> {
    let files = sh::entries(&directory().join("fuzz_targets"));
    let sources = files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.filter_map(|path| path.file_stem()).map(|name| name.to_string_lossy().into_owned()).collect()
}

fn sync() -> Result<()> {
    let old = sh::read(&manifest())?;
    let new = synced(&old, &targets())?;
    if old == new { Ok(()) } else { sh::write(&manifest(), new) }
}

fn synced(manifest: &str, targets: &BTreeSet<String>) -> Result<String> {
    let (head, _) =
        manifest.split_once(MARK).ok_or_else(|| format!("fuzz/Cargo.toml lacks the line {MARK:?}"))?;
    let entry = |name: &String| {
        let path = format!("fuzz_targets/{name}.rs");
        format!("\n[[bin]]\nname = \"{name}\"\npath = \"{path}\"\ntest = false\ndoc = false\nbench = false\n")
    };
    Ok(format!("{head}{MARK}{}", targets.iter().map(entry).collect::<String>()))
}

/// Builds the targets and returns the programs' paths in the same order.
fn build(targets: &[&String]) -> Result<Vec<PathBuf>> {
    let host = host()?;
    let mut cargo = sh::cargo();
    // With a target named, the flags reach neither build scripts nor procedural macros.
    cargo
        .current_dir(directory())
        .args(["build", "--release", "--target", &host])
        .env("RUSTFLAGS", RUSTFLAGS);
    for name in targets {
        cargo.args(["--bin", name.as_str()]);
    }
    // Its own directory even where the environment names one: these flags would make the others build anew.
    let output = directory().join("target");
    sh::run(cargo.env("CARGO_TARGET_DIR", &output))?;
    Ok(targets.iter().map(|name| output.join(&host).join("release").join(name)).collect())
}

fn host() -> Result<String> {
    let version = sh::output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc -vV names no host")?.to_owned())
}

/// Runs one target on its seeds and on what it found before. New findings stay under `target`, out of the
/// repository, and so does what libFuzzer says of itself.
fn fuzz(name: &str, binary: &Path, seconds: u32) -> Result<()> {
    let found = directory().join("target/corpus").join(name);
    let artifacts = directory().join("artifacts").join(name);
    for made in [&found, &artifacts] {
        std::fs::create_dir_all(made).map_err(|error| format!("cannot make {}: {error}", made.display()))?;
    }
    let log_path = directory().join(format!("target/{name}.log"));
    let cannot = |error| format!("cannot write {}: {error}", log_path.display());
    let log = std::fs::File::create(&log_path).map_err(cannot)?;
    let mut command = std::process::Command::new(binary);
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=1024"])
        .args(["-print_final_stats=1", "-use_value_profile=1"])
        .args([&found, &seeds(name)])
        .stdout(log.try_clone().map_err(cannot)?)
        .stderr(log);
    let outcome = sh::run(&mut command);
    let log = std::fs::read(&log_path).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    match outcome {
        Ok(()) => {
            let runs = statistic(&log, "stat::number_of_executed_units:");
            println!("{name}: {runs} runs, {} MB", statistic(&log, "stat::peak_rss_mb:"));
            Ok(())
        }
        Err(error) => {
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.get(lines.len().saturating_sub(60)..).unwrap_or_default();
            Err(format!("{error}\n{}\n", tail.join("\n")))
        }
    }
}

fn statistic<'l>(log: &'l str, name: &str) -> &'l str {
    log.lines().find_map(|line| line.strip_prefix(name)).map_or("?", str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_follows_the_files() {
        let old = format!("[package]\n\n{MARK}\n[[bin]]\nname = \"gone\"\n");
        let new = synced(&old, &BTreeSet::from(["macho".to_owned()])).unwrap();
        assert!(new.starts_with("[package]\n"));
        assert!(new.contains("path = \"fuzz_targets/macho.rs\"") && !new.contains("gone"));
        assert_eq!(synced(&new, &BTreeSet::from(["macho".to_owned()])).unwrap(), new);
        assert!(synced("[package]", &BTreeSet::new()).is_err());
    }

    #[test]
    fn arguments() {
        let words: Vec<String> = ["--seconds", "5", "ips"].map(str::to_owned).into();
        let options = parse(&words).unwrap();
        assert_eq!((options.seconds, options.targets.as_slice()), (5, ["ips".to_owned()].as_slice()));
        assert!(parse(&["--seconds".to_owned()]).is_err());
        assert!(parse(&["--wat".to_owned()]).is_err());
    }
}
