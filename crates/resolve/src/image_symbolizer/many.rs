//! Many addresses at a time.

use super::ImageSymbolizer;
use backtrail_core::{Svma, SymbolInfo, SymbolInfoRef};
use backtrail_store::{FileData, Index};
use backtrail_symbolize::{TableTexts, table_answer};
use backtrail_table::{Lookup, Table};
use rayon::prelude::*;
use std::io;
use std::sync::PoisonError;

/// Addresses, in ascending order, that are answered before memory is given back, for each thread. Neighbours share
/// units, but for the cold parts of functions: linkers put those of all units together, so that each address has a unit
/// of its own, of a megabyte and more.
const PART: usize = 16;

/// Below this number, handing work to other threads costs more than it saves.
const WORTH_THREADS: usize = 8;

impl ImageSymbolizer {
    /// Shows what lies at each of the addresses, in their order.
    pub(crate) fn show_all(
        &self,
        index: &Index,
        addresses: &[Svma],
        show: &mut dyn FnMut(&SymbolInfoRef<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let of_table = self.joined.with_dependent(|_, parts| {
            let table = parts.table?;
            let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
            let mut answers = table.lookup_many(addresses.iter().copied());
            Some(answers.try_for_each(|(address, answer)| show_one(&answer, address, &mut texts, show)))
        });
        of_table.unwrap_or_else(|| {
            let located = self.lookup_all(index, addresses);
            located.iter().try_for_each(|located| show(&located.into()))
        })
    }

    /// What lies at each of the addresses, in their order.
    pub(crate) fn lookup_all(&self, index: &Index, addresses: &[Svma]) -> Vec<SymbolInfo> {
        if let Some(located) = self.joined.with_dependent(|_, parts| Some(self.ask(parts.table?, addresses)))
        {
            return located;
        }
        if addresses.len() < WORTH_THREADS {
            return addresses.iter().map(|address| self.lookup(index, *address)).collect();
        }
        let mut order: Vec<usize> = (0..addresses.len()).collect();
        let address = |position: usize| addresses.get(position).copied().unwrap_or(Svma::new(0));
        order.sort_by_key(|position| address(*position));
        let mut answers = vec![SymbolInfo::default(); addresses.len()];
        let mut parts = order.chunks(PART * rayon::current_num_threads()).peekable();
        while let Some(part) = parts.next() {
            let of_part: Vec<Svma> = part.iter().map(|position| address(*position)).collect();
            self.read_ahead(&of_part);
            let found: Vec<SymbolInfo> =
                of_part.par_iter().map(|address| self.lookup(index, *address)).collect();
            for (position, found) in part.iter().zip(found) {
                if let Some(answer) = answers.get_mut(*position) {
                    *answer = found;
                }
            }
            if parts.peek().is_some() {
                self.release();
            }
        }
        answers
    }

    /// What the table of the image knows of them.
    fn ask(&self, table: &Table<'_>, addresses: &[Svma]) -> Vec<SymbolInfo> {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = table.lookup_many(addresses.iter().copied());
        let located = answers.map(|(address, answer)| table_answer(&answer, address, &mut texts));
        located.collect()
    }

    /// Reads what lookups of these addresses will need, on all cores.
    pub(crate) fn read_ahead(&self, addresses: &[Svma]) {
        if addresses.len() < WORTH_THREADS {
            return;
        }
        self.joined.with_dependent(|_, parts| {
            if let (None, Some(symbolizer)) = (parts.table, &parts.symbolizer) {
                symbolizer.prepare(addresses);
            }
        });
    }

    /// Gives back the memory of the files' pages; what is read again comes from the system's cache.
    pub(crate) fn release(&self) {
        self.each_file(FileData::release);
    }
}

fn show_one(
    answer: &Lookup<'_>,
    address: Svma,
    texts: &mut TableTexts,
    show: &mut dyn FnMut(&SymbolInfoRef<'_>) -> io::Result<()>,
) -> io::Result<()> {
    if let Lookup::Found(found) = answer {
        let mut functions = Vec::new();
        texts.functions(found, &mut functions);
        return show(&SymbolInfoRef { functions, ..SymbolInfoRef::default() });
    }
    show(&SymbolInfoRef::from(&table_answer(answer, address, texts)))
}
