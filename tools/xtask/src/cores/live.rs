//! `live`: starts programs, stops them, and compares each thread's frames with gdb's of the same stopped process: addresses,
//! functions' names, inlined functions. What the differences mean is in `docs/live.md`.
//!
//! The programs are in `fixtures/live`: C++, Rust and Go, built in several ways, and scripts for this machine's interpreters.
//! What is not installed is left out, with a line that says so.

mod jvm;
mod names;
mod programs;
mod rules;

use super::{Counts, Options, ours, peers};
use crate::{Result, sh};
use programs::Case;
use stacks_compared::compare::{self, Verdict};
use std::collections::BTreeMap;
use std::path::Path;

/// Where programs are built, below the workspace's directory.
const SCRATCH: &str = "target/xtask-live";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = super::options(arguments)?;
    let Some(cases) = options.chosen(programs::all(), Case::name) else { return Ok(()) };
    let scratch = sh::root().join(SCRATCH);
    sh::make_directory(&scratch)?;
    let program = options.program()?;
    let mut table: BTreeMap<&str, Row> = BTreeMap::new();
    let mut faults = Vec::new();
    for case in &cases {
        let row = table.entry(case.family()).or_default();
        match one(case, &scratch, &program, &options, row) {
            Ok(Some(more)) => faults.extend(more),
            Ok(None) => row.absent += 1,
            Err(problem) => faults.push(format!("{}: {problem}", case.name())),
        }
    }
    print(&table);
    sh::faults(&faults)
}

/// The faults of one program; `None` where what it needs is not installed.
fn one(
    case: &Case,
    scratch: &Path,
    program: &Path,
    options: &Options,
    row: &mut Row,
) -> Result<Option<Vec<String>>> {
    let Some(process) = case.start(scratch)? else { return Ok(None) };
    if case.is_jvm() && !peers::is_installed("jcmd") {
        return Ok(None);
    }
    let counts = if case.is_jvm() { Some(jvm::counts(process.id())?) } else { None };
    process.stop()?;
    let ours = ours::stacks_of(program, process.id())?;
    let Some(theirs) = peers::gdb_of(process.id())? else { return Ok(None) };
    drop(process);
    let name = case.name();
    let mut faults = Vec::new();
    if theirs.len() != ours.len() {
        faults.push(format!("{name}: {} threads, gdb has {}", ours.len(), theirs.len()));
    }
    row.processes += 1;
    for thread in &ours {
        let Some(stack) = theirs.get(&thread.id) else {
            faults.push(format!("{name}: thread {}: gdb does not have it", thread.id));
            continue;
        };
        if let Some(counts) = &counts {
            row.counted += usize::from(counts.contains_key(&thread.id));
            let difference = jvm::difference(thread, counts);
            faults.extend(difference.map(|how| format!("{name}: thread {}: {how}", thread.id)));
        }
        let verdict = compare::compare(&name, "gdb", thread, stack, &rules::RULES);
        row.threads += 1;
        row.frames += thread.frames.len();
        row.inlined += compare::same_inlined(thread, stack);
        row.gdb.add(&verdict);
        match &verdict {
            Verdict::Different(how) => faults.push(format!("{name}: thread {}: {how}", thread.id)),
            Verdict::Explained(how, why) if options.show => {
                println!("{name}: thread {}: {how}: {why}", thread.id);
            }
            _ => {}
        }
        for difference in names::compare(case.family(), thread, stack, &mut row.names) {
            faults.push(format!("{name}: {difference}"));
        }
    }
    faults.sort();
    faults.dedup();
    Ok(Some(faults))
}

/// The counts of one family of programs.
#[derive(Default)]
struct Row {
    processes: usize,
    threads: usize,
    frames: usize,
    gdb: Counts,
    names: names::Counts,
    inlined: usize,
    /// Threads whose frames the virtual machine has counted.
    counted: usize,
    absent: usize,
}

fn print(table: &BTreeMap<&str, Row>) {
    println!(
        "| programs | processes | threads | frames | stacks as gdb | explained | different | names as gdb | explained | \
         different | frames with inlined functions, as many as gdb | threads that the virtual machine counted |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, row) in table.iter().filter(|(_, row)| row.processes > 0) {
        let Row { processes, threads, frames, inlined, counted, .. } = row;
        let (stacks, names) = (row.gdb.shown(), row.names.shown());
        println!(
            "| {name} | {processes} | {threads} | {frames} | {stacks} | {names} | {inlined} | {counted} |"
        );
    }
    for (name, row) in table.iter().filter(|(_, row)| row.absent > 0) {
        println!(
            "not checked: {} programs of {name}, for want of a compiler, an interpreter or gdb",
            row.absent
        );
    }
}
