//! The namespaces and types around functions whose debug info states no linkage name: what gcc leaves out of C++ for
//! everything that the linker does not see.

use super::reader::Reader;
use super::stated::{follow, read_stated};
use super::value::Value;
use super::view::View;
use gimli::constants as dw;
use std::iter::Peekable;
use std::sync::PoisonError;

/// A name with the scopes of its DIE (a section offset of the view's file) before it.
pub(crate) fn qualify(view: View<'_, '_>, die: u64, name: &[u8]) -> Option<String> {
    let cache = view.unit.scopes.get_or_init(Box::default);
    let key = u32::try_from(die.checked_sub(view.unit.header.offset)?).ok()?;
    if let Some(known) = cache.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return Some(known.clone());
    }
    let scopes = around(view, die)?.into_iter().filter_map(|scope| scope_name(view, scope));
    let mut pieces: Vec<String> = scopes.collect();
    pieces.push(String::from_utf8_lossy(name).into_owned());
    let qualified = pieces.join("::");
    cache.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, qualified.clone());
    Some(qualified)
}

/// What belongs before the names of DIEs: their scopes, each with `::` behind it; all in one walk. `dies` are section
/// offsets of one unit, sorted.
pub(crate) fn scopes_of_all(view: View<'_, '_>, dies: &[u64]) -> Vec<Option<String>> {
    let mut scopes = vec![None; dies.len()];
    let mut wanted = dies.iter().copied().zip(scopes.iter_mut()).peekable();
    let _ = qualify_each(view, &mut wanted);
    scopes
}

fn qualify_each<'n>(
    view: View<'_, '_>,
    wanted: &mut Peekable<impl Iterator<Item = (u64, &'n mut Option<String>)>>,
) -> Option<()> {
    let mut reader = view.reader(view.unit.header.root);
    // Each with its name, once it was asked for.
    let mut open: Vec<(Scope, Option<Option<String>>)> = Vec::new();
    while let Some(&(die, _)) = wanted.peek() {
        let start = reader.offset();
        if start > die {
            wanted.next();
            continue;
        }
        if start == die
            && let Some((_, name)) = wanted.next()
        {
            *name = Some(scopes_of(view, &mut open));
        }
        let next = wanted.peek().map_or(u64::MAX, |(die, _)| *die);
        match step(view, &mut reader, next)? {
            Step::Up => _ = open.pop(),
            Step::Over => {}
            Step::Into(scope) => open.push((scope, None)),
        }
    }
    Some(())
}

fn scopes_of(view: View<'_, '_>, open: &mut [(Scope, Option<Option<String>>)]) -> String {
    let mut scopes = String::new();
    for (scope, name) in open.iter_mut().filter(|(scope, _)| is_scope(scope.tag)) {
        if let Some(name) = name.get_or_insert_with(|| scope_name(view, *scope)) {
            scopes.push_str(name);
            scopes.push_str("::");
        }
    }
    scopes
}

/// A DIE that others lie in.
#[derive(Clone, Copy)]
struct Scope {
    /// Section offset.
    die: u64,
    tag: u16,
}

/// Where a step through a unit's DIEs leads.
enum Step {
    /// To what follows the DIE that the last ones stand in.
    Up,
    /// To what follows one DIE.
    Over,
    /// To the first of a DIE's children.
    Into(Scope),
}

/// Steps over the DIE at the reader's position, or into it: over its children only where it says that they end at or
/// before the section offset `until`.
fn step(view: View<'_, '_>, reader: &mut Reader<'_>, until: u64) -> Option<Step> {
    let abbrevs = &*view.body.abbrevs;
    let start = reader.offset();
    let Some(abbrev) = abbrevs.next_die(reader).ok()? else { return Some(Step::Up) };
    if !abbrev.has_children {
        abbrevs.skip(abbrev, reader)?;
        return Some(Step::Over);
    }
    let sibling = match abbrevs.fields(abbrev, reader)?.sibling {
        Some(Value::UnitRef(sibling)) => view.unit.header.offset.checked_add(sibling),
        _ => None,
    };
    match sibling.and_then(|sibling| sibling.checked_sub(reader.offset()).filter(|_| sibling <= until)) {
        Some(distance) => reader.skip(distance).map(|()| Step::Over),
        None => Some(Step::Into(Scope { die: start, tag: abbrev.tag })),
    }
}

/// The scopes around a DIE, outermost first. Subtrees that end before it are passed over where they say so.
fn around(view: View<'_, '_>, die: u64) -> Option<Vec<Scope>> {
    let mut reader = view.reader(view.unit.header.root);
    let mut open: Vec<Scope> = Vec::new();
    while reader.offset() < die {
        match step(view, &mut reader, die)? {
            Step::Up => _ = open.pop(),
            Step::Over => {}
            Step::Into(scope) => open.push(scope),
        }
    }
    // Otherwise this is no DIE's start.
    if reader.offset() != die {
        return None;
    }
    open.retain(|scope| is_scope(scope.tag));
    Some(open)
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

/// The name of a scope, which may be stated where it was declared. Unnamed types are left out.
fn scope_name(view: View<'_, '_>, scope: Scope) -> Option<String> {
    let stated = read_stated(view, scope.die)?;
    let name = match stated.plain {
        Some(name) => view.string(name),
        None => stated.specification.or(stated.origin).and_then(|to| {
            let (view, die) = follow(view, to)?;
            view.string(read_stated(view, die)?.plain?)
        }),
    };
    match name {
        Some(name) => Some(String::from_utf8_lossy(name).into_owned()),
        None if scope.tag == dw::DW_TAG_namespace.0 => Some("(anonymous namespace)".to_owned()),
        None => None,
    }
}
