//! A million random addresses of one file, asked of the tables that several programs make of it.

use super::{convert, lookups};
use crate::{Result, inputs, sh};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const COUNT: usize = 1_000_000;

pub(super) fn run(runs: usize) -> Result<()> {
    let backtrail = sh::built(&["-p", "backtrail-cli"])?;
    let (symcache, tables) = (super::peer("peers-symcache")?, super::peer("peers-tables")?);
    let out = inputs::directory().join("converted/");
    sh::make_directory(&out)?;
    for name in ["ceph-osd", "libjvm.so"] {
        let file = inputs::get(name)?;
        let files = [file.as_path()];
        let made = [
            convert::convert(&backtrail, "2", "btsym", &files, &out),
            convert::cached(&symcache, &files, &out),
            convert::gsymutil(&files, &out),
        ];
        made.iter().try_for_each(|line| sh::output(Command::new("sh").args(["-c", line])).map(drop))?;
        println!("{name}\n");
        let addresses = lookups::addresses(&file, COUNT)?;
        let of = |ending: &str| out.join(format!("{name}.{ending}"));
        let made = ["btsym", "symcache", "peer.gsym"].map(of);
        ask(&tables, runs, &made, &addresses)?;
    }
    Ok(())
}

fn ask(program: &Path, runs: usize, tables: &[PathBuf], addresses: &Path) -> Result<()> {
    let input =
        File::open(addresses).map_err(|error| format!("cannot read {}: {error}", addresses.display()))?;
    sh::run(Command::new(program).arg(runs.to_string()).args(tables).stdin(Stdio::from(input)))
}
