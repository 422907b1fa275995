//! From what a unit holds to what a table takes.

use super::Worker;
use crate::convert::names::Called;
use crate::convert::symbols::Named;
use crate::convert::target::Target;
use crate::convert::walk::{Call, Function};
use crate::dwarf::{Location, Plan, View};
use backtrail_core::{AddrRange, Svma};
use backtrail_table::{Batch, CallSite, FileId, Language};

/// The numbers of a unit's batches. Where functions of several batches have an address, the lowest one counts.
#[derive(Clone, Copy)]
pub(in crate::convert) struct Ranks {
    pub(in crate::convert) functions: u64,
    /// Functions within functions, which lookups find last.
    pub(in crate::convert) hidden: u64,
    /// Lines that a symbol gives a name to.
    pub(in crate::convert) named_lines: u64,
}

/// A part of a function that goes into the table as one.
#[derive(Clone, Copy)]
struct Part {
    start: u64,
    end: u64,
    shift: u64,
    symbol: Option<Named>,
}

impl Part {
    fn is_of_same(&self, other: &Self) -> bool {
        let name = |part: &Self| part.symbol.map(|symbol| symbol.name);
        self.shift == other.shift && name(self) == name(other)
    }

    fn range(&self) -> AddrRange<Svma> {
        shifted((self.start, self.end), self.shift)
    }
}

fn shifted((start, end): (u64, u64), shift: u64) -> AddrRange<Svma> {
    AddrRange::new(Svma::new(start.wrapping_add(shift)), Svma::new(end.wrapping_add(shift)))
}

/// A unit on its way.
pub(super) struct Emit<'w, 'b, 'a, 'd> {
    worker: &'w mut Worker<'b>,
    view: View<'a, 'd>,
    dies: View<'a, 'd>,
    target: &'w Target<'w>,
    plan: &'w Plan,
    language: Language,
    has_mangled_names: bool,
    parts: Vec<Part>,
    ranges: Vec<AddrRange<Svma>>,
}

impl<'w, 'b, 'a, 'd> Emit<'w, 'b, 'a, 'd> {
    pub(super) fn new(
        worker: &'w mut Worker<'b>,
        view: View<'a, 'd>,
        dies: View<'a, 'd>,
        target: &'w Target<'w>,
        plan: &'w Plan,
    ) -> Self {
        let root = dies.root();
        let (language, has_mangled_names) = (Language(root.language), root.has_mangled_names());
        let (parts, ranges) = (Vec::new(), Vec::new());
        Self { worker, view, dies, target, plan, language, has_mangled_names, parts, ranges }
    }

    pub(super) fn run(mut self, ranks: Ranks) {
        self.name_all();
        self.worker.files.next_unit(&self.worker.rows.files);
        let (mut batch, mut hidden) = (self.worker.builder.batch(), self.worker.builder.batch());
        let functions = std::mem::take(&mut self.worker.walked.functions);
        let calls = std::mem::take(&mut self.worker.walked.calls);
        let mut rest = &*calls;
        for (index, function) in (0u32..).zip(&functions) {
            let own = rest.partition_point(|call| call.function <= index);
            let (own, after) = rest.split_at(own.min(rest.len()));
            rest = after;
            self.function(if function.is_hidden { &mut hidden } else { &mut batch }, function, own);
        }
        (self.worker.walked.functions, self.worker.walked.calls) = (functions, calls);
        let mut named_lines = self.worker.builder.batch();
        if self.target.wants_lines() {
            self.lines(&mut batch, &mut named_lines);
        }
        self.worker.builder.add(ranks.functions, batch);
        self.worker.builder.add(ranks.hidden, hidden);
        self.worker.builder.add(ranks.named_lines, named_lines);
    }

    /// Finds what all functions and calls are called.
    fn name_all(&mut self) {
        let Worker { names, walked, .. } = &mut *self.worker;
        names.next_unit(self.language, walked.functions.len() + walked.calls.len());
        for function in &mut walked.functions {
            function.called = names.of(function.named);
        }
        for call in &mut walked.calls {
            call.called = names.of(call.named);
        }
        names.find_all(self.dies, self.plan);
        // Calls of nested functions stand among those of the function around.
        if !walked.calls.is_sorted_by_key(|call| call.function) {
            walked.calls.sort_by_key(|call| call.function);
        }
    }

