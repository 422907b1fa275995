//! Abbreviation tables, compiled so that DIEs of no interest are passed over in a few additions.

use super::reader::{Encoding, Reader};
use super::skip::{Skip, push_skip, run_skip, skip_form, skip_of};
use super::value::{Kind as ValueKind, Layout, Pcs, Value, layout};
use crate::malformed::Malformed;
use gimli::constants as dw;
use std::collections::HashMap;

/// Tags, attribute names and forms are kept in 16 bits; what does not fit is none that any spec knows.
const UNKNOWN: u16 = u16::MAX;

/// One attribute of an abbreviation.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) name: u16,
    pub(crate) form: u16,
    /// Index into the table's constants, for `DW_FORM_implicit_const`.
    pub(crate) constant: u32,
}

/// One abbreviation: what the DIEs with its code look like.
#[derive(Clone, Copy)]
pub(crate) struct Abbrev {
    pub(crate) tag: u16,
    pub(crate) has_children: bool,
    specs: (u32, u32),
    skips: (u32, u32),
    plan: (u32, u32),
}

/// A step of reading what walks want to know of a DIE.
#[derive(Clone, Copy)]
enum Step {
    Skip(Skip),
    Read(Field, Spec),
}

/// What walks want to know.
#[derive(Clone, Copy)]
enum Field {
    LowPc,
    HighPc,
    Ranges,
    Sibling,
    CallFile,
    CallLine,
    CallColumn,
}

impl Field {
    fn of(name: u16) -> Option<Self> {
        Some(match gimli::DwAt(name) {
            dw::DW_AT_low_pc => Self::LowPc,
            dw::DW_AT_high_pc => Self::HighPc,
            dw::DW_AT_ranges => Self::Ranges,
            dw::DW_AT_sibling => Self::Sibling,
            dw::DW_AT_call_file => Self::CallFile,
            dw::DW_AT_call_line => Self::CallLine,
            dw::DW_AT_call_column => Self::CallColumn,
            _ => return None,
        })
    }
}

/// What a walk finds in a DIE.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fields {
    pub(crate) pcs: Pcs,
    pub(crate) sibling: Option<Value>,
    pub(crate) call_file: Option<Value>,
    pub(crate) call_line: Option<Value>,
    pub(crate) call_column: Option<Value>,
}

impl Fields {
    fn slot(&mut self, field: Field) -> &mut Option<Value> {
        match field {
            Field::LowPc => &mut self.pcs.low,
            Field::HighPc => &mut self.pcs.high,
            Field::Ranges => &mut self.pcs.ranges,
            Field::Sibling => &mut self.sibling,
            Field::CallFile => &mut self.call_file,
            Field::CallLine => &mut self.call_line,
            Field::CallColumn => &mut self.call_column,
        }
    }
}

/// The abbreviations of a unit.
pub(crate) struct AbbrevTable {
    /// Codes 1, 2, 3… in order, as every known producer writes them.
    dense: Vec<Abbrev>,
    /// All other codes.
    sparse: HashMap<u64, Abbrev>,
    specs: Vec<Spec>,
    skips: Vec<Skip>,
    plan: Vec<Step>,
    constants: Vec<i64>,
    encoding: Encoding,
}

const SECTION: &str = ".debug_abbrev";

/// Attributes of one abbreviation. Some forms take no bytes in the DIE, so that the DIE itself sets no bound.
const MAX_SPECS: usize = 1024;

impl AbbrevTable {
    /// Reads the whole table at the reader's position.
    pub(crate) fn read(reader: &mut Reader<'_>, encoding: Encoding) -> Result<Self, Malformed> {
        let mut table = Self::empty(encoding);
        while table.read_one(reader)?.is_some() {}
        table.dense.shrink_to_fit();
        table.specs.shrink_to_fit();
        table.skips.shrink_to_fit();
        table.plan.shrink_to_fit();
        Ok(table)
    }

