//! Symbol tables: the answer where there is no debug info.

use crate::answer::SymbolRef;
use crate::code::CodeMap;
use crate::problem::{ProblemKind, Problems};
use backtrail_core::{Reason, Svma};
use backtrail_object::{Format, Object, Symbol};
use std::borrow::Cow;
use std::sync::Arc;

/// The code symbols of an image, from all tables of all its files.
#[derive(Debug)]
pub(crate) struct Symtab<'d> {
    /// Sorted by start, one per address.
    entries: Vec<Entry>,
    names: Vec<Cow<'d, str>>,
    /// Source files of local symbols.
    sources: Vec<&'d str>,
    /// Where functions start, named or not; sorted.
    function_starts: Vec<Svma>,
    has_underscore: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: Svma,
    /// `None` where the table states no size: up to the next symbol, function start or section.
    size: Option<u64>,
    name: u32,
    /// Index into the sources; `u32::MAX` for none.
    source: u32,
}

/// What the tables say of an address.
pub(crate) enum Nearest<'a> {
    Symbol(SymbolRef<'a>),
    /// There is a function, without a name.
    Nameless(Svma),
    None(Reason),
}

/// How many symbols back an enclosing one is looked for. Sized symbols nest where assembler code marks parts of a
/// function, a few deep.
const MAX_STEPS_BACK: usize = 16;

/// How many symbols a function can have inside of it: Android's interpreters have one for each instruction they know.
const MAX_LABELS: usize = 4096;

/// Apple's tools write this in the place of private names.
const REDACTED: &str = "<redacted>";

impl<'d> Symtab<'d> {
    pub(crate) fn read(objects: &[Arc<Object<'d>>], problems: &Problems) -> Self {
        let mut symbols: Vec<Symbol<'d>> = Vec::new();
        let mut function_starts = Vec::new();
        let mut has_underscore = false;
        for object in objects {
            has_underscore |= object.format() == Format::MachO;
            let (own, broken) = object.symbols_and_problems();
            let shadow_ends = object.shadow_ends();
            let is_shadowed = |symbol: &Symbol<'_>| {
                let end = symbol.section.and_then(|section| shadow_ends.get(section));
                end.is_some_and(|end| symbol.address < *end)
            };
            symbols.extend(own.into_iter().filter(|symbol| symbol.is_code && !is_shadowed(symbol)));
            symbols.extend(hidden_symbols(object, problems));
            let starts = object.function_starts();
            let broken = broken.iter().chain(starts.as_ref().err());
            broken.for_each(|error| problems.add(ProblemKind::Symbols, error.to_string()));
            function_starts.extend(starts.unwrap_or_default());
        }
        function_starts.sort_unstable();
        function_starts.dedup();
        Self::of_symbols(symbols, function_starts, has_underscore)
    }

    fn of_symbols(mut symbols: Vec<Symbol<'d>>, function_starts: Vec<Svma>, has_underscore: bool) -> Self {
        // A preference is only found out where two are at one address.
        let prefer = |a: &Symbol<'_>, b: &Symbol<'_>| b.preference().cmp(&a.preference());
        symbols.sort_by(|a, b| a.address.cmp(&b.address).then_with(|| prefer(a, b)));
        symbols.dedup_by_key(|symbol| symbol.address);
        let mut entries = Vec::with_capacity(symbols.len());
        let mut names = Vec::with_capacity(symbols.len());
        let mut sources: Vec<&'d str> = Vec::new();
        for symbol in symbols {
            let Ok(name) = u32::try_from(names.len()) else { break };
            // What lies together is of one file as a rule.
            if let Some(source) = symbol.source.filter(|source| sources.last() != Some(source)) {
                sources.push(source);
            }
            let source = symbol.source.map_or(u32::MAX, |_| sources.len() as u32 - 1);
            entries.push(Entry { start: symbol.address, size: symbol.size, name, source });
            names.push(symbol.name);
        }
        Self { entries, names, sources, function_starts, has_underscore }
    }

