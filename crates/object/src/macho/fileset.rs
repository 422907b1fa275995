//! Kernel collections: many Mach-O images in one file, all offsets counted from its start.

use backtrail_core::{Arch, FileOffset};
use object::macho::{FilesetEntryCommand, LC_FILESET_ENTRY, MH_FILESET};
use object::{Endianness, ReadRef};

use super::header::{self, Command, Commands};
use super::parser::too_many;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::section::FileRange;
use crate::symbol::text;
use crate::view::View;

/// An image as a kernel collection lists it.
pub(crate) struct FilesetEntry {
    pub(crate) name: String,
    pub(crate) arch: Arch,
    /// Its header and load commands; the rest of it may lie anywhere in the file.
    pub(crate) range: FileRange,
    pub(crate) problem: Option<Error>,
}

/// The entries of a kernel collection; none for any other Mach-O file.
pub(crate) fn entries<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<FilesetEntry>> {
    let Ok(header) = header::read(view, 0) else { return Ok(Vec::new()) };
    if header.file_type != MH_FILESET {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let commands = Commands::new(view, &header)?;
    for command in commands.map_while(Result::ok).filter(|command| command.kind == LC_FILESET_ENTRY) {
        if found.len() >= limits.slices {
            return Err(too_many(command.offset, "members", limits.slices));
        }
        found.push(entry(view, command)?);
    }
    Ok(found)
}

fn entry<'d, R: ReadRef<'d>>(view: View<R>, command: Command<'d>) -> Result<FilesetEntry> {
    let raw = command.pod::<FilesetEntryCommand<Endianness>>("LC_FILESET_ENTRY")?;
    let offset = raw.fileoff.get(command.endian);
    let header = header::read(view, offset);
    let size = header.as_ref().map_or(0, |header| header.commands - offset + u64::from(header.sizeofcmds));
    Ok(FilesetEntry {
        name: text(command.string(raw.entry_id)).into_owned(),
        arch: header.as_ref().map_or(Arch::Unknown, |header| header.arch),
        range: FileRange::from_size(FileOffset::new(offset), size),
        problem: header.err(),
    })
}

#[cfg(test)]
mod tests;
