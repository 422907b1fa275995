//! Saved stacks as Android's libunwindstack keeps its offline test cases: registers (`regs.txt`), mapped ranges
//! (`maps.txt`) and pieces of memory (`*.data`, each an address in eight bytes and then what lay there).
//!
//! The binaries that the ranges name lie beside them and are the caller's business, as is finding out which they are:
//! `links.txt` has lines of a file's path and the name that it stands in for.

mod regs;

#[cfg(test)]
mod tests;

use crate::bytes::u64_at;
use crate::{Error, ErrorKind, Limits, Memory, Process, Snapshot, Source, Thread, parse_maps};
use backtrail_core::{Arch, Avma};
use std::borrow::Cow;

/// The files of a saved stack.
#[derive(Clone, Debug, Default)]
pub struct Parts<'d> {
    /// `regs.txt`: `name: value` a line, the value hexadecimal.
    pub registers: &'d [u8],
    /// `maps.txt`: as `/proc/PID/maps`.
    pub maps: &'d [u8],
    /// Every `*.data`, with its name.
    pub memory: Vec<(String, Cow<'d, [u8]>)>,
    /// The architecture of the binaries, where the caller knows it: `pc` and `sp` alone do not tell ARM from ARM64.
    pub arch: Option<Arch>,
}

/// Reads a saved stack.
///
/// # Errors
/// Where the registers do not tell the architecture, or have no `pc`; where not one range is mapped.
pub fn read<'d>(parts: Parts<'d>, limits: &Limits) -> Result<Snapshot<'d>, Error> {
    let mut notes = Vec::new();
    let (mappings, odd) = parse_maps(parts.maps, limits.mappings);
    if mappings.is_empty() {
        return Err(Error::new(
            ErrorKind::Malformed,
            "maps.txt: expected lines of `start-end rwxp offset device inode name`",
        ));
    }
    for line in odd.iter().take(limits.notes) {
        notes.push(format!("maps.txt line {line} is no mapped range"));
    }
    let (arch, registers) = regs::parse(parts.registers, parts.arch, &mut notes, limits)?;
    let memory = memory(parts.memory, &mut notes);
    Ok(Snapshot {
        source: Source::Offline,
        arch,
        process: Process::default(),
        fault: None,
        threads: vec![Thread {
            id: None,
            name: None,
            registers,
            is_crashed: false,
            state: None,
            thread_pointer: None,
        }],
        images: Vec::new(),
        mappings,
        memory,
        pointer_authentication: None,
        notes,
    })
}

/// The pieces of memory; one that is too short to have an address becomes a note.
fn memory<'d>(files: Vec<(String, Cow<'d, [u8]>)>, notes: &mut Vec<String>) -> Memory<'d> {
    let mut pieces = Vec::new();
    for (name, bytes) in files {
        let Some(start) = u64_at(&bytes, 0) else {
            notes.push(format!("{name}: expected an address in 8 bytes, found {} bytes", bytes.len()));
            continue;
        };
        let bytes = match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(8..).unwrap_or_default()),
            Cow::Owned(bytes) => Cow::Owned(bytes.get(8..).unwrap_or_default().to_vec()),
        };
        pieces.push((Avma::new(start), bytes));
    }
    Memory::new(pieces)
}
