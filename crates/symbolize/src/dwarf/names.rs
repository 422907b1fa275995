//! A function's names, collected along its abstract origins and declarations.

use super::scopes::qualify;
use super::stated::{Stated, follow, read_stated};
use super::value::Value;
use super::view::View;

/// Origins and declarations are followed this far. Honest chains have up to three: inlined call, abstract instance,
/// declaration in a class. Hostile ones go round in circles.
const MAX_HOPS: usize = 16;

/// The names of a function.
#[derive(Clone, Default)]
pub(crate) struct Names<'a> {
    /// What the linker sees.
    pub(crate) linkage: Option<&'a [u8]>,
    /// What the source says, without scope.
    pub(crate) plain: Option<&'a [u8]>,
    /// The same with its scope, where there is one and no linkage name.
    pub(crate) qualified: Option<String>,
}

/// Collects the names of the function DIE at a section offset of the view's file, until there is a linkage name.
pub(crate) fn resolve<'a>(view: View<'a, '_>, die: u64) -> Names<'a> {
    let (mut names, unscoped) = collect(view, die);
    if let Some((view, die)) = unscoped {
        names.qualified = qualify(view, die, names.plain.unwrap_or_default());
    }
    names
}

/// A DIE by its unit and section offset.
pub(crate) type DieRef<'a, 'd> = (View<'a, 'd>, u64);

/// The same without scopes; the DIE whose scopes belong before the plain name, if some do.
fn collect<'a, 'd>(view: View<'a, 'd>, die: u64) -> (Names<'a>, Option<DieRef<'a, 'd>>) {
    collect_with(view, die, read_stated, |view, value| view.string(value).filter(|text| !text.is_empty()))
}

/// The same with what DIEs say as `stated` reads it, and names as `text` does.
pub(crate) fn collect_with<'a, 'd>(
    view: View<'a, 'd>,
    die: u64,
    stated: impl Fn(View<'a, 'd>, u64) -> Option<Stated>,
    text: impl Fn(View<'a, 'd>, Value) -> Option<&'a [u8]>,
) -> (Names<'a>, Option<DieRef<'a, 'd>>) {
    let mut names = Names::default();
    let mut at = (view, die);
    for _ in 0..MAX_HOPS {
        let (view, die) = at;
        let Some(stated) = stated(view, die) else { break };
        let text = |value: Option<Value>| text(view, value?);
        names.linkage = text(stated.linkage);
        names.plain = names.plain.or_else(|| text(stated.plain));
        if names.linkage.is_some() {
            return (names, None);
        }
        let Some(next) = stated.origin.or(stated.specification).and_then(|to| follow(view, to)) else {
            break;
        };
        at = next;
    }
    let is_unscoped = names.plain.is_some() && at.0.root().has_mangled_names();
    (names, is_unscoped.then_some(at))
}
