//! Where a library's calls lie, as one app has them.

use backtrail_core::{AddrRange, Arch, Svma};
use backtrail_object::{Limits, Object, slices};

use crate::app::App;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::{Fingerprint, Function, Slice, Target, index};
use crate::hash::Map;
use crate::isa::Isa;
use crate::link_map::LinkMap;
use crate::map::{MapOptions, map};

/// What may lie between two functions of a library and does not part it: what was not told, and linkers' own code.
const GAP: u64 = 4096;
/// Code of fewer calls says nothing.
const LEAST_CALLS: usize = 32;
/// As far as calls come at usual distances from each other, in bytes.
const RHYTHM: u64 = 512;
/// Code has stretches with many calls and others with few. They are as long as `RHYTHM` doubled so many times, at most.
const DOUBLINGS: u32 = 7;
/// Shares are kept as millionths: a layout can be compared.
const WHOLE: u64 = 1_000_000;

/// Where a library's code and its calls lie in one app.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    name: String,
    version: String,
    arch: Arch,
    pub(super) parts: Vec<Part>,
}

/// Code that linkers keep together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    pub(super) size: u64,
    /// It starts at multiples of this.
    pub(super) step: u64,
    /// Bytes of an instruction, at least.
    pub(super) unit: u64,
    /// By place.
    pub(super) functions: Vec<Code>,
    /// By place.
    pub(super) returns: Vec<Return>,
    /// How many of a million places are behind calls.
    density: u32,
    /// How many of a million calls have another one so many units behind them, as far as [`RHYTHM`].
    after: Vec<u32>,
    /// How many of a million places that lie further behind a call are behind calls: from `RHYTHM` to its double, and so on.
    far: Vec<u32>,
}

/// A function's place in its part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Code {
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A place behind a call, and the function that it calls, if that is known and in the same part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Return {
    pub(super) at: u64,
    pub(super) callee: Option<Code>,
}

impl Part {
    /// From functions and calls in the order of their places. Callees are addresses.
    pub(super) fn new(
        isa: Isa,
        range: AddrRange<Svma>,
        functions: &[AddrRange<Svma>],
        calls: &[(Svma, Option<Svma>)],
    ) -> Self {
        let offset = |address: Svma| address.offset_from(range.start()).unwrap_or(0);
        let code = |function: &AddrRange<Svma>| Code {
            start: offset(function.start()),
            end: offset(function.end()),
        };
        let callee = |address: Svma| {
            let found = functions.binary_search_by_key(&address, |function| function.start()).ok()?;
            functions.get(found).map(code)
        };
        let is_aligned =
            |step: &u64| functions.iter().all(|function| function.start().get().is_multiple_of(*step));
        let mut part = Self {
            size: range.size(),
            step: [16, 4, 2].into_iter().find(is_aligned).unwrap_or(1).max(isa.instruction_step()),
            unit: isa.instruction_step(),
            functions: functions.iter().map(code).collect(),
            returns: calls
                .iter()
                .map(|(at, target)| Return { at: offset(*at), callee: target.and_then(callee) })
                .collect(),
            density: 0,
            after: Vec::new(),
            far: Vec::new(),
        };
        part.measure();
        part
    }

    /// How calls lie to each other.
    fn measure(&mut self) {
        let at: Vec<u64> = self.returns.iter().map(|call| call.at).collect();
        let bytes: u64 =
            self.functions.iter().map(|function| function.end.saturating_sub(function.start)).sum();
        let places = (bytes / self.unit.max(1)).max(1);
        self.density = u32::try_from(at.len() as u64 * WHOLE / places).unwrap_or(u32::MAX);
        let all = at.len() as u64 + 1;
        let share = |count: u64, places: u64| {
            u32::try_from((count + 1).saturating_mul(WHOLE) / places.max(1)).unwrap_or(u32::MAX)
        };
        let mut counts = vec![0u64; index(u32::try_from(RHYTHM / self.unit.max(1)).unwrap_or(0)) + 1];
        for (number, first) in at.iter().enumerate() {
            for second in at.iter().skip(number + 1).take_while(|second| **second <= first + RHYTHM) {
                let distance = usize::try_from((second - first) / self.unit.max(1)).unwrap_or(usize::MAX);
                if let Some(count) = counts.get_mut(distance) {
                    *count += 1;
                }
            }
        }
        self.after = counts.into_iter().map(|count| share(count, all)).collect();
        let until = |end: u64| at.partition_point(|at| *at < end) as u64;
        let far = (0..DOUBLINGS).map(|doubling| {
            let length = RHYTHM << doubling;
            let count = at.iter().map(|at| until(at + 2 * length) - until(at + length)).sum();
            share(count, all.saturating_mul(length / self.unit.max(1)))
        });
        self.far = far.collect();
    }

