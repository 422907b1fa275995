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

/// What is linked where nothing can be run.
const EXAMPLES: [&str; 3] = ["dump_on_signal", "log_errors", "watch_loop"];

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
            command.env(variable("LINKER"), target.linker);
            if !runner.is_empty() {
                command.env(variable("RUNNER"), runner.join(" "));
            }
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
    if is_run {
        command.args(["-p", "backtrail"]).args(TESTS.iter().flat_map(|test| ["--test", test]));
        command.args(["--", "--test-threads=1"]);
    } else {
        command.args(EXAMPLES.iter().flat_map(|name| ["--example", name])).args(["-p", "backtrail"]);
        // The C library, static and shared.
        command.args(["-p", "backtrail-ffi", "--lib"]);
    }
    Ok(command)
}

/// A linker that is zig's, without what it has no use for: `-liconv`, which its stub of the system's library has not,
/// `-dead_strip`, and targets by Apple's names.
fn zig_linker(target: &Target) -> Result<PathBuf> {
    let directory = sh::root().join("target/cross");
    let path = directory.join(format!("zig-{}", target.name));
    let python = std::env::var("BACKTRAIL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let find = "import sys, ziglang; print(sys.executable); print(ziglang.__path__[0])";
    let found = sh::output(Command::new(python).args(["-c", find]))?;
    let (python, zig) = found.trim().split_once('\n').ok_or("ziglang is not where python3 says")?;
    let (system, stub) = match target.name {
        "ios" => ("aarch64-ios", ios_stub(Path::new(zig), &directory)?),
        _ => ("aarch64-macos", String::new()),
    };
    let script = format!(
        "#!/bin/bash\n\
         a=()\n\
         while [ $# -gt 0 ]; do case $1 in -liconv|-Wl,-dead_strip|-dead_strip|-lobjc) ;; \
         -arch|-target) shift ;; *) a+=(\"$1\") ;; esac; shift; done\n\
         exec {python} -m ziglang cc -fno-sanitize=undefined -target {system} \"${{a[@]}}\" {stub}\n"
    );
    sh::write(&path, script)?;
    sh::run(Command::new("chmod").arg("+x").arg(&path))?;
    Ok(path)
}

/// Zig has a stub of macOS's libSystem, and none of iOS's, which only Apple's SDK has. What is used here both have.
fn ios_stub(zig: &Path, directory: &Path) -> Result<String> {
    let of_macos = sh::read(&zig.join("lib/libc/darwin/libSystem.tbd"))?;
    let path = directory.join("ios/libSystem.tbd");
    sh::write(&path, of_macos.replace("-macos", "-ios"))?;
    Ok(path.display().to_string())
}
