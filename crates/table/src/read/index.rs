//! From an address to the place of its chunk.

use crate::bytes::Cursor;
use crate::packed::{Packed, Rows};

/// The index section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index<'d> {
    base: u64,
    /// For each chunk, its address counted from the base, and its place in the bodies.
    chunks: Rows<'d, 2>,
    /// For each part of the addresses, how many chunks start before it.
    buckets: Packed<'d>,
    shift: u8,
}

/// Where a chunk starts: in the image, and in the bodies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkEntry {
    pub(crate) start: u64,
    pub(crate) position: u64,
}

impl<'d> Index<'d> {
    pub(crate) fn read(data: &'d [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(data);
        let [start_width, place_width, bucket_width, shift, ..] = cursor.array::<8>()?;
        let (count, base, bucket_count) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let chunks = Rows::new(data.get(cursor.at..)?, [start_width, place_width], count)?;
        cursor.take(chunks.size())?;
        let buckets = Packed::new(data.get(cursor.at..)?, bucket_width, bucket_count)?;
        Some(Self { base, chunks, buckets, shift: shift.min(63) })
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The last chunk that starts at or below an address: among those of its bucket, or the one before.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<(usize, ChunkEntry)> {
        let offset = address.checked_sub(self.base)?;
        let bucket = self.bucket(offset)?;
        let (mut low, mut high) =
            (self.buckets.get(bucket)? as usize, self.buckets.get(bucket + 1)? as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = self.chunks.column::<0>(middle)? <= offset;
            (low, high) = if is_below { (middle + 1, high) } else { (low, middle) };
        }
        let number = low.checked_sub(1)?;
        Some((number, self.get(number)?))
    }

    #[inline]
    fn bucket(&self, offset: u64) -> Option<usize> {
        Some(usize::try_from(offset >> self.shift).ok()?.min(self.buckets.len().checked_sub(2)?))
    }

    /// The first thing that [`find`](Self::find) reads, and the second: for reading ahead.
    #[inline]
    pub(crate) fn bucket_of(&self, address: u64) -> Option<u64> {
        self.buckets.get(self.bucket(address.checked_sub(self.base)?)?)
    }

    #[inline]
    pub(crate) fn nearby(&self, address: u64) -> Option<u64> {
        self.chunks.column::<0>(self.bucket_of(address)? as usize)
    }

    /// The bytes that tell of a chunk, by its number, and what follows; from the start, where that is unknown.
    pub(crate) fn place(&self, number: usize) -> &'d [u8] {
        self.chunks.place(number)
    }

    /// A chunk by its number.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<ChunkEntry> {
        let [start, position] = self.chunks.get(number)?;
        Some(ChunkEntry { start: self.base.checked_add(start)?, position })
    }
}
