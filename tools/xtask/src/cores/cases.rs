//! Which program, built how, ends in which way, and what is done to its core.

use super::builds::{Build, DebugInfo, Machine};
use super::ways::{self, Way};

/// Who writes the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Producer {
    /// The kernel, or qemu where the program runs in it.
    Crash,
    /// gdb, by `generate-core-file`.
    Gdb,
}

/// What is done before it is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Treatment {
    None,
    /// Only this many hundredths are left.
    Cut(u64),
    /// The program is gone, and found below a symbol path by its build id.
    ProgramMoved,
    /// The program is gone for good.
    ProgramGone,
    /// By the program of this name.
    Packed(&'static str),
}

/// One core to be made and compared.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) build: Build,
    pub(super) way: Way,
    pub(super) producer: Producer,
    pub(super) treatment: Treatment,
}

impl Case {
    pub(super) fn name(&self) -> String {
        let mut name = format!("{}/{}", self.build.name, self.way.arguments.join("-"));
        if self.producer == Producer::Gdb {
            name.push_str("/by-gdb");
        }
        match self.treatment {
            Treatment::None => {}
            Treatment::Cut(left) => name.push_str(&format!("/cut-{left}")),
            Treatment::ProgramMoved => name.push_str("/moved"),
            Treatment::ProgramGone => name.push_str("/gone"),
            Treatment::Packed(by) => name.push_str(&format!("/{by}")),
        }
        name
    }
}

const GCC: &[&str] = &["gcc", "-pthread", "-Wl,--build-id"];
const CLANG: &[&str] = &["clang-22", "-pthread", "-Wl,--build-id"];
const MUSL: &[&str] = &["musl-gcc", "-pthread", "-Wl,--build-id"];
const GCC_32: &[&str] = &["gcc", "-m32", "-pthread", "-Wl,--build-id"];
pub(super) const CPP: &[&str] = &["g++", "-std=c++17", "-pthread"];
pub(super) const CLANG_CPP: &[&str] = &["clang++-22", "-std=c++17", "-pthread"];
const RUST: &[&str] = &["rustc", "--edition=2021", "-Cpanic=abort", "-g"];
pub(super) const GO: &[&str] = &["go", "build"];
const ARM64: &[&str] = &["aarch64-linux-gnu-gcc", "-pthread", "-Wl,--build-id"];
const ARM: &[&str] = &["arm-linux-gnueabihf-gcc", "-pthread", "-Wl,--build-id"];
const ARM64_CPP: &[&str] = &["aarch64-linux-gnu-g++", "-std=c++17", "-pthread"];
const ARM_CPP: &[&str] = &["arm-linux-gnueabihf-g++", "-std=c++17", "-pthread"];
const QEMU_ARM64: Machine = Machine::Qemu("qemu-aarch64", "/usr/aarch64-linux-gnu");
const QEMU_ARM: Machine = Machine::Qemu("qemu-arm", "/usr/arm-linux-gnueabihf");

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-O3"];

pub(super) fn build(
    family: &'static str,
    name: &str,
    source: &'static str,
    compiler: &'static [&'static str],
    flags: &[&'static str],
) -> Build {
    let (name, flags) = (format!("{family}/{name}"), flags.to_vec());
    Build { family, name, source, compiler, flags, debug_info: DebugInfo::Inside, machine: Machine::Host }
}

fn c(family: &'static str, name: &str, compiler: &'static [&'static str], flags: &[&'static str]) -> Build {
    build(family, name, "cores/crash.c", compiler, &[&["-g"], flags].concat())
}

pub(super) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for build in levels().into_iter().chain(linked()).chain(without_tables()).chain(stripped()).chain(x86()) {
        cases.extend(ways::C.map(|way| plain(build.clone(), way)));
    }
    let two = c("c", "gcc-O2", GCC, &["-O2"]);
    cases.extend(ways::C_THREADS.map(|way| plain(two.clone(), way)));
    cases.extend(treated(&two));
    for build in cpp() {
        cases.extend(ways::CPP.map(|way| plain(build.clone(), way)));
    }
    for build in rust() {
        cases.extend(ways::RUST.map(|way| plain(build.clone(), way)));
    }
    for build in go() {
        cases.extend(ways::GO.map(|way| plain(build.clone(), way)));
    }
    cases.extend(emulated());
    cases
}

