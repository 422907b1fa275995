//! Images at their places: which bytes of which file lay where.

use crate::from_memory::InMemory;
use crate::unwind_image::UnwindImage;
use backtrail_capture::{Mapping, Memory};
use backtrail_core::{AddrRange, Arch, Avma, Bias, FileOffset, ImageId, Svma};
use backtrail_object::{Object, Segment};
use backtrail_store::{FileData, ImageFiles, OpenFile};
use std::sync::Arc;

/// Ranges of the process that are one image.
#[derive(Debug)]
pub(crate) struct Part {
    /// The name that they were mapped under.
    pub(crate) name: String,
    /// Never empty.
    pub(crate) mappings: Vec<Mapping>,
    /// Where in the file the image begins.
    pub(crate) file_offset: FileOffset,
    /// The image's file, from the image's first byte on.
    pub(crate) file: Option<Arc<OpenFile>>,
    /// Whether they are copied from the process's memory.
    pub(crate) is_from_memory: bool,
}

/// What an image's headers say that placing it needs.
#[derive(Debug)]
pub(crate) struct Headers {
    pub(crate) id: Option<ImageId>,
    pub(crate) soname: Option<String>,
    pub(crate) bias: Bias,
    pub(crate) load_address: Avma,
}

/// An image with its files, ready to unwind and to name.
#[derive(Debug)]
pub(crate) struct LoadedImage {
    /// Position among the report's images.
    pub(crate) shown: usize,
    /// Where its code lies.
    pub(crate) code: Vec<AddrRange<Avma>>,
    /// From addresses of the process to those of its file.
    pub(crate) bias: Bias,
    /// From addresses of the process to those that are shown as relative.
    pub(crate) relative: Bias,
    pub(crate) unwind: Option<UnwindImage>,
    pub(crate) files: Arc<ImageFiles>,
}

/// Pages of the smallest size that a loader maps by.
const PAGE: u64 = 4096;

/// Gives the file that was mapped under a name, with what it is called for people.
pub(crate) type Opener<'o> = dyn FnMut(&str) -> Option<(String, FileData)> + 'o;

/// Joins the mapped ranges of one image; `open` gives the file that was mapped under a name. Ranges that are neither
/// code nor part of an image that has code are left out.
///
/// The rules are those of Android's loader (bionic `linker_phdr.cpp`) and of libunwindstack's `MapInfo.cpp`: an image can
/// begin anywhere in an archive, its first range may hold headers only, and its file may be gone while it is in memory.
pub(crate) fn parts(
    mappings: &[Mapping],
    arch: Arch,
    memory: &Memory<'_>,
    open: &mut Opener<'_>,
) -> Vec<Part> {
    let in_memory = InMemory::new(memory);
    let mut parts: Vec<Part> = Vec::new();
    for mapping in mappings {
        if parts.last().is_some_and(|last| last.goes_on_with(mapping, arch, open)) {
            if let Some(last) = parts.last_mut() {
                last.mappings.push(mapping.clone());
            }
            continue;
        }
        parts.push(Part::begin(mapping, arch, &in_memory, open));
    }
    parts.retain(|part| part.mappings.iter().any(|mapping| mapping.executable) || !part.name.is_empty());
    parts
}

impl Part {
    fn begin(mapping: &Mapping, arch: Arch, in_memory: &InMemory<'_, '_>, open: &mut Opener<'_>) -> Self {
        let named = || (!mapping.name.is_empty()).then(|| mapping.name.clone());
        let mut part = Self {
            name: mapping.name.clone(),
            mappings: vec![mapping.clone()],
            file_offset: mapping.offset,
            file: None,
            is_from_memory: false,
        };
        if let Some((shown, file)) = named().and_then(|name| open(&name)) {
            // Either the image begins where the range does, or the whole file is the image.
            let starts = [mapping.offset, FileOffset::new(0)];
            let image = |start: &FileOffset| Some((*start, image_at(&shown, &file, *start, arch)?));
            if let Some((start, file)) = starts.iter().find_map(image) {
                part.file_offset = start;
                part.file = Some(file);
                return part;
            }
        }
        if let Some(bytes) = in_memory.image(mapping.range.start(), arch) {
            let base = part.name.rsplit('/').next().unwrap_or(&part.name);
            let shown = format!("memory of {base}");
            part.file = Some(OpenFile::new(shown, &part.name, FileData::from(bytes)));
            part.is_from_memory = true;
        }
        part
    }

