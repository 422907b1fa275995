//! Two answers side by side.

use crate::explain::{Facts, Pair};
use crate::theirs::{Frame, Theirs};
use backtrail_core::Svma;
use backtrail_symbolize::{Answer, FunctionRef};
use std::collections::BTreeMap;

/// What was found so far.
pub(crate) struct Report {
    facts: Facts,
    equal: usize,
    total: usize,
    with_debug_info: usize,
    frames: usize,
    /// The addresses of each kind, with both answers as text.
    differences: BTreeMap<&'static str, Vec<String>>,
    /// Where our own two ways to an answer differ.
    of_table: Vec<String>,
}

impl Report {
    pub(crate) fn new(facts: Facts, of_table: Vec<String>) -> Self {
        let differences = BTreeMap::new();
        Self { facts, equal: 0, total: 0, with_debug_info: 0, frames: 0, differences, of_table }
    }

    pub(crate) fn compare(&mut self, address: u64, answer: &Answer<'_>, theirs: &Theirs) {
        self.total += 1;
        self.with_debug_info += usize::from(!answer.functions.is_empty());
        self.frames += answer.functions.len();
        let start = answer.function_start.map(Svma::get);
        let ours = frames(answer);
        let same_start = theirs.start.is_none() || theirs.start == start;
        let Some(what) = difference(&ours, &theirs.frames, same_start) else {
            self.equal += 1;
            return;
        };
        let pair = Pair { address, ours: &ours, start, theirs };
        let kind = self.facts.explain(&pair).unwrap_or(what);
        self.differences.entry(kind).or_default().push(pair.to_string());
    }

    pub(crate) fn is_explained(&self) -> bool {
        let is_known = |kind: &&&str| kind.starts_with(char::is_lowercase);
        self.differences.keys().filter(is_known).count() == self.differences.len() && self.of_table.is_empty()
    }

    pub(crate) fn print(&self, show: usize) {
        for (kind, examples) in &self.differences {
            println!("{kind}: {}", examples.len());
            for example in examples.iter().take(show) {
                println!("  {example}");
            }
        }
        println!("other answers of the table: {}", self.of_table.len());
        for example in self.of_table.iter().take(show) {
            println!("  {example}");
        }
        let share = 100.0 * self.equal as f64 / self.total.max(1) as f64;
        println!("debug info: {} addresses, {} frames in all", self.with_debug_info, self.frames);
        println!("same: {} of {} ({share:.3} %)", self.equal, self.total);
    }

    /// For `cargo xtask accuracy`.
    pub(crate) fn to_json(&self, our_seconds: f64, their_seconds: f64) -> String {
        let kinds: BTreeMap<_, _> = self.differences.iter().map(|(kind, all)| (kind, all.len())).collect();
        let (total, same, with_debug_info, frames) =
            (self.total, self.equal, self.with_debug_info, self.frames);
        let report = serde_json::json!({
            "addresses": total, "same": same, "with_debug_info": with_debug_info, "frames": frames,
            "differences": kinds, "of_table": self.of_table.len(), "our_seconds": our_seconds, "their_seconds": their_seconds,
        });
        report.to_string()
    }
}

/// What differs first; in capitals, since it has no explanation yet.
fn difference(own: &[Frame], other: &[Frame], same_start: bool) -> Option<&'static str> {
    if own.len() != other.len() {
        return Some(if own.len() < other.len() { "FEWER frames" } else { "MORE frames" });
    }
    let last = own.len() - 1;
    for (index, (own, other)) in own.iter().zip(other).enumerate() {
        if own.function != other.function && (index < last || !same_start) {
            return Some(match (own.function.is_empty(), other.function.is_empty()) {
                (true, _) => "NO function",
                (_, true) => "A function more",
                _ if index < last => "ANOTHER inlined function",
                _ => "ANOTHER function",
            });
        }
        if own.file != other.file {
            return Some(match (own.file.is_empty(), other.file.is_empty()) {
                (true, _) => "NO file",
                (_, true) => "A file more",
                _ => "ANOTHER file",
            });
        }
        if own.line != other.line {
            return Some("ANOTHER line");
        }
        if own.column != other.column {
            return Some("ANOTHER column");
        }
    }
    None
}

fn frames(answer: &Answer<'_>) -> Vec<Frame> {
    if let Some(symbol) = &answer.symbol {
        let function = symbol.linkage_name().to_owned();
        let file = symbol.source().unwrap_or_default().to_owned();
        return vec![Frame { function, file, ..Frame::default() }];
    }
    if answer.functions.is_empty() {
        return vec![Frame::default()];
    }
    let frame = |function: &FunctionRef<'_>| Frame {
        function: function.linkage_name().unwrap_or_default().to_owned(),
        file: function.file().map(ToString::to_string).unwrap_or_default(),
        line: function.line().unwrap_or(0).into(),
        column: function.column().unwrap_or(0).into(),
    };
    answer.functions.iter().map(frame).collect()
}
