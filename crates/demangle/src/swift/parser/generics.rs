//! Generic parameters, signatures, requirements, and associated types.

use super::{Parsed, Parser};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;

/// What a requirement is about, by the letter after `R`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Param,
    Associated,
    AssociatedAtDepth,
    Substitution,
}

/// What a requirement demands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    Protocol,
    BaseClass,
    SameType,
    SameShape,
    Layout,
    Pack,
    Value,
    Inverse,
}

/// The letters after `R`; any other belongs to the parameter of a protocol requirement already.
fn requirement(letter: u8) -> Option<(Demand, Subject)> {
    use Demand::{BaseClass, Inverse, Layout, Pack, Protocol, SameShape, SameType, Value};
    use Subject::{Associated, AssociatedAtDepth, Param, Substitution};
    Some(match letter {
        b'V' => (Value, Param),
        b'v' => (Pack, Param),
        b'c' => (BaseClass, Associated),
        b'C' => (BaseClass, AssociatedAtDepth),
        b'b' => (BaseClass, Param),
        b'B' => (BaseClass, Substitution),
        b't' => (SameType, Associated),
        b'T' => (SameType, AssociatedAtDepth),
        b's' => (SameType, Param),
        b'S' => (SameType, Substitution),
        b'm' => (Layout, Associated),
        b'M' => (Layout, AssociatedAtDepth),
        b'l' => (Layout, Param),
        b'L' => (Layout, Substitution),
        b'p' => (Protocol, Associated),
        b'P' => (Protocol, AssociatedAtDepth),
        b'Q' => (Protocol, Substitution),
        b'h' => (SameShape, Param),
        b'i' => (Inverse, Param),
        b'I' => (Inverse, Substitution),
        b'j' => (Inverse, Associated),
        b'J' => (Inverse, AssociatedAtDepth),
        _ => return None,
    })
}

impl Parser<'_, '_> {
    /// `GENERIC-PARAM-INDEX`
    pub(super) fn param_index(&mut self) -> Parsed {
        if self.cursor.eat(b'd') {
            let depth = self.cursor.index()?.checked_add(1)?;
            let index = self.cursor.index()?;
            return Some(self.arena.param(depth, index));
        }
        if self.cursor.eat(b'z') {
            return Some(self.arena.param(0, 0));
        }
        if self.cursor.eat(b's') {
            return Some(self.arena.leaf(Kind::ConstrainedExistentialSelf, 0));
        }
        let index = self.cursor.index()?.checked_add(1)?;
        Some(self.arena.param(0, index))
    }

    /// `type ::= 'q' GENERIC-PARAM-INDEX`
    pub(super) fn generic_param_type(&mut self) -> Parsed {
        Some(self.param_index()?.as_type())
    }

    /// `generic-signature ::= requirement* generic-param-marker* ('l' | 'r' GENERIC-PARAM-COUNT* 'l')`
    pub(super) fn generic_signature(&mut self, has_counts: bool) -> Parsed {
        let start = self.list.len();
        if has_counts {
            while !self.cursor.eat(b'l') {
                let count = if self.cursor.eat(b'z') { 0 } else { self.cursor.index()?.checked_add(1)? };
                let count = self.arena.leaf(Kind::Number, count);
                self.list.push(count);
            }
        } else {
            let one = self.arena.leaf(Kind::Number, 1);
            self.list.push(one);
        }
        let levels = u32::try_from(self.list.len() - start).ok()?;
        let waiting =
            self.stack.iter().rev().take_while(|&&node| self.arena.kind(node).is_requirement()).count();
        let first = self.stack.len() - waiting;
        self.list.extend_from_slice(self.stack.get(first..)?);
        self.stack.truncate(first);
        Some(self.listed(Kind::GenericSignature, levels, start))
    }

    /// `type ::= type generic-signature 'u'`
    pub(super) fn generic_type(&mut self) -> Parsed {
        let signature = self.pop(Kind::GenericSignature)?;
        let of = self.pop_type()?;
        Some(self.arena.node(Kind::DependentGenericType, 0, &[signature, of]).as_type())
    }

