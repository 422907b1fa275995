//! Abbreviations compiled for one walk over all DIEs of a unit, as a conversion does it: what holds no functions is
//! passed over, by `DW_AT_sibling` where that is stated, and of the rest only what a table keeps is read.

use super::abbrev::{Abbrev, AbbrevTable};
use super::fields::{Fields, Role, Slot};
use super::reader::{Encoding, Reader};
use super::reading::{Reading, Readings};
use super::skip::{SKIP_BLOCK, Skip, is_count, run_skip};
use super::stated::Stated;
use gimli::constants as dw;
use std::collections::HashMap;

/// One abbreviation, compiled.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) role: Role,
    pub(crate) has_children: bool,
    /// Whether the DIE states a name itself, so that its origin's is not the whole answer.
    pub(crate) is_named: bool,
    /// How many bytes before `DW_AT_sibling`, where that is a number and the sibling stated in 4 bytes; [`VARIES`]
    /// elsewhere.
    sibling_at: u16,
    /// Bytes of all attributes; [`VARIES`] where the DIE decides.
    size: u16,
    skips: (u32, u16),
    fields: Reading,
    /// Of functions and calls.
    names: Option<Reading>,
}

const VARIES: u16 = u16::MAX;

/// How a DIE that says nothing is passed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quick {
    pub(crate) way: Way,
    /// Whether the bytes are followed by a block: all bits or none.
    pub(crate) block: u8,
    /// Bytes; of a sibling, those before it is stated.
    pub(crate) before: u16,
    /// Bytes behind the block; of a sibling, how far away it is at the least.
    pub(crate) after: u16,
}

/// The kinds of [`Quick`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// It is not: it has to be looked at.
    Look,
    /// Bytes, perhaps a block, bytes.
    Bytes,
    /// One attribute after the other.
    Steps,
    /// With all that is in it, to the sibling that it states.
    Sibling,
}

impl Quick {
    const LOOK: Self = Self { way: Way::Look, block: 0, before: 0, after: 0 };

    fn bytes(before: u16, block: u8, after: u16) -> Self {
        Self { way: Way::Bytes, block, before, after }
    }
}

/// The compiled abbreviations of a unit.
pub(crate) struct Plan {
    /// By code, from 0 on.
    quick: Vec<Quick>,
    dense: Vec<Entry>,
    sparse: HashMap<u64, Entry>,
    skips: Vec<Skip>,
    readings: Readings,
    encoding: Encoding,
}

impl Entry {
    /// Bytes that the attributes of a DIE take at the least, if a near sibling is among them.
    #[inline]
    fn least_size(&self) -> u16 {
        if self.size == VARIES { self.sibling_at.saturating_add(4) } else { self.size }
    }
}

impl Plan {
    pub(crate) fn new(table: &AbbrevTable) -> Self {
        let mut plan = Self {
            quick: vec![Quick::LOOK],
            dense: Vec::with_capacity(table.dense().len()),
            sparse: HashMap::new(),
            skips: Vec::new(),
            readings: Readings::default(),
            encoding: table.encoding(),
        };
        for abbrev in table.dense() {
            let entry = plan.entry(table, abbrev);
            plan.quick.push(plan.quick(&entry));
            plan.dense.push(entry);
        }
        for (code, abbrev) in table.sparse() {
            let entry = plan.entry(table, abbrev);
            plan.sparse.insert(*code, entry);
        }
        plan
    }

    fn entry(&mut self, table: &AbbrevTable, abbrev: &Abbrev) -> Entry {
        let specs = table.specs(abbrev);
        let has = |name: gimli::DwAt| specs.iter().any(|spec| spec.name == name.0);
        let role = role(abbrev, &has);
        let skips = table.skips(abbrev);
        let size = match skips {
            [] => 0,
            [bytes] if is_count(*bytes) => *bytes,
            _ => VARIES,
        };
        let start = self.skips.len() as u32;
        self.skips.extend(skips);
        let is_fixed = size != VARIES;
        let fields = self.readings.add(table, specs, is_fixed, |name| Slot::of(name, role));
        let has_names =
            matches!(gimli::DwTag(abbrev.tag), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine);
        Entry {
            role,
            has_children: abbrev.has_children,
            is_named: has(dw::DW_AT_name) || has(dw::DW_AT_linkage_name) || has(dw::DW_AT_MIPS_linkage_name),
            sibling_at: self.readings.sibling_at(&fields).unwrap_or(VARIES),
            size,
            // No abbreviation has more than 1024 attributes.
            skips: (start, skips.len() as u16),
            fields,
            names: has_names.then(|| self.readings.add(table, specs, is_fixed, Slot::of_name)),
        }
    }

