//! Rules in Breakpad's words.

use crate::cfi::postfix::{postfix, register};
use backtrail_core::{Family, Register};
use backtrail_unwind::{Cfa, Expression, Row, Rule};
use std::collections::BTreeMap;

/// Gives the bytes of an expression.
pub(super) type Expressions<'e> = dyn Fn(Expression) -> Option<&'e [u8]> + 'e;

/// The rules of a range.
#[derive(Default)]
pub(super) struct Rules {
    cfa: String,
    return_address: String,
    registers: BTreeMap<Register, String>,
    /// Registers that are lost, which the format cannot say.
    lost: Vec<Register>,
}

impl Rules {
    /// `None` where the format has no words for one of them: without it, its register would seem to keep its value.
    pub(super) fn new(family: Family, row: &Row, expressions: &Expressions<'_>) -> Option<Self> {
        let cfa = match row.cfa {
            Cfa::RegisterOffset(base, offset) => format!("{} {offset} +", register(family, base)?),
            Cfa::Expression(expression) => postfix(family, expressions(expression)?, None)?,
        };
        let return_address = match row.return_address {
            // Readers take an address of zero for the end of the stack.
            Rule::Undefined => "0".to_owned(),
            rule => text(family, rule, expressions)?,
        };
        let (mut registers, mut lost) = (BTreeMap::new(), Vec::new());
        for (register, rule) in row.rules().filter(|(register, _)| *register != family.pc()) {
            match rule {
                Rule::Undefined => lost.push(register),
                rule => drop(registers.insert(register, text(family, rule, expressions)?)),
            }
        }
        Some(Self { cfa, return_address, registers, lost })
    }

    /// Whether what changes can be said: that a register had a rule and is lost cannot.
    pub(super) fn can_follow(&self, before: &Self) -> bool {
        self.lost.iter().all(|register| !before.registers.contains_key(register))
    }

    /// What is not as it was before.
    pub(super) fn changes(&self, family: Family, before: &Self) -> String {
        let mut text = String::new();
        let mut add = |name: &str, rule: &str| text.extend([" ", name, ": ", rule]);
        if self.cfa != before.cfa {
            add(".cfa", &self.cfa);
        }
        if self.return_address != before.return_address {
            add(".ra", &self.return_address);
        }
        let name = |number: &Register| register(family, *number).unwrap_or_default();
        for (register, rule) in &self.registers {
            if before.registers.get(register) != Some(rule) {
                add(&name(register), rule);
            }
        }
        for register in before.registers.keys().filter(|register| !self.registers.contains_key(register)) {
            add(&name(register), &name(register));
        }
        text
    }
}

fn text(family: Family, rule: Rule, expressions: &Expressions<'_>) -> Option<String> {
    match rule {
        Rule::Same | Rule::Undefined => None,
        Rule::Offset(offset) => Some(format!(".cfa {offset} + ^")),
        Rule::ValueOffset(offset) => Some(format!(".cfa {offset} +")),
        Rule::Register(other) => register(family, other),
        Rule::Expression(expression) => {
            Some(format!("{} ^", postfix(family, expressions(expression)?, Some(".cfa"))?))
        }
        Rule::ValueExpression(expression) => postfix(family, expressions(expression)?, Some(".cfa")),
    }
}
