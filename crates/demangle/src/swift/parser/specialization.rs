//! Specializations: of generic functions, and of functions for what is known about their arguments.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::specialization::{self as bits, Flavor, ParamKind};
use alloc::vec::Vec;

/// A parameter before what it takes from the stack is known.
struct Param {
    /// Where its kinds are in the list.
    first: usize,
    count: usize,
    is_result: bool,
}

impl Parser<'_, '_> {
    pub(super) fn specialization(&mut self, letter: u8) -> Parsed {
        match letter {
            b'g' => self.generic_specialization(Flavor::Generic),
            b'B' => self.generic_specialization(Flavor::Generic),
            b'G' => self.generic_specialization(Flavor::NotReAbstracted),
            b's' => self.generic_specialization(Flavor::Prespecialized),
            b'i' => self.generic_specialization(Flavor::Inlined),
            b't' => self.generic_specialization_with_dropped_arguments(),
            b'p' => self.partial_specialization(Flavor::Partial),
            b'P' => self.partial_specialization(Flavor::PartialNotReAbstracted),
            _ => self.signature_specialization(),
        }
    }

    /// `SPEC-INFO ::= 'm'? FRAGILE? (ASYNC-REMOVED | REPR-CHANGED)? PASSID`
    fn spec_info(&mut self) -> Option<u32> {
        // Compilers before Swift 6.0 said by `m` that metatype parameters were removed; that is not shown.
        self.cursor.eat(b'm');
        let mut flags = 0;
        for (letter, flag) in bits::INFO {
            if self.cursor.eat(letter) {
                flags |= flag;
            }
        }
        self.cursor.next().is_ascii_digit().then_some(flags)
    }

    /// `specialization ::= type '_' type* 'Tg' SPEC-INFO`
    fn generic_specialization(&mut self, flavor: Flavor) -> Parsed {
        let info = self.spec_info()? | flavor.pack();
        let start = self.pop_list(Self::pop_type)?;
        Some(self.listed(Kind::GenericSpecialization, info, start))
    }

    /// `dropped-arg ::= 't' NATURAL?`; the arguments are not shown.
    fn generic_specialization_with_dropped_arguments(&mut self) -> Parsed {
        let mut letter = b't';
        while letter == b't' {
            if self.cursor.peek().is_ascii_digit() {
                self.cursor.natural()?;
            }
            letter = self.cursor.next();
        }
        match letter {
            b'g' | b'G' | b'B' => self.specialization(letter),
            _ => None,
        }
    }

    /// `specialization ::= type 'Tp' SPEC-INFO`
    fn partial_specialization(&mut self, flavor: Flavor) -> Parsed {
        let info = self.spec_info()? | flavor.pack();
        let of = self.pop_type()?;
        Some(self.arena.node(Kind::GenericSpecialization, info, &[of]))
    }

    /// `specialization ::= spec-arg* 'Tf' SPEC-INFO ARG-SPEC-KIND* '_' ARG-SPEC-KIND`
    fn signature_specialization(&mut self) -> Parsed {
        let info = self.spec_info()?;
        if info & bits::INFO_MASK == bits::REPRESENTATION_CHANGED {
            return Some(self.arena.node(Kind::SignatureSpecialization, info, &[]));
        }
        let start = self.list.len();
        let mut params = Vec::new();
        while !self.cursor.eat(b'_') {
            params.push(self.spec_param(false)?);
        }
        if !self.cursor.eat(b'n') {
            params.push(self.spec_param(true)?);
        }
        let kinds = self.list.len();
        // The operands were pushed in the parameters' order, so the last parameter's come first.
        for param in params.iter().rev() {
            let node = self.spec_param_node(param)?;
            self.list.push(node);
        }
        self.list.get_mut(kinds..)?.reverse();
        let node = self.listed(Kind::SignatureSpecialization, info, kinds);
        self.list.truncate(start);
        Some(node)
    }

    /// `ARG-SPEC-KIND`: leaves its kinds in the list.
    fn spec_param(&mut self, is_result: bool) -> Option<Param> {
        let first = self.list.len();
        match self.cursor.next() {
            b'n' => {}
            b'c' => self.spec_kind(ParamKind::Closure.pack()),
            b'E' => self.spec_kind(ParamKind::EscapingClosure.pack()),
            b'C' => {
                self.spec_kind(ParamKind::ClosurePreviousArg.pack());
                self.spec_digits()?;
            }
            b'p' => self.constant_props()?,
            b'e' => self.spec_options(bits::EXISTENTIAL, b"DGOX"),
            b'd' => self.spec_options(bits::DEAD, b"GOX"),
            b'g' => self.spec_options(bits::OWNED_TO_GUARANTEED, b"X"),
            b'o' => self.spec_options(bits::GUARANTEED_TO_OWNED, b"X"),
            b'x' => self.spec_options(bits::EXPLODED, b""),
            b'i' => self.spec_kind(ParamKind::BoxToValue.pack()),
            b's' => self.spec_kind(ParamKind::BoxToStack.pack()),
            b'r' => self.spec_kind(ParamKind::InOutToOut.pack()),
            _ => return None,
        }
        Some(Param { first, count: self.list.len() - first, is_result })
    }

