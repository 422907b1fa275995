//! `steps`: programs of every architecture, instruction by instruction, with the walk from each held against the calls
//! that were really made. The watching is done by `tools/steps`; here its programs are built.
//!
//! Needs `qemu-user`, and the cross compilers of Debian (`gcc-aarch64-linux-gnu`, `gcc-arm-linux-gnueabihf`,
//! `gcc-multilib` or `gcc-i686-linux-gnu`, `clang-22`): what is missing is said and left out.

use crate::{Result, sh};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One architecture.
struct Target {
    name: &'static str,
    qemu: &'static str,
    sysroot: &'static str,
    /// The first of these that works: a compiler and what it always needs.
    compilers: &'static [&'static [&'static str]],
    /// clang's name of the target.
    triple: &'static str,
    builds: &'static [&'static str],
}

/// Builds for all: flags of gcc, or after `clang` those of clang.
const COMMON: &[&str] = &[
    "-O2",
    "-O0",
    "-Os -fno-omit-frame-pointer",
    "-O3 -fomit-frame-pointer -Wl,-z,now",
    "-O1 -static",
    "clang -O2",
    "clang -O0 -Wl,-z,lazy",
];

const TARGETS: [Target; 4] = [
    Target {
        name: "x86_64",
        qemu: "qemu-x86_64",
        sysroot: "/",
        compilers: &[&["gcc"]],
        triple: "x86_64-linux-gnu",
        builds: COMMON,
    },
    Target {
        name: "x86",
        qemu: "qemu-i386",
        sysroot: "/",
        compilers: &[&["gcc", "-m32"]],
        triple: "i386-linux-gnu",
        builds: COMMON,
    },
    Target {
        name: "aarch64",
        qemu: "qemu-aarch64",
        sysroot: "/usr/aarch64-linux-gnu",
        compilers: &[&["aarch64-linux-gnu-gcc"]],
        triple: "aarch64-linux-gnu",
        builds: COMMON,
    },
    Target {
        name: "arm",
        qemu: "qemu-arm",
        sysroot: "/usr/arm-linux-gnueabihf",
        compilers: &[&["arm-linux-gnueabihf-gcc", "-funwind-tables"]],
        triple: "arm-linux-gnueabihf",
        builds: &[
            "-O2",
            "-O0",
            "-Os -fno-omit-frame-pointer",
            "-O2 -marm",
            "-O0 -marm",
            "-O1 -marm -mapcs-frame",
            "-O3 -marm -Wl,-z,now",
            "clang -O2 -mthumb",
            "clang -O2 -marm",
            "clang -O0",
            "-O1 -static",
        ],
    },
];

struct Options {
    steps: String,
    show: bool,
    targets: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let stepper = sh::built_tool("steps", "steps")?;
    let directory = sh::root().join("target/steps");
    sh::make_directory(&directory)?;
    println!("| program | instructions | frames | signals | no table (wrong) | ended by a table | wrong |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut faults = Vec::new();
    for target in TARGETS.iter().filter(|target| options.wants(target.name)) {
        for build in target.builds {
            let title = format!("{} {build}", target.name);
            match compile(target, build, &directory) {
                Ok(program) => faults.extend(follow(target, &title, &stepper, &program, &options)?),
                Err(why) => println!("| {title} | not built: {why} | | | | | |"),
            }
        }
    }
    sh::faults(&faults)
}

impl Options {
    fn wants(&self, name: &str) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|wanted| wanted == name)
    }
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options { steps: "60000".to_owned(), show: false, targets: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--show" => options.show = true,
            "--steps" => options.steps = rest.next().ok_or("--steps needs a number")?.clone(),
            name if TARGETS.iter().any(|target| target.name == name) => options.targets.push(name.to_owned()),
            other => return Err(format!("no architecture {other}")),
        }
    }
    Ok(options)
}

fn compile(target: &Target, build: &str, directory: &Path) -> Result<PathBuf> {
    let source = sh::root().join("tools/steps/src/guest.c");
    let name: String = build.chars().filter(char::is_ascii_alphanumeric).collect();
    let program = directory.join(format!("{}-{name}", target.name));
    let object = program.with_extension("o");
    let flags: Vec<&str> = build.split(' ').filter(|flag| *flag != "clang").collect();
    let linking: Vec<&str> =
        flags.iter().copied().filter(|flag| flag.starts_with("-Wl") || *flag == "-static").collect();
    let first = target.compilers.iter().find(|words| works(words));
    let [compiler, always @ ..] = first.copied().unwrap_or_default() else {
        return Err("no compiler".to_owned());
    };
    let mut command = Command::new(if build.starts_with("clang") { "clang-22" } else { compiler });
    if build.starts_with("clang") {
        let include = format!("{}/include", target.sysroot.trim_end_matches('/'));
        command.arg(format!("--target={}", target.triple)).args(["-fPIE", "-funwind-tables", "-isystem"]);
        command.arg(if target.sysroot == "/" { "/usr/include" } else { &include });
    } else {
        command.args(always);
    }
    command.args(&flags).args(["-w", "-c", "-o"]).args([&object, &source]);
    sh::output(&mut command).map_err(|error| first_line(&error))?;
    let mut link = Command::new(compiler);
    link.args(always).args(linking).arg("-o").args([&program, &object]);
    sh::output(&mut link).map_err(|error| first_line(&error))?;
    Ok(program)
}

fn works(words: &[&str]) -> bool {
    let Some((program, _)) = words.split_first() else { return false };
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success())
}

fn first_line(message: &str) -> String {
    let line = message.lines().find(|line| line.contains("rror")).or_else(|| message.lines().next());
    line.unwrap_or_default().to_owned()
}

fn follow(
    target: &Target,
    title: &str,
    stepper: &Path,
    program: &Path,
    options: &Options,
) -> Result<Option<String>> {
    let mut command = Command::new(stepper);
    command.args(["--qemu", target.qemu, "--sysroot", target.sysroot, "--from", "main", "--steps"]);
    let printed = sh::output_of_any_end(command.arg(&options.steps).arg(program))?;
    let Ok(result) = serde_json::from_str::<Value>(&printed) else {
        return Ok(Some(format!("{title}: was not followed")));
    };
    let number = |key: &str| result.get(key).and_then(Value::as_u64).unwrap_or_default();
    println!(
        "| {title} | {} | {} | {} | {} ({}) | {} | {} |",
        number("instructions"),
        number("frames"),
        number("signals"),
        number("undescribed"),
        number("undescribed_wrong"),
        number("untold"),
        number("wrong")
    );
    if options.show {
        let faults = result.get("faults").and_then(Value::as_array).into_iter().flatten();
        faults.filter_map(Value::as_str).for_each(|fault| println!("    {fault}"));
    }
    Ok((number("wrong") != 0).then(|| format!("{title}: {} wrong", number("wrong"))))
}
