//! Many addresses at a time.

use super::OpenImage;
use crate::binary::Located;
use backtrail_core::Svma;
use backtrail_store::Index;
use rayon::prelude::*;

/// Addresses, in ascending order, that are answered before memory is given back: neighbours share units, and the pages
/// of a part's units stay far below those of a whole file.
const PART: usize = 128;

/// Below this number, handing work to other threads costs more than it saves.
const WORTH_THREADS: usize = 8;

impl OpenImage {
    /// What lies at each of the addresses, in their order.
    pub(crate) fn lookup_all(&self, index: &Index, addresses: &[Svma]) -> Vec<Located> {
        if addresses.len() < WORTH_THREADS {
            return addresses.iter().map(|address| self.lookup(index, *address)).collect();
        }
        let mut order: Vec<usize> = (0..addresses.len()).collect();
        let address = |position: usize| addresses.get(position).copied().unwrap_or(Svma::new(0));
        order.sort_by_key(|position| address(*position));
        let mut answers = vec![Located::default(); addresses.len()];
        let mut parts = order.chunks(PART).peekable();
        while let Some(part) = parts.next() {
            let of_part: Vec<Svma> = part.iter().map(|position| address(*position)).collect();
            self.read_ahead(&of_part);
            let found: Vec<Located> =
                of_part.par_iter().map(|address| self.lookup(index, *address)).collect();
            for (position, found) in part.iter().zip(found) {
                if let Some(answer) = answers.get_mut(*position) {
                    *answer = found;
                }
            }
            if parts.peek().is_some() {
                self.release(None);
            }
        }
        answers
    }

    /// Reads what lookups of these addresses will need, on all cores.
    pub(crate) fn read_ahead(&self, addresses: &[Svma]) {
        if addresses.len() < WORTH_THREADS {
            return;
        }
        self.joined.with_dependent(|_, parts| parts.symbolizer.prepare(addresses));
    }
}
