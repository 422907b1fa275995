//! Types.

use super::dialect::Dialect;
use super::node::{Id, Node, Reference, Shape, Trailer};
use super::parser::Parser;
use super::words::Word;

impl Parser<'_, '_> {
    /// `<type>`; every one that is not builtin can be substituted later.
    pub(super) fn ty(&mut self) -> Option<Id> {
        let first = self.peek(0);
        if let Some(word) = Word::builtin(first) {
            self.at += 1;
            return Some(word.id());
        }
        self.nested(|parser| parser.compound_type(first))
    }

    fn compound_type(&mut self, first: u8) -> Option<Id> {
        let ty = match first {
            b'P' => {
                let to = self.inner_type()?;
                let shape = self.scratch.table.shape(to).pointer();
                self.scratch.table.push_shaped(Node::Pointer(to), shape)
            }
            b'R' => self.reference(Reference::LValue)?,
            b'O' => self.reference(Reference::RValue)?,
            b'r' | b'V' | b'K' if self.is_at_function_type() => self.bracketed(Self::function_type)?,
            b'U' if !self.peek(1).is_ascii_digit() => self.name(None)?,
            b'r' | b'V' | b'K' | b'U' => self.qualified_type()?,
            b'S' if self.peek(1) != b't' => return self.substitution_type(),
            b'T' => return self.param_type(),
            b'F' => self.bracketed(Self::function_type)?,
            b'D' => return self.d_type(),
            b'A' => self.array_type()?,
            b'M' => self.member_pointer()?,
            b'C' => self.postfixed(Word::COMPLEX)?,
            b'G' => self.postfixed(Word::IMAGINARY)?,
            b'u' => self.vendor_type()?,
            _ => self.name(None)?,
        };
        self.remember(ty);
        Some(ty)
    }

    /// The type behind one letter.
    fn inner_type(&mut self) -> Option<Id> {
        self.at += 1;
        self.ty()
    }

    fn reference(&mut self, kind: Reference) -> Option<Id> {
        let to = self.inner_type()?;
        let shape = self.scratch.table.shape(to).pointer();
        Some(self.scratch.table.push_shaped(Node::Reference { to, kind }, shape))
    }

    fn postfixed(&mut self, behind: Word) -> Option<Id> {
        let of = self.inner_type()?;
        Some(self.push(Node::Postfixed { of, behind }))
    }

    /// A type that starts with a substitution: the substitution itself, or a template or member of it.
    fn substitution_type(&mut self) -> Option<Id> {
        let (name, is_substitution) = self.unscoped_name(None)?;
        let ty = if self.peek(0) == b'I' && (!is_substitution || self.takes_args) {
            if !is_substitution {
                self.remember(name);
            }
            let args = self.template_args(false)?;
            self.push(Node::Templated { name, args })
        } else if is_substitution {
            return Some(name);
        } else {
            name
        };
        self.remember(ty);
        Some(ty)
    }

    /// A template parameter, possibly with arguments of its own, or an elaborated type (`Ts`, `Tu`, `Te`).
    fn param_type(&mut self) -> Option<Id> {
        let keyword = match self.peek(1) {
            b's' => Some(Word::STRUCT),
            b'u' => Some(Word::UNION),
            b'e' => Some(Word::ENUM),
            _ => None,
        };
        if let Some(keyword) = keyword {
            self.at += 2;
            let of = self.name(None)?;
            let ty = self.push(Node::Elaborated { keyword, of });
            self.remember(ty);
            return Some(ty);
        }
        let name = self.template_param()?;
        let ty = self.param_with_args(name)?;
        if ty == name {
            self.remember_unresolved(ty);
        } else {
            self.remember(ty);
        }
        Some(ty)
    }

    fn param_with_args(&mut self, name: Id) -> Option<Id> {
        if !self.takes_args || self.peek(0) != b'I' {
            return Some(name);
        }
        self.remember(name);
        let args = self.template_args(false)?;
        Some(self.push(Node::Templated { name, args }))
    }

    /// Qualifiers in front of a function type belong to it: `void () const`.
    fn is_at_function_type(&self) -> bool {
        let mut ahead = 0;
        for qualifier in *b"rVK" {
            ahead += usize::from(self.peek(ahead) == qualifier);
        }
        match self.peek(ahead) {
            b'F' => true,
            b'D' => matches!(self.peek(ahead + 1), b'o' | b'O' | b'w' | b'x'),
            _ => false,
        }
    }