    /// How often an address that has nothing to do with the part follows one of its calls: as often as any place does. Where an
    /// address so many bytes before it follows a call, as often as two calls lie so far apart, if that is more.
    pub(super) fn by_accident(&self, before: Option<u64>) -> f64 {
        let share = before.and_then(|distance| match (distance / RHYTHM).checked_ilog2() {
            None => self.after.get(usize::try_from(distance / self.unit.max(1)).ok()?),
            Some(doubling) => self.far.get(usize::try_from(doubling).ok()?),
        });
        let share = share.map_or(0.0, |share| f64::from(*share) / WHOLE as f64);
        share.max(self.density()).min(0.9)
    }

    /// The call before an address of the part.
    pub(super) fn call(&self, at: u64) -> Option<&Return> {
        let found = self.returns.binary_search_by_key(&at, |call| call.at).ok()?;
        self.returns.get(found)
    }

    /// Whether it is known what lies before an address. A call that does not return may be a function's last instruction.
    pub(super) fn is_known(&self, at: u64) -> bool {
        let after = self.functions.partition_point(|function| function.start < at);
        let before = after.checked_sub(1).and_then(|before| self.functions.get(before));
        before.is_some_and(|function| at <= function.end)
    }

    /// The start of the function that an address is in.
    pub(super) fn function(&self, at: u64) -> Option<u64> {
        let after = self.functions.partition_point(|function| function.start < at);
        self.functions.get(after.checked_sub(1)?).map(|function| function.start)
    }

    /// The share of places that are behind calls.
    pub(super) fn density(&self) -> f64 {
        (f64::from(self.density) / WHOLE as f64).clamp(1e-6, 0.9)
    }

    pub(super) fn is_enough(&self) -> bool {
        self.returns.len() >= LEAST_CALLS
    }
}

impl Layout {
    /// The library's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Calls that it has.
    pub fn calls(&self) -> usize {
        self.parts.iter().map(|part| part.returns.len()).sum()
    }

    /// The layouts of those libraries that are in an app's binary, of each of its architectures, or in a link map.
    ///
    /// # Errors
    /// Where the bytes are neither, or none of the libraries is there.
    pub fn from_file(bytes: &[u8], fingerprints: &[Fingerprint]) -> Result<Vec<Self>> {
        let limits = Limits::default();
        let Ok(slices) = slices(bytes, &limits) else {
            let link_map = LinkMap::parse(bytes)?;
            let arch = link_map.arch().ok_or_else(|| {
                let detail = "the link map names no architecture; take the app itself";
                Error::new(ErrorKind::Unsupported, detail)
            })?;
            return Self::from_link_map(&link_map, arch, fingerprints);
        };
        let mut layouts = Vec::new();
        for slice in slices {
            layouts.extend(Self::from_app(&slice.parse(&limits)?, fingerprints, None)?);
        }
        if layouts.is_empty() {
            return Err(Error::new(ErrorKind::Mismatch, "none of the libraries is certain to be in the app"));
        }
        Ok(layouts)
    }

    /// The layouts of those libraries that an app has: found by their fingerprints, or by the app's link map.
    ///
    /// # Errors
    /// As [`map`](crate::map()).
    pub fn from_app(
        object: &Object<'_>,
        fingerprints: &[Fingerprint],
        link_map: Option<&LinkMap>,
    ) -> Result<Vec<Self>> {
        let owners = map(object, fingerprints, &MapOptions::with_link_map(link_map))?;
        let app = App::read(object, None)?;
        let mut layouts: Vec<Self> = Vec::new();
        for fingerprint in fingerprints {
            let is_new = !layouts.iter().any(|layout| layout.name == fingerprint.name);
            let owned: Vec<_> =
                owners.ranges.iter().filter(|range| range.owner == fingerprint.name).collect();
            if owned.is_empty() || !is_new {
                continue;
            }
            let version = owned.iter().find_map(|range| range.version.clone());
            let runs = runs(owned.iter().map(|owned| owned.range));
            let parts = runs.into_iter().map(|run| part(&app, run)).filter(Part::is_enough);
            layouts.push(Self {
                name: fingerprint.name.clone(),
                version: version.unwrap_or_else(|| format!("like {}", fingerprint.version)),
                arch: object.arch(),
                parts: parts.collect(),
            });
        }
        layouts.retain(|layout| !layout.parts.is_empty());
        Ok(layouts)
    }