    fn quick(&self, entry: &Entry) -> Quick {
        if !matches!(entry.role, Role::Plain | Role::Closed) {
            return Quick::LOOK;
        }
        if entry.has_children {
            let (before, after) = (entry.sibling_at, entry.least_size());
            return match entry.role {
                Role::Closed if before != VARIES => Quick { way: Way::Sibling, block: 0, before, after },
                _ => Quick::LOOK,
            };
        }
        match *self.skips_of(entry) {
            [] => Quick::bytes(0, 0, 0),
            [bytes] if is_count(bytes) => Quick::bytes(bytes, 0, 0),
            [SKIP_BLOCK] => Quick::bytes(0, u8::MAX, 0),
            [before, SKIP_BLOCK] if is_count(before) => Quick::bytes(before, u8::MAX, 0),
            [SKIP_BLOCK, after] if is_count(after) => Quick::bytes(0, u8::MAX, after),
            [before, SKIP_BLOCK, after] if is_count(before) && is_count(after) => {
                Quick::bytes(before, u8::MAX, after)
            }
            _ => Quick { way: Way::Steps, ..Quick::LOOK },
        }
    }

    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Entry> {
        let index = usize::try_from(code.wrapping_sub(1)).ok()?;
        self.dense.get(index).or_else(|| self.sparse.get(&code))
    }

    /// How DIEs with this code are passed over where nothing in them is of interest.
    #[inline]
    pub(crate) fn quick_of(&self, code: u64) -> Quick {
        self.quick.get(code as usize).copied().unwrap_or(Quick::LOOK)
    }

    fn skips_of(&self, entry: &Entry) -> &[Skip] {
        self.skips
            .get(entry.skips.0 as usize..entry.skips.0 as usize + usize::from(entry.skips.1))
            .unwrap_or_default()
    }

    /// Passes over the attributes of a DIE.
    #[inline]
    pub(crate) fn skip(&self, entry: &Entry, reader: &mut Reader<'_>) -> Option<()> {
        if entry.size != VARIES {
            return reader.skip(u64::from(entry.size));
        }
        self.run_skips(entry.skips, reader)
    }

    /// The reader behind the attributes of a DIE with this code.
    pub(crate) fn behind<'r>(&self, code: u64, mut reader: Reader<'r>) -> Option<Reader<'r>> {
        self.run_skips(self.get(code)?.skips, &mut reader)?;
        Some(reader)
    }

    #[inline]
    fn run_skips(&self, (start, count): (u32, u16), reader: &mut Reader<'_>) -> Option<()> {
        for skip in self.skips.get(start as usize..start as usize + usize::from(count))? {
            run_skip(*skip, self.encoding, reader)?;
        }
        Some(())
    }

    /// Reads what is wanted of a DIE.
    #[inline]
    pub(crate) fn fields(
        &self,
        entry: &Entry,
        table: &AbbrevTable,
        reader: &mut Reader<'_>,
        fields: &mut Fields,
    ) -> Option<()> {
        self.readings.read(&entry.fields, entry.size, table, reader, fields)
    }

    /// What the DIE at the reader's position says of names. The outer `None` where another way has to be taken to find
    /// out.
    #[inline]
    pub(crate) fn stated(&self, table: &AbbrevTable, reader: &mut Reader<'_>) -> Option<Option<Stated>> {
        let entry = self.get(reader.uleb()?)?;
        let mut fields = Fields::default();
        let read = self.readings.read(entry.names.as_ref()?, entry.size, table, reader, &mut fields);
        Some(read.map(|()| Stated {
            linkage: fields.get(Slot::LinkageName),
            plain: fields.get(Slot::Name),
            origin: fields.get(Slot::Origin),
            specification: fields.get(Slot::Specification),
        }))
    }
}

fn role(abbrev: &Abbrev, has: &impl Fn(gimli::DwAt) -> bool) -> Role {
    match gimli::DwTag(abbrev.tag) {
        dw::DW_TAG_inlined_subroutine => Role::Call,
        dw::DW_TAG_subprogram if has(dw::DW_AT_low_pc) || has(dw::DW_AT_ranges) => Role::Function,
        dw::DW_TAG_subprogram
        | dw::DW_TAG_class_type
        | dw::DW_TAG_structure_type
        | dw::DW_TAG_union_type
        | dw::DW_TAG_enumeration_type
        | dw::DW_TAG_array_type
        | dw::DW_TAG_subroutine_type
        | dw::DW_TAG_call_site
        | dw::DW_TAG_GNU_call_site => Role::Closed,
        _ => Role::Plain,
    }
}
