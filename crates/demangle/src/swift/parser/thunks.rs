//! The operators that begin with `T`: thunks, attributes of functions, descriptors of requirements.

use super::{Parsed, Parser};
use crate::swift::key_path;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::phrase::Phrase;

/// The attributes that are a single letter.
fn attribute(letter: u8) -> Option<Phrase> {
    Some(match letter {
        b'o' => Phrase::ObjC,
        b'O' => Phrase::NonObjC,
        b'D' => Phrase::Dynamic,
        b'd' => Phrase::DirectMethod,
        b'E' => Phrase::DistributedThunk,
        b'F' => Phrase::DistributedAccessor,
        b'm' => Phrase::Merged,
        b'X' => Phrase::ReplaceableVar,
        b'x' => Phrase::ReplaceableKey,
        b'I' => Phrase::ReplaceableImpl,
        b'u' => Phrase::AsyncFunctionPointer,
        _ => return None,
    })
}

impl Parser<'_, '_> {
    pub(super) fn thunk_or_specialization(&mut self) -> Parsed {
        let letter = self.cursor.next();
        if let Some(phrase) = attribute(letter) {
            return self.attribute(phrase);
        }
        match letter {
            b'A' => Some(self.arena.leaf(Kind::PartialApply, 0)),
            b'a' => Some(self.arena.leaf(Kind::PartialApply, 1)),
            b'Q' => self.resume(Kind::AsyncAwaitResume),
            b'Y' => self.resume(Kind::AsyncSuspendResume),
            b'w' => self.later_attribute(),
            b'v' => self.outlined_variable(),
            b'e' => self.outlined_bridged_method(),
            b'c' => self.phrase_of_entity(Phrase::CurryThunk),
            b'j' => self.phrase_of_entity(Phrase::DispatchThunk),
            b'q' => self.phrase_of_entity(Phrase::MethodDescriptor),
            b'S' => self.phrase_of_entity(Phrase::SelfConformanceWitness),
            b'C' => self.phrase_of_type(Phrase::CoroutinePrototype),
            b'T' if self.cursor.eat(b'I') => self.phrase_of_entity(Phrase::IdentityThunk),
            b'V' => {
                let base = self.pop_if(Kind::is_entity)?;
                let derived = self.pop_if(Kind::is_entity)?;
                Some(self.phrase(Phrase::VTableThunk, &[derived, base]))
            }
            b'W' => {
                let entity = self.pop_if(Kind::is_entity)?;
                let conformance = self.pop_protocol_conformance()?;
                Some(self.phrase(Phrase::ProtocolWitness, &[conformance, entity]))
            }
            b'R' | b'r' | b'y' => self.reabstraction_thunk(letter),
            b'U' => {
                let actor = self.pop_type()?;
                let thunk = self.pop_any()?;
                Some(self.phrase(Phrase::ThunkWithGlobalActor, &[thunk, actor]))
            }
            b'z' | b'Z' => self.completion_handler(letter),
            b'K' | b'k' => self.key_path_thunk(letter),
            b'H' => self.key_path_index_thunk(key_path::EQUALS),
            b'h' => self.key_path_index_thunk(key_path::HASH),
            b'J' => self.auto_diff(),
            _ if is_specialization(letter) => self.specialization(letter),
            _ => self.requirement_descriptor(letter),
        }
    }

    /// `'TQ' INDEX`, `'TY' INDEX`
    fn resume(&mut self, kind: Kind) -> Parsed {
        let number = self.cursor.index()?;
        Some(self.arena.leaf(kind, number))
    }

    /// The attributes that begin with `Tw`.
    fn later_attribute(&mut self) -> Parsed {
        let phrase = match self.cursor.next() {
            b'b' => Phrase::BackDeploymentThunk,
            b'B' => Phrase::BackDeploymentFallback,
            b'c' => Phrase::CoroFunctionPointer,
            b'd' => Phrase::DefaultOverride,
            b'S' => Phrase::HasSymbolQuery,
            _ => return None,
        };
        self.attribute(phrase)
    }

    /// `entity-spec ::= 'Tv' INDEX 'r'?`
    fn outlined_variable(&mut self) -> Parsed {
        let number = self.cursor.index()?;
        let kind = if self.cursor.eat(b'r') { Kind::OutlinedReadOnlyObject } else { Kind::OutlinedVariable };
        Some(self.arena.leaf(kind, number))
    }

    /// `bridge-spec ::= bridged-kind bridged-param* bridged-return '_'`; shown as it is.
    fn outlined_bridged_method(&mut self) -> Parsed {
        let start = self.cursor.at();
        if !matches!(self.cursor.next(), b'o' | b'p' | b'a' | b'm') {
            return None;
        }
        let len = 1 + self.cursor.skip_while(|letter| matches!(letter, b'n' | b'b' | b'g'));
        let is_finished = self.cursor.eat(b'_');
        is_finished.then(|| self.arena.text_node(Kind::OutlinedBridgedMethod, start, len))
    }

