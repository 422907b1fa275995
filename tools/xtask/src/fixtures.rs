//! `fixtures`: rebuilds what lies in `fixtures/` and is made, not written.
//!
//! So far that is the sample: our own small app with an SDK in it, cross-compiled from `fixtures/sample/source`, its
//! debug files, crash reports of it, and the right answers. The answers come from marks in the source; where an
//! address of a mark is, LLVM's tools say. Nothing of backtrail takes part, so the answers can test it.
//!
//! The same sources and tools give the same bytes. Other versions of the tools may give others, so the version is
//! kept beside what was built, and `--check` compares only what the same version built.

mod build;
mod cases;
mod expected;
mod ips;
mod layout;
mod marks;
mod report;
mod state;
mod system;
mod text;

use crate::{Result, sh};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Where the sample lies.
const SAMPLE: &str = "fixtures/sample";
/// The version of the tools that built it.
const BUILT_WITH: &str = "built-with.txt";
/// What is made, below `fixtures/sample`; everything else there is written by hand.
const MADE: [&str; 5] = ["app", "symbols", "reports", "expected.json", BUILT_WITH];

/// Files by their path below `fixtures/sample`.
type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let check = match arguments {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => return Err("usage: cargo xtask fixtures [--check]".to_owned()),
    };
    let sample = sh::root().join(SAMPLE);
    let version = match build::tool_version() {
        Ok(version) => version,
        Err(missing) if check => {
            println!("fixtures: not checked, {missing}");
            return Ok(());
        }
        Err(missing) => return Err(missing),
    };
    let before = std::fs::read_to_string(sample.join(BUILT_WITH)).unwrap_or_default();
    if check && before != version {
        println!("fixtures: not checked, they were built with {before:?} and here is {version:?}");
        return Ok(());
    }
    let files = make(&sample, version)?;
    if check { compare(&sample, &files) } else { replace(&sample, &files) }
}

fn make(sample: &Path, version: String) -> Result<Files> {
    let scratch = sh::root().join("target/xtask-fixtures");
    let _ = std::fs::remove_dir_all(&scratch);
    let marks = marks::read(&sample.join("source"))?;
    let mut files = build::build(&sample.join("source"), &scratch)?;
    let layouts = layout::read(&scratch, &files)?;
    let mut answers = Vec::new();
    for case in cases::all() {
        let report = report::lay_out(&case, &layouts, &marks)?;
        let path = |extension: &str| Path::new("reports").join(format!("{}.{extension}", case.name));
        files.insert(path("crash"), text::print(&report).into_bytes());
        files.insert(path("ips"), ips::print(&report)?.into_bytes());
        answers.push(expected::case(&report));
    }
    files.insert("expected.json".into(), expected::print(&layouts, &answers)?.into_bytes());
    files.insert(BUILT_WITH.into(), version.into_bytes());
    Ok(files)
}

/// Every made file that is there now.
fn existing(sample: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut open: Vec<PathBuf> = MADE.iter().map(|name| sample.join(name)).collect();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(sh::entries(&path));
        } else if path.is_file() {
            found.extend(path.strip_prefix(sample).map(Path::to_path_buf));
        }
    }
    found
}

fn compare(sample: &Path, files: &Files) -> Result<()> {
    let mut faults = Vec::new();
    for (path, bytes) in files {
        match std::fs::read(sample.join(path)) {
            Ok(there) if there == *bytes => {}
            Ok(_) => faults.push(format!("{SAMPLE}/{}: a rebuild differs", path.display())),
            Err(_) => faults.push(format!("{SAMPLE}/{}: missing", path.display())),
        }
    }
    let extra = existing(sample).into_iter().filter(|path| !files.contains_key(path));
    faults.extend(extra.map(|path| format!("{SAMPLE}/{}: a rebuild does not make it", path.display())));
    println!("fixtures: {} files compared", files.len());
    sh::faults(&faults)
}

fn replace(sample: &Path, files: &Files) -> Result<()> {
    for path in existing(sample).into_iter().filter(|path| !files.contains_key(path)) {
        std::fs::remove_file(sample.join(&path))
            .map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
    }
    for (path, bytes) in files {
        sh::write(&sample.join(path), bytes)?;
    }
    println!("fixtures: {} files made", files.len());
    Ok(())
}
