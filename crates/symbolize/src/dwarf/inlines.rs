//! What was inlined into one function.

use super::abbrev::Abbrev;
use super::reader::Reader;
use super::spans::{self, Span};
use super::value::Value;
use super::view::View;
use crate::malformed::Malformed;
use gimli::constants as dw;

/// A call that was replaced by the callee's body.
#[derive(Clone, Copy)]
pub(crate) struct Inlined {
    /// The DIE of the inlined call, counted from the unit's start.
    die: u32,
    /// Index of the call around this one; [`OUTERMOST`] for the function itself.
    parent: u32,
    /// Where the call stands in its caller's source.
    pub(crate) call_file: u32,
    pub(crate) call_line: u32,
    pub(crate) call_column: u32,
}

impl Inlined {
    /// The DIE as a section offset.
    pub(crate) fn die(&self, view: View<'_, '_>) -> u64 {
        view.unit.header.offset + u64::from(self.die)
    }
}

const OUTERMOST: u32 = u32::MAX;

/// The inlined calls of one function, nested as in the source.
#[derive(Default)]
pub(crate) struct InlineTree {
    calls: Vec<Inlined>,
    spans: Vec<Span>,
}

impl InlineTree {
    /// Walks the children of the function's DIE at a section offset.
    pub(crate) fn read(view: View<'_, '_>, function: u64) -> (Self, Option<Malformed>) {
        let mut walk = Walk { view, budget: view.range_budget(), tree: Self::default() };
        let error = walk.run(function).err();
        let mut tree = walk.tree;
        tree.calls.shrink_to_fit();
        tree.spans = spans::flatten(tree.spans);
        (tree, error)
    }

    /// The calls around an address, innermost first; empty where the code is the function's own.
    pub(crate) fn chain(&self, address: u64) -> impl Iterator<Item = &Inlined> {
        let innermost = spans::find(&self.spans, address).map_or(OUTERMOST, |span| span.owner);
        let call = |index: u32| self.calls.get(index as usize);
        // Parents have lower indices than their children, so this ends.
        std::iter::successors(call(innermost), move |inlined| call(inlined.parent))
    }
}

struct Walk<'a, 'd> {
    view: View<'a, 'd>,
    budget: u64,
    tree: InlineTree,
}

impl Walk<'_, '_> {
    fn run(&mut self, function: u64) -> Result<(), Malformed> {
        let view = self.view;
        let abbrevs = &*view.body.abbrevs;
        let mut reader = view.reader(function);
        let incomplete =
            |reader: Reader<'_>| reader.malformed(".debug_info", "a DIE with all its attributes");
        let start = reader;
        match abbrevs.next_die(&mut reader)? {
            Some(abbrev) if abbrev.has_children => {
                abbrevs.skip(abbrev, &mut reader).ok_or_else(|| incomplete(start))?;
            }
            _ => return Ok(()),
        }
        // The call that each open list of siblings belongs to; `None` inside of another function's DIE.
        let mut open = vec![Some(OUTERMOST)];
        while let Some(&parent) = open.last() {
            let start = reader;
            let Some(abbrev) = abbrevs.next_die(&mut reader)? else {
                open.pop();
                continue;
            };
            let mut owner = parent;
            let read = match (gimli::DwTag(abbrev.tag), parent) {
                (dw::DW_TAG_inlined_subroutine, Some(parent)) => {
                    self.call(&mut reader, abbrev, start.offset(), parent).map(|call| owner = Some(call))
                }
                (dw::DW_TAG_subprogram, _) => {
                    owner = None;
                    abbrevs.skip(abbrev, &mut reader)
                }
                _ => abbrevs.skip(abbrev, &mut reader),
            };
            read.ok_or_else(|| incomplete(start))?;
            if abbrev.has_children {
                open.push(owner);
            }
        }
        Ok(())
    }

    /// Reads an inlined call and gives its index.
    fn call(&mut self, reader: &mut Reader<'_>, abbrev: &Abbrev, offset: u64, parent: u32) -> Option<u32> {
        let fields = self.view.body.abbrevs.fields(abbrev, reader)?;
        let index = u32::try_from(self.tree.calls.len()).ok()?;
        self.tree.calls.push(Inlined {
            die: u32::try_from(offset - self.view.unit.header.offset).ok()?,
            parent,
            call_file: number(fields.call_file),
            call_line: number(fields.call_line),
            call_column: number(fields.call_column),
        });
        if fields.pcs.is_some() {
            self.view.collect_spans(&fields.pcs, index, &mut self.budget, &mut self.tree.spans);
        }
        Some(index)
    }
}

/// A file, line or column; 0, which means none, where it is stated in no form that makes sense.
pub(crate) fn number(value: Option<Value>) -> u32 {
    value.and_then(Value::unsigned).and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}
