//! Random addresses of code, the same for the same seed.

use crate::Options;
use backtrail_core::{AddrRange, Svma};
use backtrail_object::Object;

pub(crate) fn addresses(objects: &[Object<'_>], options: &Options) -> Vec<u64> {
    let sections = objects.iter().flat_map(Object::sections);
    let code = sections.filter(|section| section.is_code && section.is_loaded);
    // Functions live in .text, .text.hot, .init.text, __text.
    let code = code.filter(|section| options.all_code || section.name.contains("text"));
    let code: Vec<AddrRange<Svma>> = code.map(|section| section.address).collect();
    let total: u64 = code.iter().map(|range| range.size()).sum();
    let mut random = SplitMix(options.seed);
    (0..options.count).map(|_| at(&code, random.next() % total.max(1))).collect()
}

/// The byte with this number among those of the ranges.
fn at(ranges: &[AddrRange<Svma>], mut number: u64) -> u64 {
    for range in ranges {
        if number < range.size() {
            return range.start().get() + number;
        }
        number -= range.size();
    }
    0
}

/// Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
