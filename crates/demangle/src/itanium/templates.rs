//! Template arguments, parameters that stand for them, and declarations of parameters; substitutions.

use super::node::{Id, Known, List, Node, ParamKind, Shape, Standard};
use super::parser::{Level, Parser};
use super::words::Word;

impl Parser<'_, '_> {
    /// `<template-args> ::= I <template-arg>* [Q <constraint>] E`
    ///
    /// The arguments of an encoding's name are what template parameters in the rest of it stand for.
    pub(super) fn template_args(&mut self, is_in_encoding: bool) -> Option<List> {
        self.expect(b'I')?;
        self.bracketed(|parser| parser.template_args_inside(is_in_encoding))
    }

    fn template_args_inside(&mut self, is_in_encoding: bool) -> Option<List> {
        if is_in_encoding {
            self.scratch.levels.truncate(self.level_base);
            self.scratch.params.truncate(self.param_base);
            self.scratch.levels.push(Level { start: self.param_base, len: 0 });
        }
        let from = self.scratch.pending.len();
        while !self.skip(b'E') {
            let arg = self.template_arg()?;
            self.scratch.pending.push(arg);
            if is_in_encoding {
                self.add_argument(arg);
            }
            if self.skip(b'Q') {
                self.constraint()?;
                self.expect(b'E')?;
                break;
            }
        }
        Some(self.finish_list(from))
    }

    /// Makes `arg` what the next template parameter of the encoding stands for.
    fn add_argument(&mut self, arg: Id) {
        let entry = match self.scratch.table.node(arg) {
            Node::QualifiedArg(inner) => inner,
            Node::ArgPack(elements) => self.pack(elements),
            _ => arg,
        };
        self.scratch.params.push(entry);
        if let Some(level) = self.scratch.levels.get_mut(self.level_base) {
            level.len += 1;
        }
    }

    /// A pack wraps around a name if any of its elements does.
    fn pack(&mut self, elements: List) -> Id {
        let mut shape = Shape::PLAIN;
        for &element in self.scratch.table.list(elements) {
            let of_element = self.scratch.table.shape(element);
            for (known, of_element) in [
                (&mut shape.right, of_element.right),
                (&mut shape.array, of_element.array),
                (&mut shape.function, of_element.function),
            ] {
                if of_element != Known::No {
                    *known = Known::Depends;
                }
            }
        }
        self.scratch.table.push_shaped(Node::Pack(elements), shape)
    }

    /// ```text
    /// <template-arg> ::= <type>
    ///                ::= X <expression> E
    ///                ::= <expr-primary>
    ///                ::= J <template-arg>* E                  # or I, by old compilers
    ///                ::= LZ <encoding> E                      # old compilers
    ///                ::= <template-param-decl> <template-arg>
    /// ```
    pub(super) fn template_arg(&mut self) -> Option<Id> {
        match self.peek(0) {
            b'X' => {
                self.at += 1;
                let arg = self.expression()?;
                self.expect(b'E')?;
                Some(arg)
            }
            // Before it had a letter of its own, gcc wrote a pack as arguments within arguments.
            b'J' | b'I' => {
                self.at += 1;
                let elements = self.nested(|parser| parser.list_to_end(Self::template_arg))?;
                Some(self.push(Node::ArgPack(elements)))
            }
            b'L' if self.peek(1) == b'Z' => {
                self.at += 2;
                let arg = self.encoding()?;
                self.expect(b'E')?;
                Some(arg)
            }
            b'L' => self.primary(),
            b'T' if self.is_at_param_declaration() => {
                self.param_declaration(None)?;
                let arg = self.nested(Self::template_arg)?;
                Some(self.push(Node::QualifiedArg(arg)))
            }
            _ => self.ty(),
        }
    }

    pub(super) fn is_at_param_declaration(&self) -> bool {
        self.peek(0) == b'T' && matches!(self.peek(1), b'y' | b'p' | b't' | b'n' | b'k')
    }

    /// ```text
    /// <template-param-decl> ::= Ty                                  # type
    ///                       ::= Tk <concept name> [<template-args>] # constrained type
    ///                       ::= Tn <type>                           # non-type
    ///                       ::= Tt <template-param-decl>* [Q <constraint>] E
    ///                       ::= Tp <template-param-decl>            # pack
    /// ```
    ///
    /// The parameter becomes the next of `level`.
    pub(super) fn param_declaration(&mut self, level: Option<usize>) -> Option<Id> {
        self.expect(b'T')?;
        let kind = self.peek(0);
        self.at += 1;
        match kind {
            b'y' => {
                let name = self.invented_name(ParamKind::Type, level);
                Some(self.push_declaration(Node::TypeParam(name)))
            }
            b'k' => {
                let in_constraint = core::mem::replace(&mut self.in_constraint, true);
                let constraint = self.name(None)?;
                self.in_constraint = in_constraint;
                let name = self.invented_name(ParamKind::Type, level);
                Some(self.push_declaration(Node::ConstrainedParam { constraint, name }))
            }
            b'n' => {
                let name = self.invented_name(ParamKind::NonType, level);
                let ty = self.ty()?;
                Some(self.push_declaration(Node::NonTypeParam { name, ty }))
            }
            b't' => self.nested(|parser| parser.template_param_declaration(level)),
            b'p' => {
                let param = self.nested(|parser| parser.param_declaration(level))?;
                Some(self.push_declaration(Node::PackParam(param)))
            }
            _ => None,
        }
    }

