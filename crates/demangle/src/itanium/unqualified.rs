//! The last parts of names: of lambdas, operators, constructors, structured bindings.

use super::dialect::Dialect;
use super::node::{Id, List, Node};
use super::operators::{Operator, Usage};
use super::parser::{Level, NameState, Parser};
use super::words::Word;

impl Parser<'_, '_> {
    pub(super) fn structured_binding(&mut self) -> Option<Id> {
        let from = self.scratch.pending.len();
        loop {
            let name = self.source_name()?;
            self.scratch.pending.push(name);
            if self.skip(b'E') {
                let names = self.finish_list(from);
                return Some(self.push(Node::StructuredBinding(names)));
            }
        }
    }

    /// ```text
    /// <unnamed-type-name> ::= Ut [<number>] _
    ///                     ::= Ul <lambda-sig> E [<number>] _
    ///                     ::= Ub [<number>] _
    /// ```
    pub(super) fn unnamed_type_name(&mut self, is_in_encoding: bool) -> Option<Id> {
        if is_in_encoding {
            // Template parameters belong to the innermost arguments.
            self.scratch.levels.truncate(self.level_base);
        }
        self.expect(b'U')?;
        let kind = self.peek(0);
        self.at += 1;
        match kind {
            b't' => {
                let count = self.digits();
                self.expect(b'_')?;
                Some(self.push(Node::UnnamedType(count)))
            }
            b'l' => {
                let signature = self.lambda_signature()?;
                let count = self.digits();
                self.expect(b'_')?;
                Some(self.push(Node::Closure { signature, count }))
            }
            b'b' => {
                self.digits();
                self.expect(b'_')?;
                Some(Word::BLOCK_LITERAL.id())
            }
            _ => None,
        }
    }

    /// `<lambda-sig> ::= <template-param-decl>* [Q <constraint>] <type>+ [Q <constraint>] E`, where `v` is no
    /// parameters.
    fn lambda_signature(&mut self) -> Option<Id> {
        let level = self.scratch.levels.len();
        let outer_lambda = self.lambda_level.replace(level - self.level_base);
        let params_from = self.scratch.params.len();
        self.scratch.levels.push(Level { start: params_from, len: 0 });

        let templates = self.list_until(
            |parser| !parser.is_at_param_declaration(),
            |parser| parser.param_declaration(Some(level)),
        )?;
        // Without explicit template parameters there is no level for them, unless an `auto` makes one.
        if self.scratch.table.list(templates).is_empty() {
            self.scratch.levels.truncate(level);
        }
        let before = if self.skip(b'Q') { Some(self.constraint()?) } else { None };
        let params = self.lambda_params()?;
        let behind = if self.skip(b'Q') { Some(self.constraint()?) } else { None };
        self.expect(b'E')?;

        self.scratch.levels.truncate(level);
        self.scratch.params.truncate(params_from);
        self.lambda_level = outer_lambda;
        let requires = (before.is_some() || behind.is_some())
            .then(|| self.push(Node::SignatureRequires { before, behind }));
        Some(self.push(Node::Signature { templates, params, requires }))
    }

    fn lambda_params(&mut self) -> Option<List> {
        if self.skip(b'v') {
            return Some(List::EMPTY);
        }
        let from = self.scratch.pending.len();
        loop {
            let ty = self.ty()?;
            self.scratch.pending.push(ty);
            if matches!(self.peek(0), b'E' | b'Q') {
                return Some(self.finish_list(from));
            }
        }
    }

    /// ```text
    /// <operator-name> ::= <two letters>
    ///                 ::= cv <type>               # conversion
    ///                 ::= li <source-name>        # literal
    ///                 ::= v <digit> <source-name> # a vendor's
    /// ```
    pub(super) fn operator_name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        if let Some(operator) = Operator::by_code(self.peek(0), self.peek(1)) {
            self.at += 2;
            if operator.usage() == Usage::Conversion {
                return self.conversion_name(state);
            }
            return operator.is_nameable().then(|| self.push(Node::OperatorName(operator)));
        }
        if self.skip_text(b"li") {
            let name = self.source_name()?;
            return Some(self.push(Node::LiteralOperator(name)));
        }
        self.expect(b'v')?;
        if !self.peek(0).is_ascii_digit() {
            return None;
        }
        self.at += 1;
        let name = self.source_name()?;
        Some(self.push(Node::Conversion(name)))
    }

    fn conversion_name(&mut self, state: Option<&mut NameState>) -> Option<Id> {
        let takes_args = core::mem::replace(&mut self.takes_args, false);
        let takes_forwards = self.takes_forwards;
        self.takes_forwards |= state.is_some();
        let ty = self.ty()?;
        self.takes_args = takes_args;
        self.takes_forwards = takes_forwards;
        if let Some(state) = state {
            state.is_without_return_type = true;
        }
        Some(self.push(Node::Conversion(ty)))
    }

    /// ```text
    /// <ctor-dtor-name> ::= C [I] <1-5> [<base class name>]
    ///                  ::= D <0-2, 4, 5>
    /// ```
    pub(super) fn constructor_or_destructor(
        &mut self,
        class: Id,
        mut state: Option<&mut NameState>,
    ) -> Option<Id> {
        if let Some(state) = state.as_deref_mut() {
            state.is_without_return_type = true;
        }
        if self.skip(b'C') {
            let is_inherited = self.skip(b'I');
            if !matches!(self.peek(0), b'1'..=b'5') {
                return None;
            }
            self.at += 1;
            if is_inherited && self.dialect == Dialect::Gcc {
                self.ty()?;
            } else if is_inherited {
                self.name(state)?;
            }
            return Some(self.push(Node::Constructor(class)));
        }
        self.expect(b'D')?;
        if !matches!(self.peek(0), b'0' | b'1' | b'2' | b'4' | b'5') {
            return None;
        }
        self.at += 1;
        Some(self.push(Node::Destructor(class)))
    }
}
