//! Which image an address lies in.
//!
//! Reports lie: images overlap, wrap around, end before they begin, and a filler row covers the whole address space.
//! So the images are cut into disjoint pieces once; a lookup is then one binary search, whatever the images say.

use crate::{Frame, Image, Process};
use backtrail_core::{AddrRange, Avma, FrameAddress};
use std::collections::HashMap;
use std::sync::OnceLock;

impl Process {
    /// Finds for every frame without an image the one that it lies in.
    pub fn place_frames(&mut self) {
        let images = std::mem::take(&mut self.images);
        let index = ImageIndex::new(&images);
        for frame in self.frames_mut().filter(|frame| frame.image.is_none()) {
            frame.image = image_of(&index, frame);
        }
        self.images = images;
    }
}

fn image_of(index: &ImageIndex<'_>, frame: &Frame) -> Option<usize> {
    let address = frame.address?;
    let name = frame.image_name.as_deref();
    let stated = address.raw();
    let load_address = frame.image_offset.and_then(|offset| stated.checked_sub(offset));
    // Where an image's last instruction calls what does not come back, the address is the one behind it.
    let call = match address {
        FrameAddress::Return(_) if name.is_none() && load_address.is_none() => stated.checked_sub(1),
        _ => None,
    };
    call.and_then(|call| index.find(call, None, None)).or_else(|| index.find(stated, name, load_address))
}

/// Looks addresses up among a report's images.
#[derive(Debug)]
pub struct ImageIndex<'i> {
    images: &'i [Image],
    /// Sorted, disjoint; each with the image that the addresses in it belong to.
    pieces: Vec<(AddrRange<Avma>, usize)>,
    /// Whether images lie over each other. Where none do, who claims an address is known without names.
    overlaps: bool,
    /// Made when first wanted: of most reports they never are.
    by_name: OnceLock<HashMap<&'i str, Vec<usize>>>,
    by_load_address: OnceLock<HashMap<Avma, usize>>,
}

/// A name that this many images share is no help, and going through all of them for each frame would be slow.
const MAX_NAMESAKES: usize = 16;

impl<'i> ImageIndex<'i> {
    /// Prepares look-ups among `images`.
    pub fn new(images: &'i [Image]) -> Self {
        let (pieces, overlaps) = cut(images);
        Self { images, pieces, overlaps, by_name: OnceLock::new(), by_load_address: OnceLock::new() }
    }

    /// The image that `address` lies in. Where several claim it, the one that the frame names; else the one that
    /// begins nearest below. Where none claims it, the one that begins at the load address which the frame states,
    /// then one of that name which states no end.
    pub fn find(&self, address: Avma, name: Option<&str>, load_address: Option<Avma>) -> Option<usize> {
        let named = || name.map(|name| self.named(name)).unwrap_or_default().iter().copied();
        if self.overlaps {
            let claims =
                |position: &usize| self.range(*position).is_some_and(|range| range.contains(address));
            if let Some(position) = named().find(claims) {
                return Some(position);
            }
        }
        if let Some(position) = self.piece(address) {
            return Some(position);
        }
        let open_end = |position: &usize| {
            self.images
                .get(*position)
                .is_some_and(|image| image.end_address.is_none() && image.load_address <= address)
        };
        load_address.and_then(|stated| self.beginning_at(stated)).or_else(|| named().find(open_end))
    }