    /// `global ::= type type generic-signature? 'TR'`; with a dynamic `Self` there is a type more.
    fn reabstraction_thunk(&mut self, letter: u8) -> Parsed {
        let start = self.list.len();
        let signature = self.pop(Kind::GenericSignature);
        self.list.extend(signature);
        for _ in 0..if letter == b'y' { 3 } else { 2 } {
            let of = self.pop_type()?;
            self.list.push(of);
        }
        Some(self.listed(Kind::ReabstractionThunk, u32::from(letter), start))
    }

    /// `global ::= impl-function-type type generic-signature? 'Tz' INDEX`
    fn completion_handler(&mut self, letter: u8) -> Parsed {
        let flag = self.cursor.index()?;
        let signature = self.pop(Kind::GenericSignature);
        let result = self.pop_type()?;
        let block = self.pop_type()?;
        let start = self.list.len();
        self.list.extend([block, result]);
        self.list.extend(signature);
        Some(self.listed(Kind::CompletionHandler, (flag.min(3) << 8) | u32::from(letter), start))
    }

    /// `global ::= entity generic-signature? type type* 'TK'`
    fn key_path_thunk(&mut self, letter: u8) -> Parsed {
        let mut bits = if self.cursor.eat_str("mu") {
            key_path::UNAPPLIED_METHOD
        } else if self.cursor.eat_str("MA") {
            key_path::APPLIED_METHOD
        } else if letter == b'K' {
            key_path::GETTER
        } else {
            key_path::SETTER
        };
        if self.cursor.eat(b'q') {
            bits |= key_path::SERIALIZED;
        }
        let types = self.pop_run(Kind::TypeList, 0, |kind| kind == Kind::Type);
        if self.arena.children(types).is_empty() {
            return None;
        }
        let signature = self.pop(Kind::GenericSignature);
        let entity = self.pop_any()?;
        let start = self.list.len();
        self.list.push(entity);
        self.list.extend(signature);
        self.list.extend_from_slice(self.arena.children(types));
        Some(self.listed(Kind::KeyPathThunk, bits, start))
    }

    /// `global ::= type* generic-signature? 'TH'`: takes all that is there.
    fn key_path_index_thunk(&mut self, mut bits: u32) -> Parsed {
        if self.cursor.eat(b'q') {
            bits |= key_path::SERIALIZED;
        }
        let signature = self.pop(Kind::GenericSignature);
        let are_types = self.stack.iter().all(|node| node.is_type());
        if !are_types || (signature.is_none() && self.stack.is_empty()) {
            return None;
        }
        let start = self.list.len();
        self.list.extend(signature);
        self.list.append(self.stack);
        Some(self.listed(Kind::KeyPathIndexThunk, bits, start))
    }

    /// The descriptors of what a protocol requires.
    fn requirement_descriptor(&mut self, letter: u8) -> Parsed {
        match letter {
            b'l' => {
                let name = self.pop_associated_type_name();
                self.phrase_of(Phrase::AssociatedTypeDescriptor, name)
            }
            b'M' => {
                let name = self.pop_associated_type_name();
                self.phrase_of(Phrase::DefaultAssociatedMetadataAccessor, name)
            }
            b'L' => self.phrase_of_protocol(Phrase::RequirementsBase),
            b'n' => self.associated_conformance_descriptor(Phrase::AssociatedConformance),
            b'N' => self.associated_conformance_descriptor(Phrase::DefaultAssociatedConformance),
            b'b' => {
                let requirement = self.pop_protocol()?;
                let protocol = self.pop_type()?;
                Some(self.phrase(Phrase::BaseConformance, &[protocol, requirement]))
            }
            _ => None,
        }
    }

    fn associated_conformance_descriptor(&mut self, phrase: Phrase) -> Parsed {
        let requirement = self.pop_protocol()?;
        let subject = self.pop_subject()?;
        let protocol = self.pop_type()?;
        Some(self.phrase(phrase, &[protocol, subject, requirement]))
    }

    /// A generic parameter, or a path of associated types.
    fn pop_subject(&mut self) -> Option<NodeRef> {
        match self.stack.last() {
            Some(&top) if top.is_type() && self.arena.own_kind(top) == Kind::GenericParam => self.pop_any(),
            _ => self.pop_associated_type_path(),
        }
    }
}

fn is_specialization(letter: u8) -> bool {
    matches!(letter, b'g' | b'G' | b'B' | b't' | b's' | b'i' | b'p' | b'P' | b'f')
}
