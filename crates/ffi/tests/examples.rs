//! The examples, built by the system's compilers against both libraries, and run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use backtrail_testkit::{TempDir, cargo_build};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shared and the static library, built as this test was.
fn libraries() -> (PathBuf, PathBuf) {
    let text = cargo_build(root(), &["--package", "backtrail-ffi", "--lib"]);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let files: Vec<PathBuf> = messages
        .filter(|message| message["target"]["name"] == "backtrail_ffi")
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| Some(PathBuf::from(file.as_str()?)))
        .collect();
    let one = |ending: &str| {
        let mut files = files.iter().filter(|file| file.extension().is_some_and(|own| own == ending));
        files.next().unwrap_or_else(|| panic!("no .{ending} among {files:?}")).clone()
    };
    (one("so"), one("a"))
}

fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: no {program} here");
    }
    found
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compilers, and for each its language.
const COMPILERS: [(&str, &str, &str); 2] = [("cc", "c", "-std=c99"), ("c++", "cpp", "-std=c++11")];

fn build(name: &str, directory: &Path, shared: Option<&Path>, archive: &Path) -> PathBuf {
    let source = ["c", "cpp"].map(|ending| root().join(format!("examples/{name}.{ending}")));
    let source = source.into_iter().find(|source| source.is_file()).unwrap();
    let (compiler, _, standard) =
        COMPILERS.into_iter().find(|(_, ending, _)| source.extension().unwrap() == *ending).unwrap();
    let how = if shared.is_some() { "shared" } else { "static" };
    let program = directory.join(format!("{name}-{how}"));
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-pthread"]);
    command.arg("-I").arg(root().join("include")).arg(&source).arg("-o").arg(&program);
    match shared {
        Some(directory) => command
            .arg("-L")
            .arg(directory)
            .arg("-lbacktrail")
            .arg(format!("-Wl,-rpath,{}", directory.display())),
        None => command.arg(archive),
    };
    run(command.args(["-lgcc_s", "-lpthread", "-lm", "-ldl"]));
    program
}

#[test]
fn they_build_and_run_with_both_libraries() {
    if !has("cc") || !has("c++") {
        return;
    }
    let (shared, archive) = libraries();
    let directory = TempDir::new("ffi-examples");
    // As an installation has it: the name in the library, and the one that the linker looks for.
    std::fs::copy(&shared, directory.join("libbacktrail.so.0")).unwrap();
    std::os::unix::fs::symlink("libbacktrail.so.0", directory.join("libbacktrail.so")).unwrap();
    for shared in [Some(directory.path()), None] {
        let text = |name: &str, arguments: &[&Path]| {
            let program = build(name, directory.path(), shared, &archive);
            String::from_utf8(run(Command::new(program).args(arguments)).stdout).unwrap()
        };
        let threads = text("threads", &[]);
        assert!(threads.contains("  0  main  at "), "{threads}");
        assert!(threads.contains("wait_for_work  at ") && threads.contains("worker  at "), "{threads}");
        assert!(threads.contains("print_all") && threads.contains(" (main)"), "{threads}");
        // The asking thread's own stack begins with who asked.
        assert!(threads.contains("(main)\n   0  print_all"), "{threads}");
        assert!(threads.contains("outside-sections") || threads.contains("not-code"), "{threads}");
        assert!(threads.contains("status 4: the thread is gone"), "{threads}");

        let signal = text("on_signal", &[]);
        assert!(signal.contains("interrupted_here") && signal.contains("main"), "{signal}");

        let hangs = directory.join("hangs");
        let watch = text("watch", &[&hangs]);
        assert!(watch.starts_with("1 hang\n") && watch.contains("compute_in_vain"), "{watch}");
        assert_eq!(std::fs::read_dir(&hangs).unwrap().count(), 0, "a hang that is over leaves no file");
    }
}

#[test]
fn the_shared_library_exports_the_header_and_nothing_else() {
    if !has("nm") {
        return;
    }
    let (shared, _) = libraries();
    let output = run(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(&shared));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut exported: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    exported.sort_unstable();
    let header = std::fs::read_to_string(root().join("include/backtrail.h")).unwrap();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let calls =
        header.split(|letter| !is_word(letter) && letter != '(').filter_map(|word| word.split_once('('));
    let mut declared: Vec<_> =
        calls.map(|(name, _)| name).filter(|name| name.starts_with("backtrail_")).collect();
    // Mentioned in comments as well.
    declared.sort_unstable();
    declared.dedup();
    assert_eq!(exported, declared);
}
