//! A call tree from rows that state how deep they stand.

use backtrail_core::FrameAddress;
use backtrail_model::{Frame, Tree, TreeNode};

/// Builds one tree from its rows, outermost first.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) tree: Tree,
    /// Rows that the next one may be called from: their indentation and their node.
    open: Vec<(usize, usize)>,
}

impl Builder {
    pub(super) fn new(title: &str) -> Self {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        Self { tree: Tree { title, ..Tree::default() }, open: Vec::new() }
    }

    /// Adds a row below the last one that stands further left.
    pub(super) fn push(&mut self, indent: usize, weight: u64, frame: Frame, note: Option<String>) {
        while self.open.last().is_some_and(|(open, _)| *open >= indent) {
            self.open.pop();
        }
        let parent = self.open.last().map(|(_, node)| *node);
        let depth = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let mut node = TreeNode::new(parent, Frame { index: depth, ..frame });
        (node.samples, node.weight, node.note) = (weight, weight, note);
        self.open.push((indent, self.tree.nodes.len()));
        self.tree.nodes.push(node);
    }
}

/// Works out what each frame has of its own, and says how addresses are to be read: an innermost frame's is that of the
/// instruction that ran, the others are returned to.
pub(crate) fn finish(tree: &mut Tree) {
    let mut called = vec![0_u64; tree.nodes.len()];
    let mut has_callees = vec![false; tree.nodes.len()];
    for node in &tree.nodes {
        let Some(parent) = node.parent else { continue };
        if let (Some(called), Some(has)) = (called.get_mut(parent), has_callees.get_mut(parent)) {
            *called = called.saturating_add(node.weight);
            *has = true;
        }
    }
    for ((node, called), has_callees) in tree.nodes.iter_mut().zip(called).zip(has_callees) {
        node.own_weight = node.weight.saturating_sub(called);
        node.own_samples = node.own_weight;
        let raw = node.frame.address.map(FrameAddress::raw);
        node.frame.address =
            raw.map(|avma| if has_callees { FrameAddress::Return(avma) } else { FrameAddress::Exact(avma) });
    }
}
