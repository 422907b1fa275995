//! How well calls of known places explain the return addresses of a build.

use std::collections::BTreeSet;

use backtrail_core::Rva;

use super::layout::{Layout, Part};
use super::{BuildStacks, CodeOffset, Sighting};

/// Distinct return addresses that are looked at.
const MAX_ADDRESSES: usize = 512;
/// Pairs of an address and a call that are compared to find places.
const MAX_PAIRS: usize = 1 << 23;
/// What a return address in the library's code that follows none of its calls speaks against it, as a logarithm: the
/// library is another build, or the report wrong.
pub(super) const MISS: f64 = 6.0;
/// How many of a hundred calls, at least, lead to the next frame as they say: others are by pointer, or end in a jump.
const LEADS_ON: f64 = 0.05;

/// What a build's stacks say.
pub(super) struct Evidence {
    /// Distinct return addresses, ascending.
    pub(super) returns: Vec<u64>,
    /// Return addresses with the address that the next inner frame has.
    pub(super) pairs: Vec<(u64, u64)>,
    /// Bytes of the image.
    size: Option<u64>,
}

impl Evidence {
    pub(super) fn of(build: &BuildStacks) -> Self {
        let mut returns = BTreeSet::new();
        let mut pairs = BTreeSet::new();
        for stack in &build.stacks {
            let mut inner: Option<u64> = None;
            for frame in stack {
                if let Some(CodeOffset::Return(rva)) = frame
                    && (returns.len() < MAX_ADDRESSES || returns.contains(&rva.get()))
                {
                    returns.insert(rva.get());
                    pairs.extend(inner.map(|inner| (rva.get(), inner)));
                }
                inner = frame.map(|frame| match frame {
                    CodeOffset::Exact(rva) => rva.get(),
                    CodeOffset::Return(rva) => rva.get().saturating_sub(1),
                });
            }
        }
        Self { returns: returns.into_iter().collect(), pairs: pairs.into_iter().collect(), size: build.size }
    }

    /// The last place where a part may start: it ends in the image, or, where its size is unknown, starts below the highest
    /// address.
    pub(super) fn last_place(&self, part: &Part) -> Option<u64> {
        match self.size {
            Some(size) => size.checked_sub(part.size),
            None => self.returns.last().copied(),
        }
    }

    /// The return addresses of a range: behind its first byte, as far as its end.
    pub(super) fn inside(&self, start: u64, end: u64) -> &[u64] {
        let from = self.returns.partition_point(|at| *at <= start);
        let to = self.returns.partition_point(|at| *at <= end);
        self.returns.get(from..to).unwrap_or_default()
    }
}

/// Places where a part may start, with the number of calls there that addresses follow. All of them for few addresses; for
/// many those that a part of the addresses suggests. `calls` is how many calls there are in all parts that are tried.
pub(super) fn places(part: &Part, evidence: &Evidence, last: u64, calls: usize) -> Vec<(u64, u32)> {
    let count = (MAX_PAIRS / calls.max(1)).min(MAX_ADDRESSES);
    if count == 0 {
        return Vec::new();
    }
    let step = evidence.returns.len().div_ceil(count).max(1);
    let sample = evidence.returns.iter().step_by(step);
    let mut starts: Vec<u64> = sample
        .flat_map(|address| {
            let start = |call: &super::layout::Return| address.checked_sub(call.at);
            part.returns.iter().filter_map(start)
        })
        .filter(|start| *start <= last && start.is_multiple_of(part.step))
        .collect();
    starts.sort_unstable();
    let mut places: Vec<(u64, u32)> = Vec::new();
    for start in starts {
        match places.last_mut() {
            Some((known, count)) if *known == start => *count += 1,
            _ => places.push((start, 1)),
        }
    }
    places
}

/// A part at a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub(super) start: u64,
    pub(super) hits: usize,
    pub(super) misses: usize,
    /// Logarithm of the likelihood with the part there over that without.
    pub(super) score: f64,
}

pub(super) fn fit(part: &Part, evidence: &Evidence, start: u64) -> Fit {
    let (mut hits, mut misses) = (0, 0);
    for address in evidence.inside(start, start.saturating_add(part.size)) {
        let at = address - start;
        if part.call(at).is_some() {
            hits += 1;
        } else if part.is_known(at) {
            misses += 1;
        }
    }
    let score = hits as f64 * -part.density().ln() - misses as f64 * MISS;
    Fit { start, hits, misses, score }
}

