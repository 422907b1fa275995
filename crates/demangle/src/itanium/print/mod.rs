//! Writes the parts of a name in order.
//!
//! A C++ type wraps around the name that it declares (`int (*name)[3]`), so each node has a left side and, if its
//! [`Shape`] says so, a right side. The style (spaces, `'lambda'`, `(anonymous namespace)`, ...) is
//! that of LLVM's tools.
//!
//! Once the output limit is reached, or the work exceeds what a sound name of this length needs, nothing is written any
//! more and the walk ends without visiting further nodes.

mod dispatch;
mod expressions;
mod literals;
mod names;
mod templates;
mod types;

use super::node::{Id, Known, List, Node, Shape, Span};
use super::operators::{Operator, Precedence};
use super::table::{Entry, Table};
use super::words::Word;
use crate::error::Failed;
use crate::{MAX_DEPTH, Options};
use alloc::string::String;
use alloc::vec::Vec;

/// Nodes visited for each byte of the name and of the output limit; what compilers write needs less than four.
const STEPS_PER_BYTE: usize = 16;

/// How far the text may be beyond its limit for a while: the pattern of an empty pack is written, then taken back.
const TAKEN_BACK: usize = 1024;

/// The pack element that is being printed.
#[derive(Debug, Clone, Copy)]
struct PackPosition {
    index: usize,
    len: usize,
}

/// Writes one name.
pub(super) struct Printer<'a> {
    name: &'a str,
    table: &'a Table,
    options: &'a Options,
    out: &'a mut String,
    max_len: usize,
    stopped: Option<Failed>,
    /// How many more nodes may be visited; zero once writing has stopped.
    steps_left: usize,
    depth: u32,
    /// The innermost expansion's position; none outside of one, or before its pack is met.
    pack: Option<PackPosition>,
    /// Inside template arguments, where `>` needs parentheses.
    in_args: bool,
    /// Parentheses that are open within template arguments.
    parens_in_args: u32,
    /// How many template-argument lists are open.
    args_depth: u32,
    /// Nodes that a malformed name may have made part of themselves, while they are printed.
    active: Vec<Id>,
    /// Whether there can be such nodes.
    may_be_cyclic: bool,
    /// What was written for each node that is referred to more than once.
    copies: &'a mut Vec<Written>,
    /// Counts what makes earlier copies unusable.
    epoch: u32,
    /// Counts the texts that depend on the pack element that is being printed.
    pack_uses: u32,
    /// Counts the texts that depend on where they stand for other reasons.
    unstable: u32,
    /// The function around a local name that is shown without its return type.
    around: Option<Id>,
}

/// What was written for the left side of a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    start: u32,
    len: u32,
    epoch: u32,
}

impl<'a> Printer<'a> {
    pub(super) fn new(
        name: &'a str,
        table: &'a Table,
        options: &'a Options,
        may_be_cyclic: bool,
        copies: &'a mut Vec<Written>,
        out: &'a mut String,
    ) -> Self {
        copies.clear();
        copies.resize(table.len(), Written::default());
        let bytes = name.len().saturating_add(options.max_len).saturating_add(1024);
        Printer {
            name,
            table,
            options,
            out,
            max_len: options.max_len.saturating_add(TAKEN_BACK),
            stopped: None,
            steps_left: bytes.saturating_mul(STEPS_PER_BYTE),
            depth: 0,
            pack: None,
            in_args: false,
            parens_in_args: 0,
            args_depth: 0,
            active: Vec::new(),
            may_be_cyclic,
            copies,
            epoch: 1,
            pack_uses: 0,
            unstable: 0,
            around: None,
        }
    }

    /// Writes the whole name.
    pub(super) fn finish(mut self, root: Id) -> Result<(), Failed> {
        self.top(root);
        match self.stopped {
            Some(why) => Err(why),
            None if self.out.len() > self.options.max_len => Err(Failed::Full),
            None => Ok(()),
        }
    }

    /// Writes both sides of a node.
    fn print(&mut self, id: Id) {
        let table = self.table;
        let entry = table.entry(id);
        self.left_of_entry(id, entry);
        if entry.shape.right != Known::No {
            self.right(id);
        }
    }

    #[inline]
    fn write(&mut self, text: &str) {
        if self.out.len() + text.len() <= self.max_len {
            self.out.push_str(text);
        } else {
            self.fill(text);
        }
    }

    /// The last write: as much of `text` as fits.
    #[cold]
    fn fill(&mut self, text: &str) {
        if self.stopped.is_none() {
            self.stop(Failed::Full);
            let room = self.max_len.saturating_sub(self.out.len());
            self.out.push_str(crate::limited::floor(text, room));
        }
    }

    /// Visits no more nodes.
    #[cold]
    fn stop(&mut self, why: Failed) {
        self.stopped = self.stopped.or(Some(why));
        self.steps_left = 0;
    }

    /// Takes back what was written behind `len`.
    fn take_back(&mut self, len: usize) {
        self.out.truncate(len);
        self.epoch += 1;
    }

    fn write_span(&mut self, span: Span) {
        let start = span.start as usize;
        match self.name.get(start..start + span.len as usize) {
            Some(text) => self.write(text),
            // A length that ends within a character.
            None => self.stop(Failed::Invalid(start)),
        }
    }

