//! From an address to the chunk around it.

use crate::body::GROUP;
use crate::bytes::Cursor;
use crate::packed::Packed;

/// The index section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index<'d> {
    base: u64,
    count: usize,
    starts: Packed<'d>,
    positions: Packed<'d>,
    groups: &'d [u8],
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
        let [starts, positions, ..] = cursor.array::<8>()?;
        let (count, base) = (cursor.u64()?, cursor.u64()?);
        let groups = count.div_ceil(GROUP as u64);
        let starts = Packed::new(data.get(cursor.at..)?, starts, groups)?;
        cursor.take(starts.size())?;
        let positions = Packed::new(data.get(cursor.at..)?, positions, groups)?;
        cursor.take(positions.size())?;
        let count = usize::try_from(count).ok()?;
        Some(Self { base, count, starts, positions, groups: data.get(cursor.at..)? })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The last chunk that starts at or below an address.
    #[inline]
    pub(crate) fn find(&self, address: u64) -> Option<(usize, ChunkEntry)> {
        let group = self.starts.count_up_to(address.checked_sub(self.base)?).checked_sub(1)?;
        let (mut number, mut found) = (group * GROUP, None);
        for (index, entry) in self.group(group)?.enumerate() {
            if entry.start > address {
                break;
            }
            (number, found) = (group * GROUP + index, Some(entry));
        }
        Some((number, found?))
    }

    /// The chunks of a group.
    #[inline]
    pub(crate) fn group(&self, group: usize) -> Option<GroupEntries<'d>> {
        let start = self.base.checked_add(self.starts.get(group)?)?;
        let mut cursor = Cursor::at(self.groups, usize::try_from(self.positions.get(group)?).ok()?);
        let position = cursor.uleb()?;
        let left = self.count.checked_sub(group * GROUP)?.min(GROUP);
        Some(GroupEntries { cursor, next: Some(ChunkEntry { start, position }), left })
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
