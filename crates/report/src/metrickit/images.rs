//! Images from frames: MetricKit lists none.
//!
//! `offsetIntoBinaryTextSegment` has two meanings. It is what its name says in most payloads; in crash payloads of some
//! systems it is the load address. Which one is decided for each image from all of its frames: load addresses lie on page
//! boundaries, and are the same for all frames of an image.

use backtrail_core::{Avma, ImageId};
use backtrail_model::Image;
use std::collections::HashMap;

/// A frame as the payload states it.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub(super) id: Option<ImageId>,
    pub(super) name: Option<String>,
    pub(super) address: Option<u64>,
    pub(super) offset: Option<u64>,
}

/// Images of all of Apple's systems begin on boundaries of at least this size.
const PAGE: u64 = 0x1000;

/// 64-bit processes have nothing mapped below; no segment of code is so large.
const FOUR_GIGABYTES: u64 = 1 << 32;

/// The images that frames lie in.
#[derive(Debug, Default)]
pub(super) struct Images {
    pub(super) list: Vec<Image>,
    by_id: HashMap<ImageId, usize>,
    /// Images whose frames state offsets that fit no load address.
    pub(super) odd: Vec<String>,
}

impl Images {
    /// Works the images out from all frames of a process.
    pub(super) fn of(frames: &[Stated]) -> Self {
        let mut images = Self::default();
        let mut pairs: Vec<Vec<(u64, u64)>> = Vec::new();
        for frame in frames {
            let Some(id) = frame.id.filter(|id| !id.is_nil()) else { continue };
            let position = *images.by_id.entry(id).or_insert(pairs.len());
            if position == pairs.len() {
                let name = frame.name.clone().unwrap_or_default();
                images.list.push(Image { name, id: Some(id), ..Image::default() });
                pairs.push(Vec::new());
            }
            let pair = frame.address.filter(|address| *address > 0).zip(frame.offset);
            if let (Some(pairs), Some(pair)) = (pairs.get_mut(position), pair) {
                pairs.push(pair);
            }
        }
        for (image, pairs) in images.list.iter_mut().zip(&pairs) {
            match load_address(pairs) {
                Some((base, is_sure)) => {
                    image.load_address = Avma::new(base);
                    images.odd.extend((!is_sure).then(|| image.name.clone()));
                }
                None => images.odd.extend((!pairs.is_empty()).then(|| image.name.clone())),
            }
        }
        images
    }

    pub(super) fn position(&self, id: ImageId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }
}

/// The load address that an image's pairs of address and offset tell, and whether all agree.
fn load_address(pairs: &[(u64, u64)]) -> Option<(u64, bool)> {
    let (_, first) = pairs.first()?;
    let all_same = pairs.iter().all(|(_, offset)| offset == first);
    let several = pairs.iter().any(|(address, _)| Some(address) != pairs.first().map(|(address, _)| address));
    let on_page = |base: u64| base.is_multiple_of(PAGE);
    let is_below = pairs.iter().all(|(address, _)| first <= address);
    // The same number in frames of different places is no offset.
    if all_same && on_page(*first) && is_below && *first > 0 && (several || *first >= FOUR_GIGABYTES) {
        return Some((*first, true));
    }
    let bases = pairs.iter().filter_map(|(address, offset)| address.checked_sub(*offset));
    let mut votes: HashMap<u64, usize> = HashMap::new();
    for base in bases.filter(|base| on_page(*base)) {
        *votes.entry(base).or_default() += 1;
    }
    let (base, count) = votes.into_iter().max_by_key(|(base, count)| (*count, std::cmp::Reverse(*base)))?;
    Some((base, count == pairs.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_meanings_of_the_offset() {
        // Offsets, as the name says.
        assert_eq!(
            load_address(&[(0x1_0000_5abc, 0x5abc), (0x1_0000_6004, 0x6004)]),
            Some((0x1_0000_0000, true))
        );
        // The load address, as in crash payloads of some systems.
        let base = 0x1_0000_0000;
        assert_eq!(load_address(&[(0x1_0000_5abc, base), (0x1_0000_6004, base)]), Some((base, true)));
        assert_eq!(load_address(&[(0x1_0000_5abc, base)]), Some((base, true)));
        // 32-bit watches: the same small number at different places.
        assert_eq!(load_address(&[(0x5abc, 0x4000), (0x6004, 0x4000)]), Some((0x4000, true)));
        // One frame whose offset is a page's begin is an offset.
        assert_eq!(load_address(&[(0x1_0000_4000, 0x4000)]), Some((base, true)));
        // Made by hand: one of two fits.
        assert_eq!(load_address(&[(0x1_0000_5abc, 0x5abc), (0x1_0000_6004, 0x17)]), Some((base, false)));
        assert_eq!(load_address(&[(0x12345, 123)]), None);
        assert_eq!(load_address(&[]), None);
    }
}
