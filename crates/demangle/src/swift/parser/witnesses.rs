//! The operators that begin with `W`: witness tables, field offsets, outlined operations, one-time initialization.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::phrase::Phrase;

impl Parser<'_, '_> {
    pub(super) fn witness(&mut self) -> Parsed {
        match self.cursor.next() {
            b'C' => self.phrase_of_entity(Phrase::EnumCase),
            b'V' => self.phrase_of_type(Phrase::ValueWitnessTable),
            b'v' => match self.cursor.next() {
                b'd' => self.phrase_of_entity(Phrase::DirectFieldOffset),
                b'i' => self.phrase_of_entity(Phrase::IndirectFieldOffset),
                _ => None,
            },
            b'S' => self.phrase_of_protocol(Phrase::SelfConformanceTable),
            b'P' => self.phrase_of_conformance(Phrase::WitnessTable),
            b'p' => self.phrase_of_conformance(Phrase::WitnessTablePattern),
            b'G' => self.phrase_of_conformance(Phrase::GenericWitnessTable),
            b'I' => self.phrase_of_conformance(Phrase::GenericWitnessTableInstantiation),
            b'r' => self.phrase_of_conformance(Phrase::ResilientWitnessTable),
            b'a' => self.phrase_of_conformance(Phrase::WitnessTableAccessor),
            b'l' => self.lazy_table(Phrase::LazyWitnessTableAccessor),
            b'L' => self.lazy_table(Phrase::LazyWitnessTableCache),
            b't' => {
                let name = self.pop_if(Kind::is_decl_name)?;
                self.of_conformance(Phrase::AssociatedMetadataAccessor, &[name])
            }
            b'T' => {
                let protocol = self.pop_type()?;
                let path = self.pop_associated_type_path()?;
                self.of_conformance(Phrase::AssociatedWitnessAccessor, &[path, protocol])
            }
            b'b' => {
                let protocol = self.pop_type()?;
                self.of_conformance(Phrase::BaseWitnessAccessor, &[protocol])
            }
            b'O' => self.outlined(),
            b'Z' => self.once(Kind::OnceFunction),
            b'z' => self.once(Kind::OnceToken),
            b'J' => self.differentiability_witness(),
            _ => None,
        }
    }

    fn lazy_table(&mut self, phrase: Phrase) -> Parsed {
        let conformance = self.pop_protocol_conformance()?;
        let of = self.pop_type()?;
        Some(self.phrase(phrase, &[of, conformance]))
    }

    /// A phrase whose first child is a conformance, before which the other children stood on the stack.
    fn of_conformance(&mut self, phrase: Phrase, others: &[NodeRef]) -> Parsed {
        let conformance = self.pop_protocol_conformance()?;
        let start = self.list.len();
        self.list.push(conformance);
        self.list.extend_from_slice(others);
        Some(self.listed(Kind::Phrase, phrase.pack(), start))
    }

    /// `global ::= generic-signature? type 'WO' letter`
    fn outlined(&mut self) -> Parsed {
        let letter = self.cursor.next();
        let phrase = match letter {
            b'y' => Phrase::OutlinedCopy,
            b'e' => Phrase::OutlinedConsume,
            b'r' => Phrase::OutlinedRetain,
            b's' => Phrase::OutlinedRelease,
            b'b' | b'B' => Phrase::OutlinedInitWithTake,
            b'c' | b'C' => Phrase::OutlinedInitWithCopy,
            b'd' | b'D' => Phrase::OutlinedAssignWithTake,
            b'f' | b'F' => Phrase::OutlinedAssignWithCopy,
            b'h' | b'H' => Phrase::OutlinedDestroy,
            b'g' => Phrase::OutlinedEnumGetTag,
            b'i' => Phrase::OutlinedEnumTagStore,
            b'j' => Phrase::OutlinedEnumProject,
            _ => return None,
        };
        if matches!(letter, b'i' | b'j') {
            self.cursor.index()?; // which case it is is not shown
        }
        let signature = self.pop(Kind::GenericSignature);
        let of = self.pop_type()?;
        Some(match signature {
            Some(signature) => self.phrase(phrase, &[of, signature]),
            None => self.phrase(phrase, &[of]),
        })
    }

    /// `global ::= context (decl-name '_')+ 'WZ'`
    fn once(&mut self, kind: Kind) -> Parsed {
        let start = self.list.len();
        while self.pop(Kind::FirstElementMarker).is_some() {
            let name = self.pop_if(Kind::is_decl_name)?;
            self.list.push(name);
        }
        if self.list.len() == start {
            return None;
        }
        let context = self.pop_context()?;
        self.list.push(context);
        self.list.get_mut(start..)?.reverse();
        Some(self.listed(kind, 0, start))
    }
}
