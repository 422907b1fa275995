//! Without permission: which setting or capability is in the way.

use crate::target::{ODD, Target, compiled, may_trace, run};
use backtrail_testkit::TempDir;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A user that owns nothing.
const NOBODY: &str = "65534";

/// A command run as that user; `None`, and one line, where that is not permitted.
fn as_nobody(program: &Path) -> Option<Command> {
    let nobody = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
    let may = Command::new("setpriv").args(nobody).arg("true").status().is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: another user cannot be taken on here");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(nobody).arg(program);
    Some(command)
}

/// Everybody may run what is in the directory: a copy of the program too.
fn opened(directory: &TempDir) -> PathBuf {
    let copy = directory.join("backtrail");
    crate::target::copy_program(crate::target::program(), &copy);
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    copy
}

#[test]
fn where_tracing_is_forbidden_it_is_said_by_what() {
    let directory = TempDir::new("live-forbidden");
    let Some(program) = compiled(&directory, ODD, "cc", &[]) else { return };
    let target = Target::start(&mut Command::new(program));
    let run = run(Command::new(crate::target::program()).args(["stacks", &target.id.to_string()]));
    if may_trace() {
        assert!(run.code == Some(0) && run.stdout.contains("wait_for_end"), "{:?} {}", run.code, run.stderr);
        return;
    }
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{}", run.stderr);
    let words = ["ptrace_scope", "seccomp", "CAP_SYS_PTRACE"];
    assert!(words.iter().any(|words| run.stderr.contains(words)), "{}", run.stderr);
}

#[test]
fn another_users_process() {
    let directory = TempDir::new("live-other-user");
    let Some(program) = compiled(&directory, ODD, "cc", &[]) else { return };
    let backtrail = opened(&directory);
    let Some(mut command) = as_nobody(&backtrail) else { return };
    let target = Target::start(&mut Command::new(program));
    let run = run(command.args(["stacks", &target.id.to_string()]));
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    if !may_trace() {
        return;
    }
    for words in ["runs as user 0 and this program as user 65534", "CAP_SYS_PTRACE"] {
        assert!(run.stderr.contains(words), "{words}: {}", run.stderr);
    }
}

#[test]
fn a_process_that_made_itself_unreadable() {
    let directory = TempDir::new("live-undumpable");
    let Some(program) = compiled(&directory, ODD, "cc", &[]) else { return };
    let backtrail = opened(&directory);
    let (Some(mut command), Some(mut target)) = (as_nobody(&backtrail), as_nobody(&program)) else { return };
    let target = Target::start(target.arg("undumpable"));
    let run = run(command.args(["stacks", &target.id.to_string()]));
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(!may_trace() || run.stderr.contains("PR_SET_DUMPABLE"), "{}", run.stderr);
}

#[test]
fn ones_own_process_needs_no_privilege() {
    let directory = TempDir::new("live-own-user");
    let Some(program) = compiled(&directory, ODD, "cc", &[]) else { return };
    let backtrail = opened(&directory);
    let (Some(mut command), Some(mut target)) = (as_nobody(&backtrail), as_nobody(&program)) else { return };
    let target = Target::start(&mut target);
    let run = run(command.args(["stacks", &target.id.to_string()]));
    if run.stderr.contains("ptrace_scope") || !may_trace() {
        return eprintln!("skipped: it is forbidden here: {}", run.stderr);
    }
    assert!(
        run.stdout.contains("wait_for_end") && run.stdout.contains("program.c"),
        "{} {}",
        run.stdout,
        run.stderr
    );
}
