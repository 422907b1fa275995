//! The parts of a demangled name, in an arena.
//!
//! A substitution refers to a part a second time, so the parts form a directed graph without cycles: a node's children
//! are always older than the node.

use super::kinds::Kind;
use alloc::string::String;
use alloc::vec::Vec;

/// A reference to a node, and whether it stands for a type there.
///
/// Swift's grammar tells a declaration (`Int` as the context of something) from the type of that name. The difference
/// is one bit here, and saves a node for every type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeRef(u32);

const TYPE_BIT: u32 = 1 << 31;

impl NodeRef {
    pub(super) fn as_type(self) -> Self {
        NodeRef(self.0 | TYPE_BIT)
    }

    pub(super) fn bare(self) -> Self {
        NodeRef(self.0 & !TYPE_BIT)
    }

    pub(super) fn is_type(self) -> bool {
        self.0 & TYPE_BIT != 0
    }

    fn index(self) -> usize {
        (self.0 & !TYPE_BIT) as usize
    }
}

/// Twelve bytes: what it is, and one of text, number or children.
#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    /// How many children.
    count: u16,
    /// A number whose meaning depends on the kind; the length of a text.
    extra: u32,
    /// Where the children or the text begin.
    first: u32,
}

/// How many nodes, and how many references between them, one name may have.
const MAX_NODES: usize = 1 << 20;

/// All parts of a name. Cleared and used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    links: Vec<NodeRef>,
    /// The mangled name, followed by the texts that had to be decoded.
    text: String,
    max_text: usize,
    is_full: bool,
}

impl Arena {
    /// Forgets all nodes and takes up a new name.
    pub(super) fn start(&mut self, name: &str) {
        self.nodes.clear();
        self.links.clear();
        self.text.clear();
        self.text.push_str(name);
        self.is_full = false;
        // Word substitutions repeat text; a compiler's repeat words of about ten bytes.
        self.max_text = name.len().saturating_mul(32).saturating_add(4096);
    }

    /// Whether a limit was reached: what was made since is not right.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn leaf(&mut self, kind: Kind, extra: u32) -> NodeRef {
        self.push(Node { kind, count: 0, extra, first: 0 })
    }

    #[inline]
    pub(super) fn node(&mut self, kind: Kind, extra: u32, children: &[NodeRef]) -> NodeRef {
        let first = self.links.len();
        match (u16::try_from(children.len()), u32::try_from(first)) {
            (Ok(count), Ok(first)) if self.links.len() < MAX_NODES => {
                self.links.extend_from_slice(children);
                self.push(Node { kind, count, extra, first })
            }
            _ => self.full(),
        }
    }

    /// Gives a node made by [`leaf`](Self::leaf) its only child.
    pub(super) fn set_only_child(&mut self, node: NodeRef, child: NodeRef) {
        let Ok(first) = u32::try_from(self.links.len()) else { return };
        if let Some(node) = self.nodes.get_mut(node.index()) {
            node.first = first;
            node.count = 1;
            self.links.push(child);
        }
    }

    /// A node for the text at this place of the name or of the decoded texts.
    pub(super) fn text_node(&mut self, kind: Kind, start: usize, len: usize) -> NodeRef {
        match (u32::try_from(start), u32::try_from(len)) {
            (Ok(first), Ok(extra)) => self.push(Node { kind, count: 0, extra, first }),
            _ => self.full(),
        }
    }

    /// A node of another kind with the same text.
    pub(super) fn with_kind(&mut self, text: NodeRef, kind: Kind) -> NodeRef {
        match self.nodes.get(text.index()) {
            Some(&node) => self.push(Node { kind, ..node }),
            None => self.full(),
        }
    }

    pub(super) fn param(&mut self, depth: u32, index: u32) -> NodeRef {
        self.push(Node { kind: Kind::GenericParam, count: 0, extra: index, first: depth })
    }

    #[inline]
    fn push(&mut self, node: Node) -> NodeRef {
        if self.nodes.len() >= MAX_NODES {
            return self.full();
        }
        let index = self.nodes.len() as u32;
        self.nodes.push(node);
        NodeRef(index)
    }

    #[cold]
    fn full(&mut self) -> NodeRef {
        self.is_full = true;
        NodeRef(0)
    }

    /// Where the next decoded text will begin.
    pub(super) fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Appends to the decoded texts.
    pub(super) fn push_text(&mut self, text: &str) {
        if self.text.len() + text.len() > self.max_text {
            self.is_full = true;
        } else {
            self.text.push_str(text);
        }
    }

    /// Appends a part of the name or of a decoded text to the decoded texts.
    pub(super) fn push_text_from(&mut self, start: usize, len: usize) {
        if self.text.len() + len > self.max_text || self.text.get(start..start + len).is_none() {
            self.is_full = true;
        } else {
            self.text.extend_from_within(start..start + len);
        }
    }

    /// Lets `decode` append to the decoded texts.
    pub(super) fn decode_text<T>(&mut self, decode: impl FnOnce(&mut String) -> Option<T>) -> Option<T> {
        let decoded = decode(&mut self.text);
        self.is_full |= self.text.len() > self.max_text;
        decoded
    }

    fn get(&self, node: NodeRef) -> Option<&Node> {
        self.nodes.get(node.index())
    }

    /// [`Kind::Type`] for a reference that stands for a type, else the node's own kind.
    #[inline]
    pub(super) fn kind(&self, node: NodeRef) -> Kind {
        if node.is_type() { Kind::Type } else { self.own_kind(node) }
    }

    /// What the node itself is, type or not.
    #[inline]
    pub(super) fn own_kind(&self, node: NodeRef) -> Kind {
        self.get(node).map_or(Kind::ErrorType, |node| node.kind)
    }

    /// The number whose meaning depends on the kind.
    pub(super) fn extra(&self, node: NodeRef) -> u32 {
        self.get(node).map_or(0, |node| node.extra)
    }

    /// Depth and index of a generic parameter.
    pub(super) fn param_position(&self, node: NodeRef) -> (u32, u32) {
        self.get(node).map_or((0, 0), |node| (node.first, node.extra))
    }

    pub(super) fn children(&self, node: NodeRef) -> &[NodeRef] {
        let Some(node) = self.get(node) else { return &[] };
        let first = node.first as usize;
        if node.count == 0 {
            return &[];
        }
        self.links.get(first..first + usize::from(node.count)).unwrap_or_default()
    }

    pub(super) fn child(&self, node: NodeRef, at: usize) -> Option<NodeRef> {
        self.children(node).get(at).copied()
    }

    /// The text of a node that has one.
    pub(super) fn text(&self, node: NodeRef) -> &str {
        let Some(node) = self.get(node) else { return "" };
        let start = node.first as usize;
        self.text.get(start..start + node.extra as usize).unwrap_or_default()
    }
}
