//! Generic parameters, signatures, associated types, bound generic types.

use super::{Old, Parsed};
use crate::swift::bound;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use alloc::vec::Vec;

impl Old<'_, '_> {
    /// `bound-generic-type ::= 'G' nominal-type (type* '_')+`, a list for each level of nesting.
    pub(super) fn bound_generic_type(&mut self) -> Parsed {
        let nominal = self.nominal_type()?;
        self.bound_generic_arguments(nominal)
    }

    fn bound_generic_arguments(&mut self, nominal: NodeRef) -> Parsed {
        let nominal = self.nested(|old| old.with_bound_context(nominal))?;
        let mut arguments = Vec::new();
        while !self.cursor.eat(b'_') {
            arguments.push(self.type_()?);
            if self.cursor.is_at_end() {
                return None;
            }
        }
        if arguments.is_empty() {
            return Some(nominal);
        }
        let kind = match bound::kind_of(nominal, self.arena)? {
            kind @ (bound::Bound::Class | bound::Bound::Structure | bound::Bound::Enum) => kind,
            _ => return None,
        };
        let arguments = self.arena.node(Kind::TypeList, 0, &arguments);
        Some(self.arena.node(Kind::BoundGeneric, kind.pack(), &[nominal, arguments]))
    }

    /// The outermost type's arguments come first.
    fn with_bound_context(&mut self, nominal: NodeRef) -> Parsed {
        if self.arena.own_kind(nominal) == Kind::Standard {
            return Some(nominal);
        }
        let context = self.arena.child(nominal, 0)?;
        if matches!(self.arena.own_kind(context), Kind::Module | Kind::Function | Kind::Extension) {
            return Some(nominal);
        }
        let bound = self.bound_generic_arguments(context)?;
        let mut children = self.arena.children(nominal).to_vec();
        *children.first_mut()? = bound;
        let (kind, extra) = (self.arena.own_kind(nominal), self.arena.extra(nominal));
        Some(self.arena.node(kind, extra, &children))
    }

    /// `generic-param-index ::= 'd' index index | 'x' | index`
    pub(super) fn param_index(&mut self) -> Parsed {
        if self.cursor.eat(b'd') {
            let depth = self.cursor.old_index()?.checked_add(1)?;
            let index = self.cursor.old_index()?;
            return Some(self.arena.param(depth, index));
        }
        if self.cursor.eat(b'x') {
            return Some(self.arena.param(0, 0));
        }
        let index = self.cursor.old_index()?.checked_add(1)?;
        Some(self.arena.param(0, index))
    }

    /// `dependent-member-type ::= base ('P' protocol-name)? identifier | base substitution`
    fn member(&mut self, base: NodeRef) -> Parsed {
        let name = if self.cursor.eat(b'S') {
            let name = self.substitution()?;
            if self.arena.own_kind(name) != Kind::AssociatedTypeName {
                return None;
            }
            name
        } else {
            let protocol = if self.cursor.eat(b'P') { Some(self.protocol_name()?) } else { None };
            let identifier = self.identifier(None)?;
            let name = match protocol {
                Some(protocol) => self.arena.node(Kind::AssociatedTypeName, 0, &[identifier, protocol]),
                None => self.arena.node(Kind::AssociatedTypeName, 0, &[identifier]),
            };
            self.substitutable(name)
        };
        Some(self.arena.node(Kind::DependentMember, 0, &[base.as_type(), name]))
    }

    /// `associated-type ::= 'w' generic-param-index name`, the `w` of which is passed over.
    pub(super) fn associated_type(&mut self) -> Parsed {
        let base = self.param_index()?;
        self.member(base)
    }

    /// `associated-type ::= 'W' generic-param-index name+ '_'`, the `W` of which is passed over.
    pub(super) fn associated_type_at_depth(&mut self) -> Parsed {
        let mut base = self.param_index()?;
        while !self.cursor.eat(b'_') {
            base = self.member(base)?;
        }
        Some(base)
    }

    /// `type ::= 'q' (generic-param-index | type name)`, the `q` of which is passed over.
    pub(super) fn dependent_type(&mut self) -> Parsed {
        match self.cursor.peek() {
            b'd' | b'_' | b'0'..=b'9' => self.param_index(),
            0 => None,
            _ => {
                let base = self.type_()?;
                self.member(base)
            }
        }
    }

    /// `generic-signature ::= count* ('R' requirement*)? 'r'`
    pub(super) fn generic_signature(&mut self) -> Parsed {
        let mut parts = Vec::new();
        while !matches!(self.cursor.peek(), b'R' | b'r') {
            let count = if self.cursor.eat(b'z') { 0 } else { self.cursor.old_index()?.checked_add(1)? };
            parts.push(self.arena.leaf(Kind::Number, count));
        }
        if parts.is_empty() {
            parts.push(self.arena.leaf(Kind::Number, 1));
        }
        let levels = u32::try_from(parts.len()).ok()?;
        if self.cursor.eat(b'R') {
            while !self.cursor.eat(b'r') {
                parts.push(self.generic_requirement()?);
            }
        } else {
            self.cursor.eat(b'r');
        }
        Some(self.arena.node(Kind::GenericSignature, levels, &parts))
    }

    /// `requirement ::= constrained-type ('z' type | 'l' layout | class | protocol)`
    fn generic_requirement(&mut self) -> Parsed {
        let constrained = match self.cursor.peek() {
            b'w' => {
                self.cursor.next();
                self.associated_type()?
            }
            b'W' => {
                self.cursor.next();
                self.associated_type_at_depth()?
            }
            _ => self.param_index()?,
        }
        .as_type();
        if self.cursor.eat(b'z') {
            let second = self.type_()?;
            return Some(self.arena.node(Kind::SameTypeRequirement, 0, &[constrained, second]));
        }
        if self.cursor.eat(b'l') {
            return self.layout(constrained);
        }
        let constraint = match self.cursor.peek() {
            0 => return None,
            b'C' => self.type_()?,
            b'S' => {
                self.cursor.next();
                let substitution = self.substitution()?;
                match self.arena.own_kind(substitution) {
                    Kind::Protocol | Kind::Class => substitution.as_type(),
                    Kind::Module => self.declaration_in(Kind::Protocol, substitution)?.as_type(),
                    _ => return None,
                }
            }
            _ => self.protocol_name()?,
        };
        Some(self.arena.node(Kind::ConformanceRequirement, 0, &[constrained, constraint]))
    }

    /// `layout ::= letter (NATURAL ('_' NATURAL)?)?`
    fn layout(&mut self, constrained: NodeRef) -> Parsed {
        let letter = self.cursor.next();
        let mut parts = Vec::new();
        parts.push(constrained);
        match letter {
            b'U' | b'R' | b'N' | b'T' | b'B' => {}
            b'e' | b'm' | b'S' => parts.push(self.number()?),
            b'E' | b'M' => {
                parts.push(self.number()?);
                if !self.cursor.eat(b'_') {
                    return None;
                }
                parts.push(self.number()?);
            }
            _ => return None,
        }
        Some(self.arena.node(Kind::LayoutRequirement, u32::from(letter), &parts))
    }

    fn number(&mut self) -> Parsed {
        let number = self.cursor.old_natural()?;
        Some(self.arena.leaf(Kind::Number, number))
    }
}
