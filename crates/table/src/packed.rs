//! Arrays of numbers of equal width, and of rows of these.

use crate::body::mask;
use crate::bytes;

/// Bytes behind a packed array, so that each of its numbers can be read as eight bytes.
pub(crate) const PADDING: usize = 7;

/// Numbers of 1 to 8 bytes each, little-endian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packed<'d> {
    data: &'d [u8],
    width: usize,
    mask: u64,
    count: usize,
}

impl<'d> Packed<'d> {
    /// Takes `count` numbers and the padding from the start of `data`.
    pub(crate) fn new(data: &'d [u8], width: u8, count: u64) -> Option<Self> {
        if !(1..=8).contains(&width) {
            return None;
        }
        let (width, count) = (usize::from(width), usize::try_from(count).ok()?);
        let data = data.get(..count.checked_mul(width)?.checked_add(PADDING)?)?;
        Some(Self { data, width, mask: mask(width), count })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes with padding.
    pub(crate) fn size(&self) -> usize {
        self.data.len()
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        let start = index.checked_mul(self.width)?;
        let bytes = self.data.get(start..)?.first_chunk::<8>()?;
        if index < self.count { Some(u64::from_le_bytes(*bytes) & self.mask) } else { None }
    }
}

/// Rows of `N` numbers of 1 to 8 bytes each; those at one place of the rows have the same number of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'d, const N: usize> {
    data: &'d [u8],
    /// Where each number of a row starts, and its bits.
    columns: [(usize, u64); N],
    stride: usize,
    count: usize,
}

impl<'d, const N: usize> Rows<'d, N> {
    /// Takes `count` rows and the padding from the start of `data`.
    pub(crate) fn new(data: &'d [u8], widths: [u8; N], count: u64) -> Option<Self> {
        if !widths.iter().all(|width| (1..=8).contains(width)) {
            return None;
        }
        let (mut stride, count) = (0, usize::try_from(count).ok()?);
        let columns = widths.map(|width| {
            let start = stride;
            stride += usize::from(width);
            (start, mask(width.into()))
        });
        let data = data.get(..count.checked_mul(stride)?.checked_add(PADDING)?)?;
        Some(Self { data, columns, stride, count })
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Bytes with padding.
    pub(crate) fn size(&self) -> usize {
        self.data.len()
    }

    /// The bytes of a row and what follows; all of them, where there is no such row.
    pub(crate) fn place(&self, index: usize) -> &'d [u8] {
        index.checked_mul(self.stride).and_then(|at| self.data.get(at..)).unwrap_or(self.data)
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> Option<[u64; N]> {
        let data = self.row(index)?;
        let mut row = [0; N];
        for (number, column) in row.iter_mut().zip(self.columns) {
            *number = number_at(data, column)?;
        }
        Some(row)
    }

    /// The number at place `C` of a row.
    #[inline(always)]
    pub(crate) fn column<const C: usize>(&self, index: usize) -> Option<u64> {
        number_at(self.row(index)?, *self.columns.get(C)?)
    }

    #[inline(always)]
    fn row(&self, index: usize) -> Option<&'d [u8]> {
        if index < self.count { self.data.get(index * self.stride..) } else { None }
    }
}

#[inline(always)]
fn number_at(row: &[u8], (start, mask): (usize, u64)) -> Option<u64> {
    let bytes = row.get(start..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes) & mask)
}

/// Bytes that the largest of some numbers needs.
pub(crate) fn width_of(max: u64) -> u8 {
    (8 - max.leading_zeros() / 8).max(1) as u8
}

/// Appends numbers and the padding.
pub(crate) fn put(out: &mut Vec<u8>, width: u8, numbers: impl Iterator<Item = u64>) {
    for number in numbers {
        bytes::put_fixed(out, number, usize::from(width));
    }
    out.extend([0; PADDING]);
}

/// Appends rows and the padding.
pub(crate) fn put_rows<const N: usize>(
    out: &mut Vec<u8>,
    widths: [u8; N],
    rows: impl Iterator<Item = [u64; N]>,
) {
    for row in rows {
        for (number, width) in row.into_iter().zip(widths) {
            bytes::put_fixed(out, number, usize::from(width));
        }
    }
    out.extend([0; PADDING]);
}
