//! What a scan of many files needs to know of each, from its headers alone.

use backtrail_core::{Arch, FileOffset, ImageId};
use object::ReadRef;
use object::read::ReadCache;

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::listed_object::ListedObject;
use crate::macho::Placement;
use crate::macho::cache::SharedCache;
use crate::object::{Format, Headers, Kind};
use crate::read_at::{Fetch, ReadAt};
use crate::section::FileRange;
use crate::slice::find;
use crate::view::View;
use crate::{elf, macho};

/// What one object in a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Identity {
    /// The container format.
    pub format: Format,
    /// What it is for.
    pub kind: Kind,
    /// The architecture of its code.
    pub arch: Arch,
    /// By what its debug file, or its image in a process, is known; see [`Object::id`](crate::Object::id).
    pub id: Option<ImageId>,
    /// Where it lies in the file.
    pub range: FileRange,
    /// Whether it has DWARF.
    pub has_debug_info: bool,
    /// Whether it has a table of symbols that is not empty.
    pub has_symbols: bool,
    /// A member's name in its archive; an image's path in its shared cache.
    pub member: Option<String>,
}

impl Identity {
    /// What a symbol table file says of the image that it was made from; `range` is the whole file.
    pub fn of_table(
        format: Format,
        arch: Arch,
        id: Option<ImageId>,
        range: FileRange,
        has_debug_info: bool,
    ) -> Self {
        let kind = Kind::Table;
        Self { format, kind, arch, id, range, has_debug_info, has_symbols: true, member: None }
    }

    /// What a symbol file of another tool says of its image; `range` is the whole file.
    pub fn of_symbol_file(format: Format, arch: Arch, id: Option<ImageId>, range: FileRange) -> Self {
        Self { kind: Kind::SymbolFile, ..Self::of_table(format, arch, id, range, true) }
    }
}

/// Headers side by side are fetched in one go.
const BLOCK: u64 = 4096;
/// Member headers of an archive lie far apart, and little of the bytes between them is wanted.
const DIRECTORY_BLOCK: u64 = 128;

/// Identities of all objects in a file: see [`slices`](crate::slices) for what counts as one. Reads headers only, some
/// kilobytes of each object. For a dyld shared cache the first is the cache itself.
///
/// # Errors
/// As [`slices`](crate::slices), and where not one of the objects has headers that can be read. Where some can, the
/// others are left out; [`identify_each`] has them all.
pub fn identify(data: &dyn ReadAt, limits: &Limits) -> Result<Vec<Identity>> {
    let mut identities = Vec::new();
    let mut first_problem = None;
    for identity in identify_each(data, limits)? {
        match identity {
            Ok(identity) => identities.push(identity),
            Err(error) => first_problem = first_problem.or(Some(error)),
        }
    }
    match first_problem {
        Some(error) if identities.is_empty() => Err(error),
        _ => Ok(identities),
    }
}

/// As [`identify`], with what is wrong with each object that cannot be read.
pub fn identify_each(data: &dyn ReadAt, limits: &Limits) -> Result<Vec<Result<Identity>>> {
    let (budget, len) = (limits.identify_bytes, data.len());
    let cache = ReadCache::new(Fetch::new(data, 0, len, budget.max(len / 64), DIRECTORY_BLOCK));
    let found = find(View::new(&cache, 0, budget), limits);
    let found = found.map_err(|error| cache.into_inner().failure.unwrap_or(error))?;
    let whole = found.iter().find_map(|found| match &found.placement {
        Placement::Cached { cache, .. } => Some(Ok(whole_cache(cache, len))),
        _ => None,
    });
    Ok(whole.into_iter().chain(found.into_iter().map(|found| one(data, found, limits))).collect())
}

fn one(data: &dyn ReadAt, found: ListedObject, limits: &Limits) -> Result<Identity> {
    if let Some(problem) = found.problem {
        return Err(problem);
    }
    if matches!(found.placement, Placement::Cached { .. }) && found.id.is_some() {
        return Ok(cached(found));
    }
    let (start, size) = match found.placement {
        Placement::Whole => (found.range.start().get(), found.range.size()),
        _ => (0, data.len()),
    };
    let budget = limits.identify_bytes;
    let cache = ReadCache::new(Fetch::new(data, start, size, budget, BLOCK));
    let headers = headers(View::new(&cache, start, budget), &found.placement, limits);
    match headers {
        Ok(headers) => Ok(identity(&headers, found)),
        Err(error) => Err(cache.into_inner().failure.unwrap_or(error)),
    }
}

fn headers<'d, R: ReadRef<'d>>(
    view: View<R>,
    placement: &Placement,
    limits: &Limits,
) -> Result<Headers<'d>, Error> {
    if matches!(placement, Placement::Whole) && elf::is_elf(view) {
        elf::parse(view, limits).map(|(headers, _)| headers)
    } else {
        macho::parse(view, placement, limits).map(|(headers, _)| headers)
    }
}

fn identity(headers: &Headers<'_>, found: ListedObject) -> Identity {
    Identity {
        format: headers.format,
        kind: headers.kind,
        arch: headers.arch,
        id: headers.id,
        range: found.range,
        has_debug_info: headers.has_debug_info,
        has_symbols: headers.has_symbols,
        member: found.member,
    }
}

/// A shared cache as a whole.
fn whole_cache(cache: &SharedCache, len: u64) -> Identity {
    Identity {
        format: Format::MachO,
        kind: Kind::SharedCache,
        arch: cache.arch,
        id: cache.id,
        range: FileRange::from_size(FileOffset::new(0), len),
        has_debug_info: false,
        has_symbols: true,
        member: None,
    }
}

/// An image of a shared cache: its directory says enough, and thousands of headers need not be fetched.
fn cached(found: ListedObject) -> Identity {
    Identity {
        format: Format::MachO,
        kind: Kind::Library,
        arch: found.arch,
        id: found.id,
        range: found.range,
        has_debug_info: false,
        has_symbols: true,
        member: found.member,
    }
}
