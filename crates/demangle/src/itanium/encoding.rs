//! Encodings: functions with their parameters, data, and what the compiler makes for itself.

use super::node::{Id, List, Node, Shape, Trailer};
use super::parser::{NameState, Parser};
use super::words::Word;

impl Parser<'_, '_> {
    /// ```text
    /// <encoding> ::= <function name> <bare-function-type> [Q <constraint-expression>]
    ///            ::= <data name>
    ///            ::= <special-name>
    /// ```
    pub(super) fn encoding(&mut self) -> Option<Id> {
        self.nested(|parser| parser.with_own_params(Self::encoding_inside))
    }

    /// The encoding of a template argument, which may use the parameters of the encoding around it.
    pub(super) fn encoding_of_argument(&mut self) -> Option<Id> {
        let outer_level = self.level_base;
        self.nested(|parser| {
            parser.with_own_params(|parser| {
                parser.outer_level = Some(outer_level);
                parser.encoding_inside()
            })
        })
    }

    /// Reads a part whose template parameters have nothing to do with those around it.
    pub(super) fn with_own_params<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let (level_base, param_base, outer_level) =
            (self.level_base, self.param_base, self.outer_level.take());
        self.level_base = self.scratch.levels.len();
        self.param_base = self.scratch.params.len();
        let part = read(self)?;
        self.scratch.levels.truncate(self.level_base);
        self.scratch.params.truncate(self.param_base);
        self.level_base = level_base;
        self.param_base = param_base;
        self.outer_level = outer_level;
        Some(part)
    }

    fn encoding_inside(&mut self) -> Option<Id> {
        if matches!(self.peek(0), b'G' | b'T') {
            return self.special_name();
        }
        let mut state = NameState::default();
        let forwards_from = self.scratch.forwards.len();
        let name = self.name(Some(&mut state))?;
        self.resolve_forwards(forwards_from)?;
        if self.is_at_encoding_end() {
            return Some(name);
        }
        self.function(name, &state)
    }

    fn function(&mut self, name: Id, state: &NameState) -> Option<Id> {
        let attributes =
            if self.skip_text(b"Ua9enable_ifI") { Some(self.enable_if()?) } else { state.vendor_qualifiers };
        // gcj says by a letter that a return type follows.
        let has_return_type = self.skip(b'J') || (state.ends_with_args && !state.is_without_return_type);
        let returns = if has_return_type { Some(self.ty()?) } else { None };
        let params = self.parameters(state.has_explicit_object)?;
        let requires = if self.skip(b'Q') { Some(self.constraint()?) } else { None };

        let trailer = Trailer { qualifiers: state.qualifiers, reference: state.reference };
        let function = Node::Function { name, returns, params, trailer };
        let function = self.scratch.table.push_shaped(function, Shape::FUNCTION);
        if attributes.is_none() && requires.is_none() {
            return Some(function);
        }
        let node = Node::Constrained { function, attributes, requires };
        Some(self.scratch.table.push_shaped(node, Shape::FUNCTION))
    }

    fn enable_if(&mut self) -> Option<Id> {
        let conditions = self.list_to_end(Self::template_arg)?;
        Some(self.push(Node::EnableIf(conditions)))
    }

    /// `<bare-function-type>`, without the return type.
    fn parameters(&mut self, has_explicit_object: bool) -> Option<List> {
        if self.skip(b'v') {
            return Some(List::EMPTY);
        }
        let from = self.scratch.pending.len();
        loop {
            let mut ty = self.ty()?;
            while self.peek(0) == b'U' && self.is_at_pass_attribute() {
                self.at += 1;
                let qualifier = self.source_name()?;
                ty = self.push(Node::VendorQualified { of: ty, qualifier, args: None });
            }
            if has_explicit_object && self.scratch.pending.len() == from {
                ty = self.push(Node::ExplicitObject(ty));
            }
            self.scratch.pending.push(ty);
            if self.is_at_encoding_end() || self.peek(0) == b'Q' {
                return Some(self.finish_list(from));
            }
        }
    }

    /// clang's `pass_object_size` and `pass_dynamic_object_size`, which stand behind the parameter that has them.
    fn is_at_pass_attribute(&self) -> bool {
        let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
        // Both are named with two digits of length.
        let name = rest.get(2..).unwrap_or_default();
        name.starts_with(b"pass_object_size") || name.starts_with(b"pass_dynamic_object_size")
    }

    /// Gives the template parameters of a conversion's type their arguments, which are known now.
    fn resolve_forwards(&mut self, from: usize) -> Option<()> {
        let level = self.scratch.levels.get(self.level_base).copied();
        let scratch = &mut *self.scratch;
        for (forward, index) in scratch.forwards.drain(from..) {
            let argument = level.filter(|level| (index as usize) < level.len);
            let argument = argument.and_then(|level| scratch.params.get(level.start + index as usize))?;
            scratch.table.resolve(forward, *argument);
        }
        Some(())
    }

    /// ```text
    /// <special-name> ::= TV <type>                               # virtual table
    ///                ::= TT <type>                               # virtual table table
    ///                ::= TI <type>                               # type information
    ///                ::= TS <type>                               # its name
    ///                ::= TA <template-arg>                       # template parameter object
    ///                ::= TC <type> <offset number> _ <type>      # construction vtable
    ///                ::= Tc <call-offset> <call-offset> <encoding>
    ///                ::= T <call-offset> <encoding>              # thunk
    ///                ::= TW <object name>                        # thread-local wrapper
    ///                ::= TH <object name>                        # thread-local initialization
    ///                ::= GV <object name>                        # guard variable
    ///                ::= GR <object name> [[<seq-id>] _]         # reference temporary
    ///                ::= GI <module-name>                        # module initializer
    ///                ::= GTt <encoding> | GTn <encoding>         # gcc: transaction-safe clone, or not
    ///                ::= GA <encoding>                           # gcc: hidden alias
    /// ```
    fn special_name(&mut self) -> Option<Id> {
        let (first, second) = (self.peek(0), self.peek(1));
        self.at += 2;
        let (what, of) = match (first, second) {
            (b'T', b'V') => (Word::VTABLE, self.ty()?),
            (b'T', b'T') => (Word::VTT, self.ty()?),
            (b'T', b'I') => (Word::TYPEINFO, self.ty()?),
            (b'T', b'S') => (Word::TYPEINFO_NAME, self.ty()?),
            (b'T', b'A') => (Word::TEMPLATE_OBJECT, self.template_arg()?),
            (b'T', b'C') => return self.construction_vtable(),
            (b'T', b'c') => {
                self.call_offset()?;
                self.call_offset()?;
                (Word::COVARIANT_THUNK, self.encoding()?)
            }
            (b'T', b'W') => (Word::TLS_WRAPPER, self.name(None)?),
            (b'T', b'H') => (Word::TLS_INIT, self.name(None)?),
            (b'T', _) => {
                self.at -= 1;
                self.call_offset()?;
                let what = if second == b'v' { Word::VIRTUAL_THUNK } else { Word::NON_VIRTUAL_THUNK };
                (what, self.encoding()?)
            }
            (_, b'V') => (Word::GUARD, self.name(None)?),
            (_, b'R') => {
                let name = self.name(None)?;
                let has_number = self.sequence_id().is_some();
                if !self.skip(b'_') && has_number {
                    return None;
                }
                (Word::REFERENCE_TEMPORARY, name)
            }
            (_, b'A') => (Word::HIDDEN_ALIAS, self.encoding()?),
            (_, b'T') => {
                let what = match self.peek(0) {
                    b't' => Word::TRANSACTION_CLONE,
                    b'n' => Word::NON_TRANSACTION_CLONE,
                    _ => return None,
                };
                self.at += 1;
                (what, self.encoding()?)
            }
            (_, b'I') => (Word::MODULE_INITIALIZER, self.module_name(None)?),
            _ => return None,
        };
        Some(self.push(Node::Special { what, of }))
    }

    fn construction_vtable(&mut self) -> Option<Id> {
        let inside = self.ty()?;
        self.offset()?;
        let of = self.ty()?;
        Some(self.push(Node::ConstructionVtable { of, inside }))
    }
}
