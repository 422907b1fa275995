//! The dyld shared cache: all of a system's libraries in one file, their segments spread over common mappings.
//!
//! dyld, `cache-builder/dyld_cache_format.h`. Since iOS 15 and macOS 12 a cache is several files (`.1`, `.01`,
//! `.symbols`); one of them at a time is read here, and what lies in the others is said to be elsewhere.

use backtrail_core::{AddrRange, Arch, FileOffset, ImageId, Svma};
use object::macho::{
    DyldCacheHeader, DyldCacheImageInfo, DyldCacheMappingInfo, DyldSubCacheEntryV1, DyldSubCacheEntryV2,
    VM_PROT_EXECUTE, VM_PROT_READ, VM_PROT_WRITE,
};
use object::{LittleEndian as LE, ReadRef, U32, U64};

use crate::error::Result;
use crate::limits::Limits;
use crate::section::FileRange;
use crate::symbol::text;
use crate::view::{View, pod_at, until_nul};

/// One file of a dyld shared cache: its directory.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SharedCache {
    /// The architecture that its magic number names.
    pub arch: Arch,
    /// The cache's own UUID, which reports state too.
    pub id: Option<ImageId>,
    /// What of the file is mapped where.
    pub mappings: Vec<CacheMapping>,
    /// The libraries, in the order of the directory.
    pub images: Vec<CacheImage>,
    /// Further files that the cache consists of.
    pub sub_caches: Vec<SubCache>,
    /// The UUID of the `.symbols` file, to which newer caches move all local symbols.
    pub symbols_file: Option<ImageId>,
    pub(super) local_symbols: FileRange,
    pub(super) has_wide_locals: bool,
}

/// Bytes of a shared cache file that are mapped together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CacheMapping {
    /// Where to, before the cache's slide.
    pub address: AddrRange<Svma>,
    /// Where from.
    pub file: FileRange,
    /// Whether it is mapped readable.
    pub readable: bool,
    /// Whether it is mapped writable.
    pub writable: bool,
    /// Whether it is mapped executable.
    pub executable: bool,
}

/// One library in a shared cache.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CacheImage {
    /// Its install name: `/usr/lib/libobjc.A.dylib`.
    pub path: String,
    /// Its UUID; caches of iOS 8 and before do not list it.
    pub id: Option<ImageId>,
    /// Where its Mach-O header is mapped.
    pub address: Svma,
    /// Bytes of its `__TEXT`; zero where the cache does not list it.
    pub text_size: u64,
}

/// A further file of a shared cache.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SubCache {
    /// The UUID in its header.
    pub id: ImageId,
    /// What its name has behind the main file's: `.1`, `.25.data`.
    pub suffix: String,
}

type Header = DyldCacheHeader<LE>;

const HEADER_SIZE: usize = size_of::<Header>();
/// `dyld_cache_image_text_info`: UUID, load address, size of `__TEXT`, offset of the path.
const TEXT_INFO_SIZE: u64 = 32;
const MAX_PATH: u64 = 1024;
/// A cache of today has 4,000 images with paths of 70 bytes.
const MAX_PATHS: u64 = 4 << 20;

impl SharedCache {
    /// Reads the directory of a shared cache file.
    ///
    /// # Errors
    /// Where it is none, or is cut off within its directory.
    pub fn parse(data: &[u8], limits: &Limits) -> Result<Self> {
        Self::read(View::of_slice(data, 0), limits)
    }

    pub(crate) fn read<'d, R: ReadRef<'d>>(view: View<R>, limits: &Limits) -> Result<Self> {
        let header = header(view)?;
        let magic = until_nul(&header.magic);
        let arch = magic.get(7..).map(|name| text(name.trim_ascii()).into_owned());
        let uuid = |bytes: [u8; 16]| Some(ImageId::Uuid(bytes)).filter(|id| !id.is_nil());
        let wide = std::mem::offset_of!(Header, symbol_file_uuid) as u64;
        Ok(Self {
            arch: arch.and_then(|name| Arch::from_name(&name)).unwrap_or(Arch::Unknown),
            id: uuid(header.uuid),
            mappings: mappings(view, &header, limits)?,
            images: images(view, &header, limits)?,
            sub_caches: sub_caches(view, &header, limits)?,
            symbols_file: uuid(header.symbol_file_uuid),
            local_symbols: FileRange::from_size(
                FileOffset::new(header.local_symbols_offset.get(LE)),
                header.local_symbols_size.get(LE),
            ),
            has_wide_locals: u64::from(header.mapping_offset.get(LE)) >= wide,
        })
    }

