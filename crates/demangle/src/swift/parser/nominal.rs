//! Modules, contexts, nominal types and their generic arguments.

use super::{Parsed, Parser};
use crate::swift::bound::{self, Bound};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use crate::swift::standard;

/// How many levels of a nested type may have generic arguments.
const MAX_LEVELS: usize = 64;

impl Parser<'_, '_> {
    /// `module ::= identifier | known-module`
    pub(super) fn pop_module(&mut self) -> Parsed {
        match self.top()? {
            Kind::Identifier => {
                let name = self.pop_any()?;
                Some(self.arena.with_kind(name, Kind::Module))
            }
            Kind::Module => self.pop_any(),
            _ => None,
        }
    }

    /// `context ::= module | entity | extension`
    pub(super) fn pop_context(&mut self) -> Parsed {
        match self.top()? {
            Kind::Identifier | Kind::Module => self.pop_module(),
            Kind::Type => {
                let context = self.pop_any()?.bare();
                self.arena.own_kind(context).is_context().then_some(context)
            }
            kind if kind.is_context() => self.pop_any(),
            _ => None,
        }
    }

    /// `any-generic-type ::= context decl-name kind`
    pub(super) fn nominal(&mut self, kind: Kind) -> Parsed {
        let name = self.pop_if(Kind::is_decl_name)?;
        let context = self.pop_context()?;
        let nominal = self.arena.node(kind, 0, &[context, name]).as_type();
        Some(self.substitutable(nominal))
    }

    fn pop_any_generic(&mut self) -> Parsed {
        let nominal = self.pop_type()?.bare();
        self.arena.own_kind(nominal).is_any_generic().then_some(nominal)
    }

    /// `context ::= entity module generic-signature? 'E'`
    pub(super) fn extension(&mut self) -> Parsed {
        let signature = self.pop(Kind::GenericSignature);
        let module = self.pop_module()?;
        let extended = self.pop_any_generic()?;
        Some(match signature {
            Some(signature) => self.arena.node(Kind::Extension, 0, &[module, extended, signature]),
            None => self.arena.node(Kind::Extension, 0, &[module, extended]),
        })
    }

    /// `protocol ::= context decl-name | type`
    pub(super) fn pop_protocol(&mut self) -> Parsed {
        if let Some(protocol) = self.pop_type() {
            return self.is_protocol(protocol).then_some(protocol);
        }
        let name = self.pop_if(Kind::is_decl_name)?;
        let context = self.pop_context()?;
        Some(self.arena.node(Kind::Protocol, 0, &[context, name]).as_type())
    }

    pub(super) fn is_protocol(&self, node: NodeRef) -> bool {
        match self.arena.own_kind(node) {
            Kind::Protocol => true,
            Kind::Standard => matches!(standard::unpack(self.arena.extra(node)), Some((Kind::Protocol, _))),
            _ => false,
        }
    }

    /// A nominal type with one generic argument.
    pub(super) fn bound(&mut self, nominal: NodeRef, argument: NodeRef) -> Parsed {
        let kind = bound::kind_of(nominal, self.arena)?;
        let arguments = self.arena.node(Kind::TypeList, 0, &[argument]);
        Some(self.arena.node(Kind::BoundGeneric, kind.pack(), &[nominal, arguments]).as_type())
    }

    /// `bound-generic-type ::= type bound-generic-args 'G'`
    pub(super) fn bound_generic_type(&mut self) -> Parsed {
        let (start, is_retroactive) = self.pop_generic_arguments()?;
        let nominal = self.pop_any_generic()?;
        let levels = self.list.len() - start;
        let mut bound = self.bind(nominal, start, levels, 0)?;
        self.list.truncate(start);
        if is_retroactive {
            bound = self.retroactive(bound);
        }
        Some(self.substitutable(bound.as_type()))
    }

    fn retroactive(&mut self, bound: NodeRef) -> NodeRef {
        match (self.arena.own_kind(bound), self.arena.child(bound, 0), self.arena.child(bound, 1)) {
            (Kind::BoundGeneric, Some(nominal), Some(arguments)) => {
                let kind = self.arena.extra(bound) | bound::RETROACTIVE;
                self.arena.node(Kind::BoundGeneric, kind, &[nominal, arguments])
            }
            _ => bound,
        }
    }

    /// `bound-generic-args ::= 'y' (type* '_')* type* retroactive-conformance*`
    ///
    /// Leaves a type list per level in [`Self::list`], the innermost type's first, and says whether there were
    /// retroactive conformances: those are not shown, but a type that has them is shown without sugar.
    pub(super) fn pop_generic_arguments(&mut self) -> Option<(usize, bool)> {
        let mut is_retroactive = false;
        while self.pop(Kind::RetroactiveConformance).is_some() {
            is_retroactive = true;
        }
        let start = self.list.len();
        loop {
            let arguments = self.pop_run(Kind::TypeList, 0, |kind| kind == Kind::Type);
            self.list.push(arguments);
            if self.pop(Kind::EmptyList).is_some() {
                break;
            }
            self.pop(Kind::FirstElementMarker)?;
        }
        (self.list.len() - start <= MAX_LEVELS).then_some((start, is_retroactive))
    }

    /// Gives a nominal type, and the types it is nested in, their arguments: the `levels` lists from `at` on.
    fn bind(&mut self, nominal: NodeRef, at: usize, levels: usize, depth: u32) -> Parsed {
        if depth > crate::MAX_DEPTH {
            return None;
        }
        let arguments = *self.list.get(at)?;
        let kind = self.arena.own_kind(nominal);
        if kind == Kind::Module {
            return None;
        }
        let takes_arguments = !kind.has_no_generic_arguments();
        let (rest, rest_levels) = if takes_arguments { (at + 1, levels - 1) } else { (at, levels) };
        let nominal = match rest_levels {
            0 => nominal,
            _ => self.bind_context(nominal, rest, rest_levels, depth + 1)?,
        };
        if !takes_arguments || self.arena.children(arguments).is_empty() {
            return Some(nominal);
        }
        if matches!(kind, Kind::Function | Kind::Constructor) {
            return Some(self.arena.node(Kind::BoundFunction, 0, &[nominal, arguments]));
        }
        let bound: Bound = bound::kind_of(nominal, self.arena)?;
        Some(self.arena.node(Kind::BoundGeneric, bound.pack(), &[nominal, arguments]))
    }

    /// The same declaration in a context that has got its arguments.
    fn bind_context(&mut self, nominal: NodeRef, at: usize, levels: usize, depth: u32) -> Parsed {
        let context = self.arena.child(nominal, 0)?;
        let bound = if self.arena.own_kind(context) == Kind::Extension {
            let extended = self.arena.child(context, 1)?;
            let extended = self.bind(extended, at, levels, depth)?;
            self.with_child(context, 1, extended)
        } else {
            self.bind(context, at, levels, depth)?
        };
        Some(self.with_child(nominal, 0, bound))
    }

    /// A copy of a node with another child at `at`.
    fn with_child(&mut self, node: NodeRef, at: usize, child: NodeRef) -> NodeRef {
        let start = self.list.len();
        self.list.extend_from_slice(self.arena.children(node));
        if let Some(place) = self.list.get_mut(start + at) {
            *place = child;
        }
        let (kind, extra) = (self.arena.own_kind(node), self.arena.extra(node));
        self.listed(kind, extra, start)
    }
}
