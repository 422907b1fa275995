//! Which images a process has mapped: by the mapped files, by their headers in memory, by what the kernel told it.

use super::maps::Maps;
use super::target::Target;
use crate::elf_core::auxv::AuxVector;
use crate::elf_core::header::Header;
use crate::elf_core::images::{self, Known};
use crate::{Limits, MappedImage, Mapping, Memory};
use backtrail_core::{AddrRange, Avma};
use std::borrow::Cow;

/// Headers, and the notes that hold the identity, are in an image's first page.
const HEADERS: u64 = 4096;
/// The largest image that the kernel maps into processes by itself.
const KERNEL_IMAGE: u64 = 64 << 10;

/// The memory that tells of images: each file's first page, and all of the kernel's own.
pub(super) fn pages(target: &Target, maps: &Maps) -> Vec<(Avma, Cow<'static, [u8]>)> {
    let ranges: Vec<_> = maps.all().iter().filter_map(|mapping| headers(mapping, maps)).collect();
    let sizes = ranges.iter().map(|range| usize::try_from(range.size()).unwrap_or_default());
    let mut bytes = vec![0; sizes.clone().sum()];
    let copied = target.memory().copy_all(&ranges, &mut bytes);
    let mut at = 0;
    let mut pieces = Vec::new();
    for ((range, size), copied) in ranges.iter().zip(sizes).zip(copied) {
        let piece = bytes.get(at..at + copied).unwrap_or_default();
        at += size;
        if piece.starts_with(b"\x7fELF") {
            pieces.push((range.start(), Cow::Owned(piece.to_vec())));
        }
    }
    pieces
}

fn headers(mapping: &Mapping, maps: &Maps) -> Option<AddrRange<Avma>> {
    if mapping.name == "[vdso]" {
        return Some(AddrRange::from_size(mapping.range.start(), mapping.range.size().min(KERNEL_IMAGE)));
    }
    let is_file = maps.file(mapping.range.start()).is_some();
    (is_file && mapping.readable && mapping.offset.get() == 0)
        .then(|| AddrRange::from_size(mapping.range.start(), mapping.range.size().min(HEADERS)))
}

/// The images, by address.
pub(super) fn find(target: &Target, maps: &Maps, memory: &Memory<'_>, limits: &Limits) -> Vec<MappedImage> {
    let arch = target.arch();
    let is_64 = arch.pointer_size() == 8;
    let header = Header::new(arch, is_64, Vec::new());
    let vector = AuxVector::parse(&target.auxiliary_vector(), is_64);
    images::find(
        &Known { header: &header, memory, mappings: maps.all(), vector: &vector, program: None },
        limits,
    )
}
