//! Where images lie in the target.

use crate::{Module, Rules};
use backtrail_core::{AddrRange, Avma, Bias};

/// One image, or one executable mapping that belongs to none.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// The addresses that it occupies in the target.
    pub range: AddrRange<Avma>,
    /// From the target's addresses to the file's.
    pub bias: Bias,
    /// How its frames are unwound.
    pub unwinding: Unwinding<'a>,
}

/// What is known about an image's frames.
#[derive(Clone, Copy, Debug)]
pub enum Unwinding<'a> {
    /// Its tables and its code.
    Module(&'a Module<'a>),
    /// Its compiled rules, and no code.
    Rules(&'a Rules),
    /// Nothing but that code runs here: made at run time, or a file that was not found.
    Unknown,
}

/// A target's images, found by address. No lookup allocates.
#[derive(Clone, Copy, Debug)]
pub struct Images<'a> {
    sorted: &'a [Image<'a>],
}

impl<'a> Images<'a> {
    /// `images`, which this sorts by address. Of overlapping ones the one that starts last wins.
    pub fn new(images: &'a mut [Image<'a>]) -> Self {
        images.sort_unstable_by_key(|image| image.range.start());
        Self { sorted: images }
    }

    /// The image at the address.
    #[inline]
    pub fn at(&self, address: Avma) -> Option<&'a Image<'a>> {
        let after = self.sorted.partition_point(|image| image.range.start() <= address);
        self.sorted.get(..after)?.last().filter(|image| image.range.contains(address))
    }

    /// All of them, by address.
    pub fn all(&self) -> &'a [Image<'a>] {
        self.sorted
    }
}
