//! Processes and threads in odd states.

use crate::target::{
    ODD, THREADS, TIMED, Target, backtrail, compiled, names, stacks, status, thread_ids, traceable,
};
use backtrail_testkit::TempDir;
use std::process::Command;
use std::time::{Duration, Instant};

fn odd(directory: &TempDir, kind: &str) -> Option<Target> {
    let program = traceable(directory, ODD, "cc", &["-O1", "-fno-omit-frame-pointer"])?;
    Some(Target::start(Command::new(program).arg(kind)))
}

#[test]
fn a_thread_in_uninterruptible_sleep_is_told_so_and_not_waited_for() {
    let directory = TempDir::new("live-vfork");
    let Some(target) = odd(&directory, "vfork") else { return };
    crate::target::wait_until("the parent sleeps", || status(target.id, "State").starts_with('D'));
    for options in [&[][..], &["--consistent"]] {
        let began = Instant::now();
        let captured = stacks(target.id, options);
        assert!(began.elapsed() < Duration::from_secs(120));
        let thread = &captured["threads"][0];
        assert_eq!(thread["state"], "uninterruptible sleep");
        assert_eq!(thread["waiting_in"], "vfork");
        let why = thread["ended_because"].as_str().unwrap();
        assert!(why.contains("could not be stopped within"), "{why}");
        // Where the kernel tells its stack pointer, there is a stack all the same. glibc keeps vfork's return address in a
        // register of the call's arguments, which the kernel tells as well: no caller is left out, and none is a guess.
        let names = names(thread);
        let at = names.iter().position(|name| name == "uninterruptible");
        let at = at.unwrap_or_else(|| panic!("{thread:#}"));
        assert!(at == 1 && names[0].contains("vfork") && names[2] == "main", "{names:?}");
        let mut trusts = thread["frames"].as_array().unwrap().iter().map(|frame| &frame["trust"]);
        assert!(trusts.all(|trust| trust != "scan"), "{thread:#}");
        assert_eq!(captured["notes"][0], "no thread was stopped");
    }
    crate::target::wait_until("nobody traces it", || status(target.id, "TracerPid") == "0");
    assert!(status(target.id, "State").starts_with('D'));
}

#[test]
fn who_called_vfork_is_known_with_every_c_library() {
    // Statically linked, so that the C library is that of the compiler, with its symbols and without a debug file.
    for (compiler, options) in [
        ("cc", &["-static"][..]),
        ("cc", &["-m32"]),
        ("cc", &["-m32", "-static"]),
        ("musl-gcc", &[]),
        ("musl-gcc", &["-static"]),
    ] {
        let directory = TempDir::new("live-vfork-libraries");
        let flags = [&["-O1"], options].concat();
        let Some(program) = traceable(&directory, ODD, compiler, &flags) else { continue };
        let target = Target::start(Command::new(program).arg("vfork"));
        crate::target::wait_until("the parent sleeps", || status(target.id, "State").starts_with('D'));
        let captured = stacks(target.id, &[]);
        let thread = &captured["threads"][0];
        let names = names(thread);
        let [vfork, caller, main, ..] = &names[..] else { panic!("{compiler} {options:?}: {thread:#}") };
        assert!(vfork.contains("vfork"), "{compiler} {options:?}: {names:?}");
        assert_eq!((caller.as_str(), main.as_str()), ("uninterruptible", "main"), "{compiler} {options:?}");
        let trusts = thread["frames"].as_array().unwrap().iter().map(|frame| &frame["trust"]);
        assert!(trusts.take(3).all(|trust| trust != "scan"), "{thread:#}");
    }
}

