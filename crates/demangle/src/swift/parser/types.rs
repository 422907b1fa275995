//! Types: built-in ones, metatypes, existentials, boxes, packs, sugar, and the words that stand before a type.

use super::functions::Convention;
use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::phrase::Phrase;

/// The largest built-in type that is believed, in bits or elements.
const MAX_BUILTIN_SIZE: u32 = 4096;

impl Parser<'_, '_> {
    /// `type ::= 'B' …`
    pub(super) fn builtin_type(&mut self) -> Parsed {
        let letter = self.cursor.next();
        let builtin = match letter {
            b'A' | b'B' | b'D' | b'I' | b'O' | b'P' | b'b' | b'c' | b'd' | b'e' | b'j' | b'o' | b'p'
            | b't' | b'w' => self.arena.leaf(Kind::Builtin, u32::from(letter)),
            b'T' => self.arena.leaf(Kind::TheTupleType, 0),
            b'f' | b'i' => {
                let size = self.builtin_size()?;
                self.arena.leaf(Kind::BuiltinSized, (size << 8) | u32::from(letter))
            }
            b'v' => {
                let count = self.builtin_size()?;
                let element = self.pop_type()?.bare();
                let kind = self.arena.own_kind(element);
                if !matches!(kind, Kind::Builtin | Kind::BuiltinSized | Kind::BuiltinVector) {
                    return None;
                }
                self.arena.node(Kind::BuiltinVector, count, &[element])
            }
            b'V' => {
                let element = self.pop_type()?;
                let size = self.pop_type()?;
                self.simple(Phrase::FixedArray, &[size, element])
            }
            b'W' => {
                let referent = self.pop_type()?;
                self.simple(Phrase::Borrow, &[referent])
            }
            _ => return None,
        };
        Some(builtin.as_type())
    }

    fn builtin_size(&mut self) -> Option<u32> {
        let size = self.cursor.index()?.checked_sub(1)?;
        (1..=MAX_BUILTIN_SIZE).contains(&size).then_some(size)
    }

    fn simple(&mut self, phrase: Phrase, children: &[NodeRef]) -> NodeRef {
        self.arena.node(Kind::Simple, phrase.pack(), children)
    }

    fn simple_type(&mut self, phrase: Phrase) -> Parsed {
        let of = self.pop_type()?;
        Some(self.simple(phrase, &[of]).as_type())
    }

    /// A type with one type within.
    pub(super) fn type_of_type(&mut self, kind: Kind, extra: u32) -> Parsed {
        let of = self.pop_type()?;
        Some(self.arena.node(kind, extra, &[of]).as_type())
    }

    /// A type with a word before it.
    pub(super) fn qualified(&mut self, phrase: Phrase) -> Parsed {
        self.type_of_type(Kind::Qualified, phrase.pack())
    }

    pub(super) fn inout(&mut self) -> Parsed {
        self.type_of_type(Kind::InOut, 0)
    }

    /// The operators that begin with `Y`: what a function or a parameter is besides its type.
    pub(super) fn type_annotation(&mut self) -> Parsed {
        match self.cursor.next() {
            b'a' => Some(self.mark(Kind::Async)),
            b'A' => Some(self.mark(Kind::IsolatedAny)),
            b'b' => Some(self.mark(Kind::Sendable)),
            b'C' => Some(self.mark(Kind::NonIsolatedCaller)),
            b'T' => Some(self.mark(Kind::SendingResult)),
            b'c' => {
                let actor = self.pop_type()?;
                Some(self.arena.node(Kind::GlobalActor, 0, &[actor]))
            }
            b'K' => {
                let error = self.pop_type()?;
                Some(self.arena.node(Kind::TypedThrows, 0, &[error]))
            }
            b'j' => {
                let kind = self.differentiability_kind()?;
                Some(self.arena.leaf(Kind::Differentiable, kind))
            }
            b'i' => self.qualified(Phrase::Isolated),
            b'k' => self.qualified(Phrase::NoDerivative),
            b't' => self.qualified(Phrase::CompileTimeLiteral),
            b'g' => self.qualified(Phrase::ConstValue),
            b'u' => self.qualified(Phrase::Sending),
            _ => None,
        }
    }

