//! The namespaces and types around functions whose debug info states no linkage name: what gcc leaves out of C++ for
//! everything that the linker does not see.

use super::error::Malformed;
use super::functions::next_die;
use super::names::{follow, read_stated};
use super::view::View;
use gimli::constants as dw;

/// Scopes around one function. Deeper ones are no source code.
const MAX_DEPTH: usize = 32;

/// The DIEs of a unit that functions lie in.
#[derive(Default)]
pub(crate) struct ScopeTable {
    /// In the order of their DIEs.
    scopes: Vec<Scope>,
}

struct Scope {
    /// Where the DIE starts and where its children end, counted from the unit's start.
    start: u32,
    end: u32,
    /// Index of the scope around this one.
    parent: Option<u32>,
    tag: u16,
}

impl ScopeTable {
    /// Walks all DIEs of the unit.
    pub(crate) fn read(view: View<'_, '_>) -> Self {
        let mut walk = Walk { scopes: Vec::new(), open: Vec::new() };
        // The walk for functions has told what is broken.
        let _ = walk.run(view);
        walk.scopes.shrink_to_fit();
        Self { scopes: walk.scopes }
    }

    /// The scopes around a DIE (counted from the unit's start), innermost first.
    fn around(&self, die: u32) -> impl Iterator<Item = &Scope> {
        let behind = self.scopes.partition_point(|scope| scope.start < die);
        let nearest = behind.checked_sub(1).and_then(|index| self.scopes.get(index));
        let parent = |scope: &&Scope| self.scopes.get(scope.parent? as usize);
        // Parents stand before their children, so this ends.
        std::iter::successors(nearest, parent).filter(move |scope| die < scope.end)
    }
}

struct Walk {
    scopes: Vec<Scope>,
    /// The DIEs whose children are being read: those that are scopes with their start, tag, and number once a function
    /// was seen in them.
    open: Vec<Option<Open>>,
}

#[derive(Clone, Copy)]
struct Open {
    start: u32,
    tag: u16,
    number: Option<u32>,
}

impl Walk {
    fn run(&mut self, view: View<'_, '_>) -> Result<(), Malformed> {
        let abbrevs = &*view.body.abbrevs;
        let unit = view.unit.header.offset;
        let mut reader = view.reader(view.unit.header.root);
        while !reader.is_empty() {
            let start = reader;
            match next_die(&mut reader, abbrevs)? {
                None => self.close(reader.offset() - unit),
                Some(abbrev) => {
                    let read = abbrevs.skip(abbrev, &mut reader);
                    read.ok_or_else(|| start.malformed(".debug_info", "a DIE with all its attributes"))?;
                    if abbrev.tag == dw::DW_TAG_subprogram.0 {
                        self.keep_open_ones();
                    }
                    if abbrev.has_children {
                        let start = u32::try_from(start.offset() - unit).ok();
                        let is_scope = start.filter(|_| is_scope(abbrev.tag));
                        self.open.push(is_scope.map(|start| Open { start, tag: abbrev.tag, number: None }));
                    }
                }
            }
            if self.open.is_empty() {
                break;
            }
        }
        while !self.open.is_empty() {
            self.close(reader.offset() - unit);
        }
        Ok(())
    }

    /// Numbers the open scopes, since a function lies in them.
    fn keep_open_ones(&mut self) {
        let kept = self.open.iter().rposition(|open| open.is_some_and(|open| open.number.is_some()));
        let mut parent = kept.and_then(|index| self.open.get(index).copied()??.number);
        for open in self.open.iter_mut().skip(kept.map_or(0, |kept| kept + 1)).flatten() {
            let Ok(number) = u32::try_from(self.scopes.len()) else { return };
            self.scopes.push(Scope { start: open.start, end: u32::MAX, parent, tag: open.tag });
            open.number = Some(number);
            parent = Some(number);
        }
    }

    fn close(&mut self, end: u64) {
        let number = self.open.pop().flatten().and_then(|open| open.number);
        if let Some(scope) = number.and_then(|number| self.scopes.get_mut(number as usize)) {
            scope.end = u32::try_from(end).unwrap_or(u32::MAX);
        }
    }
}

fn is_scope(tag: u16) -> bool {
    matches!(
        gimli::DwTag(tag),
        dw::DW_TAG_namespace
            | dw::DW_TAG_module
            | dw::DW_TAG_class_type
            | dw::DW_TAG_structure_type
            | dw::DW_TAG_union_type
            | dw::DW_TAG_enumeration_type
            | dw::DW_TAG_interface_type
            | dw::DW_TAG_subprogram
    )
}

/// A name with the scopes of its DIE (a section offset of the view's file) before it.
pub(crate) fn qualify(view: View<'_, '_>, die: u64, name: &[u8]) -> String {
    let mut pieces = vec![String::from_utf8_lossy(name).into_owned()];
    let unit = view.unit.header.offset;
    let table = view.unit.scopes.get_or_init(|| Box::new(ScopeTable::read(view)));
    let die = u32::try_from(die.saturating_sub(unit)).unwrap_or(u32::MAX);
    for scope in table.around(die).take(MAX_DEPTH) {
        pieces.extend(scope_name(view, unit + u64::from(scope.start), scope.tag));
    }
    pieces.reverse();
    pieces.join("::")
}

/// The name of a scope, which may be stated where it was declared. Unnamed types are left out.
fn scope_name(view: View<'_, '_>, die: u64, tag: u16) -> Option<String> {
    let stated = read_stated(view, die)?;
    let name = match stated.plain {
        Some(name) => view.string(name),
        None => stated.specification.or(stated.origin).and_then(|to| {
            let (view, die) = follow(view, to)?;
            view.string(read_stated(view, die)?.plain?)
        }),
    };
    match name {
        Some(name) => Some(String::from_utf8_lossy(name).into_owned()),
        None if tag == dw::DW_TAG_namespace.0 => Some("(anonymous namespace)".to_owned()),
        None => None,
    }
}
