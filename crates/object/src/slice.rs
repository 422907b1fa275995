//! Taking files apart: fat files, archives, shared caches; down to single objects.

use std::borrow::Cow;
use std::sync::Arc;

use backtrail_core::{Arch, FileOffset};
use object::ReadRef;

use crate::budget::Share;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::listed_object::{ListedObject, too_many};
use crate::macho::Placement;
use crate::macho::cache::{CacheImage, SharedCache};
use crate::macho::fileset::FilesetEntry;
use crate::object::Object;
use crate::section::FileRange;
use crate::view::View;
use crate::{archive, elf, fat, macho, sniff};

/// One object file inside of a file: the file itself, an architecture of a fat one, a member of an archive, an image of a
/// shared cache.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Slice<'d> {
    /// The architecture, as the fat header or the object itself states it.
    pub arch: Arch,
    /// A member's name in its archive; an image's path in its cache, an entry's name in its kernel collection.
    pub member: Option<String>,
    /// A member's modification time in seconds since 1970, by which a debug map tells members of one name apart; often
    /// zero, since archivers leave it out for reproducible builds.
    pub modified: Option<u64>,
    /// The object's bytes; for images of a shared cache and entries of a kernel collection all bytes of the file, for
    /// their parts lie spread over it.
    pub data: &'d [u8],
    /// Where it lies in the file; for images of a shared cache their `__TEXT`.
    pub range: FileRange,
    placement: Placement,
    share: Share,
    problem: Option<Error>,
}

impl<'d> Slice<'d> {
    /// Reads the headers of this object.
    ///
    /// # Errors
    /// Where they are broken; also where the container promised an object and there is none.
    pub fn parse(&self, limits: &Limits) -> Result<Object<'d>> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let base = if matches!(self.placement, Placement::Whole) { self.range.start().get() } else { 0 };
        Object::parse_placed(View::of_slice(self.data, base), &self.placement, self.share, limits)
    }

    /// Why there is nothing to [`parse`](Self::parse), where the container already shows it.
    pub fn problem(&self) -> Option<&Error> {
        self.problem.as_ref()
    }
}

/// All objects in a file: one for a thin file, one an architecture for a fat one, one a member for an archive (of any
/// architecture of a fat one), one an image for a dyld shared cache, one an entry for a kernel collection (and the
/// collection itself).
///
/// What a container promises and does not hold is listed too, as a slice with a [`problem`](Slice::problem).
///
/// # Errors
/// [`ErrorKind::NotAnObject`] for anything else, naming what it seems to be; [`ErrorKind::Unsupported`] for thin
/// archives, whose members are other files.
pub fn slices<'d>(data: &'d [u8], limits: &Limits) -> Result<Vec<Slice<'d>>> {
    let found = find(View::of_slice(data, 0), limits)?;
    let size = |found: &ListedObject| bytes_of(data, found).len() as u64;
    let objects_size = found.iter().map(size).fold(0, u64::saturating_add);
    let share = Share { objects: found.len() as u64, file_size: data.len() as u64, objects_size };
    Ok(found.into_iter().map(|found| slice_of(data, found, share)).collect())
}

fn slice_of(data: &[u8], found: ListedObject, share: Share) -> Slice<'_> {
    let bytes = bytes_of(data, &found);
    let ListedObject { arch, member, modified, range, placement, problem, .. } = found;
    Slice { arch, member, modified, data: bytes, range, placement, share, problem }
}

fn bytes_of<'d>(data: &'d [u8], found: &ListedObject) -> &'d [u8] {
    match found.placement {
        Placement::Whole => part(data, found.range),
        _ => data,
    }
}

fn part(data: &[u8], range: FileRange) -> &[u8] {
    let at = |offset: FileOffset| usize::try_from(offset.get()).unwrap_or(usize::MAX).min(data.len());
    data.get(at(range.start())..at(range.end())).unwrap_or_default()
}

/// The objects of a file, by its containers' directories alone.
pub(crate) fn find<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<ListedObject>> {
    let start = view.bytes_up_to(0, sniff::ENOUGH, "the start of the file")?;
    match sniff::sniff(start) {
        sniff::Sniffed::Fat => find_fat(view, limits),
        sniff::Sniffed::Archive => archive::find(view, limits),
        sniff::Sniffed::SharedCache => find_cached(view, limits),
        sniff::Sniffed::MachO => find_macho(view, limits),
        sniff::Sniffed::Elf => Ok(vec![ListedObject::whole(elf::arch_of(start), 0, view.len())]),
        sniff::Sniffed::Other(what) => Err(Error::new(
            ErrorKind::NotAnObject,
            0,
            Cow::from(format!("expected Mach-O, ELF, an archive or a dyld shared cache, found {what}")),
        )),
    }
}

fn find_fat<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<ListedObject>> {
    let mut all = Vec::new();
    for slice in fat::read(view)? {
        if slice.problem.is_some() {
            all.push(slice);
            continue;
        }
        let (offset, size) = (slice.range.start().get(), slice.range.size());
        let start = view.bytes(offset, size.min(sniff::ENOUGH), "the start of a fat file's slice")?;
        if sniff::sniff(start) == sniff::Sniffed::Archive {
            match archive::find(view.part(offset, size), limits) {
                Ok(members) => all.extend(members),
                Err(error) => all.push(ListedObject { problem: Some(error), ..slice }),
            }
        } else {
            all.push(slice);
        }
        if all.len() > limits.slices {
            return Err(too_many(offset, limits));
        }
    }
    Ok(all)
}

fn find_macho<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<ListedObject>> {
    let start = view.bytes_up_to(0, sniff::ENOUGH, "the start of the file")?;
    let mut all = vec![ListedObject::whole(macho::arch_of(start), 0, view.len())];
    all.extend(macho::fileset::entries(view, limits)?.into_iter().map(collection_entry));
    Ok(all)
}

fn collection_entry(entry: FilesetEntry) -> ListedObject {
    ListedObject {
        arch: entry.arch,
        member: Some(entry.name),
        modified: None,
        range: entry.range,
        placement: Placement::Entry { header: entry.range.start().get() },
        id: None,
        problem: entry.problem,
    }
}

fn find_cached<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Vec<ListedObject>> {
    let cache = Arc::new(SharedCache::read(view, limits)?);
    Ok(cache.images.iter().map(|image| cache_image(&cache, image)).collect())
}

fn cache_image(cache: &Arc<SharedCache>, image: &CacheImage) -> ListedObject {
    let header = cache.file_offset(image.address);
    let elsewhere = || {
        let detail = format!("{} lies in another file of the shared cache", image.path);
        Error::nowhere(ErrorKind::Unsupported, detail)
    };
    ListedObject {
        arch: cache.arch,
        member: Some(image.path.clone()),
        modified: None,
        range: FileRange::from_size(header.unwrap_or_default(), image.text_size),
        placement: Placement::Cached { header: header.unwrap_or_default().get(), cache: Arc::clone(cache) },
        id: image.id,
        problem: if header.is_none() { Some(elsewhere()) } else { None },
    }
}
