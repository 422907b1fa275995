//! What of the headers the other tables of a file are found by.

use backtrail_core::{AddrRange, Svma};
use object::elf::{ProgramType, SectionType};

use super::header::Header;
use crate::section::FileRange;

/// What of the headers the lazy parts need again.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(super) header: Header,
    pub(super) programs: Vec<Program>,
    /// In step with the sections.
    pub(super) raw_sections: Vec<RawSection>,
}

/// A program header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) kind: ProgramType,
    pub(super) address: AddrRange<Svma>,
    pub(super) file: FileRange,
    pub(super) align: u64,
    pub(super) readable: bool,
    pub(super) writable: bool,
    pub(super) executable: bool,
}

/// What a section header says to linkers.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawSection {
    pub(super) kind: SectionType,
    pub(super) link: u32,
    pub(super) info: u32,
}
