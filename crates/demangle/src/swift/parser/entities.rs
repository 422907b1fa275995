//! Functions, variables, subscripts, initializers, closures.

use super::{Parsed, Parser};
use crate::swift::accessor::Accessor;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;

impl Parser<'_, '_> {
    /// `entity-spec ::= decl-name label-list function-signature generic-signature? 'F'`
    pub(super) fn plain_function(&mut self) -> Parsed {
        let signature = self.pop(Kind::GenericSignature);
        let mut function = self.function_type(super::functions::Convention::Swift)?;
        let labels = self.pop_labels(Some(function));
        if let Some(signature) = signature {
            function = self.arena.node(Kind::DependentGenericType, 0, &[signature, function]).as_type();
        }
        self.named_entity(Kind::Function, labels, function)
    }

    /// `entity-spec ::= decl-name label-list? type`, with the kind's own operator.
    pub(super) fn typed_entity(&mut self, kind: Kind) -> Parsed {
        let of = self.pop_type()?;
        let labels = self.pop_labels(Some(of));
        self.named_entity(kind, labels, of)
    }

    fn named_entity(&mut self, kind: Kind, labels: Parsed, of: NodeRef) -> Parsed {
        let name = self.pop_if(Kind::is_decl_name)?;
        let context = self.pop_context()?;
        if !self.can_show(labels, of) {
            return None;
        }
        Some(match labels {
            Some(labels) => self.arena.node(kind, 0, &[context, name, labels, of]),
            None => self.arena.node(kind, 0, &[context, name, of]),
        })
    }

    /// `entity-spec ::= decl-name label-list? type 'v' ACCESSOR`
    pub(super) fn variable(&mut self) -> Parsed {
        let variable = self.typed_entity(Kind::Variable)?;
        self.accessor(variable)
    }

    /// `entity-spec ::= label-list type file-discriminator? 'i' ACCESSOR`
    pub(super) fn subscript(&mut self) -> Parsed {
        let discriminator = self.pop(Kind::PrivateDeclName);
        let of = self.pop_type()?;
        let labels = self.pop_labels(Some(of));
        let context = self.pop_context()?;
        let subscript = self.unnamed_entity(Kind::Subscript, context, labels, of, discriminator)?;
        self.accessor(subscript)
    }

    fn unnamed_entity(
        &mut self,
        kind: Kind,
        context: NodeRef,
        labels: Parsed,
        of: NodeRef,
        discriminator: Parsed,
    ) -> Parsed {
        if !self.can_show(labels, of) {
            return None;
        }
        let start = self.list.len();
        self.list.push(context);
        self.list.extend(labels);
        self.list.push(of);
        self.list.extend(discriminator);
        Some(self.listed(kind, 0, start))
    }

    /// `ACCESSOR`; `p` means the storage itself.
    fn accessor(&mut self, storage: NodeRef) -> Parsed {
        let accessor = match self.cursor.next() {
            b'p' => return Some(storage),
            b'a' => Accessor::mutable_addressor(self.cursor.next())?,
            b'l' => Accessor::addressor(self.cursor.next())?,
            letter => Accessor::from_letter(letter)?,
        };
        Some(self.arena.node(Kind::Accessor, accessor.pack(), &[storage]))
    }

    /// `entity ::= context entity-spec 'Z'`
    pub(super) fn static_entity(&mut self) -> Parsed {
        let entity = self.pop_if(Kind::is_entity)?;
        Some(self.arena.node(Kind::Static, 0, &[entity]))
    }

    /// The operators that begin with `f`.
    pub(super) fn function_entity(&mut self) -> Parsed {
        match self.cursor.next() {
            b'D' => self.entity_in_context(Kind::Deallocator),
            b'd' => self.entity_in_context(Kind::Destructor),
            b'Z' => self.entity_in_context(Kind::IsolatedDeallocator),
            b'E' => self.entity_in_context(Kind::IVarDestroyer),
            b'e' => self.entity_in_context(Kind::IVarInitializer),
            b'i' => self.entity_in_context(Kind::Initializer),
            b'P' => self.entity_in_context(Kind::PropertyWrapperBackingInitializer),
            b'F' => self.entity_in_context(Kind::PropertyWrappedFieldInitAccessor),
            b'W' => self.entity_in_context(Kind::PropertyWrapperInitFromProjectedValue),
            b'C' => self.initializer(Kind::Allocator),
            b'c' => self.initializer(Kind::Constructor),
            b'U' => self.closure(Kind::ExplicitClosure),
            b'u' => self.closure(Kind::ImplicitClosure),
            b'A' => {
                let number = self.cursor.index()?;
                let context = self.pop_context()?;
                Some(self.arena.node(Kind::DefaultArgumentInitializer, number, &[context]))
            }
            b'm' => self.typed_entity(Kind::Macro),
            b'p' => self.typed_entity(Kind::GenericTypeParamDecl),
            b'M' => self.macro_expansion(),
            _ => None,
        }
    }

    fn entity_in_context(&mut self, kind: Kind) -> Parsed {
        let context = self.pop_context()?;
        Some(self.arena.node(kind, 0, &[context]))
    }

    /// `entity-spec ::= label-list type file-discriminator? 'fC'`
    fn initializer(&mut self, kind: Kind) -> Parsed {
        let discriminator = self.pop(Kind::PrivateDeclName);
        let of = self.pop_type()?;
        let labels = self.pop_labels(Some(of));
        let context = self.pop_context()?;
        self.unnamed_entity(kind, context, labels, of, discriminator)
    }

    /// `entity-spec ::= type 'fU' INDEX`
    fn closure(&mut self, kind: Kind) -> Parsed {
        let number = self.cursor.index()?;
        let of = self.pop_type()?;
        let context = self.pop_context()?;
        Some(self.arena.node(kind, number, &[context, of]))
    }
}
