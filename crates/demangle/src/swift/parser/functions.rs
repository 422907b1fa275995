//! Function types, tuples, and the argument labels of functions.

pub(super) use crate::swift::function_type::Convention;

use super::{Parsed, Parser};
use crate::swift::function_type as bits;
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;

impl Parser<'_, '_> {
    /// `function-signature` and the operator that made it a type.
    pub(super) fn function_type(&mut self, convention: Convention) -> Parsed {
        self.function_type_with(convention, None)
    }

    /// `C-TYPE ::= NATURAL text`, and then as [`function_type`](Self::function_type).
    pub(super) fn function_type_with_c_type(&mut self, convention: Convention) -> Parsed {
        let c_type = self.c_type()?;
        self.function_type_with(convention, Some(c_type))
    }

    pub(super) fn c_type(&mut self) -> Parsed {
        let len = self.cursor.natural()? as usize;
        let start = self.cursor.at();
        let text = self.cursor.take(len)?;
        (!text.is_empty()).then(|| self.arena.text_node(Kind::Identifier, start, len))
    }

    /// Takes the parts of the signature, the last one first.
    fn function_type_with(&mut self, convention: Convention, c_type: Option<NodeRef>) -> Parsed {
        let mut flags = convention.pack();
        let mut flag = |is_set: bool, bit: u32| flags |= if is_set { bit } else { 0 };
        flag(c_type.is_some(), bits::HAS_C_TYPE);
        flag(self.pop(Kind::SendingResult).is_some(), bits::SENDING_RESULT);
        let mut actor = None;
        match self.top()? {
            Kind::GlobalActor => actor = self.pop_any(),
            Kind::IsolatedAny => flag(self.pop_any().is_some(), bits::ISOLATED_ANY),
            Kind::NonIsolatedCaller => flag(self.pop_any().is_some(), bits::NONISOLATED_CALLER),
            _ => {}
        }
        flag(actor.is_some(), bits::HAS_ACTOR);
        if let Some(differentiable) = self.pop(Kind::Differentiable) {
            flag(true, bits::differentiable(self.arena.extra(differentiable)));
        }
        let mut error = None;
        match self.top()? {
            Kind::Throws => flag(self.pop_any().is_some(), bits::THROWS),
            Kind::TypedThrows => error = self.pop_any(),
            _ => {}
        }
        flag(error.is_some(), bits::HAS_ERROR);
        flag(self.pop(Kind::Sendable).is_some(), bits::SENDABLE);
        flag(self.pop(Kind::Async).is_some(), bits::ASYNC);
        let parameters = self.pop_parameters()?;
        // Not shown: no released compiler writes them, and Swift's own demangler has no form for them yet.
        self.pop(Kind::Yields);
        let result = self.pop_parameters()?;

        let start = self.list.len();
        self.list.extend([parameters, result]);
        self.list.extend(c_type);
        for extra in [actor, error].into_iter().flatten() {
            let inner = self.arena.child(extra, 0)?;
            self.list.push(inner);
        }
        Some(self.listed(Kind::FunctionType, flags, start).as_type())
    }

    /// `params-type` or `result-type`: a type, or the short form of `()`.
    fn pop_parameters(&mut self) -> Parsed {
        match self.top()? {
            Kind::EmptyList => {
                self.pop_any();
                Some(self.unit())
            }
            Kind::Type => self.pop_any(),
            _ => None,
        }
    }

    fn unit(&mut self) -> NodeRef {
        if let Some(unit) = self.unit {
            return unit;
        }
        let unit = self.arena.node(Kind::Tuple, 0, &[]).as_type();
        self.unit = Some(unit);
        unit
    }

    /// `type ::= 'Xy'`, the values that a coroutine yields.
    pub(super) fn yields(&mut self) -> Parsed {
        let yielded = self.pop_parameters()?;
        Some(self.arena.node(Kind::Yields, 0, &[yielded]))
    }

    /// `label-list` of a function type that is on its way into an entity: `None` if the type cannot have labels.
    pub(super) fn pop_labels(&mut self, function: Parsed) -> Parsed {
        if !self.labels_in_types && self.pop(Kind::EmptyList).is_some() {
            return Some(self.arena.node(Kind::LabelList, 0, &[]));
        }
        let parameters = self.labelled_parameters(function?)?;
        let is_tuple = self.arena.own_kind(parameters) == Kind::Tuple;
        let count = if is_tuple { self.arena.children(parameters).len() } else { 1 };
        if count == 0 {
            return None;
        }
        if self.labels_in_types && !is_tuple {
            return Some(self.arena.node(Kind::LabelList, 0, &[]));
        }
        let start = self.list.len();
        let mut has_labels = false;
        for at in 0..count {
            let label =
                if self.labels_in_types { self.label_in_type(parameters, at) } else { self.pop_any()? };
            match self.arena.kind(label) {
                Kind::Identifier => has_labels = true,
                Kind::FirstElementMarker => {}
                _ => return None,
            }
            self.list.push(label);
        }
        if !has_labels {
            self.list.truncate(start);
        } else if !self.labels_in_types {
            self.list.get_mut(start..)?.reverse();
        }
        Some(self.listed(Kind::LabelList, 0, start))
    }

    /// The parameter type of a function type that may have argument labels, through the generic signature.
    fn labelled_parameters(&self, function: NodeRef) -> Parsed {
        let function = self.without_signature(function);
        if self.arena.own_kind(function) != Kind::FunctionType {
            return None;
        }
        let convention = Convention::unpack(self.arena.extra(function));
        if !matches!(convention, Convention::Swift | Convention::NoEscape | Convention::CalledOnce) {
            return None;
        }
        self.arena.child(function, 0)
    }

    /// The type within a [`Kind::DependentGenericType`], or the type itself.
    fn without_signature(&self, node: NodeRef) -> NodeRef {
        match self.arena.own_kind(node) {
            Kind::DependentGenericType => self.arena.child(node, 1).unwrap_or(node),
            _ => node,
        }
    }

    /// Whether labels, once found, belong to something that can show them.
    pub(super) fn can_show(&self, labels: Parsed, function: NodeRef) -> bool {
        labels.is_none() || self.arena.own_kind(self.without_signature(function)) == Kind::FunctionType
    }

    fn label_in_type(&mut self, parameters: NodeRef, at: usize) -> NodeRef {
        let label = self
            .arena
            .child(parameters, at)
            .filter(|&element| self.arena.kind(element) == Kind::TupleElement)
            .and_then(|element| self.arena.child(element, 1));
        label.unwrap_or_else(|| self.mark(Kind::FirstElementMarker))
    }

    /// `type ::= type-list 't'`
    pub(super) fn tuple(&mut self) -> Parsed {
        let start = self.pop_list(Self::tuple_element)?;
        Some(self.listed(Kind::Tuple, 0, start).as_type())
    }

    /// `list-type ::= type identifier? … 'd'?`; a plain type stays one.
    fn tuple_element(&mut self) -> Parsed {
        let is_variadic = self.pop(Kind::VariadicMarker).is_some();
        let label = self.pop(Kind::Identifier);
        let element = self.pop_type()?;
        Some(match label {
            Some(label) => self.arena.node(Kind::TupleElement, u32::from(is_variadic), &[element, label]),
            None if is_variadic => self.arena.node(Kind::TupleElement, 1, &[element]),
            None => element,
        })
    }
}
