//! Images that a capture lists, joined with their files.

use crate::build::{Builder, Sources};
use crate::loaded_image::Part;
use backtrail_capture::{MappedImage, Mapping, Snapshot};
use backtrail_core::{AddrRange, Arch, Avma, Bias, FileOffset};
use backtrail_model::SymbolStatus;
use backtrail_object::Object;
use backtrail_store::{FileData, ImageFiles, OpenFile, Wanted};

/// What files are looked for by.
pub(crate) fn wanted(image: &MappedImage, arch: Arch) -> Wanted {
    Wanted { name: image.name().to_owned(), path: image.path.clone(), id: image.id, arch: Some(arch) }
}

/// Adds an image with what was found of it. `bias` is what the capture tells.
pub(crate) fn add(
    builder: &mut Builder<'_, '_>,
    snapshot: &Snapshot<'_>,
    image: &MappedImage,
    mut found: ImageFiles,
    bias: Option<Bias>,
) -> Option<Part> {
    let range = image.range.or_else(|| range_of(image, &found))?;
    // By address: of as many images as a core can list, each must not look at all mappings.
    let first = snapshot.mappings.partition_point(|mapping| mapping.range.start() < range.start());
    let inside =
        snapshot.mappings.iter().skip(first).take_while(|mapping| mapping.range.start() < range.end());
    let is_named =
        |mapping: &&Mapping| mapping.name.is_empty() || image.path.is_empty() || mapping.name == image.path;
    let mut mappings: Vec<_> = inside.filter(is_named).cloned().collect();
    if !mappings.iter().any(|mapping| mapping.executable) {
        mappings = match mappings.first().filter(|first| first.offset.get() != 0) {
            Some(copy) => vec![code_of_copy(copy, &found)?],
            None => vec![whole(range)],
        };
    }
    drop_unfitting(&mut found, &mappings);
    if found.is_unproven {
        builder.add_unproven(&image.path);
    }
    let is_from_memory = found.binary.is_none();
    let from_memory = || {
        let bytes = builder.in_memory.image(range.start(), snapshot.arch).map(FileData::from)?;
        Some(OpenFile::new(format!("memory of {}", image.name()), &image.path, bytes))
    };
    let file = found.binary.clone().or_else(from_memory);
    let file_offset = FileOffset::new(image.file_offset);
    let part = Part { name: image.path.clone(), mappings, file_offset, file, is_from_memory };
    builder.add(&part, sources(image, &part, found), bias);
    Some(part)
}

/// Where an image lies of which only the bias is known.
fn range_of(image: &MappedImage, found: &ImageFiles) -> Option<AddrRange<Avma>> {
    let object = found.binary.as_ref()?.object()?;
    let ends = object.segments().iter().map(|segment| segment.address.end());
    let (start, end) = (image.bias?.to_avma(object.image_base())?, image.bias?.to_avma(ends.max()?)?);
    Some(AddrRange::new(start, end))
}

fn whole(range: AddrRange<Avma>) -> Mapping {
    Mapping {
        range,
        offset: FileOffset::new(0),
        readable: true,
        writable: false,
        executable: true,
        name: String::new(),
    }
}

/// A part of an image that was mapped once more, of which a core does not say whether it is code: the file does.
fn code_of_copy(copy: &Mapping, found: &ImageFiles) -> Option<Mapping> {
    let mut segments = found.binary.as_ref()?.object()?.segments().iter();
    segments
        .any(|segment| segment.executable && segment.file.contains(copy.offset))
        .then(|| Mapping { executable: true, ..copy.clone() })
}

/// A file that nothing proves to be the right build is not, if its code does not lie where it was mapped from.
fn drop_unfitting(found: &mut ImageFiles, mappings: &[Mapping]) {
    let Some(file) = found.binary.as_ref().filter(|_| found.is_unproven) else { return };
    let code = mappings.iter().find(|mapping| mapping.executable && !mapping.name.is_empty());
    let is_copy = mappings.first().is_some_and(|first| first.executable && first.offset.get() != 0);
    let fits = |object: &Object<'_>| code.is_none_or(|code| has_code_at(object, code, is_copy));
    if file.object().is_some_and(fits) {
        return;
    }
    let what = format!("{}: its code does not lie where the process had it mapped from", file.name());
    found.tried.push(what);
    (found.binary, found.is_unproven, found.status) = (None, false, SymbolStatus::Missing);
}

/// Whether the file has a segment of code that a loader maps exactly so, or of which `code` is a further copy, without the headers.
fn has_code_at(object: &Object<'_>, code: &Mapping, is_copy: bool) -> bool {
    const PAGE: u64 = 4096;
    object.segments().iter().filter(|segment| segment.executable).any(|segment| {
        let start = segment.file.start().get() & !(PAGE - 1);
        let end = segment.file.end().get().checked_next_multiple_of(PAGE);
        let code = code.offset.get()..code.offset.get().saturating_add(code.range.size());
        match end {
            Some(end) if is_copy => start <= code.start && code.end <= end,
            Some(end) => start == code.start && end == code.end,
            None => false,
        }
    })
}

fn sources(image: &MappedImage, part: &Part, mut files: ImageFiles) -> Sources {
    if let (None, Some(file)) = (&files.binary, &part.file) {
        // Of others memory has at most the names that are exported: what stays unnamed wants the file. The kernel's
        // image has no file.
        if image.path.starts_with('[') {
            files.status = SymbolStatus::Found;
        }
        files.binary = Some(file.clone());
    }
    Sources {
        name: image.name().to_owned(),
        path: Some(image.path.clone()).filter(|path| !path.is_empty()),
        id: image.id,
        files,
    }
}

/// Adds code that belongs to no image: made at run time, or of images that the capture does not list.
pub(crate) fn add_unclaimed(builder: &mut Builder<'_, '_>, snapshot: &Snapshot<'_>, parts: &mut Vec<Part>) {
    for part in unclaimed(snapshot, parts) {
        builder.add(&part, Sources { name: anonymous(&part), ..Sources::default() }, None);
        parts.push(part);
    }
}

/// What code without a name is called.
pub(crate) fn anonymous(part: &Part) -> String {
    if part.name.is_empty() {
        format!("<anonymous:{:x}>", part.range().start().get())
    } else {
        part.name.clone()
    }
}

fn unclaimed(snapshot: &Snapshot<'_>, parts: &[Part]) -> Vec<Part> {
    let mut claimed: Vec<_> = parts.iter().map(Part::range).collect();
    claimed.sort_by_key(|range| range.start());
    let is_claimed = |address: Avma| {
        let after = claimed.partition_point(|range| range.start() <= address);
        after.checked_sub(1).and_then(|at| claimed.get(at)).is_some_and(|range| range.contains(address))
    };
    let code =
        snapshot.mappings.iter().filter(|mapping| mapping.executable && !is_claimed(mapping.range.start()));
    let part = |mapping: &Mapping| Part {
        name: mapping.name.clone(),
        mappings: vec![mapping.clone()],
        file_offset: FileOffset::new(0),
        file: None,
        is_from_memory: false,
    };
    code.map(part).collect()
}