    /// The layouts of those libraries that a link map names; where their calls lie, fingerprints say.
    ///
    /// # Errors
    /// Where the link map names no functions, as those of ELF linkers, or fingerprints know no calls.
    pub fn from_link_map(link_map: &LinkMap, arch: Arch, fingerprints: &[Fingerprint]) -> Result<Vec<Self>> {
        let mut layouts = Vec::new();
        for fingerprint in fingerprints {
            let Some(slice) = fingerprint.slice(arch, true) else { continue };
            let Some(isa) = Isa::of(arch) else { continue };
            check_calls(fingerprint)?;
            let placed = placed(slice, &link_map.named(fingerprint));
            let places: Map<u32, Svma> =
                placed.iter().map(|(range, number)| (*number, range.start())).collect();
            let runs = runs(placed.iter().map(|(range, _)| *range));
            let parts = runs.into_iter().map(|run| {
                let inside = placed.iter().filter(|(range, _)| run.contains(range.start()));
                let functions: Vec<_> = inside.clone().map(|(range, _)| *range).collect();
                let calls = inside.flat_map(|(range, number)| calls(slice, &places, range.start(), *number));
                Part::new(isa, run, &functions, &calls.collect::<Vec<_>>())
            });
            let parts: Vec<Part> = parts.filter(Part::is_enough).collect();
            if !parts.is_empty() {
                let (name, version) = (fingerprint.name.clone(), fingerprint.version.clone());
                layouts.push(Self { name, version, arch, parts });
            }
        }
        if layouts.is_empty() {
            let detail =
                "the link map names no functions of the libraries for this architecture; take the app itself";
            return Err(Error::new(ErrorKind::Mismatch, detail));
        }
        Ok(layouts)
    }
}

/// Fails where a fingerprint is of a version that has no calls.
pub(super) fn check_calls(fingerprint: &Fingerprint) -> Result<()> {
    if fingerprint.has_calls {
        return Ok(());
    }
    let detail = format!(
        "the fingerprint of {} {} is of version 1, which knows no calls: learn the library again",
        fingerprint.name, fingerprint.version
    );
    Err(Error::new(ErrorKind::Unsupported, detail))
}

/// Ranges without what lies between near ones.
fn runs(ranges: impl Iterator<Item = AddrRange<Svma>>) -> Vec<AddrRange<Svma>> {
    let mut runs: Vec<AddrRange<Svma>> = Vec::new();
    for range in ranges {
        match runs.last_mut() {
            Some(last) if range.start().get().saturating_sub(last.end().get()) <= GAP => {
                *last = AddrRange::new(last.start(), last.end().max(range.end()));
            }
            _ => runs.push(range),
        }
    }
    runs
}

/// All that an app has in a range.
fn part(app: &App<'_>, run: AddrRange<Svma>) -> Part {
    let inside = app.functions.iter().filter(|function| run.contains(function.start));
    let functions: Vec<_> =
        inside.clone().map(|function| AddrRange::new(function.start, function.end.min(run.end()))).collect();
    let mut calls = Vec::new();
    for function in inside {
        app.isa.calls((function.start, app.code(function)), &mut |behind, target| {
            calls.extend(function.start.checked_add(behind as u64).map(|at| (at, target)));
        });
    }
    Part::new(app.isa, run, &functions, &calls)
}

/// Functions of the library with their ranges in an app.
type PlacedFunction = (AddrRange<Svma>, u32);

fn placed(slice: &Slice, named: &[(Svma, crate::hash::Digest, crate::hash::Digest)]) -> Vec<PlacedFunction> {
    let mut by_name: Map<(u64, u64), u32> = Map::default();
    for (number, function) in (0u32..).zip(&slice.functions) {
        let member = slice.members.get(index(function.member)).map_or(0, |member| member.0);
        by_name.entry((member, function.name.0)).or_insert(number);
    }
    let mut placed: Vec<PlacedFunction> = named
        .iter()
        .filter_map(|(address, member, name)| {
            let number = *by_name.get(&(member.0, name.0))?;
            let span = slice.functions.get(index(number))?.span;
            Some((AddrRange::from_size(*address, span.into()), number))
        })
        .collect();
    placed.sort_unstable_by_key(|(range, number)| (range.start(), *number));
    placed.dedup_by_key(|(range, _)| range.start());
    placed
}

/// The calls of a function at its place, with the places of what they call.
fn calls(slice: &Slice, places: &Map<u32, Svma>, start: Svma, number: u32) -> Vec<(Svma, Option<Svma>)> {
    let Some(function) = slice.functions.get(index(number)) else { return Vec::new() };
    let place = |callee: u32| places.get(&callee).copied();
    let calls = function.returns.iter().filter_map(|at| {
        let callee = callee(slice, function, *at).and_then(place);
        Some((start.checked_add(u64::from(*at))?, callee))
    });
    calls.collect()
}

/// The function of the library that a call names.
pub(super) fn callee(slice: &Slice, function: &Function, behind: u32) -> Option<u32> {
    // The field of every direct call has four bytes and ends with the instruction.
    let at = behind.checked_sub(4)?;
    let reference = function.references.iter().find(|reference| reference.at == at)?;
    match slice.targets.get(index(reference.target))? {
        Target::Function(callee) => Some(*callee),
        _ => None,
    }
}
