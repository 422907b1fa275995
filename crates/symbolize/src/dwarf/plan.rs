//! Abbreviations compiled for one walk over all DIEs of a unit, as a conversion does it: what holds no functions is
//! passed over, by `DW_AT_sibling` where that is stated, and of the rest only what a table keeps is read.

use super::abbrev::{Abbrev, AbbrevTable, Skip, Spec, run_skip};
use super::reader::Reader;
use super::value::{self, Value};
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
}

const SLOTS: usize = 9;

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
}

/// What a walk reads of a DIE.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields([Option<Value>; SLOTS]);

impl Fields {
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<Value> {
        self.0.get(slot as usize).copied().flatten()
    }

    #[inline]
    fn set(&mut self, slot: Slot, value: Value) {
        if let Some(field) = self.0.get_mut(slot as usize) {
            *field = Some(value);
        }
    }
}

#[derive(Clone, Copy)]
enum Step {
    Skip(Skip),
    Read(Slot, Spec),
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
    steps: (u32, u16),
}

const VARIES: u16 = u16::MAX;

/// The compiled abbreviations of a unit.
pub(crate) struct Plan {
    dense: Vec<Entry>,
    sparse: HashMap<u64, Entry>,
    steps: Vec<Step>,
}

impl Entry {
    /// Whether a DIE without children is passed over by adding a number.
    #[inline]
    pub(crate) fn leaf_size(&self) -> Option<u64> {
        let is_leaf = self.role == Role::Plain && !self.has_children && self.size != VARIES;
        is_leaf.then_some(u64::from(self.size))
    }

    /// Bytes that the attributes of a DIE take at the least, if a near sibling is among them.
    #[inline]
    pub(crate) fn least_size(&self) -> u64 {
        u64::from(if self.size == VARIES { self.sibling_at + 4 } else { self.size })
    }
}

impl Plan {
    pub(crate) fn new(table: &AbbrevTable) -> Self {
        let mut plan = Self { dense: Vec::new(), sparse: HashMap::new(), steps: Vec::new() };
        plan.dense = table.dense().iter().map(|abbrev| plan.entry(table, abbrev)).collect();
        plan.sparse =
            table.sparse().iter().map(|(code, abbrev)| (*code, plan.entry(table, abbrev))).collect();
        plan
    }

    fn entry(&mut self, table: &AbbrevTable, abbrev: &Abbrev) -> Entry {
        let specs = table.specs(abbrev);
        let has = |name: gimli::DwAt| specs.iter().any(|spec| spec.name == name.0);
        let role = role(abbrev, &has);
        let start = self.steps.len() as u32;
        let skips = table.skips(abbrev);
        let is_read = |spec: &Spec| Slot::of(spec.name, role).is_some();
        if specs.iter().any(is_read) {
            self.read_steps(table, specs, role, start as usize);
        } else {
            self.steps.extend(skips.iter().map(|skip| Step::Skip(*skip)));
        }
        let size = match skips {
            [] => 0,
            [bytes] if super::abbrev::is_count(*bytes) => *bytes,
            _ => VARIES,
        };
        let own = self.steps.get(start as usize..).unwrap_or_default();
        let is_short = |spec: &Spec| spec.form == dw::DW_FORM_ref4.0;
        let sibling_at = match own {
            [Step::Read(Slot::Sibling, spec), ..] if is_short(spec) => 0,
            [Step::Skip(bytes), Step::Read(Slot::Sibling, spec), ..]
                if is_short(spec) && super::abbrev::is_count(*bytes) =>
            {
                *bytes
            }
            _ => VARIES,
        };
        Entry {
            role,
            has_children: abbrev.has_children,
            is_named: has(dw::DW_AT_name) || has(dw::DW_AT_linkage_name) || has(dw::DW_AT_MIPS_linkage_name),
            sibling_at,
            size,
            // No abbreviation has more than 1024 attributes.
            steps: (start, own.len() as u16),
        }
    }

    fn read_steps(&mut self, table: &AbbrevTable, specs: &[Spec], role: Role, first: usize) {
        for spec in specs {
            match Slot::of(spec.name, role) {
                Some(slot) => self.steps.push(Step::Read(slot, *spec)),
                None => {
                    let skip = super::abbrev::skip_of(spec.form, table.encoding());
                    match self.steps.get_mut(first..).and_then(<[Step]>::last_mut) {
                        Some(Step::Skip(last))
                            if super::abbrev::is_count(*last)
                                && super::abbrev::is_count(skip)
                                && super::abbrev::is_count(last.saturating_add(skip)) =>
                        {
                            *last += skip;
                        }
                        _ if skip == 0 => {}
                        _ => self.steps.push(Step::Skip(skip)),
                    }
                }
            }
        }
    }

    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Entry> {
        let index = usize::try_from(code.wrapping_sub(1)).ok()?;
        self.dense.get(index).or_else(|| self.sparse.get(&code))
    }

    #[inline]
    fn steps(&self, entry: &Entry) -> &[Step] {
        let (start, count) = (entry.steps.0 as usize, usize::from(entry.steps.1));
        self.steps.get(start..start + count).unwrap_or_default()
    }

    /// The sibling that a DIE states, counted from the unit's start, without reading its other attributes. `None` where
    /// that takes more than looking at one place.
    #[inline]
    pub(crate) fn near_sibling(entry: &Entry, reader: &Reader<'_>) -> Option<u64> {
        let mut reader = *reader;
        if entry.sibling_at == VARIES {
            return None;
        }
        reader.skip(u64::from(entry.sibling_at))?;
        reader.u32().map(u64::from)
    }

    /// Passes over the attributes of a DIE.
    #[inline]
    pub(crate) fn skip(&self, entry: &Entry, table: &AbbrevTable, reader: &mut Reader<'_>) -> Option<()> {
        if entry.size != VARIES {
            return reader.skip(u64::from(entry.size));
        }
        for step in self.steps(entry) {
            match step {
                Step::Skip(skip) => run_skip(*skip, table.encoding(), reader)?,
                Step::Read(_, spec) => super::abbrev::skip_form(spec.form, table.encoding(), reader)?,
            }
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
    ) -> Option<Fields> {
        let mut fields = Fields::default();
        for step in self.steps(entry) {
            match step {
                Step::Skip(skip) => run_skip(*skip, table.encoding(), reader)?,
                Step::Read(slot, spec) => fields.set(*slot, value::read(table, *spec, reader)?),
            }
        }
        Some(fields)
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