#[test]
fn a_call_that_the_kernel_began_anew_keeps_its_name() {
    let directory = TempDir::new("live-timed");
    let Some(program) = traceable(&directory, TIMED, "cc", &[]) else { return };
    let target = Target::start(&mut Command::new(program));
    let ids = || thread_ids(target.id).into_iter().filter(|id| *id != target.id);
    // What a thread is named by is the next thing that it waits in.
    let waits = |id| status(id, "Name") != "program" && status(id, "State").starts_with('S');
    crate::target::wait_until("all wait", || ids().count() == 11 && ids().all(waits));
    let calls = || {
        let captured = stacks(target.id, &[]);
        let threads = captured["threads"].as_array().unwrap().iter().skip(1);
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        threads.map(|thread| (text(&thread["name"]), text(&thread["waiting_in"]))).collect::<Vec<_>>()
    };
    let first = calls();
    assert!(first.iter().all(|(name, call)| name == call), "{first:?}");
    // From now on they are where the first capture has put them. One that wants for a processor does not sleep yet.
    crate::target::wait_until("all are known", || {
        let again = calls();
        let is_known = |(name, call): &(String, String)| name == call || call == "unknown (restarted)";
        assert!(again.iter().all(is_known), "{again:?}");
        again == first
    });
}

#[test]
fn a_thread_that_somebody_traces_is_told_so() {
    let directory = TempDir::new("live-traced");
    let Some(target) = odd(&directory, "traced") else { return };
    let captured = stacks(target.id, &[]);
    let thread = &captured["threads"][0];
    let why = thread["ended_because"].as_str().unwrap();
    assert!(why.contains(&format!("it is traced by process {} (program)", target.started())), "{why}");
    assert!(names(thread).iter().any(|name| name == "main"), "{thread:#}");
}

