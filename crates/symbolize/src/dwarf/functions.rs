//! The functions of a unit by address.

use super::abbrev::{Abbrev, AbbrevTable};
use super::error::Malformed;
use super::inlines::InlineTree;
use super::reader::Reader;
use super::spans::{self, Span};
use super::value;
use super::view::{Pcs, View};
use gimli::constants as dw;
use std::sync::OnceLock;

/// The functions of one unit that have code.
#[derive(Default)]
pub(crate) struct FunctionTable {
    spans: Vec<Span>,
    functions: Vec<Function>,
}

/// A function with code.
pub(crate) struct Function {
    /// Its DIE, counted from the unit's start.
    die: u32,
    inlines: OnceLock<Box<InlineTree>>,
}

impl Function {
    /// The function's DIE as a section offset.
    pub(crate) fn die(&self, view: View<'_, '_>) -> u64 {
        view.unit.header.offset + u64::from(self.die)
    }

    /// What was inlined into the function, read when first asked for.
    pub(crate) fn inlines(&self, view: View<'_, '_>) -> &InlineTree {
        self.inlines.get_or_init(|| {
            let (tree, error) = InlineTree::read(view, self.die(view));
            if let Some(error) = error {
                view.file.problems.unit(view.unit.header.offset, error);
            }
            Box::new(tree)
        })
    }
}

impl FunctionTable {
    /// Walks all DIEs of the unit. Where they are broken, what stands before counts, and the error is told.
    pub(crate) fn read(view: View<'_, '_>) -> (Self, Option<Malformed>) {
        let mut walk = Walk { view, budget: range_budget(view), spans: Vec::new(), functions: Vec::new() };
        let error = walk.run().err();
        let mut functions = walk.functions;
        functions.shrink_to_fit();
        (Self { spans: spans::flatten(walk.spans), functions }, error)
    }

    /// The innermost function at an address, and the start of the range around it.
    pub(crate) fn find(&self, address: u64) -> Option<(&Function, u64)> {
        let span = spans::find(&self.spans, address)?;
        Some((self.functions.get(span.owner as usize)?, span.start))
    }

    /// The address ranges of all functions.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
    }
}

/// Range lists can be shared, so that a small hostile file could state as many ranges as DIEs times list entries. An
/// honest file has no more than its sections have room for.
pub(crate) fn range_budget(view: View<'_, '_>) -> u64 {
    let header = &view.unit.header;
    (header.end - header.offset) + view.main.range_bytes() + view.file.range_bytes()
}

struct Walk<'a, 'd> {
    view: View<'a, 'd>,
    budget: u64,
    spans: Vec<Span>,
    functions: Vec<Function>,
}

impl Walk<'_, '_> {
    fn run(&mut self) -> Result<(), Malformed> {
        let view = self.view;
        let abbrevs = &*view.body.abbrevs;
        let mut reader = view.reader(view.unit.header.root);
        let mut depth = 0usize;
        while !reader.is_empty() {
            let start = reader;
            match next_die(&mut reader, abbrevs)? {
                None => depth = depth.saturating_sub(1),
                Some(abbrev) => {
                    let read = if abbrev.tag == dw::DW_TAG_subprogram.0 {
                        self.function(&mut reader, abbrev, start.offset())
                    } else {
                        abbrevs.skip(abbrev, &mut reader)
                    };
                    read.ok_or_else(|| start.malformed(".debug_info", "a DIE with all its attributes"))?;
                    depth += usize::from(abbrev.has_children);
                }
            }
            // Zeros behind the last DIE are padding, more DIEs there belong to nobody.
            if depth == 0 {
                break;
            }
        }
        Ok(())
    }

    fn function(&mut self, reader: &mut Reader<'_>, abbrev: &Abbrev, offset: u64) -> Option<()> {
        let pcs = read_pcs(&self.view.body.abbrevs, abbrev, reader)?;
        if !pcs.is_some() {
            return Some(());
        }
        let (Ok(owner), Ok(die)) =
            (u32::try_from(self.functions.len()), u32::try_from(offset - self.view.unit.header.offset))
        else {
            return Some(());
        };
        let before = self.spans.len();
        collect_spans(self.view, &pcs, owner, &mut self.budget, &mut self.spans);
        if self.spans.len() > before {
            self.functions.push(Function { die, inlines: OnceLock::new() });
        }
        Some(())
    }
}

/// Appends the live ranges of a DIE.
pub(crate) fn collect_spans(
    view: View<'_, '_>,
    pcs: &Pcs,
    owner: u32,
    budget: &mut u64,
    spans: &mut Vec<Span>,
) {
    let max_address = view.unit.header.encoding.max_address();
    view.ranges(pcs, &mut |start, end| {
        if view.main.code.is_live(start, max_address) {
            spans.push(Span { start, end, owner });
        }
        *budget = budget.saturating_sub(1);
        *budget > 0
    });
}

/// Reads the code of the next DIE: its abbreviation, or `None` at the end of a list of siblings.
#[inline]
pub(crate) fn next_die<'t>(
    reader: &mut Reader<'_>,
    abbrevs: &'t AbbrevTable,
) -> Result<Option<&'t Abbrev>, Malformed> {
    let start = *reader;
    let code =
        reader.uleb().ok_or_else(|| start.malformed(".debug_info", "the abbreviation code of a DIE"))?;
    if code == 0 {
        return Ok(None);
    }
    let abbrev = abbrevs.get(code);
    abbrev.map(Some).ok_or_else(|| start.malformed(".debug_info", "a DIE with a known abbreviation"))
}

fn read_pcs(abbrevs: &AbbrevTable, abbrev: &Abbrev, reader: &mut Reader<'_>) -> Option<Pcs> {
    let mut pcs = Pcs::default();
    for spec in abbrevs.specs(abbrev) {
        let value = match gimli::DwAt(spec.name) {
            dw::DW_AT_low_pc => &mut pcs.low,
            dw::DW_AT_high_pc => &mut pcs.high,
            dw::DW_AT_ranges => &mut pcs.ranges,
            _ => {
                super::abbrev::skip_form(spec.form, abbrevs.encoding(), reader)?;
                continue;
            }
        };
        *value = Some(value::read(abbrevs, *spec, reader)?);
    }
    Some(pcs)
}
