//! Expressions.

use super::Printer;
use crate::itanium::node::{Id, List, Node};
use crate::itanium::operators::{Operator, Precedence};
use crate::itanium::words::Word;

impl Printer<'_> {
    pub(super) fn binary(&mut self, operator: Operator, left: Id, right: Id) {
        let symbol = operator.symbol();
        // A `>` would end the template arguments.
        let closes_args = matches!(symbol, ">" | ">>");
        self.unstable += u32::from(closes_args);
        let in_parens = closes_args && self.parens_in_args == 0;
        if in_parens {
            self.open("(");
        }
        let precedence = operator.precedence();
        // Assignment groups from the right.
        let is_assignment = precedence == Precedence::Assign;
        let left_limit = if is_assignment { Precedence::OrIf } else { precedence };
        self.operand(left, left_limit, !is_assignment);
        if symbol != "," {
            self.write(" ");
        }
        self.write(symbol);
        self.write(" ");
        self.operand(right, precedence, is_assignment);
        if in_parens {
            self.close(")");
        }
    }

    pub(super) fn prefix(&mut self, operator: Operator, of: Id) {
        self.write(operator.symbol());
        if operator.is_word() {
            self.write(" ");
        }
        // `++` and `--` bind as postfix operators on either side.
        self.operand(of, operator.precedence(), false);
    }

    pub(super) fn postfix(&mut self, operator: Operator, of: Id) {
        self.operand(of, operator.precedence(), true);
        self.write(operator.symbol());
    }

    pub(super) fn subscript(&mut self, of: Id, index: Id) {
        self.operand(of, Precedence::Postfix, false);
        self.open("[");
        self.print(index);
        self.close("]");
    }

    pub(super) fn member(&mut self, operator: Operator, left: Id, right: Id) {
        self.operand(left, operator.precedence(), true);
        self.write(operator.symbol());
        self.operand(right, operator.precedence(), false);
    }

    pub(super) fn conditional(&mut self, condition: Id, then: Id, otherwise: Id) {
        self.operand(condition, Precedence::Conditional, false);
        self.between(" ? ", then, " : ");
        self.operand(otherwise, Precedence::Assign, true);
    }

    pub(super) fn cast(&mut self, operator: Operator, to: Id, from: Id) {
        self.write(operator.symbol());
        // Only the left side, as LLVM has it.
        self.angled(|printer| printer.left(to));
        self.in_parens(|printer| printer.print(from));
    }

    pub(super) fn call(&mut self, callee: Id, args: List, in_parens: bool) {
        if in_parens {
            self.in_parens(|printer| printer.print(callee));
        } else {
            self.print(callee);
        }
        self.in_parens(|printer| printer.list(args));
    }

    pub(super) fn new_keyword(&mut self, is_global: bool, is_array: bool) {
        if is_global {
            self.write("::");
        }
        self.write(if is_array { "new[]" } else { "new" });
    }

    pub(super) fn new_operands(&mut self, placement: List, ty: Id, init: List, is_braced: bool) {
        if !self.table.list(placement).is_empty() {
            self.in_parens(|printer| printer.list(placement));
        }
        self.between(" ", ty, "");
        if is_braced {
            self.write("{");
            self.list(init);
            self.write("}");
        } else if !self.table.list(init).is_empty() {
            self.in_parens(|printer| printer.list(init));
        }
    }

    pub(super) fn delete(&mut self, of: Id, is_global: bool, is_array: bool) {
        if is_global {
            self.write("::");
        }
        self.between(if is_array { "delete[] " } else { "delete " }, of, "");
    }

    pub(super) fn convert(&mut self, to: Id, args: List) {
        self.in_parens(|printer| printer.print(to));
        self.in_parens(|printer| printer.list(args));
    }

    pub(super) fn convert_member_pointer(&mut self, to: Id, from: Id) {
        self.in_parens(|printer| printer.print(to));
        self.in_parens(|printer| printer.print(from));
    }

    pub(super) fn enclosing(&mut self, what: Word, of: Id) {
        self.enclosing_plain(what.text(), of);
    }

    pub(super) fn enclosing_plain(&mut self, what: &str, of: Id) {
        self.write(what);
        self.in_parens(|printer| printer.print(of));
    }

    pub(super) fn sizeof_pack(&mut self, pack: Id) {
        self.write("sizeof...");
        self.in_parens(|printer| printer.expansion(pack));
    }

    pub(super) fn init_list(&mut self, ty: Option<Id>, values: List) {
        if let Some(ty) = ty {
            if self.is_char_array(ty) && self.string(values) {
                return;
            }
            self.print(ty);
        }
        self.write("{");
        self.list(values);
        self.write("}");
    }

    fn is_char_array(&self, ty: Id) -> bool {
        let Node::Array { of, .. } = self.table.node(ty) else { return false };
        matches!(self.table.node(of), Node::Word(Word::CHAR))
    }

    pub(super) fn braced_value(&mut self, value: Id) {
        let is_nested = matches!(
            self.table.node(value),
            Node::BracedField { .. } | Node::BracedIndex { .. } | Node::BracedRange { .. }
        );
        if !is_nested {
            self.write(" = ");
        }
        self.print(value);
    }

    pub(super) fn braced_range(&mut self, first: Id, last: Id, value: Id) {
        self.between("[", first, " ... ");
        self.between("", last, "]");
        self.braced_value(value);
    }

    pub(super) fn subobject(&mut self, of: Id, ty: Id, offset: Id) {
        self.between("", of, ".<");
        self.between("", ty, " at offset ");
        match self.table.node(offset) {
            Node::Source(number) if number.len > 0 => self.signed(number),
            _ => self.write("0"),
        }
        self.write(">");
    }

    pub(super) fn fold(&mut self, operator: Operator, pack: Id, init: Option<Id>, is_left: bool) {
        self.open("(");
        let (first, last) = if is_left { (init, Some(pack)) } else { (Some(pack), init) };
        if let Some(first) = first {
            self.fold_operand(first, !is_left);
            self.write(" ");
            self.write(operator.symbol());
            self.write(" ");
        }
        self.write("...");
        if let Some(last) = last {
            self.write(" ");
            self.write(operator.symbol());
            self.write(" ");
            self.fold_operand(last, is_left);
        }
        self.close(")");
    }

    fn fold_operand(&mut self, operand: Id, is_pack: bool) {
        if is_pack {
            self.in_parens(|printer| printer.expansion(operand));
        } else {
            self.operand(operand, Precedence::Cast, true);
        }
    }

    pub(super) fn lambda(&mut self, closure: Id) {
        self.write("[]");
        if let Node::Closure { signature, .. } = self.table.node(closure) {
            self.left(signature);
        }
        self.write("{...}");
    }

    pub(super) fn requires(&mut self, params: List, requirements: List) {
        self.write("requires");
        if !self.table.list(params).is_empty() {
            self.write(" ");
            self.in_parens(|printer| printer.list(params));
        }
        self.write(" ");
        self.open("{");
        let table = self.table;
        for &requirement in table.list(requirements) {
            self.print(requirement);
        }
        self.write(" ");
        self.close("}");
    }

    pub(super) fn expression_requirement(
        &mut self,
        expression: Id,
        is_noexcept: bool,
        constraint: Option<Id>,
    ) {
        self.write(" ");
        if is_noexcept || constraint.is_some() {
            self.open("{");
            self.print(expression);
            self.close("}");
        } else {
            self.print(expression);
        }
        if is_noexcept {
            self.write(" noexcept");
        }
        if let Some(constraint) = constraint {
            self.between(" -> ", constraint, "");
        }
        self.write(";");
    }
}
