//! Overlapping ranges made into lists in which each address has one owner.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A piece of the address space and what it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) owner: u32,
}

/// Sorts spans and cuts them: where several cover an address, the one that starts last has it, of those with the same
/// start the one with the greatest owner. Touching spans of an owner become one.
pub(crate) fn flatten(spans: &mut Vec<Span>, scratch: &mut Vec<Span>) {
    spans.retain(|span| span.start < span.end);
    if !spans.is_sorted_by_key(|span| (span.start, span.owner)) {
        spans.sort_by_key(|span| (span.start, span.owner));
    }
    if spans.windows(2).all(|pair| matches!(pair, [a, b] if a.end < b.start)) {
        return;
    }
    let mut flat = Vec::with_capacity(spans.len() * 2);
    let open = scratch;
    open.clear();
    let mut at = 0;
    for span in spans.iter() {
        close_until(span.start, &mut at, open, &mut flat);
        at = span.start;
        open.push(*span);
    }
    close_until(u64::MAX, &mut at, open, &mut flat);
    *spans = flat;
}

/// Emits what lies between `at` and `limit`; the top of the open spans owns the address.
fn close_until(limit: u64, at: &mut u64, open: &mut Vec<Span>, flat: &mut Vec<Span>) {
    while let Some(top) = open.last() {
        let span = Span { start: *at, end: top.end.min(limit), owner: top.owner };
        if span.start < span.end {
            match flat.last_mut() {
                Some(last) if last.end == span.start && last.owner == span.owner => last.end = span.end,
                _ => flat.push(span),
            }
        }
        if top.end > limit {
            return;
        }
        *at = (*at).max(top.end);
        open.pop();
    }
}

/// A span of the whole image: where several cover an address, the one with the lowest rank has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ranked {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// What kind of owner it is, then the number of its unit.
    pub(crate) rank: u64,
    pub(crate) owner: u32,
}

/// Cuts spans, which are sorted by their starts, so that each address belongs to the one with the lowest rank.
pub(crate) fn paint(spans: &[Ranked]) -> Vec<Ranked> {
    let mut flat: Vec<Ranked> = Vec::with_capacity(spans.len());
    let mut open: BinaryHeap<Reverse<(u64, u32, u64)>> = BinaryHeap::new();
    let mut at = 0;
    let mut next = spans.iter().peekable();
    loop {
        let limit = next.peek().map_or(u64::MAX, |span| span.start);
        while let Some(&Reverse((rank, owner, end))) = open.peek() {
            if end > at {
                let span = Ranked { start: at, end: end.min(limit), rank, owner };
                match flat.last_mut() {
                    Some(last) if (last.end, last.rank, last.owner) == (span.start, rank, owner) => {
                        last.end = span.end;
                    }
                    _ if span.start < span.end => flat.push(span),
                    _ => {}
                }
                at = span.end;
            }
            if end > limit {
                break;
            }
            open.pop();
        }
        let Some(span) = next.next() else { return flat };
        at = span.start;
        open.push(Reverse((span.rank, span.owner, span.end)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: &mut u64, below: u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 33) % below
    }

    #[test]
    fn flat_spans_own_what_painting_gives() {
        let mut seed = 7;
        for _ in 0..300 {
            let mut spans = Vec::new();
            for owner in 0..12 {
                let (start, size) = (random(&mut seed, 40), random(&mut seed, 20));
                spans.push(Span { start, end: start + size, owner });
            }
            let mut flat = spans.clone();
            flatten(&mut flat, &mut Vec::new());
            assert!(flat.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for address in 0..64 {
                let around = |span: &&Span| span.start <= address && address < span.end;
                let want = spans.iter().filter(around).max_by_key(|span| (span.start, span.owner));
                assert_eq!(flat.iter().find(around).map(|span| span.owner), want.map(|span| span.owner));
            }
        }
    }

    #[test]
    fn painted_spans_belong_to_the_lowest_rank() {
        let mut seed = 3;
        for _ in 0..300 {
            let mut spans = Vec::new();
            for owner in 0..12 {
                let (start, size) = (random(&mut seed, 40), random(&mut seed, 20) + 1);
                spans.push(Ranked { start, end: start + size, rank: random(&mut seed, 5), owner });
            }
            spans.sort_by_key(|span| span.start);
            let flat = paint(&spans);
            assert!(flat.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for address in 0..64 {
                let around = |span: &&Ranked| span.start <= address && address < span.end;
                let want = spans.iter().filter(around).min_by_key(|span| (span.rank, span.owner));
                assert_eq!(flat.iter().find(around).map(|span| span.owner), want.map(|span| span.owner));
            }
        }
    }
}
