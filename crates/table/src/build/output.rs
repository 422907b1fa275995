//! The file that a table is written to, section by section.

use crate::error::{Error, Result};
use crate::format::{ENTRY_SIZE, Entry, HEADER_SIZE, SECTIONS, SectionKind, put_header};
use crate::types::Header;
use std::io::{Seek, SeekFrom, Write};

/// A file of sections in the making.
pub(crate) struct Output<'w, W> {
    out: &'w mut W,
    start: u64,
    position: u64,
    entries: Vec<Entry>,
}

impl<'w, W: Write + Seek> Output<'w, W> {
    /// Leaves space for the header.
    pub(crate) fn new(out: &'w mut W) -> Result<Self> {
        let start = out.stream_position().map_err(|error| Error::io(&error))?;
        let mut output = Self { out, start, position: 0, entries: Vec::new() };
        output.bytes(&vec![0; HEADER_SIZE + SECTIONS.len() * ENTRY_SIZE])?;
        Ok(output)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| Error::io(&error))?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Writes a section piece by piece.
    pub(super) fn pieces(
        &mut self,
        kind: SectionKind,
        write: impl FnOnce(&mut Section<'_, 'w, W>) -> Result<()>,
    ) -> Result<()> {
        let offset = self.position.next_multiple_of(8);
        let gap = (offset - self.position) as usize;
        self.bytes([0; 8].get(..gap).unwrap_or_default())?;
        let mut section = Section { output: self, hasher: crc32fast::Hasher::new() };
        write(&mut section)?;
        let checksum = section.hasher.finalize();
        self.entries.push(Entry { kind: kind as u32, checksum, offset, size: self.position - offset });
        Ok(())
    }

    pub(crate) fn section(&mut self, kind: SectionKind, bytes: &[u8]) -> Result<()> {
        self.pieces(kind, |section| section.bytes(bytes))
    }

    /// Writes the header, and gives the size of the file.
    pub(crate) fn finish(self, header: &Header) -> Result<(u64, Vec<Entry>)> {
        let start = put_header(header, &self.entries, self.position);
        let written = self.out.seek(SeekFrom::Start(self.start)).and_then(|_| {
            self.out.write_all(&start)?;
            self.out.seek(SeekFrom::Start(self.start + self.position))?;
            self.out.flush()
        });
        written.map_err(|error| Error::io(&error))?;
        Ok((self.position, self.entries))
    }
}

pub(super) struct Section<'a, 'w, W> {
    output: &'a mut Output<'w, W>,
    hasher: crc32fast::Hasher,
}

impl<W: Write + Seek> Section<'_, '_, W> {
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.output.bytes(bytes)
    }
}
