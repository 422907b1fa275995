//! `map`: which ranges of an app belong to which library.

use backtrail_core::{AddrRange, Arch, Confidence, ImageId};
use backtrail_object::{Kind, Limits, Object, slices};

use crate::app::App;
use crate::error::{Error, ErrorKind, Result};
use crate::fingerprint::Fingerprint;
use crate::link_map::LinkMap;
use crate::owned::{OwnedRange, SHARED};
use crate::place::{How, Placed, place};
use crate::stamp;

/// The ranges of one app that have an owner, ascending, none over another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct OwnerMap {
    /// The ranges.
    pub ranges: Vec<OwnedRange>,
    /// What could not be used, and why.
    pub notes: Vec<String>,
}

/// One architecture of an app, with its owners.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct AppOwners {
    /// The architecture.
    pub arch: Arch,
    /// The build's identity.
    pub id: Option<ImageId>,
    /// Whose ranges are whose.
    pub owners: OwnerMap,
}

/// What else says something of an app's code.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct MapOptions<'a> {
    /// The linker's map of the very build: then its word is taken.
    pub link_map: Option<&'a LinkMap>,
    /// Debug files. A stripped app has its names in the one that has its identity and architecture; others are passed over.
    pub debug_files: &'a [&'a Object<'a>],
}

impl<'a> MapOptions<'a> {
    /// With a link map, if there is one.
    pub fn with_link_map(link_map: impl Into<Option<&'a LinkMap>>) -> Self {
        Self { link_map: link_map.into(), ..Self::default() }
    }

    /// With debug files.
    pub fn with_debug_files(debug_files: &'a [&'a Object<'a>]) -> Self {
        Self { debug_files, ..Self::default() }
    }

    /// The debug file of an app.
    fn debug_file(&self, app: &Object<'_>) -> Option<&'a Object<'a>> {
        let id = app.id()?;
        let mut files = self.debug_files.iter();
        files.find(|debug| debug.id() == Some(id) && debug.arch() == app.arch()).copied()
    }
}

