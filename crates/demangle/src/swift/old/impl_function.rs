//! Function types of the intermediate language.

use super::{Old, Parsed};
use crate::swift::impl_function::{self as bits, Role};
use crate::swift::kinds::Kind;
use alloc::vec::Vec;

/// The letter that the newer mangling has for a convention of the callee.
fn callee(letter: u8) -> Option<u8> {
    Some(match letter {
        b't' => b't',
        b'd' => b'y',
        b'g' => b'g',
        b'o' => b'x',
        _ => return None,
    })
}

/// … of a parameter.
fn parameter(letter: u8) -> Option<u8> {
    Some(match letter {
        b'd' => b'y',
        b'g' => b'g',
        b'e' => b'e',
        b'i' => b'i',
        b'l' => b'l',
        b'o' => b'x',
        _ => return None,
    })
}

/// … of a result.
fn result(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => b'a',
        b'd' => b'd',
        b'D' => b'u',
        b'i' => b'r',
        b'o' => b'o',
        _ => return None,
    })
}

/// … of a representation.
fn representation(letter: u8) -> Option<u8> {
    Some(match letter {
        b'b' => b'B',
        b'c' => b'C',
        b'm' => b'M',
        b'O' => b'O',
        b'w' => b'W',
        _ => return None,
    })
}

impl Old<'_, '_> {
    /// `impl-function-type ::= convention ('C' representation)? 'h'? 'H'? generics? '_' parameter* '_' result* '_'`
    pub(super) fn impl_function_type(&mut self) -> Parsed {
        let mut flags = bits::callee_convention(callee(self.cursor.next())?)?;
        if self.cursor.eat(b'C') {
            flags |= bits::representation(representation(self.cursor.next())?)?;
        }
        let is_sendable = self.cursor.eat(b'h');
        let is_async = self.cursor.eat(b'H');
        flags |= bits::with_attributes(is_sendable, is_async);
        let mut parts = Vec::new();
        if self.cursor.eat(b'G') || self.cursor.eat(b'g') {
            parts.push(self.generic_signature()?);
            flags |= bits::HAS_SIGNATURE;
        }
        if !self.cursor.eat(b'_') {
            return None;
        }
        while !self.cursor.eat(b'_') {
            let convention = bits::param_convention(parameter(self.cursor.next())?)?;
            parts.push(self.impl_value(bits::value(Role::Parameter, convention))?);
        }
        while !self.cursor.eat(b'_') {
            let role = if self.cursor.eat(b'z') { Role::Error } else { Role::Result };
            let convention = bits::result_convention(result(self.cursor.next())?)?;
            parts.push(self.impl_value(bits::value(role, convention))?);
        }
        Some(self.arena.node(Kind::ImplFunctionType, flags, &parts))
    }

    fn impl_value(&mut self, value: u32) -> Parsed {
        let of = self.type_()?;
        Some(self.arena.node(Kind::ImplParameter, value, &[of]))
    }
}
