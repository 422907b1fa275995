//! `docs/report.schema.json`, and whether a document keeps to it.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a schema that is wrong, or not held to, fails the test that called"
)]

use crate::workspace_root;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Checks documents against the part of JSON Schema that our schema uses, and notes which properties were seen.
#[derive(Debug)]
pub struct Schema {
    schema: Value,
    seen: BTreeSet<String>,
}

impl Default for Schema {
    fn default() -> Self {
        Self::new()
    }
}

impl Schema {
    /// The schema of the workspace.
    pub fn new() -> Self {
        let bytes = std::fs::read(workspace_root().join("docs/report.schema.json")).unwrap();
        Self { schema: serde_json::from_slice(&bytes).unwrap(), seen: BTreeSet::new() }
    }

    /// The names of all that it describes.
    pub fn names(&self) -> Vec<String> {
        self.schema["$defs"].as_object().unwrap().keys().cloned().collect()
    }

    /// Whether a property was seen in any document: `name).property`; of all properties of `name`: `name)`.
    pub fn has_seen(&self, start: &str) -> bool {
        self.seen.iter().any(|seen| seen.starts_with(start))
    }

    /// Checks a document against what the schema says of `name`; the error says what is wrong, and where.
    pub fn check(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let rule = self.schema["$defs"][name].clone();
        self.rule(&rule, value, &format!("({name})"))
    }

    fn rule(&mut self, rule: &Value, value: &Value, place: &str) -> Result<(), String> {
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
                self.rule(&rule, value, &format!("{place}({name})"))
            }
            "type" if !has_type(argument, value) => complain("wrong type"),
            "const" if argument != value => complain("not the constant"),
            "enum" if !argument.as_array().unwrap().contains(value) => complain("not in the list"),
            "pattern" if value.is_string() && !is_hex(value.as_str().unwrap()) => {
                complain("no hexadecimal number")
            }
            "anyOf" => {
                let errors: Vec<_> =
                    argument.as_array().unwrap().iter().map(|rule| self.rule(rule, value, place)).collect();
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
                items.try_for_each(|(index, item)| self.rule(argument, item, &format!("{place}[{index}]")))
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
                self.rule(rule, value, &format!("{place}.{key}"))?;
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
                Value::Object(_) if !known => self.rule(argument, value, &format!("{place}.{key}"))?,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checker_can_fail() {
        let mut schema = Schema::new();
        let mut fails =
            |name: &str, text: &str| schema.check(name, &serde_json::from_str(text).unwrap()).is_err();
        assert!(fails("field", r#"{"key":"a"}"#));
        assert!(fails("field", r#"{"key":"a","value":"b","more":1}"#));
        assert!(fails("address", r#""12""#));
        assert!(fails(
            "function",
            r#"{"name":"f","linkage_name":null,"file":null,"line":"1","column":null,"inlined":false}"#
        ));
        assert!(!fails("field", r#"{"key":"a","value":"b"}"#));
    }
}
