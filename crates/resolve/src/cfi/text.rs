//! Rules in the words of a listing.

use super::expression::listing;
use super::{Row, Saved};
use backtrail_core::{AddrRange, Family, Register, Svma};
use backtrail_unwind::{Cfa, Expression, Rule};

/// Gives the bytes of an expression.
pub(super) type Expressions<'e> = dyn Fn(Expression) -> Option<&'e [u8]> + 'e;

/// For tables that have no expressions.
pub(super) fn no_expressions<'e>(_: Expression) -> Option<&'e [u8]> {
    None
}

impl Row {
    /// The rules of `row`, which hold for `range`.
    pub(super) fn new(
        family: Family,
        range: AddrRange<Svma>,
        row: &backtrail_unwind::Row,
        expressions: &Expressions<'_>,
    ) -> Self {
        let cfa = match row.cfa {
            Cfa::RegisterOffset(register, offset) => plus(&name(family, register), offset),
            Cfa::Expression(expression) => operations(family, expression, expressions),
        };
        let saved = |(register, rule)| Saved {
            register: name(family, register),
            rule: text(family, rule, expressions),
        };
        Self {
            start: range.start(),
            end: range.end(),
            cfa,
            return_address: text(family, row.return_address, expressions),
            registers: row.rules().filter(|(register, _)| *register != family.pc()).map(saved).collect(),
            is_signal_frame: row.is_signal_frame,
        }
    }

    /// Whether the rules hold at `address`.
    pub(super) fn covers(&self, address: Svma) -> bool {
        (self.start.get()..self.end.get()).contains(&address.get())
    }
}

fn name(family: Family, register: Register) -> String {
    family.register_name(register).map_or_else(|| format!("r{}", register.0), str::to_owned)
}

fn plus(base: &str, offset: i32) -> String {
    if offset == 0 { base.to_owned() } else { format!("{base}{offset:+}") }
}

fn text(family: Family, rule: Rule, expressions: &Expressions<'_>) -> String {
    match rule {
        Rule::Same => "same".to_owned(),
        Rule::Undefined => "undefined".to_owned(),
        Rule::Offset(offset) => format!("[{}]", plus("CFA", offset)),
        Rule::ValueOffset(offset) => plus("CFA", offset),
        Rule::Register(register) => name(family, register),
        Rule::Expression(expression) => format!("[{}]", operations(family, expression, expressions)),
        Rule::ValueExpression(expression) => operations(family, expression, expressions),
    }
}

fn operations(family: Family, expression: Expression, expressions: &Expressions<'_>) -> String {
    format!("({})", listing(family, expressions(expression).unwrap_or_default()))
}