    /// Where the byte mapped at `address` lies in this file; `None` where another file of the cache has it.
    pub fn file_offset(&self, address: Svma) -> Option<FileOffset> {
        let mapping = self.mappings.iter().find(|mapping| mapping.address.contains(address))?;
        mapping.file.start().checked_add(address.offset_from(mapping.address.start())?)
    }

    /// What of `size` bytes from `address` on lies in this file, in one piece.
    pub(super) fn file_range(&self, address: Svma, size: u64) -> FileRange {
        let nothing = FileRange::from_size(FileOffset::new(0), 0);
        let Some(mapping) = self.mappings.iter().find(|mapping| mapping.address.contains(address)) else {
            return nothing;
        };
        let there = mapping.address.end().offset_from(address).unwrap_or(0);
        self.file_offset(address).map_or(nothing, |offset| FileRange::from_size(offset, size.min(there)))
    }
}

/// The header; fields that an older cache does not have are zero. Where the mappings start, the header ends.
fn header<'d, R: ReadRef<'d>>(view: View<R>) -> Result<Header> {
    const MAPPING_OFFSET: usize = 16;
    let start = view.bytes_up_to(0, HEADER_SIZE as u64, "the header of a dyld shared cache")?;
    let end = pod_at::<U32<LE>>(start, MAPPING_OFFSET).map(|offset| offset.get(LE));
    let end =
        end.ok_or_else(|| view.truncated(0, HEADER_SIZE as u64, "the header of a dyld shared cache"))?;
    let there = usize::try_from(end).unwrap_or(0).min(start.len());
    if there <= MAPPING_OFFSET {
        return Err(view.malformed(
            16,
            format!("expected the mappings of a shared cache behind its header, at {end:#x}"),
        ));
    }
    let mut whole = [0; HEADER_SIZE];
    for (to, from) in whole.iter_mut().zip(start.iter().take(there)) {
        *to = *from;
    }
    pod_at::<Header>(&whole, 0).copied().ok_or_else(|| view.malformed(0, "expected a shared cache's header"))
}

fn mappings<'d, R: ReadRef<'d>>(
    view: View<R>,
    header: &Header,
    limits: &Limits,
) -> Result<Vec<CacheMapping>> {
    let (offset, count) = (header.mapping_offset.get(LE), header.mapping_count.get(LE));
    let raw = listed::<DyldCacheMappingInfo<LE>, R>(
        view,
        offset.into(),
        count.into(),
        limits.segments,
        "mappings",
    )?;
    Ok(raw.iter().map(mapping).collect())
}

fn mapping(raw: &DyldCacheMappingInfo<LE>) -> CacheMapping {
    let protection = raw.init_prot.get(LE);
    CacheMapping {
        address: AddrRange::from_size(Svma::new(raw.address.get(LE)), raw.size.get(LE)),
        file: FileRange::from_size(FileOffset::new(raw.file_offset.get(LE)), raw.size.get(LE)),
        readable: protection.contains(VM_PROT_READ),
        writable: protection.contains(VM_PROT_WRITE),
        executable: protection.contains(VM_PROT_EXECUTE),
    }
}

/// A table whose length is allowed.
fn listed<'d, T: object::pod::Pod, R: ReadRef<'d>>(
    view: View<R>,
    offset: u64,
    count: u64,
    limit: usize,
    what: &str,
) -> Result<&'d [T]> {
    if usize::try_from(count).map_or(true, |count| count > limit) {
        let detail = format!("{count} {what} in a shared cache, {limit} are allowed");
        return Err(crate::error::Error::new(
            crate::error::ErrorKind::LimitExceeded,
            view.absolute(offset),
            detail,
        ));
    }
    view.table(offset, count, &format!("the {what} of a shared cache"))
}

