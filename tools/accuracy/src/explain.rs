//! Which kind of difference it is, decided from the file and not from the answers alone. Each kind has its paragraph in
//! `docs/accuracy.md`.

use crate::theirs::{Frame, Theirs};
use backtrail_core::{AddrRange, Svma};
use backtrail_object::Object;
use std::fmt;

/// Both answers for an address.
pub(crate) struct Pair<'a> {
    pub(crate) address: u64,
    pub(crate) ours: &'a [Frame],
    /// Where our function or symbol starts.
    pub(crate) start: Option<u64>,
    pub(crate) theirs: &'a Theirs,
}

impl fmt::Display for Pair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}\n    ours ({:#x}):", self.address, self.start.unwrap_or(0))?;
        self.ours.iter().try_for_each(|frame| write!(f, "\n      {frame:?}"))?;
        write!(f, "\n    theirs ({:#x}):", self.theirs.start.unwrap_or(0))?;
        self.theirs.frames.iter().try_for_each(|frame| write!(f, "\n      {frame:?}"))
    }
}

/// What the file says of sections and symbols.
pub(crate) struct Facts {
    sections: Vec<AddrRange<Svma>>,
    symbols: Vec<Place>,
}

/// Where a symbol of code lies.
struct Place {
    start: u64,
    size: Option<u64>,
    section: Option<usize>,
}

impl Facts {
    pub(crate) fn of(object: &Object<'_>) -> Self {
        let sections = object.sections().iter().map(|section| section.address).collect();
        let symbols = object.symbols().unwrap_or_default().into_iter().filter(|symbol| symbol.is_code);
        let symbols = symbols.map(|symbol| Place {
            start: symbol.address.get(),
            size: symbol.size,
            section: symbol.section,
        });
        let symbols = symbols.collect();
        Self { sections, symbols }
    }

    /// The kind of a difference that is understood.
    pub(crate) fn explain(&self, pair: &Pair<'_>) -> Option<&'static str> {
        let ([ours], [theirs]) = (pair.ours, &*pair.theirs.frames) else { return None };
        let their_start = pair.theirs.start?;
        if ours.function.is_empty() && self.is_of_another_section(their_start, pair.address) {
            return Some("symbol of another section");
        }
        let same_place = (&ours.file, ours.line) == (&theirs.file, theirs.line);
        if same_place && self.is_label_inside(their_start, pair.start?) {
            return Some("label inside of a function");
        }
        None
    }

    /// Whether every symbol at `start` belongs to a section that the address is not in. One at the very end of a section
    /// has the first address of the next.
    fn is_of_another_section(&self, start: u64, address: u64) -> bool {
        let is_around = |section: Option<usize>| {
            let range = section.and_then(|index| self.sections.get(index));
            range.is_some_and(|range| range.contains(Svma::new(address)))
        };
        self.at(start).all(|symbol| !is_around(symbol.section))
    }

    /// Whether all symbols at `label` end within one that states its size from `function` on.
    fn is_label_inside(&self, label: u64, function: u64) -> bool {
        let end = |symbol: &Place| symbol.start + symbol.size.unwrap_or(0);
        let is_inside = |outer: &Place| self.at(label).all(|inner| end(inner) <= end(outer));
        label > function && self.at(function).any(is_inside)
    }

    fn at(&self, start: u64) -> impl Iterator<Item = &Place> {
        self.symbols.iter().filter(move |symbol| symbol.start == start)
    }
}