    /// ```text
    /// <qualified-type> ::= <extended-qualifier>* <CV-qualifiers> <type>
    /// <extended-qualifier> ::= U <source-name> [<template-args>]
    /// ```
    ///
    /// `U <number> objcproto <source-name>` is an Objective-C protocol.
    fn qualified_type(&mut self) -> Option<Id> {
        if !self.skip(b'U') {
            let qualifiers = self.qualifiers();
            let of = self.ty()?;
            if !qualifiers.any() {
                return Some(of);
            }
            let shape = self.scratch.table.shape(of);
            return Some(self.scratch.table.push_shaped(Node::Qualified { of, qualifiers }, shape));
        }
        let span = self.identifier()?;
        if self.text(span).starts_with(b"objcproto") {
            let start = span.start as usize + b"objcproto".len();
            let behind = core::mem::replace(&mut self.at, start);
            let protocol = self.identifier()?;
            if self.at > behind {
                return None;
            }
            self.at = behind;
            let of = self.nested(Self::qualified_type)?;
            return Some(self.push(Node::ObjCProtocol { of, protocol }));
        }
        let qualifier = self.push(Node::Source(span));
        let args = if self.peek(0) == b'I' { Some(self.template_args(false)?) } else { None };
        let of = self.nested(Self::qualified_type)?;
        Some(self.push(Node::VendorQualified { of, qualifier, args }))
    }

    /// `u <source-name> [<template-args>]`
    fn vendor_type(&mut self) -> Option<Id> {
        self.at += 1;
        let transform = self.identifier()?;
        if self.peek(0) != b'I' {
            return Some(self.push(Node::Source(transform)));
        }
        // clang's `matrix_type<3ul, 4ul, float>`
        let is_literal = self.peek(1) == b'L' && !self.peek(2).is_ascii_digit();
        if is_literal || self.peek(1) == b'X' {
            let name = self.push(Node::Source(transform));
            let args = self.template_args(false)?;
            return Some(self.push(Node::Templated { name, args }));
        }
        // One type is an operand: `__underlying_type(T)`.
        self.at += 1;
        let of = self.bracketed(Self::ty)?;
        self.expect(b'E')?;
        Some(self.push(Node::Transformed { transform, of }))
    }

    /// `Dy <type> <index expression>`
    fn pack_index(&mut self) -> Option<Id> {
        self.at += 2;
        let pack = self.ty()?;
        let index = self.bracketed(Self::expression)?;
        Some(self.push(Node::PackIndex { pack, index }))
    }

    /// ```text
    /// <function-type> ::= [<CV-qualifiers>] [<exception-spec>] [Dx] F [Y] <bare-function-type> [<ref-qualifier>] E
    /// <exception-spec> ::= Do | DO <expression> E | Dw <type>+ E
    /// ```
    fn function_type(&mut self) -> Option<Id> {
        let qualifiers = self.qualifiers();
        let exceptions = self.exception_spec()?;
        // Transaction safe.
        self.skip_text(b"Dx");
        self.expect(b'F')?;
        // extern "C"
        self.skip(b'Y');
        let returns = self.ty()?;
        let mut reference = None;
        let from = self.scratch.pending.len();
        while !self.skip(b'E') {
            if self.skip(b'v') {
                continue;
            }
            if self.skip_text(b"RE") {
                reference = Some(Reference::LValue);
                break;
            }
            if self.skip_text(b"OE") {
                reference = Some(Reference::RValue);
                break;
            }
            let param = self.ty()?;
            self.scratch.pending.push(param);
        }
        let params = self.finish_list(from);
        let trailer = Trailer { qualifiers, reference };
        let node = Node::FunctionType { returns, params, exceptions, trailer };
        Some(self.scratch.table.push_shaped(node, Shape::FUNCTION))
    }

    /// `Some(None)` where there is none.
    fn exception_spec(&mut self) -> Option<Option<Id>> {
        if self.skip_text(b"Do") {
            return Some(Some(Word::NOEXCEPT.id()));
        }
        if self.skip_text(b"DO") {
            let condition = self.expression()?;
            self.expect(b'E')?;
            return Some(Some(self.push(Node::Noexcept(condition))));
        }
        if self.skip_text(b"Dw") {
            let types = self.list_to_end(Self::ty)?;
            return Some(Some(self.push(Node::Throws(types))));
        }
        Some(None)
    }

    /// `<array-type> ::= A [<number> | <expression>] _ <type>`
    fn array_type(&mut self) -> Option<Id> {
        self.expect(b'A')?;
        let dimension = self.dimension()?;
        let of = self.ty()?;
        Some(self.scratch.table.push_shaped(Node::Array { of, dimension }, Shape::ARRAY))
    }

    /// `[<number> | <expression>] _`; `Some(None)` where only the underscore is.
    fn dimension(&mut self) -> Option<Option<Id>> {
        if self.skip(b'_') {
            return Some(None);
        }
        let dimension = self.number_or_expression()?;
        self.expect(b'_')?;
        Some(Some(dimension))
    }

    fn number_or_expression(&mut self) -> Option<Id> {
        if self.peek(0).is_ascii_digit() {
            let digits = self.digits();
            return Some(self.push(Node::Source(digits)));
        }
        self.bracketed(Self::expression)
    }

