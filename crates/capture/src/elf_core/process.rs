//! `NT_PRPSINFO`: the process. Linux `include/linux/elfcore.h`, `elf_prpsinfo`.

use super::header::Header;
use super::notes::{self, NT_PRPSINFO, Note};
use crate::Process;
use crate::bytes::{text, u32_at};

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
