//! `impl-function-type`: a function type as the intermediate language (SIL) has it.

use super::{Parsed, Parser};
use crate::swift::impl_function::{self as bits, Role};
use crate::swift::kinds::Kind;

impl Parser<'_, '_> {
    /// `impl-function-type ::= type* generic-signature? 'I' FUNC-ATTRIBUTES '_'`
    pub(super) fn impl_function_type(&mut self) -> Parsed {
        let start = self.list.len();
        let mut flags = 0;
        if self.cursor.eat(b's') {
            let arguments = self.pop_only_arguments()?;
            let signature = self.pop(Kind::GenericSignature)?;
            let pattern = self.arena.node(Kind::ImplSubstitutions, 0, &[arguments, signature]);
            self.list.push(pattern);
            flags |= bits::HAS_PATTERN;
        }
        if self.cursor.eat(b'I') {
            let arguments = self.pop_only_arguments()?;
            let invocation = self.arena.node(Kind::ImplSubstitutions, 0, &[arguments]);
            self.list.push(invocation);
            flags |= bits::HAS_INVOCATION;
        }
        if let Some(signature) = self.pop(Kind::GenericSignature) {
            // Whether the signature is pseudo-generic is not shown.
            self.cursor.eat(b'P');
            self.list.push(signature);
            flags |= bits::HAS_SIGNATURE;
        }
        flags |= self.impl_attributes()?;
        let first = self.list.len();
        self.impl_values()?;
        self.give_types(first)?;
        Some(self.listed(Kind::ImplFunctionType, flags, start).as_type())
    }

    /// The one list of generic arguments that substitutions have.
    fn pop_only_arguments(&mut self) -> Parsed {
        let (start, _) = self.pop_generic_arguments()?;
        let arguments = *self.list.get(start)?;
        let is_only = self.list.len() == start + 1;
        self.list.truncate(start);
        is_only.then_some(arguments)
    }

    /// `FUNC-ATTRIBUTES` up to the parameters.
    fn impl_attributes(&mut self) -> Option<u32> {
        let mut flags = 0;
        for (letter, flag) in bits::BEFORE_CONVENTION {
            if self.cursor.eat(letter) {
                flags |= flag;
            }
        }
        if let letter @ (b'd' | b'l' | b'f' | b'r') = self.cursor.peek() {
            self.cursor.next();
            flags |= bits::differentiable(letter);
        }
        flags |= bits::callee_convention(self.cursor.next())?;
        flags |= self.impl_representation()?;
        for (letter, flag) in bits::COROUTINES {
            if self.cursor.eat(letter) {
                flags |= flag;
                break;
            }
        }
        for (letter, flag) in bits::AFTER_CONVENTION {
            if self.cursor.eat(letter) {
                flags |= flag;
            }
        }
        Some(flags)
    }

    /// `FUNC-REPRESENTATION?`, with the C type that some have.
    fn impl_representation(&mut self) -> Option<u32> {
        let mut flags = 0;
        // A `z` alone is the error result.
        if self.cursor.eat_before(b'z', |next| matches!(next, b'B' | b'C')) {
            flags |= bits::HAS_C_TYPE;
        }
        if let Some(representation) = bits::representation(self.cursor.peek()) {
            self.cursor.next();
            flags |= representation;
        }
        if flags & bits::HAS_C_TYPE != 0 {
            let c_type = self.c_type()?;
            self.list.push(c_type);
        }
        Some(flags)
    }

    /// The parameters', results' and yields' conventions: a node each, without types yet.
    fn impl_values(&mut self) -> Option<()> {
        while let Some(convention) = bits::param_convention(self.cursor.peek()) {
            self.cursor.next();
            let mut value = bits::value(Role::Parameter, convention);
            for (letter, flag) in bits::PARAM_ATTRIBUTES {
                if self.cursor.eat(letter) {
                    value |= flag;
                }
            }
            self.impl_value(value);
        }
        while let Some(convention) = bits::result_convention(self.cursor.peek()) {
            self.cursor.next();
            let no_derivative = if self.cursor.eat(b'w') { bits::NO_DERIVATIVE } else { 0 };
            self.impl_value(bits::value(Role::Result, convention) | no_derivative);
        }
        while self.cursor.eat(b'Y') {
            let convention = bits::param_convention(self.cursor.next())?;
            self.impl_value(bits::value(Role::Yield, convention));
        }
        if self.cursor.eat(b'z') {
            let convention = bits::result_convention(self.cursor.next())?;
            self.impl_value(bits::value(Role::Error, convention));
        }
        self.cursor.eat(b'_').then_some(())
    }

    fn impl_value(&mut self, value: u32) {
        let node = self.arena.leaf(Kind::ImplParameter, value);
        self.list.push(node);
    }

    /// The types of the values wait on the stack, in the order of the conventions.
    fn give_types(&mut self, first: usize) -> Option<()> {
        for at in (first..self.list.len()).rev() {
            let of = self.pop_type()?;
            self.arena.set_only_child(*self.list.get(at)?, of);
        }
        Some(())
    }
}
