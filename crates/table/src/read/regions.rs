//! The sections of the image, to tell why nothing is known of an address.

use crate::bytes::Cursor;
use backtrail_core::Reason;

/// Bytes of a region.
pub(crate) const REGION_SIZE: usize = 17;

/// Sorted regions of the image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Regions<'d> {
    data: &'d [u8],
}

impl<'d> Regions<'d> {
    pub(crate) fn new(data: &'d [u8]) -> Self {
        Self { data }
    }

    /// Start, end and whether there are instructions.
    pub(crate) fn get(&self, index: usize) -> Option<(u64, u64, bool)> {
        let mut cursor = Cursor::at(self.data, index.checked_mul(REGION_SIZE)?);
        Some((cursor.u64()?, cursor.u64()?, cursor.u8()? != 0))
    }

    pub(crate) fn len(&self) -> usize {
        self.data.len() / REGION_SIZE
    }

    /// Why nothing is known of an address.
    pub(crate) fn reason(&self, address: u64) -> Reason {
        let (mut low, mut high) = (0, self.len());
        if high == 0 {
            return Reason::NoSymbol;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            let is_below = self.get(middle).is_some_and(|(start, ..)| start <= address);
            (low, high) = if is_below { (middle + 1, high) } else { (low, middle) };
        }
        match low.checked_sub(1).and_then(|index| self.get(index)) {
            Some((_, end, is_code)) if address < end => {
                if is_code {
                    Reason::NoSymbol
                } else {
                    Reason::NotCode
                }
            }
            _ => Reason::OutsideSections,
        }
    }
}