#[test]
fn a_zombie_and_processes_that_are_none_are_refused_with_the_reason() {
    let directory = TempDir::new("live-zombie");
    let Some(program) = compiled(&directory, ODD, "cc", &[]) else { return };
    let target = Target::start(Command::new(program).arg("zombie"));
    for (id, reason) in [
        (target.id.to_string(), "is a zombie"),
        ("4194304".to_owned(), "there is no process 4194304"),
        ("4294967295".to_owned(), "there is no process"),
    ] {
        for command in ["stacks", "images"] {
            let run = backtrail(&[command, &id]);
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{id}: {}", run.stderr);
            assert!(run.stderr.starts_with("backtrail: ") && run.stderr.contains(reason), "{}", run.stderr);
        }
    }
    let own = Command::new("sh").args(["-c", "exec \"$0\" stacks $$"]).arg(crate::target::program()).output();
    let own = String::from_utf8_lossy(&own.unwrap().stderr).into_owned();
    assert!(own.contains("is this one"), "{own}");
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd") {
        let run = backtrail(&["stacks", "2"]);
        assert!(run.code == Some(2) && run.stderr.contains("a thread of the kernel"), "{}", run.stderr);
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_is_captured() {
    let directory = TempDir::new("live-no-leader");
    let Some(target) = odd(&directory, "no-leader") else { return };
    crate::target::wait_until("the first thread ends", || status(target.id, "State").starts_with('Z'));
    let other = thread_ids(target.id).into_iter().find(|id| *id != target.id).unwrap();
    crate::target::wait_until("the other one waits", || status(other, "State").starts_with('S'));
    let captured = stacks(target.id, &[]);
    let [first, second] = &captured["threads"].as_array().unwrap()[..] else { panic!("{captured:#}") };
    assert_eq!((first["state"].as_str(), second["state"].as_str()), (Some("zombie"), Some("sleeping")));
    assert!(first["ended_because"].as_str().unwrap().contains("it has ended"), "{first:#}");
    assert!(names(second).iter().any(|name| name == "keep_waiting"), "{second:#}");
}

#[test]
fn code_made_at_run_time_is_named_by_its_map() {
    if std::env::consts::ARCH != "x86_64" {
        return eprintln!("skipped: the code is for x86_64");
    }
    let directory = TempDir::new("live-made");
    let Some(target) = odd(&directory, "made") else { return };
    let captured = stacks(target.id, &[]);
    let names = names(&captured["threads"][0]);
    let at = names.iter().position(|name| name == "made at run time").unwrap_or_else(|| panic!("{names:?}"));
    assert_eq!((names[at - 1].as_str(), names.last().map(String::as_str)), ("wait_for_end", Some("_start")));
}

#[test]
fn a_thread_means_its_process_and_each_is_told_with_its_times() {
    let directory = TempDir::new("live-facts");
    let Some(program) = traceable(&directory, THREADS, "cc", &[]) else { return };
    let target = Target::start(Command::new(program).arg("5"));
    let ids = thread_ids(target.id);
    crate::target::wait_until("all sleep", || ids.iter().all(|id| status(*id, "State").starts_with('S')));
    let captured = stacks(*ids.last().unwrap(), &[]);
    assert_eq!(captured["process"]["pid"], target.id);
    let threads = captured["threads"].as_array().unwrap();
    assert_eq!(threads.len(), 6);
    // Passed on from whoever runs the tests. proc(5): the nineteenth field, the seventeenth behind the name.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let nice = stat.rsplit(')').next().unwrap().split_whitespace().nth(16).unwrap().parse::<i64>().unwrap();
    for thread in threads {
        assert_eq!(thread["name"], "program");
        assert_eq!((thread["state"].as_str(), thread["nice"].as_i64()), (Some("sleeping"), Some(nice)));
        assert!(thread["cpu_usage"].as_f64().unwrap() < 0.5);
        assert!(thread["user_time"].as_f64().is_some() && thread["system_time"].as_f64().is_some());
    }
    assert_eq!(threads[0]["waiting_in"], "read");
    assert!(threads[0]["waiting_on"].as_str().unwrap().starts_with("pipe:["));
    assert_eq!(threads[1]["waiting_in"], "pause");
    let text = backtrail(&["stacks", &target.id.to_string()]).stdout;
    assert!(text.contains("sleeping in read of pipe:["), "{text}");
    let apart = backtrail(&["stacks", &target.id.to_string(), "--no-fold"]).stdout;
    assert_eq!(apart.matches("Thread ").count(), 6, "{apart}");
}

#[test]
fn identical_stacks_are_shown_once_with_the_threads_that_have_them() {
    let directory = TempDir::new("live-fold");
    let Some(program) = traceable(&directory, THREADS, "cc", &[]) else { return };
    let target = Target::start(Command::new(program).arg("37"));
    let text = backtrail(&["stacks", &target.id.to_string()]).stdout;
    // Depths 20 to 34, the first seven of them three times.
    assert_eq!(text.matches("3 threads: ").count(), 7, "{text}");
    assert_eq!(text.matches("2 threads: ").count(), 8, "{text}");
    let collapsed = backtrail(&["stacks", &target.id.to_string(), "--format", "collapsed"]).stdout;
    let counts: usize =
        collapsed.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
    assert_eq!(counts, 38, "{collapsed}");
    let names =
        backtrail(&["stacks", &target.id.to_string(), "--format", "collapsed", "--detail", "names"]).stdout;
    assert!(names.contains(";deep;deep;"), "{names}");
    let addresses = backtrail(&["stacks", &target.id.to_string(), "--detail", "addresses"]);
    assert!(addresses.code == Some(0) && !addresses.stdout.contains("deep"), "{}", addresses.stdout);
}

#[test]
fn what_a_process_calls_itself_moves_no_cursor() {
    let directory = TempDir::new("live-escapes");
    let Some(program) = traceable(&directory, THREADS, "cc", &[]) else { return };
    let renamed = directory.join("a\u{1b}[31m\nb");
    crate::target::copy_program(program.as_ref(), &renamed);
    let target = Target::start(Command::new(renamed).args(["1", "\u{1b}[2J\nfake line"]));
    for format in ["text", "collapsed"] {
        let text = backtrail(&["stacks", &target.id.to_string(), "--format", format]).stdout;
        assert!(!text.contains('\u{1b}') && !text.contains("\nfake line") && !text.contains("\nb"), "{text}");
        assert_eq!(text.contains(r"\u{1b}[2J\nfake line"), format == "text", "{text}");
    }
    let images = backtrail(&["images", &target.id.to_string()]).stdout;
    assert!(!images.contains('\u{1b}') && images.contains(r"a\u{1b}[31m\nb"), "{images}");
    assert_eq!(stacks(target.id, &[])["threads"][1]["name"], "a\u{1b}[31m\nb");
}
