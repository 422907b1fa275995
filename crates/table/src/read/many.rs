//! Lookups of many addresses.
//!
//! Addresses at random hardly cost anything but waiting: what is told of each lies in cache lines of its own, and where the next
//! one is, is told by the one before. So addresses are taken in groups, and the lines that all of a group need next are read
//! in short loops, in which the processor waits for many of them at a time.

use crate::read::index::ChunkEntry;
use crate::read::{Lookup, Table};
use backtrail_core::{Reason, Svma};
use std::hint::black_box;

/// Addresses of a group.
const GROUP: usize = 32;
/// Names of a group's functions whose texts are read ahead; what is above that is read when it is asked for.
const NAMES: usize = 8 * GROUP;
/// Where the cache lines are that most texts, and most chunks, are in, counted from their start.
const LINES: [usize; 3] = [0, 64, 128];

/// Answers to many addresses, in their order: see [`Table::lookup_many`].
#[derive(Clone, Debug)]
pub struct LookupMany<'t, I> {
    table: &'t Table<'t>,
    addresses: I,
    answers: [(Svma, Lookup<'t>); GROUP],
    /// How many of them there are, and were given.
    count: usize,
    given: usize,
}

impl<'t> Table<'t> {
    /// What is known of each of many addresses, in their order; the same as [`lookup`](Self::lookup) of each, in half the time and
    /// less where the addresses are at random and the table is larger than the processor's caches. Where they may be sorted,
    /// sorting them saves more. Allocates nothing.
    pub fn lookup_many<I>(&'t self, addresses: I) -> LookupMany<'t, I::IntoIter>
    where
        I: IntoIterator<Item = Svma>,
    {
        let answers = [(Svma::new(0), Lookup::None(Reason::NoSymbol)); GROUP];
        LookupMany { table: self, addresses: addresses.into_iter(), answers, count: 0, given: 0 }
    }
}

impl<'t, I: Iterator<Item = Svma>> Iterator for LookupMany<'t, I> {
    type Item = (Svma, Lookup<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.given == self.count {
            self.take_group();
        }
        let answer = self.answers.get(..self.count)?.get(self.given)?;
        self.given += 1;
        Some(*answer)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.count - self.given;
        let (least, most) = self.addresses.size_hint();
        (least.saturating_add(left), most.and_then(|most| most.checked_add(left)))
    }
}

impl<'t, I: Iterator<Item = Svma>> LookupMany<'t, I> {
    fn take_group(&mut self) {
        (self.count, self.given) = (0, 0);
        for (place, address) in self.answers.iter_mut().zip(&mut self.addresses) {
            place.0 = address;
            self.count += 1;
        }
        if let Some(group) = self.answers.get_mut(..self.count) {
            self.table.answer(group);
        }
    }
}

impl<'t> Table<'t> {
    fn answer(&'t self, group: &mut [(Svma, Lookup<'t>)]) {
        let mut entries = [None; GROUP];
        self.find_chunks(group, &mut entries);
        let mut names = [0; NAMES];
        let mut places = names.iter_mut();
        for ((address, answer), entry) in group.iter_mut().zip(entries) {
            *answer = self.lookup_in(address.get(), entry);
            if let Lookup::Found(found) = answer {
                found.names().zip(&mut places).for_each(|(name, place)| *place = name);
            }
        }
        let left = places.len();
        self.fetch_names(names.get(..NAMES - left).unwrap_or_default());
    }

    /// Finds the group's chunks, and reads them ahead.
    fn find_chunks(&self, group: &[(Svma, Lookup<'t>)], entries: &mut [Option<ChunkEntry>; GROUP]) {
        let addresses = || group.iter().map(|(address, _)| address.get());
        fetch(addresses().map(|address| self.index.bucket_of(address).unwrap_or(0)));
        fetch(addresses().map(|address| self.index.nearby(address).unwrap_or(0)));
        for (address, entry) in addresses().zip(entries.iter_mut()) {
            *entry = self.index.find(address).map(|(_, entry)| entry);
        }
        let chunks = entries.iter().map(|entry| entry.map_or(0, |entry| entry.position));
        fetch(chunks.flat_map(|position| lines(self.bodies, position)));
    }

    /// Reads ahead what is told of names, and their texts.
    fn fetch_names(&self, names: &[u32]) {
        let texts = || names.iter().map(|name| self.names.text_of(*name));
        fetch(texts().map(|(_, place)| place));
        fetch(texts().flat_map(|(texts, place)| lines(texts, place)));
    }
}

/// What a group of reads gives is of no use: what counts is that they were made.
fn fetch(read: impl Iterator<Item = u64>) {
    black_box(read.fold(0, u64::wrapping_add));
}

/// A byte of each of the lines from a place on.
fn lines(data: &[u8], place: u64) -> impl Iterator<Item = u64> + '_ {
    let place = usize::try_from(place).unwrap_or(usize::MAX);
    LINES.into_iter().map(move |ahead| data.get(place.saturating_add(ahead)).copied().unwrap_or(0).into())
}
