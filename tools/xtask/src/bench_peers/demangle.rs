//! Names of real programs, a million times a second or less: libraries in one process, and programs that filter text.

use crate::{Result, inputs, sh};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is measured: the scheme, the binary, how the names start, the shortest that is taken, and the other programs.
///
/// Short names are left out so that the mean is above 130 bytes: they are quick for all.
type Part = (&'static str, &'static str, &'static [&'static str], usize, &'static [&'static str]);

const PARTS: [Part; 3] = [
    ("cxx", "ceph-osd", &["_Z"], 60, &["llvm-cxxfilt-22", "c++filt"]),
    ("swift", "ExpoModulesCore", &["_$s"], 96, &[]),
    ("rust", "rg", &["_R", "_ZN"], 60, &["llvm-cxxfilt-22", "c++filt"]),
];

pub(super) fn run(runs: usize) -> Result<()> {
    let libraries = super::peer("peers-demangle")?;
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    for (scheme, binary, starts, shortest, programs) in PARTS {
        let (list, count, mean) = list(scheme, binary, starts, shortest)?;
        println!(
            "| {scheme}: {count} names of {binary}, {mean:.0} bytes on average | names a second | times ours | read |"
        );
        println!("| --- | --- | --- | --- |");
        in_one_process(&libraries, scheme, &list, count, runs)?;
        as_programs(&backtrail, programs, &list, count, runs)?;
        println!();
    }
    Ok(())
}

/// The names, a line each, in a file; how many, and how long on average.
fn list(scheme: &str, binary: &str, starts: &[&str], shortest: usize) -> Result<(PathBuf, usize, f64)> {
    let binary = inputs::get(binary)?;
    let mut command = Command::new("llvm-nm-22");
    command.args(["--no-demangle", "--quiet", "--format=just-symbols"]).arg(&binary);
    let printed = sh::output(&mut command)?;
    let names: BTreeSet<&str> = printed
        .lines()
        .filter(|name| name.len() >= shortest && starts.iter().any(|start| name.starts_with(start)))
        .collect();
    let path = inputs::directory().join(format!("names.{scheme}"));
    sh::write(&path, names.iter().map(|name| format!("{name}\n")).collect::<String>())?;
    let bytes: usize = names.iter().map(|name| name.len()).sum();
    Ok((path, names.len(), bytes as f64 / names.len() as f64))
}

fn in_one_process(program: &Path, scheme: &str, list: &Path, count: usize, runs: usize) -> Result<()> {
    let printed = sh::output(Command::new(program).arg(scheme).arg(runs.to_string()).arg(list))?;
    let mut ours = None;
    for line in printed.lines() {
        let mut columns = line.split('\t');
        let mut next = || columns.next().ok_or_else(|| format!("not a line of peers-demangle: {line}"));
        let (label, seconds, read) = (next()?, next()?, next()?);
        let seconds: f64 = seconds.parse().map_err(|_| format!("no number: {seconds}"))?;
        row(label, seconds, *ours.get_or_insert(seconds), count, read);
    }
    Ok(())
}

/// Programs that read the list from standard input, in turn; the quickest run of each.
fn as_programs(backtrail: &Path, others: &[&str], list: &Path, count: usize, runs: usize) -> Result<()> {
    let mut programs = vec![(Command::new(backtrail), "backtrail demangle", Duration::MAX)];
    if let Some((command, ..)) = programs.first_mut() {
        command.arg("demangle");
    }
    programs.extend(others.iter().map(|name| (Command::new(name), *name, Duration::MAX)));
    for _ in 0..runs {
        for (command, name, quickest) in &mut programs {
            let input = std::fs::File::open(list).map_err(|error| format!("{}: {error}", list.display()))?;
            let start = Instant::now();
            let status = command.stdin(input).stdout(Stdio::null()).status();
            status.map_err(|error| format!("cannot run {name}: {error}"))?;
            *quickest = start.elapsed().min(*quickest);
        }
    }
    let ours = programs.first().map_or(f64::NAN, |(.., quickest)| quickest.as_secs_f64());
    for (_, name, quickest) in &programs {
        row(&format!("program {name}"), quickest.as_secs_f64(), ours, count, "–");
    }
    Ok(())
}

fn row(label: &str, seconds: f64, ours: f64, count: usize, read: &str) {
    println!("| {label} | {:.0} | {:.1} | {read} |", count as f64 / seconds, seconds / ours);
}
