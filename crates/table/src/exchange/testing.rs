//! Programs made up for tests, and the answer of a model that has no index and no encoding.

use super::{PlainFunction, PlainInline, PlainRow};
use backtrail_core::{AddrRange, Svma};

/// Numbers that are the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}

/// Functions above `base`, some in two pieces, with calls inlined into them and gaps between them.
pub(crate) fn program(random: &mut Random, base: u64) -> Vec<PlainFunction<'static>> {
    let mut at = base;
    let mut functions = Vec::new();
    for number in 0..=random.below(12) {
        let mut ranges = Vec::new();
        for _ in 0..=random.below(2) {
            at += random.below(5) * random.below(90);
            let size = 1 + random.below(200);
            ranges.push(AddrRange::from_size(Svma::new(at), size));
            at += size;
        }
        let mut rows = Vec::new();
        let mut inlines = Vec::new();
        for range in &ranges {
            let mut address = range.start();
            while range.contains(address) {
                let line = random.below(3) * random.below(5000);
                rows.push(PlainRow { address, file: Some(1 + random.below(4) as u32), line: line as u32 });
                address = address.checked_add(1 + random.below(30)).unwrap();
            }
        }
        calls(random, &ranges, 1, &mut inlines);
        let name = format!("function {number}").into_bytes().into();
        functions.push(PlainFunction { name, ranges, rows, inlines });
    }
    functions
}

fn calls(random: &mut Random, within: &[AddrRange<Svma>], depth: u32, out: &mut Vec<PlainInline<'static>>) {
    // Siblings do not overlap: each begins where the one before ended.
    let mut from = within.first().map_or(Svma::new(0), |range| range.start());
    for _ in 0..random.below(4) {
        let until = from.checked_add(1 + random.below(60)).unwrap();
        let cut = |range: &AddrRange<Svma>| {
            let (start, end) = (range.start().max(from), range.end().min(until));
            (start < end).then(|| AddrRange::new(start, end))
        };
        let ranges: Vec<_> = within.iter().filter_map(cut).collect();
        if !ranges.is_empty() {
            let name = format!("inlined {}", random.below(9)).into_bytes().into();
            let (call_file, call_line) = (Some(1 + random.below(4) as u32), 1 + random.below(900) as u32);
            out.push(PlainInline { depth, name, call_file, call_line, ranges: ranges.clone() });
            if depth < 5 {
                calls(random, &ranges, depth + 1, out);
            }
        }
        from = until;
    }
}

/// Addresses in and around the functions.
pub(crate) fn addresses(functions: &[PlainFunction<'_>]) -> Vec<Svma> {
    let ranges = functions.iter().flat_map(|function| &function.ranges);
    let addresses = ranges.flat_map(|range| range.start().get()..=range.end().get());
    addresses.map(Svma::new).collect()
}

type Frame = (String, Option<String>, u32);

/// The answer for an address, innermost first: name, file and line.
pub(crate) fn model(
    functions: &[PlainFunction<'_>],
    address: Svma,
    path: &dyn Fn(u32) -> String,
) -> Option<Vec<Frame>> {
    let function =
        functions.iter().find(|function| function.ranges.iter().any(|range| range.contains(address)))?;
    let range = function.ranges.iter().find(|range| range.contains(address))?;
    let row = function.rows.iter().rev().find(|row| range.contains(row.address) && row.address <= address);
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let mut chain = Vec::new();
    let mut name = text(&function.name);
    for call in &function.inlines {
        if call.depth as usize == chain.len() + 1 && call.ranges.iter().any(|range| range.contains(address)) {
            chain.push((name, call.call_file.map(path), call.call_line));
            name = text(&call.name);
        }
    }
    chain.push((name, row.and_then(|row| row.file).map(path), row.map_or(0, |row| row.line)));
    chain.reverse();
    Some(chain)
}
