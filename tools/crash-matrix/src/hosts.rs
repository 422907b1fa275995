//! Programs of several languages that crash in the same C functions.

use crate::Result;
use crate::build::{Libraries, has, output};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const NAMES: [&str; 7] = ["c", "c++", "rust", "go", "java", "python", "asan"];

/// A program that is there to crash.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) name: &'static str,
    /// The program and its first arguments.
    command: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Host {
    /// Its command line, to crash in this way; without a directory there is no handler.
    pub(crate) fn command(&self, kind: &str, directory: Option<&Path>) -> Vec<String> {
        let directory = directory.map(|directory| directory.display().to_string());
        self.command.iter().cloned().chain([kind.to_owned()]).chain(directory).collect()
    }

    pub(crate) fn environment(&self) -> impl Iterator<Item = &(&'static str, String)> {
        self.environment.iter()
    }

    /// Signals that are as good as the one that the kind has: a sanitizer finds some mistakes before they become faults, and aborts.
    pub(crate) fn aborts_instead(&self) -> bool {
        self.name == "asan"
    }
}

/// Builds one; `Err` says what is missing.
pub(crate) fn build(name: &'static str, directory: &Path, libraries: &Libraries) -> Result<Host> {
    let host = |command: Vec<String>| Host { name, command, environment: Vec::new() };
    let shared = directory.join("libkinds.so").display().to_string();
    match name {
        "c" => Ok(host(vec![native(directory, name, &[], &[])?])),
        "c++" => Ok(host(vec![native(directory, name, &["-x", "c++"], &["-DHOST_IN_CPP"])?])),
        "asan" => {
            let sanitized = ["-fsanitize=address", "-fno-omit-frame-pointer"];
            // It would end by an exit code otherwise, which is no crash.
            let options =
                "abort_on_error=1:disable_coredump=0:detect_leaks=0:verify_asan_link_order=0".to_owned();
            let environment = vec![("ASAN_OPTIONS", options)];
            Ok(Host { environment, ..host(vec![native(directory, name, &[], &sanitized)?]) })
        }
        "rust" => {
            let alone = directory.join("libkinds_alone.so").display().to_string();
            Ok(host(vec![libraries.rust_host()?.display().to_string(), alone]))
        }
        "python" => {
            has("python3", "--version")?;
            let script = programs().join("host.py").display().to_string();
            Ok(host(vec!["python3".to_owned(), script, shared]))
        }
        "go" => go(directory).map(|program| host(vec![program])),
        _ => java(directory).map(host),
    }
}

pub(crate) fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

const WARNINGS: [&str; 4] = ["-g", "-O2", "-Wall", "-fPIC"];
/// The mistakes are the purpose, and the compiler sees through some.
const MISTAKES: [&str; 4] =
    ["-Wno-unknown-warning-option", "-Wno-use-after-free", "-Wno-unused-value", "-fno-devirtualize"];

/// The libraries that the hosts load.
pub(crate) fn shared(directory: &Path) -> Result<()> {
    let objects = objects(directory, "shared", &[], &[])?;
    let objects: Vec<_> = objects.into_iter().filter(|object| !object.ends_with("host.o")).collect();
    let (with, alone) = (directory.join("libkinds.so"), directory.join("libkinds_alone.so"));
    let mut link = Command::new("c++");
    link.arg("-shared").args(&objects).arg("-o").arg(with).args(linked_with(directory));
    output(&mut link)?;
    // The Rust host has the handler in itself.
    let kinds = objects.iter().filter(|object| !object.ends_with("install.o"));
    output(Command::new("c++").arg("-shared").args(kinds).arg("-o").arg(alone))?;
    let record = directory.join("librecord.so");
    output(
        Command::new("cc")
            .args(WARNINGS)
            .arg("-shared")
            .arg(programs().join("record.c"))
            .arg("-o")
            .arg(record),
    )?;
    Ok(())
}