    /// `<pointer-to-member-type> ::= M <class type> <member type>`
    fn member_pointer(&mut self) -> Option<Id> {
        self.expect(b'M')?;
        let class = self.ty()?;
        let member = self.ty()?;
        let shape = self.scratch.table.shape(member).pointer();
        Some(self.scratch.table.push_shaped(Node::MemberPointer { class, member }, shape))
    }

    /// The types that start with a `D`; the builtin ones are not remembered.
    fn d_type(&mut self) -> Option<Id> {
        let second = self.peek(1);
        if let Some(word) = Word::builtin_d(second) {
            self.at += 2;
            if self.dialect == Dialect::CountedAuto && matches!(second, b'a' | b'c') {
                self.remember(word.id());
            }
            return Some(word.id());
        }
        let ty = match second {
            b'F' => return self.binary_float(),
            b'A' | b'R' | b'S' => return self.fixed_point(),
            b'k' => return self.constrained_auto(Word::BEHIND_AUTO),
            b'K' => return self.constrained_auto(Word::BEHIND_DECLTYPE_AUTO),
            b'B' | b'U' => self.bit_int(second == b'B')?,
            b't' | b'T' => {
                let ty = self.decltype()?;
                self.remember_unresolved(ty);
                return Some(ty);
            }
            b'v' => self.vector()?,
            b'p' => {
                self.at += 2;
                let pattern = self.ty()?;
                self.push(Node::Expansion(pattern))
            }
            b'o' | b'O' | b'w' | b'x' => self.bracketed(Self::function_type)?,
            b'y' => self.pack_index()?,
            _ => return None,
        };
        self.remember(ty);
        Some(ty)
    }

    /// `DF16b`, `DF <number> _` or, for an extended format, `DF <number> x`
    pub(super) fn binary_float(&mut self) -> Option<Id> {
        self.at += 2;
        if self.skip_text(b"16b") {
            return Some(Word::BFLOAT16.id());
        }
        let mut bits = self.digits();
        if self.skip(b'x') {
            bits.len += 1;
        } else {
            self.expect(b'_')?;
        }
        let bits = self.push(Node::Source(bits));
        Some(self.push(Node::BinaryFloat(bits)))
    }

    /// `[DS] DA <size>` or `[DS] DR <size>`: `_Accum` and `_Fract` of N1169.
    fn fixed_point(&mut self) -> Option<Id> {
        let is_saturating = self.skip_text(b"DS");
        self.expect(b'D')?;
        let is_fraction = match self.peek(0) {
            b'A' => false,
            b'R' => true,
            _ => return None,
        };
        let size = self.peek(1);
        if !matches!(size, b's' | b't' | b'i' | b'j' | b'l' | b'm') {
            return None;
        }
        self.at += 2;
        Some(self.push(Node::FixedPoint { is_saturating, is_fraction, size }))
    }

    /// `Dk <concept>` and `DK <concept>`
    fn constrained_auto(&mut self, behind: Word) -> Option<Id> {
        self.at += 2;
        let of = self.name(None)?;
        Some(self.push(Node::Postfixed { of, behind }))
    }

    /// `DB <bits> _` and `DU <bits> _`
    fn bit_int(&mut self, is_signed: bool) -> Option<Id> {
        self.at += 2;
        let size = self.number_or_expression()?;
        self.expect(b'_')?;
        Some(self.push(Node::BitInt { size, is_signed }))
    }

    /// `<decltype> ::= Dt <expression> E | DT <expression> E`
    pub(super) fn decltype(&mut self) -> Option<Id> {
        self.at += 2;
        let of = self.bracketed(Self::expression)?;
        self.expect(b'E')?;
        Some(self.push_enclosing(Word::DECLTYPE, of))
    }

    /// `<vector-type> ::= Dv [<number> | <expression>] _ <type>`; AltiVec's pixel is `p`, behind a number only.
    fn vector(&mut self) -> Option<Id> {
        self.at += 2;
        let is_number = matches!(self.peek(0), b'1'..=b'9');
        let dimension = if self.peek(0) == b'0' { None } else { Some(self.dimension()?) }?;
        if let (true, Some(dimension), true) = (is_number, dimension, self.peek(0) == b'p') {
            self.at += 1;
            return Some(self.push(Node::PixelVector(dimension)));
        }
        if dimension.is_none() && self.peek(0) == b'T' && !matches!(self.peek(1), b's' | b'u' | b'e') {
            return self.vector_of_param();
        }
        let of = self.ty()?;
        Some(self.push(Node::Vector { of, dimension }))
    }

    /// gcc writes a dependent dimension behind the underscore, and another underscore behind that.
    fn vector_of_param(&mut self) -> Option<Id> {
        let param = self.template_param()?;
        if self.skip(b'_') {
            let of = self.ty()?;
            return Some(self.push(Node::Vector { of, dimension: Some(param) }));
        }
        let of = self.param_with_args(param)?;
        self.remember(of);
        Some(self.push(Node::Vector { of, dimension: None }))
    }
}
