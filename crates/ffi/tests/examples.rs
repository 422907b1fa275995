//! The examples, built by the system's compilers against both libraries, and run.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

mod common;

use backtrail_testkit::{HttpAnswer, HttpServer, TempDir};
use common::{has, libraries, put_shared, root, run};
use std::path::{Path, PathBuf};
use std::process::Command;

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
    put_shared(directory.path(), &shared);
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

/// Runs a program that is to be ended by a signal.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn crash(program: &Path, crashes: &Path, kind: &str, signal: i32) -> backtrail::Analysis {
    use std::os::unix::process::ExitStatusExt as _;
    let directory = crashes.join(kind);
    let output = Command::new(program).arg(&directory).arg(kind).output().unwrap();
    assert_eq!(output.status.signal(), Some(signal), "{kind}: {output:?}");
    let list = run(Command::new(program).arg(&directory));
    let list = String::from_utf8(list.stdout).unwrap();
    let (runs, files): (Vec<_>, Vec<_>) = list.lines().partition(|file| file.ends_with(".btsession.json"));
    assert_eq!(files.len(), 1, "{kind}: {files:?}");
    for run in runs {
        let body = std::fs::read_to_string(run).unwrap();
        assert!(
            body.contains(r#""release":"orders@1.4.2""#) && body.contains(r#""outcome":"crashed""#),
            "{body}"
        );
    }
    let data = std::fs::read(files[0]).unwrap();
    backtrail::Analysis::new(&data, &backtrail::Symbols::new(), &backtrail::Limits::default()).unwrap()
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn names_of_fault(analysis: &backtrail::Analysis) -> Vec<String> {
    analysis.report.fault_frames().iter().flat_map(|frame| frame.names().map(str::to_owned)).collect()
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn a_crash_in_c_leaves_a_whole_file_that_is_explained() {
    if !has("cc") {
        return;
    }
    let (_, archive) = libraries();
    let directory = TempDir::new("ffi-crash");
    let program = build("crash", directory.path(), None, &archive);
    let crashes = directory.join("crashes");
    for (kind, signal, expected) in
        [("segv", 11, "write_order"), ("abort", 6, "main"), ("overflow", 11, "deeper")]
    {
        let analysis = crash(&program, &crashes, kind, signal);
        let names = names_of_fault(&analysis);
        assert!(names.iter().any(|name| name == expected), "{kind}: {names:?}");
        let section = |title| analysis.report.sections.iter().find(|section| section.title == title);
        assert_eq!(section("Notes").unwrap().text, "release: orders@1.4.2\ntable: orders", "{kind}");
        let has_run = std::fs::read_dir(crashes.join(kind))
            .unwrap()
            .any(|file| file.unwrap().file_name().to_string_lossy().ends_with(".btsession.json"));
        assert!(has_run, "{kind}");
        assert!(section("Breadcrumbs").unwrap().text.ends_with("orders loaded"), "{kind}");
        assert!(analysis.report.notes.iter().all(|note| !note.contains("cut off")), "{kind}");
        let summary = &analysis.explanation.summary;
        assert!(summary.contains(expected), "{kind}: {summary}");
    }
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn a_program_in_c_sends_what_earlier_crashes_left() {
    if !has("cc") {
        return;
    }
    let (_, archive) = libraries();
    let directory = TempDir::new("ffi-send");
    let program = |name: &str| build(name, directory.path(), None, &archive);
    let (crash, send) = (program("crash"), program("send"));
    let crashes = directory.join("crashes");
    assert!(!Command::new(crash).arg(&crashes).arg("segv").status().unwrap().success());
    let file = std::fs::read_dir(&crashes).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|own| own == "btcrash")).unwrap();
    let content = std::fs::read(&file).unwrap();
    let server = HttpServer::new();
    let sent = || {
        let url = format!("{}/api/1/reports/", server.url);
        let output = Command::new(&send).arg(&crashes).arg(url).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    // A server that knows neither of them.
    let (code, said) = sent();
    assert_eq!((code, said.lines().count()), (Some(1), 3), "{said}");
    assert!(said.contains(&format!("{}: ", file.display())) && said.contains("404"), "{said}");
    assert!(said.ends_with("0 crashes and 0 runs sent\n") && file.exists(), "{said}");
    for path in ["/api/1/reports/", "/api/1/sessions/"] {
        server.answer(path, HttpAnswer::File(b"{}".to_vec()));
    }
    assert_eq!(sent(), (Some(0), "1 crashes and 1 runs sent\n".to_owned()));
    assert!(!file.exists() && server.bodies().contains(&content));
    assert_eq!(sent(), (Some(0), "0 crashes and 0 runs sent\n".to_owned()));
}

#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn an_exception_that_nobody_caught_is_told_with_the_stack_of_the_throw() {
    if !has("c++") {
        return;
    }
    let (_, archive) = libraries();
    let directory = TempDir::new("ffi-thrown");
    let program = build("thrown", directory.path(), None, &archive);
    let crashes = directory.join("crashes");
    let no_order = Some(("shop::NoOrder", Some("no order 17")));
    for (kind, signal, expected, place) in [
        ("uncaught", 6, no_order, "find_order"),
        ("noexcept", 6, no_order, "find_order"),
        ("chained", 6, no_order, "find_order"),
        ("number", 6, Some(("int", None)), "main"),
        ("caught", 6, None, "main"),
        // The C++ library prints what it says, and crashes by it, with this handler or without.
        ("no-words", 11, Some(("shop::NoWords", None)), "main"),
        ("nothing", 6, None, "main"),
    ] {
        let analysis = crash(&program, &crashes, kind, signal);
        let thrown = analysis.report.thrown.as_ref();
        let told = thrown.map(|thrown| (thrown.name.as_str(), thrown.reason.as_deref()));
        assert_eq!(told, expected, "{kind}");
        let names = names_of_fault(&analysis);
        assert!(names.iter().any(|name| name.starts_with(place)), "{kind}: {names:?}");
        let title = &analysis.explanation.title;
        let told =
            expected.is_none_or(|(name, what)| title.contains(name) && title.contains(what.unwrap_or("")));
        assert!(told, "{kind}: {title}");
        assert_eq!(title.contains("`throw;`"), kind == "nothing", "{kind}: {title}");
    }
    let again = Command::new(&program).arg(crashes.join("chained-again")).arg("chained").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout), "the handler from before\n");
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
