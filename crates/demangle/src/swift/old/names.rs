//! Identifiers, modules, substitutions, names of protocols and nominal types.

use super::{Old, Parsed};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::standard::{self, Set};
use crate::swift::{operators, punycode};

impl Old<'_, '_> {
    /// `identifier ::= 'X'? ('o' fixity)? NATURAL text`; where a plain name is wanted, operators are refused.
    pub(super) fn identifier(&mut self, kind: Option<Kind>) -> Parsed {
        let is_punycode = self.cursor.eat(b'X');
        let mut operator = None;
        if self.cursor.eat(b'o') {
            if kind.is_some() {
                return None;
            }
            operator = Some(operators::fixity(self.cursor.next())?);
        }
        let len = self.cursor.old_natural()? as usize;
        let start = self.cursor.at();
        let text = self.cursor.take(len)?;
        if text.is_empty() {
            return None;
        }
        let kind = kind.unwrap_or(Kind::Identifier);
        let mut name = if is_punycode {
            let start = self.arena.text_len();
            self.arena.decode_text(|out| punycode::decode(text, out))?;
            self.decoded(kind, start)?
        } else {
            self.arena.text_node(kind, start, len)
        };
        if let Some(fixity) = operator {
            let start = self.arena.text_len();
            operators::decode(name, self.arena)?;
            name = self.decoded(fixity, start)?;
        }
        Some(name)
    }

    fn decoded(&mut self, kind: Kind, start: usize) -> Parsed {
        let len = self.arena.text_len().checked_sub(start)?;
        (len > 0).then(|| self.arena.text_node(kind, start, len))
    }

    /// `decl-name ::= identifier | 'L' index identifier | 'P' identifier identifier`
    pub(super) fn decl_name(&mut self) -> Parsed {
        if self.cursor.eat(b'L') {
            let number = self.cursor.old_index()?;
            let name = self.identifier(None)?;
            return Some(self.arena.node(Kind::LocalDeclName, number, &[name]));
        }
        if self.cursor.eat(b'P') {
            let discriminator = self.identifier(None)?;
            let name = self.identifier(None)?;
            return Some(self.arena.node(Kind::PrivateDeclName, 0, &[discriminator, name]));
        }
        self.identifier(None)
    }

    fn named_module(&mut self, name: &str) -> NodeRef {
        let start = self.arena.text_len();
        self.arena.push_text(name);
        self.arena.text_node(Kind::Module, start, name.len())
    }

    pub(super) fn swift_module(&mut self) -> NodeRef {
        self.named_module("Swift")
    }

    /// `substitution ::= 'S' (letter | index)`, the `S` of which is passed over.
    pub(super) fn substitution(&mut self) -> Parsed {
        let letter = self.cursor.peek();
        let module = match letter {
            b'o' => "__C",
            b'C' => "__C_Synthesized",
            _ if standard::lookup(Set::BeforeSwift4, letter).is_some() => {
                self.cursor.next();
                return Some(self.arena.leaf(Kind::Standard, standard::pack(Set::BeforeSwift4, letter)));
            }
            _ => {
                let index = self.cursor.old_index()? as usize;
                return self.substitutions.get(index).copied();
            }
        };
        self.cursor.next();
        Some(self.named_module(module))
    }

    pub(super) fn module(&mut self) -> Parsed {
        if self.cursor.eat(b's') {
            return Some(self.swift_module());
        }
        if self.cursor.eat(b'S') {
            let module = self.substitution()?;
            return (self.arena.own_kind(module) == Kind::Module).then_some(module);
        }
        let module = self.identifier(Some(Kind::Module))?;
        Some(self.substitutable(module))
    }

    /// `context decl-name`, of a kind that was said before.
    pub(super) fn declaration(&mut self, kind: Kind) -> Parsed {
        let context = self.context()?;
        self.declaration_in(kind, context)
    }

    pub(super) fn declaration_in(&mut self, kind: Kind, context: NodeRef) -> Parsed {
        let name = self.decl_name()?;
        let declaration = self.arena.node(kind, 0, &[context, name]);
        Some(self.substitutable(declaration))
    }

    pub(super) fn protocol_name(&mut self) -> Parsed {
        let protocol = self.nested(|old| {
            // A substitution may be the protocol or the module it is in.
            if old.cursor.eat(b'S') {
                let substitution = old.substitution()?;
                return match old.arena.own_kind(substitution) {
                    Kind::Protocol => Some(substitution),
                    Kind::Module => old.declaration_in(Kind::Protocol, substitution),
                    _ => None,
                };
            }
            if old.cursor.eat(b's') {
                let module = old.swift_module();
                return old.declaration_in(Kind::Protocol, module);
            }
            old.declaration(Kind::Protocol)
        });
        Some(protocol?.as_type())
    }

    /// `nominal-type ::= substitution | ('V' | 'O' | 'C' | 'P') context decl-name`
    pub(super) fn nominal_type(&mut self) -> Parsed {
        match self.cursor.next() {
            b'S' => self.substitution(),
            b'V' => self.declaration(Kind::Structure),
            b'O' => self.declaration(Kind::Enum),
            b'C' => self.declaration(Kind::Class),
            b'P' => self.declaration(Kind::Protocol),
            _ => None,
        }
    }

    /// `protocol-conformance ::= type protocol context`
    pub(super) fn protocol_conformance(&mut self) -> Parsed {
        let of = self.type_()?;
        let protocol = self.protocol_name()?;
        let context = self.context()?;
        Some(self.arena.node(Kind::ProtocolConformance, 0, &[of, protocol, context]))
    }
}