    /// `requirement`
    pub(super) fn generic_requirement(&mut self) -> Parsed {
        let (demand, subject) = match requirement(self.cursor.peek()) {
            Some(known) => {
                self.cursor.next();
                known
            }
            None => (Demand::Protocol, Subject::Param),
        };
        let inverse = if demand == Demand::Inverse { self.cursor.index()? } else { 0 };
        let constrained = self.constrained(subject)?;
        match demand {
            Demand::Value => {
                let of = self.pop_type()?;
                Some(self.arena.node(Kind::ValueMarker, 0, &[constrained, of]))
            }
            Demand::Pack => Some(self.arena.node(Kind::PackMarker, 0, &[constrained])),
            Demand::Inverse => Some(self.arena.node(Kind::InverseRequirement, inverse, &[constrained])),
            Demand::Protocol => {
                let protocol = self.pop_protocol()?;
                Some(self.arena.node(Kind::ConformanceRequirement, 0, &[constrained, protocol]))
            }
            Demand::BaseClass => self.two_types(Kind::ConformanceRequirement, constrained),
            Demand::SameType => self.two_types(Kind::SameTypeRequirement, constrained),
            Demand::SameShape => self.two_types(Kind::SameShapeRequirement, constrained),
            Demand::Layout => self.layout(constrained),
        }
    }

    fn two_types(&mut self, kind: Kind, first: NodeRef) -> Parsed {
        let second = self.pop_type()?;
        Some(self.arena.node(kind, 0, &[first, second]))
    }

    fn constrained(&mut self, subject: Subject) -> Parsed {
        if subject == Subject::Substitution {
            return self.pop_type();
        }
        let base = self.param_index()?.as_type();
        let member = match subject {
            Subject::Associated => self.associated_type(Some(base))?,
            Subject::AssociatedAtDepth => self.associated_type_at_depth(Some(base))?,
            Subject::Param | Subject::Substitution => return Some(base),
        };
        Some(self.substitutable(member))
    }

    /// `LAYOUT-CONSTRAINT`
    fn layout(&mut self, constrained: NodeRef) -> Parsed {
        let letter = self.cursor.next();
        let numbers = match letter {
            b'U' | b'R' | b'N' | b'C' | b'D' | b'T' | b'B' => 0,
            b'e' | b'm' | b'S' => 1,
            b'E' | b'M' => 2,
            _ => return None,
        };
        let start = self.list.len();
        self.list.push(constrained);
        for _ in 0..numbers {
            let number = self.cursor.index()?;
            let number = self.arena.leaf(Kind::Number, number);
            self.list.push(number);
        }
        Some(self.listed(Kind::LayoutRequirement, u32::from(letter), start))
    }

    /// `type ::= assoc-type-name 'Qy' GENERIC-PARAM-INDEX`, or relative to the type before the name.
    pub(super) fn associated_type(&mut self, base: Parsed) -> Parsed {
        let name = self.pop_associated_type_name()?;
        let base = match base {
            Some(base) => base,
            None => self.pop_type()?,
        };
        Some(self.arena.node(Kind::DependentMember, 0, &[base, name]).as_type())
    }

    /// `type ::= assoc-type-list 'QY' GENERIC-PARAM-INDEX`, or relative to the type before the list.
    pub(super) fn associated_type_at_depth(&mut self, base: Parsed) -> Parsed {
        let start = self.pop_names()?;
        let mut member = match base {
            Some(base) => base,
            None => self.pop_type()?,
        };
        for at in start..self.list.len() {
            let name = *self.list.get(at)?;
            member = self.arena.node(Kind::DependentMember, 0, &[member, name]).as_type();
        }
        self.list.truncate(start);
        Some(member)
    }

    /// `assoc-type-list ::= assoc-type-name '_' assoc-type-name*`; other than in other lists there is one at least.
    fn pop_names(&mut self) -> Option<usize> {
        if self.top()? == Kind::EmptyList {
            return None;
        }
        self.pop_list(Self::pop_associated_type_name)
    }

    /// `assoc-type-name ::= identifier protocol?`
    pub(super) fn pop_associated_type_name(&mut self) -> Parsed {
        let protocol = self.pop_type();
        if protocol.is_some_and(|protocol| !self.is_protocol(protocol)) {
            return None;
        }
        let name = self.pop(Kind::Identifier)?;
        Some(match protocol {
            Some(protocol) => self.arena.node(Kind::AssociatedTypeName, 0, &[name, protocol]),
            None => self.arena.node(Kind::AssociatedTypeName, 0, &[name]),
        })
    }

    pub(super) fn pop_associated_type_path(&mut self) -> Parsed {
        let start = self.pop_names()?;
        Some(self.listed(Kind::AssociatedTypePath, 0, start))
    }
}
