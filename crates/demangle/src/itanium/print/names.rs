//! Names and functions.

use super::Printer;
use crate::itanium::node::{Id, Known, List, Node, Qualifiers, Reference, Span, Standard, Trailer};
use crate::itanium::words::Word;

impl Printer<'_> {
    /// The outermost node, where the options apply.
    pub(super) fn top(&mut self, id: Id) {
        match self.table.node(id) {
            Node::Special { what, of } => {
                self.write_word(what);
                self.top(of);
            }
            Node::Suffixed { name, suffix } => {
                self.top(name);
                self.suffix(suffix);
            }
            Node::Constrained { function, .. } if !self.options.parameters => self.top(function),
            Node::Function { name, .. } if !self.options.parameters => self.print(name),
            _ => self.print(id),
        }
    }

    pub(super) fn nested(&mut self, first: Id, separator: &str, second: Id) {
        self.print(first);
        self.write(separator);
        self.print(second);
    }

    pub(super) fn module(&mut self, parent: Option<Id>, name: Id, is_partition: bool) {
        if let Some(parent) = parent {
            self.print(parent);
        }
        if is_partition {
            self.write(":");
        } else if parent.is_some() {
            self.write(".");
        }
        self.print(name);
    }

    pub(super) fn standard(&mut self, standard: Standard) {
        self.write("std::");
        self.write(typedef_name(standard));
    }

    pub(super) fn standard_expanded(&mut self, standard: Standard) {
        self.write("std::");
        self.write(template_name(standard));
        match standard {
            Standard::Allocator | Standard::BasicString => {}
            Standard::String => self.write("<char, std::char_traits<char>, std::allocator<char>>"),
            _ => self.write("<char, std::char_traits<char>>"),
        }
    }

    /// The name that a class's constructor bears: without scope and template arguments.
    pub(super) fn base_name(&mut self, class: Id) {
        let mut id = class;
        loop {
            id = match self.table.node(id) {
                Node::Nested { name, .. }
                | Node::Friend { name, .. }
                | Node::InModule { name, .. }
                | Node::Templated { name, .. }
                | Node::Global(name) => name,
                Node::AbiTag { base, .. } => base,
                Node::Standard(standard) => return self.write(typedef_name(standard)),
                Node::StandardExpanded(standard) => return self.write(template_name(standard)),
                Node::Source(name) | Node::Inside { name, .. } => return self.write_span(name),
                Node::Word(Word::TRUE | Word::FALSE) => return,
                Node::Word(word) => return self.write_word(word),
                Node::OperatorName(operator) => return self.operator_name(operator),
                _ => return,
            };
        }
    }

    pub(super) fn unnamed(&mut self, what: &str, count: Span) {
        self.write(what);
        self.write_span(count);
        self.write("'");
    }

    pub(super) fn signature(&mut self, templates: List, params: List, requires: Option<Id>) {
        let (before, behind) = match requires.map(|id| self.table.node(id)) {
            Some(Node::SignatureRequires { before, behind }) => (before, behind),
            _ => (None, None),
        };
        if !self.table.list(templates).is_empty() {
            self.angled(|printer| printer.list(templates));
        }
        if let Some(before) = before {
            self.between(" requires ", before, " ");
        }
        self.in_parens(|printer| printer.list(params));
        if let Some(behind) = behind {
            self.between(" requires ", behind, "");
        }
    }

    pub(super) fn bracketed(&mut self, names: List) {
        self.open("[");
        self.list(names);
        self.close("]");
    }

    pub(super) fn abi_tag(&mut self, base: Id, tag: Span) {
        self.left(base);
        self.write("[abi:");
        self.write_span(tag);
        self.write("]");
    }

    pub(super) fn construction_vtable(&mut self, of: Id, inside: Id) {
        self.between("construction vtable for ", of, "-in-");
        self.print(inside);
    }

    pub(super) fn suffixed(&mut self, name: Id, suffix: Span) {
        self.print(name);
        self.suffix(suffix);
    }

    fn suffix(&mut self, suffix: Span) {
        self.write(" (");
        self.write_span(suffix);
        self.write(")");
    }

    pub(super) fn local(&mut self, function: Id, entity: Id) {
        let mut around = function;
        while let Node::Constrained { function, .. } = self.table.node(around) {
            around = function;
        }
        let before =
            core::mem::replace(&mut self.around, Some(around).filter(|_| !self.options.local_return_types));
        self.print(function);
        self.around = before;
        self.write("::");
        self.print(entity);
    }

    pub(super) fn shows_return_type(&self, function: Id) -> bool {
        self.options.return_types && self.around != Some(function)
    }

    pub(super) fn function_left(&mut self, function: Id, name: Id, returns: Option<Id>) {
        if let Some(returns) = returns.filter(|_| self.shows_return_type(function)) {
            self.declaration_left(returns);
        }
        self.print(name);
    }

    /// The left side of a type, and a space unless the type wraps around what is declared.
    pub(super) fn declaration_left(&mut self, ty: Id) {
        self.left(ty);
        if self.resolve(ty, |shape| shape.right) == Known::No {
            self.write(" ");
        }
    }

    pub(super) fn function_right(
        &mut self,
        returns: Option<Id>,
        params: List,
        trailer: Trailer,
        exceptions: Option<Id>,
    ) {
        self.in_parens(|printer| printer.list(params));
        if let Some(returns) = returns {
            self.right(returns);
        }
        self.qualifiers(trailer.qualifiers);
        match trailer.reference {
            Some(Reference::LValue) => self.write(" &"),
            Some(Reference::RValue) => self.write(" &&"),
            None => {}
        }
        if let Some(exceptions) = exceptions {
            self.between(" ", exceptions, "");
        }
    }

    pub(super) fn constrained_right(&mut self, function: Id, attributes: Option<Id>, requires: Option<Id>) {
        self.right(function);
        if let Some(attributes) = attributes {
            self.print(attributes);
        }
        if let Some(requires) = requires {
            self.between(" requires ", requires, "");
        }
    }

    pub(super) fn method_qualifiers(&mut self, qualifiers: List) {
        for &qualifier in self.table.list(qualifiers) {
            self.between(" ", qualifier, "");
        }
    }

    pub(super) fn enable_if(&mut self, conditions: List) {
        self.write(" [enable_if:");
        self.list(conditions);
        self.write("]");
    }

    pub(super) fn qualifiers(&mut self, qualifiers: Qualifiers) {
        if qualifiers.is_const {
            self.write(" const");
        }
        if qualifiers.is_volatile {
            self.write(" volatile");
        }
        if qualifiers.is_restrict {
            self.write(" restrict");
        }
    }
}

/// The class template that an abbreviation stands for, or an instantiation of.
fn template_name(standard: Standard) -> &'static str {
    match standard {
        Standard::Allocator => "allocator",
        Standard::BasicString | Standard::String => "basic_string",
        Standard::Istream => "basic_istream",
        Standard::Ostream => "basic_ostream",
        Standard::Iostream => "basic_iostream",
    }
}

/// The name that programmers use for what an abbreviation stands for.
fn typedef_name(standard: Standard) -> &'static str {
    match standard {
        Standard::Allocator => "allocator",
        Standard::BasicString => "basic_string",
        Standard::String => "string",
        Standard::Istream => "istream",
        Standard::Ostream => "ostream",
        Standard::Iostream => "iostream",
    }
}
