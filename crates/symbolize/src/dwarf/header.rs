//! Unit headers (DWARF 5 section 7.5.1), of `.debug_info` in all versions and `.debug_types`.

use super::reader::{Encoding, Reader};
use crate::malformed::Malformed;
use gimli::constants as dw;

/// What stands before a unit's DIEs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Header {
    /// Section offset of the header, which references to DIEs of the same unit count from.
    pub(crate) offset: u64,
    /// Section offset of the root DIE.
    pub(crate) root: u64,
    /// Section offset behind the unit.
    pub(crate) end: u64,
    /// Where its abbreviations start in `.debug_abbrev`.
    pub(crate) abbrev_offset: u64,
    /// The id that joins a skeleton and its split unit (DWARF 5; older ones have an attribute), or a type's signature.
    pub(crate) id: Option<u64>,
    pub(crate) encoding: Encoding,
    pub(crate) kind: gimli::DwUt,
}

impl Header {
    /// Whether functions can live here: not in type units, nor in the partial units that others import.
    pub(crate) fn may_hold_code(&self) -> bool {
        !matches!(self.kind, dw::DW_UT_type | dw::DW_UT_split_type | dw::DW_UT_partial)
    }
}

/// One step through the units of a section.
pub(crate) enum Step {
    Unit(Header),
    /// A unit that cannot be read; the next one starts where this one says that it ends.
    Broken(Malformed),
    /// Nothing more can be found.
    End,
}

/// Walks the unit headers of a section.
pub(crate) struct Headers<'a> {
    section: &'a [u8],
    name: &'static str,
    big_endian: bool,
    /// Section offset of the next header, `None` at the end.
    next: Option<u64>,
}

impl<'a> Headers<'a> {
    /// From `start` on; `name` is `.debug_info` or `.debug_types`.
    pub(crate) fn new(section: &'a [u8], name: &'static str, start: u64, big_endian: bool) -> Self {
        Self { section, name, big_endian, next: Some(start) }
    }

    pub(crate) fn step(&mut self) -> Step {
        loop {
            let Some(start) = self.next.take() else { return Step::End };
            if let Some(step) = self.step_at(start) {
                return step;
            }
        }
    }

    /// Reads the header at `start`; `None` for padding.
    fn step_at(&mut self, start: u64) -> Option<Step> {
        let mut reader = Reader::new(self.section, start, self.big_endian);
        // Sections of relocatable and of aligned files end in a few zeros.
        if reader.remaining() < 4 {
            return Some(Step::End);
        }
        let Some((length, offset_size)) = reader.initial_length() else {
            return Some(Step::Broken(reader.malformed(self.name, "the length of a unit")));
        };
        let Some(end) = reader.offset().checked_add(length).filter(|_| length <= reader.remaining() as u64)
        else {
            let what = "a unit whose length fits into its section";
            return Some(Step::Broken(Malformed { section: self.name, offset: start, expected: what }));
        };
        self.next = Some(end);
        if length == 0 {
            self.skip_padding(end);
            return None;
        }
        let mut reader = Reader::between(self.section, reader.offset(), end, self.big_endian);
        Some(match read_rest(&mut reader, self.name, start, end, offset_size) {
            Ok(header) => Step::Unit(header),
            Err(error) => Step::Broken(error),
        })
    }

    /// Zeros between units, as some linkers leave them to align.
    fn skip_padding(&mut self, from: u64) {
        let rest = Reader::new(self.section, from, self.big_endian).bytes_left();
        let zeros = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
        self.next = Some(from + (zeros as u64 & !3));
    }
}

/// What follows the length.
fn read_rest(
    reader: &mut Reader<'_>,
    section: &'static str,
    offset: u64,
    end: u64,
    offset_size: u8,
) -> Result<Header, Malformed> {
    let version = reader.u16().ok_or_else(|| reader.malformed(section, "the version of a unit"))?;
    if !(2..=5).contains(&version) {
        let expected = "a unit of DWARF version 2, 3, 4 or 5";
        return Err(Malformed { section, offset, expected });
    }
    let start = *reader;
    let header = read_fields(reader, section == ".debug_types", version, offset_size);
    let (kind, address_size, abbrev_offset, id) =
        header.ok_or_else(|| start.malformed(section, "a whole unit header"))?;
    if !matches!(address_size, 1 | 2 | 4 | 8) {
        let expected = "a unit with addresses of 1, 2, 4 or 8 bytes";
        return Err(Malformed { section, offset, expected });
    }
    let encoding = Encoding { version, address_size, offset_size };
    Ok(Header { offset, root: reader.offset(), end, abbrev_offset, id, encoding, kind })
}

type Fields = (gimli::DwUt, u8, u64, Option<u64>);

fn read_fields(reader: &mut Reader<'_>, types: bool, version: u16, offset_size: u8) -> Option<Fields> {
    if version < 5 {
        let abbrev_offset = reader.uint(offset_size)?;
        let address_size = reader.u8()?;
        if !types {
            return Some((dw::DW_UT_compile, address_size, abbrev_offset, None));
        }
        let signature = reader.u64()?;
        reader.uint(offset_size)?;
        return Some((dw::DW_UT_type, address_size, abbrev_offset, Some(signature)));
    }
    let kind = gimli::DwUt(reader.u8()?);
    let address_size = reader.u8()?;
    let abbrev_offset = reader.uint(offset_size)?;
    let id = match kind {
        dw::DW_UT_skeleton | dw::DW_UT_split_compile => Some(reader.u64()?),
        dw::DW_UT_type | dw::DW_UT_split_type => {
            let signature = reader.u64()?;
            reader.uint(offset_size)?;
            Some(signature)
        }
        _ => None,
    };
    Some((kind, address_size, abbrev_offset, id))
}
