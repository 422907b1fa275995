//! From the fingerprint alone: nothing is known of the order in which a linker loads the object files, nor of what it drops.
//! Each object file is tried by itself, and runs of them in the archive's order are put together.

use backtrail_core::{AddrRange, Rva, Svma};

use super::fit::{Evidence, Fit, fit, places};
use super::layout::{Part, callee, check_calls};
use super::{BuildStacks, Sighting};
use crate::fingerprint::{Fingerprint, Slice, index};
use crate::isa::Isa;

/// Object files at places that are put together: the best of them.
const MAX_SEGMENTS: usize = 512;
/// Calls on one line through the archive's order that make single ones of them worth a look.
const ON_ONE_LINE: usize = 3;

/// Of what follows a known object file, which share lies where the archive's order has it, and how far dropped functions
/// and object files before it may have moved it: bytes with their share. The rest may lie anywhere. A guess, which costs only power.
const UNMOVED: f64 = 0.5;
const MOVED: [(u64, f64); 2] = [(4096, 0.25), (65_536, 0.15)];
const ANYWHERE: f64 = 0.1;

/// An object file.
struct Member {
    part: Part,
    /// Where it would start if the whole archive were loaded in its order.
    start: u64,
}

/// An object file at a place.
struct Segment {
    member: usize,
    fit: Fit,
}

/// The best way to put the library's object files into a build.
pub(super) fn best(fingerprint: &Fingerprint, build: &BuildStacks, evidence: &Evidence) -> Option<Sighting> {
    let slice = fingerprint.slice(build.arch, build.is_mach_o)?;
    check_calls(fingerprint).ok()?;
    let members = members(slice, Isa::of(build.arch)?);
    let (segments, tried) = segments(&members, evidence);
    let (chain, score) = chain(&members, &segments, tried)?;
    let mut ranges: Vec<(Rva, Rva)> = Vec::new();
    let (mut hits, mut misses) = (0, 0);
    let (mut sum, mut most) = (0.0, 0.0f64);
    for segment in chain.iter().rev().filter_map(|number| segments.get(*number)) {
        let size = members.get(segment.member).map_or(0, |member| member.part.size);
        ranges.push((Rva::new(segment.fit.start), Rva::new(segment.fit.start.saturating_add(size))));
        hits += segment.fit.hits;
        misses += segment.fit.misses;
        sum += segment.fit.score;
        most = most.max(segment.fit.score);
    }
    Some(Sighting {
        name: fingerprint.name.clone(),
        version: fingerprint.version.clone(),
        confidence: None,
        how: "archive",
        ranges,
        hits,
        misses,
        calls: 0,
        addresses: evidence.returns.len(),
        tried,
        chance: (-score).exp(),
        elsewhere: (most - sum).exp(),
    })
}

fn members(slice: &Slice, isa: Isa) -> Vec<Member> {
    let mut members = Vec::new();
    let mut start = 0u64;
    let mut number = 0u32;
    for of_member in slice.functions.chunk_by(|a, b| a.member == b.member) {
        let first = number;
        let mut at = Svma::new(0);
        let mut functions = Vec::with_capacity(of_member.len());
        for function in of_member {
            let range = AddrRange::from_size(at, function.span.into());
            functions.push(range);
            at = range.end();
            number = number.saturating_add(1);
        }
        let place = |callee: u32| {
            let range = functions.get(index(callee.checked_sub(first)?))?;
            Some(range.start())
        };
        let calls: Vec<(Svma, Option<Svma>)> = of_member
            .iter()
            .zip(&functions)
            .flat_map(|(function, range)| {
                function.returns.iter().filter_map(move |behind| {
                    let at = range.start().checked_add(u64::from(*behind))?;
                    Some((at, callee(slice, function, *behind).and_then(place)))
                })
            })
            .collect();
        let part = Part::new(isa, AddrRange::new(Svma::new(0), at), &functions, &calls);
        let size = part.size;
        members.push(Member { part, start });
        start = start.saturating_add(size);
    }
    members
}

