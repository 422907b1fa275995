//! The sections of one file's DWARF, fetched when they are first needed.

use crate::parallel;
use std::borrow::Cow;
use std::sync::OnceLock;

/// A section that lookups read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SectionId {
    Abbrev,
    Addr,
    Aranges,
    CuIndex,
    Info,
    Line,
    LineStr,
    Ranges,
    RngLists,
    Str,
    StrOffsets,
}

const COUNT: usize = 11;

/// What is read by lookups in a file as gcc and clang make it, what takes longest to decompress first.
const READ_BY_LOOKUPS: [SectionId; 10] = [
    SectionId::Info,
    SectionId::Str,
    SectionId::Line,
    SectionId::RngLists,
    SectionId::Ranges,
    SectionId::Abbrev,
    SectionId::Addr,
    SectionId::StrOffsets,
    SectionId::Aranges,
    SectionId::LineStr,
];

impl SectionId {
    /// The ELF name; Mach-O's `__debug_info` is the same section.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Abbrev => ".debug_abbrev",
            Self::Addr => ".debug_addr",
            Self::Aranges => ".debug_aranges",
            Self::CuIndex => ".debug_cu_index",
            Self::Info => ".debug_info",
            Self::Line => ".debug_line",
            Self::LineStr => ".debug_line_str",
            Self::Ranges => ".debug_ranges",
            Self::RngLists => ".debug_rnglists",
            Self::Str => ".debug_str",
            Self::StrOffsets => ".debug_str_offsets",
        }
    }

    /// The name in split DWARF; `None` for what only ever stands in the linked file, or has one name in both.
    fn split_name(self) -> Option<&'static str> {
        match self {
            Self::Abbrev => Some(".debug_abbrev.dwo"),
            Self::Info => Some(".debug_info.dwo"),
            Self::Line => Some(".debug_line.dwo"),
            Self::RngLists => Some(".debug_rnglists.dwo"),
            Self::Str => Some(".debug_str.dwo"),
            Self::StrOffsets => Some(".debug_str_offsets.dwo"),
            Self::CuIndex => Some(".debug_cu_index"),
            Self::Addr | Self::Aranges | Self::LineStr | Self::Ranges => None,
        }
    }
}

/// Where sections come from: an object file, or plain slices.
pub(crate) trait SectionSource<'d>: Send + Sync {
    /// The section's bytes, decompressed; empty where there is no such section. `Err` says why it cannot be read.
    fn section(&self, name: &str) -> Result<Cow<'d, [u8]>, String>;

    /// Whether reading the section means decompressing it.
    fn is_compressed(&self, name: &str) -> bool;
}

/// One file's sections.
pub(crate) struct Sections<'d> {
    source: Box<dyn SectionSource<'d> + 'd>,
    cells: [OnceLock<Section<'d>>; COUNT],
    decompressed: OnceLock<()>,
    /// Whether this is a `.dwo` or `.dwp` file, whose sections have names of their own.
    pub(crate) split: bool,
    pub(crate) big_endian: bool,
}

struct Section<'d> {
    bytes: Cow<'d, [u8]>,
    error: Option<String>,
}

impl<'d> Sections<'d> {
    pub(crate) fn new(source: Box<dyn SectionSource<'d> + 'd>, split: bool, big_endian: bool) -> Self {
        Self {
            source,
            cells: [const { OnceLock::new() }; COUNT],
            decompressed: OnceLock::new(),
            split,
            big_endian,
        }
    }

    /// The section's bytes; empty where it is missing or cannot be read.
    pub(crate) fn get(&self, id: SectionId) -> &[u8] {
        self.cell(id).map_or(&[], |section| &section.bytes)
    }

    /// Decompresses, each on a core of its own, the sections that a lookup reads. Without it they are decompressed one
    /// after the other, when they are first read.
    pub(crate) fn decompress(&self) {
        self.decompressed.get_or_init(|| {
            let is_compressed = |id: &SectionId| {
                let name = if self.split { id.split_name() } else { Some(id.name()) };
                name.is_some_and(|name| self.source.is_compressed(name))
            };
            let compressed: Vec<_> = READ_BY_LOOKUPS.into_iter().filter(is_compressed).collect();
            parallel::map(&compressed, 1, |_, id| _ = self.get(*id));
        });
    }

    /// Why sections that were asked for could not be read.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().filter_map(|cell| cell.get()?.error.as_deref())
    }

    fn cell(&self, id: SectionId) -> Option<&Section<'d>> {
        let cell = self.cells.get(id as usize)?;
        Some(cell.get_or_init(|| {
            let name = if self.split { id.split_name() } else { Some(id.name()) };
            match name.map(|name| self.source.section(name)) {
                Some(Ok(bytes)) => Section { bytes, error: None },
                Some(Err(error)) => Section { bytes: Cow::Borrowed(&[]), error: Some(error) },
                None => Section { bytes: Cow::Borrowed(&[]), error: None },
            }
        }))
    }
}