    fn function(&mut self, batch: &mut Batch, function: &Function, calls: &[Call]) {
        let called = self.worker.names.called(function.called);
        let wants_symbol = called.linkage.is_none() && (self.has_mangled_names || called.plain.is_none());
        let (symbols, parts) = (self.worker.symbols, &mut self.parts);
        parts.clear();
        for (start, end) in self.worker.walked.ranges(function.ranges) {
            self.target.clip(*start, *end, &mut |start, end, shift| {
                let at = start.wrapping_add(shift);
                let symbol = if wants_symbol { symbols.pieces().starting_at(at) } else { None };
                parts.push(Part { start, end, shift, symbol });
            });
        }
        parts.sort_unstable_by_key(|part| (part.start, part.end));
        while let Some(first) = self.parts.first().copied() {
            let called = match first.symbol {
                Some(symbol) => called.with_symbol(symbol.name, symbol.is_mangled),
                None => called,
            };
            let same = self.parts.iter().filter(|part| part.is_of_same(&first));
            self.ranges.clear();
            self.ranges.extend(same.clone().map(Part::range));
            let name = match first.symbol {
                Some(_) => self.worker.builder.name(called.head(self.language)),
                None => self.worker.names.name(function.called),
            };
            batch.begin_function(name, &self.ranges);
            for call in calls {
                self.call(batch, call, first.shift);
            }
            let parts = std::mem::take(&mut self.parts);
            for part in parts.iter().filter(|part| part.is_of_same(&first)) {
                self.rows(batch, part);
            }
            batch.end_function();
            self.parts = parts;
            self.parts.retain(|part| !part.is_of_same(&first));
        }
    }

    fn call(&mut self, batch: &mut Batch, call: &Call, shift: u64) {
        let name = self.worker.names.name(call.called);
        let file = self.file(call.file);
        let site = CallSite { file, line: call.line, column: call.column };
        let ranges = self.worker.walked.ranges(call.ranges);
        batch.inline(call.depth, name, site, ranges.iter().map(|range| shifted(*range, shift)));
    }

    fn file(&mut self, number: u32) -> Option<FileId> {
        self.worker.files.get(self.view, &self.worker.rows.files, number)
    }

    fn rows(&mut self, batch: &mut Batch, part: &Part) {
        let Worker { rows, files, .. } = &mut *self.worker;
        let mut last: Option<Location> = None;
        rows.between(part.start, part.end, &mut |address, location| {
            if location == last {
                return;
            }
            last = location;
            let file = location.and_then(|location| files.get(self.view, &rows.files, location.file));
            let location = location.unwrap_or_default();
            let address = Svma::new(address.wrapping_add(part.shift));
            batch.row(address, file, location.line, location.column);
        });
    }

    /// Code that has lines and no function.
    fn lines(&mut self, batch: &mut Batch, named: &mut Batch) {
        let (symbols, target) = (self.worker.symbols, self.target);
        let mut parts = Vec::new();
        Worker::uncovered(&self.worker.rows, &self.worker.covered, &mut |start, end| {
            target.clip(start, end, &mut |start, end, shift| {
                target.cut_contested(start, end, &mut |start, end, is_contested| {
                    let (from, to) = (start.wrapping_add(shift), end.wrapping_add(shift));
                    symbols.pieces().cut(from, to, &mut |from, to, symbol| {
                        let (start, end) = (from.wrapping_sub(shift), to.wrapping_sub(shift));
                        parts.push((Part { start, end, shift, symbol }, is_contested));
                    });
                });
            });
        });
        for (part, is_contested) in parts {
            let called =
                part.symbol.map(|symbol| Called::default().with_symbol(symbol.name, symbol.is_mangled));
            let name = self.worker.builder.name(called.unwrap_or_default().head(Language(0)));
            // The first unit that says anything of an address is believed: its lines are as good as functions there.
            let batch = if is_contested || part.symbol.is_none() { &mut *batch } else { &mut *named };
            match part.symbol {
                Some(symbol) => batch.begin_symbol(name, symbol.start, &[part.range()]),
                None if is_contested => batch.begin_function(name, &[part.range()]),
                None => batch.begin_lines(&[part.range()]),
            }
            self.rows(batch, &part);
            batch.end_function();
        }
    }
}
