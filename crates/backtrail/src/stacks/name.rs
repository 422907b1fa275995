//! Names for frames.

use super::Detail;
use super::place::Placed;
use super::walk::Walker;
use crate::open_image::OpenImage;
use crate::{ImageSymbols, Located, SymbolStatus, Symbols};
use backtrail_core::{FrameAddress, Reason, Svma, Symbol};
use backtrail_demangle as demangle;
use backtrail_report::{Frame, Thread};
use std::collections::{BTreeSet, HashMap};

/// Looks every frame up in the files of its image, each address once.
pub(super) fn name(
    walker: &Walker<'_>,
    threads: &mut [Thread],
    states: &mut [ImageSymbols],
    symbols: &Symbols,
    detail: Detail,
) {
    let answers = look_up(walker, threads, symbols, detail);
    for placed in walker.placed {
        if let Some(state) = states.get_mut(placed.shown) {
            placed.names.tell(state);
        }
    }
    for frame in threads.iter_mut().flat_map(|thread| &mut thread.frames) {
        let Some(address) = frame.address else { continue };
        let Some((image, svma)) = place(walker, address) else {
            in_no_image(walker, frame, address);
            continue;
        };
        let located = answers.get(&(std::ptr::from_ref(image), svma)).cloned().unwrap_or_default();
        located.fill_in(frame, address);
        if detail == Detail::Addresses {
            continue;
        }
        if let Some(state) = states.get_mut(image.shown).filter(|_| frame.names().next().is_none()) {
            state.unnamed_frames += 1;
            frame.reason = match state.status {
                SymbolStatus::Found if !state.unreadable => frame.reason.or(Some(Reason::NoSymbol)),
                _ => Some(reason(state)),
            };
        }
    }
    for state in states {
        if state.unnamed_frames == 0 && state.status == SymbolStatus::Missing {
            state.status = SymbolStatus::NoneNeeded;
        }
    }
}

/// The image of an address, and the stated address to look up there.
fn place<'w>(walker: &Walker<'w>, address: FrameAddress) -> Option<(&'w Placed, Svma)> {
    let lookup = address.lookup(walker.arch);
    let image = walker.placed_at(lookup)?;
    Some((image, image.bias.to_svma(lookup)?))
}

type Answers = HashMap<(*const Placed, Svma), Located>;

fn look_up(walker: &Walker<'_>, threads: &[Thread], symbols: &Symbols, detail: Detail) -> Answers {
    if detail == Detail::Addresses {
        return Answers::new();
    }
    let mut wanted: HashMap<*const Placed, (&Placed, BTreeSet<Svma>)> = HashMap::new();
    let addresses = threads.iter().flat_map(|thread| &thread.frames).filter_map(|frame| frame.address);
    for (image, svma) in addresses.filter_map(|address| place(walker, address)) {
        wanted.entry(std::ptr::from_ref(image)).or_insert_with(|| (image, BTreeSet::new())).1.insert(svma);
    }
    let mut answers = Answers::new();
    for (key, (image, addresses)) in wanted {
        let Some(names) = image.names.open() else { continue };
        let addresses: Vec<_> = addresses.into_iter().collect();
        let with_table = symbols.with_table(names);
        let names = with_table.as_ref().unwrap_or(names);
        let located = match detail {
            Detail::Lines => names.lookup_all(symbols.index(), &addresses),
            _ => vec![Located::default(); addresses.len()],
        };
        let running = |(svma, located)| ((key, svma), of_function(names, svma, located));
        answers.extend(addresses.into_iter().zip(located).map(running));
    }
    answers
}

/// A stack is made of functions: where the nearest symbol only marks a place inside of one, the function it is. Android's
/// runtime gives symbols the language's own names (`int Main.compare(Main, Main)`) and debug info only parts of them.
pub(crate) fn of_function(names: &OpenImage, svma: Svma, mut located: Located) -> Located {
    let function = names.enclosing_function(svma);
    let symbol = match function {
        Some(function) if located.functions.is_empty() => Some(function),
        Some(function)
            if function.name.ends_with(')') && function.linkage_name.as_ref() == Some(&function.name) =>
        {
            if let Some(outermost) = located.functions.last_mut() {
                (outermost.name, outermost.linkage_name) = (function.name, function.linkage_name);
            }
            None
        }
        _ => located.symbol.take(),
    };
    if let Some(mut symbol) = symbol.filter(|_| located.functions.is_empty()) {
        readable(&mut symbol);
        located.function_offset = Some(symbol.offset);
        located.symbol = Some(symbol);
        located.reason = None;
    }
    located
}

/// Android's dynamic linker has a prefix before the names of everything that was linked into it, so that its `malloc` is
/// told from the C library's. The prefix stays in the readable name for the same reason.
fn readable(symbol: &mut Symbol) {
    const PREFIX: &str = "__dl_";
    let mangled = symbol.linkage_name.as_deref().and_then(|name| name.strip_prefix(PREFIX));
    if let Some(mangled) = mangled.filter(|mangled| mangled.starts_with("_Z")) {
        symbol.name = format!("{PREFIX}{}", demangle::demangle(mangled, &demangle::Options::default()));
    }
}

/// Data that an interpreter runs is named by what was mapped there.
fn in_no_image(walker: &Walker<'_>, frame: &mut Frame, address: FrameAddress) {
    let mapping = walker.mapping_at(address.lookup(walker.arch));
    frame.image_name = mapping
        .filter(|mapping| !mapping.name.is_empty())
        .map(|mapping| mapping.name.rsplit('/').next().unwrap_or(&mapping.name).to_owned());
    frame.reason = Some(if frame.image_name.is_some() { Reason::MissingSymbols } else { Reason::NoImage });
}

fn reason(state: &ImageSymbols) -> Reason {
    match state.status {
        SymbolStatus::IdMismatch(_) => Reason::IdMismatch,
        _ if state.unreadable => Reason::Unreadable,
        _ => Reason::MissingSymbols,
    }
}
