//! A table held against the debug info that it was made from.

use super::walk::{Walked, walk};
use super::work::{self, Opened};
use super::{Code, ConvertError, Silent, names::is_mangled, pool};
use crate::answer::Step;
use crate::answer::{Answer, FunctionRef};
use crate::dwarf::{Plan, Rows};
use crate::symbolizer::Symbolizer;
use backtrail_core::Svma;
use backtrail_object::{GoFunction, GoTable};
use backtrail_table::{Frame, Lookup, Table};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

/// What looking everything up again came to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Verified {
    /// Line rows that were looked up.
    pub rows: u64,
    /// First and last addresses of ranges of functions and inlined calls that were looked up.
    pub ranges: u64,
    /// Addresses with another answer.
    pub differences: u64,
    /// The first of them, in words.
    pub shown: Vec<String>,
}

const MAX_SHOWN: usize = 20;

impl Verified {
    fn join(&mut self, other: Self) {
        self.rows += other.rows;
        self.ranges += other.ranges;
        self.differences += other.differences;
        self.shown.extend(other.shown);
    }
}

/// Looks up every line row and every end of a function's or inlined call's range in the table and in the debug info.
///
/// # Errors
/// When no threads can be started.
pub fn verify(
    table: &Table<'_>,
    symbolizer: &Symbolizer<'_>,
    threads: Option<usize>,
) -> Result<Verified, ConvertError> {
    let total = Mutex::new(Verified::default());
    pool(threads)?.install(|| {
        let code = Code::of(symbolizer);
        let jobs = code.jobs();
        work::each(&jobs, &Silent, <(Rows, Walked)>::default, |(rows, walked), _, opened| {
            let Opened::Unit { view, dies, target } = opened else { return };
            rows.read(view);
            walk(dies, &Plan::new(&dies.body.abbrevs), true, walked);
            let mut addresses = Vec::new();
            let mut keep = |address: u64| {
                let end = address.saturating_add(1);
                target.clip(address, end, &mut |start, _, shift| addresses.push(start.wrapping_add(shift)));
            };
            let mut found = Verified::default();
            for span in rows.spans() {
                rows.between(span.start, span.end, &mut |address, _| {
                    found.rows += 1;
                    keep(address);
                });
            }
            for (start, end) in walked.ranges.iter().filter(|(start, end)| start < end) {
                found.ranges += 2;
                keep(*start);
                keep(end - 1);
            }
            addresses.sort_unstable();
            addresses.dedup();
            compare(table, symbolizer, &addresses, &mut found);
            total.lock().unwrap_or_else(PoisonError::into_inner).join(found);
        });
    });
    let mut total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    total.join(go(table, symbolizer));
    total.shown.sort();
    total.shown.truncate(MAX_SHOWN);
    Ok(total)
}

/// Looks up where Go's own table has another answer.
fn go(table: &Table<'_>, symbolizer: &Symbolizer<'_>) -> Verified {
    let pieces = symbolizer.go_table().into_iter().flat_map(GoTable::functions).flat_map(GoFunction::pieces);
    let addresses: Vec<u64> = pieces.map(|piece| piece.addresses.start().get()).collect();
    let mut found = Verified { rows: addresses.len() as u64, ..Verified::default() };
    compare(table, symbolizer, &addresses, &mut found);
    found
}

fn compare(table: &Table<'_>, symbolizer: &Symbolizer<'_>, addresses: &[u64], found: &mut Verified) {
    for address in addresses.iter().map(|address| Svma::new(*address)) {
        let Some(answer) = answer(symbolizer, address) else { continue };
        let (direct, packed) = (Words::of_answer(&answer), Words::of_table(table, address));
        if direct != packed {
            found.differences += 1;
            if found.shown.len() < MAX_SHOWN {
                found.shown.push(format!("{address}: debug info says {direct}, the table {packed}"));
            }
        }
    }
}

