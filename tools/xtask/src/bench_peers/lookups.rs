//! First answers from a debug file: one address, and a thousand.

use super::race::{Runner, race};
use crate::{Result, inputs, sh};
use std::path::Path;

/// The plain file, the same as packagers compress it, and the same as clang makes it.
const FILES: [&str; 3] = ["ceph-osd", "ceph-osd.z", "ceph-osd.noaranges"];

pub(super) fn run(runs: usize) -> Result<()> {
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    let crates = super::peer("peers-lookups")?;
    for name in FILES {
        let file = inputs::get(name)?;
        let path = file.to_string_lossy();
        for count in [1, 1000] {
            let mut runners = vec![
                Runner::new("backtrail lookup", &backtrail, &["lookup", "-e", &*path]),
                Runner::new("llvm-symbolizer 22", sh::LLVM_SYMBOLIZER, &[&*format!("--obj={path}")]),
                Runner::new("crate addr2line 0.27", &crates, &["addr2line", &*path]),
                Runner::new("crate blazesym 0.2", &crates, &["blazesym", &*path]),
            ];
            // It takes half a minute for a thousand, and without .debug_aranges it finds no lines.
            if count == 1 && name != "ceph-osd.noaranges" {
                runners.push(Runner::new(
                    "eu-addr2line",
                    "eu-addr2line",
                    &["-i", "-f", "-C", "-a", "-e", &*path],
                ));
            }
            let addresses = addresses(&file, count)?;
            let plural = if count == 1 { "address" } else { "addresses" };
            race(&format!("{name}, {count} {plural}"), &runners, &addresses, runs)?;
        }
    }
    Ok(())
}

/// A file of random addresses of code, a line each.
pub(super) fn addresses(file: &Path, count: usize) -> Result<std::path::PathBuf> {
    let program = sh::built_tool("accuracy", "accuracy")?;
    let mut command = std::process::Command::new(program);
    let printed =
        sh::output(command.arg(file).args(["--sample", "--seed", "1", "--count", &count.to_string()]))?;
    let path = inputs::directory().join(format!("addresses.{count}"));
    sh::write(&path, printed)?;
    Ok(path)
}
