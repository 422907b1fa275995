//! Encodings and names.

use super::{Direct, Kind, State, Text};
use crate::itanium::node::Reference;
use crate::itanium::operators::{Operator, Usage};
use crate::itanium::words::Word;

impl Direct<'_, '_> {
    pub(super) fn encoding(&mut self) -> Option<()> {
        let outer = self.args_from.take();
        let args_from = self.buffers.args.len();
        self.nested(|direct| direct.encoding_inside(args_from))?;
        self.buffers.args.truncate(args_from);
        self.args_from = outer;
        Some(())
    }

    fn encoding_inside(&mut self, args_from: usize) -> Option<()> {
        if matches!(self.peek(0), b'G' | b'T') {
            return self.special_name();
        }
        let mut state = State::default();
        let start = self.here();
        let substitutions_from = self.buffers.substitutions.len();
        self.name(Some((&mut state, args_from)))?;
        if self.is_at_encoding_end() {
            return Some(());
        }
        if state.ends_with_args && !state.is_without_return_type {
            let middle = self.here();
            if !matches!(self.ty()?, Kind::Plain | Kind::LValueReference | Kind::RValueReference) {
                return None;
            }
            self.push(b" ");
            self.bring_forward(start, middle, substitutions_from, args_from)?;
        }
        self.parameters()?;
        self.trailer(&state);
        Some(())
    }

    fn parameters(&mut self) -> Option<()> {
        self.push(b"(");
        let from = self.here();
        if !self.skip(b'v') {
            loop {
                let start = self.comma(from);
                self.ty()?;
                self.uncomma(from, start);
                if self.is_at_encoding_end() {
                    break;
                }
            }
        }
        self.push(b")");
        Some(())
    }

    fn trailer(&mut self, state: &State) {
        if state.qualifiers.is_const {
            self.push(b" const");
        }
        if state.qualifiers.is_volatile {
            self.push(b" volatile");
        }
        if state.qualifiers.is_restrict {
            self.push(b" restrict");
        }
        match state.reference {
            Some(Reference::LValue) => self.push(b" &"),
            Some(Reference::RValue) => self.push(b" &&"),
            None => {}
        }
    }

    fn special_name(&mut self) -> Option<()> {
        let (first, second) = (self.peek(0), self.peek(1));
        self.at += 2;
        let what = match (first, second) {
            (b'T', b'V') => Word::VTABLE,
            (b'T', b'T') => Word::VTT,
            (b'T', b'I') => Word::TYPEINFO,
            (b'T', b'S') => Word::TYPEINFO_NAME,
            (b'T', b'h' | b'v') => return self.thunk(second),
            (b'G', b'V') => Word::GUARD,
            _ => return None,
        };
        self.push(what.text().as_bytes());
        if first == b'T' {
            self.ty()?;
        } else {
            self.name(None)?;
        }
        Some(())
    }

    fn thunk(&mut self, kind: u8) -> Option<()> {
        self.at -= 1;
        self.call_offset()?;
        let what = if kind == b'v' { Word::VIRTUAL_THUNK } else { Word::NON_VIRTUAL_THUNK };
        self.push(what.text().as_bytes());
        self.encoding()
    }

    /// A name; answers what its constructors would be called. It is that of an encoding, if
    /// there is a state, with the place where its template
    /// arguments are to be kept.
    pub(super) fn name(&mut self, state: Option<(&mut State, usize)>) -> Option<Text> {
        self.nested(|direct| match direct.peek(0) {
            b'N' => direct.nested_name(state),
            b'Z' => direct.local_name(state),
            _ => direct.unscoped_name(state),
        })
    }

    fn unscoped_name(&mut self, mut state: Option<(&mut State, usize)>) -> Option<Text> {
        let start = self.here();
        let is_substitution = self.peek(0) == b'S' && self.peek(1) != b't';
        let base = if is_substitution {
            self.substitution()?;
            self.substituted
        } else {
            if self.skip_text(b"St") {
                self.push(b"std::");
            }
            self.unqualified_name(&mut state)?
        };
        if self.peek(0) != b'I' {
            return (!is_substitution).then_some(base);
        }
        if !is_substitution {
            self.remember(start, base, Kind::Plain);
        }
        self.template_args(state.as_ref().map(|(_, args_from)| *args_from))?;
        if let Some((state, _)) = state {
            state.ends_with_args = true;
        }
        Some(base)
    }