    fn write_word(&mut self, word: Word) {
        self.write(word.text());
    }

    fn open(&mut self, bracket: &str) {
        self.parens_in_args += u32::from(self.in_args);
        self.write(bracket);
    }

    fn close(&mut self, bracket: &str) {
        self.parens_in_args = self.parens_in_args.saturating_sub(u32::from(self.in_args));
        self.write(bracket);
    }

    fn in_parens(&mut self, print: impl FnOnce(&mut Self)) {
        self.open("(");
        print(self);
        self.close(")");
    }

    /// Counts a visit; false once there is nothing more to do.
    #[inline]
    fn step(&mut self) -> bool {
        if self.steps_left == 0 || self.depth >= MAX_DEPTH {
            self.stop(Failed::TooComplex(0));
            return false;
        }
        self.steps_left -= 1;
        true
    }

    /// Writes what stands in front of the declared name; all there is, for most nodes.
    #[inline]
    fn left(&mut self, id: Id) {
        let table = self.table;
        self.left_of_entry(id, table.entry(id));
    }

    #[inline]
    fn left_of_entry(&mut self, id: Id, entry: &Entry) {
        // Half of all nodes; they need no bookkeeping.
        if let Node::Source(span) = entry.node {
            return self.write_span(span);
        }
        if let Node::Word(word) = entry.node {
            return self.write_word(word);
        }
        if !self.step() {
            return;
        }
        self.depth += 1;
        if entry.is_reused {
            self.left_of_reused(id, entry);
        } else {
            self.left_of(id, &entry.node);
        }
        self.depth -= 1;
    }

    /// Copies what was written for the node before, unless that depends on where it stands.
    fn left_of_reused(&mut self, id: Id, entry: &Entry) {
        let written = self.copies.get(id.index()).copied().unwrap_or_default();
        let (start, len) = (written.start as usize, written.len as usize);
        if written.epoch == self.epoch && self.out.len() + len <= self.max_len {
            self.out.extend_from_within(start..start + len);
            return;
        }
        let start = self.out.len();
        let state = (self.pack_uses, self.unstable, self.epoch);
        self.left_of(id, &entry.node);
        let is_stable = (self.pack_uses, self.unstable, self.epoch) == state && self.stopped.is_none();
        let span = (u32::try_from(start), u32::try_from(self.out.len() - start));
        if let (true, (Ok(start), Ok(len)), Some(copy)) = (is_stable, span, self.copies.get_mut(id.index())) {
            *copy = Written { start, len, epoch: self.epoch };
        }
    }

    /// Writes what stands behind the declared name.
    fn right(&mut self, id: Id) {
        if !self.step() {
            return;
        }
        self.depth += 1;
        let table = self.table;
        self.right_of(id, &table.entry(id).node);
        self.depth -= 1;
    }

    fn shape(&self, id: Id) -> Shape {
        self.table.shape(id)
    }

    /// Writes the members with commas between, leaving out expansions of empty packs.
    fn list(&mut self, list: List) {
        let table = self.table;
        let mut is_first = true;
        for &member in table.list(list) {
            let before = self.out.len();
            if !is_first {
                self.write(", ");
            }
            let behind = self.out.len();
            // Only the comma operator binds as loosely as a comma.
            match self.table.node(member) {
                Node::Binary { operator, .. } if operator.precedence() == Precedence::Comma => {
                    self.in_parens(|printer| printer.print(member));
                }
                _ => self.print(member),
            }
            if self.steps_left == 0 {
                return;
            }
            if self.out.len() == behind {
                self.out.truncate(before);
            } else {
                is_first = false;
            }
        }
    }

    /// Writes an expression, in parentheses if it binds looser than `limit` (or, `strictly`, not as tight).
    fn operand(&mut self, id: Id, limit: Precedence, or_equal: bool) {
        let precedence = self.precedence(id);
        let needs_parens = if or_equal { precedence > limit } else { precedence >= limit };
        if needs_parens {
            self.in_parens(|printer| printer.print(id));
        } else {
            self.print(id);
        }
    }

    fn precedence(&self, id: Id) -> Precedence {
        match self.table.node(id) {
            Node::Binary { operator, .. }
            | Node::Prefix { operator, .. }
            | Node::Postfix { operator, .. }
            | Node::Member { operator, .. }
            | Node::Cast { operator, .. }
            | Node::OperatorOf { operator, .. } => operator.precedence(),
            Node::Subscript { .. } | Node::Call { .. } => Precedence::Postfix,
            Node::Conditional { .. } => Precedence::Conditional,
            Node::New { .. } | Node::Delete { .. } | Node::ConvertMemberPointer { .. } => Precedence::Unary,
            Node::Convert { .. } => Precedence::Cast,
            Node::Enclosing { precedence, .. } => precedence,
            _ => Precedence::Primary,
        }
    }

    fn operator_name(&mut self, operator: Operator) {
        self.write(if operator.is_word() { "operator " } else { "operator" });
        self.write(operator.symbol());
    }

    /// Writes `before`, a node, and `behind`.
    fn between(&mut self, before: &str, id: Id, behind: &str) {
        self.write(before);
        self.print(id);
        self.write(behind);
    }
}