    fn push_declaration(&mut self, node: Node) -> Id {
        self.scratch.table.push_shaped(node, Shape::DECLARES)
    }

    fn template_param_declaration(&mut self, level: Option<usize>) -> Option<Id> {
        let name = self.invented_name(ParamKind::Template, level);
        let own_level = self.scratch.levels.len();
        let params_from = self.scratch.params.len();
        self.scratch.levels.push(Level { start: params_from, len: 0 });
        let from = self.scratch.pending.len();
        let mut requires = None;
        while !self.skip(b'E') {
            let param = self.param_declaration(Some(own_level))?;
            self.scratch.pending.push(param);
            if self.skip(b'Q') {
                requires = Some(self.constraint()?);
                self.expect(b'E')?;
                break;
            }
        }
        self.scratch.levels.truncate(own_level);
        self.scratch.params.truncate(params_from);
        let params = self.finish_list(from);
        Some(self.push_declaration(Node::TemplateParam { name, params, requires }))
    }

    /// Names a template parameter, which has no name in the mangled one: `$T`, `$T0`, `$N`, `$TT`.
    fn invented_name(&mut self, kind: ParamKind, level: Option<usize>) -> Id {
        let [types, values, templates] = &mut self.invented;
        let count = match kind {
            ParamKind::Type => types,
            ParamKind::NonType => values,
            ParamKind::Template => templates,
        };
        let index = *count;
        *count += 1;
        let name = self.push(Node::InventedParam { kind, index });
        if let Some(level) = level.and_then(|level| self.scratch.levels.get_mut(level)) {
            level.len += 1;
            self.scratch.params.push(name);
        }
        name
    }

    /// ```text
    /// <template-param> ::= T_ | T <number> _
    ///                  ::= TL <level-1> __ | TL <level-1> _ <number> _
    /// ```
    pub(super) fn template_param(&mut self) -> Option<Id> {
        let from = self.at;
        self.expect(b'T')?;
        let mut level = 0;
        if self.skip(b'L') {
            level = self.value()?.checked_add(1)?;
            self.expect(b'_')?;
        }
        let mut index = 0;
        if !self.skip(b'_') {
            index = self.value()?.checked_add(1)?;
            self.expect(b'_')?;
        }
        if self.in_constraint {
            // Not all enclosing levels are known here; LLVM shows the parameter as it is mangled.
            let span = self.span(from, self.at - 1);
            return Some(self.push(Node::Source(span)));
        }
        if self.takes_forwards && level == 0 {
            let index = u32::try_from(index).ok()?;
            let node = Node::Forward { target: None };
            let forward = self.scratch.table.push_shaped(node, Shape::DEPENDS);
            self.scratch.forwards.push((forward, index));
            self.has_forwards = true;
            return Some(forward);
        }
        let outer = || self.outer_level.and_then(|base| self.argument(base, level, index));
        if let Some(argument) = self.argument(self.level_base, level, index).or_else(outer) {
            self.scratch.table.reuse(argument);
            return Some(argument);
        }
        self.lambda_auto(level)
    }

    /// What the parameter stands for, in the encoding whose levels start at `base`.
    fn argument(&self, base: usize, level: usize, index: usize) -> Option<Id> {
        let level = self.scratch.levels.get(base.checked_add(level)?)?;
        if index >= level.len {
            return None;
        }
        self.scratch.params.get(level.start + index).copied()
    }

    /// The `auto` parameter of a generic lambda, mangled as the template parameter that it makes.
    fn lambda_auto(&mut self, level: usize) -> Option<Id> {
        let levels = self.scratch.levels.len() - self.level_base;
        if self.lambda_level != Some(level) || level > levels {
            return None;
        }
        if level == levels {
            self.scratch.levels.push(Level { start: 0, len: 0 });
        }
        Some(Word::AUTO.id())
    }

    /// A constraint, in which all levels of template parameters may be named.
    pub(super) fn constraint(&mut self) -> Option<Id> {
        let in_constraint = core::mem::replace(&mut self.in_constraint, true);
        let constraint = self.expression()?;
        self.in_constraint = in_constraint;
        Some(constraint)
    }

    /// ```text
    /// <substitution> ::= S_ | S <seq-id> _
    ///                ::= Sa | Sb | Ss | Si | So | Sd
    /// ```
    ///
    /// `St` is read where names are.
    pub(super) fn substitution(&mut self) -> Option<Id> {
        self.expect(b'S')?;
        let letter = self.peek(0);
        if letter.is_ascii_lowercase() {
            return self.standard_substitution(letter);
        }
        let index = if letter == b'_' { 0 } else { self.sequence_id()?.checked_add(1)? };
        self.expect(b'_')?;
        let part = *self.scratch.substitutions.get(index)?;
        self.scratch.table.reuse(part);
        Some(part)
    }

    fn standard_substitution(&mut self, letter: u8) -> Option<Id> {
        let standard = match letter {
            b'a' => Standard::Allocator,
            b'b' => Standard::BasicString,
            b's' => Standard::String,
            b'i' => Standard::Istream,
            b'o' => Standard::Ostream,
            b'd' => Standard::Iostream,
            _ => return None,
        };
        self.at += 1;
        let plain = self.push(Node::Standard(standard));
        let tagged = self.abi_tags(plain)?;
        if tagged != plain {
            // With a tag it is a component like any other.
            self.remember(tagged);
        }
        Some(tagged)
    }
}
