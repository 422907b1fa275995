//! Weighted call trees: samples of stacks, added up.

use crate::Frame;

/// Samples of stacks as a call tree: of a thread that hung, of a profile, of a report that was sampled.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    /// What was sampled, in the input's words.
    pub title: String,
    /// What weights count.
    pub unit: Unit,
    /// The frames; callers come before the frames that they call.
    pub nodes: Vec<TreeNode>,
}

/// What the weights of a tree count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Unit {
    /// Samples.
    #[default]
    Samples,
    /// Nanoseconds.
    Nanoseconds,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The word that JSON uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Nanoseconds => "ns",
            Self::Bytes => "bytes",
        }
    }
}

/// One frame of a tree, called from its parent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeNode {
    /// The position in [`Tree::nodes`] of the frame that called it; `None` for the outermost.
    pub parent: Option<usize>,
    /// The frame. Its index counts from the outermost frame, which is 0.
    pub frame: Frame,
    /// Samples that have it.
    pub samples: u64,
    /// Samples of which it is the innermost frame.
    pub own_samples: u64,
    /// The weight of all samples that have it, in the tree's unit.
    pub weight: u64,
    /// The weight of those of which it is the innermost frame.
    pub own_weight: u64,
    /// What the input says of it besides: `(running)`, `blocked by turnstile`.
    pub note: Option<String>,
}

impl TreeNode {
    /// A node that no sample was added to yet.
    pub fn new(parent: Option<usize>, frame: Frame) -> Self {
        Self { parent, frame, samples: 0, own_samples: 0, weight: 0, own_weight: 0, note: None }
    }
}

impl Tree {
    /// The stack of a node, innermost frame first.
    pub fn stack(&self, node: usize) -> impl Iterator<Item = &Frame> {
        let nodes = std::iter::successors(self.nodes.get(node), |node| self.nodes.get(node.parent?));
        // Parents come first: a chain is never longer than the tree is large, even in one that was made by hand.
        nodes.take(self.nodes.len()).map(|node| &node.frame)
    }

    /// The innermost node of the heaviest stack: from the heaviest outermost frame on always the heaviest that it calls, of
    /// equal ones the first; up to a node of which more is its own than any that it calls.
    pub fn heaviest(&self) -> Option<usize> {
        // Parents come before children, so one pass finds the heaviest child of each.
        let mut child: Vec<Option<usize>> = vec![None; self.nodes.len()];
        let mut root: Option<usize> = None;
        let weight = |at: usize| self.nodes.get(at).map_or(0, |node| node.weight);
        for (at, node) in self.nodes.iter().enumerate() {
            let best = match node.parent.filter(|parent| *parent < at) {
                Some(parent) => child.get_mut(parent)?,
                None => &mut root,
            };
            if best.is_none_or(|best| weight(at) > weight(best)) {
                *best = Some(at);
            }
        }
        let mut at = root?;
        while let Some(next) = child.get(at).copied().flatten() {
            if self.nodes.get(at).is_some_and(|node| node.own_weight > weight(next)) {
                break;
            }
            at = next;
        }
        Some(at)
    }

    /// Sums the nodes' own samples and weights up to their callers.
    pub fn add_up(&mut self) {
        for node in &mut self.nodes {
            (node.samples, node.weight) = (node.own_samples, node.own_weight);
        }
        for position in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get(position) else { continue };
            let (samples, weight) = (node.samples, node.weight);
            let parent = node.parent.filter(|parent| *parent < position);
            if let Some(parent) = parent.and_then(|parent| self.nodes.get_mut(parent)) {
                parent.samples = parent.samples.saturating_add(samples);
                parent.weight = parent.weight.saturating_add(weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_stack_ends_where_most_was_spent() {
        let node = |parent, own| TreeNode { own_weight: own, ..TreeNode::new(parent, Frame::new(0)) };
        let nodes = vec![node(None, 1), node(None, 0), node(Some(1), 9), node(Some(1), 4), node(Some(2), 3)];
        let mut tree = Tree { nodes, ..Tree::default() };
        tree.add_up();
        assert_eq!(tree.heaviest(), Some(2));
        tree.nodes[4].own_weight = 30;
        tree.add_up();
        assert_eq!(tree.heaviest(), Some(4));
        assert_eq!(Tree::default().heaviest(), None);
    }
}
