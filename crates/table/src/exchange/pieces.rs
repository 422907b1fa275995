//! Functions cut into pieces that lie together: neither GSYM nor Breakpad knows functions in several ranges.

use super::{PlainFunction, PlainInline, PlainRow};
use backtrail_core::{AddrRange, Svma};

/// One range of a function with what lies in it.
#[derive(Clone, Debug)]
pub(crate) struct Piece<'f> {
    pub(crate) range: AddrRange<Svma>,
    pub(crate) rows: &'f [PlainRow],
    pub(crate) inlines: Vec<PieceInline<'f>>,
}

/// An inlined call with its addresses in the piece.
#[derive(Clone, Debug)]
pub(crate) struct PieceInline<'f> {
    /// 0 for what was inlined into the function itself.
    pub(crate) depth: usize,
    pub(crate) call: &'f PlainInline<'f>,
    /// Sorted, without overlaps, within those of the caller; never empty.
    pub(crate) ranges: Vec<AddrRange<Svma>>,
}

/// Cuts a function. Calls are cut to what is inside of their callers, and left out where nothing remains.
pub(crate) fn pieces<'f>(function: &'f PlainFunction<'_>) -> impl Iterator<Item = Piece<'f>> {
    let ranges = function.ranges.iter().filter(|range| !range.is_empty());
    ranges.map(|range| Piece {
        range: *range,
        rows: rows_in(&function.rows, *range),
        inlines: inlines_in(&function.inlines, *range),
    })
}

fn rows_in(rows: &[PlainRow], range: AddrRange<Svma>) -> &[PlainRow] {
    let first = rows.partition_point(|row| row.address < range.start());
    let end = rows.partition_point(|row| row.address < range.end());
    rows.get(first..end).unwrap_or_default()
}

fn inlines_in<'f>(inlines: &'f [PlainInline<'_>], range: AddrRange<Svma>) -> Vec<PieceInline<'f>> {
    let mut kept: Vec<PieceInline<'f>> = Vec::new();
    // Where in `kept` each open call stands.
    let mut open: Vec<Option<usize>> = Vec::new();
    for call in inlines {
        let depth = (call.depth as usize).saturating_sub(1).min(open.len());
        open.truncate(depth);
        let whole = [range];
        let around = match open.last() {
            None => Some(&whole[..]),
            Some(parent) => parent.and_then(|parent| kept.get(parent)).map(|parent| &*parent.ranges),
        };
        let ranges = around.map(|around| intersect(&call.ranges, around)).unwrap_or_default();
        open.push((!ranges.is_empty()).then_some(kept.len()));
        if !ranges.is_empty() {
            kept.push(PieceInline { depth, call, ranges });
        }
    }
    kept
}

/// What two lists of ranges have in common, the first one in any order, the second sorted.
pub(crate) fn intersect(ranges: &[AddrRange<Svma>], around: &[AddrRange<Svma>]) -> Vec<AddrRange<Svma>> {
    let mut common: Vec<AddrRange<Svma>> = Vec::new();
    for range in ranges {
        let first = around.partition_point(|other| other.end() <= range.start());
        let others = around.get(first..).unwrap_or_default();
        for other in others.iter().take_while(|other| other.start() < range.end()) {
            let start = range.start().max(other.start());
            let end = range.end().min(other.end());
            if start < end {
                common.push(AddrRange::new(start, end));
            }
        }
    }
    common.sort_by_key(|range| (range.start(), range.end()));
    join(common)
}

fn join(ranges: Vec<AddrRange<Svma>>) -> Vec<AddrRange<Svma>> {
    let mut joined: Vec<AddrRange<Svma>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start() <= last.end() => {
                *last = AddrRange::new(last.start(), last.end().max(range.end()));
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> AddrRange<Svma> {
        AddrRange::new(Svma::new(start), Svma::new(end))
    }

    fn call(depth: u32, ranges: &[(u64, u64)]) -> PlainInline<'static> {
        let ranges = ranges.iter().map(|(start, end)| range(*start, *end)).collect();
        PlainInline { depth, ranges, ..PlainInline::default() }
    }

    #[test]
    fn calls_are_cut_to_their_callers_and_pieces() {
        let row = |address| PlainRow { address: Svma::new(address), file: None, line: 1 };
        let function = PlainFunction {
            ranges: vec![range(10, 20), range(100, 120)],
            rows: vec![row(10), row(15), row(100), row(110)],
            inlines: vec![
                call(1, &[(12, 16), (105, 130)]),
                call(2, &[(14, 200)]),
                call(1, &[(18, 19)]),
                call(2, &[(0, 5)]),
            ],
            ..PlainFunction::default()
        };
        let pieces: Vec<_> = pieces(&function).collect();
        let shape = |piece: &Piece<'_>| {
            let calls =
                piece.inlines.iter().map(|call| (call.depth, call.ranges.clone())).collect::<Vec<_>>();
            (piece.rows.len(), calls)
        };
        let first = vec![(0, vec![range(12, 16)]), (1, vec![range(14, 16)]), (0, vec![range(18, 19)])];
        let second = vec![(0, vec![range(105, 120)]), (1, vec![range(105, 120)])];
        assert_eq!(pieces.iter().map(shape).collect::<Vec<_>>(), [(2, first), (2, second)]);
    }
}
