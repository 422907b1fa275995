//! The functions of a unit by address.

use super::abbrev::Abbrev;
use super::inlines::InlineTree;
use super::reader::Reader;
use super::spans::{self, Span};
use super::value::{Pcs, Value};
use super::view::View;
use crate::malformed::Malformed;
use gimli::constants as dw;
use std::sync::OnceLock;

/// The functions of one unit that have code.
#[derive(Default)]
pub(crate) struct FunctionTable {
    spans: Vec<Span>,
    functions: Vec<Function>,
    /// Whether children were passed over that functions could be among.
    has_gaps: bool,
}

/// How thoroughly a unit is walked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Depth {
    /// Children of types and functions are passed over where the DIE says where they end (`DW_AT_sibling`, which gcc
    /// writes): the bulk of the unit. Functions within functions are not seen.
    Shallow,
    /// Every DIE is read.
    Full,
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
    /// Walks the DIEs of the unit. Where they are broken, what stands before counts, and the error is told.
    pub(crate) fn read(view: View<'_, '_>, depth: Depth) -> (Self, Option<Malformed>) {
        let mut walk = Walk { view, depth, budget: view.range_budget(), table: Self::default() };
        let error = walk.run().err();
        let mut table = walk.table;
        table.functions.shrink_to_fit();
        table.spans = spans::flatten(table.spans);
        (table, error)
    }

    /// Whether a walk in full depth may find more.
    pub(crate) fn has_gaps(&self) -> bool {
        self.has_gaps
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

struct Walk<'a, 'd> {
    view: View<'a, 'd>,
    depth: Depth,
    budget: u64,
    table: FunctionTable,
}

impl<'a> Walk<'a, '_> {
    fn run(&mut self) -> Result<(), Malformed> {
        let abbrevs = &*self.view.body.abbrevs;
        let mut reader = self.view.reader(self.view.unit.header.root);
        let mut level = 0usize;
        while !reader.is_empty() {
            let start = reader;
            match abbrevs.next_die(&mut reader)? {
                None => level = level.saturating_sub(1),
                Some(abbrev) => {
                    let has_children = self.die(&mut reader, abbrev, start.offset());
                    let incomplete = || start.malformed(".debug_info", "a DIE with all its attributes");
                    level += usize::from(has_children.ok_or_else(incomplete)?);
                }
            }
            // Zeros behind the last DIE are padding, more DIEs there belong to nobody.
            if level == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Reads one DIE behind its code, and tells whether its children come next.
    #[inline]
    fn die(&mut self, reader: &mut Reader<'a>, abbrev: &Abbrev, offset: u64) -> Option<bool> {
        let abbrevs = &*self.view.body.abbrevs;
        let is_function = abbrev.tag == dw::DW_TAG_subprogram.0;
        let may_jump =
            self.depth == Depth::Shallow && abbrev.has_children && (is_function || is_type(abbrev.tag));
        if !is_function && !may_jump {
            abbrevs.skip(abbrev, reader)?;
            return Some(abbrev.has_children);
        }
        let fields = abbrevs.fields(abbrev, reader)?;
        if is_function && fields.pcs.is_some() {
            self.function(&fields.pcs, offset);
        }
        if may_jump && let Some(Value::UnitRef(sibling)) = fields.sibling {
            let target = self.view.unit.header.offset.checked_add(sibling)?;
            // Only forward, so that the walk ends.
            if reader.skip(target.checked_sub(reader.offset())?).is_some() {
                self.table.has_gaps = true;
                return Some(false);
            }
        }
        Some(abbrev.has_children)
    }

    fn function(&mut self, pcs: &Pcs, offset: u64) {
        let table = &mut self.table;
        let owner = u32::try_from(table.functions.len()).ok();
        let die = u32::try_from(offset - self.view.unit.header.offset).ok();
        let Some((owner, die)) = owner.zip(die) else { return };
        let before = table.spans.len();
        self.view.collect_spans(pcs, owner, &mut self.budget, &mut table.spans);
        if table.spans.len() > before {
            table.functions.push(Function { die, inlines: OnceLock::new() });
        }
    }
}

fn is_type(tag: u16) -> bool {
    matches!(
        gimli::DwTag(tag),
        dw::DW_TAG_class_type
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_enumeration_type
            | dw::DW_TAG_array_type
            | dw::DW_TAG_subroutine_type
    )
}
