//! How much all sections of one file may come to in memory.
//!
//! What is granted is decided once, from the headers alone and in the file's order, so that the answer does not depend
//! on which section is read first, how often, or by which thread.

use std::collections::HashSet;

use crate::compress::Compressed;
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::section::Section;

/// An object's part of the file that it lies in: objects of one file share what the file may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Objects in the file.
    pub(crate) objects: u64,
    /// Bytes of the file.
    pub(crate) file_size: u64,
    /// Bytes of all objects together: more than the file has where they overlap.
    pub(crate) objects_size: u64,
}

impl Share {
    /// The share of an object that is a file of its own.
    pub(crate) fn whole(size: u64) -> Self {
        Self { objects: 1, file_size: size, objects_size: size }
    }

    /// What an object of `size` bytes may decompress to.
    fn allowed(self, size: u64, limits: &Limits) -> u64 {
        /// Even one of a million members may have small sections that compress well.
        const LEAST: u64 = 64 << 10;
        let freely = (limits.decompressed_freely / self.objects.max(1)).max(LEAST);
        let own = u128::from(size);
        let own = if self.objects_size > self.file_size {
            own * u128::from(self.file_size) / u128::from(self.objects_size)
        } else {
            own
        };
        let by_size = u64::try_from(own).unwrap_or(u64::MAX).saturating_mul(limits.decompressed_ratio);
        freely.saturating_add(by_size).min(limits.decompressed_bytes)
    }
}

/// A section that costs memory to read.
pub(crate) struct Cost<'d> {
    pub(crate) section: usize,
    pub(crate) bytes: u64,
    pub(crate) compressed: Option<Compressed<'d>>,
}

/// Which sections of an object may be read.
#[derive(Debug)]
pub(crate) struct Budget {
    allowed: u64,
    /// What is left when all sections that may be read were.
    left: u64,
    refused: HashSet<usize>,
    object_size: u64,
}

impl Budget {
    /// Grants sections, in their order, as long as the sum is not above what an object of `size` bytes may cost.
    pub(crate) fn new<'d>(
        costs: impl Iterator<Item = Cost<'d>>,
        size: u64,
        share: Share,
        limits: &Limits,
    ) -> Self {
        let allowed = share.allowed(size, limits);
        let mut budget = Self { allowed, left: allowed, refused: HashSet::new(), object_size: size };
        for cost in costs {
            let is_bomb = cost.compressed.is_some_and(|compressed| compressed.is_bomb(limits));
            match budget.left.checked_sub(cost.bytes) {
                Some(left) if !is_bomb => budget.left = left,
                _ => _ = budget.refused.insert(cost.section),
            }
        }
        budget
    }

    /// What is left for data that does not state its size.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// An error where the section at `offset` of the file, which comes to `bytes`, may not be read.
    pub(crate) fn check(&self, section: &Section<'_>, bytes: u64, offset: u64) -> Result<(), Error> {
        if !self.refused.contains(&section.index) {
            return Ok(());
        }
        let detail = format!(
            "section {} takes {bytes} bytes of memory, expected at most {} for all sections of these {} bytes",
            section.name.escape_debug(),
            self.allowed,
            self.object_size
        );
        Err(Error::new(ErrorKind::LimitExceeded, offset, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(section: usize, bytes: u64) -> Cost<'static> {
        Cost { section, bytes, compressed: None }
    }

    fn refused(budget: &Budget) -> Vec<usize> {
        let mut refused: Vec<_> = budget.refused.iter().copied().collect();
        refused.sort_unstable();
        refused
    }

    #[test]
    fn one_sum_for_all_sections() {
        let limits = Limits { decompressed_freely: 1 << 20, decompressed_ratio: 10, ..Limits::default() };
        let costs =
            [cost(1, 1 << 20), cost(2, 500), cost(3, 501), cost(4, 500), cost(5, u64::MAX), cost(6, 0)];
        let budget = Budget::new(costs.into_iter(), 100, Share::whole(100), &limits);
        assert_eq!((refused(&budget), budget.left()), (vec![3, 5], 0));
        let few = Limits { decompressed_bytes: 600, ..limits };
        let budget = Budget::new([cost(1, 500), cost(2, 101)].into_iter(), 100, Share::whole(100), &few);
        assert_eq!((refused(&budget), budget.left()), (vec![2], 100));
    }

    #[test]
    fn objects_of_one_file_share_what_it_may_cost() {
        let limits = Limits { decompressed_freely: 64 << 20, decompressed_ratio: 10, ..Limits::default() };
        let share = Share { objects: 64, file_size: 1000, objects_size: 800 };
        assert_eq!(share.allowed(100, &limits), (1 << 20) + 1000);
        // Slices of a fat file that all are the same bytes.
        let share = Share { objects: 1 << 20, file_size: 1000, objects_size: 1000 << 20 };
        assert_eq!(share.allowed(1000, &limits), 64 << 10);
    }
}
