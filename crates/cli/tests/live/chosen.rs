//! Several processes, processes by name, chosen threads, what became of them since.

use crate::target::{NAMED, Target, backtrail, stacks, status, thread_ids, traceable, wait_until};
use backtrail_testkit::{Schema, TempDir};
use serde_json::Value;
use std::process::Command;

/// A process with so many threads called `conn-`, in a program with a name that no other has.
fn named(directory: &TempDir, kind: &str, count: usize) -> Option<(Target, String)> {
    let program = traceable(directory, NAMED, "cc", &["-O0"])?;
    // The kernel keeps 15 bytes of a name.
    let name = format!("bt{kind}-{}", std::process::id());
    let renamed = directory.join(&name);
    crate::target::copy_program(&program, &renamed);
    let target = Target::start(Command::new(renamed).arg(count.to_string()));
    settled(&target, count + 4);
    Some((target, name))
}

/// Once all threads have their own names, and wait but for one.
fn settled(target: &Target, count: usize) {
    let is_settled = |id: &u32| {
        *id == target.id || (status(*id, "Name").contains('-') && !status(*id, "Name").starts_with("bt"))
    };
    wait_until("all have their names", || {
        let ids = thread_ids(target.id);
        let waiting = ids.iter().filter(|id| status(**id, "State").starts_with('S')).count();
        ids.len() == count && ids.iter().all(is_settled) && waiting >= count - 1
    });
}

fn thread_names(stacks: &Value) -> Vec<&str> {
    stacks["threads"].as_array().unwrap().iter().map(|thread| thread["name"].as_str().unwrap()).collect()
}