/// Each architecture of an app's binary, mapped as [`map`] does, or only the one that is asked for.
///
/// # Errors
/// Where the bytes are no linked image, or none of its architectures can be compared.
pub fn map_file(
    bytes: &[u8],
    arch: Option<Arch>,
    fingerprints: &[Fingerprint],
    options: &MapOptions<'_>,
) -> Result<Vec<AppOwners>> {
    let limits = Limits::default();
    let mut mapped = Vec::new();
    let mut problem = None;
    for slice in slices(bytes, &limits)? {
        if arch.is_some_and(|arch| arch != slice.arch) {
            continue;
        }
        let found = slice.parse(&limits).map_err(Error::from).and_then(|object| {
            if object.kind() == Kind::Relocatable {
                return Err(Error::new(
                    ErrorKind::WrongInput,
                    "expected a linked app, found the input of a linker",
                ));
            }
            let owners = map(&object, fingerprints, options)?;
            Ok(AppOwners { arch: object.arch(), id: object.id(), owners })
        });
        match found {
            Ok(found) => mapped.push(found),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    match problem {
        Some(problem) if mapped.is_empty() => Err(problem),
        None if mapped.is_empty() => {
            Err(Error::new(ErrorKind::WrongInput, "the app has no such architecture"))
        }
        _ => Ok(mapped),
    }
}

/// Says which ranges of an app came from the libraries of fingerprints: by the linker's own map where there is one, else by
/// comparing code.
///
/// # Errors
/// Where the app's architecture is none that is compared, or the link map is that of another build.
pub fn map(object: &Object<'_>, fingerprints: &[Fingerprint], options: &MapOptions<'_>) -> Result<OwnerMap> {
    if let Some(link_map) = options.link_map {
        link_map.check(object)?;
        let (stamps, notes) = stamps(object, fingerprints);
        let mut ranges = link_map.owned(object, fingerprints);
        mark(&mut ranges, stamps);
        return Ok(OwnerMap { ranges, notes });
    }
    let app = App::read(object, options.debug_file(object))?;
    let mut owners = OwnerMap::default();
    if app.functions.is_empty() {
        owners.notes.push("the app states no starts of functions".to_owned());
    }
    let mut placed: Vec<(&Fingerprint, Placed)> = Vec::new();
    for fingerprint in fingerprints {
        let mut slices = fingerprint.slices(app.arch, app.is_mach_o).peekable();
        if slices.peek().is_none() {
            owners.notes.push(format!(
                "{} {}: was not learnt for {}",
                fingerprint.name, fingerprint.version, app.arch
            ));
            continue;
        }
        // Of several builds, the one whose code is there.
        let found = slices.filter_map(|slice| place(&app, slice));
        let best = found.reduce(|one, other| if one.equal < other.equal { other } else { one });
        let Some(found) = best else { continue };
        // Of several versions of one library, the one whose code is there.
        match placed.iter_mut().find(|(other, _)| other.name == fingerprint.name) {
            Some(other) if other.1.equal < found.equal => *other = (fingerprint, found),
            Some(_) => {}
            None => placed.push((fingerprint, found)),
        }
    }
    owners.ranges = join(&app, &placed);
    let (stamps, notes) = stamps(object, fingerprints);
    mark(&mut owners.ranges, stamps);
    owners.notes.extend(notes);
    Ok(owners)
}

/// The sections that a vendor stamped: they say themselves whose they are.
fn stamps(object: &Object<'_>, fingerprints: &[Fingerprint]) -> (Vec<OwnedRange>, Vec<String>) {
    let (stamped, notes) = stamp::read(object);
    let named = stamped.into_iter().map(|owned| {
        let known = fingerprints.iter().find(|known| known.name.eq_ignore_ascii_case(&owned.owner));
        OwnedRange { owner: known.map_or(owned.owner, |known| known.name.clone()), ..owned }
    });
    (named.collect(), notes)
}

/// Puts certain ranges in the place of what they lie over.
fn mark(ranges: &mut Vec<OwnedRange>, certain: Vec<OwnedRange>) {
    for stamp in certain {
        let range = stamp.range;
        let mut kept: Vec<OwnedRange> = Vec::with_capacity(ranges.len() + 2);
        let mut version = None;
        for old in ranges.drain(..) {
            if old.range.end() <= range.start() || old.range.start() >= range.end() {
                kept.push(old);
                continue;
            }
            if old.owner == stamp.owner {
                version = version.or(old.version.clone());
            }
            let before = AddrRange::new(old.range.start(), range.start().min(old.range.end()));
            let after = AddrRange::new(range.end().max(old.range.start()), old.range.end());
            kept.extend(
                [before, after]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .map(|range| OwnedRange { range, ..old.clone() }),
            );
        }
        let version = stamp.version.clone().or(version);
        kept.push(OwnedRange { version, ..stamp });
        kept.sort_by_key(|owned| owned.range.start());
        *ranges = kept;
    }
}

/// Claims of one function: libraries, by their numbers, and how.
type Claims = Vec<(usize, How)>;

/// One list of ranges. What several libraries have with equal bodies is theirs together; what they claim otherwise is nobody's.
fn join(app: &App<'_>, placed: &[(&Fingerprint, Placed)]) -> Vec<OwnedRange> {
    let mut ranges: Vec<OwnedRange> = Vec::new();
    for (function, claims) in app.functions.iter().zip(claims(app.functions.len(), placed)) {
        let Some((library, how)) = claims.first().copied() else { continue };
        let is_shared = claims.len() > 1;
        if is_shared && claims.iter().any(|(_, how)| !how.is_equal()) {
            continue;
        }
        let Some((fingerprint, found)) = placed.get(library) else { continue };
        let is_known = !is_shared && found.is_version;
        let (confidence, how) = shown(how);
        let names =
            claims.iter().filter_map(|(library, _)| placed.get(*library)).map(|(known, _)| &known.name);
        let owned = OwnedRange {
            range: AddrRange::new(function.start, function.end),
            owner: if is_shared { SHARED.to_owned() } else { fingerprint.name.clone() },
            shared_by: if is_shared { names.cloned().collect() } else { Vec::new() },
            version: is_known.then(|| fingerprint.version.clone()),
            confidence,
            how,
        };
        match ranges.last_mut() {
            Some(last) if last.range.end() == owned.range.start() && is_alike(last, &owned) => {
                last.range = AddrRange::new(last.range.start(), owned.range.end());
            }
            _ => ranges.push(owned),
        }
    }
    ranges
}

fn is_alike(a: &OwnedRange, b: &OwnedRange) -> bool {
    a.owner == b.owner && a.shared_by == b.shared_by && a.confidence == b.confidence && a.how == b.how
}

/// Who claims each function. A library all of whose claims are another's, which has more, is not there: it is the other one that
/// has its code.
fn claims(functions: usize, placed: &[(&Fingerprint, Placed)]) -> Vec<Claims> {
    let is_inside = |few: &Placed, many: &Placed| {
        let has = |(function, _): &(usize, How)| {
            many.claims.binary_search_by_key(function, |(function, _)| *function).is_ok()
        };
        few.claims.len() < many.claims.len() && few.claims.iter().all(has)
    };
    let mut claims: Vec<Claims> = vec![Vec::new(); functions];
    for (library, (_, found)) in placed.iter().enumerate() {
        if placed.iter().any(|(_, other)| is_inside(found, other)) {
            continue;
        }
        for (function, how) in &found.claims {
            if let Some(claims) = claims.get_mut(*function) {
                claims.push((library, *how));
            }
        }
    }
    claims
}

fn shown(how: How) -> (Confidence, &'static str) {
    match how {
        How::Name => (Confidence::Strong, "name"),
        How::Body => (Confidence::Strong, "body"),
        How::Call => (Confidence::Strong, "call"),
        How::Order => (Confidence::Strong, "order"),
        How::Present => (Confidence::Strong, "present"),
        How::Changed | How::Added => (Confidence::Likely, "changed"),
    }
}
