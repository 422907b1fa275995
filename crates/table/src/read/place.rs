//! Where things stand in the file, for errors.

use crate::error::Error;
use crate::format::{HEADER_SIZE, SectionKind};
use crate::read::Table;

impl Table<'_> {
    /// Where a section starts; the directory, where it does not have it.
    fn section(&self, kind: SectionKind) -> u64 {
        let entry = self.entries.iter().find(|entry| entry.kind == kind as u32);
        entry.map_or(HEADER_SIZE as u64, |entry| entry.offset)
    }

    /// Where a part of the file's bytes starts.
    fn offset_of(&self, part: &[u8]) -> u64 {
        part.as_ptr().addr().saturating_sub(self.data.as_ptr().addr()) as u64
    }

    /// For a chunk that cannot be read, by its number: at its bytes, or at what the index says of it.
    pub(super) fn broken_chunk(&self, number: usize) -> Error {
        let detail = format!("expected chunk {number} of the index to be a function, lines or a symbol");
        let at = match self.index.get(number) {
            Some(entry) => self.section(SectionKind::Bodies).saturating_add(entry.position),
            None => self.offset_of(self.index.place(number)),
        };
        // What the index says may lie past the end.
        let at = if at < self.data.len() as u64 { at } else { self.offset_of(self.index.place(number)) };
        Error::malformed(at, detail)
    }

    /// For a chunk of the index that does not follow the one before.
    pub(super) fn misplaced_chunk(&self, number: usize) -> Error {
        let detail = format!("expected chunk {number} of the index behind the one before");
        Error::malformed(self.offset_of(self.index.place(number)), detail)
    }

    /// For a name without a record.
    pub(super) fn broken_name(&self, number: u32) -> Error {
        let at = self.offset_of(self.names.place(number));
        Error::malformed(at, format!("expected a record for name {number}"))
    }

    /// For a file without texts.
    pub(super) fn broken_file(&self, number: u32) -> Error {
        let at = self.offset_of(self.files.place(number));
        Error::malformed(at, format!("expected texts for file {number}"))
    }
}
