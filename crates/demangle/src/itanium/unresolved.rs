//! Names in expressions that are looked up when the template is instantiated.

use super::cursor::Cursor;
use super::dialect::Dialect;
use super::node::{Id, Node};
use super::parser::Parser;

impl Parser<'_, '_> {
    /// ```text
    /// <unresolved-name> ::= [gs] <base-unresolved-name>
    ///                   ::= sr <unresolved-type> [<template-args>] <base-unresolved-name>
    ///                   ::= srN <unresolved-type> [<template-args>] <simple-id>* E <base-unresolved-name>
    ///                   ::= [gs] sr <simple-id>+ E <base-unresolved-name>
    /// ```
    pub(super) fn unresolved_name(&mut self, is_global: bool) -> Option<Id> {
        if self.is_gcc_scope()? {
            self.at += b"sr".len();
            let scope = self.ty()?;
            let name = self.base_unresolved_name()?;
            return Some(self.push(Node::Nested { scope, name }));
        }
        if self.skip_text(b"srN") {
            let mut scope = self.unresolved_type_with_args()?;
            while !self.skip(b'E') {
                let name = self.simple_id()?;
                scope = self.push(Node::Nested { scope, name });
            }
            let name = self.base_unresolved_name()?;
            return Some(self.push(Node::Nested { scope, name }));
        }
        if !self.skip_text(b"sr") {
            let name = self.base_unresolved_name()?;
            return Some(if is_global { self.push(Node::Global(name)) } else { name });
        }
        let scope = if self.peek(0).is_ascii_digit() {
            self.qualifier_levels(is_global)?
        } else {
            let scope = self.unresolved_type_with_args()?;
            if self.dialect == Dialect::Literal {
                // clang ends like several levels what stands for a template template parameter.
                self.skip(b'E');
            }
            scope
        };
        let name = self.base_unresolved_name()?;
        Some(self.push(Node::Nested { scope, name }))
    }

    /// gcc writes `sr <type> <base-unresolved-name>` where the scope is any type, whose parts can be substituted like
    /// those of every type. `None` where that is what the name shows and it is not what it is read as.
    fn is_gcc_scope(&mut self) -> Option<bool> {
        if self.peek(0) != b's' || self.peek(1) != b'r' {
            return Some(false);
        }
        match self.dialect {
            Dialect::Gcc => Some(true),
            Dialect::Standard if self.shows_gcc_scope() => {
                self.shows_gcc = true;
                None
            }
            _ => Some(false),
        }
    }

    /// Whether clang would have written the scope otherwise: names in full, and a substitution for a template parameter
    /// or `decltype` only.
    fn shows_gcc_scope(&self) -> bool {
        let at = if self.peek(2) == b'N' { 3 } else { 2 };
        match self.peek(at) {
            b'S' => {
                let mut rest = Cursor { bytes: self.bytes, at: self.at + at + 1 };
                let index = if rest.peek(0) == b'_' { Some(0) } else { rest.sequence_id().map(|id| id + 1) };
                index.is_none_or(|index| !self.scratch.unresolved_types.contains(&index))
            }
            b'0'..=b'9' => at == 3,
            _ => false,
        }
    }

    /// `<simple-id>+ E`
    fn qualifier_levels(&mut self, is_global: bool) -> Option<Id> {
        let mut scope = self.simple_id()?;
        if is_global {
            scope = self.push(Node::Global(scope));
        }
        while !self.skip(b'E') {
            let name = self.simple_id()?;
            scope = self.push(Node::Nested { scope, name });
        }
        Some(scope)
    }

    fn unresolved_type_with_args(&mut self) -> Option<Id> {
        let ty = self.unresolved_type()?;
        self.with_args(ty)
    }

    fn with_args(&mut self, name: Id) -> Option<Id> {
        if self.peek(0) != b'I' {
            return Some(name);
        }
        let args = self.template_args(false)?;
        Some(self.push(Node::Templated { name, args }))
    }

    /// `<unresolved-type> ::= <template-param> | <decltype> | <substitution>`
    fn unresolved_type(&mut self) -> Option<Id> {
        let ty = match (self.peek(0), self.peek(1)) {
            (b'T', _) => self.template_param()?,
            (b'D', b't' | b'T') => self.decltype()?,
            (b'D', _) => return None,
            // gcc writes any type here.
            (b'S', b't') => return self.ty(),
            _ => return self.substitution(),
        };
        self.remember_unresolved(ty);
        Some(ty)
    }

    /// As [`remember`](Self::remember), of what clang's substitutions in scopes can stand for.
    pub(super) fn remember_unresolved(&mut self, ty: Id) {
        self.scratch.unresolved_types.push(self.scratch.substitutions.len());
        self.remember(ty);
    }

    /// `<simple-id> ::= <source-name> [<abi-tags>] [<template-args>]`
    fn simple_id(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        let name = self.abi_tags(name)?;
        self.with_args(name)
    }

    /// ```text
    /// <base-unresolved-name> ::= <simple-id>
    ///                        ::= [on] <operator-name> [<template-args>]
    ///                        ::= dn <unresolved-type> | dn <simple-id>
    /// ```
    fn base_unresolved_name(&mut self) -> Option<Id> {
        if self.peek(0).is_ascii_digit() {
            return self.simple_id();
        }
        if self.skip_text(b"dn") {
            let of = if self.peek(0).is_ascii_digit() {
                self.simple_id()?
            } else {
                self.unresolved_type_with_args()?
            };
            return Some(self.push(Node::UnresolvedDestructor(of)));
        }
        self.skip_text(b"on");
        let name = self.operator_name(None)?;
        self.with_args(name)
    }
}