    fn nested_name(&mut self, mut state: Option<(&mut State, usize)>) -> Option<Text> {
        self.expect(b'N')?;
        if matches!(self.peek(0), b'r' | b'V' | b'K' | b'R' | b'O' | b'H') {
            let (state, _) = state.as_mut()?;
            state.qualifiers = self.qualifiers();
            state.reference = match self.peek(0) {
                b'O' => Some(Reference::RValue),
                b'R' => Some(Reference::LValue),
                b'H' => return None,
                _ => None,
            };
            self.at += usize::from(state.reference.is_some());
        }
        let start = self.here();
        let mut base = Text::NONE;
        let mut is_first = true;
        while !self.skip(b'E') {
            let first = self.peek(0);
            if first == b'I' {
                // Arguments behind arguments are no name; an operator that ends like that is rare.
                if is_first || self.out.last() == Some(&b'>') {
                    return None;
                }
                self.template_args(state.as_ref().map(|(_, args_from)| *args_from))?;
                if let Some((state, _)) = &mut state {
                    state.ends_with_args = true;
                }
                self.remember(start, base, Kind::Plain);
                continue;
            }
            if let Some((state, _)) = &mut state {
                state.ends_with_args = false;
            }
            if is_first && matches!(first, b'S' | b'T') {
                is_first = false;
                base = self.first_scope(first)?;
                continue;
            }
            if !is_first {
                self.push(b"::");
            }
            base = match first {
                b'1'..=b'9' => self.source_name()?,
                b'C' | b'D' => self.constructor_or_destructor(base, &mut state)?,
                _ => self.unqualified_name(&mut state)?,
            };
            if self.peek(0) == b'B' {
                self.tags()?;
            }
            is_first = false;
            self.remember(start, base, Kind::Plain);
            if self.peek(0) == b'M' {
                return None;
            }
        }
        // A name that is only a substitution has remembered nothing.
        if is_first {
            return None;
        }
        self.buffers.substitutions.pop()?;
        Some(base)
    }

    /// A substitution or template parameter in front of a nested name.
    fn first_scope(&mut self, first: u8) -> Option<Text> {
        let base = match (first, self.peek(1)) {
            (b'S', b't') => {
                self.at += 2;
                self.push(b"std");
                Text::NONE
            }
            (b'S', _) => {
                self.substitution()?;
                self.substituted
            }
            _ => {
                let start = self.here();
                let kind = self.template_param()?;
                self.remember(start, Text::NONE, kind);
                Text::NONE
            }
        };
        // What is a name only in front of a longer one is left to the general way.
        (self.peek(0) != b'E').then_some(base)
    }

    fn constructor_or_destructor(
        &mut self,
        class: Text,
        state: &mut Option<(&mut State, usize)>,
    ) -> Option<Text> {
        let is_destructor = self.peek(0) == b'D';
        if class == Text::NONE || !matches!(self.peek(1), b'0'..=b'5') {
            return None;
        }
        let variants: &[u8] = if is_destructor { b"01245" } else { b"12345" };
        if !variants.contains(&self.peek(1)) {
            return None;
        }
        self.at += 2;
        if let Some((state, _)) = state {
            state.is_without_return_type = true;
        }
        if is_destructor {
            self.push(b"~");
        }
        self.write_again(class)?;
        // A constructor has no members with constructors.
        Some(Text::NONE)
    }

