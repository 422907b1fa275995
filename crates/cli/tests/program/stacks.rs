//! `stacks` on the captured process that the repository ships, and on what is no such thing.

use crate::run::backtrail;
use backtrail_testkit::{TempDir, assert_snapshot, fixtures, workspace_root};

const CORE: &str = "fixtures/stacks/orders.core";
const PROGRAM: &str = "fixtures/stacks/orders";
const SAVED: &str = "fixtures/stacks/saved";
/// Bytes of the core's headers and notes.
const BEFORE_MEMORY: usize = 0x638;

fn snapshot(name: &str, actual: &str) {
    assert_snapshot(workspace_root().join("crates/cli/tests/program/snapshots").join(name), actual);
}

#[test]
fn a_core_in_every_form() {
    for (format, ending) in [("text", "txt"), ("json", "json"), ("collapsed", "collapsed")] {
        let run = backtrail(&["stacks", "--core", CORE, "-e", PROGRAM, "--format", format]);
        snapshot(&format!("stacks-core.{ending}"), &run.whole());
    }
    let by_id = backtrail(&["stacks", "--core", CORE, "-s", "fixtures/stacks"]);
    assert_eq!(by_id.stdout, backtrail(&["stacks", "--core", CORE, "-e", PROGRAM]).stdout);
}

#[test]
fn cores_of_other_processors_with_threads() {
    for processor in ["aarch64", "arm", "i386"] {
        let program = format!("fixtures/threads/threads.{processor}");
        let run = backtrail(&["stacks", "--core", &format!("{program}.core"), "-e", &program]);
        snapshot(&format!("stacks-core.{processor}.txt"), &run.whole());
    }
}

#[test]
fn the_readme_shows_what_is_printed() {
    let readme = std::fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let command = format!("backtrail stacks --core {CORE} -e {PROGRAM}");
    let printed = backtrail(&["stacks", "--core", CORE, "-e", PROGRAM]).stdout;
    let printed = printed.lines().map(str::trim_start);
    let first = printed.clone().next().unwrap();
    let lines = readme.lines().map(str::trim_start);
    let shown = lines.skip_while(|line| *line != command).skip_while(|line| *line != first);
    let same = shown.zip(printed).take_while(|(shown, printed)| shown == printed);
    let (last, _) = same.filter(|(shown, _)| !shown.is_empty()).last().unwrap();
    assert_eq!(last, "end of stack: outermost frame");
    for arguments in [&["stacks", "--offline", SAVED][..], &["cfi", PROGRAM, "--function", "take"]] {
        assert_eq!(backtrail(arguments).code, 0, "{arguments:?}");
        assert!(readme.contains(&arguments.join(" ")), "{arguments:?}");
    }
}

#[test]
fn a_saved_stack_in_every_form() {
    for (format, ending) in [("text", "txt"), ("json", "json"), ("collapsed", "collapsed")] {
        let run = backtrail(&["stacks", "--offline", SAVED, "--format", format]);
        snapshot(&format!("stacks-offline.{ending}"), &run.whole());
    }
    let core = backtrail(&["stacks", "--core", CORE, "-e", PROGRAM, "--format", "collapsed"]);
    assert_eq!(
        core.stdout,
        backtrail(&["stacks", "--offline", SAVED, "--format", "collapsed"]).stdout,
        "it is the same process"
    );
}

/// `fixtures/stacks/minidump.py` makes them of the cores.
#[test]
fn a_minidump_has_the_stacks_of_its_core() {
    for (directory, program) in [
        ("fixtures/stacks", "orders"),
        ("fixtures/threads", "threads.aarch64"),
        ("fixtures/threads", "threads.arm"),
        ("fixtures/threads", "threads.i386"),
    ] {
        let (dump, core) = (format!("{directory}/{program}.dmp"), format!("{directory}/{program}.core"));
        let by_dump = backtrail(&["stacks", "--minidump", &dump, "-s", directory, "--format", "collapsed"]);
        let program = format!("{directory}/{program}");
        let by_core = backtrail(&["stacks", "--core", &core, "-e", &program, "--format", "collapsed"]);
        assert_eq!((by_dump.code, by_dump.stdout), (0, by_core.stdout), "{program}: {}", by_dump.stderr);
    }
}

#[test]
fn a_minidump_in_every_form() {
    for (format, ending) in [("text", "txt"), ("json", "json")] {
        let run = backtrail(&[
            "stacks",
            "--minidump",
            "fixtures/stacks/orders.dmp",
            "-s",
            "fixtures/stacks",
            "--format",
            format,
        ]);
        snapshot(&format!("stacks-minidump.{ending}"), &run.whole());
    }
    let missing = backtrail(&["stacks", "--minidump", "fixtures/stacks/orders.dmp"]);
    assert_eq!(missing.code, 1, "{}", missing.whole());
    assert!(missing.stdout.contains("/orders/orders"), "{}", missing.stdout);
}

