//! Which function has which addresses.

use super::batch::Batch;
use super::spans::{Ranked, Span, flatten, paint};
use crate::types::SymbolPiece;
use rayon::prelude::*;

/// Functions go before lines without a function, these before symbols.
const FUNCTION: u64 = 0;
const LINES: u64 = 1 << 40;
const SYMBOL: u64 = 2 << 40;

/// Everything that has addresses, in the order of its first one.
#[derive(Default)]
pub(crate) struct Placed {
    pub(crate) items: Vec<Item>,
    /// Pieces of the items, each item's sorted and together.
    pub(crate) pieces: Vec<(u64, u64)>,
    /// Functions that have no address left.
    pub(crate) merged: u64,
}

/// A function, lines without one, or a symbol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    /// Number of the batch; [`SYMBOLS`] for a symbol.
    pub(crate) batch: u32,
    /// Number in the batch or among the symbols.
    pub(crate) index: u32,
    /// Where its pieces start.
    pub(crate) pieces: u32,
    pub(crate) piece_count: u32,
}

pub(crate) const SYMBOLS: u32 = u32::MAX;

/// Gives each address to one owner.
pub(crate) fn place(batches: &[Batch], symbols: &[SymbolPiece]) -> Placed {
    let mut spans: Vec<Ranked> = batches
        .par_iter()
        .enumerate()
        .flat_map_iter(|(number, batch)| of_batch(number as u64, batch))
        .collect();
    spans.extend(of_symbols(symbols));
    spans.par_sort_by_key(|span| (span.start, span.rank, span.owner));
    let functions: usize = batches.par_iter().map(Batch::function_count).sum();
    let mut painted = paint(&spans);
    drop(spans);
    painted.par_sort_by_key(|span| (span.rank, span.owner, span.start));
    let mut placed = group(&painted);
    let kept = placed.items.iter().filter(|item| item.batch != SYMBOLS).count();
    placed.merged = functions.saturating_sub(kept) as u64;
    let pieces = &placed.pieces;
    placed.items.par_sort_by_key(|item| pieces.get(item.pieces as usize).map(|piece| piece.0));
    placed
}

/// Joins the spans of each owner; they come sorted by owner.
fn group(painted: &[Ranked]) -> Placed {
    let mut placed = Placed { pieces: Vec::with_capacity(painted.len()), ..Placed::default() };
    for of_owner in painted.chunk_by(|a, b| (a.rank, a.owner) == (b.rank, b.owner)) {
        let Some(first) = of_owner.first() else { continue };
        let batch = if first.rank == SYMBOL { SYMBOLS } else { (first.rank & !LINES) as u32 };
        let pieces = placed.pieces.len() as u32;
        placed.pieces.extend(of_owner.iter().map(|span| (span.start, span.end)));
        placed.items.push(Item { batch, index: first.owner, pieces, piece_count: of_owner.len() as u32 });
    }
    placed
}

fn of_batch(number: u64, batch: &Batch) -> Vec<Ranked> {
    let (mut functions, mut lines) = (Vec::new(), Vec::new());
    for range in &batch.ranges {
        let span = Span { start: range.start, end: range.end, owner: range.function };
        if batch.is_function(range.function) { functions.push(span) } else { lines.push(span) }
    }
    let mut scratch = Vec::new();
    flatten(&mut functions, &mut scratch);
    flatten(&mut lines, &mut scratch);
    let ranked =
        |spans: Vec<Span>, kind: u64| spans.into_iter().map(move |span| ranked(&span, kind | number));
    ranked(functions, FUNCTION).chain(ranked(lines, LINES)).collect()
}

fn of_symbols(symbols: &[SymbolPiece]) -> Vec<Ranked> {
    let mut spans: Vec<Span> = Vec::with_capacity(symbols.len());
    for (owner, symbol) in symbols.iter().enumerate() {
        spans.push(Span {
            start: symbol.range.start().get(),
            end: symbol.range.end().get(),
            owner: owner as u32,
        });
    }
    flatten(&mut spans, &mut Vec::new());
    spans.iter().map(|span| ranked(span, SYMBOL)).collect()
}

fn ranked(span: &Span, rank: u64) -> Ranked {
    Ranked { start: span.start, end: span.end, rank, owner: span.owner }
}