    /// Whether `mapping` is a further range of this image.
    fn goes_on_with(&self, mapping: &Mapping, arch: Arch, open: &mut Opener<'_>) -> bool {
        let Some(last) = self.mappings.last() else { return false };
        if mapping.name.is_empty() || mapping.name != self.name || mapping.offset < last.offset {
            return false;
        }
        if mapping.offset == self.file_offset && mapping.offset == last.offset {
            return false;
        }
        // Code that is mapped once more is another copy. Parts follow each other by offset: only the last can begin where this one does.
        let mut same = self.mappings.iter().rev().take_while(|part| part.offset >= mapping.offset);
        if mapping.executable && mapping.offset != self.file_offset && same.any(|part| part.executable) {
            return false;
        }
        let Some(own) = &self.file else { return false };
        if self.is_from_memory {
            return true;
        }
        let mut begins_here = || {
            open(&mapping.name)
                .is_some_and(|(shown, file)| image_at(&shown, &file, mapping.offset, arch).is_some())
        };
        let into = mapping.offset.offset_from(self.file_offset).unwrap_or_default();
        mapping.offset.get() == 0 || into < own.bytes().len() as u64 && !begins_here()
    }

    /// The ranges that hold code.
    pub(crate) fn code(&self) -> Vec<AddrRange<Avma>> {
        self.mappings.iter().filter(|mapping| mapping.executable).map(|mapping| mapping.range).collect()
    }

    /// From the first mapped byte to behind the last.
    pub(crate) fn range(&self) -> AddrRange<Avma> {
        let first = self.mappings.first().map_or_else(Avma::default, |mapping| mapping.range.start());
        let last = self.mappings.iter().map(|mapping| mapping.range.end()).max();
        AddrRange::new(first, last.unwrap_or(first))
    }

    /// What the image's headers say; `None` without an image.
    pub(crate) fn headers(&self) -> Option<Headers> {
        let object = self.file.as_ref()?.object()?;
        let bias = self.bias(object)?;
        let soname = object.load_commands().into_iter().find(|command| command.name == "DT_SONAME");
        Some(Headers {
            id: object.id(),
            soname: soname.map(|command| command.text),
            bias,
            load_address: bias.to_avma(object.image_base()).unwrap_or_else(|| self.range().start()),
        })
    }

    /// The bias by the first range with code, or else the first.
    fn bias(&self, object: &Object<'_>) -> Option<Bias> {
        let mapping = self.mappings.iter().find(|mapping| mapping.executable).or(self.mappings.first())?;
        let offset = mapping.offset.offset_from(self.file_offset)?;
        Some(Bias::between(mapping.range.start(), stated_at(object, offset, mapping.executable)?))
    }
}

/// Where the file says that its byte at `offset`, at the start of a page, is mapped. Segments begin inside of pages.
pub(crate) fn stated_at(object: &Object<'_>, offset: u64, executable: bool) -> Option<Svma> {
    let has = |segment: &&Segment<'_>| {
        let start = segment.file.start().get() & !(PAGE - 1);
        (start..segment.file.end().get()).contains(&offset)
    };
    let segments = || object.segments().iter();
    let exact = segments().filter(has).find(|segment| segment.executable == executable);
    // A range that begins before its segment's page: one range holds several segments.
    let any = || segments().find(has).or_else(|| segments().find(|segment| segment.executable == executable));
    let segment = exact.or_else(any)?;
    Some(Svma::new(
        segment.address.start().get().wrapping_add(offset).wrapping_sub(segment.file.start().get()),
    ))
}

/// The image that begins at `start` of a file, if one of this architecture does.
fn image_at(name: &str, file: &FileData, start: FileOffset, arch: Arch) -> Option<Arc<OpenFile>> {
    let data = file.part(start, u64::MAX)?;
    if !data.starts_with(b"\x7fELF") {
        return None;
    }
    let image = OpenFile::new(name, name, data);
    (image.object()?.arch().family() == arch.family()).then_some(image)
}
