//! The chores of this workspace: `cargo xtask CHORE`.
//!
//! Each chore is a module; what they share (running programs, listing files) is in `sh`. A chore that checks
//! something prints one line for each fault, `path:line: what is wrong`, and exits with 1.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod accuracy;
mod api;
mod bench_peers;
mod cores;
mod coverage;
mod cross;
mod demo;
mod deny;
mod deps;
mod differ;
mod docs;
mod ffi;
mod fixtures;
mod fuzz;
mod inputs;
mod miri;
mod names;
mod pages;
mod picture;
mod sh;
mod shape;
mod source;
mod steps;

use std::process::ExitCode;

/// What a chore fails with: one sentence, or several lines for several faults.
type Result<T> = std::result::Result<T, String>;

/// A chore: its name, its arguments, what it does, and its code.
type Chore = (&'static str, &'static str, &'static str, fn(&[String]) -> Result<()>);

const CHORES: &[Chore] = &[
    (
        "deps",
        "",
        "checks the edges between crates, foreign types in public signatures, unsafe code",
        deps::run,
    ),
    (
        "shape",
        "",
        "lists long files and functions; fails on very long ones, and on circles of files",
        shape::run,
    ),
    ("api", "[--check]", "writes the public API to crates/backtrail/api.txt, or compares it", api::run),
    (
        "docs",
        "[--run]",
        "checks links and code blocks of the Markdown files, or runs the blocks that are tagged sh",
        docs::run,
    ),
    (
        "pages",
        "",
        "looks at the server's pages in a browser, on a phone and on a screen (needs chromium)",
        pages::run,
    ),
    ("picture", "", "takes the pictures in README.md, docs/images/*.png (needs chromium)", picture::run),
    ("deny", "", "checks licences, sources and advisories of the dependencies (needs cargo-deny)", deny::run),
    (
        "fixtures",
        "[--check]",
        "rebuilds fixtures/sample, or tells whether a rebuild would differ",
        fixtures::run,
    ),
    (
        "accuracy",
        "[--count N] [--seed N] [--all-code] [--arch A] [FILE…]",
        "compares answers with llvm-symbolizer's on random addresses of large files (docs/accuracy.md)",
        accuracy::run,
    ),
    (
        "coverage",
        "[--every-byte] [FILE…]",
        "asks in every range of every function of large files, in debug info and table (docs/accuracy.md)",
        coverage::run,
    ),
    (
        "bench-peers",
        "[--runs N] [PART…]",
        "times backtrail and its peers in turn on the same inputs (docs/performance.md)",
        bench_peers::run,
    ),
    (
        "names",
        "[--show] [FILE…]",
        "judges readable names by LLVM's for all symbols of binaries, or by a list (docs/demangle.md)",
        names::run,
    ),
    ("differ", "[FILE…]", "unwind tables as framehop reads them (docs/unwinding.md)", differ::run),
    (
        "ffi",
        "[--install PREFIX [--upload]]",
        "runs the C and C++ examples under valgrind and the sanitizers, or installs library and header",
        ffi::run,
    ),
    (
        "miri",
        "",
        "tests unsafe and lock-free code for undefined behaviour (needs nightly Rust with Miri)",
        miri::run,
    ),
    (
        "cores",
        "[--show] [--keep] [--list] [--program FILE] [PART…]",
        "lets programs crash and compares their cores' stacks with gdb's and eu-stack's (docs/stacks.md)",
        cores::run,
    ),
    (
        "live",
        "[--show] [--list] [--program FILE] [PART…]",
        "compares the stacks of programs that run, and of interpreters, with gdb's (docs/live.md)",
        cores::live::run,
    ),
    (
        "cross",
        "[aarch64|arm|x86|macos|ios]…",
        "tests captures on other processors, checks and links for Apple's systems (needs Debian's rustc-web)",
        cross::run,
    ),
    (
        "sdk-truth",
        "[--library NAME] [--held-out] [--further] [--elf] [--x86_64] [--show N] [CLASS…]",
        "links apps with known static libraries and looks for these again (docs/sdk.md)",
        sdk_truth,
    ),
    (
        "steps",
        "[--steps N] [--show] [ARCHITECTURE…]",
        "single-steps programs of every architecture under qemu; each instruction must know its callers (docs/unwinding.md)",
        steps::run,
    ),
    ("fuzz", "[--seconds N] [--list] [--sync] [TARGET…]", "builds and runs the fuzz targets", fuzz::run),
];

fn sdk_truth(arguments: &[String]) -> Result<()> {
    let program = sh::built_tool("sdk-truth", "sdk-truth")?;
    sh::run(std::process::Command::new(program).args(arguments))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, rest)) = arguments.split_first() else {
        eprintln!("{}", usage());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        println!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some((_, _, _, chore)) = CHORES.iter().find(|(known, ..)| known == name) else {
        eprintln!("xtask: no chore named {name}\n\n{}", usage());
        return ExitCode::from(2);
    };
    match chore(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask {name}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> String {
    let mut text = "usage: cargo xtask CHORE\n".to_owned();
    for (name, arguments, what, _) in CHORES {
        let call = format!("{name} {arguments}");
        text.push_str(&format!("\n  {call}\n      {what}"));
    }
    text
}
