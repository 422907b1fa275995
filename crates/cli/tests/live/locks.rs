//! Which locks threads wait for, and deadlocks.

use crate::target::{DEADLOCK, Target, backtrail, stacks, traceable};
use backtrail_testkit::TempDir;
use serde_json::Value;
use std::process::Command;

fn thread<'s>(stacks: &'s Value, name: &str) -> &'s Value {
    stacks["threads"].as_array().unwrap().iter().find(|thread| thread["name"] == name).unwrap()
}

/// A process with so many threads in a circle, once all of them wait.
fn deadlocked(directory: &TempDir, count: usize) -> Option<Target> {
    if std::env::consts::ARCH != "x86_64" {
        eprintln!("skipped: the locks of other processors are not known");
        return None;
    }
    let program = traceable(directory, DEADLOCK, "cc", &[])?;
    let target = Target::start(Command::new(program).arg(count.to_string()));
    crate::target::wait_until("all wait for a lock", || {
        let stacks = stacks(target.id, &[]);
        let waiting = stacks["threads"].as_array().unwrap().iter();
        waiting.filter(|thread| thread["waits_for"]["kind"] == "mutex").count() == count + 3
    });
    Some(target)
}

#[test]
fn deadlocks_come_first_and_are_certain_where_all_stopped_together() {
    for count in [2, 3] {
        let directory = TempDir::new("live-deadlock");
        let Some(target) = deadlocked(&directory, count) else { return };
        let captured = stacks(target.id, &["--consistent"]);
        let [deadlock] = &captured["deadlocks"].as_array().unwrap()[..] else { panic!("{captured:#}") };
        assert_eq!((&deadlock["certain"], &deadlock["waiting_behind"]), (&true.into(), &2.into()));
        let members = deadlock["threads"].as_array().unwrap();
        assert_eq!(members.len(), count);
        for (number, member) in members.iter().enumerate() {
            let next = &members[(number + 1) % count];
            assert_eq!(member["name"], format!("conn-{number}"));
            assert_eq!(member["waits_for"]["holder"]["id"], next["id"]);
            let own = thread(&captured, &format!("conn-{number}"));
            assert_eq!(own["waits_for"], member["waits_for"]);
            assert_eq!(own["waits_for"]["told_by"], "glibc");
        }
        let holder = &thread(&captured, "after-0")["waits_for"]["holder"];
        assert_eq!((holder["status"].as_str(), &holder["name"]), (Some("ended"), &Value::Null));
        let apart = stacks(target.id, &[]);
        assert_eq!(apart["deadlocks"][0]["certain"], false);

        let id = target.id.to_string();
        let text = backtrail(&["stacks", &id, "--consistent"]).stdout;
        let first = members[0]["id"].as_u64().unwrap();
        let (held, wanted) =
            (&members[count - 1]["waits_for"]["address"], &members[0]["waits_for"]["address"]);
        let (held, wanted) = (held.as_str().unwrap(), wanted.as_str().unwrap());
        let second = members[1]["id"].as_u64().unwrap();
        for line in [
            format!("\nDEADLOCK: {count} threads wait for each other\n"),
            format!(
                "\n  {first} conn-0 holds mutex {held}, waits for mutex {wanted} held by {second} conn-1\n"
            ),
            "\n  2 further threads wait for them\n".to_owned(),
            format!("sleeping in futex, waits for mutex {held} held by {first} conn-0 "),
            format!(" held by {}, which has ended ", holder["id"]),
        ] {
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert!(text.find("DEADLOCK") < text.find("Thread "), "{text}");
        let text = backtrail(&["stacks", &id]).stdout;
        assert!(text.contains("\nPossible deadlock: ") && !text.contains("DEADLOCK"), "{text}");
        assert!(text.contains("--consistent stops them together"), "{text}");
    }
}
