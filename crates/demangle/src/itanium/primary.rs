//! Literals, and names in expressions that are looked up when the template is instantiated.

use super::node::{FloatKind, Id, Node};
use super::parser::Parser;
use super::words::Word;

impl Parser<'_, '_> {
    /// ```text
    /// <expr-primary> ::= L <type> <number> E       # integer
    ///                ::= L <type> <hex digits> E   # floating point
    ///                ::= L <array type> E          # string
    ///                ::= L Dn [0] E                # nullptr
    ///                ::= L <lambda type> E
    ///                ::= L _Z <encoding> E         # external name
    /// ```
    pub(super) fn primary(&mut self) -> Option<Id> {
        self.expect(b'L')?;
        let first = self.peek(0);
        if let Some(ty) = Word::literal_type(first) {
            self.at += 1;
            let value = self.number();
            if value.len == 0 {
                return None;
            }
            self.expect(b'E')?;
            return Some(self.push(Node::Integer { ty, value }));
        }
        match first {
            b'b' => self.bool_literal(),
            b'f' => self.float_literal(FloatKind::Float),
            b'd' => self.float_literal(FloatKind::Double),
            b'e' => self.float_literal(FloatKind::LongDouble),
            b'_' => {
                if !self.skip_text(b"_Z") {
                    return None;
                }
                let of = self.encoding()?;
                self.expect(b'E')?;
                Some(of)
            }
            b'A' => {
                let ty = self.ty()?;
                self.expect(b'E')?;
                Some(self.push(Node::StringLiteral(ty)))
            }
            b'D' => {
                if !self.skip_text(b"Dn") {
                    return None;
                }
                self.skip(b'0');
                self.expect(b'E')?;
                Some(Word::NULLPTR.id())
            }
            b'T' => None,
            b'U' => {
                if self.peek(1) != b'l' {
                    return None;
                }
                let closure = self.unnamed_type_name(false)?;
                self.expect(b'E')?;
                Some(self.push(Node::Lambda(closure)))
            }
            _ => self.enum_literal(),
        }
    }

    fn enum_literal(&mut self) -> Option<Id> {
        let ty = self.ty()?;
        let value = self.number();
        if value.len == 0 {
            return None;
        }
        self.expect(b'E')?;
        Some(self.push(Node::EnumLiteral { ty, value }))
    }

    fn bool_literal(&mut self) -> Option<Id> {
        if self.skip_text(b"b0E") {
            return Some(Word::FALSE.id());
        }
        self.skip_text(b"b1E").then(|| Word::TRUE.id())
    }

    /// The bytes of the value, high ones first, as lowercase hexadecimal digits.
    fn float_literal(&mut self, kind: FloatKind) -> Option<Id> {
        self.at += 1;
        let from = self.at;
        let len = kind.digits();
        let digits = self.bytes.get(from..from + len)?;
        if !digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
            return None;
        }
        self.at += len;
        self.expect(b'E')?;
        let digits = self.span(from, from + len);
        Some(self.push(Node::Float { kind, digits }))
    }

    /// ```text
    /// <unresolved-name> ::= [gs] <base-unresolved-name>
    ///                   ::= sr <unresolved-type> [<template-args>] <base-unresolved-name>
    ///                   ::= srN <unresolved-type> [<template-args>] <simple-id>* E <base-unresolved-name>
    ///                   ::= [gs] sr <simple-id>+ E <base-unresolved-name>
    /// ```
    pub(super) fn unresolved_name(&mut self, is_global: bool) -> Option<Id> {
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
            self.unresolved_type_with_args()?
        };
        let name = self.base_unresolved_name()?;
        Some(self.push(Node::Nested { scope, name }))
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
            _ => return self.substitution(),
        };
        self.remember(ty);
        Some(ty)
    }

    /// `<simple-id> ::= <source-name> [<template-args>]`
    fn simple_id(&mut self) -> Option<Id> {
        let name = self.source_name()?;
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
            let of = if self.peek(0).is_ascii_digit() { self.simple_id()? } else { self.unresolved_type()? };
            return Some(self.push(Node::UnresolvedDestructor(of)));
        }
        self.skip_text(b"on");
        let name = self.operator_name(None)?;
        self.with_args(name)
    }
}