fn linked_with(directory: &Path) -> Vec<String> {
    let directory = directory.display();
    vec![
        format!("-L{directory}"),
        "-lbacktrail".to_owned(),
        format!("-Wl,-rpath,{directory}"),
        "-lpthread".to_owned(),
    ]
}

fn objects(directory: &Path, name: &str, language: &[&str], flags: &[&str]) -> Result<Vec<PathBuf>> {
    let below = directory.join(format!("{name}-objects"));
    std::fs::create_dir_all(&below).map_err(|error| format!("{}: {error}", below.display()))?;
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/ffi/include");
    let mut made = Vec::new();
    for source in ["kinds.c", "thrown.cpp", "install.cpp", "host.c"] {
        let object = below.join(Path::new(source).with_extension("o"));
        let mut compile = Command::new(if source.ends_with(".cpp") { "c++" } else { "cc" });
        compile.args(WARNINGS).args(flags).arg("-I").arg(&include).arg("-c");
        compile.args(MISTAKES).args(if source == "host.c" { language } else { &[] });
        output(compile.arg(programs().join(source)).arg("-o").arg(&object))?;
        made.push(object);
    }
    Ok(made)
}

fn native(directory: &Path, name: &str, language: &[&str], flags: &[&str]) -> Result<String> {
    let program = directory.join(format!("host-{name}"));
    let objects = objects(directory, name, language, flags)?;
    let mut link = Command::new("c++");
    link.args(flags).args(objects).arg("-o").arg(&program).args(linked_with(directory));
    output(&mut link)?;
    Ok(program.display().to_string())
}

fn go(directory: &Path) -> Result<String> {
    has("go", "version")?;
    let below = directory.join("go");
    std::fs::create_dir_all(&below).map_err(|error| format!("{}: {error}", below.display()))?;
    for file in ["main.go", "go.mod"] {
        let from = programs().join("go").join(file);
        std::fs::copy(&from, below.join(file)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    let directory = directory.display();
    let mut build = Command::new("go");
    build.args(["build", "-o", "host"]).current_dir(&below).env("GOFLAGS", "-mod=mod");
    build.env("CGO_CFLAGS", format!("-g -I{}", programs().display()));
    build.env("CGO_LDFLAGS", format!("-L{directory} -Wl,-rpath,{directory}"));
    output(&mut build)?;
    Ok(below.join("host").display().to_string())
}

fn java(directory: &Path) -> Result<Vec<String>> {
    has("javac", "-version")?;
    let settings = output(Command::new("java").args(["-XshowSettings:properties", "-version"]))?;
    let home = settings.lines().find_map(|line| line.trim().strip_prefix("java.home = "));
    let include = Path::new(home.ok_or("java names no java.home")?).join("include");
    if !include.join("jni.h").is_file() {
        return Err(format!("{}: no jni.h", include.display()));
    }
    let library = directory.join("libjni.so");
    let mut compile = Command::new("cc");
    compile.args(WARNINGS).arg("-shared").arg("-I").arg(&include).arg("-I").arg(include.join("linux"));
    compile.arg(programs().join("jni.c")).arg("-o").arg(&library).arg("-lkinds").args(linked_with(directory));
    output(&mut compile)?;
    output(Command::new("javac").arg("-d").arg(directory).arg(programs().join("Host.java")))?;
    let library = format!("-Dhost.library={}", library.display());
    // Its own report is not wanted, may wait for ever for a lock of malloc, and it has to end by a signal.
    let options = [
        "java",
        "-XX:+CreateCoredumpOnCrash",
        "-XX:ErrorFile=/dev/null",
        "-XX:ErrorLogTimeout=20",
        "-XX:TieredStopAtLevel=1",
        "-cp",
    ];
    let options = options.map(str::to_owned).into_iter();
    Ok(options.chain([directory.display().to_string(), library, "Host".to_owned()]).collect())
}