    fn named(&self, name: &str) -> &[usize] {
        let by_name = self.by_name.get_or_init(|| {
            let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
            for (position, image) in real(self.images) {
                for name in names(image) {
                    let namesakes = by_name.entry(name).or_default();
                    if namesakes.len() < MAX_NAMESAKES && namesakes.last() != Some(&position) {
                        namesakes.push(position);
                    }
                }
            }
            by_name
        });
        by_name.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn beginning_at(&self, address: Avma) -> Option<usize> {
        // Of two that begin together the first in the report counts.
        let positions = || real(self.images).rev().map(|(position, image)| (image.load_address, position));
        self.by_load_address.get_or_init(|| positions().collect()).get(&address).copied()
    }

    fn range(&self, position: usize) -> Option<AddrRange<Avma>> {
        range(self.images.get(position)?)
    }

    fn piece(&self, address: Avma) -> Option<usize> {
        let behind = self.pieces.partition_point(|(range, _)| range.start() <= address);
        let (range, position) = self.pieces.get(behind.checked_sub(1)?)?;
        range.contains(address).then_some(*position)
    }
}

/// All but the fillers, with their positions.
fn real(images: &[Image]) -> impl DoubleEndedIterator<Item = (usize, &Image)> {
    images.iter().enumerate().filter(|(_, image)| !image.is_filler())
}

fn range(image: &Image) -> Option<AddrRange<Avma>> {
    let range = AddrRange::new(image.load_address, image.end_address?);
    (!range.is_empty()).then_some(range)
}

/// The names by which a frame may call this image: the file's and the bundle's.
fn names(image: &Image) -> impl Iterator<Item = &str> {
    let own = [Some(image.name.as_str()), image.bundle_id.as_deref()];
    own.into_iter().flatten().filter(|name| !name.is_empty() && *name != "???")
}

/// Cuts overlapping images into disjoint pieces; where several lie over each other, the one that begins last wins. Says,
/// too, whether any do.
fn cut(images: &[Image]) -> (Vec<(AddrRange<Avma>, usize)>, bool) {
    let mut ranges: Vec<(AddrRange<Avma>, usize)> =
        real(images).filter_map(|(position, image)| Some((range(image)?, position))).collect();
    let mut overlaps = false;
    // Of two that begin together the first in the report stays on top.
    ranges.sort_by_key(|(range, position)| (range.start(), std::cmp::Reverse(*position)));
    let mut pieces = Vec::with_capacity(ranges.len());
    // Images that the sweep is inside of, the one on top last.
    let mut inside: Vec<(AddrRange<Avma>, usize)> = Vec::new();
    let mut swept = Avma::new(0);
    for (range, position) in ranges {
        sweep(&mut inside, &mut pieces, &mut swept, range.start());
        overlaps |= !inside.is_empty();
        inside.push((range, position));
    }
    sweep(&mut inside, &mut pieces, &mut swept, Avma::new(u64::MAX));
    (pieces, overlaps)
}

/// Goes on to `until`, giving each stretch to the image on top.
fn sweep(
    inside: &mut Vec<(AddrRange<Avma>, usize)>,
    pieces: &mut Vec<(AddrRange<Avma>, usize)>,
    swept: &mut Avma,
    until: Avma,
) {
    while let Some((top, position)) = inside.last() {
        let from = top.start().max(*swept);
        let to = top.end().min(until);
        if from < to {
            pieces.push((AddrRange::new(from, to), *position));
            *swept = to;
        }
        if top.end() > until {
            break;
        }
        inside.pop();
    }
    *swept = until;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(name: &str, start: u64, end: Option<u64>) -> Image {
        Image {
            name: name.to_owned(),
            load_address: Avma::new(start),
            end_address: end.map(Avma::new),
            ..Image::default()
        }
    }

    fn at(images: &[Image], address: u64, name: Option<&str>) -> Option<String> {
        let found = ImageIndex::new(images).find(Avma::new(address), name, None)?;
        Some(images[found].name.clone())
    }

    #[test]
    fn overlapping_images_are_told_apart_by_name_then_by_start() {
        let images = [image("outer", 0x1000, Some(0x9000)), image("inner", 0x2000, Some(0x3000))];
        assert_eq!(at(&images, 0x1fff, None).unwrap(), "outer");
        assert_eq!(at(&images, 0x2000, None).unwrap(), "inner");
        assert_eq!(at(&images, 0x2fff, Some("outer")).unwrap(), "outer");
        assert_eq!(at(&images, 0x3000, None).unwrap(), "outer");
        assert_eq!(at(&images, 0x9000, None), None);
        assert_eq!(at(&images, 0xfff, None), None);
    }

    #[test]
    fn an_address_behind_an_images_last_call_is_that_images() {
        let images = vec![image("first", 0x1000, Some(0x2000)), image("second", 0x2000, Some(0x3000))];
        let frame = |address, name: Option<&str>| Frame {
            address: Some(address),
            image_name: name.map(str::to_owned),
            ..Frame::new(0)
        };
        let at = Avma::new(0x2000);
        let frames = vec![
            frame(FrameAddress::Exact(at), None),
            frame(FrameAddress::Return(at), None),
            frame(FrameAddress::Return(at), Some("second")),
            frame(FrameAddress::Return(Avma::new(0x1000)), None),
        ];
        let thread = crate::Thread { frames, ..crate::Thread::default() };
        let mut process = Process { images, threads: vec![thread], ..Process::default() };
        process.place_frames();
        let found: Vec<_> = process.threads[0].frames.iter().map(|frame| frame.image).collect();
        assert_eq!(found, [Some(1), Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn the_pieces_agree_with_going_through_all_images() {
        // A fixed pseudo-random set of overlapping ranges, compared with the plain definition.
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % 500
        };
        let images: Vec<Image> = (0..60).map(|n| image(&format!("i{n}"), next(), Some(next()))).collect();
        let index = ImageIndex::new(&images);
        for address in 0..520 {
            let expected = images
                .iter()
                .enumerate()
                .filter(|(_, i)| i.load_address.get() <= address && address < i.end_address.unwrap().get())
                .max_by_key(|(position, i)| (i.load_address, std::cmp::Reverse(*position)))
                .map(|(position, _)| position);
            assert_eq!(index.find(Avma::new(address), None, None), expected, "{address}");
        }
        assert!(index.pieces.is_sorted_by(|a, b| a.0.end() <= b.0.start()));
    }

    #[test]
    fn fillers_and_backward_ranges_hold_nothing() {
        let images = [image("???", 0, Some(u64::MAX)), image("back", 0x5000, Some(0x4000))];
        assert_eq!(at(&images, 0x4800, Some("???")), None);
        assert_eq!(at(&images, 0x5000, Some("back")), None);
    }

    #[test]
    fn images_without_an_end_are_found_by_name_or_load_address() {
        let images = [image("App", 0x1000, None), image("Lib", 0x4000, Some(0x5000))];
        assert_eq!(at(&images, 0x1800, Some("App")).unwrap(), "App");
        assert_eq!(at(&images, 0x1800, None), None);
        let index = ImageIndex::new(&images);
        let found = index.find(Avma::new(0x6000), Some("other"), Some(Avma::new(0x4000)));
        assert_eq!(found, Some(1), "the frame states Lib's load address, so Lib's end lies");
    }

    #[test]
    fn many_images_at_one_place_stay_fast() {
        let images: Vec<Image> = (0..20_000).map(|n| image("same", n, Some(1 << 40))).collect();
        let index = ImageIndex::new(&images);
        let found = (0..200_000).filter(|n| index.find(Avma::new(*n), Some("same"), None).is_some()).count();
        assert_eq!(found, 200_000);
    }
}