fn plain(build: Build, way: Way) -> Case {
    Case { build, way, producer: Producer::Crash, treatment: Treatment::None }
}

/// Two compilers, four levels, with and without frame pointers.
fn levels() -> Vec<Build> {
    let mut all = Vec::new();
    for (name, compiler) in [("gcc", GCC), ("clang", CLANG)] {
        for level in LEVELS {
            all.push(c("c", &format!("{name}{level}"), compiler, &[level]));
            let flags = [level, "-fno-omit-frame-pointer"];
            all.push(c("c", &format!("{name}{level}-fp"), compiler, &flags));
        }
    }
    all
}

fn linked() -> Vec<Build> {
    vec![
        c("c linked", "no-pie", GCC, &["-O2", "-no-pie", "-fno-pie"]),
        c("c linked", "static", GCC, &["-O2", "-static"]),
        c("c linked", "static-pie", GCC, &["-O2", "-static-pie"]),
        c("c linked", "lld", CLANG, &["-O2", "-fuse-ld=lld"]),
        c("c linked", "no-search-table", GCC, &["-O2", "-Wl,--no-eh-frame-hdr"]),
        c("c linked", "shadow-stack", GCC, &["-O2", "-fcf-protection=full"]),
        c("c linked", "lto", GCC, &["-O2", "-flto"]),
        c("c musl", "static", MUSL, &["-O2", "-static"]),
        c("c musl", "dynamic", MUSL, &["-O2"]),
    ]
}

