//! Names: nested, local, in modules.

use super::node::{Id, List, Node, Reference};
use super::parser::{NameState, Parser};
use super::words::Word;

impl Parser<'_, '_> {
    /// ```text
    /// <name> ::= <nested-name>
    ///        ::= <local-name>
    ///        ::= <unscoped-template-name> <template-args>
    ///        ::= <unscoped-name>
    /// ```
    pub(super) fn name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        self.nested(|parser| match parser.peek(0) {
            b'N' => parser.nested_name(state),
            b'Z' => parser.local_name(state),
            _ => parser.unscoped_or_template_name(state),
        })
    }

    fn unscoped_or_template_name(&mut self, mut state: Option<&mut NameState>) -> Option<Id> {
        let (name, is_substitution) = self.unscoped_name(state.as_deref_mut())?;
        if !is_substitution && self.peek(0) == b'M' && self.peek(1) == b'U' && self.peek(2) == b'l' {
            // A lambda of a variable without scope, by clang.
            self.at += 1;
            return self.unqualified_name(state, Some(name), None);
        }
        if self.peek(0) == b'I' {
            if !is_substitution {
                self.remember(name);
            }
            let args = self.template_args(state.is_some())?;
            if let Some(state) = state {
                state.ends_with_args = true;
            }
            return Some(self.push(Node::Templated { name, args }));
        }
        // A substitution is a name only where arguments make it one.
        (!is_substitution).then_some(name)
    }

    /// `<local-name> ::= Z <function encoding> E <entity name> [<discriminator>]`, where `s` is a string literal and
    /// `d [<parameter number>] _` comes in front of an entity in a default argument.
    fn local_name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        self.expect(b'Z')?;
        let function = self.encoding()?;
        self.expect(b'E')?;
        let entity = if self.skip(b's') {
            self.discriminator();
            Word::STRING_LITERAL.id()
        } else {
            self.local_entity_in_scope(state)?
        };
        Some(self.push(Node::Local { function, entity }))
    }

    /// The entity's template arguments stay known to the rest of an encoding that it names; elsewhere they have
    /// nothing to do with what is around them.
    fn local_entity_in_scope(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        match state {
            Some(state) => self.local_entity(Some(state)),
            None => self.with_own_params(|parser| parser.local_entity(None)),
        }
    }

    fn local_entity(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        if self.skip(b'd') {
            self.number();
            self.expect(b'_')?;
            return self.name(state);
        }
        let entity = self.name(state)?;
        self.discriminator();
        Some(entity)
    }

    /// `<unscoped-name> ::= [St] <unqualified-name> | <substitution>`; tells whether it is a substitution.
    pub(super) fn unscoped_name(&mut self, state: Option<&mut NameState>) -> Option<(Id, bool)> {
        let scope = self.skip_text(b"St").then(|| Word::STD.id());
        let mut module = None;
        if self.peek(0) == b'S' {
            let substitution = self.substitution()?;
            match self.scratch.table.node(substitution) {
                Node::Module { .. } => module = Some(substitution),
                _ if scope.is_none() => return Some((substitution, true)),
                _ => return None,
            }
        }
        Some((self.unqualified_name(state, scope, module)?, false))
    }

    /// ```text
    /// <unqualified-name> ::= [<module-name>] [F] [L] <operator-name> [<abi-tags>]
    ///                    ::= [<module-name>] <ctor-dtor-name> [<abi-tags>]
    ///                    ::= [<module-name>] [F] [L] <source-name> [<abi-tags>]
    ///                    ::= [<module-name>] [L] <unnamed-type-name> [<abi-tags>]
    ///                    ::= [<module-name>] [L] DC <source-name>+ E
    /// ```
    fn unqualified_name(
        &mut self,
        state: Option<&mut NameState>,
        scope: Option<Id>,
        module: Option<Id>,
    ) -> Option<Id> {
        let (mut scope, mut module, mut is_friend, mut is_internal) = (scope, module, false, false);
        if matches!(self.peek(0), b'W' | b'F' | b'L') {
            module = if self.peek(0) == b'W' { Some(self.module_name(module)?) } else { module };
            is_friend = scope.is_some() && self.skip(b'F');
            is_internal = self.skip(b'L');
        }
        let mut name = match self.peek(0) {
            b'1'..=b'9' => {
                let name = self.source_name()?;
                if is_internal {
                    // gcc tells apart the names of the same spelling in one file.
                    self.discriminator();
                }
                name
            }
            b'U' => self.unnamed_type_name(state.is_some())?,
            b'D' if self.skip_text(b"DC") => self.structured_binding()?,
            b'C' | b'D' => {
                if module.is_some() {
                    return None;
                }
                let class = self.written_out(scope?);
                scope = Some(class);
                self.constructor_or_destructor(class, state)?
            }
            _ => self.operator_name(state)?,
        };
        if let Some(module) = module {
            name = self.push(Node::InModule { module, name });
        }
        if self.peek(0) == b'B' {
            name = self.abi_tags(name)?;
        }
        Some(match scope {
            Some(scope) if is_friend => self.push(Node::Friend { scope, name }),
            Some(scope) => self.push(Node::Nested { scope, name }),
            None => name,
        })
    }

    /// `Ss` in front of a constructor's name stands for the whole template, not for the typedef.
    fn written_out(&mut self, class: Id) -> Id {
        match self.scratch.table.node(class) {
            Node::Standard(standard) => self.push(Node::StandardExpanded(standard)),
            _ => class,
        }
    }

    /// `<module-name> ::= (W [P] <source-name>)+`, behind the part of it that is known.
    pub(super) fn module_name(&mut self, mut module: Option<Id>) -> Option<Id> {
        while self.skip(b'W') {
            let is_partition = self.skip(b'P');
            let name = self.source_name()?;
            let longer = self.push(Node::Module { parent: module, name, is_partition });
            self.remember(longer);
            module = Some(longer);
        }
        module
    }

    /// ```text
    /// <nested-name> ::= N [H | <CV-qualifiers> [<ref-qualifier>]] <prefix> <unqualified-name> E
    ///               ::= N [H | <CV-qualifiers> [<ref-qualifier>]] <template-prefix> <template-args> E
    /// ```
    fn nested_name(&mut self, mut state: Option<&mut NameState>) -> Option<Id> {
        self.expect(b'N')?;
        self.nested_qualifiers(state.as_deref_mut());
        let mut name = None;
        while !self.skip(b'E') {
            if let Some(state) = state.as_deref_mut() {
                state.ends_with_args = false;
            }
            let (longer, is_substitution) = self.prefix(name, state.as_deref_mut())?;
            name = Some(longer);
            if !is_substitution {
                self.remember(longer);
                // <data-member-prefix>, which no compiler writes any more.
                self.skip(b'M');
            }
        }
        // The whole name is remembered by whoever needs it, not here.
        self.scratch.substitutions.pop()?;
        name
    }

    /// `H | <extended-qualifier>* <CV-qualifiers> [<ref-qualifier>]`
    fn nested_qualifiers(&mut self, state: Option<&mut NameState>) {
        // Most names have none, and most of those go on with a length, a substitution or `St`.
        let has_explicit_object = self.skip(b'H');
        let vendor_qualifiers = self.method_qualifiers();
        let has_qualifiers = !has_explicit_object && matches!(self.peek(0), b'r' | b'V' | b'K' | b'O' | b'R');
        let (qualifiers, reference) =
            if has_qualifiers { (self.qualifiers(), self.ref_qualifier()) } else { Default::default() };
        if let Some(state) = state {
            state.vendor_qualifiers = vendor_qualifiers;
            if has_explicit_object {
                state.has_explicit_object = true;
            } else {
                state.qualifiers = qualifiers;
                state.reference = reference;
            }
        }
    }

    /// `(U <source-name>)*`: clang's address spaces and `__unaligned`.
    fn method_qualifiers(&mut self) -> Option<Id> {
        if self.peek(0) != b'U' || !self.peek(1).is_ascii_digit() {
            return None;
        }
        let from = self.scratch.pending.len();
        while self.peek(0) == b'U' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            let qualifier = self.source_name()?;
            self.scratch.pending.push(qualifier);
        }
        let qualifiers = self.finish_list(from);
        Some(self.push(Node::MethodQualifiers(qualifiers)))
    }

    fn ref_qualifier(&mut self) -> Option<Reference> {
        if self.skip(b'O') {
            Some(Reference::RValue)
        } else if self.skip(b'R') {
            Some(Reference::LValue)
        } else {
            None
        }
    }

    /// One more component of a nested name; tells whether it is a substitution.
    ///
    /// ```text
    /// <prefix> ::= <unqualified-name> | <prefix> <unqualified-name>
    ///          ::= <template-prefix> <template-args>
    ///          ::= <template-param> | <decltype> | <substitution>
    /// ```
    fn prefix(&mut self, scope: Option<Id>, state: Option<&mut NameState>) -> Option<(Id, bool)> {
        let is_first = scope.is_none();
        match (self.peek(0), self.peek(1)) {
            (b'1'..=b'9', _) => {
                let name = self.identifier()?;
                let Some(scope) = scope else {
                    let name = self.push_source(name);
                    return Some((self.abi_tags(name)?, false));
                };
                // The most common case has a node of its own.
                if self.peek(0) != b'B' && !self.is_anonymous(name) {
                    return Some((self.push(Node::Inside { scope, name }), false));
                }
                let name = self.push_source(name);
                let name = self.abi_tags(name)?;
                Some((self.push(Node::Nested { scope, name }), false))
            }
            (b'T', _) => is_first.then(|| self.template_param()).flatten().map(|param| (param, false)),
            (b'I', _) => {
                let mut name = scope?;
                if let Node::Templated { name: conversion, args } = self.scratch.table.node(name) {
                    name = self.conversion_to_template(conversion, args)?;
                }
                let args = self.template_args(state.is_some())?;
                if let Some(state) = state {
                    state.ends_with_args = true;
                }
                Some((self.push(Node::Templated { name, args }), false))
            }
            (b'D', b't' | b'T') => is_first.then(|| self.decltype()).flatten().map(|ty| (ty, false)),
            (b'S', second) => {
                let substitution = if second == b't' {
                    self.at += 2;
                    Word::STD.id()
                } else {
                    self.substitution()?
                };
                match self.scratch.table.node(substitution) {
                    Node::Module { .. } => {
                        Some((self.unqualified_name(state, scope, Some(substitution))?, false))
                    }
                    // clang may write the scope of a dependent template, and then the whole template.
                    Node::Inside { scope: inner, .. } | Node::Nested { scope: inner, .. }
                        if scope == Some(inner) =>
                    {
                        Some((substitution, true))
                    }
                    _ => is_first.then_some((substitution, true)),
                }
            }
            _ => Some((self.unqualified_name(state, scope, None)?, false)),
        }
    }

    /// Two argument lists follow a conversion to what a template template parameter makes (`operator T<int>`): the
    /// first, taken for the conversion's own, belongs to its type.
    fn conversion_to_template(&mut self, conversion: Id, args: List) -> Option<Id> {
        let Node::Nested { scope, name } = self.scratch.table.node(conversion) else { return None };
        let Node::Conversion(ty) = self.scratch.table.node(name) else { return None };
        let ty = self.push(Node::Templated { name: ty, args });
        let name = self.push(Node::Conversion(ty));
        let conversion = self.push(Node::Nested { scope, name });
        // The type can be substituted, then the conversion.
        let [.., of_type, of_conversion] = self.scratch.substitutions.as_mut_slice() else { return None };
        *of_type = ty;
        *of_conversion = conversion;
        Some(conversion)
    }

    /// `<abi-tags> ::= (B <source-name>)*`
    pub(super) fn abi_tags(&mut self, name: Id) -> Option<Id> {
        let mut tagged = name;
        while self.peek(0) == b'B' && self.peek(1).is_ascii_digit() {
            self.at += 1;
            let tag = self.identifier()?;
            let shape = self.scratch.table.shape(tagged);
            tagged = self.scratch.table.push_shaped(Node::AbiTag { base: tagged, tag }, shape);
        }
        Some(tagged)
    }
}
