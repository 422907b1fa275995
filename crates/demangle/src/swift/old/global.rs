//! What a whole name can be.

use super::{Old, Parsed};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::phrase::Phrase;
use crate::swift::value_witness;

impl Old<'_, '_> {
    pub(super) fn global(&mut self) -> Parsed {
        self.nested(|old| match old.cursor.peek() {
            b'M' => {
                old.cursor.next();
                old.metadata()
            }
            b'P' if old.cursor.eat_str("PA") => old.partial_apply(),
            b't' => {
                old.cursor.next();
                let of = old.type_()?;
                Some(old.arena.node(Kind::TypeMangling, 0, &[of]))
            }
            b'w' => {
                old.cursor.next();
                let letters = u32::from(old.cursor.next()) << 8 | u32::from(old.cursor.next());
                value_witness::name(letters)?;
                let of = old.type_()?;
                Some(old.arena.node(Kind::ValueWitness, letters, &[of]))
            }
            b'W' => {
                old.cursor.next();
                old.witness()
            }
            b'T' => {
                old.cursor.next();
                old.thunk()
            }
            _ => old.entity(),
        })
    }

    pub(super) fn phrase(&mut self, phrase: Phrase, children: &[NodeRef]) -> Parsed {
        Some(self.arena.node(Kind::Phrase, phrase.pack(), children))
    }

    fn phrase_of_type(&mut self, phrase: Phrase) -> Parsed {
        let of = self.type_()?;
        self.phrase(phrase, &[of])
    }

    fn phrase_of_conformance(&mut self, phrase: Phrase) -> Parsed {
        let of = self.protocol_conformance()?;
        self.phrase(phrase, &[of])
    }

    fn metadata(&mut self) -> Parsed {
        let phrase = match self.cursor.peek() {
            b'P' => Phrase::MetadataPattern,
            b'a' => Phrase::MetadataAccessor,
            b'L' => Phrase::LazyCache,
            b'm' => Phrase::Metaclass,
            b'n' => Phrase::NominalDescriptor,
            b'f' => Phrase::FullTypeMetadata,
            b'p' => {
                self.cursor.next();
                let protocol = self.protocol_name()?;
                return self.phrase(Phrase::ProtocolDescriptor, &[protocol]);
            }
            b'R' => return self.reflection(),
            _ => return self.phrase_of_type(Phrase::TypeMetadata),
        };
        self.cursor.next();
        self.phrase_of_type(phrase)
    }

    /// `global ::= 'MR' remote-reflection-record`; `s` is in no document but in CrashProbe's dSYMs.
    fn reflection(&mut self) -> Parsed {
        self.cursor.next();
        match self.cursor.next() {
            b'f' => self.phrase_of_type(Phrase::ReflectionFields),
            b'b' => self.phrase_of_type(Phrase::ReflectionBuiltin),
            b's' => self.phrase_of_type(Phrase::ReflectionSuperclass),
            b'a' => self.phrase_of_conformance(Phrase::ReflectionAssociatedTypes),
            _ => None,
        }
    }

    fn partial_apply(&mut self) -> Parsed {
        let is_objc = u32::from(self.cursor.eat(b'o'));
        if !self.cursor.eat_str("__T") {
            return Some(self.arena.leaf(Kind::PartialApply, is_objc));
        }
        let of = self.global()?;
        Some(self.arena.node(Kind::PartialApply, is_objc, &[of]))
    }

    /// Field offsets and witness tables.
    fn witness(&mut self) -> Parsed {
        match self.cursor.next() {
            b'V' => self.phrase_of_type(Phrase::ValueWitnessTable),
            b'v' => {
                let phrase = match self.cursor.next() {
                    b'd' => Phrase::DirectFieldOffset,
                    b'i' => Phrase::IndirectFieldOffset,
                    _ => return None,
                };
                let of = self.entity()?;
                self.phrase(phrase, &[of])
            }
            b'o' => {
                let of = self.entity()?;
                self.phrase(Phrase::WitnessTableOffset, &[of])
            }
            b'P' => self.phrase_of_conformance(Phrase::WitnessTable),
            b'G' => self.phrase_of_conformance(Phrase::GenericWitnessTable),
            b'I' => self.phrase_of_conformance(Phrase::GenericWitnessTableInstantiation),
            b'a' => self.phrase_of_conformance(Phrase::WitnessTableAccessor),
            b'l' => self.lazy_table(Phrase::LazyWitnessTableAccessor),
            b'L' => self.lazy_table(Phrase::LazyWitnessTableCache),
            b't' => {
                let conformance = self.protocol_conformance()?;
                let name = self.decl_name()?;
                self.phrase(Phrase::AssociatedMetadataAccessor, &[conformance, name])
            }
            b'T' => {
                let conformance = self.protocol_conformance()?;
                let name = self.decl_name()?;
                let protocol = self.protocol_name()?;
                self.phrase(Phrase::AssociatedWitnessAccessor, &[conformance, name, protocol])
            }
            _ => None,
        }
    }

    fn lazy_table(&mut self, phrase: Phrase) -> Parsed {
        let of = self.type_()?;
        let conformance = self.protocol_conformance()?;
        self.phrase(phrase, &[of, conformance])
    }

    fn thunk(&mut self) -> Parsed {
        match self.cursor.next() {
            letter @ (b'R' | b'r') => {
                let signature = if self.cursor.eat(b'G') { Some(self.generic_signature()?) } else { None };
                let from = self.type_()?;
                let to = self.type_()?;
                let letter = u32::from(letter);
                Some(match signature {
                    Some(signature) => {
                        self.arena.node(Kind::ReabstractionThunk, letter, &[signature, from, to])
                    }
                    None => self.arena.node(Kind::ReabstractionThunk, letter, &[from, to]),
                })
            }
            b'W' => {
                let conformance = self.protocol_conformance()?;
                let entity = self.entity()?;
                self.phrase(Phrase::ProtocolWitness, &[conformance, entity])
            }
            _ => None,
        }
    }
}
