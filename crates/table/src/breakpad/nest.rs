//! Inlined calls by depth made into calls within calls.

use crate::exchange::{Call, PlainInline, intersect};
use backtrail_core::{AddrRange, Svma};

/// A call as a symbol file has it.
pub(super) struct Flat<'r, 'd> {
    /// 0 for what was inlined into the function itself.
    pub(super) depth: u32,
    pub(super) ranges: &'r [AddrRange<Svma>],
    pub(super) call: Call<'d>,
}

/// Calls within calls. Compilers stop at some dozen.
const MAX_DEPTH: u32 = 256;

/// A piece of a call: its range and which call.
#[derive(Clone, Copy)]
struct Piece {
    range: AddrRange<Svma>,
    call: usize,
}

/// The calls with their callers before them, each cut to what is within its caller.
pub(super) fn nested<'d>(calls: Vec<Flat<'_, 'd>>, function: AddrRange<Svma>) -> Vec<PlainInline<'d>> {
    let mut levels: Vec<Vec<Piece>> = Vec::new();
    for (position, call) in calls.iter().enumerate().filter(|(_, call)| call.depth < MAX_DEPTH) {
        let depth = call.depth as usize;
        if levels.len() <= depth {
            levels.resize_with(depth + 1, Vec::new);
        }
        let pieces = call.ranges.iter().filter(|range| !range.is_empty());
        let pieces = pieces.map(|range| Piece { range: *range, call: position });
        if let Some(level) = levels.get_mut(depth) {
            level.extend(pieces);
        }
    }
    let pieces: usize = levels.iter().map(Vec::len).sum();
    levels.iter_mut().for_each(|level| level.sort_by_key(|piece| (piece.range.start(), piece.call)));
    // Honest calls of one depth do not overlap, so that a piece is cut a few times at most.
    let mut nest = Nest { calls, levels, budget: pieces * 16 + 64, out: Vec::new() };
    nest.place(0, &[function]);
    nest.out
}

struct Nest<'r, 'd> {
    calls: Vec<Flat<'r, 'd>>,
    /// The pieces of each depth, sorted.
    levels: Vec<Vec<Piece>>,
    /// How many pieces may still be looked at.
    budget: usize,
    out: Vec<PlainInline<'d>>,
}

impl Nest<'_, '_> {
    fn place(&mut self, depth: usize, within: &[AddrRange<Svma>]) {
        let mut inside = self.inside(depth, within);
        // In the order of the file; the pieces of one call together.
        inside.sort_by_key(|piece| (piece.call, piece.range.start()));
        for pieces in inside.chunk_by(|a, b| a.call == b.call) {
            let ranges: Vec<_> = pieces.iter().map(|piece| piece.range).collect();
            let ranges = intersect(&ranges, within);
            let Some(flat) = pieces.first().and_then(|piece| self.calls.get(piece.call)) else { continue };
            if ranges.is_empty() {
                continue;
            }
            self.out.push(PlainInline {
                depth: flat.depth + 1,
                name: flat.call.name.into(),
                call_file: flat.call.file,
                call_line: flat.call.line,
                ranges: ranges.clone(),
            });
            self.place(depth + 1, &ranges);
        }
    }

    /// The pieces of a depth that some ranges touch.
    fn inside(&mut self, depth: usize, within: &[AddrRange<Svma>]) -> Vec<Piece> {
        let mut inside = Vec::new();
        let Some(level) = self.levels.get(depth) else { return inside };
        for around in within {
            let behind = level.partition_point(|piece| piece.range.start() < around.end());
            for piece in level.get(..behind).unwrap_or_default().iter().rev() {
                let Some(left) = self.budget.checked_sub(1) else { return inside };
                self.budget = left;
                if piece.range.end() > around.start() {
                    inside.push(*piece);
                } else {
                    break;
                }
            }
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_within_two_others_is_split() {
        let range = |start, end| AddrRange::new(Svma::new(start), Svma::new(end));
        let (first, second, inner) = ([range(0, 10)], [range(20, 30)], [range(5, 8), range(22, 40)]);
        let flat = |depth, ranges, line| Flat { depth, ranges, call: Call { name: b"", file: None, line } };
        let calls = vec![flat(0, &first[..], 1), flat(1, &inner[..], 3), flat(0, &second[..], 2)];
        let nested = nested(calls, range(0, 100));
        let shape: Vec<_> =
            nested.iter().map(|call| (call.depth, call.call_line, call.ranges.clone())).collect();
        let wanted = [
            (1, 1, vec![range(0, 10)]),
            (2, 3, vec![range(5, 8)]),
            (1, 2, vec![range(20, 30)]),
            (2, 3, vec![range(22, 30)]),
        ];
        assert_eq!(shape, wanted);
    }
}
