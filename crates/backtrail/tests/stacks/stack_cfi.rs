//! Breakpad's `STACK CFI` records, carried out as its readers do, give what the unwind tables give at every address.

use backtrail::{ConvertProgress, ConvertSettings, ConvertSources, Family, Svma, TableFormat};
use backtrail_core::Register;
use backtrail_object::{Limits, Object};
use backtrail_store::UnwindTables;
use backtrail_testkit::{TempDir, fixtures};
use backtrail_unwind::cfi::{Flavour, Frames};
use backtrail_unwind::{Cfa, Module, Row, Rule};
use std::collections::BTreeMap;
use std::path::Path;

struct Quiet;

impl ConvertProgress for Quiet {
    fn advanced(&self, _: u64, _: u64) {}
}

/// The text of the symbol file of a fixture's slice.
fn symbol_file(directory: &TempDir, path: &Path) -> String {
    let sources = ConvertSources::find(&[path.to_owned()]);
    let place = directory.join("symbols.sym");
    let settings = ConvertSettings { format: TableFormat::Breakpad, ..ConvertSettings::default() };
    sources.convert(&sources.sources[0], &place, &settings, &Quiet).unwrap();
    std::fs::read_to_string(place).unwrap()
}

type Rules = BTreeMap<String, Vec<String>>;

/// Rules by their first address, each until the next or the end that is given with it.
fn rules(text: &str) -> BTreeMap<u64, (u64, Rules)> {
    let mut all: BTreeMap<u64, (u64, Rules)> = BTreeMap::new();
    let (mut end, mut rules) = (0, Rules::new());
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    for line in text.lines().filter_map(|line| line.strip_prefix("STACK CFI ")) {
        let mut words = line.split(' ');
        let mut start = words.next().unwrap();
        if start == "INIT" {
            start = words.next().unwrap();
            end = hex(start) + hex(words.next().unwrap());
            rules.clear();
        }
        let mut name = String::new();
        for word in words {
            match word.strip_suffix(':') {
                Some(next) => {
                    name = next.to_owned();
                    rules.insert(name.clone(), Vec::new());
                }
                None => rules.get_mut(&name).unwrap().push(word.to_owned()),
            }
        }
        assert!(all.insert(hex(start), (end, rules.clone())).is_none(), "twice: {line}");
    }
    all
}

