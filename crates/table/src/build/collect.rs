//! Counts names and files, so that the common ones get the short numbers.

use super::batch::{Batch, Function};
use super::heads::Heads;
use super::intern::Strings;
use super::place::{Item, Placed, SYMBOLS};
use super::steps::{Location, OWN, Steps};
use crate::types::{FileId, FunctionHead, NameId, SymbolPiece};
use rayon::prelude::*;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by small numbers that nobody outside chooses.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// Multiplies and folds.
#[derive(Default)]
pub(crate) struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        let product =
            u128::from(self.0.rotate_left(23) ^ number ^ 0x517c_c1b7_2722_0a95) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number.cast_unsigned() as u64);
    }
}

/// The input in the order of the table.
pub(crate) struct Input<'a> {
    pub(crate) batches: &'a [Batch],
    pub(crate) symbols: &'a [SymbolPiece],
    /// The names of the symbols as if they were functions.
    pub(crate) symbol_names: &'a [NameId],
    pub(crate) heads: &'a Heads,
    pub(crate) placed: &'a Placed,
    pub(crate) paths: &'a Strings,
}

impl<'a> Input<'a> {
    pub(crate) fn pieces(&self, item: &Item) -> &'a [(u64, u64)] {
        let start = item.pieces as usize;
        self.placed.pieces.get(start..start + item.piece_count as usize).unwrap_or_default()
    }

    /// Reads a function.
    pub(crate) fn read(&self, item: &Item, function: &mut Function) -> Option<()> {
        self.batches.get(item.batch as usize)?.read(item.index, self.pieces(item), function)
    }

    pub(crate) fn symbol(&self, item: &Item) -> Option<&'a SymbolPiece> {
        if item.batch == SYMBOLS { self.symbols.get(item.index as usize) } else { None }
    }

    /// What a symbol is called.
    pub(crate) fn symbol_name(&self, item: &Item) -> NameId {
        self.symbol_names.get(item.index as usize).copied().unwrap_or_default()
    }
}

/// What is known of a name.
#[derive(Clone, Copy, Debug)]
struct Seen {
    count: u32,
    first: u64,
    /// The most common location at the function's start, as far as a vote tells, and its votes.
    home: Location,
    votes: u32,
}

impl Default for Seen {
    fn default() -> Self {
        Self { count: 0, first: u64::MAX, home: Location::default(), votes: 0 }
    }
}

/// What one part of the items has.
#[derive(Default)]
struct Collected {
    /// By the number of the name modulo [`SPLITS`], so that threads can merge them side by side.
    names: [FastMap<NameId, Seen>; SPLITS],
    files: Vec<u32>,
    too_deep: u64,
}

impl Collected {
    fn name(&mut self, name: NameId, order: u64, home: Location) {
        let Some(names) = self.names.get_mut(name.0 as usize % SPLITS) else { return };
        let seen = names.entry(name).or_insert(Seen { first: order, ..Seen::default() });
        seen.count = seen.count.saturating_add(1);
        if home != Location::default() {
            seen.vote(home, 1);
        }
    }

    fn file(&mut self, file: u32) {
        if let Some(count) = file.checked_sub(1).and_then(|file| self.files.get_mut(file as usize)) {
            *count = count.saturating_add(1);
        }
    }
}

/// What all parts have seen.
struct All {
    /// For each split, what is known of its names.
    splits: Vec<Vec<Seen>>,
    files: Vec<u32>,
    too_deep: u64,
}

impl All {
    fn of(parts: &[Collected], names: usize, files: usize) -> Self {
        let splits = (0..SPLITS).into_par_iter().map(|split| names_of(parts, split, names));
        let mut all = Self { splits: splits.collect(), files: vec![0; files], too_deep: 0 };
        for part in parts {
            for (own, count) in all.files.iter_mut().zip(&part.files) {
                *own = own.saturating_add(*count);
            }
            all.too_deep += part.too_deep;
        }
        all
    }

    /// The names that occur.
    fn names(&self) -> impl Iterator<Item = (u32, Seen)> {
        let splits = (0u32..).zip(&self.splits);
        splits.flat_map(|(split, names)| {
            let numbers = (split..).step_by(SPLITS);
            numbers.zip(names).filter(|(_, seen)| seen.count > 0).map(|(name, seen)| (name, *seen))
        })
    }
}

/// What all parts say of the names of one split, of `bound` in all splits.
fn names_of(parts: &[Collected], split: usize, bound: usize) -> Vec<Seen> {
    let mut names = vec![Seen::default(); bound.div_ceil(SPLITS)];
    for (name, seen) in parts.iter().filter_map(|part| part.names.get(split)).flatten() {
        let Some(own) = names.get_mut(name.0 as usize / SPLITS) else { continue };
        own.first = own.first.min(seen.first);
        own.count = own.count.saturating_add(seen.count);
        own.vote(seen.home, seen.votes);
    }
    names
}

impl Seen {
    fn vote(&mut self, home: Location, votes: u32) {
        if self.home == home {
            self.votes = self.votes.saturating_add(votes);
        } else if self.votes < votes {
            (self.home, self.votes) = (home, votes - self.votes);
        } else {
            self.votes -= votes;
        }
    }
}

