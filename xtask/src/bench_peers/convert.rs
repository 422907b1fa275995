//! Debug info into symbol table files: two C++ programs in one run, 1.04 GB together, and each alone.

use super::race::{Runner, race};
use crate::{Result, inputs, sh};
use std::path::Path;

const GSYMUTIL: &str = "llvm-gsymutil-22";

pub(super) fn run(runs: usize) -> Result<()> {
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    let (server, machine) = (inputs::get("ceph-osd")?, inputs::get("libjvm.so")?);
    let out = inputs::folder().join("converted/");
    sh::make_folder(&out)?;
    let (server, machine) = (server.as_path(), machine.as_path());
    let inputs = [
        ("ceph-osd and libjvm.so", vec![server, machine]),
        ("ceph-osd", vec![server]),
        ("libjvm.so", vec![machine]),
    ];
    for (title, files) in inputs {
        let files = files.as_slice();
        let ours = |jobs: &str| convert(&backtrail, jobs, files, &out);
        let runners = [
            Runner::new("backtrail convert, 2 threads", "sh", &["-c", &ours("2")]),
            Runner::new("backtrail convert, 1 thread", "sh", &["-c", &ours("1")]),
            Runner::new("llvm-gsymutil 22, 2 threads", "sh", &["-c", &gsymutil(files, &out)]),
        ];
        race(title, &runners, Path::new("/dev/null"), runs)?;
    }
    for file in sh::files(&out, "btsym").iter().chain(&sh::files(&out, "gsym")) {
        let size = std::fs::metadata(file).map_or(0, |metadata| metadata.len());
        println!("{}: {:.1} MB", file.display(), size as f64 / 1e6);
    }
    Ok(())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

fn convert(backtrail: &Path, jobs: &str, files: &[&Path], out: &Path) -> String {
    let files = files.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(" ");
    format!("exec {} convert {files} --jobs {jobs} -o {}/", quoted(backtrail), quoted(out))
}

/// It takes one file at a time.
fn gsymutil(files: &[&Path], out: &Path) -> String {
    let each = files.iter().map(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let to = quoted(&out.join(format!("{name}.gsym")));
        format!("{GSYMUTIL} --convert {} --num-threads=2 --quiet -o {to}", quoted(file))
    });
    each.collect::<Vec<_>>().join(" && ")
}
