//! Compiled rules and rows read one by one, against what GNU readelf says about the same file.
//!
//! `BACKTRAIL_UNWIND_FILES=/a.so:/b.so cargo test -p backtrail-unwind --test readelf -- --nocapture` for other files.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test's helpers may"
)]

mod common;

use backtrail_core::{Family, Register, Svma};
use backtrail_unwind::{Cfa, CoveredRow, Module, Row, Rule};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// One line of `--debug-dump=frames-interp`.
struct Line {
    start: u64,
    cfa: String,
    /// Register name and rule.
    rules: Vec<(String, String)>,
}

#[derive(Default)]
struct Tally {
    rows: u64,
    addresses: u64,
    differences: Vec<String>,
}

#[test]
fn rows_are_those_of_readelf() {
    let files = common::files();
    if files.is_empty() || Command::new("readelf").arg("--version").output().is_err() {
        println!("no readelf or no file to read: skipped");
        return;
    }
    for path in files {
        let data = std::fs::read(&path).unwrap();
        for section in ["eh_frame", "debug_frame"] {
            let mut sections = common::sections(&data);
            if section == "eh_frame" {
                sections.debug_frame = None;
            } else {
                sections.eh_frame = None;
            }
            if sections.eh_frame.is_none() && sections.debug_frame.is_none() {
                continue;
            }
            sections.exidx = None;
            let tally = compare(&path, section, &Module::new(sections));
            println!("{} {section}: {} rows, {} addresses", path.display(), tally.rows, tally.addresses);
            assert!(tally.rows > 0, "readelf gave no rows");
            let shown = tally.differences.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
            assert!(tally.differences.is_empty(), "{} differences:\n{shown}", tally.differences.len());
        }
    }
}

fn compare(path: &std::path::Path, section: &str, module: &Module<'_>) -> Tally {
    let rules = module.compile();
    println!("{:?}", rules.size());
    let mut child = Command::new("readelf")
        .args(["--debug-dump=frames-interp", "--wide"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut tally = Tally::default();
    let mut wanted = false;
    let (mut columns, mut end, mut lines) = (Vec::new(), 0, Vec::new());
    let output = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for text in output.chain([String::new()]) {
        let words = words(&text);
        match words.as_slice() {
            ["Contents", "of", "the", name, ..] => wanted = name.trim_matches('.') == section,
            [.., "FDE", _, range] if range.starts_with("pc=") => {
                end = u64::from_str_radix(range.rsplit_once("..").unwrap().1, 16).unwrap();
            }
            ["LOC", "CFA", names @ ..] => columns = names.iter().map(|name| (*name).to_owned()).collect(),
            [start, cfa, cells @ ..] if cells.len() == columns.len() && end != 0 => {
                let rules =
                    columns.iter().cloned().zip(cells.iter().map(|cell| (*cell).to_owned())).collect();
                let start = u64::from_str_radix(start, 16).unwrap();
                lines.push(Line { start, cfa: (*cfa).to_owned(), rules });
            }
            _ => {
                if wanted {
                    check_fde(module, &rules, &lines, end, &mut tally);
                }
                (lines, end) = (Vec::new(), 0);
            }
        }
    }
    child.wait().unwrap();
    tally
}

/// A register as another's rule is two words, `r9 (r9)`: the second, which is its name, counts.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        match (word.strip_prefix('(').and_then(|word| word.strip_suffix(')')), words.last_mut()) {
            (Some(name), Some(last)) => *last = name,
            _ => words.push(word),
        }
    }
    words
}

/// Each row at its first, its middle and its last address.
fn check_fde(
    module: &Module<'_>,
    rules: &backtrail_unwind::Rules,
    lines: &[Line],
    end: u64,
    tally: &mut Tally,
) {
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).map_or(end, |next| next.start).min(end);
        if next <= line.start || line.start == 0 {
            continue;
        }
        tally.rows += 1;
        tally.addresses += next - line.start;
        for at in [line.start, line.start + (next - line.start) / 2, next - 1].map(Svma::new) {
            let parsed = module.find(at).ok();
            for found in [parsed, rules.find(at)] {
                if let Err(difference) = check(module.family(), found.as_ref(), line) {
                    tally.differences.push(format!("{at}: {difference}"));
                }
            }
        }
    }
}

fn check(family: Family, found: Option<&CoveredRow>, line: &Line) -> Result<(), String> {
    let row = &found.ok_or("no row")?.row;
    let cfa = match row.cfa {
        Cfa::Expression(_) => "exp".to_owned(),
        Cfa::RegisterOffset(register, offset) => {
            format!("{}{offset:+}", family.register_name(register).unwrap())
        }
    };
    if cfa != line.cfa {
        return Err(format!("CFA {cfa}, not {}", line.cfa));
    }
    for (name, wanted) in &line.rules {
        let rule = if name == "ra" {
            Some(row.return_address)
        } else {
            family.register(name).map(|it| row.rule(it))
        };
        let Some(rule) = rule else { continue };
        if !agrees(family, name, rule, wanted, row) {
            return Err(format!("{name}: {rule:?}, not {wanted}"));
        }
    }
    Ok(())
}

fn agrees(family: Family, name: &str, rule: Rule, wanted: &str, row: &Row) -> bool {
    // readelf says `u` both of what is undefined and of what nobody mentions.
    let lr = family.lr().unwrap_or(Register(99));
    match (rule, wanted) {
        (Rule::Undefined, _) => wanted == "u",
        (Rule::Same, _) => wanted == "u" || wanted == "s",
        (Rule::Register(from), "u" | "s") => name == "ra" && from == lr && row.rule(lr) == Rule::Same,
        (Rule::Register(from), _) => family.register_name(from) == Some(wanted),
        (Rule::Offset(offset), _) => wanted == format!("c{offset:+}"),
        (Rule::ValueOffset(offset), _) => wanted == format!("v{offset:+}"),
        (Rule::Expression(_), _) => wanted == "exp",
        (Rule::ValueExpression(_), _) => wanted == "vexp",
    }
}