/// Where the line through the archive's order would begin.
fn line(members: &[Member], segment: &Segment) -> i64 {
    let start = members.get(segment.member).map_or(0, |member| member.start);
    segment.fit.start.cast_signed().wrapping_sub(start.cast_signed())
}

/// Object files at places that speak for them, by place; and how many places were tried.
fn segments(members: &[Member], evidence: &Evidence) -> (Vec<Segment>, u64) {
    let mut found: Vec<Segment> = Vec::new();
    let mut tried = 0u64;
    // Every place of every object file is kept for a while.
    let calls = 4 * members.iter().map(|member| member.part.returns.len()).sum::<usize>();
    for (number, member) in members.iter().enumerate() {
        if member.part.returns.is_empty() {
            continue;
        }
        let Some(last) = evidence.last_place(&member.part) else { continue };
        tried = tried.saturating_add(last / member.part.step.max(1) + 1);
        for (start, _) in places(&member.part, evidence, last, calls) {
            let fit = fit(&member.part, evidence, start);
            if fit.score > 0.0 {
                found.push(Segment { member: number, fit });
            }
        }
    }
    let mut lines: Vec<i64> = found.iter().map(|segment| line(members, segment)).collect();
    lines.sort_unstable();
    let on_line = |wanted: i64| {
        let from = lines.partition_point(|line| *line < wanted);
        lines.partition_point(|line| *line <= wanted) - from
    };
    found.retain(|segment| segment.fit.hits > 1 || on_line(line(members, segment)) >= ON_ONE_LINE);
    found.sort_by(|a, b| b.fit.score.total_cmp(&a.fit.score).then_with(|| a.fit.start.cmp(&b.fit.start)));
    found.truncate(MAX_SEGMENTS);
    found.sort_by_key(|segment| (segment.fit.start, segment.member));
    (found, tried)
}

/// The best row of segments, last one first, and the logarithm of how much likelier it is than none, the choice among all rows
/// counted in: each way to go on has a share of what is possible, and the shares of all ways are one together.
fn chain(members: &[Member], segments: &[Segment], tried: u64) -> Option<(Vec<usize>, f64)> {
    let total: u64 = members.iter().map(|member| member.part.size).sum();
    let mut best: Vec<(f64, Option<usize>)> = Vec::with_capacity(segments.len());
    for (number, segment) in segments.iter().enumerate() {
        let mut own = (segment.fit.score - (tried.max(1) as f64).ln(), None);
        for (before, previous) in segments.iter().enumerate().take(number) {
            let Some(share) = share(members, previous, segment, total) else { continue };
            let score =
                best.get(before).map_or(f64::MIN, |(score, _)| *score) + segment.fit.score + share.ln();
            if score > own.0 {
                own = (score, Some(before));
            }
        }
        best.push(own);
    }
    let (mut last, score) = best
        .iter()
        .enumerate()
        .map(|(number, (score, _))| (number, *score))
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?;
    let mut chain = vec![last];
    while let Some((_, Some(before))) = best.get(last) {
        chain.push(*before);
        last = *before;
    }
    Some((chain, score))
}

/// How likely one segment follows another, as a share of all that may follow.
fn share(members: &[Member], before: &Segment, after: &Segment, total: u64) -> Option<f64> {
    let part = &members.get(before.member)?.part;
    if after.fit.start < before.fit.start.saturating_add(part.size) || before.member == after.member {
        return None;
    }
    let step = part.step.max(1) as f64;
    if before.member < after.member {
        let moved = line(members, before).wrapping_sub(line(members, after));
        if moved == 0 {
            return Some(UNMOVED);
        }
        let near = MOVED.iter().find(|(most, _)| u64::try_from(moved).is_ok_and(|moved| moved <= *most));
        if let Some((most, share)) = near {
            return Some(share * step / *most as f64);
        }
    }
    Some(ANYWHERE * step / (total.max(1) as f64 * members.len() as f64))
}
