//! A stack that is very deep: folded, and its depth told, of the process and of its core.

use crate::target::{DEEP, Target, backtrail, signal, status, traceable, wait_until};
use backtrail_testkit::TempDir;
use std::path::{Path, PathBuf};
use std::process::Command;

const CALLS: usize = 100_000;

#[test]
fn a_deep_stack_is_folded_and_its_depth_known() {
    let directory = TempDir::new("live-deep");
    let Some(program) = traceable(&directory, DEEP, "cc", &["-O1", "-fno-optimize-sibling-calls"]) else {
        return;
    };
    let target = Target::start(Command::new(&program).arg(CALLS.to_string()).current_dir(directory.path()));
    let run = backtrail(&["stacks", &target.id.to_string()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    is_folded(&run.stdout);
    // Not `QUIT`, which is ignored by all that a shell has put into the background.
    signal("-ABRT", target.id);
    // Its input stays open until then: a thread that has read the end of it is not in the core.
    wait_until("its core is written", || status(target.id, "State").starts_with('Z'));
    let Some(core) = core_in(directory.path()) else {
        return eprintln!("a deep core not checked: the kernel writes none here (core_pattern, limits)");
    };
    let run = backtrail(&["stacks", "--core", core.to_str().unwrap(), "-e", program.to_str().unwrap()]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    is_folded(&run.stdout);
}

/// Some frames, the line that tells how many more there are of them, and the frames behind.
fn is_folded(printed: &str) {
    let folds = format!("… the frame above {} more times, up to frame ", CALLS - 1);
    let mut lines = printed.lines().skip_while(|line| !line.contains("  deeper"));
    let deeper: Vec<_> = lines.by_ref().take_while(|line| !line.contains(&folds)).collect();
    assert!(
        deeper.len() == 2 && deeper.iter().all(|line| line.contains("  deeper")),
        "{deeper:?}\n{printed}"
    );
    let begin = lines.next().unwrap();
    assert!(begin.contains("  begin") && !printed.contains("could not go on"), "{begin}\n{printed}");
}

fn core_in(directory: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("core")))
}
