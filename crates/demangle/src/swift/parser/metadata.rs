//! The operators that begin with `M`: type metadata and descriptors.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::phrase::Phrase;

/// What an operator takes from the stack.
#[derive(Clone, Copy)]
enum Operand {
    Type,
    Any,
    Protocol,
    Conformance,
    Entity,
}

/// The operators with one operand.
fn operator(letter: u8) -> Option<(Operand, Phrase)> {
    use Operand::{Any, Conformance, Entity, Protocol, Type};
    Some(match letter {
        b'a' => (Type, Phrase::MetadataAccessor),
        b'A' => (Conformance, Phrase::ReflectionAssociatedTypes),
        b'b' => (Type, Phrase::CanonicalAccessor),
        b'B' => (Type, Phrase::ReflectionBuiltin),
        b'c' => (Conformance, Phrase::ConformanceDescriptor),
        // Swift 6.3 writes `Md` and, for the constant part, `MR`; both are seen in Expo's dSYMs and in no document.
        b'D' | b'd' => (Type, Phrase::DemanglingCache),
        b'R' => (Type, Phrase::DemanglingReference),
        b'f' => (Type, Phrase::FullTypeMetadata),
        b'F' => (Type, Phrase::ReflectionFields),
        b'g' => (Any, Phrase::OpaqueAccessor),
        b'h' => (Any, Phrase::OpaqueAccessorImpl),
        b'i' => (Type, Phrase::InstantiationFunction),
        b'I' => (Type, Phrase::InstantiationCache),
        b'j' => (Any, Phrase::OpaqueAccessorKey),
        b'J' => (Any, Phrase::NoncanonicalCache),
        b'k' => (Any, Phrase::OpaqueAccessorVar),
        b'K' => (Any, Phrase::AnyInstantiationCache),
        b'l' => (Type, Phrase::SingletonCache),
        b'L' => (Type, Phrase::LazyCache),
        b'm' => (Type, Phrase::Metaclass),
        b'M' => (Type, Phrase::CanonicalMetaclass),
        b'n' => (Type, Phrase::NominalDescriptor),
        b'N' => (Type, Phrase::NoncanonicalMetadata),
        b'o' => (Type, Phrase::ClassMetadataBaseOffset),
        b'p' => (Protocol, Phrase::ProtocolDescriptor),
        b'P' => (Type, Phrase::MetadataPattern),
        b'q' => (Any, Phrase::Uniquable),
        b'Q' => (Any, Phrase::OpaqueDescriptor),
        b'r' => (Type, Phrase::CompletionFunction),
        b's' => (Type, Phrase::ObjCResilientStub),
        b'S' => (Protocol, Phrase::SelfConformanceDescriptor),
        b't' => (Type, Phrase::FullObjCResilientStub),
        b'u' => (Type, Phrase::MethodLookup),
        b'U' => (Type, Phrase::ObjCMetadataUpdate),
        b'V' => (Entity, Phrase::PropertyDescriptor),
        b'z' => (Type, Phrase::CanonicalOnceToken),
        _ => return None,
    })
}

impl Parser<'_, '_> {
    pub(super) fn metadata(&mut self) -> Parsed {
        let letter = self.cursor.next();
        if let Some((operand, phrase)) = operator(letter) {
            return match operand {
                Operand::Type => self.phrase_of_type(phrase),
                Operand::Protocol => self.phrase_of_protocol(phrase),
                Operand::Conformance => self.phrase_of_conformance(phrase),
                Operand::Entity => self.phrase_of_entity(phrase),
                Operand::Any => {
                    let of = self.pop_any();
                    self.phrase_of(phrase, of)
                }
            };
        }
        match letter {
            b'C' => {
                let class = self.pop_type()?.bare();
                let is_generic = self.arena.own_kind(class).is_any_generic();
                self.phrase_of(Phrase::ReflectionSuperclass, is_generic.then_some(class))
            }
            b'X' => self.context_descriptor(),
            _ => None,
        }
    }

    /// The descriptors of contexts that have no name of their own.
    fn context_descriptor(&mut self) -> Parsed {
        match self.cursor.next() {
            b'E' => {
                let extension = self.pop_context();
                self.phrase_of(Phrase::ExtensionDescriptor, extension)
            }
            b'M' => {
                let module = self.pop_module();
                self.phrase_of(Phrase::ModuleDescriptor, module)
            }
            b'Y' => {
                self.pop_any()?; // the discriminator is not shown
                let context = self.pop_context();
                self.phrase_of(Phrase::AnonymousDescriptor, context)
            }
            b'X' => {
                let context = self.pop_context();
                self.phrase_of(Phrase::AnonymousDescriptor, context)
            }
            b'A' => {
                let path = self.pop_associated_type_path()?;
                let base = self.pop_type()?;
                Some(self.phrase(Phrase::AssociatedTypeParam, &[base, path]))
            }
            _ => None,
        }
    }

    /// `global ::= type 'w' VALUE-WITNESS-KIND`
    pub(super) fn value_witness(&mut self) -> Parsed {
        let letters = u32::from(self.cursor.next()) << 8 | u32::from(self.cursor.next());
        crate::swift::value_witness::name(letters)?;
        let of = self.pop_type()?;
        Some(self.arena.node(Kind::ValueWitness, letters, &[of]))
    }
}
