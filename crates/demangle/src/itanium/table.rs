//! All nodes of a name, in one flat table that is reused from name to name.

use super::node::{Id, List, Node, Shape, Span};
use super::words::{WORDS, Word};
use alloc::vec::Vec;

/// A node, and what is known of it beside what it says itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) node: Node,
    pub(super) shape: Shape,
    /// Whether a substitution or template parameter refers to it, so that it is printed more than once.
    pub(super) is_reused: bool,
}

const NOTHING: Entry = Entry { node: Node::Word(Word::EMPTY), shape: Shape::PLAIN, is_reused: false };

/// All nodes of one name.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// The members of all lists.
    members: Vec<Id>,
    /// Where each list's members are.
    lists: Vec<Span>,
}

impl Default for Table {
    fn default() -> Self {
        let words = (0..WORDS.len()).map(|number| {
            let word = Word::numbered(u8::try_from(number).unwrap_or_default());
            Entry { node: Node::Word(word), ..NOTHING }
        });
        Table { entries: words.collect(), members: Vec::new(), lists: alloc::vec![Span { start: 0, len: 0 }] }
    }
}

impl Table {
    /// Makes room for the next name.
    pub(super) fn clear(&mut self) {
        self.entries.truncate(WORDS.len());
        self.members.clear();
        self.lists.truncate(1);
    }

    /// How many nodes there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub(super) fn entry(&self, id: Id) -> &Entry {
        self.entries.get(id.index()).unwrap_or(&NOTHING)
    }

    #[inline]
    pub(super) fn node(&self, id: Id) -> Node {
        self.entry(id).node
    }

    #[inline]
    pub(super) fn shape(&self, id: Id) -> Shape {
        self.entry(id).shape
    }

    pub(super) fn list(&self, list: List) -> &[Id] {
        let span = self.lists.get(list.0 as usize).copied().unwrap_or(Span { start: 0, len: 0 });
        let start = span.start as usize;
        self.members.get(start..start + span.len as usize).unwrap_or_default()
    }

    #[inline]
    pub(super) fn push(&mut self, node: Node) -> Id {
        self.push_shaped(node, Shape::PLAIN)
    }

    #[inline]
    pub(super) fn push_shaped(&mut self, node: Node, shape: Shape) -> Id {
        self.entries.push(Entry { node, shape, is_reused: false });
        Id::last_of(self.entries.len())
    }

    /// Makes a list of `members`.
    pub(super) fn push_list(&mut self, members: &[Id]) -> List {
        if members.is_empty() {
            return List::EMPTY;
        }
        let start = self.members.len() as u32;
        self.members.extend_from_slice(members);
        let number = self.lists.len() as u32;
        self.lists.push(Span { start, len: members.len() as u32 });
        List(number)
    }

    /// Says what a [`Node::Forward`] stands for.
    pub(super) fn resolve(&mut self, forward: Id, argument: Id) {
        if let Some(Entry { node: Node::Forward { target, .. }, .. }) = self.entries.get_mut(forward.index())
        {
            *target = Some(argument);
        }
    }

    /// Notes that a node is referred to.
    #[inline]
    pub(super) fn reuse(&mut self, id: Id) {
        if let Some(entry) = self.entries.get_mut(id.index()) {
            entry.is_reused = true;
        }
    }
}
