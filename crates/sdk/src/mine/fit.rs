//! How well calls of known places explain the return addresses of a build.

use std::collections::BTreeSet;

use backtrail_core::Rva;

use super::layout::{Code, Layout, Part, Return};
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

/// Places that are looked at more closely than by their number of hits.
const MAX_FITS: usize = 1 << 14;
/// Places whose score is by less below the best one are compared by their stacks, too.
const WORTH: f64 = 6.0;

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

    /// Every so many addresses are compared with all of so many calls.
    fn sample(&self, calls: usize) -> usize {
        let count = (MAX_PAIRS / calls.max(1)).clamp(1, MAX_ADDRESSES);
        self.returns.len().div_ceil(count).max(1)
    }

    fn is_sampled(&self, calls: usize) -> bool {
        self.sample(calls) > 1
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
    let sample = evidence.returns.iter().step_by(evidence.sample(calls));
    let mut starts: Vec<u64> = sample
        .flat_map(|address| {
            let start = |call: &Return| address.checked_sub(call.at);
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
#[derive(Clone, Debug, Default)]
pub(super) struct Fit {
    pub(super) start: u64,
    pub(super) misses: usize,
    pub(super) hits: usize,
    /// Logarithm of how much likelier the addresses are with the part there than without.
    pub(super) score: f64,
    /// Neighbours on a stack that are as a call says, and what all such neighbours add.
    pub(super) calls: usize,
    pub(super) of_calls: f64,
}

impl Fit {
    fn sum(&self) -> f64 {
        self.score + self.of_calls
    }
}

/// What addresses of a build say of a part at a place, one by one: their offsets in the part, and logarithms.
fn says<'e>(part: &'e Part, evidence: &'e Evidence, start: u64) -> impl Iterator<Item = (u64, f64)> + 'e {
    let mut last: Option<u64> = None;
    evidence.inside(start, start.saturating_add(part.size)).iter().filter_map(move |address| {
        let at = address - start;
        if part.call(at).is_some() {
            let chance = part.by_accident(last.map(|last| at - last));
            last = Some(at);
            return Some((at, -chance.ln()));
        }
        part.is_known(at).then_some((at, -MISS))
    })
}

pub(super) fn fit(part: &Part, evidence: &Evidence, start: u64) -> Fit {
    let mut fit = Fit { start, ..Fit::default() };
    for (_, says) in says(part, evidence, start) {
        fit.score += says;
        if says < 0.0 { fit.misses += 1 } else { fit.hits += 1 }
    }
    fit
}

/// What is left of the score without that half of the part that says most. Libraries carry others' code with them, and an
/// app may have that code without the library.
fn elsewhere(part: &Part, evidence: &Evidence, start: u64) -> f64 {
    let all: Vec<(u64, f64)> = says(part, evidence, start).collect();
    let sum: f64 = all.iter().map(|(_, says)| says).sum();
    let mut best = 0.0f64;
    for (number, (from, _)) in all.iter().enumerate() {
        let half = all.iter().skip(number).take_while(|(at, _)| at - from <= part.size / 2);
        best = best.max(half.map(|(_, says)| says).sum());
    }
    sum - best
}

/// The best place of a layout.
///
/// The score is the logarithm of a likelihood ratio, address by address, each given those before it. A build without the part
/// reaches `score` at a place with a chance of at most `exp(-score)`, by Markov's inequality; summed over all places that have
/// addresses enough to reach it that bounds the chance of any.
pub(super) fn best(layout: &Layout, evidence: &Evidence) -> Option<Sighting> {
    let lasts = layout.parts.iter().filter_map(|part| Some((part, evidence.last_place(part)?)));
    let found = lasts.clone().filter_map(|(part, last)| Some((part, best_of(part, evidence, last)?)));
    let (part, fit) = found.max_by(|a, b| a.1.sum().total_cmp(&b.1.sum()))?;
    let tried: u64 = lasts.map(|(part, last)| able(part, evidence, last, fit.score)).sum();
    Some(Sighting {
        name: layout.name().to_owned(),
        version: layout.version().to_owned(),
        confidence: None,
        how: "layout",
        ranges: vec![(Rva::new(fit.start), Rva::new(fit.start.saturating_add(part.size)))],
        hits: fit.hits,
        misses: fit.misses,
        calls: fit.calls,
        addresses: evidence.returns.len(),
        tried,
        chance: tried as f64 * (-fit.sum()).exp(),
        elsewhere: (-(elsewhere(part, evidence, fit.start) + fit.of_calls.max(0.0))).exp(),
    })
}

/// How many places have so many addresses that they could reach a score.
fn able(part: &Part, evidence: &Evidence, last: u64, score: f64) -> u64 {
    let most = -part.density().ln();
    let mut borders: Vec<u64> = vec![0, last.saturating_add(1)];
    for address in &evidence.returns {
        borders.extend([*address, address.saturating_sub(part.size)].into_iter().filter(|at| *at <= last));
    }
    borders.sort_unstable();
    borders.dedup();
    let pairs = borders.windows(2).filter_map(|pair| pair.first().zip(pair.last()));
    let able = pairs.filter(|(from, to)| {
        // No border lies in between: all places there have the same addresses, but for the first one.
        let count = [**from, (**to - 1).max(**from)]
            .map(|start| evidence.inside(start, start.saturating_add(part.size)).len());
        count.into_iter().max().unwrap_or(0) as f64 * most >= score - 1e-9
    });
    able.map(|(from, to)| (to - from).div_ceil(part.step.max(1))).sum()
}

fn best_of(part: &Part, evidence: &Evidence, last: u64) -> Option<Fit> {
    let mut places = places(part, evidence, last, part.returns.len());
    places.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let most = -part.density().ln();
    let worth = if evidence.pairs.is_empty() { 0.0 } else { WORTH };
    let mut fits: Vec<Fit> = Vec::new();
    let mut best = 0.0f64;
    for (start, count) in places.into_iter().take(MAX_FITS) {
        // Those that follow have no more hits. Of many addresses only some were counted.
        if !evidence.is_sampled(part.returns.len()) && f64::from(count) * most < best - worth {
            break;
        }
        let fit = fit(part, evidence, start);
        best = best.max(fit.score);
        fits.push(fit);
    }
    fits.retain(|fit| fit.score >= best - worth);
    for fit in &mut fits {
        (fit.calls, fit.of_calls) = calls(part, evidence, fit.start);
    }
    fits.into_iter().max_by(|a, b| a.sum().total_cmp(&b.sum()).then(b.start.cmp(&a.start)))
}

/// Neighbours on a stack where the outer one's call names the function in which the inner one is, and the logarithm of how
/// much likelier that is with the part there.
fn calls(part: &Part, evidence: &Evidence, start: u64) -> (usize, f64) {
    let (mut count, mut sum) = (0, 0.0);
    let mut known = BTreeSet::new();
    for (outer, inner) in &evidence.pairs {
        let Some(at) = outer.checked_sub(start) else { continue };
        let Some(callee) = part.call(at).and_then(|call| call.callee) else { continue };
        let is_inside = inner.checked_sub(start).is_some_and(|at| (callee.start..callee.end).contains(&at));
        if is_inside {
            count += 1;
            // Another path through the same two functions says nothing new.
            if known.insert((part.function(at), callee.start)) {
                sum += (LEADS_ON / by_accident(part, at, callee)).ln().max(0.0);
            }
        } else {
            sum += (1.0 - LEADS_ON).ln();
        }
    }
    (count, sum)
}

/// How often the inner of two neighbours is in a function without the part there. Neighbours on a stack are often near each
/// other: each doubling of their distance is taken for as likely as any other.
fn by_accident(part: &Part, at: u64, callee: Code) -> f64 {
    let size = part.size.max(2) as f64;
    let (near, far) = if callee.start > at {
        (callee.start - at, callee.end - at)
    } else if callee.end < at {
        (at - callee.end, at - callee.start)
    } else {
        // A function that calls itself.
        return 1.0;
    };
    let (near, far) = (near.max(4) as f64, far.max(8) as f64);
    let doubling = (far / near).ln() / size.max(8.0).ln() / 2.0;
    doubling.max((callee.end - callee.start) as f64 / size).clamp(1e-6, 1.0)
}