    /// An identifier, operator, lambda or unnamed type; answers what a constructor of it would be called.
    fn unqualified_name(&mut self, state: &mut Option<(&mut State, usize)>) -> Option<Text> {
        let is_internal = self.skip(b'L');
        let base = match self.peek(0) {
            b'1'..=b'9' => {
                let base = self.source_name()?;
                // What gcc appends to tell apart internal names.
                if is_internal && self.peek(0) == b'_' {
                    return None;
                }
                base
            }
            b'a'..=b'z' => {
                self.operator_name(state)?;
                Text::NONE
            }
            b'U' => {
                self.unnamed_type_name(state.is_some())?;
                Text::NONE
            }
            _ => return None,
        };
        if self.peek(0) == b'B' {
            self.tags()?;
        }
        Some(base)
    }

    #[inline]
    fn source_name(&mut self) -> Option<Text> {
        let span = self.identifier()?;
        let start = self.here();
        if self.is_anonymous(span) {
            self.push(Word::ANONYMOUS.text().as_bytes());
        } else {
            let text = self.text(span);
            self.push(text);
        }
        Some(Text::new(start, self.here()))
    }

    fn tags(&mut self) -> Option<()> {
        while self.skip(b'B') {
            let tag = self.identifier()?;
            let tag = self.text(tag);
            self.push(b"[abi:");
            self.push(tag);
            self.push(b"]");
        }
        Some(())
    }

    fn operator_name(&mut self, state: &mut Option<(&mut State, usize)>) -> Option<()> {
        let operator = Operator::by_code(self.peek(0), self.peek(1))?;
        self.at += 2;
        if operator.usage() == Usage::Conversion {
            // To a builtin type: others may name template arguments that come later.
            let to = Word::builtin(self.peek(0))?;
            self.at += 1;
            self.push(b"operator ");
            self.push(to.text().as_bytes());
            if let Some((state, _)) = state {
                state.is_without_return_type = true;
            }
            return Some(());
        }
        if !operator.is_nameable() {
            return None;
        }
        self.push(if operator.is_word() { b"operator " } else { b"operator" });
        self.push(operator.symbol().as_bytes());
        Some(())
    }

    fn unnamed_type_name(&mut self, is_in_encoding: bool) -> Option<()> {
        if is_in_encoding {
            // Template parameters belong to the innermost arguments.
            self.args_from = None;
        }
        let kind = self.peek(1);
        self.at += 2;
        let signature = self.here();
        let substitutions_from = self.buffers.substitutions.len();
        match kind {
            b't' => {}
            b'l' => self.nested(Self::lambda_params)?,
            _ => return None,
        }
        let middle = self.here();
        let count = self.digits();
        self.expect(b'_')?;
        self.push(if kind == b'l' { b"'lambda" } else { b"'unnamed" });
        let count = self.text(count);
        self.push(count);
        self.push(b"'");
        self.bring_forward(signature, middle, substitutions_from, self.buffers.args.len())
    }

    fn lambda_params(&mut self) -> Option<()> {
        // Explicit template parameters, constraints, and lambdas in a lambda's parameters
        if self.lambda_level.is_some() || (self.peek(0) == b'T' && self.peek(1).is_ascii_lowercase()) {
            return None;
        }
        self.lambda_level = Some(usize::from(self.args_from.is_some()));
        self.push(b"(");
        let from = self.here();
        if self.skip(b'v') {
            self.expect(b'E')?;
        } else {
            loop {
                let start = self.comma(from);
                self.ty()?;
                self.uncomma(from, start);
                if self.skip(b'E') {
                    break;
                }
            }
        }
        self.push(b")");
        self.lambda_level = None;
        Some(())
    }

    fn local_name(&mut self, state: Option<(&mut State, usize)>) -> Option<Text> {
        self.expect(b'Z')?;
        self.encoding()?;
        self.expect(b'E')?;
        self.push(b"::");
        if self.skip(b's') {
            self.discriminator();
            self.push(Word::STRING_LITERAL.text().as_bytes());
            return Some(Text::NONE);
        }
        if self.peek(0) == b'd' {
            return None;
        }
        if state.is_some() {
            self.name(state)?;
        } else {
            let outer = self.args_from.take();
            self.name(None)?;
            self.args_from = outer;
        }
        self.discriminator();
        Some(Text::NONE)
    }
}
