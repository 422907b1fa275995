//! Generic signatures, requirements, associated types, conformances.

use super::Printer;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::phrase;
use core::fmt;

/// How many parameters of one level are shown; only a broken name has more.
const MAX_SHOWN: u32 = 128;

impl Printer<'_> {
    pub(super) fn generic_node(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::DependentMember => {
                self.child(node, 0)?;
                self.put(".")?;
                self.child(node, 1)
            }
            Kind::AssociatedTypeName => {
                if let Some(protocol) = self.arena.child(node, 1) {
                    self.print(protocol)?;
                    self.put(".")?;
                }
                self.child(node, 0)
            }
            Kind::AssociatedTypePath => self.list_of(node, "."),
            Kind::DependentGenericType => {
                self.child(node, 0)?;
                let Some(of) = self.arena.child(node, 1) else { return Ok(()) };
                if self.needs_space(of) {
                    self.put(" ")?;
                }
                self.print(of)
            }
            Kind::GenericSignature => self.signature(node),
            Kind::ConformanceRequirement => self.two(node, ": ", ""),
            Kind::SameTypeRequirement => self.two(node, " == ", ""),
            Kind::SameShapeRequirement => self.two(node, ".shape == ", ".shape"),
            Kind::InverseRequirement => self.inverse(node),
            Kind::LayoutRequirement => self.layout(node),
            Kind::PackMarker | Kind::ValueMarker => self.child(node, 0),
            _ => Ok(()),
        }
    }

    fn two(&mut self, node: NodeRef, separator: &str, end: &str) -> fmt::Result {
        self.child(node, 0)?;
        self.put(separator)?;
        self.child(node, 1)?;
        self.put(end)
    }

    pub(super) fn param(&mut self, node: NodeRef) -> fmt::Result {
        let (depth, index) = self.arena.param_position(node);
        self.param_name(depth, index)
    }

    /// `A`, `B` … `Z`, `AB`: the least significant letter comes first; the depth follows unless it is the outermost.
    fn param_name(&mut self, depth: u32, index: u32) -> fmt::Result {
        let mut letters = [0; 8];
        let mut len = 0;
        let mut rest = index;
        for letter in &mut letters {
            *letter = b'A' + (rest % 26) as u8;
            rest /= 26;
            len += 1;
            if rest == 0 {
                break;
            }
        }
        let text = letters.get(..len).and_then(|letters| core::str::from_utf8(letters).ok());
        self.put(text.unwrap_or_default())?;
        if depth == 0 { Ok(()) } else { self.put_number(u64::from(depth)) }
    }

    /// `<A, B><A1 where A: Protocol>`
    fn signature(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let children = arena.children(node);
        let levels = arena.extra(node) as usize;
        let (counts, requirements) = children.split_at(levels.min(children.len()));
        let is_marker =
            |&&child: &&NodeRef| matches!(arena.own_kind(child), Kind::PackMarker | Kind::ValueMarker);
        let marked = requirements.iter().take_while(is_marker).count();
        let (markers, requirements) = requirements.split_at(marked.min(requirements.len()));
        self.put("<")?;
        for (depth, &count) in (0_u32..).zip(counts) {
            if depth > 0 {
                self.put("><")?;
            }
            self.level(depth, arena.extra(count), markers)?;
        }
        if !requirements.is_empty() && !self.style.is_simplified {
            self.put(" where ")?;
            self.list(requirements, ", ")?;
        }
        self.put(">")
    }

    fn level(&mut self, depth: u32, count: u32, markers: &[NodeRef]) -> fmt::Result {
        for index in 0..count {
            if index > 0 {
                self.put(", ")?;
            }
            if index >= MAX_SHOWN {
                return self.put("...");
            }
            self.spend(markers.len())?;
            for (kind, word) in [(Kind::PackMarker, "each "), (Kind::ValueMarker, "let ")] {
                if markers.iter().any(|&marker| self.is_marked(marker, kind, depth, index)) {
                    self.put(word)?;
                }
            }
            self.param_name(depth, index)?;
        }
        Ok(())
    }

    /// Swift's own demangler takes depth for index and index for depth here, so only `A` and its like get their mark.
    fn is_marked(&self, marker: NodeRef, kind: Kind, depth: u32, index: u32) -> bool {
        let marks = |param: NodeRef| {
            self.arena.own_kind(param) == Kind::GenericParam
                && self.arena.param_position(param) == (index, depth)
        };
        self.arena.own_kind(marker) == kind && self.arena.child(marker, 0).is_some_and(marks)
    }

    /// `A: ~Swift.Copyable`
    fn inverse(&mut self, node: NodeRef) -> fmt::Result {
        self.child(node, 0)?;
        self.put(": ~Swift.")?;
        match self.arena.extra(node) {
            0 => self.put("Copyable"),
            1 => self.put("Escapable"),
            bit => {
                self.put("<bit ")?;
                self.put_number(u64::from(bit))?;
                self.put(">")
            }
        }
    }

    /// `A: _Trivial(64, 32)`
    fn layout(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        self.child(node, 0)?;
        self.put(match u8::try_from(arena.extra(node)) {
            Ok(b'U') => ": _UnknownLayout",
            Ok(b'R') => ": _RefCountedObject",
            Ok(b'N') => ": _NativeRefCountedObject",
            Ok(b'C') => ": AnyObject",
            Ok(b'D') => ": _NativeClass",
            Ok(b'T' | b'E' | b'e') => ": _Trivial",
            Ok(b'M' | b'm') => ": _TrivialAtMost",
            _ => ": ",
        })?;
        match arena.children(node).get(1..) {
            Some(numbers @ [_, ..]) => {
                self.put("(")?;
                self.list(numbers, ", ")?;
                self.put(")")
            }
            _ => Ok(()),
        }
    }

    pub(super) fn conformance_node(&mut self, node: NodeRef, kind: Kind) -> fmt::Result {
        match kind {
            Kind::ProtocolConformance => {
                self.child(node, 0)?;
                if self.style.is_simplified {
                    return Ok(());
                }
                self.put(" : ")?;
                self.child(node, 1)?;
                self.put(" in ")?;
                self.child(node, 2)
            }
            Kind::BehaviorConformance => {
                self.put("property behavior storage of ")?;
                self.child(node, 2)?;
                self.put(" in ")?;
                self.child(node, 0)?;
                self.put(" : ")?;
                self.child(node, 1)
            }
            Kind::ConcreteConformance => {
                self.put("concrete protocol conformance ")?;
                self.two(node, " to ", "")?;
                let conditional = self.arena.child(node, 2);
                match conditional.filter(|&list| !self.arena.children(list).is_empty()) {
                    Some(list) => {
                        self.put(" with conditional requirements: ")?;
                        self.print(list)
                    }
                    None => Ok(()),
                }
            }
            Kind::ConformanceList if self.arena.children(node).is_empty() => Ok(()),
            Kind::ConformanceList => self.enclosed("(", node, ", ", ")"),
            Kind::PackConformance => self.prefixed("pack protocol conformance ", node),
            Kind::DependentConformance => self.dependent_conformance(node),
            Kind::OpaqueConformance => {
                self.put("opaque result conformance ")?;
                self.two(node, " of ", "")
            }
            Kind::RetroactiveConformance => {
                self.put("retroactive @ ")?;
                self.put_number(u64::from(self.arena.extra(node)))?;
                self.child(node, 0)
            }
            _ => Ok(()),
        }
    }

    /// `dependent root protocol conformance #0 A to P`; the number is left out when it is not known.
    fn dependent_conformance(&mut self, node: NodeRef) -> fmt::Result {
        self.put(phrase::text(self.arena.extra(node)))?;
        let index = self.arena.child(node, 2).map_or(0, |index| self.arena.extra(index));
        if let Some(index) = index.checked_sub(1) {
            self.put("#")?;
            self.put_number(u64::from(index))?;
            self.put(" ")?;
        }
        self.two(node, " to ", "")
    }
}
