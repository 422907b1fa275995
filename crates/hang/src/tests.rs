use super::journal::{Journal, Rules};
use super::unfinished::{OPEN, incarnation};
use super::watched_thread::WatchedThread;
use super::{Activity, End, Hang, unfinished};
use crate::monitor as core;
use backtrail_core::{Arch, Avma, FrameAddress, Function, ImageId, Trust};
use backtrail_model::Image;
use backtrail_testkit::TempDir;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn began() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_255_445_678)
}

fn subject() -> WatchedThread {
    let mut subject = WatchedThread::new(u64::from(std::process::id()));
    subject.process.pid = Some(4_000_000_000);
    subject.incarnation = Some("another boot:7".to_owned());
    subject.thread_name = Some("a \"thread\" \u{1F980}".to_owned());
    subject.process.images = vec![
        Image {
            name: "app".to_owned(),
            path: Some("/nowhere/app".to_owned()),
            id: ImageId::parse_build_id("0123456789abcdef").ok(),
            arch: Some(Arch::HOST),
            load_address: Avma::new(0x1000),
            end_address: Some(Avma::new(0x2000)),
            ..Image::default()
        },
        Image {
            name: "libc".to_owned(),
            arch: Some(Arch::HOST),
            load_address: Avma::new(0x8000),
            ..Image::default()
        },
    ];
    subject
}

fn sample(addresses: &[u64]) -> core::Sample {
    let frame = |(index, at): (usize, &u64)| match index {
        0 => (FrameAddress::Exact(Avma::new(*at)), Trust::Context),
        _ => (FrameAddress::Return(Avma::new(*at)), Trust::Cfi),
    };
    core::Sample { frames: addresses.iter().enumerate().map(frame).collect(), is_complete: true }
}

fn core_hang() -> core::Hang {
    core::Hang {
        number: 3,
        noticed: core::Moment::default(),
        lasted: ms(250),
        excused: core::Excused::default(),
        usage: None,
        measured: Duration::ZERO,
        samples: core::SampleCounts::default(),
        tree: core::Tree::new(1_000),
        end: None,
    }
}

/// Adds a stack to the hang, ten milliseconds later.
fn take(hang: &mut core::Hang, addresses: &[u64]) -> core::Taken {
    hang.lasted += ms(10);
    hang.measured += ms(10);
    hang.usage = Some(core::Usage { cpu: hang.measured, queued: Some(Duration::ZERO) });
    hang.samples.taken += 1;
    let node = hang.tree.add(&sample(addresses), ms(10));
    core::Taken::Stack { node, time: ms(10), is_complete: true }
}

fn journal(directory: &Path, rules: Rules, hang: &core::Hang) -> Journal {
    Journal::begin(directory, &subject(), hang, began(), ms(250), rules).unwrap()
}

fn rules() -> Rules {
    Rules { max_bytes: 1 << 20, sync_every: ms(1_000), keep: true, max_files: 3 }
}

