//! The cores of the corpus: every thread's frames, as they were read over, and as eu-stack says where it is installed.

use backtrail::{Frame, NoProgress, StackOptions, Stacks, Symbols, Thread};
use backtrail_testkit::{TempDir, assert_snapshot, corpus_file, workspace_root};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Each core with its program.
const CORES: [(&str, Option<&str>); 9] = [
    ("backtrace.x86_64.core", Some("backtrace.x86_64.exec")),
    ("backtrace.x86_64.fp.core", Some("backtrace.x86_64.fp.exec")),
    ("crashme.core", Some("crashme")),
    ("crashme_pie.core", Some("crashme_pie")),
    ("crashme_pie_no_headers.core", Some("crashme_pie")),
    ("crashme_static.core", Some("crashme_static")),
    ("crashme_static_pie.core", Some("crashme_static_pie")),
    ("multithreaded.core", None),
    ("testfiledwarfinlines.core", Some("testfiledwarfinlines")),
];

/// eu-stack's frames from this one on are not compared.
const EU_STACK_GUESSES: [(&str, usize, &str); 1] = [(
    "multithreaded.core",
    1,
    "neither program nor libraries are there, and eu-stack takes any value of rbp for a frame pointer",
)];

/// Unpacks every file of the directory; `None`, with a line that says so, where a program for that is absent.
fn unpacked(directory: &Path) -> Option<TempDir> {
    let unpacked = TempDir::new("cores");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let program = match path.extension()?.to_str()? {
            "zst" => "zstd",
            "bz2" => "bzip2",
            _ => continue,
        };
        let Ok(output) = Command::new(program).args(["-q", "-d", "-c"]).arg(&path).output() else {
            backtrail_testkit::not_installed(program);
            return None;
        };
        assert!(output.status.success(), "{}: {program}: {}", path.display(), output.status);
        unpacked.write(path.file_stem()?.to_str()?, &output.stdout);
    }
    Some(unpacked)
}

fn stacks(directory: &TempDir, core: &str, program: Option<&str>) -> Stacks {
    // Files of this machine at the same paths would be other files.
    let mut options = StackOptions::default();
    options.use_mapped_paths = false;
    let symbols = Symbols::scan(&[directory.path().to_owned()], &NoProgress);
    let program = program.map(|program| directory.join(program));
    Stacks::core(directory.join(core), program.as_deref(), &symbols, &options).unwrap()
}

fn pc(frame: &Frame) -> u64 {
    frame.address.map_or(0, |address| address.raw().get())
}

/// One line a frame: address, functions (innermost first), how it was found.
fn shown(thread: &Thread) -> String {
    let mut text = format!("  thread {}\n", thread.id.unwrap_or_default());
    for frame in &thread.frames {
        let names: Vec<_> = frame.names().collect();
        let names = if names.is_empty() { "?".to_owned() } else { names.join(" < ") };
        writeln!(text, "    {:#018x} {names} [{}]", pc(frame), frame.trust.as_str()).unwrap();
    }
    let ended = thread.ended.as_ref().unwrap();
    writeln!(text, "    ended: {:?}, {}", ended.kind, ended.why).unwrap();
    text
}

/// What eu-stack says: the addresses of each thread's frames, and whether it came to the end of the stack.
fn eu_stack(directory: &TempDir, core: &str, program: Option<&str>) -> Option<Vec<(u64, Vec<u64>, bool)>> {
    let mut command = Command::new("eu-stack");
    command.arg("--core").arg(directory.join(core)).args(["-n", "0"]);
    if let Some(program) = program {
        command.arg("-e").arg(directory.join(program));
    }
    let output = command.env("DEBUGINFOD_URLS", "").output().ok()?;
    let complaints = String::from_utf8_lossy(&output.stderr);
    let mut threads: Vec<(u64, Vec<u64>, bool)> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["TID", id] => {
                let id: u64 = id.trim_end_matches(':').parse().unwrap();
                threads.push((id, Vec::new(), !complaints.contains(&format!("tid {id} at"))));
            }
            [number, address, ..] if number.starts_with('#') => {
                let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
                threads.last_mut().unwrap().1.push(address);
            }
            _ => {}
        }
    }
    Some(threads)
}

/// Where eu-stack came to the end, the frames are to be the same; where it gave up, those that it had.
fn compare(core: &str, threads: &[Thread], eu_stack: &[(u64, Vec<u64>, bool)]) -> Vec<String> {
    let mut differences = Vec::new();
    if threads.len() != eu_stack.len() {
        differences.push(format!("{core}: {} threads, eu-stack has {}", threads.len(), eu_stack.len()));
    }
    let guesses = EU_STACK_GUESSES.iter().find(|(of, ..)| *of == core);
    for (id, theirs, is_whole) in eu_stack {
        let thread = threads.iter().find(|thread| thread.id == Some(*id));
        let ours: Vec<_> = thread.iter().flat_map(|thread| &thread.frames).map(pc).collect();
        let compared = guesses.map_or(theirs.len(), |(_, frames, _)| (*frames).min(theirs.len()));
        let same = ours.starts_with(&theirs[..compared]);
        if !same || *is_whole && guesses.is_none() && ours.len() != theirs.len() {
            differences.push(format!("{core}: thread {id}:\n  ours     {ours:x?}\n  eu-stack {theirs:x?}"));
        }
    }
    differences
}

#[test]
fn every_core_gives_its_frames_and_those_of_eu_stack() {
    let Some(corpus) = corpus_file("core") else { return };
    let Some(directory) = unpacked(&corpus) else { return };
    let (mut text, mut differences) = (String::new(), Vec::new());
    let mut compared = 0;
    for (core, program) in CORES {
        let stacks = stacks(&directory, core, program);
        writeln!(text, "{core}").unwrap();
        stacks.report.process.threads.iter().for_each(|thread| text.push_str(&shown(thread)));
        if let Some(theirs) = eu_stack(&directory, core, program) {
            compared += theirs.len();
            differences.extend(compare(core, &stacks.report.process.threads, &theirs));
        } else {
            eprintln!("{core}: not compared, eu-stack is not installed");
        }
    }
    println!("{compared} threads compared with eu-stack");
    assert_snapshot(workspace_root().join("crates/backtrail/tests/stacks/cores.expected"), &text);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
