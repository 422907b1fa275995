//! `docs/report.schema.json` against what the program prints, and the other way round.

use crate::run::backtrail;
use backtrail_testkit::workspace_root;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

fn schema() -> Value {
    serde_json::from_slice(&std::fs::read(workspace_root().join("docs/report.schema.json")).unwrap()).unwrap()
}

/// Checks `value` against the part of JSON Schema that our schema uses, and notes which properties were seen.
struct Checker {
    schema: Value,
    seen: BTreeSet<String>,
}

impl Checker {
    fn check(&mut self, rule: &Value, value: &Value, place: &str) -> Result<(), String> {
        for (keyword, argument) in rule.as_object().ok_or_else(|| format!("{place}: no rule"))? {
            self.keyword(rule, keyword, argument, value, place)?;
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        rule: &Value,
        keyword: &str,
        argument: &Value,
        value: &Value,
        place: &str,
    ) -> Result<(), String> {
        let complain = |what: &str| Err(format!("{place}: {what}: {value}"));
        match keyword {
            "$ref" => {
                let name = argument.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                let rule = self.schema["$defs"][name].clone();
                self.check(&rule, value, &format!("{place}({name})"))
            }
            "type" if !has_type(argument, value) => complain("wrong type"),
            "const" if argument != value => complain("not the constant"),
            "enum" if !argument.as_array().unwrap().contains(value) => complain("not in the list"),
            "pattern" if value.is_string() && !is_hex(value.as_str().unwrap()) => {
                complain("no hexadecimal number")
            }
            "anyOf" => {
                let errors: Vec<_> =
                    argument.as_array().unwrap().iter().map(|rule| self.check(rule, value, place)).collect();
                if errors.iter().any(Result::is_ok) { Ok(()) } else { errors.into_iter().next().unwrap() }
            }
            "required" => {
                let missing = argument
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|key| value.get(key.as_str().unwrap()).is_none());
                missing.map_or(Ok(()), |key| Err(format!("{place}: {key} is missing")))
            }
            "properties" => self.properties(argument, value, place),
            "additionalProperties" => {
                value.as_object().map_or(Ok(()), |value| self.additional(rule, argument, value, place))
            }
            "items" => {
                let mut items = value.as_array().unwrap().iter().enumerate();
                items.try_for_each(|(index, item)| self.check(argument, item, &format!("{place}[{index}]")))
            }
            "type" | "const" | "enum" | "pattern" | "description" | "title" | "$schema" | "$id" | "$defs" => {
                Ok(())
            }
            other => Err(format!("{place}: the schema uses {other}, which this test does not know")),
        }
    }

    fn properties(&mut self, rules: &Value, value: &Value, place: &str) -> Result<(), String> {
        for (key, rule) in rules.as_object().unwrap() {
            if let Some(value) = value.get(key) {
                self.seen.insert(format!("{}.{key}", place.rsplit('(').next().unwrap()));
                self.check(rule, value, &format!("{place}.{key}"))?;
            }
        }
        Ok(())
    }

    fn additional(
        &mut self,
        rule: &Value,
        argument: &Value,
        value: &Map<String, Value>,
        place: &str,
    ) -> Result<(), String> {
        for (key, value) in value {
            let known = rule["properties"].get(key).is_some();
            match argument {
                Value::Bool(false) if !known => return Err(format!("{place}: {key} is not in the schema")),
                Value::Object(_) if !known => self.check(argument, value, &format!("{place}.{key}"))?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn has_type(wanted: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    match wanted {
        Value::Array(names) => names.iter().any(|name| is(name.as_str().unwrap())),
        name => is(name.as_str().unwrap()),
    }
}

fn is_hex(text: &str) -> bool {
    let digits = text.trim_start_matches('-').strip_prefix("0x");
    digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[test]
fn every_report_keeps_to_the_schema_and_the_schema_says_no_more() {
    let mut arguments =
        vec!["symbolicate", "fixtures/sample/reports", "--format", "json", "-s", "fixtures/sample/symbols"];
    let corpus = backtrail_testkit::corpus();
    let folders: Vec<_> = corpus
        .iter()
        .flat_map(|corpus| {
            ["apple/text", "apple/ips", "crashprobe"].map(|name| corpus.join(name).display().to_string())
        })
        .collect();
    for (folder, has_symbols) in folders.iter().zip([false, false, true]) {
        arguments.push(folder);
        arguments.extend(has_symbols.then_some("-s"));
        arguments.extend(has_symbols.then_some(folder.as_str()));
    }
    let run = backtrail(&arguments);
    assert!(run.code < 2, "{}", run.stderr);
    let schema = schema();
    let mut checker = Checker { schema: schema.clone(), seen: BTreeSet::new() };
    for line in run.stdout.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        checker.check(&schema["$defs"]["report"], &value, "(report)").unwrap();
    }
    let unused: Vec<_> = schema["$defs"]
        .as_object()
        .unwrap()
        .keys()
        .filter(|name| {
            ![
                "address",
                "maybeAddress",
                "maybeString",
                "maybeInteger",
                "maybeNumber",
                "strings",
                "group",
                "report",
                "stacks",
            ]
            .contains(&name.as_str())
                && !checker.seen.iter().any(|seen| seen.starts_with(&format!("{name})")))
        })
        .collect();
    assert_eq!(unused, Vec::<&String>::new(), "described, never printed");
}

#[test]
fn captured_processes_keep_to_the_schema() {
    let schema = schema();
    let mut checker = Checker { schema: schema.clone(), seen: BTreeSet::new() };
    for (input, named) in [
        ("--core=fixtures/stacks/orders.core", &["-e", "fixtures/stacks/orders"][..]),
        ("--core=fixtures/stacks/orders.core", &[]),
        ("--core=fixtures/stacks/orders.core", &["-e", "fixtures/symbolize/bin/dwz-one.elf"]),
        ("--offline=fixtures/stacks/saved", &[]),
    ] {
        let run = backtrail(&[&["stacks", "--format", "json", input], named].concat());
        assert!(run.code < 2, "{input}: {}", run.stderr);
        let value: Value = serde_json::from_str(&run.stdout).unwrap();
        checker.check(&schema["$defs"]["stacks"], &value, "(stacks)").unwrap();
    }
    for seen in ["exception).address", "frame).trust", "function).inlined", "symbol).offset", "image).tried"]
    {
        assert!(checker.seen.contains(seen), "{seen} was never printed");
    }
}

#[test]
fn the_checker_can_fail() {
    let schema = schema();
    let mut checker = Checker { schema: schema.clone(), seen: BTreeSet::new() };
    let mut fails = |name: &str, text: &str| {
        let value: Value = serde_json::from_str(text).unwrap();
        checker.check(&schema["$defs"][name], &value, "()").is_err()
    };
    assert!(fails("field", r#"{"key":"a"}"#));
    assert!(fails("field", r#"{"key":"a","value":"b","more":1}"#));
    assert!(fails("address", r#""12""#));
    assert!(fails(
        "function",
        r#"{"name":"f","linkage_name":null,"file":null,"line":"1","column":null,"inlined":false}"#
    ));
    assert!(!fails("field", r#"{"key":"a","value":"b"}"#));
}
