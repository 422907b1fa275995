//! Reports that others labelled: of Linux's kernel by syzbot, of fuzzers by ClusterFuzz, CrashProbe's by its tests' names.

use crate::Result;
use crate::reports::read_labelled;
use crate::score::print_labelled;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Files with their labels.
type Labelled = Vec<(String, PathBuf)>;

/// Groups each set and prints how well, beside simpler ways.
pub(crate) fn run(program: &Path, directory: &Path, corpus: &Path) -> Result<()> {
    let none = directory.join("none");
    fs::create_dir_all(&none).map_err(|error| format!("{}: {error}", none.display()))?;
    let sets = [
        ("Linux's kernel, by syzbot's titles", syzbot(directory, corpus)?, none.clone()),
        ("fuzzers' reports, by ClusterFuzz's type and state", clusterfuzz(corpus)?, none),
        ("CrashProbe, by test, with names", crashprobe(corpus)?, corpus.join("crashprobe/dSYMs")),
    ];
    for (title, labelled, symbols) in sets {
        let reports = read_labelled(program, &symbols, &labelled)?;
        let mut labels: Vec<&str> = reports.iter().map(|report| report.bug.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        println!("{title}: {} reports, {} labels", reports.len(), labels.len());
        print_labelled(&reports);
        println!();
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.sort();
    Ok(found)
}

/// The title is in the head of each file, which ends at the first empty line.
fn syzbot(directory: &Path, corpus: &Path) -> Result<Labelled> {
    let room = directory.join("syzbot");
    fs::create_dir_all(&room).map_err(|error| format!("{}: {error}", room.display()))?;
    let mut found = Labelled::new();
    for kind in ["kernel-oops", "kernel-other"] {
        for file in files(&corpus.join("kinds").join(kind))? {
            let text = read(&file)?;
            let Some((head, rest)) = text.split_once("\n\n") else { continue };
            let title = head.lines().find_map(|line| line.strip_prefix("TITLE: "));
            // Those that syzbot itself could not make out have no title of their own.
            let Some(title) = title.filter(|title| !title.contains("corrupted")) else { continue };
            let report = rest.split("\nREPORT:").next().unwrap_or(rest);
            let copy = room.join(file.file_name().unwrap_or_default());
            fs::write(&copy, report).map_err(|error| format!("{}: {error}", copy.display()))?;
            found.push((title.to_owned(), copy));
        }
    }
    Ok(found)
}

/// A table of file, test, type, address and state.
fn clusterfuzz(corpus: &Path) -> Result<Labelled> {
    let facts = read(&corpus.join("kinds/grouping/clusterfuzz-expected.tsv"))?;
    let mut states: BTreeMap<&str, String> = BTreeMap::new();
    for line in facts.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        if let [file, _, kind, _, state, ..] = *columns
            && kind != "\"\""
        {
            states.insert(file, format!("{kind} {state}"));
        }
    }
    let mut found = Labelled::new();
    for directory in files(&corpus.join("kinds"))?.into_iter().filter(|path| path.is_dir()) {
        for file in files(&directory)? {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            if let Some(state) = states.get(&*name) {
                found.push((state.clone(), file.clone()));
            }
        }
    }
    Ok(found)
}

fn crashprobe(corpus: &Path) -> Result<Labelled> {
    let mut found = Labelled::new();
    for arch in files(&corpus.join("crashprobe/reports"))?.into_iter().filter(|path| path.is_dir()) {
        for file in files(&arch)? {
            let test = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            found.push((test, file));
        }
    }
    Ok(found)
}
