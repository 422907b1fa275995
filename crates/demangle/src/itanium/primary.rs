//! Literals, and external names where a literal can be.

use super::node::{FloatKind, Id, List, Node, Span};
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
            b'f' | b'd' | b'e' => {
                self.at += 1;
                let literal = self.float_digits(first)?;
                self.expect(b'E')?;
                Some(literal)
            }
            b'g' => self.quad_literal(),
            b'C' => self.complex_literal(),
            b'_' => {
                if !self.skip_text(b"_Z") {
                    return None;
                }
                let of = self.encoding_of_argument()?;
                self.expect(b'E')?;
                Some(of)
            }
            b'A' => {
                let ty = self.ty()?;
                self.expect(b'E')?;
                Some(self.push(Node::StringLiteral(ty)))
            }
            b'D' => self.d_literal(),
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
        self.expect(b'E')?;
        if value.len == 0 {
            // A value without members, or clang's name for a lambda
            return Some(self.push(Node::InitList { ty: Some(ty), values: List::EMPTY }));
        }
        Some(self.push(Node::EnumLiteral { ty, value }))
    }

    fn bool_literal(&mut self) -> Option<Id> {
        if self.skip_text(b"b0E") {
            return Some(Word::FALSE.id());
        }
        self.skip_text(b"b1E").then(|| Word::TRUE.id())
    }

    /// `Dn [0] E`, or a literal of one of the other types that start with a `D`
    fn d_literal(&mut self) -> Option<Id> {
        if self.skip_text(b"Dn") {
            self.skip(b'0');
            self.expect(b'E')?;
            return Some(Word::NULLPTR.id());
        }
        match self.peek(1) {
            b'F' => {
                let ty = self.binary_float()?;
                self.typed_float(ty)
            }
            b'h' => {
                self.at += 2;
                self.typed_float(Word::HALF.id())
            }
            b'i' | b's' | b'u' | b'B' | b'U' => self.enum_literal(),
            _ => None,
        }
    }

    /// `g <32 digits> E`; any other number is taken as LLVM does.
    fn quad_literal(&mut self) -> Option<Id> {
        let from = self.at;
        self.at += 1;
        let digits = self.hex_digits();
        if let Some((FloatKind::Quad, digits)) = digits {
            let value = self.text(digits);
            // On PowerPC `g` is IBM's pair of doubles, too, the high one behind: as a quad it would be nearly zero.
            if value.starts_with(b"0000") && value.iter().any(|&digit| digit != b'0') {
                self.expect(b'E')?;
                return Some(self.push(Node::EnumLiteral { ty: Word::FLOAT128.id(), value: digits }));
            }
            self.at = from + 1;
            return self.typed_float(Word::FLOAT128.id());
        }
        self.at = from;
        self.enum_literal()
    }

    fn typed_float(&mut self, ty: Id) -> Option<Id> {
        let (kind, digits) = self.hex_digits()?;
        let is_bfloat = kind == FloatKind::Half && ty == Word::BFLOAT16.id();
        let kind = if is_bfloat { FloatKind::BFloat16 } else { kind };
        self.expect(b'E')?;
        Some(self.push(Node::TypedFloat { ty, kind, digits }))
    }

    /// The value of a `float`, `double` or `long double`; the last has the size that the platform gives it.
    fn float_digits(&mut self, letter: u8) -> Option<Id> {
        let (kind, digits) = self.hex_digits()?;
        let is_right = match letter {
            b'f' => kind == FloatKind::Float,
            b'd' => kind == FloatKind::Double,
            _ => matches!(kind, FloatKind::Double | FloatKind::Extended | FloatKind::Quad),
        };
        if !is_right {
            return None;
        }
        Some(self.push(Node::Float { kind, is_long: letter == b'e', digits }))
    }

    /// The bytes of the value, high ones first, as lowercase hexadecimal digits.
    fn hex_digits(&mut self) -> Option<(FloatKind, Span)> {
        let from = self.at;
        while matches!(self.peek(0), b'0'..=b'9' | b'a'..=b'f') {
            self.at += 1;
        }
        let digits = self.span(from, self.at);
        Some((FloatKind::of_digits(digits.len)?, digits))
    }

    /// `C <type> <real part> _ <imaginary part> E`
    fn complex_literal(&mut self) -> Option<Id> {
        let letter = self.peek(1);
        let ty = self.ty()?;
        let real = self.complex_part(letter)?;
        if self.skip(b'E') {
            // As LLVM has it: any number behind a type is its value.
            let Node::Source(value) = self.scratch.table.node(real) else { return None };
            return Some(self.push(Node::EnumLiteral { ty, value }));
        }
        self.expect(b'_')?;
        let imaginary = self.complex_part(letter)?;
        self.expect(b'E')?;
        Some(self.push(Node::Complex { ty, real, imaginary }))
    }

    fn complex_part(&mut self, letter: u8) -> Option<Id> {
        if matches!(letter, b'f' | b'd' | b'e') {
            return self.float_digits(letter);
        }
        let value = self.number();
        (value.len > 0).then(|| self.push(Node::Source(value)))
    }
}
