//! Which code no table speaks of.

use super::hex;
use crate::symbol_names::SymbolNames;
use backtrail_core::{AddrRange, Svma};
use backtrail_object::Object;
use serde::Serialize;

/// The ranges that tables have rules for.
#[derive(Default)]
pub(super) struct Coverage {
    ranges: Vec<AddrRange<Svma>>,
}

/// Code without unwind information.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Gap {
    #[serde(skip)]
    pub(super) range: AddrRange<Svma>,
    /// The first address.
    #[serde(serialize_with = "hex")]
    pub start: Svma,
    /// The first address behind it.
    #[serde(serialize_with = "hex")]
    pub end: Svma,
    /// Bytes.
    pub size: u64,
    /// The section that it lies in.
    pub section: String,
    /// The functions that start in it, readable.
    pub functions: Vec<String>,
}

/// Totals of one slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Summary {
    /// Bytes of code sections.
    pub code_bytes: u64,
    /// Bytes of them that a table has a rule for.
    pub covered_bytes: u64,
    /// Gaps that are listed.
    pub gaps: usize,
    /// Gaps between functions that are too short for code, and their bytes: padding, not listed.
    pub padding: usize,
    /// See `padding`.
    pub padding_bytes: u64,
}

/// Compilers align functions to at most this many bytes, and fill up with bytes that never run.
const PADDING: u64 = 16;

impl Coverage {
    pub(super) fn add(&mut self, range: AddrRange<Svma>) {
        self.ranges.push(range);
    }

    pub(super) fn finish(mut self, object: &Object<'_>, names: &SymbolNames) -> (Vec<Gap>, Summary) {
        self.ranges.sort_unstable_by_key(|range| range.start());
        let mut summary = Summary::default();
        let mut gaps = Vec::new();
        for section in object.sections().iter().filter(|section| section.is_code && section.is_loaded) {
            summary.code_bytes += section.address.size();
            for range in self.gaps_in(section.address) {
                let functions: Vec<_> =
                    names.within(range).iter().map(crate::symbol_names::Named::readable).collect();
                if range.size() < PADDING && functions.is_empty() {
                    summary.padding += 1;
                    summary.padding_bytes += range.size();
                    continue;
                }
                gaps.push(Gap {
                    range,
                    start: range.start(),
                    end: range.end(),
                    size: range.size(),
                    section: section.name.to_string(),
                    functions,
                });
            }
        }
        summary.gaps = gaps.len();
        let uncovered = gaps.iter().map(|gap| gap.size).sum::<u64>() + summary.padding_bytes;
        summary.covered_bytes = summary.code_bytes.saturating_sub(uncovered);
        (gaps, summary)
    }

    /// What of `section` no range covers.
    fn gaps_in(&self, section: AddrRange<Svma>) -> Vec<AddrRange<Svma>> {
        let mut gaps = Vec::new();
        let mut at = section.start();
        for range in &self.ranges {
            if range.start() >= section.end() {
                break;
            }
            if range.start() > at {
                gaps.push(AddrRange::new(at, range.start()));
            }
            at = at.max(range.end());
        }
        if at < section.end() {
            gaps.push(AddrRange::new(at, section.end()));
        }
        gaps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> AddrRange<Svma> {
        AddrRange::new(Svma::new(start), Svma::new(end))
    }

    #[test]
    fn gaps_are_what_ranges_leave() {
        let mut coverage = Coverage::default();
        for covered in [range(0x10, 0x20), range(0x18, 0x30), range(0x40, 0x50), range(0x42, 0x44)] {
            coverage.add(covered);
        }
        assert_eq!(coverage.gaps_in(range(0, 0x60)), [range(0, 0x10), range(0x30, 0x40), range(0x50, 0x60)]);
        assert_eq!(coverage.gaps_in(range(0x18, 0x48)), [range(0x30, 0x40)]);
        assert_eq!(coverage.gaps_in(range(0x60, 0x70)), [range(0x60, 0x70)]);
        assert_eq!(Coverage::default().gaps_in(range(1, 2)), [range(1, 2)]);
    }
}
