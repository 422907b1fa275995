//! A place in code, as the analyses of all architectures get it.

use crate::sections::Section;
use backtrail_core::Svma;

/// A place in code, for reading the instructions around it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code<'d> {
    /// The executable section around `at`.
    pub(crate) text: Section<'d>,
    /// The instruction that would run next; on 32-bit ARM without the Thumb bit.
    pub(crate) at: Svma,
    /// The first instruction of the function, where a table told it.
    pub(crate) function: Option<Svma>,
    /// Whether `at` is Thumb code.
    pub(crate) thumb: bool,
    /// Whether DWARF has a row for `at`: then only what is certain counts.
    pub(crate) is_described: bool,
}

impl<'d> Code<'d> {
    /// The bytes from `at` on.
    pub(crate) fn ahead(&self) -> &'d [u8] {
        self.text.from(self.at).unwrap_or_default()
    }

    /// The bytes from the function's start (or, unknown, the section's) up to `at`.
    pub(crate) fn behind(&self) -> &'d [u8] {
        let section = self.text.up_to(self.at).unwrap_or_default();
        let skip = self.function.and_then(|start| start.offset_from(self.text.start)).unwrap_or(0);
        usize::try_from(skip).ok().and_then(|skip| section.get(skip..)).unwrap_or_default()
    }
}
