//! `coverage`: asks in every address range of every function that DWARF states (read by gimli alone), in the debug info and
//! in the table that is made of it, and fails where either knows of no function or of another one.

use crate::{Result, inputs, sh};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// Large files of several compilers and languages.
const FILES: [&str; 5] = ["vmlinux", "ceph-osd", "libjvm.so", "ExpoModulesCore", "rg"];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let program = sh::built_tool("accuracy", "accuracy")?;
    let (options, files): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| argument.starts_with('-'));
    if let Some(other) = options.iter().find(|option| **option != "--every-byte") {
        return Err(format!("no option {other}"));
    }
    let files = match files.as_slice() {
        [] => FILES.map(str::to_owned).to_vec(),
        given => given.iter().map(|file| (*file).clone()).collect(),
    };
    println!(
        "| file | functions | in several ranges | ranges | of code that is not there | addresses asked | faults |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut faults = Vec::new();
    for name in &files {
        let path = if inputs::is_known(name) { inputs::get(name)? } else { PathBuf::from(name) };
        let mut command = Command::new(&program);
        command.arg(&path).args(["--coverage", "--json"]).args(&options);
        match sh::output_of_any_end(&mut command).and_then(|printed| row(&printed)) {
            Ok((row, found)) => {
                println!("| {name} | {row} |");
                faults.extend(found.map(|found| format!("{name}: {found}")));
            }
            Err(error) => faults.push(format!("{name}: {error}")),
        }
    }
    sh::faults(&faults)
}

/// The columns, and what is wrong.
fn row(printed: &str) -> Result<(String, Option<String>)> {
    let result: Value =
        serde_json::from_str(printed).map_err(|error| format!("the program printed no JSON: {error}"))?;
    let number = |field: &str| result.get(field).and_then(Value::as_u64).unwrap_or(0).to_string();
    let faults = result.get("faults").and_then(Value::as_object).into_iter().flatten();
    let faults: Vec<_> = faults.map(|(kind, count)| format!("{kind}: {count}")).collect();
    let asked = number("asked");
    let nothing = (asked == "0").then(|| "no function in it".to_owned());
    let mut columns = ["functions", "scattered", "ranges", "dead", "asked"].map(number).to_vec();
    columns.push(if faults.is_empty() { "none".to_owned() } else { faults.join("; ") });
    Ok((columns.join(" | "), (!faults.is_empty()).then(|| faults.join("; ")).or(nothing)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_fail_a_run_and_so_does_a_file_without_functions() {
        let (line, fault) = row(r#"{"functions":2,"ranges":3,"asked":9,"faults":{}}"#).unwrap();
        assert_eq!((line.as_str(), fault), ("2 | 0 | 3 | 0 | 9 | none", None));
        assert!(row(r#"{"asked":9,"faults":{"no function":1}}"#).unwrap().1.is_some());
        assert!(row(r#"{"asked":0,"faults":{}}"#).unwrap().1.is_some());
        assert!(row("").is_err());
    }
}