#[test]
fn a_program_that_is_missing_is_named_with_its_identity() {
    let run = backtrail(&["stacks", "--core", CORE]);
    assert_eq!(run.code, 1, "{}", run.whole());
    snapshot("stacks-missing.txt", &run.whole());
}

#[test]
fn another_build_of_the_program_is_refused() {
    let other = "fixtures/symbolize/bin/dwz-one.elf";
    let run = backtrail(&["stacks", "--core", CORE, "-e", other, "--format", "json"]);
    assert_eq!(run.code, 1, "{}", run.whole());
    assert!(run.stdout.contains("fixtures/symbolize/bin/dwz-one.elf: has build id"), "{}", run.stdout);
    assert!(!run.stdout.contains("chain.c"), "{}", run.stdout);
}

#[test]
fn a_core_that_is_cut_off_gives_what_is_left() {
    let directory = TempDir::new("cut-core");
    let whole = std::fs::read(fixtures().join("stacks/orders.core")).unwrap();
    let path = directory.write("cut.core", &whole[..BEFORE_MEMORY]);
    let run = backtrail(&["stacks", "--core", path.to_str().unwrap(), "-e", PROGRAM]);
    // Registers and list of files are there, the stack is not.
    assert_eq!(run.code, 0, "{}", run.whole());
    snapshot("stacks-cut.txt", &run.stdout);
    let path = directory.write("short.core", &whole[..100]);
    let run = backtrail(&["stacks", "--core", path.to_str().unwrap()]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    assert!(run.stderr.contains("short.core: ") && run.stderr.contains("program headers"), "{}", run.stderr);
}

/// A core as makedumpfile and the kernel write it: one note, which no process has.
fn kernel_core() -> Vec<u8> {
    let mut core = vec![0; 64 + 56];
    core[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    for (at, value) in [(16, 4), (18, 62), (32, 64), (54, 56), (56, 1), (64, 4), (72, 120), (96, 28)] {
        core[at] = value;
    }
    core.extend([&11_u32.to_le_bytes()[..], &4_u32.to_le_bytes(), &[0; 4], b"VMCOREINFO\0\0A=1\n"].concat());
    core
}

#[test]
fn what_is_no_core_is_refused_with_the_reason() {
    let directory = TempDir::new("no-cores");
    let kernel = directory.write("vmcore", kernel_core());
    let empty = directory.write("empty", b"");
    let text = directory.write("text", b"not a core\n");
    for (core, reason) in [
        (PROGRAM, "expected an ELF core (type 4), found a library or position-independent executable"),
        ("README.md", "expected an ELF core, found something else"),
        (kernel.to_str().unwrap(), "the dump of a kernel"),
        (empty.to_str().unwrap(), "empty file"),
        (text.to_str().unwrap(), "expected an ELF core"),
        ("no/such/core", "no/such/core"),
    ] {
        let run = backtrail(&["stacks", "--core", core]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{core}: {}", run.stderr);
        assert!(
            run.stderr.starts_with("backtrail: ") && run.stderr.contains(reason),
            "{core}: {}",
            run.stderr
        );
    }
    let run = backtrail(&["stacks", "--core", CORE, "-e", "no/such/program"]);
    assert_eq!(run.code, 2, "{}", run.whole());
    assert!(run.stderr.contains("no/such/program"), "{}", run.stderr);
}

#[test]
fn what_is_no_saved_stack_is_refused_with_the_reason() {
    let directory = TempDir::new("no-saved-stack");
    let path = directory.path().to_str().unwrap().to_owned();
    let refused = |reason: &str| {
        let run = backtrail(&["stacks", "--offline", &path]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        assert!(run.stderr.contains(reason), "{reason}: {}", run.stderr);
    };
    refused("regs.txt: expected this file");
    directory.write("regs.txt", "rip: 1000\n");
    refused("maps.txt: expected this file");
    directory.write("maps.txt", "nothing\n");
    refused("expected lines of `start-end rwxp offset device inode name`");
    directory.write("maps.txt", "1000-2000 r-xp 0 00:00 0 a.so\n");
    directory.write("regs.txt", "ra: 1000\npc: 1000\n");
    refused("register ra is of no architecture");
    let run = backtrail(&["stacks", "--offline", CORE]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("expected a directory"), "{}", run.stderr);
}

#[test]
fn wrong_usage_of_stacks_is_two() {
    for arguments in [
        &["stacks"][..],
        &["stacks", "--core", CORE, "--offline", SAVED],
        &["stacks", "--offline", SAVED, "-e", PROGRAM],
        &["stacks", "--core", CORE, "--max-frames", "many"],
    ] {
        let run = backtrail(arguments);
        assert_eq!(run.code, 2, "{arguments:?}: {}", run.whole());
    }
    let run = backtrail(&["stacks", "--core", CORE, "-e", PROGRAM, "--max-frames", "2"]);
    assert!(run.stdout.contains("as many frames as were asked for"), "{}", run.stdout);
    assert!(!run.stdout.contains("_start"), "{}", run.stdout);
}