/// Files that one lookup may ask for.
const MAX_REQUESTS: usize = 64;

fn answer<'s>(symbolizer: &'s Symbolizer<'_>, address: Svma) -> Option<Answer<'s>> {
    for _ in 0..MAX_REQUESTS {
        match symbolizer.lookup(address) {
            Step::Answer(answer) => return Some(answer),
            // What was to be had was asked for before the conversion.
            Step::NeedFile(request) => symbolizer.provide(&request, None),
        }
    }
    None
}

/// An answer in a form that can be compared: without making names readable, which costs more than all else.
#[derive(PartialEq, Eq)]
struct Words(Vec<String>);

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(" < "))
    }
}

impl Words {
    fn of_answer(answer: &Answer<'_>) -> Self {
        let mut words: Vec<String> = answer.functions.iter().map(function_words).collect();
        words.extend(
            answer.symbol.map(|symbol| format!("symbol {} at {}", symbol.linkage_name(), symbol.start())),
        );
        words.extend(answer.reason.map(|reason| format!("{reason:?}")));
        words.extend(answer.function_start.map(|start| format!("from {start}")));
        Self(words)
    }

    fn of_table(table: &Table<'_>, address: Svma) -> Self {
        let (mut words, start) = match table.lookup(address) {
            Lookup::Found(found) => {
                let mut is_named = false;
                let frames =
                    found.frames().inspect(|frame| is_named = frame.name.or(frame.linkage_name).is_some());
                let words: Vec<_> = frames.map(|frame| frame_words(&frame)).collect();
                (words, found.function_start().filter(|_| is_named))
            }
            Lookup::Symbol(symbol) => {
                let words = match symbol.name {
                    Some(name) => format!("symbol {} at {}", name.to_text(), symbol.start),
                    None => format!("{:?}", backtrail_core::Reason::Stripped),
                };
                (vec![words], Some(symbol.start))
            }
            Lookup::None(reason) => (vec![format!("{reason:?}")], None),
        };
        words.extend(start.map(|start| format!("from {start}")));
        Self(words)
    }
}

fn function_words(function: &FunctionRef<'_>) -> String {
    let linkage = function.linkage_name();
    let is_readable = function.has_linkage_name() && linkage.is_some_and(|name| is_mangled(name.as_bytes()));
    let name = if is_readable { None } else { Some(function.name()) };
    let file = function.file().map(ToString::to_string);
    let place = (function.line().unwrap_or(0), function.column().unwrap_or(0));
    in_words(name.as_deref(), linkage, file.as_deref(), place, function.is_inlined())
}

fn frame_words(frame: &Frame<'_>) -> String {
    let (linkage, plain) =
        (frame.linkage_name.map(|name| name.to_text()), frame.name.map(|name| name.to_text()));
    let is_readable = linkage.as_deref().is_some_and(|name| is_mangled(name.as_bytes()));
    let name = crate::table::readable(linkage.as_deref().filter(|_| !is_readable), plain.as_deref());
    let file = frame.file.map(|file| {
        let mut path = Vec::new();
        file.append_to(&mut path);
        String::from_utf8_lossy(&path).into_owned()
    });
    let name = if is_readable { None } else { Some(&*name) };
    let place = (frame.line, frame.column);
    in_words(name, linkage.as_deref().or(plain.as_deref()), file.as_deref(), place, frame.inlined)
}

fn in_words(
    name: Option<&str>,
    linkage: Option<&str>,
    file: Option<&str>,
    (line, column): (u32, u32),
    is_inlined: bool,
) -> String {
    let mut words = linkage.unwrap_or("??").to_owned();
    let name = name.filter(|name| !name.is_empty() && Some(*name) != linkage);
    let _ = name.map(|name| write!(words, " ({name})"));
    let _ = write!(words, " {}:{line}:{column}", file.unwrap_or("??"));
    words.push_str(if is_inlined { " inlined" } else { "" });
    words
}