fn images<'d, R: ReadRef<'d>>(view: View<R>, header: &Header, limits: &Limits) -> Result<Vec<CacheImage>> {
    let (offset, count) = (header.images_text_offset.get(LE), header.images_text_count.get(LE));
    let mut images = Vec::new();
    if count > 0 {
        let raw = listed::<[u8; TEXT_INFO_SIZE as usize], R>(view, offset, count, limits.slices, "images")?;
        let infos: Vec<_> = raw.iter().filter_map(text_info).collect();
        let paths = Paths::new(view, infos.iter().map(|(_, path)| *path));
        images.extend(infos.into_iter().map(|(image, path)| CacheImage { path: paths.get(path), ..image }));
        return Ok(images);
    }
    let (new_offset, new_count) = (header.images_offset.get(LE), header.images_count.get(LE));
    let (offset, count) = match new_count {
        0 => (header.images_offset_old.get(LE), header.images_count_old.get(LE)),
        _ => (new_offset, new_count),
    };
    let raw =
        listed::<DyldCacheImageInfo<LE>, R>(view, offset.into(), count.into(), limits.slices, "images")?;
    let paths = Paths::new(view, raw.iter().map(|info| info.path_file_offset.get(LE).into()));
    Ok(raw.iter().map(|info| bare_image(info, &paths)).collect())
}

fn bare_image<'d, R: ReadRef<'d>>(info: &DyldCacheImageInfo<LE>, paths: &Paths<'d, R>) -> CacheImage {
    let path = paths.get(info.path_file_offset.get(LE).into());
    CacheImage { path, id: None, address: Svma::new(info.address.get(LE)), text_size: 0 }
}

fn text_info(bytes: &[u8; TEXT_INFO_SIZE as usize]) -> Option<(CacheImage, u64)> {
    let uuid = ImageId::Uuid(*bytes.first_chunk()?);
    let image = CacheImage {
        path: String::new(),
        id: Some(uuid).filter(|id| !id.is_nil()),
        address: Svma::new(pod_at::<U64<LE>>(bytes, 16)?.get(LE)),
        text_size: pod_at::<U32<LE>>(bytes, 24)?.get(LE).into(),
    };
    Some((image, pod_at::<U32<LE>>(bytes, 28)?.get(LE).into()))
}

/// The images' paths, which lie side by side and are read at once.
struct Paths<'d, R> {
    view: View<R>,
    start: u64,
    bytes: &'d [u8],
}

impl<'d, R: ReadRef<'d>> Paths<'d, R> {
    fn new(view: View<R>, offsets: impl Iterator<Item = u64> + Clone) -> Self {
        let (start, end) = (offsets.clone().min().unwrap_or(0), offsets.max().unwrap_or(0));
        let size = (end - start + MAX_PATH).min(MAX_PATHS);
        Self { view, start, bytes: view.bytes_up_to(start, size, "the images' paths").unwrap_or_default() }
    }

    fn get(&self, offset: u64) -> String {
        let near = offset.checked_sub(self.start).and_then(|at| self.bytes.get(usize::try_from(at).ok()?..));
        let bytes = match near.filter(|bytes| !bytes.is_empty()) {
            Some(bytes) => bytes,
            None => self.view.bytes_up_to(offset, MAX_PATH, "an image's path").unwrap_or_default(),
        };
        let bytes = bytes.get(..bytes.len().min(MAX_PATH as usize)).unwrap_or_default();
        text(until_nul(bytes)).into_owned()
    }
}

fn sub_caches<'d, R: ReadRef<'d>>(view: View<R>, header: &Header, limits: &Limits) -> Result<Vec<SubCache>> {
    let (offset, count) =
        (header.sub_cache_array_offset.get(LE).into(), header.sub_cache_array_count.get(LE).into());
    let what = "sub-caches";
    // The longer entries came with the field `cacheSubType`.
    if u64::from(header.mapping_offset.get(LE)) <= std::mem::offset_of!(Header, cache_sub_type) as u64 {
        let raw = listed::<DyldSubCacheEntryV1<LE>, R>(view, offset, count, limits.slices, what)?;
        let numbered = |(index, entry): (usize, &DyldSubCacheEntryV1<LE>)| SubCache {
            id: ImageId::Uuid(entry.uuid),
            suffix: format!(".{}", index + 1),
        };
        return Ok(raw.iter().enumerate().map(numbered).collect());
    }
    let raw = listed::<DyldSubCacheEntryV2<LE>, R>(view, offset, count, limits.slices, what)?;
    let named = |entry: &DyldSubCacheEntryV2<LE>| SubCache {
        id: ImageId::Uuid(entry.uuid),
        suffix: text(until_nul(&entry.file_suffix)).into_owned(),
    };
    Ok(raw.iter().map(named).collect())
}

#[cfg(test)]
mod tests;