/// Programs without `.eh_frame`; the C library keeps its own.
fn without_tables() -> Vec<Build> {
    const NONE: [&str; 2] = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
    let with = |flags: &[&'static str]| [&NONE, flags].concat();
    let no_debug_info = |name: &str, flags: &[&'static str]| {
        build("c without tables", name, "cores/crash.c", GCC, &with(flags))
    };
    vec![
        c("c without tables", "debug-frame", GCC, &with(&["-O2"])),
        no_debug_info("fp-O0", &["-O0"]),
        no_debug_info("fp-O2", &["-O2", "-fno-omit-frame-pointer"]),
        no_debug_info("no-fp-O2", &["-O2"]),
    ]
}

fn stripped() -> Vec<Build> {
    let of = |name: &str, debug_info| Build { debug_info, ..c("c stripped", name, GCC, &["-O2"]) };
    vec![
        of("debug-link", DebugInfo::Beside),
        of("build-id", DebugInfo::ByBuildId),
        of("compressed", DebugInfo::Compressed),
        of("nothing", DebugInfo::Nowhere),
    ]
}

fn x86() -> Vec<Build> {
    vec![
        c("c 32 bits", "O0", GCC_32, &["-O0"]),
        c("c 32 bits", "O2", GCC_32, &["-O2"]),
        c("c 32 bits", "O3-fp", GCC_32, &["-O3", "-fno-omit-frame-pointer"]),
        c("c 32 bits", "no-pie", GCC_32, &["-O2", "-no-pie", "-fno-pie"]),
        c("c 32 bits", "static", GCC_32, &["-O1", "-static"]),
    ]
}

/// Other producers, and what happens to cores and programs afterwards.
fn treated(build: &Build) -> Vec<Case> {
    let is_one_of = |way: &&Way, names: &[&str]| way.arguments.first().is_some_and(|way| names.contains(way));
    let of = |way: &Way, producer, treatment| Case { build: build.clone(), way: *way, producer, treatment };
    let mut cases = Vec::new();
    for way in ways::C.iter().filter(|way| is_one_of(way, &["null", "qsort", "threads"])) {
        cases.push(of(way, Producer::Gdb, Treatment::None));
        cases.push(of(way, Producer::Crash, Treatment::ProgramMoved));
        cases.push(of(way, Producer::Crash, Treatment::ProgramGone));
        for left in [20, 60, 90, 99] {
            cases.push(of(way, Producer::Crash, Treatment::Cut(left)));
        }
        for by in ["gzip", "zstd", "xz", "lz4"] {
            cases.push(of(way, Producer::Crash, Treatment::Packed(by)));
        }
    }
    cases
}

fn cpp() -> Vec<Build> {
    let mut all = Vec::new();
    for (name, compiler) in [("gcc", CPP), ("clang", CLANG_CPP)] {
        for level in LEVELS {
            all.push(build("c++", &format!("{name}{level}"), "cores/throws.cc", compiler, &["-g", level]));
        }
    }
    all.push(build("c++", "static", "cores/throws.cc", CPP, &["-g", "-O2", "-static"]));
    all
}

fn rust() -> Vec<Build> {
    let of = |name: &str, flags: &[&'static str]| build("rust", name, "cores/panics.rs", RUST, flags);
    vec![
        of("O0", &["-Copt-level=0"]),
        of("O1", &["-Copt-level=1"]),
        of("O2", &["-Copt-level=2"]),
        of("O3-fp", &["-Copt-level=3", "-Cforce-frame-pointers=yes"]),
        of("size", &["-Copt-level=s", "-Clto=fat"]),
        of("static", &["-Copt-level=2", "-Ctarget-feature=+crt-static"]),
    ]
}

fn go() -> Vec<Build> {
    let of = |name: &str, flags: &[&'static str]| build("go", name, "cores/panics.go", GO, flags);
    vec![
        of("plain", &[]),
        of("not-optimized", &["-gcflags=all=-N -l"]),
        of("pie", &["-buildmode=pie"]),
        of("stripped", &["-ldflags=-s -w"]),
    ]
}

/// ARM and ARM64, in qemu.
fn emulated() -> Vec<Case> {
    let on = |machine, build: Build| Build { machine, ..build };
    let mut programs = Vec::new();
    for level in LEVELS {
        let name = level.trim_start_matches('-');
        programs.push(on(QEMU_ARM64, c("c arm64", name, ARM64, &[level, "-no-pie"])));
        programs.push(on(QEMU_ARM, c("c arm", &format!("thumb-{name}"), ARM, &[level, "-no-pie"])));
        programs.push(on(QEMU_ARM, c("c arm", &format!("arm-{name}"), ARM, &[level, "-no-pie", "-marm"])));
    }
    programs.push(on(QEMU_ARM64, c("c arm64", "pie", ARM64, &["-O2"])));
    programs.push(on(QEMU_ARM, c("c arm", "pie", ARM, &["-O2"])));
    programs.push(on(QEMU_ARM64, c("c arm64", "static", ARM64, &["-O2", "-static"])));
    programs.push(on(
        QEMU_ARM64,
        c("c arm64", "signed-returns", ARM64, &["-O2", "-static", "-mbranch-protection=standard"]),
    ));
    programs.push(on(QEMU_ARM64, c("c arm64", "no-fp", ARM64, &["-O2", "-no-pie", "-fomit-frame-pointer"])));
    programs.push(on(QEMU_ARM, c("c arm", "static", ARM, &["-O2", "-static"])));
    programs.push(on(QEMU_ARM, c("c arm", "unwind-tables", ARM, &["-O2", "-no-pie", "-funwind-tables"])));
    programs.push(on(
        QEMU_ARM,
        build("c arm", "exidx-only", "cores/crash.c", ARM, &["-O2", "-funwind-tables", "-static"]),
    ));
    let mut cases = Vec::new();
    for program in programs {
        // Neither stacks' limits nor threads' registers are kept by qemu 7.
        let kept =
            ways::C.into_iter().filter(|way| way.repeated.is_empty() && way.threads.is_none_or(|n| n == 1));
        cases.extend(kept.map(|way| plain(program.clone(), way)));
    }
    for (machine, family, compiler) in [(QEMU_ARM64, "c++ arm64", ARM64_CPP), (QEMU_ARM, "c++ arm", ARM_CPP)]
    {
        let program =
            on(machine, build(family, "O2", "cores/throws.cc", compiler, &["-g", "-O2", "-no-pie"]));
        cases.extend(
            ways::CPP.into_iter().filter(|way| way.threads.is_none()).map(|way| plain(program.clone(), way)),
        );
    }
    cases
}