/// The best place of a layout.
pub(super) fn best(layout: &Layout, evidence: &Evidence) -> Option<Sighting> {
    let found = layout.parts.iter().filter_map(|part| best_of(part, evidence));
    let (part, fit, tried, chance, calls) = found.min_by(|a, b| a.3.total_cmp(&b.3))?;
    Some(Sighting {
        name: layout.name().to_owned(),
        version: layout.version().to_owned(),
        confidence: None,
        how: "layout",
        ranges: vec![(Rva::new(fit.start), Rva::new(fit.start.saturating_add(part.size)))],
        hits: fit.hits,
        misses: fit.misses,
        calls,
        addresses: evidence.returns.len(),
        tried,
        chance: chance * layout.parts.len() as f64,
    })
}

fn best_of<'p>(part: &'p Part, evidence: &Evidence) -> Option<(&'p Part, Fit, u64, f64, usize)> {
    let last = evidence.last_place(part)?;
    let places = places(part, evidence, last, part.returns.len());
    let most = places.iter().map(|(_, count)| *count).max()?;
    // A place with far fewer hits cannot win: each address that misses takes away three of them, at most.
    let fits =
        places.iter().filter(|(_, count)| count * 3 >= most).map(|(start, _)| fit(part, evidence, *start));
    let fit = fits.max_by(|a, b| a.score.total_cmp(&b.score).then(b.start.cmp(&a.start)))?;
    let (tried, by_accident) = accidents(part, evidence, last, fit.score);
    let (calls, ratio) = calls(part, evidence, fit.start);
    Some((part, fit, tried, by_accident / ratio, calls))
}

/// How many places there are, and how many of them are expected to score as well if addresses and calls have nothing to do
/// with each other: at each place, as many addresses as it has follow a call with the chance that any place has.
fn accidents(part: &Part, evidence: &Evidence, last: u64, score: f64) -> (u64, f64) {
    let mut borders: Vec<u64> = vec![0, last.saturating_add(1)];
    for address in &evidence.returns {
        borders.extend([*address, address.saturating_sub(part.size)].into_iter().filter(|at| *at <= last));
    }
    borders.sort_unstable();
    borders.dedup();
    let density = part.density();
    let mut tails: Vec<Option<f64>> = vec![None; evidence.returns.len() + 1];
    let (mut tried, mut expected) = (0u64, 0.0);
    for pair in borders.windows(2) {
        let [from, to] = *pair else { continue };
        let middle = from + (to - from) / 2;
        let count = evidence.inside(middle, middle.saturating_add(part.size)).len();
        let places = (to - from).div_ceil(part.step);
        tried = tried.saturating_add(places);
        let Some(known) = tails.get_mut(count) else { continue };
        let tail = *known.get_or_insert_with(|| tail(count, density, score));
        expected += places as f64 * tail;
    }
    (tried, expected)
}

/// The chance that of `count` addresses so many follow calls that the score is reached.
fn tail(count: usize, density: f64, score: f64) -> f64 {
    let gain = -density.ln();
    let mut sum = 0.0;
    // The logarithm of the chance of exactly `hits`.
    let mut exactly = count as f64 * (1.0 - density).ln();
    for hits in 0..=count {
        let misses = count - hits;
        if hits as f64 * gain - misses as f64 * MISS >= score - 1e-9 {
            sum += exactly.exp();
        }
        exactly += (misses as f64 / (hits + 1) as f64).ln() + (density / (1.0 - density)).ln();
    }
    sum.min(1.0)
}

/// Neighbours on a stack where the outer one's call names the function in which the inner one is, and by how much that is
/// likelier with the part there. Without it the inner one is in that function by its size alone.
fn calls(part: &Part, evidence: &Evidence, start: u64) -> (usize, f64) {
    let (mut count, mut ratio) = (0, 1.0);
    for (outer, inner) in &evidence.pairs {
        let Some(callee) = outer.checked_sub(start).and_then(|at| part.call(at)).and_then(|call| call.callee)
        else {
            continue;
        };
        let is_inside = inner.checked_sub(start).is_some_and(|at| (callee.start..callee.end).contains(&at));
        if is_inside {
            count += 1;
            let by_accident = (callee.end - callee.start) as f64 / part.size.max(1) as f64;
            ratio *= (LEADS_ON / by_accident.max(1e-6)).max(1.0);
        } else {
            ratio *= 1.0 - LEADS_ON;
        }
    }
    // Very many pairs would make it nothing, by which nothing can be divided.
    (count, ratio.max(f64::MIN_POSITIVE))
}
