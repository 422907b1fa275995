//! Some thousand random command lines, the same ones each time.

use crate::command_line::{COMMANDS, check, seeds};
use crate::run::backtrail;
use backtrail_testkit::{TempDir, workspace_root};

#[test]
fn random_command_lines_end_well() {
    let directory = TempDir::new("command-lines");
    let (seeds, directory) = (seeds(&workspace_root()), directory.join("files"));
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut codes = [0; 3];
    for _ in 0..1_600 {
        let bytes: Vec<u8> = (0..512)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 32) as u8
            })
            .collect();
        codes[usize::from(check(&bytes, &seeds, &directory))] += 1;
    }
    // Were most of them wrong usage, little would be tried.
    assert!(codes.iter().all(|count| *count > 100), "{codes:?}");
}

/// The commands that the help of a command lists.
fn commands_of(command: &[&str]) -> Vec<String> {
    let help = backtrail(&[command, &["--help"]].concat()).stdout;
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let name = |line: &str| {
        let rest = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        Some([command, &[rest.split(' ').next()?]].concat().join(" "))
    };
    let names: Vec<_> = list.lines().filter_map(name).collect();
    assert!(names.len() > 2, "{help}");
    names.into_iter().filter(|name| !name.ends_with(" help")).collect()
}

#[test]
fn every_command_is_among_them() {
    // The tasks of the server are written as what may be added.
    let tasks = COMMANDS.iter().filter(|(command, _)| command.starts_with("serve"));
    let tasks: Vec<_> = tasks.flat_map(|(_, options)| *options).map(|task| format!("serve {task}")).collect();
    let all = [&[][..], &["sdk"], &["serve"]].into_iter().flat_map(commands_of);
    for name in all {
        let is_it = |line: &str| line == name || line.starts_with(&format!("{name} "));
        let is_tried =
            COMMANDS.iter().any(|(command, _)| is_it(command)) || tasks.iter().any(|task| is_it(task));
        assert!(is_tried, "{name}");
    }
}