/// A hang with ten samples of two stacks, as written and as it was.
fn written(directory: &Path) -> (Journal, core::Hang) {
    let mut hang = core_hang();
    let mut journal = journal(directory, rules(), &hang);
    for round in 0..10 {
        let stack: &[u64] =
            if round % 3 == 0 { &[0x1111, 0x1222, 0x1333] } else { &[0x1444, 0x1222, 0x1333] };
        let taken = take(&mut hang, stack);
        journal.add(&hang, taken).unwrap();
    }
    hang.samples.missed += 1;
    hang.samples.last_missed = Some(core::Missed::TimedOut);
    journal.add(&hang, core::Taken::Missed(core::Missed::TimedOut)).unwrap();
    (journal, hang)
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_hang_is_read_as_it_was_written() {
    let directory = TempDir::new("hang-round-trip");
    let (_journal, hang) = written(directory.path());
    let found = unfinished(directory.path()).unwrap();
    assert_eq!(found.len(), 1);
    let read = found[0].hang.as_ref().unwrap();
    let told = subject().hang(&hang, began(), ms(250));
    assert_eq!(read.to_string(), told.to_string());
    assert_eq!(read.nodes(), told.nodes());
    assert_eq!(read.end, None);
    assert_eq!((read.samples, read.missed, read.nodes()[0].samples), (10, 1, 10));
    assert_eq!(read.activity(), Activity::Busy);
    found[0].remove().unwrap();
    assert_eq!(unfinished(directory.path()).unwrap().len(), 0);
}

#[test]
fn a_file_cut_anywhere_behind_its_first_line_is_read() {
    let directory = TempDir::new("hang-cut");
    let _written = written(directory.path());
    let bytes = std::fs::read(&files(directory.path())[0]).unwrap();
    let head = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let mut samples = 0;
    for length in 0..bytes.len() {
        match Hang::read(&bytes[..length]) {
            Ok(hang) => {
                assert!(length >= head, "at {length}");
                assert!(hang.samples >= samples && hang.notes.is_empty(), "at {length}: {:?}", hang.notes);
                samples = hang.samples;
            }
            Err(error) => assert!(length < head, "at {length}: {error}"),
        }
    }
    assert_eq!(samples, 10);
}

#[test]
fn a_broken_line_costs_itself() {
    let directory = TempDir::new("hang-broken");
    let _written = written(directory.path());
    let text = std::fs::read_to_string(&files(directory.path())[0]).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[5] = "{\"nodes\": [";
    let hang = Hang::read(lines.join("\n").as_bytes()).unwrap();
    assert_eq!(hang.samples, 9);
    let offset: usize = lines[..5].iter().map(|line| line.len() + 1).sum();
    assert!(hang.notes[0].starts_with(&format!("byte {offset}: a line cannot be read")), "{:?}", hang.notes);
    let error = Hang::read(b"{\"schema\":1}").unwrap_err().to_string();
    assert!(error.starts_with("byte 0: expected the first line of a hang's file"), "{error}");
}

#[test]
fn a_hang_that_ended_leaves_a_complete_file_or_none() {
    let directory = TempDir::new("hang-ended");
    let (journal, mut hang) = written(directory.path());
    hang.end = Some(End::Recovered);
    let path = journal.finish(&hang).unwrap().unwrap();
    assert_eq!(unfinished(directory.path()).unwrap().len(), 0);
    assert_eq!(files(directory.path()), std::slice::from_ref(&path));
    let read = Hang::read(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!((read.end, read.lasted), (Some(End::Recovered), ms(350)));

    let rules = Rules { keep: false, ..rules() };
    let journal = self::journal(&directory.path().join("other"), rules, &hang);
    assert_eq!(journal.finish(&hang).unwrap(), None);
    assert_eq!(files(&directory.path().join("other")), [] as [PathBuf; 0]);
}

#[test]
fn only_so_many_complete_files_are_kept() {
    let directory = TempDir::new("hang-many");
    for number in 1..=6 {
        let hang = core::Hang { number, ..core_hang() };
        journal(directory.path(), rules(), &hang).finish(&hang).unwrap();
    }
    let names: Vec<_> = files(directory.path()).iter().map(|path| path.display().to_string()).collect();
    assert_eq!(names.len(), 3);
    assert!(names[0].ends_with("-4.jsonl") && names[2].ends_with("-6.jsonl"), "{names:?}");
}

#[test]
fn a_file_does_not_grow_without_end() {
    let directory = TempDir::new("hang-full");
    let mut hang = core_hang();
    let mut journal = journal(directory.path(), Rules { max_bytes: 4_000, ..rules() }, &hang);
    for address in 0..20_000 {
        let taken = take(&mut hang, &[0x1111 + address % 0xa00, 0x1222]);
        journal.add(&hang, taken).unwrap();
    }
    let bytes = std::fs::read(&files(directory.path())[0]).unwrap();
    assert!((4_000..8_000).contains(&bytes.len()), "{}", bytes.len());
    // How long it lasted is known to a factor of two.
    let read = Hang::read(&bytes).unwrap();
    assert!(read.lasted * 2 >= hang.lasted, "{:?} of {:?}", read.lasted, hang.lasted);
}

#[test]
fn a_process_that_still_runs_has_no_unfinished_hangs() {
    let directory = TempDir::new("hang-running");
    let mut own = subject();
    own.process.pid = Some(u64::from(std::process::id()));
    own.incarnation = incarnation(u64::from(std::process::id()));
    assert!(own.incarnation.is_some());
    let journal = Journal::begin(directory.path(), &own, &core_hang(), began(), ms(250), rules()).unwrap();
    assert_eq!(unfinished(directory.path()).unwrap().len(), 0);
    drop(journal);
    // The number of a process that ended comes again.
    own.incarnation = own.incarnation.map(|own| own + "0");
    let hang = core::Hang { number: 9, ..core_hang() };
    let _journal = Journal::begin(directory.path(), &own, &hang, began(), ms(250), rules()).unwrap();
    assert_eq!(unfinished(directory.path()).unwrap().len(), 1);
}

#[test]
fn a_directory_that_is_not_there_has_none_and_strange_files_are_told() {
    let directory = TempDir::new("hang-strange");
    assert_eq!(unfinished(&directory.path().join("nowhere")).unwrap().len(), 0);
    std::fs::write(directory.path().join("notes.txt"), "x").unwrap();
    std::fs::write(directory.path().join(format!("hang-x{OPEN}")), "x").unwrap();
    let found = unfinished(directory.path()).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].hang.is_err());
}

