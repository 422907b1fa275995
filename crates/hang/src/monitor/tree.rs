//! Many stacks of one thread, with what they share told once.

use super::Sample;
use backtrail_core::{FrameAddress, Trust};
use std::collections::HashMap;
use std::time::Duration;

/// A node of a [`Tree`]: its position there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub u32);

/// One frame, called from its parent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The frame that called it; `None` for a thread's first. Parents come before their children.
    pub parent: Option<NodeId>,
    /// Its address.
    pub address: FrameAddress,
    /// How it was found when it was first seen.
    pub trust: Trust,
    /// Samples that have it.
    pub samples: u64,
    /// Samples of which it is the innermost frame.
    pub own_samples: u64,
    /// The time that the samples stand for.
    pub time: Duration,
    /// The time that those stand for of which it is the innermost.
    pub own_time: Duration,
}

/// Stacks as a tree: the outermost frames are its roots.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    children: HashMap<(Option<NodeId>, FrameAddress), NodeId>,
    max_nodes: usize,
    cut: u64,
}

impl Tree {
    /// A tree with room for `max_nodes` nodes.
    pub fn new(max_nodes: u32) -> Self {
        let max_nodes = usize::try_from(max_nodes).unwrap_or(usize::MAX);
        Self { max_nodes, ..Self::default() }
    }

    /// Adds a stack that stands for `time`. Its frames beyond the tree's room are left out; it is counted where they
    /// begin. Returns the node of its innermost frame.
    pub fn add(&mut self, sample: &Sample, time: Duration) -> Option<NodeId> {
        let mut at = None;
        for (address, trust) in sample.frames.iter().rev() {
            let Some(child) = self.child(at, *address, *trust) else {
                self.cut += 1;
                break;
            };
            if let Some(node) = self.node_mut(child) {
                node.samples += 1;
                node.time = node.time.saturating_add(time);
            }
            at = Some(child);
        }
        if let Some(node) = at.and_then(|at| self.node_mut(at)) {
            node.own_samples += 1;
            node.own_time = node.own_time.saturating_add(time);
        }
        at
    }

    fn child(&mut self, parent: Option<NodeId>, address: FrameAddress, trust: Trust) -> Option<NodeId> {
        if let Some(known) = self.children.get(&(parent, address)) {
            return Some(*known);
        }
        let id = NodeId(u32::try_from(self.nodes.len()).ok().filter(|_| self.nodes.len() < self.max_nodes)?);
        let none = Duration::ZERO;
        let (samples, own_samples) = (0, 0);
        self.nodes.push(Node { parent, address, trust, samples, own_samples, time: none, own_time: none });
        self.children.insert((parent, address), id);
        Some(id)
    }

    fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(usize::try_from(id.0).ok()?)
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(usize::try_from(id.0).ok()?)
    }

    /// All nodes, parents before their children.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Stacks that lost inner frames to the tree's limit.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// The node's stack, innermost frame first.
    pub fn stack(&self, id: NodeId) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(id), |node| self.node(node.parent?))
    }

    /// The innermost node of the heaviest stack: from the outermost frame on always the child that stands for most time
    /// (the one first seen where several do), up to where a node's own time is more than any child's.
    pub fn heaviest(&self) -> Option<NodeId> {
        let mut best: HashMap<Option<NodeId>, (Duration, NodeId)> = HashMap::new();
        for (node, id) in self.nodes.iter().zip(0..) {
            let candidate = (node.time, NodeId(id));
            let entry = best.entry(node.parent).or_insert(candidate);
            if entry.0 < candidate.0 {
                *entry = candidate;
            }
        }
        let mut at = None;
        while let Some((time, child)) = best.get(&at) {
            if at.and_then(|at| self.node(at)).is_some_and(|node| node.own_time > *time) {
                break;
            }
            at = Some(*child);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Avma;

    /// Innermost first, as captured.
    fn sample(addresses: &[u64]) -> Sample {
        let frame = |address: &u64| (FrameAddress::Return(Avma::new(*address)), Trust::Cfi);
        Sample { frames: addresses.iter().map(frame).collect(), is_complete: true }
    }

    fn add(tree: &mut Tree, addresses: &[u64], times: u64) {
        for _ in 0..times {
            tree.add(&sample(addresses), Duration::from_millis(10));
        }
    }

    fn heaviest(tree: &Tree) -> Vec<u64> {
        let id = tree.heaviest().unwrap();
        tree.stack(id).map(|node| node.address.raw().get()).collect()
    }

    #[test]
    fn shared_outer_frames_are_told_once() {
        let mut tree = Tree::new(100);
        add(&mut tree, &[3, 2, 1], 2);
        add(&mut tree, &[4, 2, 1], 3);
        add(&mut tree, &[2, 1], 1);
        let counts: Vec<_> = tree.nodes().iter().map(|node| (node.samples, node.own_samples)).collect();
        assert_eq!(counts, [(6, 0), (6, 1), (2, 2), (3, 3)]);
        assert_eq!(tree.nodes()[1].time, Duration::from_millis(60));
        assert_eq!(heaviest(&tree), [4, 2, 1]);
    }

    #[test]
    fn the_heaviest_stack_ends_where_most_time_was_spent() {
        let mut tree = Tree::new(100);
        add(&mut tree, &[2, 1], 5);
        (10..14).for_each(|leaf| add(&mut tree, &[leaf, 2, 1], 1));
        assert_eq!(heaviest(&tree), [2, 1]);
        assert_eq!(Tree::new(1).heaviest(), None);
    }

    #[test]
    fn a_full_tree_still_counts() {
        let mut tree = Tree::new(2);
        add(&mut tree, &[3, 2, 1], 4);
        add(&mut tree, &[9], 1);
        assert_eq!(tree.nodes().len(), 2);
        assert_eq!((tree.nodes()[1].own_samples, tree.cut()), (4, 5));
        assert_eq!(tree.add(&sample(&[]), Duration::ZERO), None);
    }

    #[test]
    fn recursion_is_as_deep_as_it_was() {
        let mut tree = Tree::new(10_000);
        let deep: Vec<u64> = std::iter::repeat_n(7, 5_000).collect();
        add(&mut tree, &deep, 2);
        assert_eq!((tree.nodes().len(), heaviest(&tree).len()), (5_000, 5_000));
    }
}
