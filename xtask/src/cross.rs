//! `cross`: the library on processors and systems that this machine is not.
//!
//! Tests of captures in the own process run on arm64 and 32-bit ARM under qemu-user and on 32-bit x86 as they are; for
//! macOS and iOS the library is type-checked, and a program linked. rustup's toolchain has no standard library for these
//! targets and no sources of it, Debian's `rustc-web` has; this installs nothing, `.ci/run` does.

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's toolchain, which comes with the standard library's sources.
const CARGO: &str = "/usr/bin/cargo";
const RUSTC: &str = "/usr/bin/rustc";
const SOURCES: &str = "/usr/lib/rustlib/src/rust/library";

/// What is done for a target.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Tests are run, by this program if the processor is another.
    Run(&'static [&'static str]),
    /// The library is type-checked and an example linked.
    Link,
}

struct Target {
    name: &'static str,
    triple: &'static str,
    linker: &'static str,
    way: Way,
}

const TARGETS: [Target; 5] = [
    Target {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        linker: "aarch64-linux-gnu-gcc",
        way: Way::Run(&["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]),
    },
    Target {
        name: "arm",
        triple: "armv7-unknown-linux-gnueabihf",
        linker: "arm-linux-gnueabihf-gcc",
        way: Way::Run(&["qemu-arm", "-L", "/usr/arm-linux-gnueabihf"]),
    },
    Target { name: "x86", triple: "i686-unknown-linux-gnu", linker: "gcc", way: Way::Run(&[]) },
    Target { name: "macos", triple: "aarch64-apple-darwin", linker: "zig", way: Way::Link },
    Target { name: "ios", triple: "aarch64-apple-ios", linker: "zig", way: Way::Link },
];

/// Tests that run wherever they are built: without files beside them and without a C compiler for the target.
const TESTS: [&str; 2] = ["capture", "capture_handler"];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !Path::new(SOURCES).is_dir() || !Path::new(CARGO).exists() {
        return Err("Debian's rustc-web, cargo-web and rust-web-src are needed".to_owned());
    }
    for name in arguments {
        if !TARGETS.iter().any(|target| target.name == name) {
            let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            return Err(format!("no target called {name}; there are {}", known.join(", ")));
        }
    }
    for target in &TARGETS {
        if arguments.is_empty() || arguments.iter().any(|name| name == target.name) {
            println!("\n## {}: {}\n", target.name, target.triple);
            sh::run(&mut command(target)?)?;
        }
    }
    Ok(())
}

fn command(target: &Target) -> Result<Command> {
    let mut command = Command::new(CARGO);
    command.current_dir(sh::root()).env("RUSTC", RUSTC).env("RUSTC_BOOTSTRAP", "1");
    // rustup's proxies leave what would send Debian's cargo back to rustup's compiler.
    command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").env("PATH", "/usr/bin:/bin");
    let words = target.triple.replace('-', "_").to_uppercase();
    let variable = |name: &str| format!("CARGO_TARGET_{words}_{name}");
    let (verb, is_run) = match target.way {
        Way::Run(runner) => {
            command.env(variable("LINKER"), target.linker).env(variable("RUNNER"), runner.join(" "));
            if target.name == "x86" {
                command.env(variable("RUSTFLAGS"), "-Clink-arg=-m32");
            }
            ("test", true)
        }
        Way::Link => {
            command.env(variable("LINKER"), zig_linker(target)?);
            ("build", false)
        }
    };
    command.arg(verb).args(["-Zbuild-std", "--target", target.triple, "--target-dir"]);
    command.arg(sh::root().join("target/cross"));
    // An emulator runs unoptimized code a hundred times slower than this machine runs it; elsewhere compiling is what
    // takes the time.
    let level = u8::from(matches!(target.way, Way::Run([_, ..])));
    command.args(["--config", &format!("profile.dev.opt-level={level}")]);
    command.args(["--config", &format!("profile.dev.package.\"*\".opt-level={level}")]);
    command.args(["--config", "profile.dev.debug=\"line-tables-only\"", "--no-default-features"]);
    command.args(["-p", "backtrail"]);
    if is_run {
        command.args(TESTS.iter().flat_map(|test| ["--test", test]));
        command.args(["--", "--test-threads=1"]);
    } else {
        command.args(["--example", "log_errors", "--example", "watch_loop"]);
    }
    Ok(command)
}

/// A linker that is zig's, without what it has no use for: `-liconv`, which its stub of the system's library has not, and
/// `-dead_strip`.
fn zig_linker(target: &Target) -> Result<PathBuf> {
    let path = sh::root().join("target/cross").join(format!("zig-{}", target.name));
    let system = if target.name == "ios" { "aarch64-ios" } else { "aarch64-macos" };
    let python = std::env::var("BACKTRAIL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let python = sh::output(Command::new(python).args(["-c", "import sys, ziglang; print(sys.executable)"]))?;
    let script = format!(
        "#!/bin/bash\n\
         a=()\n\
         for x in \"$@\"; do case $x in -liconv|-Wl,-dead_strip|-dead_strip|-lobjc) ;; *) a+=(\"$x\");; esac; done\n\
         exec {} -m ziglang cc -target {system} \"${{a[@]}}\"\n",
        python.trim()
    );
    sh::write(&path, script)?;
    sh::run(Command::new("chmod").arg("+x").arg(&path))?;
    Ok(path)
}
