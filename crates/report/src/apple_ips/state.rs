//! `threadState`: registers of all flavours.
//!
//! A register is an object with a `value` (`"pc": {"value": 4, "matchesCrashFrame": 1}`), a bank an array of them
//! (`"x"`, `"r"`), and Rosetta's own an object of them.

use super::body::Body;
use crate::json::Json;
use crate::leftovers::{fill, text};
use backtrail_model::Register;
use std::fmt;

pub(super) fn read(body: &mut Body<'_, '_>, path: &str, state: &Json<'_>) -> Vec<Register> {
    let mut registers = Vec::new();
    body.members_of(path, state, |body, name, value| read_member(body, path, name, value, &mut registers));
    registers
}

fn read_member(
    body: &mut Body<'_, '_>,
    path: &str,
    name: &str,
    value: &Json<'_>,
    registers: &mut Vec<Register>,
) -> bool {
    let path = format!("{path}.{name}");
    if is_register(value) {
        registers.push(read_register(body, &path, name, value));
        return true;
    }
    let items = value.items();
    if !items.is_empty() && items.iter().all(is_register) {
        for (number, item) in items.iter().enumerate() {
            registers.push(read_register(
                body,
                format_args!("{path}[{number}]"),
                &format!("{name}{number}"),
                item,
            ));
        }
        return true;
    }
    let members = value.members();
    if !members.is_empty() && members.iter().all(|member| is_register(&member.value)) {
        for member in members {
            let name = member.name();
            registers.push(read_register(body, format_args!("{path}.{name}"), &name, &member.value));
        }
        return true;
    }
    false
}

fn is_register(value: &Json<'_>) -> bool {
    value.get("value").is_some_and(|value| value.number().is_some())
}

fn read_register(
    body: &mut Body<'_, '_>,
    path: impl fmt::Display,
    name: &str,
    object: &Json<'_>,
) -> Register {
    let (mut value, mut description, mut symbol, mut offset) = (None, None, None, None);
    body.members_of(path, object, |_, name, member| match name {
        "value" => fill(&mut value, member.number()),
        "description" => fill(&mut description, text(member)),
        "symbol" => fill(&mut symbol, text(member)),
        "symbolLocation" => fill(&mut offset, member.number()),
        _ => false,
    });
    let symbol = match (symbol, offset) {
        (Some(symbol), Some(offset)) => Some(format!("{symbol} + {offset}")),
        (symbol, offset) => symbol.or(offset.map(|offset| format!("+ {offset}"))),
    };
    let notes: Vec<String> = [description, symbol].into_iter().flatten().collect();
    let note = (!notes.is_empty()).then(|| notes.join(", "));
    Register { name: name.to_owned(), value: value.unwrap_or_default(), note }
}
