//! Types.

use super::{Old, Parsed};
use crate::swift::function_type::{self as bits, Convention};
use crate::swift::kinds::Kind;
use crate::swift::phrase::Phrase;
use alloc::vec::Vec;

impl Old<'_, '_> {
    pub(super) fn type_(&mut self) -> Parsed {
        Some(self.nested(Self::any_type)?.as_type())
    }

    fn any_type(&mut self) -> Parsed {
        match self.cursor.next() {
            b'B' => self.builtin(),
            b'a' => self.declaration(Kind::TypeAlias),
            b'C' => self.declaration(Kind::Class),
            b'V' => self.declaration(Kind::Structure),
            b'O' => self.declaration(Kind::Enum),
            b'b' => self.function(Convention::ObjCBlock),
            b'c' => self.function(Convention::CPointer),
            b'F' => self.function(Convention::Swift),
            b'f' => self.function(Convention::Uncurried),
            b'K' => self.function(Convention::AutoClosure),
            b'D' => self.of_type(Kind::DynamicSelf, 0),
            b'E' => {
                let is_error = self.cursor.eat_str("RR");
                is_error.then(|| self.arena.leaf(Kind::ErrorType, 0))
            }
            b'G' => self.bound_generic_type(),
            b'M' => self.of_type(Kind::Metatype, 0),
            b'P' => self.existential(),
            b'Q' => self.archetype_or_opaque(),
            b'q' => self.dependent_type(),
            b'x' => Some(self.arena.param(0, 0)),
            b'w' => self.associated_type(),
            b'W' => self.associated_type_at_depth(),
            b'R' => self.of_type(Kind::InOut, 0),
            b'k' => self.of_type(Kind::Qualified, Phrase::NoDerivative.pack()),
            b'S' => self.substitution(),
            b'T' => self.tuple(false),
            b't' => self.tuple(true),
            b'u' => {
                let signature = self.generic_signature()?;
                let of = self.type_()?;
                Some(self.arena.node(Kind::DependentGenericType, 0, &[signature, of]))
            }
            b'X' => self.special(),
            _ => None,
        }
    }

    fn of_type(&mut self, kind: Kind, extra: u32) -> Parsed {
        let of = self.type_()?;
        Some(self.arena.node(kind, extra, &[of]))
    }

    /// `type ::= 'X' …`
    fn special(&mut self) -> Parsed {
        match self.cursor.next() {
            b'b' => self.of_type(Kind::SilBox, 0),
            b'B' => self.box_with_layout(),
            b'M' => {
                let representation = self.representation()?;
                self.of_type(Kind::Metatype, representation)
            }
            b'P' => {
                if self.cursor.eat(b'M') {
                    let representation = self.representation()?;
                    return self.of_type(Kind::ExistentialMetatype, representation);
                }
                self.protocol_list()
            }
            b'f' => self.function(Convention::Thin),
            b'o' => self.of_type(Kind::Qualified, Phrase::Unowned.pack()),
            b'u' => self.of_type(Kind::Qualified, Phrase::Unmanaged.pack()),
            b'w' => self.of_type(Kind::Qualified, Phrase::Weak.pack()),
            b'F' => self.impl_function_type(),
            _ => None,
        }
    }

    fn representation(&mut self) -> Option<u32> {
        let letter = self.cursor.next();
        matches!(letter, b't' | b'T' | b'o').then_some(u32::from(letter))
    }

    /// `type ::= 'P' ('M' type | protocol* '_')`, the `P` of which is passed over.
    fn existential(&mut self) -> Parsed {
        if self.cursor.eat(b'M') {
            return self.of_type(Kind::ExistentialMetatype, 0);
        }
        self.protocol_list()
    }

    fn protocol_list(&mut self) -> Parsed {
        let mut protocols = Vec::new();
        while !self.cursor.eat(b'_') {
            protocols.push(self.protocol_name()?);
        }
        Some(self.arena.node(Kind::ProtocolList, 0, &protocols))
    }

    fn archetype_or_opaque(&mut self) -> Parsed {
        if self.cursor.eat(b'u') {
            return Some(self.arena.leaf(Kind::OpaqueReturnType, 0));
        }
        if self.cursor.eat(b'U') {
            self.cursor.old_index()?;
            return Some(self.arena.leaf(Kind::OpaqueReturnType, 0));
        }
        self.archetype()
    }