    /// Reads only the first abbreviation with `code`, and looks for it no further than `limit` bytes. For a look at a
    /// unit's root DIE: most producers put its abbreviation first, GCC the common ones.
    pub(crate) fn read_only(
        reader: &mut Reader<'_>,
        encoding: Encoding,
        code: u64,
        limit: u64,
    ) -> Result<Option<Self>, Malformed> {
        let end = reader.offset().saturating_add(limit);
        while reader.offset() < end {
            let start = *reader;
            match pass_one(reader)? {
                Some(passed) if passed == code => {
                    *reader = start;
                    let mut table = Self::empty(encoding);
                    table.read_one(reader)?;
                    return Ok(Some(table));
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok(None)
    }

    fn empty(encoding: Encoding) -> Self {
        Self {
            dense: Vec::new(),
            sparse: HashMap::new(),
            specs: Vec::new(),
            skips: Vec::new(),
            plan: Vec::new(),
            constants: vec![0],
            encoding,
        }
    }

    fn read_one(&mut self, reader: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
        let Some((code, tag, children)) = read_head(reader)? else { return Ok(None) };
        let start = (self.specs.len() as u32, self.skips.len() as u32, self.plan.len() as u32);
        let tag = u16::try_from(tag).unwrap_or(UNKNOWN);
        self.read_specs(reader, is_read(tag) || children != 0)?;
        let abbrev = Abbrev {
            tag,
            has_children: children != 0,
            specs: (start.0, self.specs.len() as u32),
            skips: (start.1, self.skips.len() as u32),
            plan: (start.2, self.plan.len() as u32),
        };
        if code == self.dense.len() as u64 + 1 && self.sparse.is_empty() {
            self.dense.push(abbrev);
        } else {
            self.sparse.entry(code).or_insert(abbrev);
        }
        Ok(Some(code))
    }

    fn read_specs(&mut self, reader: &mut Reader<'_>, is_read: bool) -> Result<(), Malformed> {
        let (first_skip, first_step) = (self.skips.len(), self.plan.len());
        for _ in 0..MAX_SPECS {
            let Some((name, form)) = read_pair(reader)? else { return Ok(()) };
            let form = u16::try_from(form).unwrap_or(UNKNOWN);
            let constant = if form == dw::DW_FORM_implicit_const.0 { self.read_constant(reader)? } else { 0 };
            let skip = skip_of(form, self.encoding);
            push_skip(&mut self.skips, first_skip, skip, |last| Some(last), |skip| skip);
            if is_read {
                let spec = Spec { name: u16::try_from(name).unwrap_or(UNKNOWN), form, constant };
                self.specs.push(spec);
                match Field::of(spec.name) {
                    Some(field) => self.plan.push(Step::Read(field, spec)),
                    None => push_skip(&mut self.plan, first_step, skip, Step::as_skip, Step::Skip),
                }
            }
        }
        Err(too_many(reader))
    }

    fn read_constant(&mut self, reader: &mut Reader<'_>) -> Result<u32, Malformed> {
        let value = reader.sleb().ok_or_else(|| reader.malformed(SECTION, "an implicit constant"))?;
        self.constants.push(value);
        Ok((self.constants.len() - 1) as u32)
    }

    /// The abbreviation with this code.
    #[inline]
    pub(crate) fn get(&self, code: u64) -> Option<&Abbrev> {
        let index = usize::try_from(code.wrapping_sub(1)).ok()?;
        self.dense.get(index).or_else(|| self.sparse.get(&code))
    }

    /// The attributes of an abbreviation, in the order of their values; none for DIEs that are only ever passed over.
    #[inline]
    pub(crate) fn specs(&self, abbrev: &Abbrev) -> &[Spec] {
        self.specs.get(abbrev.specs.0 as usize..abbrev.specs.1 as usize).unwrap_or_default()
    }

    /// How DIEs of an abbreviation are passed over.
    pub(crate) fn skips(&self, abbrev: &Abbrev) -> &[Skip] {
        self.skips.get(abbrev.skips.0 as usize..abbrev.skips.1 as usize).unwrap_or_default()
    }

    /// The abbreviations with codes 1, 2, 3…
    pub(crate) fn dense(&self) -> &[Abbrev] {
        &self.dense
    }

    /// All others.
    pub(crate) fn sparse(&self) -> &HashMap<u64, Abbrev> {
        &self.sparse
    }

    /// How the unit that the table was read for lays out its numbers.
    #[inline]
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Reads the code of the next DIE: its abbreviation, or `None` at the end of a list of siblings.
    #[inline]
    pub(crate) fn next_die(&self, reader: &mut Reader<'_>) -> Result<Option<&Abbrev>, Malformed> {
        let start = *reader;
        let code =
            reader.uleb().ok_or_else(|| start.malformed(".debug_info", "the abbreviation code of a DIE"))?;
        if code == 0 {
            return Ok(None);
        }
        let abbrev = self.get(code);
        abbrev.map(Some).ok_or_else(|| start.malformed(".debug_info", "a DIE with a known abbreviation"))
    }

    /// Reads the value of one attribute. `None` when the bytes do not suffice or the form is unknown.
    pub(crate) fn value(&self, spec: Spec, reader: &mut Reader<'_>) -> Option<Value> {
        let (kind, number) = self.value_number(spec, reader)?;
        kind.value(number)
    }

    /// The same as a kind and a number.
    pub(crate) fn value_number(&self, spec: Spec, reader: &mut Reader<'_>) -> Option<(ValueKind, u64)> {
        let (kind, layout) = layout(spec.form, self.encoding());
        let number = match layout {
            Layout::Bytes(size) => reader.uint(size)?,
            Layout::Uleb => reader.uleb()?,
            Layout::Sleb => reader.sleb()?.cast_unsigned(),
            Layout::Fixed(number) => number,
            Layout::Constant => self.constant(spec).cast_unsigned(),
            Layout::String => {
                let start = reader.offset();
                reader.cstr()?;
                start
            }
            Layout::Indirect => {
                let form = u16::try_from(reader.uleb()?).ok()?;
                // One level, since no producer nests them; and an implicit constant has no place here.
                if form == dw::DW_FORM_indirect.0 || form == dw::DW_FORM_implicit_const.0 {
                    return None;
                }
                return self.value_number(Spec { form, ..spec }, reader);
            }
            Layout::Other => {
                skip_form(spec.form, self.encoding(), reader)?;
                0
            }
        };
        Some((kind, number))
    }

    /// The value of an attribute that stands in the abbreviation itself.
    pub(crate) fn constant(&self, spec: Spec) -> i64 {
        self.constants.get(spec.constant as usize).copied().unwrap_or(0)
    }

    /// Reads what walks want to know of a DIE, and passes over the rest.
    #[inline]
    pub(crate) fn fields(&self, abbrev: &Abbrev, reader: &mut Reader<'_>) -> Option<Fields> {
        let mut fields = Fields::default();
        for step in self.plan.get(abbrev.plan.0 as usize..abbrev.plan.1 as usize)? {
            match step {
                Step::Skip(skip) => run_skip(*skip, self.encoding, reader)?,
                Step::Read(field, spec) => *fields.slot(*field) = Some(self.value(*spec, reader)?),
            }
        }
        Some(fields)
    }

    /// Passes over all attributes of a DIE.
    #[inline]
    pub(crate) fn skip(&self, abbrev: &Abbrev, reader: &mut Reader<'_>) -> Option<()> {
        let skips = self.skips.get(abbrev.skips.0 as usize..abbrev.skips.1 as usize)?;
        for skip in skips {
            run_skip(*skip, self.encoding, reader)?;
        }
        Some(())
    }
}

/// The code, tag and children flag of the next abbreviation; `None` at the table's end.
fn read_head(reader: &mut Reader<'_>) -> Result<Option<(u64, u64, u8)>, Malformed> {
    // A table may end with its section instead of a zero.
    if reader.is_empty() {
        return Ok(None);
    }
    let code = reader.uleb().ok_or_else(|| reader.malformed(SECTION, "an abbreviation code"))?;
    if code == 0 {
        return Ok(None);
    }
    let head = reader.uleb().zip(reader.u8());
    let (tag, children) = head.ok_or_else(|| reader.malformed(SECTION, "a tag and a children flag"))?;
    Ok(Some((code, tag, children)))
}

/// An attribute and its form; `None` behind the last one.
#[inline]
fn read_pair(reader: &mut Reader<'_>) -> Result<Option<(u64, u64)>, Malformed> {
    let pair = reader.uleb().zip(reader.uleb());
    let pair = pair.ok_or_else(|| reader.malformed(SECTION, "an attribute and its form"))?;
    Ok(if pair == (0, 0) { None } else { Some(pair) })
}

/// Passes over an abbreviation and gives its code; `None` at the table's end.
fn pass_one(reader: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    let Some((code, ..)) = read_head(reader)? else { return Ok(None) };
    for _ in 0..MAX_SPECS {
        let Some((_, form)) = read_pair(reader)? else { return Ok(Some(code)) };
        if form == u64::from(dw::DW_FORM_implicit_const.0) {
            reader.skip_leb().ok_or_else(|| reader.malformed(SECTION, "an implicit constant"))?;
        }
    }
    Err(too_many(reader))
}

fn too_many(reader: &Reader<'_>) -> Malformed {
    reader.malformed(SECTION, "an abbreviation with less than 1024 attributes")
}

/// DIEs whose attributes matter: units, functions, calls, and what functions lie in; besides, all with children, which
/// say where these end. All others are passed over.
fn is_read(tag: u16) -> bool {
    matches!(
        gimli::DwTag(tag),
        dw::DW_TAG_compile_unit
            | dw::DW_TAG_partial_unit
            | dw::DW_TAG_type_unit
            | dw::DW_TAG_skeleton_unit
            | dw::DW_TAG_subprogram
            | dw::DW_TAG_inlined_subroutine
            | dw::DW_TAG_namespace
            | dw::DW_TAG_module
            | dw::DW_TAG_class_type
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_enumeration_type
            | dw::DW_TAG_interface_type
            | dw::DW_TAG_array_type
            | dw::DW_TAG_subroutine_type
    )
}

impl Step {
    fn as_skip(&mut self) -> Option<&mut Skip> {
        match self {
            Self::Skip(skip) => Some(skip),
            Self::Read(..) => None,
        }
    }
}
