//! The information of one function: its size, name, and a list of typed pieces.

use super::bytes::Bytes;
use super::inlines::{self, Inline};
use super::lines;
use crate::error::{Error, Result};
use crate::exchange::PlainRow;
use backtrail_core::{AddrRange, Svma};

/// Kinds of pieces.
pub(super) const END_OF_LIST: u32 = 0;
pub(super) const LINES: u32 = 1;
pub(super) const INLINES: u32 = 2;
const MERGED: u32 = 3;

/// A function, its pieces not yet read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Info<'d> {
    pub(super) start: Svma,
    pub(super) size: u32,
    /// Offset of the name among the strings.
    pub(super) name: u32,
    lines: Option<Bytes<'d>>,
    inlines: Option<Bytes<'d>>,
    merged: Option<Bytes<'d>>,
    /// Bytes that all of it takes.
    pub(super) bytes: u64,
    /// Where it is in the file.
    offset: u64,
}

impl<'d> Info<'d> {
    /// Reads the size, the name and the list of pieces.
    pub(super) fn read(mut bytes: Bytes<'d>, start: Svma) -> Result<Self> {
        let offset = bytes.offset();
        Self::pieces(&mut bytes, start)
            .ok_or_else(|| Error::malformed(offset, "expected a function's information"))
    }

    fn pieces(bytes: &mut Bytes<'d>, start: Svma) -> Option<Self> {
        let offset = bytes.offset();
        let (size, name) = (bytes.u32()?, bytes.u32()?);
        let mut info = Self { start, size, name, lines: None, inlines: None, merged: None, bytes: 0, offset };
        loop {
            let kind = bytes.u32()?;
            let length = bytes.u32()?;
            let piece = bytes.part(length.into())?;
            match kind {
                END_OF_LIST => break,
                LINES => info.lines = Some(piece),
                INLINES => info.inlines = Some(piece),
                MERGED => info.merged = Some(piece),
                // Call sites, and what later versions add.
                _ => {}
            }
        }
        info.bytes = bytes.offset() - offset;
        Some(info)
    }

    /// Its addresses, where the file states how many they are.
    pub(super) fn range(&self) -> AddrRange<Svma> {
        AddrRange::from_size(self.start, self.size.into())
    }

    /// The row for an address; of several at one address the last, which the others only lead up to.
    pub(super) fn row(&self, address: Svma) -> Option<PlainRow> {
        let mut found = None;
        lines::read(self.lines?, self.start, |row| {
            if row.address <= address {
                found = Some(row);
            }
            row.address <= address
        });
        found
    }

    /// All rows.
    pub(super) fn rows(&self) -> Result<Vec<PlainRow>> {
        let mut rows = Vec::new();
        let Some(bytes) = self.lines else { return Ok(rows) };
        let read = lines::read(bytes, self.start, |row| {
            rows.push(row);
            true
        });
        read.ok_or_else(|| Error::malformed(bytes.offset(), "expected a line program that runs to its end"))?;
        rows.sort_by_key(|row| row.address);
        Ok(rows)
    }

    /// The function itself and what was inlined into it; empty where nothing was.
    pub(super) fn inlines(&self) -> Result<Vec<Inline>> {
        let Some(bytes) = self.inlines else { return Ok(Vec::new()) };
        let tree = inlines::read(bytes, self.start);
        tree.ok_or_else(|| Error::malformed(bytes.offset(), "expected a tree of inlined calls"))
    }

    /// The functions whose code was merged with this one's.
    pub(super) fn merged(&self) -> Result<Vec<Self>> {
        let Some(mut bytes) = self.merged else { return Ok(Vec::new()) };
        let malformed = || Error::malformed(self.offset, "expected a list of merged functions");
        let count = bytes.u32().ok_or_else(malformed)?;
        let mut merged = Vec::new();
        for _ in 0..count {
            let size = bytes.u32().ok_or_else(malformed)?;
            let part = bytes.part(size.into()).ok_or_else(malformed)?;
            merged.push(Self::read(part, self.start)?);
        }
        Ok(merged)
    }
}
