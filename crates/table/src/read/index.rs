//! From an address to the chunk around it.

use crate::body::GROUP;
use crate::bytes::Cursor;
use crate::packed::Packed;

/// The index section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index<'d> {
    base: u64,
    count: usize,
    /// For each group its first address, counted from the base, and its place.
    groups: Packed<'d>,
    /// For each bucket the first group that starts in it or behind it.
    buckets: Packed<'d>,
    shift: u8,
    bytes: &'d [u8],
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
        let [width, bucket_width, shift, ..] = cursor.array::<8>()?;
        let (count, base, bucket_count) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let group_count = count.div_ceil(GROUP as u64);
        let groups = Packed::new(data.get(cursor.at..)?, width, group_count.checked_mul(2)?)?;
        cursor.take(groups.size())?;
        let buckets = Packed::new(data.get(cursor.at..)?, bucket_width, bucket_count)?;
        cursor.take(buckets.size())?;
        let count = usize::try_from(count).ok()?;
        Some(Self { base, count, groups, buckets, shift: shift.min(63), bytes: data.get(cursor.at..)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The last chunk that starts at or below an address.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<(usize, ChunkEntry)> {
        let group = self.find_group(address.checked_sub(self.base)?)?;
        let (mut number, mut found) = (group * GROUP, None);
        for (index, entry) in self.group(group)?.enumerate() {
            if entry.start > address {
                break;
            }
            (number, found) = (group * GROUP + index, Some(entry));
        }
        Some((number, found?))
    }

    /// The last group that starts at or below an offset from the base: among those of its bucket, or the one before.
    #[inline]
    fn find_group(&self, offset: u64) -> Option<usize> {
        let bucket = usize::try_from(offset >> self.shift).ok()?.min(self.buckets.len().checked_sub(2)?);
        let (mut low, mut high) =
            (self.buckets.get(bucket)? as usize, self.buckets.get(bucket + 1)? as usize);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = self.groups.get(middle.checked_mul(2)?)? <= offset;
            (low, high) = if is_below { (middle + 1, high) } else { (low, middle) };
        }
        low.checked_sub(1)
    }

    /// The chunks of a group.
    #[inline]
    pub(crate) fn group(&self, group: usize) -> Option<GroupEntries<'d>> {
        let start = self.base.checked_add(self.groups.get(group.checked_mul(2)?)?)?;
        let position = self.groups.get(group * 2 + 1)?;
        let mut cursor = Cursor::at(self.bytes, usize::try_from(position).ok()?);
        let position = cursor.uleb()?;
        let left = self.count.checked_sub(group * GROUP)?.min(GROUP);
        Some(GroupEntries { cursor, next: Some(ChunkEntry { start, position }), left })
    }

    /// The bytes that tell of a chunk, by its number, and what follows; from the start, where that is unknown.
    pub(crate) fn place(&self, number: usize) -> &'d [u8] {
        let place = (number / GROUP).checked_mul(2).and_then(|group| self.groups.get(group + 1));
        let place = place.and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.bytes.get(place..)).unwrap_or(self.bytes)
    }

    /// A chunk by its number.
    pub(crate) fn get(&self, number: usize) -> Option<ChunkEntry> {
        self.group(number / GROUP)?.nth(number % GROUP)
    }
}

/// The chunks of a group, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct GroupEntries<'d> {
    cursor: Cursor<'d>,
    next: Option<ChunkEntry>,
    left: usize,
}

impl GroupEntries<'_> {
    #[inline]
    fn read_next(&mut self, entry: ChunkEntry) -> Option<ChunkEntry> {
        let start = entry.start.checked_add(self.cursor.uleb()?)?;
        let position = entry.position.wrapping_add(self.cursor.signed()?.cast_unsigned());
        Some(ChunkEntry { start, position })
    }
}

impl Iterator for GroupEntries<'_> {
    type Item = ChunkEntry;

    #[inline]
    fn next(&mut self) -> Option<ChunkEntry> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.next?;
        self.next = None;
        if self.left > 0 {
            self.next = self.read_next(entry);
        }
        Some(entry)
    }
}
