//! Real files of hundreds of megabytes, fetched with the clients of their registries and kept outside of the repository:
//! in `$BACKTRAIL_BENCH_DIR`, else in `target/bench-inputs`.

use crate::{Result, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file to measure with.
pub(crate) struct Input {
    /// What the command line and the tables call it.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    make: fn(&Path) -> Result<()>,
}

pub(crate) const INPUTS: [Input; 8] = [
    Input { name: "vmlinux", what: "C kernel: Debian's linux-image-amd64-dbg", make: kernel },
    Input {
        name: "ceph-osd",
        what: "C++ server, 0.6 GB of DWARF 5: Debian's ceph-osd, ceph-osd-dbg",
        make: ceph,
    },
    Input {
        name: "libjvm.so",
        what: "C++ virtual machine: Debian's openjdk-17-jre-headless, -dbg",
        make: jvm,
    },
    Input { name: "ExpoModulesCore", what: "Swift dSYM: npm's expo-modules-core 58.0.7", make: swift },
    Input { name: "rg", what: "Rust program: crates.io's ripgrep 15.1.0, debug = 2", make: ripgrep },
    Input { name: "ceph-osd.z", what: "ceph-osd, sections compressed (zlib)", make: ceph },
    Input { name: "libjvm.so.z", what: "libjvm.so, sections compressed (zlib)", make: jvm },
    Input {
        name: "ceph-osd.noaranges",
        what: "ceph-osd without .debug_aranges, as clang leaves it out",
        make: bare,
    },
];

/// Whether it is the name of an input.
pub(crate) fn is_known(name: &str) -> bool {
    INPUTS.iter().any(|input| input.name == name)
}

/// The directory that inputs are kept in.
pub(crate) fn directory() -> PathBuf {
    let chosen = std::env::var_os("BACKTRAIL_BENCH_DIR").map(PathBuf::from);
    chosen.unwrap_or_else(|| sh::root().join("target/bench-inputs"))
}

/// The file of that name, fetched if it is not there yet.
pub(crate) fn get(name: &str) -> Result<PathBuf> {
    let input = INPUTS.iter().find(|input| input.name == name);
    let input = input.ok_or_else(|| format!("no input called {name}"))?;
    let path = directory().join(name);
    if !path.is_file() {
        eprintln!("fetching {name}: {}", input.what);
        sh::make_directory(&directory())?;
        (input.make)(&directory())?;
    }
    if path.is_file() { Ok(path) } else { Err(format!("{}: not made", path.display())) }
}

fn kernel(directory: &Path) -> Result<()> {
    let scratch = Scratch::new(directory, "kernel")?;
    // The package of that name only depends on the one with the files.
    let depends = sh::output(Command::new("apt-cache").args(["depends", "linux-image-amd64-dbg"]))?;
    let mut packages = depends.split_whitespace().filter(|word| *word != "linux-image-amd64-dbg");
    let package = packages.find(|word| word.starts_with("linux-image-") && word.ends_with("-dbg"));
    let package = package.ok_or("linux-image-amd64-dbg names no package with the kernel")?;
    scratch.unpack(&[package])?;
    let images = sh::entries(&scratch.0.join("usr/lib/debug/boot"));
    let image = images.iter().find(|path| path.to_string_lossy().contains("vmlinux"));
    sh::rename(image.ok_or("no vmlinux in the package")?, &directory.join("vmlinux"))
}

fn ceph(directory: &Path) -> Result<()> {
    joined(directory, "ceph-osd", &["ceph-osd", "ceph-osd-dbg"], "usr/bin/ceph-osd")
}

fn jvm(directory: &Path) -> Result<()> {
    let packages = ["openjdk-17-jre-headless", "openjdk-17-dbg"];
    joined(directory, "libjvm.so", &packages, "usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so")
}

/// A binary joined with its debug file: `NAME.z` as Debian compresses it, and `NAME` with its sections plain.
fn joined(directory: &Path, name: &str, packages: &[&str], binary: &str) -> Result<()> {
    let scratch = Scratch::new(directory, name)?;
    scratch.unpack(packages)?;
    let binary = scratch.0.join(binary);
    let notes = sh::output(Command::new("readelf").arg("-n").arg(&binary))?;
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    let id = id.filter(|id| id.is_ascii() && id.len() > 2).ok_or("the binary has no build id")?;
    let (first, rest) = id.split_at(2);
    let debug = scratch.0.join("usr/lib/debug/.build-id").join(first).join(format!("{rest}.debug"));
    let (compressed, plain) = (directory.join(format!("{name}.z")), directory.join(name));
    sh::run(Command::new("eu-unstrip").arg("-o").arg(&compressed).arg(&binary).arg(&debug))?;
    sh::run(Command::new("eu-elfcompress").args(["-t", "none", "-o"]).arg(&plain).arg(&compressed))
}

fn bare(directory: &Path) -> Result<()> {
    let mut command = Command::new("llvm-objcopy-22");
    command.arg("--remove-section=.debug_aranges").arg(get("ceph-osd")?);
    sh::run(command.arg(directory.join("ceph-osd.noaranges")))
}

fn swift(directory: &Path) -> Result<()> {
    let scratch = Scratch::new(directory, "expo")?;
    sh::run(
        Command::new("npm").args(["pack", "--silent", "expo-modules-core@58.0.7"]).current_dir(&scratch.0),
    )?;
    let unpack = |archive: &str, member: &str| {
        sh::run(Command::new("tar").args(["xzf", archive, member]).current_dir(&scratch.0))
    };
    let inner = "package/prebuilds/output/release/xcframeworks/ExpoModulesCore.tar.gz";
    unpack("expo-modules-core-58.0.7.tgz", inner)?;
    let quiet = "--warning=no-unknown-keyword";
    sh::run(Command::new("tar").args([quiet, "-xzf", inner]).current_dir(&scratch.0))?;
    let dwarf =
        "ExpoModulesCore.xcframework/ios-arm64/dSYMs/ExpoModulesCore.framework.dSYM/Contents/Resources/DWARF";
    sh::rename(&scratch.0.join(dwarf).join("ExpoModulesCore"), &directory.join("ExpoModulesCore"))
}

fn ripgrep(directory: &Path) -> Result<()> {
    let scratch = Scratch::new(directory, "ripgrep")?;
    let mut install = sh::cargo();
    install.args(["install", "ripgrep", "--version", "15.1.0", "--locked", "--root"]).arg(&scratch.0);
    install.env("CARGO_PROFILE_RELEASE_DEBUG", "2").env("CARGO_TARGET_DIR", scratch.0.join("target"));
    sh::run(&mut install)?;
    sh::rename(&scratch.0.join("bin/rg"), &directory.join("rg"))
}

/// A directory that is gone when the input is made.
struct Scratch(PathBuf);

impl Scratch {
    fn new(directory: &Path, name: &str) -> Result<Self> {
        let path = directory.join(format!("{name}.unpacked"));
        sh::make_directory(&path)?;
        Ok(Self(path))
    }

    /// Unpacks Debian packages here, without installing them.
    fn unpack(&self, packages: &[&str]) -> Result<()> {
        sh::run(Command::new("apt-get").args(["download", "-qq"]).args(packages).current_dir(&self.0))?;
        for package in
            sh::entries(&self.0).iter().filter(|path| path.extension().is_some_and(|end| end == "deb"))
        {
            sh::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&self.0))?;
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays behind costs room, no more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
