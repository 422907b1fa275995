//! Protocol conformances: of types, and the access paths to them at run time.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::phrase::Phrase;

impl Parser<'_, '_> {
    /// `protocol-conformance ::= type protocol module generic-signature?`
    pub(super) fn pop_protocol_conformance(&mut self) -> Parsed {
        let signature = self.pop(Kind::GenericSignature);
        let module = self.pop_module()?;
        let protocol = self.pop_protocol()?;
        let mut conforming = self.pop_type();
        let mut behavior = None;
        if conforming.is_none() {
            behavior = self.pop(Kind::Identifier);
            conforming = self.pop_type();
        }
        let mut conforming = conforming?;
        if let Some(signature) = signature {
            conforming = self.arena.node(Kind::DependentGenericType, 0, &[signature, conforming]).as_type();
        }
        Some(match behavior {
            Some(behavior) => {
                let children = [conforming, protocol, module, behavior];
                self.arena.node(Kind::BehaviorConformance, 0, &children)
            }
            None => self.arena.node(Kind::ProtocolConformance, 0, &[conforming, protocol, module]),
        })
    }

    /// The operators that begin with `H`.
    pub(super) fn conformance_operator(&mut self) -> Parsed {
        match self.cursor.next() {
            b'A' => self.associated_conformance(),
            b'C' => self.concrete_conformance(),
            b'D' => self.root_conformance(),
            b'I' => self.inherited_conformance(),
            b'O' => self.opaque_conformance(),
            b'P' => self.conformance_ref(Phrase::ConformanceInTypeModule),
            b'p' => self.conformance_ref(Phrase::ConformanceInProtocolModule),
            b'X' => self.pack_conformance(),
            b'c' => self.phrase_of_conformance(Phrase::ConformanceRecord),
            b'n' => self.phrase_of_type(Phrase::NominalRecord),
            b'o' => {
                let of = self.pop_any();
                self.phrase_of(Phrase::OpaqueRecord, of)
            }
            b'r' => self.phrase_of_protocol(Phrase::ProtocolRecord),
            b'F' => self.attribute(Phrase::AccessibleFunction),
            _ => None,
        }
    }

    /// `protocol-conformance-ref ::= protocol 'HP'`
    fn conformance_ref(&mut self, phrase: Phrase) -> Parsed {
        let protocol = self.pop_protocol()?;
        Some(self.arena.node(Kind::ConformanceRef, phrase.pack(), &[protocol]))
    }

    /// `any-protocol-conformance-list`
    fn pop_conformance_list(&mut self) -> Parsed {
        let start = self.pop_list(|parser| parser.pop_if(Kind::is_conformance))?;
        Some(self.listed(Kind::ConformanceList, 0, start))
    }

    /// `concrete-protocol-conformance ::= type protocol-conformance-ref any-protocol-conformance-list 'HC'`
    fn concrete_conformance(&mut self) -> Parsed {
        let conditional = self.pop_conformance_list()?;
        let reference = match self.pop(Kind::ConformanceRef) {
            Some(reference) => reference,
            None => {
                let module = self.pop_module()?;
                let protocol = self.pop_protocol()?;
                let phrase = Phrase::ConformanceInOtherModule.pack();
                self.arena.node(Kind::ConformanceRef, phrase, &[protocol, module])
            }
        };
        let conforming = self.pop_type()?;
        Some(self.arena.node(Kind::ConcreteConformance, 0, &[conforming, reference, conditional]))
    }

    fn pack_conformance(&mut self) -> Parsed {
        let list = self.pop_conformance_list()?;
        Some(self.arena.node(Kind::PackConformance, 0, &[list]))
    }

    /// `DEPENDENT-CONFORMANCE-INDEX`: 0 is reserved, 1 means unknown, all others are two too large.
    fn conformance_index(&mut self) -> Parsed {
        let index = self.cursor.index()?.checked_sub(1)?;
        // Kept as 0 for unknown, else one too large.
        Some(self.arena.leaf(Kind::Number, index))
    }

    /// `dependent-protocol-conformance ::= type protocol 'HD' DEPENDENT-CONFORMANCE-INDEX`
    fn root_conformance(&mut self) -> Parsed {
        let index = self.conformance_index()?;
        let protocol = self.pop_protocol()?;
        let dependent = self.pop_type()?;
        let phrase = Phrase::DependentRoot.pack();
        Some(self.arena.node(Kind::DependentConformance, phrase, &[dependent, protocol, index]))
    }

    /// `dependent-protocol-conformance ::= dependent-protocol-conformance protocol 'HI' DEPENDENT-CONFORMANCE-INDEX`
    fn inherited_conformance(&mut self) -> Parsed {
        let index = self.conformance_index()?;
        let protocol = self.pop_protocol()?;
        let nested = self.pop(Kind::DependentConformance)?;
        let phrase = Phrase::DependentInherited.pack();
        Some(self.arena.node(Kind::DependentConformance, phrase, &[nested, protocol, index]))
    }

    /// `dependent-protocol-conformance ::= dependent-protocol-conformance dependent-associated-conformance 'HA' INDEX`
    fn associated_conformance(&mut self) -> Parsed {
        let index = self.conformance_index()?;
        let protocol = self.pop_protocol()?;
        let dependent = self.pop_type()?;
        let path = self.phrase(Phrase::AssociatedPath, &[dependent, protocol]);
        let nested = self.pop(Kind::DependentConformance)?;
        let phrase = Phrase::DependentAssociated.pack();
        Some(self.arena.node(Kind::DependentConformance, phrase, &[nested, path, index]))
    }

    /// `dependent-protocol-conformance ::= dependent-protocol-conformance type 'HO'`
    fn opaque_conformance(&mut self) -> Parsed {
        let of = self.pop_type()?;
        let conformance = self.pop(Kind::DependentConformance)?;
        Some(self.arena.node(Kind::OpaqueConformance, 0, &[conformance, of]))
    }

    /// `retroactive-conformance ::= any-protocol-conformance 'g' INDEX`
    pub(super) fn retroactive_conformance(&mut self) -> Parsed {
        let index = self.cursor.index()?;
        let conformance = self.pop_if(Kind::is_conformance)?;
        Some(self.arena.node(Kind::RetroactiveConformance, index, &[conformance]))
    }
}
