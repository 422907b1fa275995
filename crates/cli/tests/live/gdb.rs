//! The same frames as gdb, of the same process while it is stopped.

use crate::target::{self, THREADS, Target, stacks, traceable};
use backtrail_testkit::TempDir;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Prints a line for each thread: its id and the addresses of its frames, those of inlined functions and of tail calls, which gdb infers, left out.
const SCRIPT: &str = "python
import gdb
for thread in gdb.selected_inferior().threads():
    thread.switch()
    frame, addresses = gdb.newest_frame(), []
    while frame is not None:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            addresses.append(hex(frame.pc()))
        frame = frame.older()
    print('THREAD', thread.ptid[1], *addresses)
end
";

fn by_gdb(directory: &TempDir, id: u32) -> Option<BTreeMap<u64, Vec<String>>> {
    let script = directory.write("frames.gdb", SCRIPT);
    let mut command = Command::new("gdb");
    command.args([
        "-q",
        "-batch",
        "-nx",
        "-iex",
        "set debuginfod enabled off",
        "-ex",
        "set backtrace past-main on",
    ]);
    command.args(["-ex", "set backtrace past-entry off", "-p", &id.to_string(), "-x"]).arg(script);
    let Ok(output) = command.output() else {
        eprintln!("skipped: gdb is not installed");
        return None;
    };
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let threads: BTreeMap<_, _> = output
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("THREAD ")?.split(' ');
            Some((words.next()?.parse().ok()?, words.map(str::to_owned).collect()))
        })
        .collect();
    if threads.is_empty() {
        eprintln!("skipped: this gdb has no python");
        return None;
    }
    Some(threads)
}

fn by_backtrail(id: u32) -> BTreeMap<u64, Vec<String>> {
    let captured = stacks(id, &["--detail", "addresses"]);
    let addresses = |thread: &Value| {
        let frames = thread["frames"].as_array().unwrap().iter();
        frames.map(|frame| frame["address"].as_str().unwrap().to_owned()).collect()
    };
    let threads = captured["threads"].as_array().unwrap().iter();
    threads.map(|thread| (thread["id"].as_u64().unwrap(), addresses(thread))).collect()
}

/// Stops the process, so that both see the same.
fn compare(directory: &TempDir, id: u32, threads: usize, what: &str) {
    target::signal("-STOP", id);
    target::wait_until("it stops", || {
        let ids = target::thread_ids(id);
        ids.iter().all(|id| target::status(*id, "State").starts_with('T'))
    });
    let ours = by_backtrail(id);
    let theirs = by_gdb(directory, id);
    target::signal("-CONT", id);
    let Some(theirs) = theirs else { return };
    assert_eq!(theirs.len(), threads, "{what}: {theirs:#?}");
    assert_eq!(ours, theirs, "{what}");
}

#[test]
fn one_and_many_threads_of_c_with_and_without_frame_pointers() {
    for (options, counts) in [
        (&["-O0"][..], &[0, 63][..]),
        (&["-O2", "-fomit-frame-pointer"], &[0, 63, 999]),
        (&["-O2", "-fno-omit-frame-pointer", "-static"], &[7]),
    ] {
        let directory = TempDir::new("live-gdb");
        let Some(program) = traceable(&directory, THREADS, "cc", options) else { return };
        for count in counts {
            let target = Target::start(Command::new(&program).arg(count.to_string()));
            compare(&directory, target.id, count + 1, &format!("{options:?} {count}"));
        }
    }
}