    /// The operators that begin with `X`.
    pub(super) fn special_type(&mut self) -> Parsed {
        match self.cursor.next() {
            b'E' => self.function_type(Convention::NoEscape),
            b'A' => self.function_type(Convention::EscapingAutoClosure),
            b'f' => self.function_type(Convention::Thin),
            b'K' => self.function_type(Convention::AutoClosure),
            b'U' => self.function_type(Convention::Uncurried),
            b'L' => self.function_type(Convention::EscapingObjCBlock),
            b'B' => self.function_type(Convention::ObjCBlock),
            b'C' => self.function_type(Convention::CPointer),
            b'O' => self.function_type(Convention::CalledOnce),
            b'z' => match self.cursor.next() {
                b'B' => self.function_type_with_c_type(Convention::ObjCBlock),
                b'C' => self.function_type_with_c_type(Convention::CPointer),
                _ => None,
            },
            b'y' => self.yields(),
            b'g' => self.existential_shape(false),
            b'G' => self.existential_shape(true),
            b'o' => self.qualified(Phrase::Unowned),
            b'u' => self.qualified(Phrase::Unmanaged),
            b'w' => self.qualified(Phrase::Weak),
            b'b' => self.type_of_type(Kind::SilBox, 0),
            b'x' => self.box_with_layout(false),
            b'X' => self.box_with_layout(true),
            b'D' => self.type_of_type(Kind::DynamicSelf, 0),
            b'M' => self.represented_metatype(Kind::Metatype),
            b'm' => self.represented_metatype(Kind::ExistentialMetatype),
            b'p' => self.type_of_type(Kind::ExistentialMetatype, 0),
            b'P' => self.constrained_existential(),
            b'c' => {
                let superclass = self.pop_type()?;
                self.protocol_list(Kind::ProtocolListWithClass, Some(superclass))
            }
            b'l' => self.protocol_list(Kind::ProtocolListWithAnyObject, None),
            b'Y' => self.nominal(Kind::OtherNominalType),
            b'Z' => self.anonymous_context(),
            b'e' => Some(self.mark(Kind::ErrorType).as_type()),
            b'S' => self.sugared_type(),
            _ => None,
        }
    }

    /// `METATYPE-REPR`
    fn represented_metatype(&mut self, kind: Kind) -> Parsed {
        let letter = self.cursor.next();
        if !matches!(letter, b't' | b'T' | b'o') {
            return None;
        }
        self.type_of_type(kind, u32::from(letter))
    }

    /// `existential-layout ::= protocol-list 'p'`
    pub(super) fn protocol_list_type(&mut self) -> Parsed {
        self.protocol_list(Kind::ProtocolList, None)
    }

    fn protocol_list(&mut self, kind: Kind, superclass: Option<NodeRef>) -> Parsed {
        let start = self.pop_list(Self::pop_protocol)?;
        if let Some(superclass) = superclass {
            self.list.insert(start, superclass);
        }
        Some(self.listed(kind, 0, start).as_type())
    }

    /// `type ::= existential-layout requirement '_' requirement* 'XP'`
    fn constrained_existential(&mut self) -> Parsed {
        if self.top()? == Kind::EmptyList {
            return None;
        }
        let start = self.pop_list(|parser| parser.pop_if(Kind::is_requirement))?;
        let base = self.pop_type()?;
        self.list.insert(start, base);
        Some(self.listed(Kind::ConstrainedExistential, 0, start).as_type())
    }

    /// `extended-existential-shape ::= generic-signature? type`
    fn existential_shape(&mut self, has_signature: bool) -> Parsed {
        let of = self.pop_type()?;
        let signature = if has_signature { self.pop(Kind::GenericSignature) } else { None };
        Some(match signature {
            Some(signature) => self.arena.node(Kind::ExistentialShape, 0, &[signature, of]),
            None => self.arena.node(Kind::ExistentialShape, 0, &[of]),
        })
    }

    /// `type ::= type-list 'Xx' | type-list type-list generic-signature 'XX'`; fields written `inout` are mutable.
    fn box_with_layout(&mut self, is_generic: bool) -> Parsed {
        let mut generic = None;
        if is_generic {
            let signature = self.pop(Kind::GenericSignature)?;
            let arguments = self.pop_type_list()?;
            generic = Some((signature, arguments));
        }
        let start = self.pop_list(Self::pop_type)?;
        for at in start..self.list.len() {
            let field = *self.list.get(at)?;
            let (of, is_mutable) = match self.arena.own_kind(field) {
                Kind::InOut => (self.arena.child(field, 0)?, 1),
                _ => (field, 0),
            };
            *self.list.get_mut(at)? = self.arena.node(Kind::SilBoxField, is_mutable, &[of]);
        }
        let layout = self.listed(Kind::SilBoxLayout, 0, start);
        Some(match generic {
            Some((signature, arguments)) => {
                self.arena.node(Kind::SilBoxWithLayout, 0, &[layout, signature, arguments]).as_type()
            }
            None => self.arena.node(Kind::SilBoxWithLayout, 0, &[layout]).as_type(),
        })
    }