    /// The addresses at which the answer may change, besides the borders of sections.
    pub(crate) fn borders(&self) -> impl Iterator<Item = Svma> {
        let ends = self.entries.iter().filter_map(|entry| entry.start.checked_add(entry.size?));
        let starts = self.entries.iter().map(|entry| entry.start);
        starts.chain(ends).chain(self.function_starts.iter().copied())
    }

    /// The nearest lower symbol, unless the address lies behind its end, in another section, or in a function that
    /// starts in between.
    pub(crate) fn nearest(&self, address: Svma, code: &CodeMap) -> Nearest<'_> {
        let section = code.section_start(address);
        if section.is_none() && code.has_sections() {
            return Nearest::None(code.reason(address));
        }
        let section = section.unwrap_or(Svma::new(0));
        let function = self.function_start(address).filter(|start| *start >= section);
        let entry = self.around(address).filter(|entry| entry.start >= section);
        // What states its size reaches that far, even where unwind tables begin anew inside.
        let entry =
            entry.filter(|entry| entry.size.is_some() || function.is_none_or(|start| start <= entry.start));
        match (entry, function) {
            (Some(entry), _) => self.answer(entry, address),
            (None, Some(start)) if code.reason(address) == Reason::NoSymbol => Nearest::Nameless(start),
            _ => Nearest::None(code.reason(address)),
        }
    }

    fn answer(&self, entry: &Entry, address: Svma) -> Nearest<'_> {
        let name = self.names.get(entry.name as usize).map_or("", |name| name);
        if name == REDACTED {
            return Nearest::Nameless(entry.start);
        }
        let offset = address.offset_from(entry.start).unwrap_or(0);
        let has_underscore = self.has_underscore;
        let source = self.sources.get(entry.source as usize).copied();
        Nearest::Symbol(SymbolRef { linkage_name: name, start: entry.start, offset, has_underscore, source })
    }

    /// The innermost symbol that the address is in.
    fn around(&self, address: Svma) -> Option<&Entry> {
        let behind = self.entries.partition_point(|entry| entry.start <= address);
        let mut lower = self.entries.get(..behind)?.iter().rev();
        let nearest = lower.next()?;
        if nearest.contains(address) {
            return Some(nearest);
        }
        lower.take(MAX_STEPS_BACK).find(|entry| entry.size.is_some() && entry.contains(address))
    }

    /// The innermost symbol that states its size and has the address in it: the function, where assembler code marks
    /// places inside of it by symbols without a size.
    pub(crate) fn sized_around(&self, address: Svma) -> Option<SymbolRef<'_>> {
        let behind = self.entries.partition_point(|entry| entry.start <= address);
        let sized =
            self.entries.get(..behind)?.iter().rev().take(MAX_LABELS).filter(|entry| entry.size.is_some());
        let entry = sized.take(MAX_STEPS_BACK).find(|entry| entry.contains(address))?;
        match self.answer(entry, address) {
            Nearest::Symbol(symbol) => Some(symbol),
            _ => None,
        }
    }

    /// The last function start at or below an address.
    fn function_start(&self, address: Svma) -> Option<Svma> {
        let behind = self.function_starts.partition_point(|start| *start <= address);
        self.function_starts.get(behind.checked_sub(1)?).copied()
    }
}

impl Entry {
    fn contains(&self, address: Svma) -> bool {
        let offset = address.offset_from(self.start);
        offset.is_some_and(|offset| self.size.is_none_or(|size| offset < size))
    }
}

/// The symbols in `.gnu_debugdata`, an object file inside the object file.
fn hidden_symbols<'d>(object: &Object<'d>, problems: &Problems) -> Vec<Symbol<'d>> {
    let Some(hidden) = object.gnu_debugdata() else { return Vec::new() };
    let symbols = hidden.and_then(|bytes| {
        let symbols = Object::parse(&bytes)?.symbols()?;
        Ok(symbols.into_iter().filter(|symbol| symbol.is_code).map(Symbol::into_owned).collect())
    });
    symbols.unwrap_or_else(|error| {
        problems.add(ProblemKind::Symbols, format!(".gnu_debugdata: {error}"));
        Vec::new()
    })
}
