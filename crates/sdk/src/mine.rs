//! `mine`: whether code of a library is in apps that only crash reports tell of.
//!
//! Stacks consist of return addresses, and those lie behind calls. Where the library's calls lie in an app that was linked
//! alike is its [`Layout`]; it is tried at every place of an unknown build. Of the fingerprint alone, the members are tried in
//! the archive's order.

mod archive;
mod fit;
mod layout;

use backtrail_core::{Arch, Confidence, Rva};

use crate::fingerprint::Fingerprint;
pub use layout::Layout;

/// A code address of a build, from its image base.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CodeOffset {
    /// The instruction that ran.
    Exact(Rva),
    /// Where a callee returns to.
    Return(Rva),
}

impl CodeOffset {
    /// Without what it means.
    pub fn rva(self) -> Rva {
        match self {
            Self::Exact(rva) | Self::Return(rva) => rva,
        }
    }
}

/// What reports say of the stacks of one build.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BuildStacks {
    /// Its architecture.
    pub arch: Arch,
    /// Bytes of the image, where reports state them.
    pub size: Option<u64>,
    /// Whether it is Mach-O.
    pub is_mach_o: bool,
    /// Stacks, innermost first; `None` stands for a frame of another image.
    pub stacks: Vec<Vec<Option<CodeOffset>>>,
}

impl BuildStacks {
    /// Without stacks.
    pub fn new(arch: Arch, is_mach_o: bool) -> Self {
        Self { arch, size: None, is_mach_o, stacks: Vec::new() }
    }
}

/// A library in a build, told by addresses alone.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Sighting {
    /// The library's name.
    pub name: String,
    /// The version whose calls fit.
    pub version: String,
    /// How sure it is: [`Confidence::Strong`] or [`Confidence::Likely`]; `None` where accident explains it as well.
    pub confidence: Option<Confidence>,
    /// By what it was told: `layout` or `archive`.
    pub how: &'static str,
    /// Where its code lies; several ranges where its object files were found one by one.
    pub ranges: Vec<(Rva, Rva)>,
    /// Distinct return addresses there that follow calls of the library.
    pub hits: usize,
    /// Those that do not.
    pub misses: usize,
    /// Calls between neighbours on a stack that name the very function in which the inner one is.
    pub calls: usize,
    /// Distinct return addresses of the build.
    pub addresses: usize,
    /// Places that were tried.
    pub tried: u64,
    /// A bound of how often a build without the library gives a fit as good somewhere, by what is known of how calls lie.
    pub chance: f64,
    /// The same of a build that has the better half of it alone (`layout`), or the best of its object files (`archive`): code
    /// that libraries have from others may be in an app without them.
    pub elsewhere: f64,
}

impl Sighting {
    /// Whether it is claimed that an address is in the library's code.
    pub fn owns(&self, address: CodeOffset) -> bool {
        let is_inside = |(start, end): &(Rva, Rva)| match address {
            CodeOffset::Exact(rva) => (*start..*end).contains(&rva),
            // The call before it counts.
            CodeOffset::Return(rva) => rva > *start && rva <= *end,
        };
        self.confidence.is_some() && self.ranges.iter().any(is_inside)
    }
}

/// Up to so many wrong claims in so many builds it is called sure, or likely.
const STRONG: f64 = 1e-5;
const LIKELY: f64 = 1e-4;

/// How often code that the library has from others, and an app without the library, may look like all of it.
const ELSEWHERE: f64 = 0.01;

fn confidence(chance: f64, elsewhere: f64) -> Option<Confidence> {
    if elsewhere > ELSEWHERE {
        return None;
    }
    if chance <= STRONG { Some(Confidence::Strong) } else { (chance <= LIKELY).then_some(Confidence::Likely) }
}

/// Looks for libraries in a build of which only stacks are known: by layouts where there are some of a library, else by its
/// fingerprint. Of several versions of one library the best one is given, also where accident explains it as well.
/// `chance` is corrected for everything that was tried for this build.
pub fn mine(build: &BuildStacks, layouts: &[Layout], fingerprints: &[Fingerprint]) -> Vec<Sighting> {
    let evidence = fit::Evidence::of(build);
    let mut found: Vec<Sighting> = Vec::new();
    let mut tries = 0.0f64;
    let fitting = layouts.iter().filter(|layout| layout.arch() == build.arch);
    let mut add = |sighting: Option<Sighting>| {
        tries += 1.0;
        let Some(sighting) = sighting else { return };
        match found.iter_mut().find(|known| known.name == sighting.name) {
            Some(known) if sighting.chance < known.chance => *known = sighting,
            Some(_) => {}
            None => found.push(sighting),
        }
    };
    for layout in fitting.clone() {
        add(fit::best(layout, &evidence));
    }
    for fingerprint in fingerprints {
        if !fitting.clone().any(|layout| layout.name() == fingerprint.name()) {
            add(archive::best(fingerprint, build, &evidence));
        }
    }
    for sighting in &mut found {
        sighting.chance *= tries;
        sighting.confidence = confidence(sighting.chance, sighting.elsewhere);
    }
    found.sort_by(|a, b| a.chance.total_cmp(&b.chance).then_with(|| a.name.cmp(&b.name)));
    unclaim_overlaps(&mut found);
    found
}

/// One address has one owner: the better fit keeps it.
fn unclaim_overlaps(found: &mut [Sighting]) {
    for index in 1..found.len() {
        let (better, rest) = found.split_at_mut(index);
        let Some(sighting) = rest.first_mut() else { continue };
        let overlaps = |other: &Sighting| {
            other.confidence.is_some()
                && other.ranges.iter().any(|(start, end)| {
                    sighting
                        .ranges
                        .iter()
                        .any(|(other_start, other_end)| start < other_end && other_start < end)
                })
        };
        if better.iter().any(overlaps) {
            sighting.confidence = None;
        }
    }
}