    /// `archetype ::= ('Q' archetype | substitution | 's') identifier`
    fn archetype(&mut self) -> Parsed {
        let root = match self.cursor.next() {
            b'Q' => self.nested(Self::archetype)?,
            b'S' => self.substitution()?,
            b's' => self.swift_module(),
            _ => return None,
        };
        let name = self.identifier(None)?;
        let member = self.arena.node(Kind::AssociatedTypeRef, 0, &[root, name]);
        Some(self.substitutable(member))
    }

    fn tuple(&mut self, is_variadic: bool) -> Parsed {
        let mut elements = Vec::new();
        let mut last = None;
        while !self.cursor.eat(b'_') {
            let has_label = matches!(self.cursor.peek(), b'0'..=b'9' | b'o');
            let label = if has_label { Some(self.identifier(Some(Kind::Identifier))?) } else { None };
            let of = self.type_()?;
            elements.push(match label {
                Some(label) => self.arena.node(Kind::TupleElement, 0, &[of, label]),
                None => of,
            });
            last = Some((of, label));
        }
        if let (true, Some((of, label)), Some(element)) = (is_variadic, last, elements.last_mut()) {
            *element = match label {
                Some(label) => self.arena.node(Kind::TupleElement, 1, &[of, label]),
                None => self.arena.node(Kind::TupleElement, 1, &[of]),
            };
        }
        Some(self.arena.node(Kind::Tuple, 0, &elements))
    }

    /// `function-type ::= 'z'? 'y'? 'Z'? ('D' kind)? ('Y' type)? type type`
    fn function(&mut self, convention: Convention) -> Parsed {
        let mut flags = convention.pack();
        for (letter, flag) in [(b'z', bits::THROWS), (b'y', bits::SENDABLE), (b'Z', bits::ASYNC)] {
            if self.cursor.eat(letter) {
                flags |= flag;
            }
        }
        if self.cursor.eat(b'D') {
            flags |= bits::differentiable(u32::from(self.cursor.next()));
        }
        let actor = if self.cursor.eat(b'Y') { Some(self.type_()?) } else { None };
        let parameters = self.type_()?;
        let result = self.type_()?;
        Some(match actor {
            Some(actor) => {
                let flags = flags | bits::HAS_ACTOR;
                self.arena.node(Kind::FunctionType, flags, &[parameters, result, actor])
            }
            None => self.arena.node(Kind::FunctionType, flags, &[parameters, result]),
        })
    }

    /// `type ::= 'XB' ('G' generic-signature)? (('m' | 'i') type)* '_' (type* '_')?`
    fn box_with_layout(&mut self) -> Parsed {
        let signature = if self.cursor.eat(b'G') { Some(self.generic_signature()?) } else { None };
        let mut fields = Vec::new();
        while !self.cursor.eat(b'_') {
            let is_mutable = match self.cursor.next() {
                b'm' => 1,
                b'i' => 0,
                _ => return None,
            };
            fields.push(self.of_type(Kind::SilBoxField, is_mutable)?);
        }
        let layout = self.arena.node(Kind::SilBoxLayout, 0, &fields);
        let Some(signature) = signature else {
            return Some(self.arena.node(Kind::SilBoxWithLayout, 0, &[layout]));
        };
        let mut arguments = Vec::new();
        while !self.cursor.eat(b'_') {
            arguments.push(self.type_()?);
        }
        let arguments = self.arena.node(Kind::TypeList, 0, &arguments);
        Some(self.arena.node(Kind::SilBoxWithLayout, 0, &[layout, signature, arguments]))
    }

    fn builtin(&mut self) -> Parsed {
        let letter = self.cursor.next();
        match letter {
            b'b' | b'B' | b'O' | b'o' | b'p' | b't' | b'w' => {
                Some(self.arena.leaf(Kind::Builtin, u32::from(letter)))
            }
            b'f' | b'i' => self.sized_builtin(letter),
            b'v' => {
                let count = self.cursor.old_natural()?;
                if !self.cursor.eat(b'B') {
                    return None;
                }
                let element = match self.cursor.next() {
                    letter @ (b'f' | b'i') => self.sized_builtin(letter)?,
                    b'p' => self.arena.leaf(Kind::Builtin, u32::from(b'p')),
                    _ => return None,
                };
                Some(self.arena.node(Kind::BuiltinVector, count, &[element]))
            }
            _ => None,
        }
    }

    fn sized_builtin(&mut self, letter: u8) -> Parsed {
        let size = self.cursor.old_natural()?;
        let is_sane = size < 1 << 24 && self.cursor.eat(b'_');
        is_sane.then(|| self.arena.leaf(Kind::BuiltinSized, (size << 8) | u32::from(letter)))
    }
}
