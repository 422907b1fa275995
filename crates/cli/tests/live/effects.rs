//! What a process notices of being captured: nothing.

use crate::target::{
    self, CALLS, THREADS, Target, backtrail, stacks, status, thread_ids, traceable, wait_until,
};
use backtrail_testkit::TempDir;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn calls_go_on_and_signals_come_as_if_nothing_had_been() {
    let directory = TempDir::new("live-calls");
    let Some(program) = traceable(&directory, CALLS, "cc", &["-O1"]) else { return };
    let mut calls = Target::start(&mut Command::new(program));
    for round in 0..20 {
        let options: &[&str] = if round % 4 == 0 { &["--consistent"] } else { &[] };
        stacks(calls.id, options);
        calls.ask();
    }
    let last = calls.finish();
    let words: Vec<_> = last.split_whitespace().collect();
    let [_, early, _, sent, _, came, _, others, _, longest] = words[..] else { panic!("{last}") };
    assert_eq!((early, others), ("0", "0"), "{last}");
    assert_eq!((sent, came), ("4000", "4000"), "{last}");
    eprintln!("the longest time that the spinning thread stood, whatever the reason: {longest} us");
}

#[test]
fn a_stopped_process_stays_stopped_and_goes_on_afterwards() {
    let directory = TempDir::new("live-stopped");
    let Some(program) = traceable(&directory, THREADS, "cc", &[]) else { return };
    let threads = Target::start(Command::new(program).arg("3"));
    target::signal("-STOP", threads.id);
    let all = |letter: &str| {
        let ids = thread_ids(threads.id);
        ids.iter().all(|id| status(*id, "State").starts_with(letter))
    };
    wait_until("all threads stop", || all("T"));
    for options in [&[][..], &["--consistent"]] {
        let captured = stacks(threads.id, options);
        assert_eq!(captured["threads"].as_array().unwrap().len(), 4);
        assert!(captured["threads"].as_array().unwrap().iter().all(|thread| thread["state"] == "stopped"));
        assert!(
            captured["threads"].as_array().unwrap().iter().all(|thread| thread["ended"] == "end-of-stack")
        );
        wait_until("all threads stand again", || all("T"));
    }
    target::signal("-CONT", threads.id);
    wait_until("all threads sleep again", || all("S"));
}

#[test]
fn the_program_may_be_killed_at_any_moment() {
    let directory = TempDir::new("live-killed");
    let Some(program) = traceable(&directory, CALLS, "cc", &["-O1"]) else { return };
    let mut calls = Target::start(&mut Command::new(program));
    let id = calls.id.to_string();
    for round in 0..60_u64 {
        let mut command = Command::new(target::program());
        command.args(["stacks", &id, "--detail", "addresses"]).stdout(Stdio::null());
        if round % 2 == 0 {
            command.arg("--consistent");
        }
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_micros(500 + round * 150));
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("nobody traces it", || {
            thread_ids(calls.id).iter().all(|id| {
                status(*id, "TracerPid") == "0" && !status(*id, "State").to_lowercase().starts_with('t')
            })
        });
    }
    let rounds = |line: String| line.trim().trim_start_matches("rounds ").parse::<u64>().unwrap();
    let before = rounds(calls.ask());
    wait_until("the spinning thread goes on", || rounds(calls.ask()) > before);
    let last = calls.finish();
    assert!(last.contains("early 0 ") && last.contains(" others 0 "), "{last}");
}

#[test]
fn threads_that_come_and_go_cost_none_of_the_others() {
    const SOURCE: &str = "#include <pthread.h>\n#include <stdio.h>\n#include <unistd.h>\n\
        static void *brief(void *p) { usleep(300); return p; }\n\
        static void *makes(void *p) { for (;;) { pthread_t t; if (pthread_create(&t, 0, brief, p) == 0) pthread_detach(t); usleep(50); } }\n\
        int main(void) { pthread_t t; char c[4]; pthread_create(&t, 0, makes, 0); printf(\"%d\\n\", getpid()); fflush(stdout); return fgets(c, 4, stdin) == 0; }\n";
    let directory = TempDir::new("live-brief");
    let Some(program) = traceable(&directory, SOURCE, "cc", &[]) else { return };
    let target = Target::start(&mut Command::new(program));
    for round in 0..30 {
        let captured = stacks(target.id, if round % 3 == 0 { &["--consistent"] } else { &[] });
        let threads = captured["threads"].as_array().unwrap();
        let long: Vec<_> = threads
            .iter()
            .filter(|thread| {
                crate::target::names(thread).iter().any(|name| name == "main" || name == "makes")
            })
            .collect();
        assert_eq!(long.len(), 2, "round {round}: {threads:#?}");
    }
    let run = backtrail(&["stacks", &target.id.to_string()]);
    assert!(run.stdout.contains("makes"), "{}", run.stdout);
}
