//! Crashes of C code within programs of other languages, whose runtimes use faults for their own purposes.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::expect_used
)]

mod common;

use backtrail_testkit::{TempDir, not_installed};
use common::{has, libraries, put_shared, root, run};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn hosts() -> PathBuf {
    root().join("tests/hosts")
}

fn is_there(program: &str, argument: &str) -> bool {
    let is_there = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    if !is_there {
        not_installed(program);
    }
    is_there
}

/// The files that a run left.
fn left_by(command: &mut Command, directory: &Path) -> (Output, Vec<Vec<u8>>) {
    // A JVM writes its own report, too, and Go all its stacks.
    let output = command.current_dir(directory.parent().unwrap()).output().unwrap();
    let files = std::fs::read_dir(directory).into_iter().flatten().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| !path.ends_with("btcrash.reserve")).map(|path| {
        assert_eq!(path.extension(), Some(OsStr::new("btcrash")), "{}", path.display());
        std::fs::read(path).unwrap()
    });
    (output, files.collect())
}

/// The one report: its signal, and the names of all frames of the thread that crashed.
fn told(files: &[Vec<u8>], kind: &str, output: &Output) -> (String, Vec<String>) {
    assert_eq!(files.len(), 1, "{kind}: {output:?}");
    let limits = backtrail::Limits::default();
    let analysis = backtrail::Analysis::new(&files[0], &backtrail::Symbols::new(), &limits).unwrap();
    let report = &analysis.report;
    assert!(report.notes.iter().all(|note| !note.contains("cut off")), "{kind}: {:?}", report.notes);
    let signal = report.exception.as_ref().unwrap().signal.clone().unwrap();
    let names = report.fault_frames().iter().flat_map(|frame| frame.names().map(str::to_owned)).collect();
    (signal, names)
}

fn has_all(names: &[String], expected: &[&str]) {
    let mut names_left = names.iter();
    for name in expected {
        assert!(names_left.any(|known| known.starts_with(name)), "no {name}, in this order, in {names:?}");
    }
}

#[test]
fn python() {
    if !is_there("python3", "--version") {
        return;
    }
    let (shared, _) = libraries();
    let directory = TempDir::new("ffi-python");
    for (kind, signal) in [("segv", 11), ("abort", 6), ("fork", 11)] {
        let crashes = directory.path().join(kind);
        let mut command = Command::new("python3");
        command.arg(hosts().join("host.py")).arg(&shared).arg(&crashes).arg(kind);
        let (output, files) = left_by(&mut command, &crashes);
        let ended = if kind == "fork" { output.status.code() } else { output.status.signal() };
        assert_eq!(ended, Some(signal), "{kind}: {output:?}");
        let (told, names) = told(&files, kind, &output);
        assert_eq!(told, if signal == 6 { "SIGABRT" } else { "SIGSEGV" }, "{kind}");
        // An interpreter that was stripped has no names but those that it exports.
        assert!(names.len() > 5, "{kind}: {names:?}");
    }
}

/// Each SDK keeps what touches its code, and the app's own reporter is called for every crash: by us, where it was there before.
#[test]
fn sdks_with_a_copy_each_and_the_apps_own_reporter() {
    if !has("cc") {
        return;
    }
    let (shared, _) = libraries();
    let directory = TempDir::new("ffi-sdk");
    let directory = directory.path();
    let copies = ["a", "b"].map(|name| directory.join(format!("libsdk_{name}.so")));
    copies.iter().for_each(|copy| _ = std::fs::copy(&shared, copy).unwrap());
    let program = directory.join("app");
    let mut compile = Command::new("cc");
    compile.args(["-g", "-Wall", "-Wextra", "-Werror", "-I"]).arg(root().join("include"));
    run(compile.arg(hosts().join("sdk.c")).arg("-ldl").arg("-o").arg(&program));
    for order in ["none", "first", "last"] {
        for (kind, mut kept) in [("a", [1, 0]), ("b", [0, 1]), ("callback", [1, 0]), ("other", [0, 0])] {
            let own = directory.join(format!("{order}-{kind}"));
            let crashes = ["a", "b"].map(|name| own.join(name));
            let reported = own.join("reported");
            let mut command = Command::new(&program);
            command.args(&copies).args(&crashes).arg(&reported).arg(kind).arg(order);
            let output = command.output().unwrap();
            assert_eq!(output.status.signal(), Some(11), "{order} {kind}: {output:?}");
            let calls = std::fs::read(&reported).map_or(0, |bytes| bytes.len());
            assert_eq!(calls, usize::from(order != "none"), "{order} {kind}");
            if order == "last" {
                // It ends the process without calling those that were there before.
                kept = [0, 0];
            }
            for (directory, kept) in crashes.iter().zip(kept) {
                let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
                let files: Vec<_> = files.filter(|file| !file.ends_with("btcrash.reserve")).collect();
                assert_eq!(files.len(), kept, "{order} {kind}: {files:?}");
                assert!(
                    files.iter().all(|file| file.extension() == Some(OsStr::new("btcrash"))),
                    "{files:?}"
                );
            }
        }
    }
}

