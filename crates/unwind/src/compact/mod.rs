//! Apple's compact unwind information.

use crate::row::{Found, Miss};
use crate::sections::Sections;
use backtrail_core::Svma;

/// `__unwind_info` of one file.
#[derive(Clone, Copy, Debug)]
pub struct Compact<'d> {
    _sections: core::marker::PhantomData<&'d [u8]>,
}

/// What compact unwind says about an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompactFound {
    /// A row that holds in the function's body.
    Row(Found),
    /// The FDE at this offset in `__eh_frame` says it.
    EhFrame(u32),
}

impl<'d> Compact<'d> {
    /// The file's table; `None` where it has none.
    pub fn new(_: &Sections<'d>) -> Option<Self> {
        None
    }

    /// The rules at `at`.
    pub fn find(&self, _at: Svma) -> Result<CompactFound, Miss> {
        Err(Miss::NotCovered)
    }

    /// The addresses where the rows may change, for compiling: the start of every function entry, ascending.
    pub fn starts(&self) -> impl Iterator<Item = Svma> + '_ {
        core::iter::empty()
    }
}
