//! `ffi`: the C library, installed; its examples under valgrind and the sanitizers.
//!
//! The library itself is not instrumented (that needs nightly): the sanitizers watch the C side, all of memory's
//! allocations and all locks; valgrind watches everything.

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program needs besides the static library.
const NATIVE: &str = "-lgcc_s -lpthread -lm -ldl";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [] => check(),
        [flag, prefix] if flag == "--install" => install(Path::new(prefix), &[]),
        [flag, prefix, upload] if flag == "--install" && upload == "--upload" => {
            install(Path::new(prefix), &["--features", "upload"])
        }
        _ => Err("expected no arguments, or --install PREFIX [--upload]".to_owned()),
    }
}

/// Builds the library and puts it where compilers and `pkg-config` look.
fn install(prefix: &Path, features: &[&str]) -> Result<()> {
    let build = ["build", "--release", "--package", "backtrail-ffi", "--lib"];
    sh::run(sh::cargo().args(build).args(features))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| sh::root().join("target"), PathBuf::from);
    let built = target.join("release");
    let prefix = std::path::absolute(prefix).map_err(|error| format!("{}: {error}", prefix.display()))?;
    let library = prefix.join("lib");
    sh::make_directory(&library.join("pkgconfig"))?;
    copy(&built.join("libbacktrail_ffi.so"), &library.join("libbacktrail.so.0"))?;
    copy(&built.join("libbacktrail_ffi.a"), &library.join("libbacktrail.a"))?;
    link("libbacktrail.so.0", &library.join("libbacktrail.so"))?;
    sh::make_directory(&prefix.join("include"))?;
    for header in ["backtrail.h", "backtrail_crash.hpp"] {
        copy(&sh::root().join("crates/ffi/include").join(header), &prefix.join("include").join(header))?;
    }
    sh::write(&library.join("pkgconfig/backtrail.pc"), package(&prefix))?;
    println!("installed below {}", prefix.display());
    Ok(())
}

fn package(prefix: &Path) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "prefix={}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\n\
         Name: backtrail\nDescription: Stacks of this process, names for addresses, a monitor for hangs\n\
         Version: {version}\nLibs: -L${{libdir}} -lbacktrail\nLibs.private: {NATIVE}\nCflags: -I${{includedir}}\n",
        prefix.display()
    )
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // A program that runs has the old file mapped; it keeps it.
    let _ = std::fs::remove_file(to);
    std::fs::copy(from, to)
        .map(drop)
        .map_err(|error| format!("cannot copy {} to {}: {error}", from.display(), to.display()))
}

#[cfg(unix)]
fn link(from: &str, to: &Path) -> Result<()> {
    let _ = std::fs::remove_file(to);
    std::os::unix::fs::symlink(from, to).map_err(|error| format!("cannot make {}: {error}", to.display()))
}

#[cfg(not(unix))]
fn link(from: &str, to: &Path) -> Result<()> {
    copy(&to.with_file_name(from), to)
}

/// The examples, each with its arguments and its compiler.
const EXAMPLES: [(&str, &str, bool); 3] =
    [("threads.c", "cc", false), ("on_signal.c", "cc", false), ("watch.cpp", "c++", true)];

/// How an example is built and run: a name, flags of the compiler, and what runs it, from the workspace's directory.
const WAYS: [(&str, &str, &str); 3] = [
    (
        "valgrind",
        "-O1",
        "valgrind --quiet --error-exitcode=9 --leak-check=full --show-leak-kinds=definite \
         --errors-for-leak-kinds=definite --suppressions=crates/ffi/valgrind.supp",
    ),
    ("address", "-O1 -fsanitize=address,undefined", ""),
    ("thread", "-O1 -fsanitize=thread", "env TSAN_OPTIONS=suppressions=crates/ffi/tsan.supp"),
];

fn check() -> Result<()> {
    let prefix = sh::root().join("target/ffi");
    install(&prefix, &[])?;
    let mut faults = Vec::new();
    for (way, flags, runner) in WAYS {
        for (source, compiler, takes_directory) in EXAMPLES {
            let outcome = build(&prefix, source, compiler, way, flags)
                .and_then(|program| run_example(&program, runner, takes_directory));
            println!("{source} with {way}: {}", if outcome.is_ok() { "fine" } else { "FAILED" });
            faults.extend(outcome.err().map(|error| format!("{source} with {way}: {error}")));
        }
    }
    sh::faults(&faults)
}

fn build(prefix: &Path, source: &str, compiler: &str, way: &str, flags: &str) -> Result<PathBuf> {
    let program = prefix.join(format!("{}-{way}", source.replace('.', "-")));
    let library = prefix.join("lib");
    let mut command = Command::new(compiler);
    command.args(flags.split(' ')).args(["-g", "-pthread", "-Wall", "-Wextra", "-I"]);
    command.arg(prefix.join("include")).arg(sh::root().join("crates/ffi/examples").join(source));
    command.arg("-L").arg(&library).arg("-lbacktrail").arg(format!("-Wl,-rpath,{}", library.display()));
    sh::run(command.arg("-o").arg(&program))?;
    Ok(program)
}

fn run_example(program: &Path, runner: &str, takes_directory: bool) -> Result<()> {
    let words = runner.split(' ').filter(|word| !word.is_empty());
    let mut words = words.map(std::ffi::OsString::from).chain([program.into()]);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(sh::root());
    if takes_directory {
        command.arg(program.with_extension("hangs"));
    }
    sh::output(&mut command).map(drop)
}
