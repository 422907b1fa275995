//! The memory that a capture saved.

use backtrail_core::{AddrRange, Avma, ReadMemory, Unreadable};
use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Pieces of a process's memory, by address.
#[derive(Clone, Default)]
pub struct Memory<'d> {
    /// Ascending, without overlaps, none empty.
    pieces: Vec<Piece<'d>>,
    /// Those that overlap an earlier one, whole; ascending.
    overlapping: Vec<Piece<'d>>,
}

#[derive(Clone)]
struct Piece<'d> {
    start: u64,
    /// Where in `bytes` the piece begins: what overlaps an earlier one is cut off.
    skip: usize,
    bytes: Bytes<'d>,
}

/// A piece's bytes.
#[derive(Clone)]
pub(crate) enum Bytes<'d> {
    /// Its own, or the file's.
    One(Cow<'d, [u8]>),
    /// A part of what several pieces have together.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
    Shared(Arc<Vec<u8>>, Range<usize>),
}

impl Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::One(bytes) => bytes,
            Self::Shared(bytes, range) => bytes.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl Piece<'_> {
    fn bytes(&self) -> &[u8] {
        let bytes = self.bytes.get(self.skip..).unwrap_or_default();
        // The address space ends before a piece that claims to lie across its end does.
        let room = usize::try_from(u64::MAX - self.start).unwrap_or(usize::MAX);
        bytes.get(..room).unwrap_or(bytes)
    }

    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes().len() as u64)
    }
}

