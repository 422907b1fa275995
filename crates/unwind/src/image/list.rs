//! Rules found before by anybody who walks the same images.

use super::{ModuleMap, PlacedModule, bases};
use crate::rules::Packed;
use alloc::boxed::Box;
use alloc::vec::Vec;
use backtrail_core::Avma;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Compiled images in a list of their own, with what walks over it have found: a rule that one walk has looked up is at
/// hand for the next, whichever thread that runs on. Meant for lists that stay for a while; costs 32 KB.
pub struct ModuleList<'a> {
    sorted: Vec<PlacedModule<'a>>,
    bases: u16,
    notes: Box<[AtomicU64]>,
}

/// A word of `notes` is an address's upper bits, then the number of its image, then that of its rule plus one; its lower
/// bits are where the word is. One load or store takes all of it, so that no lock is needed, and nothing else has to be
/// seen before it: images and rules do not change.
const PLACE_BITS: u32 = 12;
const IMAGE_BITS: u32 = 10;
const RULE_BITS: u32 = 19;
/// Above lies no user code but with 57-bit or 48-bit addresses, which is looked up each time.
const ADDRESS_BITS: u32 = 64 - IMAGE_BITS - RULE_BITS + PLACE_BITS;

impl<'a> ModuleList<'a> {
    /// A list of `images`, which this sorts by address.
    pub fn new(mut images: Vec<PlacedModule<'a>>) -> Self {
        images.sort_unstable_by_key(|image| image.range.start());
        let bases = bases(&images);
        let notes = core::iter::repeat_with(|| AtomicU64::new(0)).take(1 << PLACE_BITS).collect();
        Self { sorted: images, bases, notes }
    }

    /// The images, to be walked over.
    ///
    /// # Signal safety
    ///
    /// Safe, and so are walks over them.
    #[inline]
    pub fn images(&self) -> ModuleMap<'_> {
        ModuleMap::with_notes(&self.sorted, self.bases, Notes(&self.notes))
    }
}

impl core::fmt::Debug for ModuleList<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} images", self.sorted.len())
    }
}

/// Where it is noted which rule holds at an address.
#[derive(Clone, Copy)]
pub(crate) struct Notes<'a>(&'a [AtomicU64]);

impl<'a> Notes<'a> {
    /// Nothing is noted.
    pub(crate) const NOWHERE: Self = Self(&[]);

    /// The word for an address, and what of the address is in it.
    #[inline]
    fn word(self, lookup: Avma) -> Option<(&'a AtomicU64, u64)> {
        let address = lookup.get();
        let upper = address >> PLACE_BITS;
        let spread = upper ^ (upper >> PLACE_BITS) ^ (upper >> (2 * PLACE_BITS));
        let place = (address ^ spread) as usize % (1 << PLACE_BITS);
        (address >> ADDRESS_BITS == 0).then_some((self.0.get(place)?, upper << (IMAGE_BITS + RULE_BITS)))
    }

    /// The numbers of image and rule.
    #[inline]
    fn get(self, lookup: Avma) -> Option<(usize, usize)> {
        let (word, upper) = self.word(lookup)?;
        let numbers = word.load(Relaxed) ^ upper;
        if numbers >> (IMAGE_BITS + RULE_BITS) != 0 {
            return None;
        }
        let rule = numbers % (1 << RULE_BITS);
        Some(((numbers >> RULE_BITS) as usize, rule.checked_sub(1)? as usize))
    }

    fn put(self, lookup: Avma, image: usize, rule: usize) {
        let fits = image < 1 << IMAGE_BITS && rule + 1 < 1 << RULE_BITS;
        if let Some((word, upper)) = self.word(lookup).filter(|_| fits) {
            word.store(upper | (image as u64) << RULE_BITS | (rule as u64 + 1), Relaxed);
        }
    }
}

impl core::fmt::Debug for Notes<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} places", self.0.len())
    }
}

impl<'a> ModuleMap<'a> {
    /// The rule at `lookup` as a walk before has noted it.
    #[inline]
    pub(crate) fn noted(&self, lookup: Avma) -> Option<&'a Packed> {
        let (image, rule) = self.notes().get(lookup)?;
        self.all().get(image)?.rules?.numbered(rule)
    }

    /// Notes the rule at `lookup`, where it is as good for return addresses as for exact ones.
    pub(crate) fn note(&self, lookup: Avma, image: &PlacedModule<'_>, rule: &Packed) {
        let distance = core::ptr::from_ref(image).addr().checked_sub(self.all().as_ptr().addr());
        let number = distance.map(|distance| distance / size_of::<PlacedModule<'_>>());
        let number =
            number.filter(|number| self.all().get(*number).is_some_and(|it| core::ptr::eq(it, image)));
        let rule = image.rules.and_then(|rules| rules.number(rule));
        if let (Some(number), Some(rule), None) = (number, rule, image.module) {
            self.notes().put(lookup, number, rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn what_is_noted_is_found_under_its_address_alone() {
        let words: Vec<AtomicU64> = (0..1 << PLACE_BITS).map(|_| AtomicU64::new(0)).collect();
        let notes = Notes(&words);
        let at = Avma::new(0x7f12_3456_789a);
        assert_eq!(notes.get(at), None);
        assert_eq!(notes.get(Avma::new(0)), None);
        for (image, rule) in [(0, 0), (1023, 524_286), (3, 17)] {
            notes.put(at, image, rule);
            assert_eq!(notes.get(at), Some((image, rule)));
        }
        // Numbers that are too large, an address that is: what was there stays.
        notes.put(at, 1024, 0);
        notes.put(at, 0, 524_287);
        notes.put(Avma::new(at.get() | 1 << 63), 1, 1);
        assert_eq!(notes.get(at), Some((3, 17)));
        let others = (0..64).map(|bit| Avma::new(at.get() ^ 1 << bit));
        assert_eq!(others.filter_map(|other| notes.get(other)).collect::<Vec<_>>(), vec![]);
        // Another address in the same place takes it over.
        let place = |at: Avma| notes.word(at).map(|(word, _)| core::ptr::from_ref(word));
        let twin = (1..).map(|page| Avma::new(at.get() + (page << PLACE_BITS)));
        let twin = twin.flat_map(|page| (0..4096).map(move |byte| Avma::new(page.get() ^ byte)));
        let twin = twin.into_iter().find(|twin| place(*twin) == place(at)).unwrap_or_default();
        notes.put(twin, 5, 6);
        assert_eq!((notes.get(at), notes.get(twin)), (None, Some((5, 6))));
    }
}