#[test]
fn processes_by_name_are_all_captured() {
    let directory = TempDir::new("live-by-name");
    let Some((one, name)) = named(&directory, "n", 8) else { return };
    let renamed = directory.join(&name);
    let two = Target::start(Command::new(renamed).arg("8"));
    settled(&two, 12);
    let text = backtrail(&["stacks", &name, "--detail", "names"]).stdout;
    for target in [&one, &two] {
        assert!(text.contains(&format!("{name} [{}] · ", target.id)), "{text}");
    }
    assert_eq!(text.matches("\n8 threads conn-0 … conn-14 · sleeping in pause").count(), 2, "{text}");
    // By the id of a thread, too: it is captured once.
    let thread = thread_ids(one.id).into_iter().max().unwrap().to_string();
    let run = backtrail(&["stacks", &name, &thread, "--format", "json"]);
    let ids: Vec<_> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["process"]["pid"].as_u64().unwrap())
        .collect();
    let mut expected = vec![u64::from(one.id), u64::from(two.id)];
    expected.sort_unstable();
    assert_eq!(ids, expected, "{}", run.stderr);
    let collapsed = backtrail(&["stacks", &name, "--format", "collapsed"]).stdout;
    assert!(collapsed.lines().all(|line| line.starts_with(&format!("{name} ["))), "{collapsed}");
    // One that is not there costs the others nothing.
    let run = backtrail(&["stacks", &name, "no-such-process", "--format", "json"]);
    assert_eq!((run.code, run.stdout.lines().count()), (Some(1), 2));
    assert!(run.stderr.contains("no process is called no-such-process"), "{}", run.stderr);
    let run = backtrail(&["stacks", "no-such-process"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
}

#[test]
fn threads_are_chosen_by_id_and_by_name() {
    let directory = TempDir::new("live-chosen");
    let Some((target, _)) = named(&directory, "c", 12) else { return };
    let all = stacks(target.id, &[]);
    let chosen = stacks(target.id, &["--thread", "^conn-1[0-9]*$"]);
    let mut names = thread_names(&chosen);
    names.sort_unstable();
    assert_eq!(names, ["conn-10", "conn-12", "conn-14", "conn-16", "conn-18"]);
    // Each is what it is among all.
    for thread in chosen["threads"].as_array().unwrap() {
        let among = &all["threads"][usize::try_from(thread["index"].as_u64().unwrap()).unwrap()];
        for key in ["id", "name", "waiting_in", "start_time", "frames"] {
            assert_eq!(thread[key], among[key], "{key}");
        }
    }
    let main = target.id.to_string();
    let both = stacks(target.id, &["--tid", &main, "--thread", "stay"]);
    assert_eq!(both["threads"].as_array().unwrap().len(), 2);
    for (arguments, code, said) in [
        (&["--tid", &main, "--tid", "1"][..], 1, "no thread has the id 1"),
        (&["--tid", "1"], 2, "no thread has the id 1"),
        (&["--thread", "nobody"], 2, "no thread has a name that `nobody` matches"),
        (&["--thread", "("], 2, "is no regular expression"),
        (&["--core", "x", "--busy"], 2, "cannot be used with"),
    ] {
        let run = backtrail(&[&["stacks", &main], arguments].concat());
        assert_eq!(run.code, Some(code), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.contains(said) && (code == 1) != run.stdout.is_empty(), "{}", run.stderr);
    }
}

#[test]
fn busy_threads_come_alone() {
    let directory = TempDir::new("live-busy");
    let Some((target, _)) = named(&directory, "b", 5) else { return };
    // On a machine with much to do it may not have had its turn.
    wait_until("it had its turn", || {
        let run = backtrail(&["stacks", &target.id.to_string(), "--busy", "--format", "json"]);
        let captured: Value = serde_json::from_str(&run.stdout).unwrap();
        let usage = |thread: &Value| thread["cpu_usage"].as_f64().unwrap();
        let threads = captured["threads"].as_array().unwrap();
        assert!(threads.iter().all(|thread| usage(thread) > 0.0));
        assert!(threads.windows(2).all(|pair| usage(&pair[0]) >= usage(&pair[1])), "{threads:?}");
        let left_out = format!("{} of 9 threads used no processor time in 200 ms", 9 - threads.len());
        assert!(run.stderr.contains(&left_out), "{}", run.stderr);
        thread_names(&captured) == ["spin-0"]
    });
}

#[test]
fn threads_that_moved_are_told() {
    let directory = TempDir::new("live-diff");
    let Some((mut target, _)) = named(&directory, "d", 10) else { return };
    let id = target.id.to_string();
    let earlier = backtrail(&["stacks", &id, "--format", "json"]).stdout;
    let file = directory.write("old.json", &earlier);
    let file = file.to_str().unwrap();
    assert_eq!(target.ask(), "changed\n");
    settled(&target, 14);
    let now = stacks(target.id, &["--diff", file]);
    Schema::new().check("stacks", &now).unwrap();
    let names = |key: &str| {
        let threads = now["diff"][key].as_array().unwrap().iter();
        threads.map(|thread| thread["name"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((names("new"), names("gone")), (vec!["coming-0"], vec!["going-0"]));
    let unmoved = names("unmoved");
    let is_conn = |name: &&str| name.starts_with("conn-");
    assert_eq!(unmoved.iter().copied().filter(is_conn).count(), 10, "{unmoved:?}");
    assert!(unmoved.contains(&"stay-0"));
    let text = backtrail(&["stacks", &id, "--diff", file]).stdout;
    assert!(text.contains(&format!("\nSince {file}: ")) && text.contains(" 1 new, 1 gone, "), "{text}");
    assert!(text.contains("\n  gone     ") && text.contains(" going-0\n"), "{text}");
    // Threads that were not asked for are not gone.
    let chosen = stacks(target.id, &["--diff", file, "--thread", "stay"]);
    assert_eq!(chosen["diff"]["gone"], Value::Array(Vec::new()));
    for (text, said) in [("{}", "line 1: expected stacks as JSON"), ("", "nothing is there")] {
        let other = directory.write("other.json", text);
        let run = backtrail(&["stacks", &id, "--diff", other.to_str().unwrap()]);
        assert!(run.code == Some(2) && run.stderr.contains(said), "{}", run.stderr);
    }
    let other = earlier.replace(&format!("\"pid\":{id},"), "\"pid\":1,");
    let other = directory.write("other.json", &other);
    let run = backtrail(&["stacks", &id, "--diff", other.to_str().unwrap()]);
    assert!(
        run.code == Some(1) && run.stderr.contains("is not in the file that --diff names"),
        "{}",
        run.stderr
    );
}

#[test]
fn where_in_the_kernel_threads_wait_is_told() {
    let directory = TempDir::new("live-kernel");
    let Some((target, _)) = named(&directory, "k", 3) else { return };
    let is_readable =
        std::fs::read_to_string(format!("/proc/{}/stack", target.id)).is_ok_and(|text| text.contains('+'));
    let captured = stacks(target.id, &["--kernel"]);
    for thread in captured["threads"].as_array().unwrap().iter().filter(|thread| thread["name"] != "spin-0") {
        let (stack, channel) = (thread["kernel_stack"].as_array().unwrap(), &thread["wait_channel"]);
        assert!(!is_readable || (!stack.is_empty() && channel.is_null()), "{thread:#} {}", captured["notes"]);
    }
    let spin = captured["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == "spin-0");
    assert_eq!(spin.unwrap()["kernel_stack"], Value::Array(Vec::new()));
    if is_readable {
        let text = backtrail(&["stacks", &target.id.to_string(), "--kernel"]).stdout;
        assert!(text.contains("\n      [kernel]  "), "{text}");
    }
    // Not asked for.
    assert!(!backtrail(&["stacks", &target.id.to_string()]).stdout.contains("[kernel]"));
}
