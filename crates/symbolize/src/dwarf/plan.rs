//! Abbreviations compiled for one walk over all DIEs of a unit, as a conversion does it: what holds no functions is
//! passed over, by `DW_AT_sibling` where that is stated, and of the rest only what a table keeps is read.

use super::abbrev::{Abbrev, AbbrevTable, SKIP_BLOCK, Skip, Spec, is_count, run_skip, skip_of};
use super::names::Stated;
use super::reader::{Encoding, Reader};
use super::value::{self, Kind, Layout, Value};
use gimli::constants as dw;
use std::collections::HashMap;

/// What a walk does with a DIE.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Passed over; children, if any, are walked.
    Plain,
    /// A type, a function without code and the like: nothing in it has code, as a rule.
    Closed,
    /// A function that states addresses.
    Function,
    /// An inlined call.
    Call,
}

/// What is read of a DIE, by its place in [`Fields`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Slot {
    Low,
    High,
    Ranges,
    Sibling,
    Origin,
    Specification,
    CallFile,
    CallLine,
    CallColumn,
    Name,
    LinkageName,
}

const SLOTS: usize = 11;

impl Slot {
    fn of(name: u16, role: Role) -> Option<Self> {
        let slot = match gimli::DwAt(name) {
            dw::DW_AT_sibling => return Some(Self::Sibling),
            _ if !matches!(role, Role::Function | Role::Call) => return None,
            dw::DW_AT_low_pc => Self::Low,
            dw::DW_AT_high_pc => Self::High,
            dw::DW_AT_ranges => Self::Ranges,
            dw::DW_AT_abstract_origin => Self::Origin,
            dw::DW_AT_specification if role == Role::Function => Self::Specification,
            _ if role == Role::Function => return None,
            dw::DW_AT_call_file => Self::CallFile,
            dw::DW_AT_call_line => Self::CallLine,
            dw::DW_AT_call_column => Self::CallColumn,
            _ => return None,
        };
        Some(slot)
    }

    fn of_name(name: u16) -> Option<Self> {
        Some(match gimli::DwAt(name) {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => Self::LinkageName,
            dw::DW_AT_name => Self::Name,
            dw::DW_AT_abstract_origin => Self::Origin,
            dw::DW_AT_specification => Self::Specification,
            _ => return None,
        })
    }
}

/// What a walk reads of a DIE.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    kinds: [Kind; SLOTS],
    numbers: [u64; SLOTS],
}

impl Fields {
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<Value> {
        self.kind(slot).value(self.number(slot))
    }

    #[inline]
    pub(crate) fn kind(&self, slot: Slot) -> Kind {
        self.kinds.get(slot as usize).copied().unwrap_or_default()
    }

    /// The number alone, where there is one.
    #[inline]
    pub(crate) fn number(&self, slot: Slot) -> u64 {
        self.numbers.get(slot as usize).copied().unwrap_or_default()
    }

    #[inline]
    fn set(&mut self, slot: Slot, number: u64) {
        if let Some(field) = self.numbers.get_mut(slot as usize) {
            *field = number;
        }
    }
}

#[derive(Clone, Copy)]
enum Step {
    Skip(Skip),
    /// A number of so many bytes.
    Bytes(Slot, u8),
    Uleb(Slot),
    Number(Slot, u64),
    Other(Slot, Spec),
}

/// A number at the same place in all DIEs of an abbreviation.
#[derive(Clone, Copy)]
struct Load {
    slot: Slot,
    /// Bits to shift out of eight bytes; [`CONSTANT`] where the number does not stand in the DIE.
    spare: u8,
    /// Bytes from the first attribute on, or index of the constant.
    at: u16,
}

const CONSTANT: u8 = 64;