/// The names and files of a table in the order of their numbers.
pub(crate) struct Numbers {
    pub(crate) names: Vec<FunctionHead>,
    /// Where functions of each name start, the files by their new numbers plus one.
    pub(crate) homes: Vec<Location>,
    /// The number of each name plus one, by the builder's number.
    name_numbers: Vec<u32>,
    pub(crate) files: Vec<FileId>,
    file_numbers: Vec<u32>,
    pub(crate) too_deep: u64,
}

impl Numbers {
    /// The number of a name plus one; 0 for one that says nothing.
    #[inline]
    pub(crate) fn name(&self, name: NameId) -> u32 {
        self.name_numbers.get(name.0 as usize).copied().unwrap_or(0)
    }

    /// The home of a name by its number plus one.
    pub(crate) fn home(&self, name: u32) -> Location {
        let home = name.checked_sub(1).and_then(|number| self.homes.get(number as usize));
        home.copied().unwrap_or_default()
    }

    /// The table's number of a file plus one, from the builder's number plus one.
    pub(crate) fn file(&self, file: u32) -> u32 {
        let number = file.checked_sub(1).and_then(|file| self.file_numbers.get(file as usize));
        number.copied().unwrap_or(0)
    }

    pub(crate) fn location(&self, at: Location) -> Location {
        Location { file: self.file(at.file), ..at }
    }
}

/// Pieces of the work: always as many, so that the result is the same on any number of threads.
const PARTS: usize = 32;
/// Pieces of the merging.
const SPLITS: usize = 16;

/// Collects names and files and numbers them by how often they occur.
pub(crate) fn collect(input: &Input<'_>) -> Numbers {
    let items = &input.placed.items;
    let size = items.len().div_ceil(PARTS).max(1);
    let parts: Vec<Collected> = items
        .par_chunks(size)
        .enumerate()
        .map(|(part, items)| collect_part(input, part * size, items))
        .collect();
    number(&All::of(&parts, input.heads.bound(), input.paths.bound()), input)
}

fn collect_part(input: &Input<'_>, first: usize, items: &[Item]) -> Collected {
    let mut all = Collected { files: vec![0; input.paths.bound()], ..Collected::default() };
    let (mut function, mut homes) = (Function::default(), Vec::new());
    for (number, item) in items.iter().enumerate() {
        let mut order = ((first + number) as u64) << 32;
        if input.symbol(item).is_some() {
            all.name(input.symbol_name(item), order, Location::default());
            continue;
        }
        if input.read(item, &mut function).is_none() {
            continue;
        }
        all.too_deep += function.steps.too_deep;
        let own = find_homes(&function.steps, &mut homes);
        if function.is_function {
            all.name(function.name, order, own);
        }
        for (inline, home) in function.inlines.iter().zip(&homes) {
            order += 1;
            // What has no address is not told.
            if let Some(home) = home {
                all.name(inline.name, order, *home);
                all.file(inline.call.file.map_or(0, |file| file.0 + 1));
            }
        }
        function.steps.steps.iter().for_each(|step| all.file(step.at.file));
    }
    all
}

/// The location at the first step of the function and of each of its calls; `None` for calls that have no step, and no
/// call in them has.
fn find_homes(steps: &Steps, homes: &mut Vec<Option<Location>>) -> Location {
    homes.clear();
    homes.resize(steps.parents.len(), None);
    let mut own = Location::default();
    let mut has_own = false;
    for step in &steps.steps {
        let mut call = step.call;
        if call == OWN && !has_own {
            (own, has_own) = (step.at, true);
        }
        let mut at = step.at;
        while let Some(home) = homes.get_mut(call as usize) {
            match home {
                Some(known) if *known != Location::default() => break,
                _ => *home = Some(at),
            }
            // Callers whose own code comes later say so then.
            at = Location::default();
            call = steps.parents.get(call as usize).copied().unwrap_or(OWN);
        }
    }
    own
}

fn number(all: &All, input: &Input<'_>) -> Numbers {
    let paths = input.paths;
    // 0 is the number of what has no name.
    let mut names: Vec<(u32, Seen)> = all.names().filter(|(name, _)| *name > 0).collect();
    names.par_sort_unstable_by_key(|(_, seen)| (u32::MAX - seen.count, seen.first));
    let mut name_numbers = vec![0; input.heads.bound()];
    for (number, (name, _)) in (1..).zip(&names) {
        if let Some(slot) = name_numbers.get_mut(*name as usize) {
            *slot = number;
        }
    }
    let used = all.files.iter().enumerate().filter(|(_, count)| **count > 0);
    let mut files: Vec<(u32, u32)> = used.map(|(file, count)| (u32::MAX - count, file as u32)).collect();
    // The builder's numbers depend on who came first.
    files.par_sort_unstable_by(|a, b| (a.0, paths.get(a.1)).cmp(&(b.0, paths.get(b.1))));
    let mut file_numbers = vec![0; all.files.len()];
    for (number, (_, file)) in files.iter().enumerate() {
        if let Some(slot) = file_numbers.get_mut(*file as usize) {
            *slot = number as u32 + 1;
        }
    }
    let mut numbers = Numbers {
        names: names.iter().map(|(name, _)| input.heads.get(NameId(*name))).collect(),
        homes: Vec::new(),
        name_numbers,
        files: files.iter().map(|(_, file)| FileId(*file)).collect(),
        file_numbers,
        too_deep: all.too_deep,
    };
    numbers.homes = names.iter().map(|(_, seen)| numbers.location(seen.home)).collect();
    numbers
}
