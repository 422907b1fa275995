//! Segments (what a loader maps) and sections (what a linker joined).

use std::borrow::Cow;

use backtrail_core::{AddrRange, FileOffset, Svma};

/// Bytes of a file: positions count from the start of the slice unless said otherwise.
pub type FileRange = AddrRange<FileOffset>;

/// What a loader may map: a Mach-O segment, or an ELF program header of type `LOAD`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Segment<'d> {
    /// Mach-O's name (`__TEXT`); `LOAD` for ELF. Empty for the one segment of a Mach-O `.o`.
    pub name: Cow<'d, str>,
    /// Where it is mapped, before any bias.
    pub address: AddrRange<Svma>,
    /// Its bytes in the slice; empty for dSYM segments and where all is zero-filled. Files that were cut off may
    /// state more than there is.
    pub file: FileRange,
    /// Whether it is mapped readable.
    pub readable: bool,
    /// Whether it is mapped writable.
    pub writable: bool,
    /// Whether it is mapped executable.
    pub executable: bool,
}

/// A section as its header states it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Section<'d> {
    /// `__text`, `.text`; as the file spells it.
    pub name: Cow<'d, str>,
    /// The Mach-O segment that it belongs to (`__TEXT`); empty for ELF.
    pub segment: Cow<'d, str>,
    /// Its addresses. Empty at zero for ELF sections that are not mapped; from zero on for every section of an ELF
    /// `.o`.
    pub address: AddrRange<Svma>,
    /// Its bytes in the slice; `None` where the file has none for it (zero-fill; code of a debug companion).
    pub file: Option<FileRange>,
    /// Whether it holds instructions.
    pub is_code: bool,
    /// Whether it is part of the running image, in contrast to debug info and other notes for tools.
    pub is_loaded: bool,
    /// Whether its bytes are compressed (`SHF_COMPRESSED`, `.zdebug_…`).
    /// [`Object::section_data`](crate::Object::section_data) undoes it.
    pub is_compressed: bool,
    /// Its number among the sections of its object.
    pub(crate) index: usize,
}

impl Section<'_> {
    /// Whether the file has no bytes for this section: zero-fill, or the emptied code of a debug companion.
    pub fn is_no_bits(&self) -> bool {
        self.file.is_none()
    }

    /// Whether `wanted` means this section: its own name, or the ELF spelling of a DWARF section (`.debug_info`)
    /// for Mach-O's (`__debug_info`, cut at 16 bytes) and the old compressed ones (`.zdebug_info`).
    pub fn is_named(&self, wanted: &str) -> bool {
        if self.name == wanted {
            return true;
        }
        let Some(stem) = wanted.strip_prefix('.') else { return false };
        let own = &*self.name;
        if let Some(name) = own.strip_prefix("__") {
            return is_cut_name(name, stem)
                || name.strip_prefix('z').is_some_and(|name| is_cut_name(name, stem));
        }
        own.strip_prefix(".z").is_some_and(|name| name == stem && name.starts_with("debug_"))
    }
}

/// Mach-O names have 16 bytes: `.debug_str_offsets` is `__debug_str_offs`.
fn is_cut_name(name: &str, wanted: &str) -> bool {
    const ROOM: usize = 16 - "__".len();
    name == wanted
        || (wanted.len() > name.len() && wanted.starts_with(name) && (ROOM - 1..=ROOM).contains(&name.len()))
}

/// Finds the section of an address.
pub(crate) struct SectionMap {
    /// Start, end, index; ascending.
    ranges: Vec<(Svma, Svma, usize)>,
}

impl SectionMap {
    pub(crate) fn new(sections: &[Section<'_>]) -> Self {
        let mapped = sections
            .iter()
            .enumerate()
            .filter(|(_, section)| section.is_loaded && !section.address.is_empty());
        let mut ranges: Vec<_> =
            mapped.map(|(index, section)| (section.address.start(), section.address.end(), index)).collect();
        ranges.sort_unstable();
        Self { ranges }
    }

    pub(crate) fn find(&self, address: Svma) -> Option<usize> {
        let after = self.ranges.partition_point(|(start, _, _)| *start <= address);
        let (_, end, index) = self.ranges.get(after.checked_sub(1)?)?;
        (address < *end).then_some(*index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &'static str) -> Section<'static> {
        Section {
            name: name.into(),
            segment: "".into(),
            address: AddrRange::from_size(Svma::new(0), 0),
            file: None,
            is_code: false,
            is_loaded: false,
            is_compressed: false,
            index: 0,
        }
    }

    #[test]
    fn one_name_finds_every_spelling() {
        for (own, wanted) in [
            (".debug_info", ".debug_info"),
            ("__debug_info", ".debug_info"),
            (".zdebug_info", ".debug_info"),
            ("__zdebug_info", ".debug_info"),
            ("__debug_str_offs", ".debug_str_offsets"),
            ("__zdebug_str_off", ".debug_str_offsets"),
            ("__debug_line_str", ".debug_line_str"),
            ("__text", ".text"),
            ("__eh_frame", ".eh_frame"),
        ] {
            assert!(named(own).is_named(wanted), "{own} {wanted}");
        }
        for (own, wanted) in [
            ("__debug_str", ".debug_str_offsets"),
            ("__debug_line", ".debug_line_str"),
            ("__debug_line_str", ".debug_line"),
            (".ztext", ".text"),
            (".debug_info.dwo", ".debug_info"),
            (".text", "__text"),
        ] {
            assert!(!named(own).is_named(wanted), "{own} {wanted}");
        }
    }
}
