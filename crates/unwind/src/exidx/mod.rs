//! ARM's exception index tables (EHABI32).

use crate::row::{Found, Miss};
use crate::sections::Sections;
use backtrail_core::Svma;

/// `.ARM.exidx` and `.ARM.extab` of one file.
#[derive(Clone, Copy, Debug)]
pub struct Exidx<'d> {
    _sections: core::marker::PhantomData<&'d [u8]>,
}

impl<'d> Exidx<'d> {
    /// The file's tables; `None` where it has none.
    pub fn new(_: &Sections<'d>) -> Option<Self> {
        None
    }

    /// The rules at `at` (without the Thumb bit).
    pub fn find(&self, _at: Svma) -> Result<Found, Miss> {
        Err(Miss::NotCovered)
    }

    /// The addresses where the rows may change, for compiling: the start of every entry, ascending.
    pub fn starts(&self) -> impl Iterator<Item = Svma> + '_ {
        core::iter::empty()
    }
}
