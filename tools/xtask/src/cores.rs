//! `cores`: builds programs, lets them crash, and compares their cores' stacks, frame by frame, with gdb's and eu-stack's
//! and with what the program's source says. What the differences mean is in `docs/stacks.md`.
//!
//! The programs are in `fixtures/cores`; each names in its source which functions lie on the stack, so that where tools
//! differ it is known who is right. A compiler or tool that is not installed leaves its cases out, with a line that says
//! so.

mod builds;
mod cases;
mod explained;
mod judge;
pub(crate) mod live;
mod make;
mod ours;
mod peers;
mod ways;

use crate::{Result, sh};
use builds::Built;
use cases::Case;
use judge::Judged;
use stacks_compared::compare::Verdict;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where programs are built and crash, below the workspace's directory.
const SCRATCH: &str = "target/xtask-cores";

struct Options {
    keep: bool,
    list: bool,
    show: bool,
    /// `backtrail`, where it is not to be built.
    program: Option<PathBuf>,
    /// Parts of cases' names; none means all.
    wanted: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = options(arguments)?;
    let Some(cases) = options.chosen(cases::all(), Case::name) else { return Ok(()) };
    let scratch = sh::root().join(SCRATCH);
    sh::make_directory(&scratch)?;
    let program = options.program()?;
    let programs = build(&cases, &scratch)?;
    let judged = in_turns(&cases, |case| {
        let built = programs.get(&case.build.name).and_then(Option::as_ref);
        built.map_or(Ok(None), |built| one(case, built, &scratch, &program, &options))
    });
    let mut table: BTreeMap<&str, Row> = BTreeMap::new();
    let mut faults = Vec::new();
    for (case, judged) in cases.iter().zip(judged) {
        let row = table.entry(case.build.family).or_default();
        match judged {
            Ok(Some(judged)) => row.add(&judged, &mut faults, options.show),
            Ok(None) => row.absent += 1,
            Err(problem) => faults.push(format!("{}: {problem}", case.name())),
        }
    }
    print(&table);
    sh::faults(&faults)
}

impl Options {
    /// The cases that are asked for; `None` where only their names are, which are printed.
    fn chosen<T>(&self, mut cases: Vec<T>, name: impl Fn(&T) -> String) -> Option<Vec<T>> {
        cases.retain(|case| self.is_wanted(&name(case)));
        if self.list {
            cases.iter().for_each(|case| println!("{}", name(case)));
            return None;
        }
        Some(cases)
    }

    fn is_wanted(&self, name: &str) -> bool {
        self.wanted.is_empty() || self.wanted.iter().any(|part| name.contains(part.as_str()))
    }

    fn program(&self) -> Result<PathBuf> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => sh::built(&["-p", "backtrail-cli"]),
        }
    }
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut options = Options { keep: false, list: false, show: false, program: None, wanted: Vec::new() };
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--program" => options.program = Some(arguments.next().ok_or("--program wants a file")?.into()),
            "--keep" => options.keep = true,
            "--list" => options.list = true,
            "--show" => options.show = true,
            flag if flag.starts_with('-') => return Err(format!("no option {flag}")),
            part => options.wanted.push(part.to_owned()),
        }
    }
    Ok(options)
}

/// Every program that the cases need, once; `None` for those that cannot be built here.
fn build(cases: &[Case], scratch: &Path) -> Result<BTreeMap<String, Option<Built>>> {
    let builds: BTreeMap<_, _> = cases.iter().map(|case| (case.build.name.clone(), &case.build)).collect();
    let builds: Vec<_> = builds.into_iter().collect();
    let built = in_turns(&builds, |(_, build)| builds::build(build, scratch));
    builds.into_iter().zip(built).map(|((name, _), built)| Ok((name, built?))).collect()
}

/// Does the work of every item, several at a time; answers in the items' order.
fn in_turns<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { return done };
            done.push((index, work(item)));
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(take)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    all.sort_by_key(|(index, _)| *index);
    all.into_iter().map(|(_, answer)| answer).collect()
}

/// `None` where what the case needs is not installed.
fn one(
    case: &Case,
    built: &Built,
    scratch: &Path,
    program: &Path,
    options: &Options,
) -> Result<Option<Judged>> {
    let directory = scratch.join(case.name().replace('/', "_"));
    let Some(made) = make::core(case, built, &directory)? else { return Ok(None) };
    let ours = ours::stacks(program, &made)?;
    let gdb = peers::gdb_of_core(case.build.machine, &made)?;
    let eu_stack = peers::eu_stack(&made)?;
    let judged = judge::judge(case, &made, &ours, gdb.as_ref(), eu_stack.as_ref());
    if !options.keep {
        remove(&directory);
    }
    Ok(Some(judged))
}

fn remove(directory: &PathBuf) {
    // What stays behind costs room, no more.
    let _ = std::fs::remove_dir_all(directory);
}

/// The counts of one family of builds.
#[derive(Default)]
struct Row {
    cores: usize,
    threads: usize,
    frames: usize,
    gdb: Counts,
    eu_stack: Counts,
    inlined: usize,
    wrong: usize,
    absent: usize,
}

#[derive(Default)]
struct Counts {
    same: usize,
    explained: usize,
    different: usize,
}

impl Counts {
    fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Same => self.same += 1,
            Verdict::Explained(..) => self.explained += 1,
            Verdict::Different(_) => self.different += 1,
            Verdict::NotCompared => {}
        }
    }

    fn shown(&self) -> String {
        format!("{} | {} | {}", self.same, self.explained, self.different)
    }
}

impl Row {
    fn add(&mut self, judged: &Judged, faults: &mut Vec<String>, show: bool) {
        self.cores += 1;
        self.wrong += usize::from(!judged.against_source.is_empty());
        faults.extend(judged.against_source.iter().map(|fault| format!("{}: {fault}", judged.name)));
        for thread in &judged.threads {
            self.threads += 1;
            self.frames += thread.frames;
            self.inlined += thread.inlined;
            self.gdb.add(&thread.gdb);
            self.eu_stack.add(&thread.eu_stack);
            for (peer, verdict) in [("gdb", &thread.gdb), ("eu-stack", &thread.eu_stack)] {
                match verdict {
                    Verdict::Different(how) => {
                        faults.push(format!("{}: thread {}: {peer}: {how}", judged.name, thread.id));
                    }
                    Verdict::Explained(how, why) if show => {
                        println!("{}: thread {}: {peer}: {how}: {why}", judged.name, thread.id);
                    }
                    _ => {}
                }
            }
        }
    }
}

fn print(table: &BTreeMap<&str, Row>) {
    println!("| programs | cores | threads | frames | inlined as gdb | gdb: same | explained | different |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let used = || table.iter().filter(|(_, row)| row.cores > 0);
    for (name, row) in used() {
        let Row { cores, threads, frames, inlined, .. } = row;
        println!("| {name} | {cores} | {threads} | {frames} | {inlined} | {} |", row.gdb.shown());
    }
    println!("\n| programs | eu-stack: same | explained | different | cores against their source: wrong |");
    println!("| --- | --- | --- | --- | --- |");
    for (name, row) in used() {
        println!("| {name} | {} | {} |", row.eu_stack.shown(), row.wrong);
    }
    for (name, row) in table.iter().filter(|(_, row)| row.absent > 0) {
        println!("not checked: {} cases of {name}, for want of a compiler or emulator", row.absent);
    }
}
