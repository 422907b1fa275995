//! Processes by their names.

use super::target::small_file;
use crate::procfs::{Stat, parse_id};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The ids of the processes that have a name, ascending: what the kernel calls them (`comm`, 15 bytes), or their program's file name.
/// The caller's own process, processes that have ended, and the kernel's threads are left out. Where the system keeps which program
/// others' processes run from the caller, the kernel's name counts alone.
///
/// # Errors
/// Where `/proc` cannot be read.
pub fn processes_named(name: &str) -> std::io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?.flatten();
    let ids = entries.filter_map(|entry| parse_id(entry.file_name().as_bytes()));
    let mut ids: Vec<u32> = ids.filter(|id| *id != std::process::id() && is_called(*id, name)).collect();
    ids.sort_unstable();
    Ok(ids)
}

fn is_called(id: u32, name: &str) -> bool {
    let directory = Path::new("/proc").join(id.to_string());
    let stat = small_file(&directory.join("stat")).and_then(|line| Stat::parse(&line));
    let Some(stat) = stat.filter(|stat| !stat.is_kernel_thread) else {
        return false;
    };
    stat.name == name || program(&directory).is_some_and(|program| program == name.as_bytes())
}

/// The file name of a process's program.
fn program(directory: &Path) -> Option<Vec<u8>> {
    let link = fs::read_link(directory.join("exe")).ok()?;
    let name = link.file_name().map(OsStr::as_bytes)?;
    Some(name.strip_suffix(b" (deleted)").unwrap_or(name).to_vec())
}