/// Names as naming would have filled them in.
fn named() -> Hang {
    let mut hang = core_hang();
    for address in 0..6 {
        take(&mut hang, &[0x1100 + address, 0x1222, 0x1333]);
    }
    take(&mut hang, &[0x1444, 0x1222, 0x1333]);
    take(&mut hang, &[0x1555, 0x1333]);
    hang.end = Some(End::Recovered);
    let mut told = subject().hang(&hang, began(), ms(250));
    for node in &mut told.tree_mut().nodes {
        let (name, line) = match node.frame.address.unwrap().raw().get() {
            0x1222 => ("run;loop", 20),
            0x1333 => ("main", 30),
            0x1444 => ("read", 40),
            0x1555 => ("draw", 50),
            _ => ("hash", 10),
        };
        let function = Function {
            name: name.to_owned(),
            file: Some("/src/main.c".to_owned()),
            line: Some(line),
            ..Function::default()
        };
        node.frame.functions = vec![function];
    }
    told
}

#[test]
fn the_heaviest_stack_is_that_of_functions_not_of_addresses() {
    let hang = named();
    let names: Vec<_> =
        hang.stack(hang.heaviest().unwrap()).flat_map(|frame| frame.names().map(str::to_owned)).collect();
    assert_eq!(names, ["hash", "run;loop", "main"]);
}

#[test]
fn text() {
    let expected = "\
a \"thread\" \u{1F980} [PID] of NAME [4000000000] hung for 330 ms
2026-11-21T10:04:05.678Z · busy (100 % of the time on a processor) · noticed after 250 ms

Heaviest stack (6 of 8 samples)
   0  app  hash  at /src/main.c:10
   1  app  run;loop  at /src/main.c:20
   2  app  main  at /src/main.c:30

All samples
      8  main  /src/main.c:30
      7    run:loop  /src/main.c:20
      6      hash  /src/main.c:10
      1      read  /src/main.c:40
      1    draw  /src/main.c:50
";
    let hang = named();
    let expected = expected
        .replace("NAME", hang.process.name.as_deref().unwrap())
        .replace("PID", &std::process::id().to_string());
    assert_eq!(hang.to_string(), expected);
}

#[test]
fn collapsed_stacks_have_milliseconds() {
    let mut text = Vec::new();
    named().write_collapsed(&mut text).unwrap();
    let expected = "main;run:loop;hash 60\nmain;run:loop;read 10\nmain;draw 10\n";
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

#[test]
fn a_hang_without_stacks_still_says_something() {
    let mut hang = core_hang();
    hang.samples.missed = 4;
    hang.samples.last_missed = Some(core::Missed::TimedOut);
    hang.excused = core::Excused { suspended: ms(60_000), stopped: ms(20), gaps: 2 };
    let text = subject().hang(&hang, began(), ms(250)).to_string();
    assert!(text.contains("hung for 250 ms, and had not recovered\n"), "{text}");
    assert!(text.contains("busy or waiting: not known"), "{text}");
    assert!(text.contains("4 captures failed (the thread did not answer in time)"), "{text}");
    assert!(
        text.contains("Not counted: 60.000 s in which the machine was suspended, 20 ms in which"),
        "{text}"
    );
}
