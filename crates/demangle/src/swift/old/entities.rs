//! Contexts and entities.

use super::{Old, Parsed};
use crate::swift::accessor::Accessor;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;

/// What the name of an entity says that the entity is.
enum Named {
    /// Has no name, and no type either.
    Untyped(Kind),
    /// Has no name but a type.
    Typed(Kind),
    /// Has a number instead of a name.
    Numbered(Kind, u32),
    Accessor(Accessor),
    /// Has a name.
    Plain,
}

impl Old<'_, '_> {
    /// `context ::= module | entity | 'E' module context | 'e' module generic-signature context`
    pub(super) fn context(&mut self) -> Parsed {
        self.nested(|old| match old.cursor.peek() {
            letter @ (b'E' | b'e') => {
                old.cursor.next();
                old.extension(letter == b'e')
            }
            b'S' => {
                old.cursor.next();
                old.substitution()
            }
            b's' => {
                old.cursor.next();
                Some(old.swift_module())
            }
            b'G' => {
                old.cursor.next();
                old.bound_generic_type()
            }
            b'F' | b'I' | b'v' | b'P' | b'Z' | b'C' | b'V' | b'O' => old.entity(),
            _ => old.module(),
        })
    }

    fn extension(&mut self, has_signature: bool) -> Parsed {
        let module = self.module()?;
        let signature = if has_signature { Some(self.generic_signature()?) } else { None };
        let extended = self.context()?;
        Some(match signature {
            Some(signature) => self.arena.node(Kind::Extension, 0, &[module, extended, signature]),
            None => self.arena.node(Kind::Extension, 0, &[module, extended]),
        })
    }

    /// `entity ::= 'Z'? entity-kind context entity-name | nominal-type`
    pub(super) fn entity(&mut self) -> Parsed {
        self.nested(|old| {
            let is_static = old.cursor.eat(b'Z');
            let kind = match old.cursor.peek() {
                b'F' => Kind::Function,
                b'v' => Kind::Variable,
                b'I' => Kind::Initializer,
                b'i' => Kind::Subscript,
                _ => return old.nominal_type(),
            };
            old.cursor.next();
            let context = old.context()?;
            let entity = old.entity_in(kind, context)?;
            Some(if is_static { old.arena.node(Kind::Static, 0, &[entity]) } else { entity })
        })
    }

    fn entity_in(&mut self, kind: Kind, context: NodeRef) -> Parsed {
        match self.entity_name(kind)? {
            Named::Untyped(kind) => Some(self.arena.node(kind, 0, &[context])),
            Named::Typed(kind) => {
                let of = self.type_()?;
                Some(self.arena.node(kind, 0, &[context, of]))
            }
            Named::Numbered(kind @ Kind::DefaultArgumentInitializer, number) => {
                Some(self.arena.node(kind, number, &[context]))
            }
            Named::Numbered(kind, number) => {
                let of = self.type_()?;
                Some(self.arena.node(kind, number, &[context, of]))
            }
            Named::Accessor(accessor) => {
                let name = self.decl_name()?;
                let storage = self.storage(context, name)?;
                Some(self.arena.node(Kind::Accessor, accessor.pack(), &[storage]))
            }
            Named::Plain => {
                let name = self.decl_name()?;
                let of = self.type_()?;
                Some(self.arena.node(kind, 0, &[context, name, of]))
            }
        }
    }

    /// `entity-name`, as far as it is not a name.
    fn entity_name(&mut self, kind: Kind) -> Option<Named> {
        let letter = self.cursor.peek();
        let named = match letter {
            b'D' => Named::Untyped(Kind::Deallocator),
            b'Z' => Named::Untyped(Kind::IsolatedDeallocator),
            b'd' => Named::Untyped(Kind::Destructor),
            b'e' => Named::Untyped(Kind::IVarInitializer),
            b'E' => Named::Untyped(Kind::IVarDestroyer),
            b'C' => Named::Typed(Kind::Allocator),
            b'c' => Named::Typed(Kind::Constructor),
            b'U' | b'u' => {
                self.cursor.next();
                let kind = if letter == b'U' { Kind::ExplicitClosure } else { Kind::ImplicitClosure };
                return Some(Named::Numbered(kind, self.cursor.old_index()?));
            }
            b'a' => {
                self.cursor.next();
                Named::Accessor(Accessor::mutable_addressor(self.cursor.peek())?)
            }
            b'l' => {
                self.cursor.next();
                Named::Accessor(Accessor::addressor(self.cursor.peek())?)
            }
            b'g' | b'G' | b's' | b'm' | b'w' | b'W' | b'r' | b'M' => {
                Named::Accessor(Accessor::from_letter(letter)?)
            }
            b'A' if kind == Kind::Initializer => {
                self.cursor.next();
                return Some(Named::Numbered(Kind::DefaultArgumentInitializer, self.cursor.old_index()?));
            }
            b'i' if kind == Kind::Initializer => Named::Untyped(Kind::Initializer),
            _ if kind == Kind::Initializer => return None,
            _ => return Some(Named::Plain),
        };
        self.cursor.next();
        Some(named)
    }

    /// The variable behind an accessor; one that is called `subscript` is a subscript.
    fn storage(&mut self, context: NodeRef, name: NodeRef) -> Parsed {
        let is_subscript = |old: &Self, name: Option<NodeRef>| {
            name.is_some_and(|name| {
                old.arena.own_kind(name) == Kind::Identifier && old.arena.text(name) == "subscript"
            })
        };
        let of = self.type_()?;
        if is_subscript(self, Some(name)) {
            return Some(self.arena.node(Kind::Subscript, 0, &[context, of]));
        }
        if self.arena.own_kind(name) == Kind::PrivateDeclName && is_subscript(self, self.arena.child(name, 1))
        {
            let discriminator = self.arena.child(name, 0)?;
            let discriminator = self.arena.node(Kind::PrivateDeclName, 0, &[discriminator]);
            return Some(self.arena.node(Kind::Subscript, 0, &[context, of, discriminator]));
        }
        Some(self.arena.node(Kind::Variable, 0, &[context, name, of]))
    }
}
