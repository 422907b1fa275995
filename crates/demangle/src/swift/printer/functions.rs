//! Function types, of the language and of the intermediate language.

use super::Printer;
use crate::swift::function_type::{self as function, Convention};
use crate::swift::impl_function::{self as impl_function, Role};
use crate::swift::kinds::Kind;
use crate::swift::node::NodeRef;
use core::fmt;

impl Printer<'_> {
    /// `@attributes (parameters) async throws -> result`; the simplified form ends behind the parameters.
    pub(super) fn function_type(
        &mut self,
        node: NodeRef,
        labels: Option<NodeRef>,
        has_result: bool,
    ) -> fmt::Result {
        let bits = self.arena.extra(node);
        let mut extras = [None; 3];
        let mut at = 2;
        for (extra, flag) in
            extras.iter_mut().zip([function::HAS_C_TYPE, function::HAS_ACTOR, function::HAS_ERROR])
        {
            if bits & flag != 0 {
                *extra = self.arena.child(node, at);
                at += 1;
            }
        }
        let [c_type, actor, error] = extras;
        self.function_attributes(bits, c_type, actor)?;
        if let Some(parameters) = self.arena.child(node, 0) {
            self.parameters(parameters, labels)?;
        }
        if self.style.is_simplified {
            return Ok(());
        }
        if bits & function::ASYNC != 0 {
            self.put(" async")?;
        }
        if bits & function::THROWS != 0 {
            self.put(" throws")?;
        }
        if let Some(error) = error {
            self.put(" throws(")?;
            self.print(error)?;
            self.put(")")?;
        }
        if !has_result {
            return Ok(());
        }
        self.put(" -> ")?;
        if bits & function::SENDING_RESULT != 0 {
            self.put("sending ")?;
        }
        self.child(node, 1)
    }

    fn function_attributes(
        &mut self,
        bits: u32,
        c_type: Option<NodeRef>,
        actor: Option<NodeRef>,
    ) -> fmt::Result {
        match Convention::unpack(bits) {
            Convention::Swift | Convention::NoEscape | Convention::Uncurried => {}
            Convention::CalledOnce => self.put("@called(once) ")?,
            Convention::AutoClosure | Convention::EscapingAutoClosure => self.put("@autoclosure ")?,
            Convention::Thin => self.convention("thin", None)?,
            Convention::CPointer => self.convention("c", c_type)?,
            Convention::ObjCBlock => self.convention("block", c_type)?,
            Convention::EscapingObjCBlock => {
                self.put("@escaping ")?;
                self.convention("block", c_type)?;
            }
        }
        if bits & function::ISOLATED_ANY != 0 {
            self.put("@isolated(any) ")?;
        }
        if let Some(actor) = actor {
            self.put("@")?;
            self.print(actor)?;
            self.put(" ")?;
        }
        let differentiable = function::differentiable_text(bits);
        if !differentiable.is_empty() {
            self.put(differentiable)?;
            self.put(" ")?;
        }
        if bits & function::NONISOLATED_CALLER != 0 {
            self.put("nonisolated(nonsending) ")?;
        }
        if bits & function::SENDABLE != 0 {
            self.put("@Sendable ")?;
        }
        Ok(())
    }

    fn convention(&mut self, name: &str, c_type: Option<NodeRef>) -> fmt::Result {
        self.put("@convention(")?;
        self.put(name)?;
        if let Some(c_type) = c_type {
            self.put(", mangledCType: \"")?;
            self.text(c_type)?;
            self.put("\"")?;
        }
        self.put(") ")
    }

    /// `(label: Type, Type)`, or `(label:_:)`.
    fn parameters(&mut self, parameters: NodeRef, labels: Option<NodeRef>) -> fmt::Result {
        let arena = self.arena;
        let has_types = !self.style.is_simplified;
        if arena.own_kind(parameters) != Kind::Tuple {
            if !has_types {
                return self.put("(_:)");
            }
            self.put("(")?;
            self.print(parameters)?;
            return self.put(")");
        }
        let labels = labels.map(|labels| arena.children(labels)).unwrap_or_default();
        self.put("(")?;
        for (at, &element) in arena.children(parameters).iter().enumerate() {
            if at > 0 && has_types {
                self.put(", ")?;
            }
            if has_types {
                self.parameter(element, labels.get(at).copied())?;
            } else {
                let own =
                    (arena.kind(element) == Kind::TupleElement).then(|| arena.child(element, 1)).flatten();
                self.label(labels.get(at).copied().or(own))?;
            }
        }
        self.put(")")
    }

    fn parameter(&mut self, element: NodeRef, label: Option<NodeRef>) -> fmt::Result {
        let Some(label) = label else { return self.print(element) };
        self.label(Some(label))?;
        self.put(" ")?;
        if self.arena.kind(element) != Kind::TupleElement {
            return self.print(element);
        }
        // In Swift 4.0 names the label stands in the element, too.
        self.child(element, 0)?;
        if self.arena.extra(element) == 0 { Ok(()) } else { self.put("...") }
    }

    fn label(&mut self, label: Option<NodeRef>) -> fmt::Result {
        match label.filter(|&label| self.arena.own_kind(label) == Kind::Identifier) {
            Some(label) => self.text(label)?,
            None => self.put("_")?,
        }
        self.put(":")
    }

    /// `label: Type...`
    pub(super) fn tuple_element(&mut self, node: NodeRef) -> fmt::Result {
        if let Some(label) = self.arena.child(node, 1) {
            self.text(label)?;
            self.put(": ")?;
        }
        self.child(node, 0)?;
        if self.arena.extra(node) == 0 { Ok(()) } else { self.put("...") }
    }

    /// `@attributes (@convention Type) -> (@convention Type)`
    pub(super) fn impl_function_type(&mut self, node: NodeRef) -> fmt::Result {
        let arena = self.arena;
        let bits = arena.extra(node);
        let mut values = arena.children(node);
        let mut leading = [None; 4];
        let flags = [
            impl_function::HAS_PATTERN,
            impl_function::HAS_INVOCATION,
            impl_function::HAS_SIGNATURE,
            impl_function::HAS_C_TYPE,
        ];
        for (place, flag) in leading.iter_mut().zip(flags) {
            if bits & flag != 0 {
                *place = values.first().copied();
                values = values.get(1..).unwrap_or_default();
            }
        }
        let [pattern, invocation, signature, c_type] = leading;
        self.impl_attributes(bits, c_type)?;
        if let Some(signature) = signature {
            self.print(signature)?;
            self.put(" ")?;
        }
        if let Some(pattern) = pattern {
            self.put("@substituted ")?;
            self.child(pattern, 1)?;
            self.put(" ")?;
        }
        let is_parameter = |&&value: &&NodeRef| impl_function::role(arena.extra(value)) == Role::Parameter;
        let count = values.iter().take_while(is_parameter).count();
        let (parameters, results) = values.split_at(count.min(values.len()));
        self.put("(")?;
        self.list(parameters, ", ")?;
        self.put(") -> ")?;
        if bits & impl_function::SENDING_RESULT != 0 {
            self.put("sending ")?;
        }
        self.put("(")?;
        self.list(results, ", ")?;
        self.put(")")?;
        for substitutions in [pattern, invocation].into_iter().flatten() {
            self.put(" for <")?;
            if let Some(types) = arena.child(substitutions, 0) {
                self.list_of(types, ", ")?;
            }
            self.put(">")?;
        }
        Ok(())
    }

    fn impl_attributes(&mut self, bits: u32, c_type: Option<NodeRef>) -> fmt::Result {
        for (flag, text) in impl_function::BEFORE_TEXTS {
            if bits & flag != 0 {
                self.put(text)?;
            }
        }
        let differentiable = function::differentiable_letter_text(impl_function::differentiable_letter(bits));
        if !differentiable.is_empty() {
            self.put(differentiable)?;
            self.put(" ")?;
        }
        self.put(impl_function::callee_convention_text(bits))?;
        let representation = impl_function::representation_text(bits);
        if !representation.is_empty() {
            self.convention(representation, c_type)?;
        }
        self.put(impl_function::coroutine_text(bits))?;
        for (flag, text) in impl_function::AFTER_TEXTS {
            if bits & flag != 0 {
                self.put(text)?;
            }
        }
        Ok(())
    }

    /// A parameter, result, yield or error of a function type of the intermediate language.
    pub(super) fn impl_parameter(&mut self, node: NodeRef) -> fmt::Result {
        let value = self.arena.extra(node);
        self.put(match impl_function::role(value) {
            Role::Parameter | Role::Result => "",
            Role::Yield => "@yields ",
            Role::Error => "@error ",
        })?;
        self.put(impl_function::value_convention_text(value))?;
        self.put(" ")?;
        let is_set = |&(flag, _): &(u32, &str)| value & flag != 0;
        let attributes = impl_function::PARAM_TEXTS.iter().filter(|&attribute| is_set(attribute));
        // Swift's own demangler shows none of them when there are two.
        if attributes.clone().count() < 2 {
            if value & impl_function::NO_DERIVATIVE != 0 {
                self.put("@noDerivative ")?;
            }
            for &(_, text) in attributes {
                self.put(text)?;
            }
        }
        self.child(node, 0)
    }
}
