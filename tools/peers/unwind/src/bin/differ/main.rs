//! Independent readings of unwind tables: at many addresses of a file's code, what backtrail's compiled rules give
//! against framehop's caller ([`frames`]) and against the fields of Apple's compact words ([`words`]).
//! `cargo xtask differ [--addresses N] [--examples N] FILE…` runs it.
//!
//! ELF and Mach-O, fat ones slice by slice, x86_64 and aarch64. Addresses are looked up as return addresses: there only
//! tables count.

mod frames;
mod tables;
mod words;

use backtrail_core::{Family, Svma};
use backtrail_unwind::{CoveredRow, Module};
use frames::{Answer, LR, SP, Theirs, apply};
use object::read::macho::{FatArch, MachOFatFile32};
use std::collections::BTreeMap;
use tables::Tables;
use words::Words;

/// About how many addresses of a file are asked for, and how many examples of each difference are shown.
#[derive(Clone, Copy)]
struct Options {
    addresses: u64,
    examples: u64,
}

fn main() {
    let mut options = Options { addresses: 200_000, examples: 5 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|number| number.parse().ok()).expect("a number");
        match argument.as_str() {
            "--addresses" => options.addresses = number(),
            "--examples" => options.examples = number(),
            file => match std::fs::read(file) {
                Ok(data) => slices(data.leak()).into_iter().for_each(|data| compare(file, data, options)),
                Err(error) => println!("{file}: {error}"),
            },
        }
    }
}

/// The file, or each of a fat file's.
fn slices(data: &'static [u8]) -> Vec<&'static [u8]> {
    let Ok(fat) = MachOFatFile32::parse(data) else { return vec![data] };
    fat.arches().iter().filter_map(|arch| arch.data(data).ok()).collect()
}

/// How often each outcome came, with the first examples of those that are differences.
struct Outcomes {
    kinds: BTreeMap<&'static str, (u64, Vec<String>)>,
    examples: u64,
}

impl Outcomes {
    fn add(&mut self, kind: &'static str, example: impl FnOnce() -> String) {
        let (count, examples) = self.kinds.entry(kind).or_default();
        *count += 1;
        let is_difference = kind.contains("different") || kind.starts_with("only backtrail");
        if is_difference && *count <= self.examples {
            examples.push(example());
        }
    }
}

fn compare(name: &str, data: &'static [u8], options: Options) {
    let Some(tables) = Tables::read(data) else { return println!("{name}: not x86_64 or aarch64") };
    let family = tables.arch.family();
    let rules = Module::new(tables.ours()).compile();
    let mut theirs = Theirs::new(&tables);
    let words = Words::new(&tables);
    let mut outcomes = Outcomes { kinds: BTreeMap::new(), examples: options.examples };
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for at in addresses(&tables, options.addresses) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let fp = SP + 0x1000 + (random >> 40 & 0xfff0);
        let found = rules.find(Svma::new(at));
        let mine = found.as_ref().map(|found| apply(&found.row, family, fp));
        let other = theirs.answer(at, fp);
        outcomes.add(kind(mine, other), || format!("{at:#x} fp {fp:#x}: {mine:x?}, framehop {other:x?}"));
        if let Some(words) = &words {
            let kind = words.compare(at, found.as_ref());
            outcomes.add(kind, || format!("{at:#x}: {}", shown(found.as_ref())));
        }
    }
    println!("{name}: {family:?}, {} rows", rules.size().rows);
    for (kind, (count, examples)) in outcomes.kinds {
        println!("  {count:>8} {kind}");
        examples.iter().for_each(|example| println!("           {example}"));
    }
}

/// About so many addresses, evenly over the code.
fn addresses(tables: &Tables, count: u64) -> impl Iterator<Item = u64> {
    let step = if tables.arch.family() == Family::Aarch64 { 4 } else { 1 };
    let total: u64 = tables.text.iter().map(|(_, data)| data.len() as u64).sum();
    let stride = (total / count.max(1) / step).max(1) * step;
    let stride = usize::try_from(stride).unwrap_or(1);
    tables.text.iter().flat_map(move |(start, code)| (*start..start + code.len() as u64).step_by(stride))
}

/// Whether an answer came from nothing but the frame pointer: two words above it, and what lies there.
fn is_chained(sp: u64, fp: u64) -> bool {
    frames::word(sp - 16) == Ok(fp)
}

fn shown(found: Option<&CoveredRow>) -> String {
    found.map_or_else(
        || "nothing".to_owned(),
        |found| format!("{} {:?} {:?}", found.trust, found.row.cfa, found.row.rules().collect::<Vec<_>>()),
    )
}

/// What the two answers have to do with each other. `mine` is `None` without a rule, and holds `None` where this
/// program has not got what the rule needs.
fn kind(mine: Option<Option<Answer>>, other: Answer) -> &'static str {
    match (mine, other) {
        (None, Answer::None) => "neither knows",
        (None, _) => "only framehop (by guess: no table)",
        (Some(None), _) => "not compared: expressions and other registers",
        (Some(Some(mine)), other) if mine == other => "equal",
        (Some(Some(Answer::Caller { address: LR, .. })), Answer::None) => {
            "link register: framehop stops, since this is not the first frame"
        }
        (Some(Some(Answer::Caller { address: LR, .. })), Answer::Caller { sp, fp, .. })
            if is_chained(sp, fp) =>
        {
            "link register: framehop follows the frame pointer, since this is not the first frame"
        }
        (Some(Some(Answer::End)), _) => "different: backtrail ends",
        (Some(Some(_)), Answer::None) => "only backtrail",
        (Some(Some(_)), Answer::End) => "different: framehop ends",
        _ => "different",
    }
}
