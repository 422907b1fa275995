//! Debug info into symbol table files: two C++ programs in one run, 1.04 GB together, and each alone; the same in the
//! other formats; and the time for a megabyte of inputs of 60 MB to 1 GB.

use super::race::{Outcome, Runner, race};
use crate::{Result, inputs, sh};
use std::path::{Path, PathBuf};
use std::process::Command;

const GSYMUTIL: &str = "llvm-gsymutil-22";

pub(super) fn run(runs: usize) -> Result<()> {
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    let (server, machine) = (inputs::get("ceph-osd")?, inputs::get("libjvm.so")?);
    let small = inputs::get("rg")?;
    let out = inputs::directory().join("converted/");
    sh::make_directory(&out)?;
    let (server, machine) = (server.as_path(), machine.as_path());
    let inputs = [
        ("ceph-osd and libjvm.so", vec![server, machine]),
        ("ceph-osd", vec![server]),
        ("libjvm.so", vec![machine]),
    ];
    let (symcache, dump_syms) = (super::peer("peers-symcache")?, dump_syms()?);
    let nothing = Path::new("/dev/null");
    let mut measured = Vec::new();
    for (title, files) in inputs {
        let files = files.as_slice();
        let ours = |jobs: &str, format: &str| convert(&backtrail, jobs, format, files, &out);
        let runners = [
            Runner::new("backtrail convert, 2 threads", "sh", &["-c", &ours("2", "btsym")]),
            Runner::new("backtrail convert, 1 thread", "sh", &["-c", &ours("1", "btsym")]),
            Runner::new("backtrail convert --format gsym", "sh", &["-c", &ours("2", "gsym")]),
            Runner::new("backtrail convert --format breakpad", "sh", &["-c", &ours("2", "breakpad")]),
            Runner::new("llvm-gsymutil 22, 2 threads", "sh", &["-c", &gsymutil(files, &out)]),
            Runner::new("dump_syms, 2 threads", "sh", &["-c", &dumped(&dump_syms, files, &out)]),
            Runner::new("symbolic-symcache 13.9", "sh", &["-c", &cached(&symcache, files, &out)]),
        ];
        let results = race(title, &runners, nothing, runs)?;
        measured.extend(results.into_iter().next().map(|ours| (title, files.to_vec(), ours)));
    }
    for ending in ["btsym", "gsym", "sym", "symcache"] {
        for file in sh::files(&out, ending) {
            println!("{}: {:.1} MB", file.display(), megabytes(&file));
        }
    }
    linearity(&backtrail, measured, &small, &out, runs)
}

/// Whether the time grows with the input and no faster.
fn linearity<'f>(
    backtrail: &Path,
    mut measured: Vec<(&str, Vec<&'f Path>, Outcome)>,
    small: &'f Path,
    out: &Path,
    runs: usize,
) -> Result<()> {
    let files = vec![small];
    let runner = Runner::new(
        "backtrail convert, 2 threads",
        "sh",
        &["-c", &convert(backtrail, "2", "btsym", &files, out)],
    );
    let results = race("rg", &[runner], Path::new("/dev/null"), runs)?;
    measured.extend(results.into_iter().next().map(|ours| ("rg", files, ours)));
    let size = |files: &[&Path]| files.iter().map(|file| megabytes(file)).sum::<f64>();
    measured.sort_by(|(_, one, _), (_, other, _)| size(one).total_cmp(&size(other)));
    println!("| input | MB | time | ms a MB |");
    println!("| --- | --- | --- | --- |");
    for (title, files, outcome) in measured {
        let (seconds, size) = (outcome.seconds, size(&files));
        println!("| {title} | {size:.0} | {seconds:.3} s | {:.2} |", seconds * 1e3 / size);
    }
    Ok(())
}

fn megabytes(file: &Path) -> f64 {
    std::fs::metadata(file).map_or(0, |metadata| metadata.len()) as f64 / 1e6
}

const DUMP_SYMS: &str = "2.3.9";

/// Mozilla's program, built once.
fn dump_syms() -> Result<PathBuf> {
    let root = inputs::directory().join("tools");
    let program = root.join("bin/dump_syms");
    if !program.is_file() {
        let mut install = sh::cargo();
        install.args(["install", "dump_syms", "--version", DUMP_SYMS, "--locked", "--root"]).arg(&root);
        sh::run(install.env("CARGO_TARGET_DIR", root.join("target")))?;
        // Hundreds of megabytes that nobody needs again.
        let _ = std::fs::remove_dir_all(root.join("target"));
    }
    sh::output(Command::new(&program).arg("--version"))?;
    Ok(program)
}

/// It takes one file at a time; as backtrail it writes inlined calls only when asked to.
fn dumped(program: &Path, files: &[&Path], out: &Path) -> String {
    let each = files.iter().map(|file| {
        let to = quoted(&named(file, out, "sym"));
        format!("{} --inlines -j 2 {} -o {to}", quoted(program), quoted(file))
    });
    each.collect::<Vec<_>>().join(" && ")
}

pub(super) fn cached(program: &Path, files: &[&Path], out: &Path) -> String {
    let files = files.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(" ");
    format!("exec {} {} {files}", quoted(program), quoted(out))
}

/// Where a peer's file goes, so that ours is not what is measured in the end.
fn named(file: &Path, out: &Path, ending: &str) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    out.join(format!("{name}.peer.{ending}"))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

pub(super) fn convert(backtrail: &Path, jobs: &str, format: &str, files: &[&Path], out: &Path) -> String {
    let files = files.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(" ");
    format!("exec {} convert {files} --jobs {jobs} --format {format} -o {}/", quoted(backtrail), quoted(out))
}

/// It takes one file at a time.
pub(super) fn gsymutil(files: &[&Path], out: &Path) -> String {
    let each = files.iter().map(|file| {
        let to = quoted(&named(file, out, "gsym"));
        format!("{GSYMUTIL} --convert {} --num-threads=2 --quiet -o {to}", quoted(file))
    });
    each.collect::<Vec<_>>().join(" && ")
}
