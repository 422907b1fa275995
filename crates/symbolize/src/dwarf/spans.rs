//! Overlapping address ranges made into a sorted list in which each address belongs to one owner.

/// A piece of the address space and the index of what it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) owner: u32,
}

/// Sorts the spans and cuts them so that none overlap: where several cover an address, the one that starts last wins,
/// among those with the same start the one with the greatest owner. With owners numbered in the order of their DIEs
/// that is the innermost one, and where siblings overlap the answer that LLVM gives.
pub(crate) fn flatten(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|span| span.start < span.end);
    if !spans.is_sorted_by_key(|span| (span.start, span.owner)) {
        spans.sort_by_key(|span| (span.start, span.owner));
    }
    let overlaps = spans.windows(2).any(|pair| matches!(pair, [a, b] if b.start < a.end));
    let mut flat = if overlaps { sweep(&spans) } else { spans };
    flat.shrink_to_fit();
    flat
}

/// Goes up the address space with a stack of the spans that have started; its top owns the address.
fn sweep(spans: &[Span]) -> Vec<Span> {
    let mut flat = Vec::with_capacity(spans.len() * 2);
    let mut open: Vec<Span> = Vec::new();
    let mut at = 0;
    for span in spans {
        close_until(span.start, &mut at, &mut open, &mut flat);
        at = span.start;
        open.push(*span);
    }
    close_until(u64::MAX, &mut at, &mut open, &mut flat);
    flat
}

/// Emits what lies between `at` and `limit`.
fn close_until(limit: u64, at: &mut u64, open: &mut Vec<Span>, flat: &mut Vec<Span>) {
    while let Some(top) = open.last() {
        emit(Span { start: *at, end: top.end.min(limit), owner: top.owner }, flat);
        if top.end > limit {
            return;
        }
        *at = (*at).max(top.end);
        open.pop();
    }
}

fn emit(span: Span, flat: &mut Vec<Span>) {
    if span.start >= span.end {
        return;
    }
    match flat.last_mut() {
        Some(last) if last.end == span.start && last.owner == span.owner => last.end = span.end,
        _ => flat.push(span),
    }
}

/// The owner of an address in a flattened list.
#[inline]
pub(crate) fn find(spans: &[Span], address: u64) -> Option<&Span> {
    let behind = spans.partition_point(|span| span.start <= address);
    spans.get(behind.checked_sub(1)?).filter(|span| address < span.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(spans: &[(u64, u64, u32)]) -> Vec<(u64, u64, u32)> {
        let spans = spans.iter().map(|&(start, end, owner)| Span { start, end, owner }).collect();
        flatten(spans).iter().map(|span| (span.start, span.end, span.owner)).collect()
    }

    #[test]
    fn nested_spans_give_way_to_the_innermost() {
        assert_eq!(
            flat(&[(0, 100, 0), (10, 50, 1), (20, 30, 2), (50, 60, 3)]),
            [(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 50, 1), (50, 60, 3), (60, 100, 0)]
        );
    }

    #[test]
    fn the_later_one_wins_where_both_start_together() {
        assert_eq!(flat(&[(0, 10, 0), (0, 20, 1)]), [(0, 20, 1)]);
        assert_eq!(flat(&[(0, 20, 0), (0, 10, 1)]), [(0, 10, 1), (10, 20, 0)]);
        assert_eq!(flat(&[(0, 10, 1), (0, 10, 0)]), [(0, 10, 1)]);
    }

    #[test]
    fn crossing_spans_and_gaps() {
        assert_eq!(flat(&[(0, 10, 0), (5, 15, 1), (20, 30, 2)]), [(0, 5, 0), (5, 15, 1), (20, 30, 2)]);
        assert_eq!(flat(&[(8, 8, 0), (9, 3, 1)]), []);
        assert_eq!(flat(&[(0, u64::MAX, 0), (5, 7, 1)]), [(0, 5, 0), (5, 7, 1), (7, u64::MAX, 0)]);
    }

    #[test]
    fn every_address_has_the_owner_that_painting_gives() {
        let mut seed = 7u64;
        for _ in 0..200 {
            let mut spans = Vec::new();
            for owner in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (start, length) = ((seed >> 33) % 40, (seed >> 50) % 20);
                spans.push(Span { start, end: start + length, owner });
            }
            let flat = flatten(spans.clone());
            assert!(flat.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for address in 0..64 {
                let around = spans.iter().filter(|span| span.start <= address && address < span.end);
                let want = around.max_by_key(|span| (span.start, span.owner)).map(|span| span.owner);
                assert_eq!(find(&flat, address).map(|span| span.owner), want);
            }
        }
    }
}