    pub(super) fn pop_type_list(&mut self) -> Parsed {
        let start = self.pop_list(Self::pop_type)?;
        Some(self.listed(Kind::TypeList, 0, start))
    }

    /// `context ::= entity identifier type-list 'XZ'`
    fn anonymous_context(&mut self) -> Parsed {
        let types = self.pop_type_list()?;
        let name = self.pop(Kind::Identifier)?;
        let parent = self.pop_context()?;
        Some(self.arena.node(Kind::AnonymousContext, 0, &[name, parent, types]))
    }

    /// `type ::= type 'XSq'` and its like, in debug information only.
    fn sugared_type(&mut self) -> Parsed {
        match self.cursor.next() {
            b'q' => self.type_of_type(Kind::SugaredOptional, 0),
            b'a' => self.simple_type(Phrase::SugaredArray),
            b'p' => self.simple_type(Phrase::SugaredParen),
            letter @ (b'A' | b'D') => {
                let second = self.pop_type()?;
                let first = self.pop_type()?;
                let phrase =
                    if letter == b'A' { Phrase::SugaredInlineArray } else { Phrase::SugaredDictionary };
                Some(self.simple(phrase, &[first, second]).as_type())
            }
            _ => None,
        }
    }

    /// The operators that begin with `Q`: associated, opaque and pack types.
    pub(super) fn archetype(&mut self) -> Parsed {
        match self.cursor.next() {
            b'a' => {
                let name = self.pop(Kind::Identifier)?;
                let base = self.pop_type()?;
                let member = self.arena.node(Kind::AssociatedTypeRef, 0, &[base, name]).as_type();
                Some(self.substitutable(member))
            }
            b'O' => {
                let of = self.pop_context()?;
                Some(self.arena.node(Kind::OpaqueReturnTypeOf, 0, &[of]))
            }
            b'o' => self.opaque_type(),
            b'r' | b'u' => Some(self.mark(Kind::OpaqueReturnType).as_type()),
            b'R' | b'U' => {
                self.cursor.index()?;
                Some(self.mark(Kind::OpaqueReturnType).as_type())
            }
            letter @ (b'x' | b'X' | b'y' | b'Y' | b'z' | b'Z') => self.member_type(letter),
            b'p' => {
                self.pop_type()?; // how many there are is not shown
                self.qualified(Phrase::PackExpansion)
            }
            b'e' => {
                let level = self.cursor.index()?;
                self.type_of_type(Kind::PackElement, level)
            }
            b'P' => self.pack(Kind::Pack),
            b'S' => match self.cursor.next() {
                b'd' => self.pack(Kind::SilPackDirect),
                b'i' => self.pack(Kind::SilPackIndirect),
                _ => None,
            },
            _ => None,
        }
    }

    /// A member of a generic parameter, or of the type before the name; capitals take a path of names.
    fn member_type(&mut self, letter: u8) -> Parsed {
        let base = match letter {
            b'x' | b'X' => None,
            b'y' | b'Y' => Some(self.param_index()?.as_type()),
            _ => Some(self.arena.param(0, 0).as_type()),
        };
        let member = match letter.is_ascii_lowercase() {
            true => self.associated_type(base)?,
            false => self.associated_type_at_depth(base)?,
        };
        Some(self.substitutable(member))
    }

    /// `type ::= opaque-type-decl-name bound-generic-args 'Qo' INDEX`
    fn opaque_type(&mut self) -> Parsed {
        let index = self.cursor.index()?;
        let (start, _) = self.pop_generic_arguments()?;
        self.list.truncate(start);
        let name = self.pop_any()?;
        let opaque = self.arena.node(Kind::OpaqueType, index, &[name]).as_type();
        Some(self.substitutable(opaque))
    }

    fn pack(&mut self, kind: Kind) -> Parsed {
        let start = self.pop_list(Self::pop_type)?;
        Some(self.listed(kind, 0, start).as_type())
    }

    /// `type ::= '$' 'n'? INDEX`
    pub(super) fn integer_type(&mut self) -> Parsed {
        let kind = if self.cursor.eat(b'n') { Kind::NegativeInteger } else { Kind::Integer };
        let magnitude = self.cursor.index()?;
        Some(self.arena.leaf(kind, magnitude).as_type())
    }

    /// `global ::= type label-list? 'D'`
    pub(super) fn type_mangling(&mut self) -> Parsed {
        let of = self.pop_type();
        let labels = self.pop_labels(of);
        let of = of?;
        if !self.can_show(labels, of) {
            return None;
        }
        Some(match labels {
            Some(labels) => self.arena.node(Kind::TypeMangling, 0, &[of, labels]),
            None => self.arena.node(Kind::TypeMangling, 0, &[of]),
        })
    }
}
