//! `accuracy`: compares answers with those of llvm-symbolizer 22 on random addresses of large real files. What the
//! differences mean is in `docs/accuracy.md`.

use crate::inputs;
use crate::{Result, sh};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Files of that page: a C kernel, two C++ programs, a Swift dSYM, a Rust program.
const FILES: [&str; 5] = ["vmlinux", "ceph-osd", "libjvm.so", "ExpoModulesCore", "rg"];

/// Below this share of same answers a run fails.
const WANTED_PER_CENT: f64 = 99.95;

#[derive(Debug, PartialEq)]
struct Options {
    files: Vec<String>,
    /// Whether code that is no function is part of the sample, which is not held to [`WANTED_PER_CENT`] then: for code
    /// without a name LLVM makes one up.
    all_code: bool,
    /// Passed on to the program that compares.
    rest: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let options = parse(arguments)?;
    let program = sh::built_tool("accuracy", "accuracy")?;
    println!(
        "| file | addresses | with debug info | frames | same | differences | table differs | backtrail | llvm-symbolizer |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut faults = Vec::new();
    for name in &options.files {
        let path = if inputs::is_known(name) { inputs::get(name)? } else { PathBuf::from(name) };
        let mut command = Command::new(&program);
        command.arg(&path).args(["--json", "--symbolizer", sh::LLVM_SYMBOLIZER]).args(&options.rest);
        match sh::output_of_any_end(&mut command).and_then(|printed| read(&printed)) {
            Ok(result) => {
                println!("| {name} {}", row(&result));
                faults.extend(fault(name, &result, options.all_code));
            }
            Err(error) => faults.push(format!("{name}: {error}")),
        }
    }
    sh::faults(&faults)
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options { files: Vec::new(), all_code: false, rest: Vec::new() };
    let (mut count, mut seed) = ("100000".to_owned(), "7".to_owned());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || rest.next().cloned().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--count" => count = value()?,
            "--seed" => seed = value()?,
            "--arch" | "--companion" => options.rest.extend([argument.clone(), value()?]),
            "--all-code" => {
                options.all_code = true;
                options.rest.push(argument.clone());
            }
            flag if flag.starts_with('-') => return Err(format!("no option {flag}")),
            file => options.files.push(file.to_owned()),
        }
    }
    if options.files.is_empty() {
        options.files = FILES.map(str::to_owned).to_vec();
    }
    options.rest.extend(["--count".to_owned(), count, "--seed".to_owned(), seed]);
    Ok(options)
}

fn read(printed: &str) -> Result<Value> {
    serde_json::from_str(printed).map_err(|error| format!("the program printed no JSON: {error}"))
}

fn number(result: &Value, field: &str) -> u64 {
    result.get(field).and_then(Value::as_u64).unwrap_or(0)
}

fn per_cent(result: &Value) -> f64 {
    100.0 * number(result, "same") as f64 / number(result, "addresses").max(1) as f64
}

fn kinds(result: &Value) -> Vec<(&str, u64)> {
    let kinds = result.get("differences").and_then(Value::as_object);
    kinds.into_iter().flatten().map(|(kind, count)| (kind.as_str(), count.as_u64().unwrap_or(0))).collect()
}

fn row(result: &Value) -> String {
    let kinds: Vec<_> = kinds(result).iter().map(|(kind, count)| format!("{kind}: {count}")).collect();
    let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join("; ") };
    let seconds = |field: &str| result.get(field).and_then(Value::as_f64).unwrap_or(0.0);
    format!(
        "| {} | {} | {} | {:.3} % | {kinds} | {} | {:.1} s | {:.1} s |",
        number(result, "addresses"),
        number(result, "with_debug_info"),
        number(result, "frames"),
        per_cent(result),
        number(result, "of_table"),
        seconds("our_seconds"),
        seconds("their_seconds"),
    )
}

/// What fails a run: too many differences of any kind, or one that `docs/accuracy.md` does not explain.
fn fault(name: &str, result: &Value, all_code: bool) -> Option<String> {
    let unexplained = kinds(result).into_iter().find(|(kind, _)| kind.starts_with(char::is_uppercase));
    if let Some((kind, count)) = unexplained {
        return Some(format!("{name}: {count} differences are not explained: {kind}"));
    }
    let of_table = number(result, "of_table");
    if of_table > 0 {
        return Some(format!("{name}: the table answers {of_table} addresses otherwise"));
    }
    let share = per_cent(result);
    (share < WANTED_PER_CENT && !all_code).then(|| format!("{name}: only {share:.3} % are the same"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_are_passed_on() {
        let options = parse(&words("--count 10 a.out --all-code --arch arm64")).unwrap();
        assert_eq!(options.files, ["a.out"]);
        assert!(options.all_code);
        assert_eq!(options.rest, words("--all-code --arch arm64 --count 10 --seed 7"));
        assert_eq!(parse(&[]).unwrap().files, FILES);
        assert!(parse(&words("--speed 3")).is_err());
        assert!(parse(&words("--count")).is_err());
    }

    #[test]
    fn what_is_not_explained_fails_a_run() {
        let result = |same: u64, kind: &str| serde_json::json!({ "addresses": 10_000, "same": same, "differences": { kind: 10_000 - same } });
        assert_eq!(fault("f", &result(9_999, "label inside of a function"), false), None);
        assert!(fault("f", &result(9_999, "ANOTHER line"), false).is_some());
        assert!(fault("f", &result(9_990, "label inside of a function"), false).is_some());
        // What is no function is not held to a share, but every difference has to be explained.
        assert_eq!(fault("f", &result(9_990, "label inside of a function"), true), None);
        assert!(fault("f", &result(9_999, "ANOTHER line"), true).is_some());
    }
}
