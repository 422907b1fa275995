//! Types.

use super::Printer;
use crate::swift::bound::{self, Bound};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::standard;
use core::fmt;

/// Types that the language has a short form for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sugar {
    Optional,
    ImplicitlyUnwrapped,
    Array,
    Dictionary,
}

impl Printer<'_> {
    pub(super) fn type_node(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::ImplFunctionType => self.impl_function_type(node),
            Kind::ImplParameter => self.impl_parameter(node),
            Kind::TupleElement => self.tuple_element(node),
            Kind::TypeList => self.list_of(node, ""),
            Kind::InOut => self.prefixed("inout ", node),
            Kind::SilBox => self.prefixed("@box ", node),
            Kind::DynamicSelf | Kind::ConstrainedExistentialSelf => self.put("Self"),
            Kind::Metatype => self.metatype(node),
            Kind::ExistentialMetatype => {
                self.representation(node)?;
                self.child(node, 0)?;
                self.put(".Type")
            }
            Kind::ProtocolList | Kind::ProtocolListWithClass | Kind::ProtocolListWithAnyObject => {
                self.protocols(node, kind)
            }
            Kind::SugaredOptional => {
                let wrapped = self.arena.child(node, 0).unwrap_or(node);
                self.in_parentheses_if_needed(wrapped)?;
                self.put("?")
            }
            Kind::Builtin | Kind::BuiltinSized | Kind::BuiltinVector => {
                self.put("Builtin.")?;
                self.builtin(node, 0)
            }
            Kind::ErrorType => self.put("<ERROR TYPE>"),
            Kind::AssociatedTypeRef => {
                self.child(node, 0)?;
                self.put(".")?;
                self.child(node, 1)
            }
            _ => self.rare_type(node, kind),
        }
    }

    fn rare_type(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::Pack => self.enclosed("Pack{", node, ", ", "}"),
            Kind::SilPackDirect => self.enclosed("@direct Pack{", node, ", ", "}"),
            Kind::SilPackIndirect => self.enclosed("@indirect Pack{", node, ", ", "}"),
            Kind::PackElement => {
                self.put("/* level: ")?;
                self.put_number(u64::from(self.arena.extra(node)))?;
                self.put(" */ each ")?;
                self.child(node, 0)
            }
            Kind::SilBoxWithLayout => self.box_with_layout(node),
            Kind::SilBoxLayout if self.arena.children(node).is_empty() => self.put("{ }"),
            Kind::SilBoxLayout => self.enclosed("{ ", node, ", ", " }"),
            Kind::SilBoxField => {
                self.prefixed(if self.arena.extra(node) == 0 { "let " } else { "var " }, node)
            }
            Kind::Integer => self.put_number(u64::from(self.arena.extra(node))),
            Kind::NegativeInteger => {
                self.put(if self.arena.extra(node) == 0 { "" } else { "-" })?;
                self.put_number(u64::from(self.arena.extra(node)))
            }
            Kind::ConstrainedExistential => self.constrained_existential(node),
            Kind::OpaqueReturnType => self.put("some"),
            Kind::OpaqueReturnTypeOf => self.enclosed("<<opaque return type of ", node, "", ">>"),
            Kind::OpaqueType => {
                self.child(node, 0)?;
                self.put(".")?;
                self.put_number(u64::from(self.arena.extra(node)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn prefixed(&mut self, prefix: &str, node: NodeRef) -> fmt::Result {
        self.put(prefix)?;
        self.child(node, 0)
    }

    pub(super) fn enclosed(
        &mut self,
        open: &str,
        node: NodeRef,
        separator: &str,
        close: &str,
    ) -> fmt::Result {
        self.put(open)?;
        self.list_of(node, separator)?;
        self.put(close)
    }

    /// A type of the standard library that has a letter of its own.
    pub(super) fn standard(&mut self, node: NodeRef) -> fmt::Result {
        let Some((_, name)) = standard::unpack(self.arena.extra(node)) else { return Ok(()) };
        if !self.style.is_simplified {
            self.put("Swift.")?;
        }
        self.put(name)
    }

    pub(super) fn bound_generic(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let [nominal, arguments] = *arena.children(node) else { return Ok(()) };
        let packed = arena.extra(node);
        let arguments = arena.children(arguments);
        if self.style.has_sugar && packed & bound::RETROACTIVE == 0 {
            if Bound::unpack(packed) == Bound::Protocol {
                self.list(arguments, "")?;
                self.put(" as ")?;
                return self.print(nominal);
            }
            if let Some(sugar) = self.sugar(nominal, Bound::unpack(packed)) {
                match (sugar, arguments) {
                    (Sugar::Optional, &[wrapped]) => {
                        self.in_parentheses_if_needed(wrapped)?;
                        return self.put("?");
                    }
                    (Sugar::ImplicitlyUnwrapped, &[wrapped]) => {
                        self.in_parentheses_if_needed(wrapped)?;
                        return self.put("!");
                    }
                    (Sugar::Array, &[_]) => return self.bracketed(arguments),
                    (Sugar::Dictionary, &[_, _]) => return self.bracketed(arguments),
                    _ => {}
                }
            }
        }
        self.print(nominal)?;
        self.generic_arguments(arguments)
    }

    fn bracketed(&mut self, types: &[NodeRef]) -> fmt::Result {
        self.put("[")?;
        self.list(types, " : ")?;
        self.put("]")
    }

    fn sugar(&self, nominal: NodeRef, bound: Bound) -> Option<Sugar> {
        let name = match self.arena.own_kind(nominal) {
            Kind::Standard => standard::unpack(self.arena.extra(nominal))?.1,
            _ => {
                let &[module, name] = self.arena.children(nominal) else { return None };
                let is_swift =
                    self.arena.own_kind(module) == Kind::Module && self.arena.text(module) == "Swift";
                let has_name = self.arena.own_kind(name) == Kind::Identifier;
                (is_swift && has_name).then(|| self.arena.text(name))?
            }
        };
        match (bound, name) {
            (Bound::Enum, "Optional") => Some(Sugar::Optional),
            (Bound::Enum, "ImplicitlyUnwrappedOptional") => Some(Sugar::ImplicitlyUnwrapped),
            (Bound::Structure, "Array") => Some(Sugar::Array),
            (Bound::Structure, "Dictionary") => Some(Sugar::Dictionary),
            _ => None,
        }
    }

    fn in_parentheses_if_needed(&mut self, node: NodeRef) -> fmt::Result {
        if self.is_simple(node) {
            return self.print(node);
        }
        self.put("(")?;
        self.print(node)?;
        self.put(")")
    }

    /// Whether something may follow a type without parentheses around it.
    fn is_simple(&self, node: NodeRef) -> bool {
        match self.arena.own_kind(node) {
            Kind::ProtocolList => self.arena.children(node).len() <= 1,
            Kind::ProtocolListWithAnyObject => self.arena.children(node).is_empty(),
            Kind::AssociatedTypeRef
            | Kind::BoundGeneric
            | Kind::BoundFunction
            | Kind::Builtin
            | Kind::BuiltinSized
            | Kind::BuiltinVector
            | Kind::TheTupleType
            | Kind::Simple
            | Kind::Standard
            | Kind::Class
            | Kind::Structure
            | Kind::Enum
            | Kind::Protocol
            | Kind::TypeAlias
            | Kind::OtherNominalType
            | Kind::DependentGenericType
            | Kind::DependentMember
            | Kind::GenericParam
            | Kind::DynamicSelf
            | Kind::ErrorType
            | Kind::ExistentialMetatype
            | Kind::Metatype
            | Kind::Module
            | Kind::Tuple
            | Kind::Pack
            | Kind::SilPackDirect
            | Kind::SilPackIndirect
            | Kind::ConstrainedExistentialSelf
            | Kind::SilBox
            | Kind::SilBoxWithLayout
            | Kind::SugaredOptional
            | Kind::Integer
            | Kind::NegativeInteger => true,
            _ => false,
        }
    }

    fn representation(&mut self, node: NodeRef) -> fmt::Result {
        self.put(match u8::try_from(self.arena.extra(node)) {
            Ok(b't') => "@thin ",
            Ok(b'T') => "@thick ",
            Ok(b'o') => "@objc_metatype ",
            _ => "",
        })
    }

    fn metatype(&mut self, node: NodeRef) -> fmt::Result {
        self.representation(node)?;
        let Some(of) = self.arena.child(node, 0) else { return Ok(()) };
        self.in_parentheses_if_needed(of)?;
        let is_existential = matches!(
            self.arena.own_kind(of),
            Kind::ExistentialMetatype
                | Kind::ProtocolList
                | Kind::ProtocolListWithClass
                | Kind::ProtocolListWithAnyObject
        );
        self.put(if is_existential { ".Protocol" } else { ".Type" })
    }

    /// `Superclass & Protocol`, `Any`, `AnyObject`.
    fn protocols(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        let arena = self.arena;
        let protocols = arena.children(node);
        match kind {
            Kind::ProtocolListWithClass => {
                let Some((&superclass, protocols)) = protocols.split_first() else { return Ok(()) };
                self.print(superclass)?;
                self.put(" & ")?;
                self.list(protocols, " & ")
            }
            Kind::ProtocolListWithAnyObject => {
                for &protocol in protocols {
                    self.print(protocol)?;
                    self.put(" & ")?;
                }
                // The module is written in the simplified form, too, as Swift's own demangler does.
                self.put("Swift.AnyObject")
            }
            _ if protocols.is_empty() => self.put("Any"),
            _ => self.list(protocols, " & "),
        }
    }

    /// `any Protocol<requirements>`
    fn constrained_existential(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let Some((&base, requirements)) = arena.children(node).split_first() else { return Ok(()) };
        self.put("any ")?;
        self.print(base)?;
        self.put("<")?;
        self.list(requirements, ", ")?;
        self.put(">")
    }

    fn box_with_layout(&mut self, node: NodeRef) -> fmt::Result {
        let signature = self.arena.child(node, 1);
        if let Some(signature) = signature {
            self.print(signature)?;
            self.put(" ")?;
        }
        self.child(node, 0)?;
        match self.arena.child(node, 2) {
            Some(arguments) => self.enclosed(" <", arguments, ", ", ">"),
            None => Ok(()),
        }
    }

    /// The name of a built-in type behind `Builtin.`.
    fn builtin(&mut self, node: NodeRef, nesting: u32) -> fmt::Result {
        if nesting > crate::MAX_DEPTH {
            return Err(self.too_complex());
        }
        let extra = self.arena.extra(node);
        match self.arena.own_kind(node) {
            Kind::BuiltinVector => {
                self.put("Vec")?;
                self.put_number(u64::from(extra))?;
                self.put("x")?;
                self.arena.child(node, 0).map_or(Ok(()), |element| self.builtin(element, nesting + 1))
            }
            Kind::BuiltinSized => {
                self.put(if extra.to_be_bytes()[3] == b'f' { "FPIEEE" } else { "Int" })?;
                self.put_number(u64::from(extra >> 8))
            }
            _ => self.put(builtin_name(extra)),
        }
    }
}

fn builtin_name(letter: u32) -> &'static str {
    match u8::try_from(letter) {
        Ok(b'A') => "ImplicitActor",
        Ok(b'B') => "UnsafeValueBuffer",
        Ok(b'D') => "DefaultActorStorage",
        Ok(b'I') => "IntLiteral",
        Ok(b'O') => "UnknownObject",
        Ok(b'P') => "PackIndex",
        Ok(b'b') => "BridgeObject",
        Ok(b'c') => "RawUnsafeContinuation",
        Ok(b'd') => "NonDefaultDistributedActorStorage",
        Ok(b'e') => "Executor",
        Ok(b'j') => "Job",
        Ok(b'o') => "NativeObject",
        Ok(b'p') => "RawPointer",
        Ok(b't') => "SILToken",
        Ok(b'w') => "Word",
        _ => "",
    }
}
