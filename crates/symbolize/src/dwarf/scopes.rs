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
    let mut pieces: Vec<String> = Vec::new();
    for scope in around(view, die)? {
        pieces.extend(scope_name(view, scope, pieces.is_empty()));
    }
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
        if let Some(name) = name.get_or_insert_with(|| scope_name(view, *scope, scopes.is_empty())) {
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

/// So many references lead from a function's code to where it was declared: to what was inlined, and to its declaration.
const MAX_HOPS: usize = 4;

/// The name of a scope, which may be stated where it was declared. Unnamed types are left out. The code of a function that was
/// declared in a namespace or class stands by itself, as an outermost scope: then its linkage name tells what it lies in.
fn scope_name(view: View<'_, '_>, scope: Scope, is_outermost: bool) -> Option<String> {
    let (mut at, mut hops) = ((view, scope.die), 0);
    let found = loop {
        let stated = read_stated(at.0, at.1)?;
        if let Some(plain) = stated.plain {
            let linkage = stated.linkage.filter(|_| is_outermost && hops > 0);
            let whole = linkage.and_then(|linkage| at.0.string(linkage)).and_then(nested_name);
            if whole.is_some() {
                return whole;
            }
            break at.0.string(plain);
        }
        hops += 1;
        match stated.specification.or(stated.origin).filter(|_| hops < MAX_HOPS) {
            Some(to) => at = follow(at.0, to)?,
            None => break None,
        }
    };
    match found {
        Some(name) => Some(String::from_utf8_lossy(name).into_owned()),
        None if scope.tag == dw::DW_TAG_namespace.0 => Some("(anonymous namespace)".to_owned()),
        None => None,
    }
}

/// A function with what it lies in, of a linkage name that has plain names alone: `_ZNK4shop4Cart5totalEv` is
/// `shop::Cart::total`. To read the others takes a demangler.
fn nested_name(linkage: &[u8]) -> Option<String> {
    let mut rest = std::str::from_utf8(linkage.strip_prefix(b"_ZN")?)
        .ok()?
        .trim_start_matches(['r', 'V', 'K', 'R', 'O']);
    let mut pieces = Vec::new();
    while !rest.starts_with('E') {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (length, behind) = rest.split_at_checked(digits)?;
        let (piece, behind) = behind.split_at_checked(length.parse().ok()?)?;
        pieces.push(if piece.starts_with("_GLOBAL__N_") { "(anonymous namespace)" } else { piece });
        rest = behind;
    }
    (pieces.len() > 1).then(|| pieces.join("::"))
}

#[cfg(test)]
mod tests {
    use super::nested_name;

    #[test]
    fn plain_linkage_names_tell_what_a_function_lies_in() {
        for (linkage, expected) in [
            ("_ZN4shop8u_lambdaEv", Some("shop::u_lambda")),
            ("_ZNK4shop4Cart5totalEi", Some("shop::Cart::total")),
            ("_ZN12_GLOBAL__N_14loadEv", Some("(anonymous namespace)::load")),
            // Templates, constructors, operators and what is cut need a demangler.
            ("_ZN4shop4RepoI4ItemE4loadEv", None),
            ("_ZN4shop4CartC1Ev", None),
            ("_ZN4shop4CartixEm", None),
            ("_ZN4shop99loadEv", None),
            ("_ZN4shop4loa", None),
            ("_ZN99999999999999999999999loadEv", None),
            ("_Z4loadv", None),
            ("load", None),
            ("", None),
        ] {
            assert_eq!(nested_name(linkage.as_bytes()).as_deref(), expected, "{linkage}");
        }
    }
}
