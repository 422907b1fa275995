//! `NT_FILE`: the mapped files. Linux `fs/binfmt_elf.c`, `fill_files_note`.

use super::notes::Note;
use crate::bytes::word_at;
use crate::{Limits, Mapping};
use backtrail_core::{AddrRange, Avma, FileOffset};

/// The mapped files by address. Offsets are in pages, names follow all ranges.
pub(super) fn parse(note: &Note<'_>, is_64: bool, limits: &Limits, told: &mut Vec<String>) -> Vec<Mapping> {
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
            name: crate::bytes::text(name, limits.name_bytes),
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