impl<'d> Memory<'d> {
    /// Takes pieces in any order. Of overlapping ones, that which begins lower counts; among equals the first.
    pub fn new(pieces: impl IntoIterator<Item = (Avma, Cow<'d, [u8]>)>) -> Self {
        Self::of(pieces.into_iter().map(|(start, bytes)| (start, Bytes::One(bytes))))
    }

    /// The same of bytes that may be shared.
    pub(crate) fn of(pieces: impl IntoIterator<Item = (Avma, Bytes<'d>)>) -> Self {
        let piece = |(start, bytes): (Avma, Bytes<'d>)| Piece { start: start.get(), skip: 0, bytes };
        let mut all: Vec<_> = pieces.into_iter().map(piece).filter(|piece| !piece.bytes.is_empty()).collect();
        all.sort_by_key(|piece| piece.start);
        let mut pieces: Vec<Piece<'d>> = Vec::with_capacity(all.len());
        let mut overlapping = Vec::new();
        let mut covered = 0_u64;
        for mut piece in all {
            if let Some(twice) =
                covered.checked_sub(piece.start).and_then(|twice| usize::try_from(twice).ok())
            {
                if twice > 0 {
                    overlapping.push(piece.clone());
                }
                if twice >= piece.bytes.len() {
                    continue;
                }
                piece.skip = twice;
                piece.start = covered;
            }
            // What would go on behind the last address is not there.
            if piece.start == u64::MAX {
                continue;
            }
            covered = piece.end();
            pieces.push(piece);
        }
        Self { pieces, overlapping }
    }

    /// The same with further pieces.
    #[cfg(target_os = "linux")]
    pub(crate) fn with(self, more: impl IntoIterator<Item = (Avma, Bytes<'d>)>) -> Self {
        let piece = |piece: Piece<'d>| {
            let bytes = if piece.skip == 0 { piece.bytes } else { Bytes::One(piece.bytes().to_vec().into()) };
            (Avma::new(piece.start), bytes)
        };
        // A piece that was cut off comes once, whole.
        let whole = self.pieces.into_iter().filter(|piece| piece.skip == 0);
        Self::of(whole.chain(self.overlapping).map(piece).chain(more))
    }

    /// The saved bytes from `address` on, to the end of their piece; `None` where nothing was saved.
    pub fn bytes_from(&self, address: Avma) -> Option<&[u8]> {
        let address = address.get();
        let after = self.pieces.partition_point(|piece| piece.start <= address);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        let bytes = piece.bytes().get(usize::try_from(address - piece.start).ok()?..)?;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The same, of the piece that begins last of those that have the address: of a stack that was saved from there on. Stacks
    /// of Go's threads lie in one mapping, so that one is saved together with what another was a moment later.
    pub fn own_bytes_from(&self, address: Avma) -> Option<&[u8]> {
        let at = address.get();
        let after = self.overlapping.partition_point(|piece| piece.start <= at);
        let overlapping = self.overlapping.get(..after)?.iter().rev().find(|piece| at < piece.end());
        let first = self.pieces.get(..self.pieces.partition_point(|piece| piece.start <= at))?.last();
        let own =
            overlapping.filter(|own| first.is_none_or(|first| first.skip > 0 || first.start <= own.start));
        let Some(own) = own else { return self.bytes_from(address) };
        own.bytes().get(usize::try_from(at - own.start).ok()?..).filter(|bytes| !bytes.is_empty())
    }

    /// `size` bytes from `address` on, joined where pieces adjoin.
    pub fn read_bytes(&self, address: Avma, size: usize) -> Option<Cow<'_, [u8]>> {
        let first = self.bytes_from(address)?;
        if let Some(bytes) = first.get(..size) {
            return Some(Cow::Borrowed(bytes));
        }
        let mut joined = first.to_vec();
        while joined.len() < size {
            let more = self.bytes_from(address.checked_add(joined.len() as u64)?)?;
            joined.extend(more.iter().take(size - joined.len()));
        }
        Some(Cow::Owned(joined))
    }

    /// The saved ranges, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = AddrRange<Avma>> + '_ {
        self.pieces.iter().map(|piece| AddrRange::new(Avma::new(piece.start), Avma::new(piece.end())))
    }

    /// Whether nothing was saved.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// How many bytes were saved.
    pub fn size(&self) -> u64 {
        self.ranges().map(AddrRange::size).sum()
    }
}

/// A word, which lies in one piece as a rule.
fn word<const SIZE: usize>(memory: &Memory<'_>, address: Avma) -> Result<[u8; SIZE], Unreadable> {
    if let Some(bytes) = memory.bytes_from(address).and_then(|bytes| bytes.first_chunk()) {
        return Ok(*bytes);
    }
    let mut bytes = [0; SIZE];
    memory.read(address, &mut bytes)?;
    Ok(bytes)
}

impl ReadMemory for Memory<'_> {
    fn read_u32(&self, address: Avma) -> Result<u32, Unreadable> {
        word(self, address).map(u32::from_le_bytes)
    }

    fn read_u64(&self, address: Avma) -> Result<u64, Unreadable> {
        word(self, address).map(u64::from_le_bytes)
    }

    fn read(&self, address: Avma, buf: &mut [u8]) -> Result<(), Unreadable> {
        let unreadable = Unreadable { address };
        let mut done = 0;
        while done < buf.len() {
            let at = address.checked_add(done as u64).ok_or(unreadable)?;
            let bytes = self.bytes_from(at).ok_or(unreadable)?;
            let rest = buf.get_mut(done..).unwrap_or_default();
            let size = bytes.len().min(rest.len());
            for (to, from) in rest.iter_mut().zip(bytes) {
                *to = *from;
            }
            done += size;
        }
        Ok(())
    }
}

impl fmt::Debug for Memory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ranges()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory<'static> {
        let piece = |start, bytes: &'static [u8]| (Avma::new(start), Cow::Borrowed(bytes));
        Memory::new([
            piece(0x20, b"cdefgh"),
            piece(0x10, b""),
            piece(0x1e, b"ab"),
            piece(0x22, b"XXXXij"),
            piece(0x40, b"z"),
        ])
    }

    #[test]
    fn pieces_that_adjoin_read_as_one_and_overlaps_count_once() {
        let mut buf = [0; 8];
        memory().read(Avma::new(0x20), &mut buf).unwrap();
        assert_eq!(&buf, b"cdefghij");
        assert_eq!(memory().read_bytes(Avma::new(0x1e), 10).unwrap().as_ref(), b"abcdefghij");
        assert_eq!(memory().size(), 11);
    }

    #[test]
    fn a_piece_has_its_own_bytes_though_others_overlap_it() {
        let memory = memory();
        assert_eq!(memory.own_bytes_from(Avma::new(0x22)), Some(&b"XXXXij"[..]));
        assert_eq!(memory.own_bytes_from(Avma::new(0x27)), Some(&b"j"[..]));
        assert_eq!(memory.own_bytes_from(Avma::new(0x21)), Some(&b"defgh"[..]));
        assert_eq!(memory.own_bytes_from(Avma::new(0x40)), Some(&b"z"[..]));
        assert_eq!(memory.own_bytes_from(Avma::new(0x28)), None);
        let pieces = |pieces: &[(u64, &'static [u8])]| {
            Memory::new(pieces.iter().map(|(start, bytes)| (Avma::new(*start), Cow::Borrowed(*bytes))))
        };
        // One that lies wholly inside of another.
        let inside = pieces(&[(0x10, b"abcdefgh"), (0x12, b"XY"), (0x18, b"z")]);
        assert_eq!(inside.own_bytes_from(Avma::new(0x12)), Some(&b"XY"[..]));
        assert_eq!(inside.own_bytes_from(Avma::new(0x14)), Some(&b"efgh"[..]));
        assert_eq!(inside.own_bytes_from(Avma::new(0x18)), Some(&b"z"[..]));
    }

    #[test]
    fn a_hole_is_unreadable_and_says_where_the_read_began() {
        let mut buf = [0; 4];
        for address in [0, 0x1c, 0x26, 0x3f, 0x40, u64::MAX - 1].map(Avma::new) {
            assert_eq!(memory().read(address, &mut buf), Err(Unreadable { address }), "{address}");
        }
        assert_eq!(memory().bytes_from(Avma::new(0x28)), None);
        assert_eq!(memory().read_bytes(Avma::new(0x26), 4), None);
    }

    #[test]
    fn the_end_of_the_address_space_is_no_trap() {
        let memory = Memory::new([(Avma::new(u64::MAX - 1), Cow::Borrowed(&b"abcdef"[..]))]);
        assert_eq!(
            memory.read(Avma::new(u64::MAX - 1), &mut [0; 4]),
            Err(Unreadable { address: Avma::new(u64::MAX - 1) })
        );
    }
}
