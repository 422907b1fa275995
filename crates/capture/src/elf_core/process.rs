//! What notes tell of the process: which one it is (`NT_PRPSINFO`, Linux `include/linux/elfcore.h`, `elf_prpsinfo`), and the
//! files that it had mapped (`NT_FILE`, Linux `fs/binfmt_elf.c`, `fill_files_note`).

use super::header::Header;
use super::notes::{self, NT_PRPSINFO, Note};
use crate::bytes::{text, u32_at, word_at};
use crate::{Limits, Mapping, Process};
use backtrail_core::{AddrRange, Avma, FileOffset};

/// `pr_fname` and `pr_psargs`.
const NAME_BYTES: usize = 16;
const ARGUMENT_BYTES: usize = 80;

pub(super) fn read(header: &Header, notes: &[Note<'_>]) -> Process {
    let mut process = Process { os: Some("Linux".to_owned()), ..Process::default() };
    let Some(note) = notes::find(notes, NT_PRPSINFO) else { return process };
    // The 32-bit form has user ids of 16 bits where the architecture once had, else of 32.
    let (pid, name) = match (header.is_64, note.data.len()) {
        (true, _) => (24, 40),
        (false, ..=124) => (12, 28),
        (false, _) => (16, 32),
    };
    let words = |at: usize, max| {
        let words = text(note.data.get(at..).unwrap_or_default(), max).trim().to_owned();
        Some(words).filter(|words| !words.is_empty())
    };
    process.pid = u32_at(note.data, pid).map(u64::from);
    process.name = words(name, NAME_BYTES);
    process.command_line = words(name + NAME_BYTES, ARGUMENT_BYTES);
    process
}

/// The mapped files by address. Offsets are in pages, names follow all ranges.
pub(super) fn mapped_files(
    note: &Note<'_>,
    is_64: bool,
    limits: &Limits,
    told: &mut Vec<String>,
) -> Vec<Mapping> {
    let width = if is_64 { 8 } else { 4 };
    let word = |index: usize| word_at(note.data, index.checked_mul(width)?, is_64);
    let (Some(count), Some(page)) = (word(0), word(1)) else {
        told.push(format!("the list of mapped files at byte {:#x} is cut off", note.offset));
        return Vec::new();
    };
    // Each file takes three words and at least a NUL.
    let fits = note.data.len().saturating_sub(2 * width) / (3 * width + 1);
    let stated = usize::try_from(count).unwrap_or(usize::MAX);
    let count = stated.min(fits).min(limits.mappings);
    let names_at = stated.saturating_mul(3).saturating_add(2).saturating_mul(width);
    let mut names = note.data.get(names_at..).unwrap_or_default().split(|byte| *byte == 0);
    let mut files = Vec::new();
    for index in 0..count {
        let at = |part: usize| word(2 + 3 * index + part);
        let (Some(start), Some(end), Some(pages)) = (at(0), at(1), at(2)) else { break };
        let name = names.next().unwrap_or_default();
        files.push(Mapping {
            range: AddrRange::new(Avma::new(start), Avma::new(end)),
            offset: FileOffset::new(pages.saturating_mul(page)),
            readable: true,
            writable: false,
            executable: false,
            name: text(name, limits.name_bytes),
        });
    }
    if files.len() < stated || note.is_cut {
        told.push(format!(
            "the list of mapped files at byte {:#x} is cut off: {} of {stated} are there",
            note.offset,
            files.len()
        ));
    }
    files.sort_by_key(|file| file.range.start());
    files
}