#[test]
fn a_jvm_whose_null_checks_are_no_crashes() {
    if !has("cc") || !is_there("javac", "-version") || !is_there("java", "-version") {
        return;
    }
    let javac = run(Command::new("java").args(["-XshowSettings:properties", "-version"]));
    let settings = String::from_utf8_lossy(&javac.stderr).into_owned();
    let home = settings.lines().find_map(|line| line.trim().strip_prefix("java.home = ")).unwrap();
    let include = Path::new(home).join("include");
    if !include.join("jni.h").is_file() {
        return not_installed("jni.h");
    }
    let (shared, _) = libraries();
    let directory = TempDir::new("ffi-java");
    let directory = directory.path();
    put_shared(directory, &shared);
    let library = directory.join("libhost.so");
    let mut compile = Command::new("cc");
    compile.args(["-g", "-shared", "-fPIC", "-I"]).arg(&include).arg("-I").arg(include.join("linux"));
    compile.arg("-I").arg(root().join("include")).arg(hosts().join("host.c")).arg("-o").arg(&library);
    run(compile
        .arg("-L")
        .arg(directory)
        .arg("-lbacktrail")
        .arg(format!("-Wl,-rpath,{}", directory.display())));
    run(Command::new("javac").arg("-d").arg(directory).arg(hosts().join("Host.java")));
    for (kind, expected) in [("fault", "SIGSEGV"), ("abort", "SIGABRT"), ("none", "")] {
        let crashes = directory.join(kind);
        let mut command = Command::new("java");
        command.args(["-Xss512k", "-XX:+CreateCoredumpOnCrash", "-cp"]).arg(directory).arg("Host");
        let (output, files) = left_by(command.arg(&library).arg(&crashes).arg(kind), &crashes);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("caught 25000") || text.contains("caught 25001"), "{kind}: {text}");
        if kind == "none" {
            assert!(output.status.success() && files.is_empty(), "{output:?}");
            continue;
        }
        // HotSpot ends with `abort`, whatever it was.
        assert_eq!(output.status.signal(), Some(6), "{kind}: {output:?}");
        let (told, names) = told(&files, kind, &output);
        assert_eq!(told, expected, "{kind}");
        // Through the interpreter's frames, which nothing has tables of.
        has_all(&names, &[&format!("Java_Host_{kind}"), "jni_CallStaticVoidMethod", "JavaMain"]);
    }
}

#[test]
fn go_whose_faults_are_panics() {
    if !is_there("go", "version") {
        return;
    }
    let (shared, _) = libraries();
    let directory = TempDir::new("ffi-go");
    let directory = directory.path();
    put_shared(directory, &shared);
    for file in ["main.go", "go.mod"] {
        std::fs::copy(hosts().join("go").join(file), directory.join(file)).unwrap();
    }
    let mut build = Command::new("go");
    build.args(["build", "-o", "host"]).current_dir(directory);
    build.env("CGO_CFLAGS", format!("-g -I{}", root().join("include").display()));
    build.env("CGO_LDFLAGS", format!("-L{0} -Wl,-rpath,{0}", directory.display()));
    build.env("GOFLAGS", "-mod=mod");
    run(&mut build);
    for (kind, ended, expected) in [
        ("fault", "SIGSEGV", &["_cgo_", "runtime.asmcgocall", "runtime.cgocall", "main.main.func1"][..]),
        ("abort", "SIGABRT", &["abort", "_cgo_", "runtime.asmcgocall", "main.main"]),
        ("panic", "", &[]),
        ("none", "", &[]),
    ] {
        let crashes = directory.join(kind);
        let mut command = Command::new(directory.join("host"));
        let (output, files) = left_by(command.arg(&crashes).arg(kind), &crashes);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "recovered 1000\n", "{kind}");
        if expected.is_empty() {
            assert_eq!(output.status.code(), Some(if kind == "panic" { 2 } else { 0 }), "{kind}: {output:?}");
            assert!(files.is_empty(), "{kind}");
            continue;
        }
        // Go ends with exit code 2 after a signal that it does not know how to handle.
        assert!(!output.status.success(), "{kind}: {output:?}");
        let (told, names) = told(&files, kind, &output);
        assert_eq!(told, ended, "{kind}");
        has_all(&names, expected);
    }
}

/// Where the compiler has it, there are poisoned bytes between the variables of stacks: they are copied without a complaint.
#[test]
fn address_sanitizer() {
    let (shared, _) = libraries();
    let directory = TempDir::new("ffi-sanitized");
    let directory = directory.path();
    put_shared(directory, &shared);
    let program = directory.join("sanitized");
    let mut compiler = Command::new("cc");
    compiler.args(["-g", "-fsanitize=address", "-pthread", "-I"]).arg(root().join("include"));
    compiler
        .arg(hosts().join("sanitized.c"))
        .arg("-L")
        .arg(directory)
        .arg("-lbacktrail")
        .arg("-o")
        .arg(&program);
    if !compiler.output().is_ok_and(|output| output.status.success()) {
        not_installed("a C compiler with AddressSanitizer");
        return;
    }
    let crashes = directory.join("crashes");
    let mut command = Command::new(&program);
    command.env("LD_LIBRARY_PATH", directory).env("ASAN_OPTIONS", "handle_segv=0:detect_leaks=0");
    let (output, files) = left_by(command.arg(&crashes), &crashes);
    assert_eq!(output.status.signal(), Some(11), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let limits = backtrail::Limits::default();
    let analysis = backtrail::Analysis::new(&files[0], &backtrail::Symbols::new(), &limits).unwrap();
    let threads = &analysis.report.process.threads;
    let is_there = |name: &str| name == "wait_for_ever";
    let waiting =
        threads.iter().filter(|thread| thread.frames.iter().any(|frame| frame.names().any(is_there)));
    assert_eq!(waiting.count(), 3, "{threads:#?}");
}