/// Memory and registers that have a value of their own everywhere.
fn memory(at: u64) -> u64 {
    at.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

fn value_of(register: u8) -> u64 {
    0x7f00_0000_0000 + (u64::from(register) << 20)
}

fn named(family: Family, word: &str) -> Option<u64> {
    family.register(word.trim_start_matches('$')).map(|register| value_of(register.0))
}

/// A postfix expression's value, as minidump processors compute it.
fn evaluate(family: Family, words: &[String], cfa: Option<u64>) -> u64 {
    let mut stack: Vec<u64> = Vec::new();
    for word in words {
        let value = match word.as_str() {
            "^" => memory(stack.pop().unwrap()),
            ".cfa" => cfa.unwrap(),
            "+" | "-" | "*" => {
                let (second, first) = (stack.pop().unwrap(), stack.pop().unwrap());
                match word.as_str() {
                    "+" => first.wrapping_add(second),
                    "-" => first.wrapping_sub(second),
                    _ => first.wrapping_mul(second),
                }
            }
            number => match number.parse::<i64>() {
                Ok(number) => number.cast_unsigned(),
                Err(_) => named(family, number).unwrap_or_else(|| panic!("{number}")),
            },
        };
        stack.push(value);
    }
    assert_eq!(stack.len(), 1, "{words:?}");
    stack[0]
}

/// The caller's registers by a row; `None` where there is an expression, which `xtask steps` and the walk's tests carry out.
fn by_row(family: Family, row: &Row) -> Option<BTreeMap<String, u64>> {
    let Cfa::RegisterOffset(base, offset) = row.cfa else { return None };
    let cfa = value_of(base.0).wrapping_add_signed(offset.into());
    let value = |own: Register, rule: Rule| match rule {
        Rule::Same => Some(value_of(own.0)),
        Rule::Undefined => Some(0),
        Rule::Offset(offset) => Some(memory(cfa.wrapping_add_signed(offset.into()))),
        Rule::ValueOffset(offset) => Some(cfa.wrapping_add_signed(offset.into())),
        Rule::Register(other) => Some(value_of(other.0)),
        Rule::Expression(_) | Rule::ValueExpression(_) => None,
    };
    let mut values = BTreeMap::from([(".cfa".to_owned(), cfa)]);
    values.insert(".ra".to_owned(), value(family.pc(), row.return_address)?);
    for (index, name) in family.register_names().iter().enumerate() {
        let register = Register(u8::try_from(index).unwrap());
        // That a register is lost the format cannot say.
        if register != family.pc() && row.rule(register) != Rule::Undefined {
            values.insert((*name).to_owned(), value(register, row.rule(register))?);
        }
    }
    Some(values)
}

fn by_rules(family: Family, rules: &Rules) -> BTreeMap<String, u64> {
    let cfa = evaluate(family, &rules[".cfa"], None);
    let mut values: BTreeMap<String, u64> = family
        .register_names()
        .iter()
        .enumerate()
        .filter(|(index, _)| *index != usize::from(family.pc().0))
        .map(|(index, name)| ((*name).to_owned(), value_of(u8::try_from(index).unwrap())))
        .collect();
    for (name, words) in rules {
        let name = name.trim_start_matches('$').to_owned();
        values.insert(name, evaluate(family, words, Some(cfa)));
    }
    values
}

#[test]
fn records_say_what_the_tables_say_at_every_address() {
    let directory = TempDir::new("stack-cfi");
    for name in [
        "symbolize/bin/gcc-cold.elf",
        "symbolize/bin/gcc-i386.elf",
        "symbolize/bin/clang-aarch64.elf",
        "symbolize/bin/clang-thumb.elf",
        "stacks/orders",
        "threads/threads.arm",
        "threads/threads.aarch64",
        "unwind/frames-x86_64.dylib",
        "unwind/frames-arm64.dylib",
    ] {
        let path = fixtures().join(name);
        let rules = rules(&symbol_file(&directory, &path));
        let data = std::fs::read(&path).unwrap();
        let object = Object::parse_with(&data, &Limits::default()).unwrap();
        let family = object.arch().family();
        let tables = UnwindTables::read(&object);
        let sections = tables.sections();
        let [eh, debug] =
            [Flavour::EhFrame, Flavour::DebugFrame].map(|flavour| Frames::new(&sections, flavour));
        let module = Module::new(sections.clone());
        let find = |at: Svma| {
            let frames = [&eh, &debug].into_iter().flatten().find_map(|frames| frames.find(at).ok());
            frames.or_else(|| module.find(at).ok())
        };
        let mut compared = 0;
        for section in object.sections().iter().filter(|section| section.is_code && section.is_loaded) {
            for address in section.address.start().get()..section.address.end().get() {
                let row = find(Svma::new(address)).map(|found| by_row(family, &found.row));
                let offset = address - object.image_base().get();
                let rules = rules.range(..=offset).next_back().filter(|(_, (end, _))| *end > offset);
                match (row, rules) {
                    (Some(Some(row)), Some((_, (_, rules)))) => {
                        let mut told = by_rules(family, rules);
                        told.retain(|register, _| row.contains_key(register));
                        assert_eq!(told, row, "{name} at {address:#x}: {rules:?}");
                        compared += 1;
                    }
                    (Some(Some(row)), None) => panic!("{name} at {address:#x}: no record for {row:?}"),
                    (None, Some(rules)) => panic!("{name} at {address:#x}: a record of nothing: {rules:?}"),
                    (Some(None) | None, _) => {}
                }
            }
        }
        assert!(compared > 100, "{name}: {compared}");
    }
}
