//! Kernel collections: many Mach-O images in one file, all offsets counted from its start.

use backtrail_core::FileOffset;
use object::macho::{FilesetEntryCommand, LC_FILESET_ENTRY, MH_FILESET};
use object::{Endianness, ReadRef};

use super::header::{self, Command, Commands};
use crate::archive::too_many;
use crate::error::Result;
use crate::limits::Limits;
use crate::section::FileRange;
use crate::slice::{Found, Placement};
use crate::symbol::text;
use crate::view::View;

/// The entries of a kernel collection; none for any other Mach-O file.
pub(crate) fn entries<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<Found>> {
    let Ok(header) = header::read(view, 0) else { return Ok(Vec::new()) };
    if header.file_type != MH_FILESET {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    let commands = Commands::new(view, &header)?;
    for command in commands.map_while(Result::ok).filter(|command| command.kind == LC_FILESET_ENTRY) {
        if found.len() >= limits.slices {
            return Err(too_many(command.offset, limits));
        }
        found.push(entry(view, command)?);
    }
    Ok(found)
}

fn entry<'d, R: ReadRef<'d>>(view: View<R>, command: Command<'d>) -> Result<Found> {
    let raw = command.pod::<FilesetEntryCommand<Endianness>>("LC_FILESET_ENTRY")?;
    let offset = raw.fileoff.get(command.endian);
    let header = header::read(view, offset);
    let size = header.as_ref().map_or(0, |header| header.commands - offset + u64::from(header.sizeofcmds));
    Ok(Found {
        member: Some(text(command.string(raw.entry_id)).into_owned()),
        range: FileRange::from_size(FileOffset::new(offset), size),
        placement: Placement::Entry { header: offset },
        problem: header.as_ref().err().cloned(),
        ..Found::whole(header.map_or(backtrail_core::Arch::Unknown, |header| header.arch), offset, 0)
    })
}

#[cfg(test)]
mod tests;
