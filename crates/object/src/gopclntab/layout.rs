//! The header: which version, and where the parts begin.

use super::Broken;
use super::bytes::Bytes;

/// Versions of the table; later ones are greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Version {
    Go12,
    Go116,
    Go118,
    Go120,
}

/// Where the parts of a table begin, as offsets in it.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) version: Version,
    pub(super) big_endian: bool,
    /// Bytes of an address.
    pub(super) pointer_size: u8,
    /// What steps between addresses are counted in.
    pub(super) quantum: u8,
    /// How many functions there are.
    pub(super) functions: u64,
    /// Bytes of the two numbers of an entry.
    pub(super) entry_size: u8,
    entries: u64,
    /// Where the header says that the text starts; zero where that is not known before the program is loaded.
    pub(super) stated_text: u64,
    /// The names of functions.
    pub(super) names: u64,
    /// Lists of files, one for each unit.
    pub(super) units: u64,
    /// The names of files; before 1.16 the list of their offsets.
    pub(super) files: u64,
    /// Tables from addresses to values.
    pub(super) values: u64,
    /// What the offsets of functions count from.
    pub(super) data: u64,
}

const MAGICS: [(u32, Version); 4] = [
    (0xffff_fffb, Version::Go12),
    (0xffff_fffa, Version::Go116),
    (0xffff_fff0, Version::Go118),
    (0xffff_fff1, Version::Go120),
];

impl Layout {
    pub(super) fn read(bytes: &[u8], big_endian: bool) -> Result<Self, Broken> {
        let broken = |offset, expected| Broken { offset, expected };
        let table = Bytes { data: bytes, is_big: big_endian };
        let magic = table.number(0, 4);
        let version = MAGICS.iter().find(|(known, _)| Some(u64::from(*known)) == magic);
        let Some((_, version)) = version else {
            return Err(broken(0, "the magic of Go 1.2, 1.16, 1.18 or 1.20"));
        };
        if table.number(4, 2) != Some(0) {
            return Err(broken(4, "two zeros"));
        }
        let byte = |offset| table.number(offset, 1).and_then(|byte| u8::try_from(byte).ok());
        let quantum = byte(6).filter(|quantum| matches!(quantum, 1 | 2 | 4));
        let quantum = quantum.ok_or(broken(6, "steps of 1, 2 or 4 bytes"))?;
        let pointer_size = byte(7).filter(|size| matches!(size, 4 | 8));
        let pointer_size = pointer_size.ok_or(broken(7, "addresses of 4 or 8 bytes"))?;
        let word = |index: u64| table.number(8 + index * u64::from(pointer_size), pointer_size);
        let words: Option<Vec<u64>> = (0..8).map(word).collect();
        let words = words.ok_or(broken(8, "a whole header"))?;
        let layout = Self::of_words(*version, big_endian, pointer_size, quantum, &words);
        let mut layout = layout.ok_or(broken(8, "eight words"))?;
        let size = u64::from(layout.entry_size);
        let end =
            layout.functions.checked_mul(2 * size).and_then(|all| all.checked_add(layout.entries + size));
        let Some(end) = end.filter(|end| layout.functions > 0 && *end <= bytes.len() as u64) else {
            return Err(broken(8, "functions, and room for them"));
        };
        if layout.version == Version::Go12 {
            layout.files = table.number(end, 4).unwrap_or(u64::MAX);
        }
        Ok(layout)
    }

    fn of_words(
        version: Version,
        big_endian: bool,
        pointer_size: u8,
        quantum: u8,
        words: &[u64],
    ) -> Option<Self> {
        let [functions, _files, third, fourth, fifth, sixth, seventh, eighth] = *words else { return None };
        let (stated_text, [names, units, files, values, data]) = match version {
            Version::Go12 => (0, [0; 5]),
            Version::Go116 => (0, [third, fourth, fifth, sixth, seventh]),
            Version::Go118 | Version::Go120 => (third, [fourth, fifth, sixth, seventh, eighth]),
        };
        let entries = if version == Version::Go12 { 8 + u64::from(pointer_size) } else { data };
        // No table has that many bytes, and sums with less than that do not overflow.
        let is_sane = [names, units, files, values, data].iter().all(|offset| *offset < 1 << 40);
        let functions = if is_sane { functions } else { 0 };
        let entry_size = if version >= Version::Go118 { 4 } else { pointer_size };
        Some(Self {
            version,
            big_endian,
            pointer_size,
            quantum,
            functions,
            entry_size,
            entries: if is_sane { entries } else { 0 },
            stated_text,
            names,
            units,
            files,
            values,
            data,
        })
    }

    /// Where the entry of a function is.
    pub(super) fn entry_offset(&self, index: u64) -> u64 {
        let size = 2 * u64::from(self.entry_size);
        self.entries.saturating_add(index.saturating_mul(size))
    }

    /// Whether entries are offsets from the text's start.
    pub(super) fn has_offsets(&self) -> bool {
        self.version >= Version::Go118
    }

    /// Whether each unit has its own list of files.
    pub(super) fn has_units(&self) -> bool {
        self.version >= Version::Go116
    }

    /// Where the field of a function is that has this number in Go's sources; the first, the entry, is an address before 1.18.
    pub(super) fn field_offset(&self, number: u64) -> u64 {
        let first = if self.has_offsets() { 4 } else { u64::from(self.pointer_size) };
        first + 4 * (number - 1)
    }

    /// The number of the field behind the last one that all functions have. The last byte before it counts what follows the
    /// numbers of the tables.
    pub(super) fn first_table_field(&self) -> u64 {
        match self.version {
            Version::Go12 => 9,
            Version::Go116 | Version::Go118 => 10,
            // With the line that the function starts in.
            Version::Go120 => 11,
        }
    }
}
