//! The manglings before Swift 4 (`_T…`): prefix order, read by recursive descent.
//!
//! `_Tt…` names of this generation are still written today, as the run-time names of classes and protocols that
//! Objective-C sees. The grammar is `docs/ABI/OldMangling.rst` of the Swift project.

mod entities;
mod generics;
mod global;
mod impl_function;
mod names;
mod specialization;
mod types;

use super::cursor::Cursor;
use super::kinds::Kind;
use super::node::{Arena, NodeRef};
use super::phrase::Phrase;
use alloc::vec::Vec;

/// A part of the name; `None` where the name breaks the grammar.
type Parsed = Option<NodeRef>;

pub(super) struct Old<'n, 's> {
    cursor: Cursor<'n>,
    arena: &'s mut Arena,
    substitutions: &'s mut Vec<NodeRef>,
    depth: u32,
}

/// Reads a name that begins with `_T` at `start` and gives its [`Kind::Global`] node; the error is where it failed.
pub(super) fn parse(
    name: &str,
    start: usize,
    arena: &mut Arena,
    substitutions: &mut Vec<NodeRef>,
) -> Result<NodeRef, usize> {
    substitutions.clear();
    let mut old = Old { cursor: Cursor::new(name, start), arena, substitutions, depth: 0 };
    let root = old.top_level();
    match root {
        Some(root) if !old.arena.is_full() => Ok(root),
        _ => Err(old.cursor.at()),
    }
}

impl Old<'_, '_> {
    fn top_level(&mut self) -> Parsed {
        if !self.cursor.eat_str("_T") {
            return None;
        }
        let mut parts = Vec::new();
        if self.cursor.eat_str("TS") {
            loop {
                parts.push(self.specialized_attribute()?);
                // A specialization shares no substitutions with what it is of.
                self.substitutions.clear();
                if !self.cursor.eat_str("_TTS") {
                    break;
                }
            }
            if !self.cursor.eat_str("_T") {
                return None;
            }
        } else if let Some(phrase) = self.attribute() {
            parts.push(self.arena.leaf(Kind::Attribute, phrase.pack()));
        }
        parts.push(self.global()?);
        if !self.cursor.is_at_end() {
            let start = self.cursor.at();
            let len = self.cursor.skip_while(|_| true);
            parts.push(self.arena.text_node(Kind::Suffix, start, len));
        }
        Some(self.arena.node(Kind::Global, 0, &parts))
    }

    fn attribute(&mut self) -> Option<Phrase> {
        let attributes = [
            ("To", Phrase::ObjC),
            ("TO", Phrase::NonObjC),
            ("TD", Phrase::Dynamic),
            ("Td", Phrase::DirectMethod),
            ("TV", Phrase::VTableOverride),
        ];
        attributes.into_iter().find_map(|(letters, phrase)| self.cursor.eat_str(letters).then_some(phrase))
    }

    /// Runs a part of the grammar that may hold itself.
    fn nested<T>(&mut self, part: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= crate::MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }

    /// A part that later ones may refer to.
    fn substitutable(&mut self, node: NodeRef) -> NodeRef {
        self.substitutions.push(node);
        node
    }
}