/// How some attributes of a DIE are read.
#[derive(Clone, Copy, Default)]
struct Reading {
    steps: (u32, u16),
    /// The same where all attributes stand at places that are known.
    loads: Option<(u32, u16)>,
    kinds: [Kind; SLOTS],
}

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
    steps: Vec<Step>,
    loads: Vec<Load>,
    constants: Vec<u64>,
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
            steps: Vec::new(),
            loads: Vec::new(),
            constants: Vec::new(),
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
        let fields = self.reading(table, specs, is_fixed, |name| Slot::of(name, role));
        let has_names =
            matches!(gimli::DwTag(abbrev.tag), dw::DW_TAG_subprogram | dw::DW_TAG_inlined_subroutine);
        Entry {
            role,
            has_children: abbrev.has_children,
            is_named: has(dw::DW_AT_name) || has(dw::DW_AT_linkage_name) || has(dw::DW_AT_MIPS_linkage_name),
            sibling_at: self.sibling_at(&fields),
            size,
            // No abbreviation has more than 1024 attributes.
            skips: (start, skips.len() as u16),
            fields,
            names: has_names.then(|| self.reading(table, specs, is_fixed, Slot::of_name)),
        }
    }

    fn sibling_at(&self, reading: &Reading) -> u16 {
        match self.steps(reading) {
            [Step::Bytes(Slot::Sibling, 4), ..] if reading.is_unit_ref(Slot::Sibling) => 0,
            [Step::Skip(bytes), Step::Bytes(Slot::Sibling, 4), ..]
                if reading.is_unit_ref(Slot::Sibling) && is_count(*bytes) =>
            {
                *bytes
            }
            _ => VARIES,
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

    /// Compiles the reading of what `slot_of` wants.
    fn reading(
        &mut self,
        table: &AbbrevTable,
        specs: &[Spec],
        is_fixed: bool,
        slot_of: impl Fn(u16) -> Option<Slot>,
    ) -> Reading {
        let mut reading = Reading::default();
        let (first, first_load) = (self.steps.len(), self.loads.len());
        let mut at = 0u16;
        let mut has_loads = is_fixed;
        for spec in specs {
            let skip = skip_of(spec.form, self.encoding);
            match slot_of(spec.name) {
                Some(slot) => {
                    let step = reading.step(table, slot, *spec);
                    has_loads &= self.load(step, at);
                    self.steps.push(step);
                }
                None => self.skip_step(first, skip),
            }
            // Only looked at where all have a size.
            at = at.wrapping_add(skip);
        }
        reading.steps = (first as u32, (self.steps.len() - first) as u16);
        if has_loads {
            reading.loads = Some((first_load as u32, (self.loads.len() - first_load) as u16));
        } else {
            self.loads.truncate(first_load);
        }
        reading
    }

    /// Adds the step of a DIE whose attributes all have a size, and tells whether that can be.
    fn load(&mut self, step: Step, at: u16) -> bool {
        match step {
            Step::Bytes(slot, size @ 1..=8) => self.loads.push(Load { slot, spare: 64 - 8 * size, at }),
            Step::Number(slot, number) => {
                let Ok(at) = u16::try_from(self.constants.len()) else { return false };
                self.constants.push(number);
                self.loads.push(Load { slot, spare: CONSTANT, at });
            }
            _ => return false,
        }
        true
    }

    fn skip_step(&mut self, first: usize, skip: Skip) {
        match self.steps.get_mut(first..).and_then(<[Step]>::last_mut) {
            Some(Step::Skip(last))
                if is_count(*last) && is_count(skip) && is_count(last.saturating_add(skip)) =>
            {
                *last += skip;
            }
            _ if skip == 0 => {}
            _ => self.steps.push(Step::Skip(skip)),
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

    #[inline]
    fn steps(&self, reading: &Reading) -> &[Step] {
        let (start, count) = (reading.steps.0 as usize, usize::from(reading.steps.1));
        self.steps.get(start..start + count).unwrap_or_default()
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
        self.read(&entry.fields, entry.size, table, reader, fields)
    }

    /// What the DIE at the reader's position says of names. The outer `None` where another way has to be taken to find
    /// out.
    #[inline]
    pub(crate) fn stated(&self, table: &AbbrevTable, reader: &mut Reader<'_>) -> Option<Option<Stated>> {
        let entry = self.get(reader.uleb()?)?;
        let mut fields = Fields::default();
        let read = self.read(entry.names.as_ref()?, entry.size, table, reader, &mut fields);
        Some(read.map(|()| Stated {
            linkage: fields.get(Slot::LinkageName),
            plain: fields.get(Slot::Name),
            origin: fields.get(Slot::Origin),
            specification: fields.get(Slot::Specification),
        }))
    }

    #[inline]
    fn read(
        &self,
        reading: &Reading,
        size: u16,
        table: &AbbrevTable,
        reader: &mut Reader<'_>,
        fields: &mut Fields,
    ) -> Option<()> {
        fields.kinds = reading.kinds;
        if let Some((start, count)) = reading.loads
            && let Some(bytes) = reader.little_endian(usize::from(size) + 8)
        {
            let loads = self.loads.get(start as usize..start as usize + usize::from(count))?;
            for Load { slot, spare, at } in loads {
                let at = usize::from(*at);
                let number = match *spare {
                    CONSTANT => self.constants.get(at).copied()?,
                    spare => u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?) << spare >> spare,
                };
                fields.set(*slot, number);
            }
            return reader.skip(u64::from(size));
        }
        self.run(reading, table, reader, fields)
    }

    /// Reads one attribute after the other.
    fn run(
        &self,
        reading: &Reading,
        table: &AbbrevTable,
        reader: &mut Reader<'_>,
        fields: &mut Fields,
    ) -> Option<()> {
        for step in self.steps(reading) {
            match step {
                Step::Skip(skip) => run_skip(*skip, self.encoding, reader)?,
                Step::Bytes(slot, size) => fields.set(*slot, reader.uint(*size)?),
                Step::Uleb(slot) => fields.set(*slot, reader.uleb()?),
                Step::Number(slot, number) => fields.set(*slot, *number),
                Step::Other(slot, spec) => {
                    let (kind, number) = value::read_number(table, *spec, reader)?;
                    if let Some(slot) = fields.kinds.get_mut(*slot as usize) {
                        *slot = kind;
                    }
                    fields.set(*slot, number);
                }
            }
        }
        Some(())
    }
}

impl Reading {
    /// How a value is read for a slot.
    fn step(&mut self, table: &AbbrevTable, slot: Slot, spec: Spec) -> Step {
        let (kind, layout) = value::layout(spec.form, table.encoding());
        let Some(known) = self.kinds.get_mut(slot as usize) else { return Step::Other(slot, spec) };
        if *known != Kind::None {
            // Stated twice: the last one counts, whatever it is.
            return Step::Other(slot, spec);
        }
        *known = if kind == Kind::None { Kind::Block } else { kind };
        match layout {
            Layout::Bytes(size) => Step::Bytes(slot, size),
            Layout::Uleb => Step::Uleb(slot),
            Layout::Fixed(number) => Step::Number(slot, number),
            Layout::Constant => Step::Number(slot, table.constant(spec).cast_unsigned()),
            Layout::Sleb | Layout::String | Layout::Indirect | Layout::Other => Step::Other(slot, spec),
        }
    }

    fn is_unit_ref(&self, slot: Slot) -> bool {
        self.kinds.get(slot as usize) == Some(&Kind::UnitRef)
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
