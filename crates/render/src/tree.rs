//! Call trees and further processes, for people.

use crate::stack::{Row, rows_in};
use backtrail::{Image, Process, Tree};

/// One row of a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeRow {
    /// How many rows are above it.
    pub depth: usize,
    /// How much of what is counted was there.
    pub weight: u64,
    /// The frame.
    pub row: Row,
    /// What else is said of it.
    pub note: Option<String>,
}

/// The rows of a tree, each frame behind its caller; inlined functions have a row each.
pub fn tree_rows(tree: &Tree, images: &[Image], directory: Option<&str>) -> Vec<TreeRow> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (position, node) in tree.nodes.iter().enumerate() {
        match node.parent.filter(|parent| *parent < position).and_then(|parent| children.get_mut(parent)) {
            Some(siblings) => siblings.push(position),
            None => open.push((position, 0)),
        }
    }
    open.reverse();
    let mut shown = Vec::new();
    while let Some((position, depth)) = open.pop() {
        let Some(node) = tree.nodes.get(position) else { continue };
        let rows = rows_in(images, std::slice::from_ref(&node.frame), directory);
        // A tree is read from the outermost function inwards: so are the functions that were inlined.
        for (place, row) in rows.into_iter().rev().enumerate() {
            let note = node.note.clone().filter(|_| place == 0);
            shown.push(TreeRow { depth, weight: node.weight, row, note });
        }
        let below = children.get(position).map(Vec::as_slice).unwrap_or_default();
        open.extend(below.iter().rev().map(|child| (*child, depth + 1)));
    }
    shown
}

/// What is said of a process in a line: name, id, memory, role, why it was ended.
pub fn process_line(process: &Process) -> String {
    let name = process.name.as_deref().or(process.identifier.as_deref()).unwrap_or("???").to_owned();
    let pid = process.pid.map(|pid| format!(" [{pid}]")).unwrap_or_default();
    let parts = [
        process.version.clone(),
        process.memory.map(megabytes),
        process.role.clone(),
        process.kill_reason.as_ref().map(|reason| format!("ended: {reason}")),
        process.fields.iter().find(|field| field.key == "diagnostic").map(|field| field.value.clone()),
    ];
    let parts: String = parts.into_iter().flatten().map(|part| format!(" · {part}")).collect();
    format!("{name}{pid}{parts}")
}

fn megabytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
    let megabytes = bytes as f64 / (1024.0 * 1024.0);
    format!("{megabytes:.1} MB")
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail::{Frame, TreeNode};

    #[test]
    fn frames_stand_behind_their_callers() {
        let node = |parent| TreeNode::new(parent, Frame::new(0));
        let nodes = vec![node(None), node(None), node(Some(0)), node(Some(1)), node(Some(2))];
        let tree = Tree { nodes, ..Tree::default() };
        let depths: Vec<_> = tree_rows(&tree, &[], None).iter().map(|row| row.depth).collect();
        assert_eq!(depths, [0, 1, 2, 0, 1]);
    }
}
