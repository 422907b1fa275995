//! Split DWARF: skeleton units in the linked file, all else in a `.dwo` each or one `.dwp` for all
//! (DWARF 5 section 7.3, and GNU's extension to DWARF 4 before it).

use super::file::DwarfFile;
use super::unit::{Body, Unit};
use super::view::View;
use std::sync::OnceLock;

/// The `.dwp` of a file: not asked for yet, here, or known not to be had.
#[derive(Default)]
pub(crate) struct Package<'d> {
    pub(crate) file: OnceLock<Option<Box<DwarfFile<'d>>>>,
}

/// The split unit of a skeleton.
pub(crate) struct SplitUnit<'d> {
    /// The `.dwo` file; `None` where the unit stands in the linked file's package.
    file: Option<DwarfFile<'d>>,
    unit: Unit<'d>,
    body: Body,
}

impl<'d> SplitUnit<'d> {
    /// The split unit with the addresses of its skeleton.
    pub(crate) fn view<'a>(&'a self, skeleton: View<'a, 'd>) -> Option<View<'a, 'd>> {
        let file = match &self.file {
            Some(file) => file,
            None => skeleton.file.package.file.get()?.as_deref()?,
        };
        Some(View { file, main: skeleton.file, unit: &self.unit, body: &self.body })
    }
}
