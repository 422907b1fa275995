//! The state that reading a name has.
//!
//! Each production of the grammar is a method that consumes its text and answers with a node. `None` means that the
//! name is invalid at the current byte; nothing is ever tried twice, so reading is linear in the name's length.

use super::cursor::Cursor;
use super::dialect::Dialect;
use super::direct::Buffers;
use super::node::{Id, List, Node, Qualifiers, Reference, Span};
use super::print::Written;
use super::table::Table;
use super::words::Word;
use crate::MAX_DEPTH;
use crate::error::Failed;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

/// The buffers of a parser, kept from name to name.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) table: Table,
    /// Members of lists that are not finished, innermost last.
    pub(super) pending: Vec<Id>,
    /// What `S_`, `S0_`, ... stand for.
    pub(super) substitutions: Vec<Id>,
    /// Which of them are template parameters or `decltype`, ascending.
    pub(super) unresolved_types: Vec<usize>,
    /// What `T_`, `T0_`, ... stand for; each [`Level`] is a range of it.
    pub(super) params: Vec<Id>,
    pub(super) levels: Vec<Level>,
    /// Template parameters whose arguments have not been seen.
    pub(super) forwards: Vec<(Id, u32)>,
    pub(super) copies: Vec<Written>,
    pub(super) direct: Buffers,
}

/// One level of template parameters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level {
    pub(super) start: usize,
    pub(super) len: usize,
}

/// What the name of an encoding tells about the rest of it.
#[derive(Debug, Default)]
pub(super) struct NameState {
    /// A constructor, destructor or conversion: no return type is mangled.
    pub(super) is_without_return_type: bool,
    /// A template's name: the return type is mangled.
    pub(super) ends_with_args: bool,
    pub(super) qualifiers: Qualifiers,
    pub(super) reference: Option<Reference>,
    pub(super) has_explicit_object: bool,
    /// A vendor's qualifiers of a member function.
    pub(super) vendor_qualifiers: Option<Id>,
}

/// Reads one name.
pub(super) struct Parser<'n, 's> {
    cursor: Cursor<'n>,
    pub(super) scratch: &'s mut Scratch,
    /// `levels` and `params` from here on belong to the innermost encoding.
    pub(super) level_base: usize,
    /// The level of the encoding around the innermost one, if that is an argument and may use its parameters.
    pub(super) outer_level: Option<usize>,
    pub(super) param_base: usize,
    /// Whether `I` behind a type opens template arguments: not behind a conversion's type itself.
    pub(super) takes_args: bool,
    /// Whether a template parameter may refer to an argument further on: in a conversion's type.
    pub(super) takes_forwards: bool,
    /// Inside a constraint, where not all levels of template parameters are known.
    pub(super) in_constraint: bool,
    /// The level of template parameters that a lambda's `auto` parameters make up.
    pub(super) lambda_level: Option<usize>,
    /// How many template parameters of each kind were given a name.
    pub(super) invented: [u32; 3],
    /// Whether a template parameter was met before its argument.
    pub(super) has_forwards: bool,
    pub(super) dialect: Dialect,
    /// Whether reading ended where the name shows that gcc made it.
    pub(super) shows_gcc: bool,
    depth: u32,
    is_too_deep: bool,
}

impl<'n> Deref for Parser<'n, '_> {
    type Target = Cursor<'n>;

    fn deref(&self) -> &Cursor<'n> {
        &self.cursor
    }
}

impl<'n> DerefMut for Parser<'n, '_> {
    fn deref_mut(&mut self) -> &mut Cursor<'n> {
        &mut self.cursor
    }
}

impl<'n, 's> Parser<'n, 's> {
    pub(super) fn new(name: &'n str, at: usize, dialect: Dialect, scratch: &'s mut Scratch) -> Self {
        scratch.table.clear();
        scratch.pending.clear();
        scratch.substitutions.clear();
        scratch.unresolved_types.clear();
        scratch.params.clear();
        scratch.levels.clear();
        scratch.forwards.clear();
        Parser {
            cursor: Cursor { bytes: name.as_bytes(), at },
            scratch,
            level_base: 0,
            outer_level: None,
            param_base: 0,
            takes_args: true,
            takes_forwards: false,
            in_constraint: false,
            lambda_level: None,
            invented: [0; 3],
            has_forwards: false,
            dialect,
            shows_gcc: false,
            depth: 0,
            is_too_deep: false,
        }
    }

    /// Why and where reading ended early.
    pub(super) fn failure(&self) -> Failed {
        // What was skipped unseen may be beyond the end.
        let at = self.at.min(self.bytes.len());
        if self.is_too_deep { Failed::TooComplex(at) } else { Failed::Invalid(at) }
    }

    /// Reads a part that may contain itself.
    #[inline]
    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            self.is_too_deep = true;
            return None;
        }
        self.depth += 1;
        let part = read(self);
        self.depth -= 1;
        part
    }

    /// Reads a part that ends in a letter of its own, so that what is special about the part around it does not hold.
    pub(super) fn bracketed<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let takes_args = core::mem::replace(&mut self.takes_args, true);
        let part = read(self);
        self.takes_args = takes_args;
        part
    }

    /// `<source-name> ::= <positive length number> <identifier>`
    #[inline]
    pub(super) fn source_name(&mut self) -> Option<Id> {
        let span = self.identifier()?;
        Some(self.push_source(span))
    }

    /// The node of an identifier.
    #[inline]
    pub(super) fn push_source(&mut self, span: Span) -> Id {
        if self.is_anonymous(span) {
            return Word::ANONYMOUS.id();
        }
        self.push(Node::Source(span))
    }

    #[inline]
    pub(super) fn push(&mut self, node: Node) -> Id {
        self.scratch.table.push(node)
    }

    /// Makes `part` available as a substitution.
    #[inline]
    pub(super) fn remember(&mut self, part: Id) {
        self.scratch.substitutions.push(part);
    }

    /// Reads parts until `is_end` consumes what ends them.
    pub(super) fn list_until(
        &mut self,
        mut is_end: impl FnMut(&mut Self) -> bool,
        mut read: impl FnMut(&mut Self) -> Option<Id>,
    ) -> Option<List> {
        let from = self.scratch.pending.len();
        while !is_end(self) {
            let part = read(self)?;
            self.scratch.pending.push(part);
        }
        Some(self.finish_list(from))
    }

    /// Reads parts up to an `E`.
    pub(super) fn list_to_end(&mut self, read: impl FnMut(&mut Self) -> Option<Id>) -> Option<List> {
        self.list_until(|parser| parser.skip(b'E'), read)
    }

    /// Makes a list of the pending members from `from` on.
    #[inline]
    pub(super) fn finish_list(&mut self, from: usize) -> List {
        let list = self.scratch.table.push_list(self.scratch.pending.get(from..).unwrap_or_default());
        self.scratch.pending.truncate(from);
        list
    }
}