    fn spec_kind(&mut self, kind: u32) {
        let node = self.arena.leaf(Kind::SpecProperty, kind);
        self.list.push(node);
    }

    fn spec_digits(&mut self) -> Option<()> {
        let start = self.cursor.at();
        let len = self.cursor.skip_while(|byte| byte.is_ascii_digit());
        let digits = self.arena.text_node(Kind::SpecText, start, len);
        self.list.push(digits);
        (len > 0).then_some(())
    }

    /// Flags that may be combined, in this order.
    fn spec_options(&mut self, mut options: u32, allowed: &[u8]) {
        for &letter in allowed {
            if self.cursor.eat(letter) {
                options |= bits::option(letter);
            }
        }
        self.spec_kind(options);
    }

    /// `CONST-PROP ::= 'S' CONST-PROP* | …`
    ///
    /// A letter after a struct may be its next operand or the next argument's kind. Only what cannot be a constant is
    /// taken for the latter.
    fn constant_props(&mut self) -> Option<()> {
        let is_struct = self.cursor.peek() == b'S';
        self.constant_prop()?;
        while is_struct && self.is_constant_prop() {
            self.constant_prop()?;
        }
        Some(())
    }

    fn is_constant_prop(&self) -> bool {
        let mut ahead = self.cursor.clone();
        match ahead.next() {
            b'S' | b'f' | b'g' | b'k' => true,
            b'i' | b'd' => ahead.peek().is_ascii_digit(),
            b's' => matches!(ahead.peek(), b'b' | b'w' | b'c'),
            _ => false,
        }
    }

    fn constant_prop(&mut self) -> Option<()> {
        let kind = match self.cursor.next() {
            b'S' => ParamKind::ConstantStruct,
            b'f' => ParamKind::ConstantFunction,
            b'g' => ParamKind::ConstantGlobal,
            b'i' => ParamKind::ConstantInteger,
            b'd' => ParamKind::ConstantFloat,
            b's' => ParamKind::ConstantString,
            b'k' => ParamKind::ConstantKeyPath,
            _ => return None,
        };
        self.spec_kind(kind.pack());
        match kind {
            ParamKind::ConstantInteger | ParamKind::ConstantFloat => self.spec_digits(),
            ParamKind::ConstantString => {
                let encoding = match self.cursor.next() {
                    b'b' => "u8",
                    b'w' => "u16",
                    b'c' => "objc",
                    _ => return None,
                };
                let start = self.arena.text_len();
                self.arena.push_text(encoding);
                let encoding = self.arena.text_node(Kind::SpecText, start, encoding.len());
                self.list.push(encoding);
                Some(())
            }
            _ => Some(()),
        }
    }

    /// Takes a parameter's operands from the stack and makes the parameter of them and its kinds.
    fn spec_param_node(&mut self, param: &Param) -> Parsed {
        let mut operands: Vec<NodeRef> = Vec::new();
        let kinds = param.first..param.first + param.count;
        for at in kinds.clone().rev() {
            let kind = *self.list.get(at)?;
            if self.arena.own_kind(kind) != Kind::SpecProperty || param.is_result {
                continue;
            }
            self.spec_operands(ParamKind::unpack(self.arena.extra(kind)), &mut operands)?;
        }
        operands.reverse();
        let start = self.list.len();
        self.list.extend_from_within(kinds);
        self.list.extend(operands);
        Some(self.listed(Kind::SpecializedParam, u32::from(param.is_result), start))
    }

    fn spec_operands(&mut self, kind: Option<ParamKind>, operands: &mut Vec<NodeRef>) -> Option<()> {
        match kind {
            Some(ParamKind::Closure | ParamKind::EscapingClosure) => {
                while let Some(of) = self.pop_type() {
                    operands.push(of);
                }
            }
            Some(ParamKind::ConstantKeyPath) => operands.extend([self.pop_type()?, self.pop_type()?]),
            Some(ParamKind::ConstantStruct) => {
                operands.push(self.pop_type()?);
                return Some(());
            }
            Some(ParamKind::ConstantFunction | ParamKind::ConstantGlobal | ParamKind::ConstantString) => {}
            _ => return Some(()),
        }
        operands.push(self.pop(Kind::Identifier)?);
        Some(())
    }
}
