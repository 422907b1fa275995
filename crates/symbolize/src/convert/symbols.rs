//! Symbol tables as pieces of the address space, each with one answer.

use crate::code::CodeMap;
use crate::symtab::{Nearest, Symtab};
use backtrail_core::{AddrRange, Svma};
use backtrail_table::{Builder, StringId, SymbolPiece};
use std::sync::OnceLock;

/// The symbol tables of an image, read by whoever asks first, while others walk units.
pub(super) struct Symbols<'s> {
    read: &'s (dyn Fn() -> Pieces + Sync),
    pieces: OnceLock<Pieces>,
}

impl<'s> Symbols<'s> {
    pub(super) fn new(read: &'s (dyn Fn() -> Pieces + Sync)) -> Self {
        Self { read, pieces: OnceLock::new() }
    }

    pub(super) fn pieces(&self) -> &Pieces {
        self.pieces.get_or_init(self.read)
    }
}

/// What symbol tables know, by address.
#[derive(Default)]
pub(super) struct Pieces {
    /// Sorted and disjoint.
    pieces: Vec<SymbolPiece>,
    /// For each piece, whether a readable name is made of its name.
    mangled: Vec<bool>,
}

/// A symbol's name.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) name: StringId,
    /// Where the symbol starts, which may be below the piece.
    pub(super) start: Svma,
    pub(super) is_mangled: bool,
}

impl Pieces {
    /// Asks for every address at which the answer may change, and hands what there is to the builder.
    pub(super) fn new(symtab: &Symtab<'_>, code: &CodeMap, builder: &Builder) -> Self {
        let mut borders: Vec<Svma> = symtab.borders().chain(code.borders()).collect();
        borders.sort_unstable();
        borders.dedup();
        let mut pieces: Vec<SymbolPiece> = Vec::new();
        let mut mangled = Vec::new();
        let ends = borders.iter().skip(1).copied().chain([Svma::new(u64::MAX)]);
        for (start, end) in borders.iter().zip(ends) {
            let (symbol, name, is_mangled) = match symtab.nearest(*start, code) {
                Nearest::Symbol(symbol) => {
                    let name = symbol.linkage_name().as_bytes();
                    (symbol.start(), Some(builder.string(name)), super::names::is_mangled(name))
                }
                Nearest::Nameless(function) => (function, None, false),
                Nearest::None(_) => continue,
            };
            let piece = SymbolPiece { range: AddrRange::new(*start, end), start: symbol, name };
            match pieces.last_mut() {
                Some(last) if last.range.end() == *start && (last.start, last.name) == (symbol, name) => {
                    last.range = AddrRange::new(last.range.start(), end);
                }
                _ => {
                    pieces.push(piece);
                    mangled.push(is_mangled);
                }
            }
        }
        pieces.iter().for_each(|piece| builder.symbol(*piece));
        Self { pieces, mangled }
    }

    fn named(&self, index: usize) -> Option<Named> {
        let piece = self.pieces.get(index)?;
        Some(Named { name: piece.name?, start: piece.start, is_mangled: *self.mangled.get(index)? })
    }

    /// The symbol that starts right here.
    pub(super) fn starting_at(&self, address: u64) -> Option<Named> {
        let address = Svma::new(address);
        let index = self.pieces.partition_point(|piece| piece.range.end() <= address);
        let piece = self.pieces.get(index)?;
        if piece.start == address && piece.range.contains(address) { self.named(index) } else { None }
    }

    /// Cuts a range where the symbol changes; each part with its symbol, if there is one with a name.
    pub(super) fn cut(&self, start: u64, end: u64, each: &mut impl FnMut(u64, u64, Option<Named>)) {
        let first = self.pieces.partition_point(|piece| piece.range.end().get() <= start);
        let mut at = start;
        for (offset, piece) in self.pieces.iter().skip(first).enumerate() {
            let from = piece.range.start().get().max(start);
            if from >= end {
                break;
            }
            if piece.name.is_none() {
                continue;
            }
            let to = piece.range.end().get().min(end);
            if at < from {
                each(at, from, None);
            }
            each(from, to, self.named(first + offset));
            at = to;
        }
        if at < end {
            each(at, end, None);
        }
    }
}
