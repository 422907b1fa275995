//! Samples by function instead of by address: a busy loop has as many addresses as samples.

use crate::Hang;
use backtrail_model::{Frame, TreeNode};
use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

/// The nodes of a hang that stand for the same functions, called in the same way.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) children: Vec<usize>,
    pub(crate) depth: usize,
    /// The functions, outermost first, as collapsed stacks have them.
    label: String,
    pub(crate) samples: u64,
    pub(crate) time: Duration,
    pub(crate) own_time: Duration,
    /// The hang's node that most of the time fell to.
    pub(crate) sample: usize,
    heaviest: Duration,
}

/// All of them, parents before children; the outermost are in `roots`. Siblings are in falling order of time.
#[derive(Debug, Default)]
pub(crate) struct MergedTree {
    pub(crate) nodes: Vec<Merged>,
    pub(crate) roots: Vec<usize>,
}

impl MergedTree {
    pub(crate) fn of(hang: &Hang) -> Self {
        let mut tree = Self::default();
        let mut known: HashMap<(Option<usize>, String), usize> = HashMap::new();
        // Where each of the hang's nodes went.
        let mut places: Vec<usize> = Vec::with_capacity(hang.nodes().len());
        for (position, node) in hang.nodes().iter().enumerate() {
            let parent = node.parent.and_then(|parent| places.get(parent).copied());
            let mut names = names(hang, &node.frame);
            names.reverse();
            let key = (parent, names.join(";"));
            let place = *known.entry(key).or_insert_with_key(|(parent, label)| tree.add(*parent, label));
            places.push(place);
            tree.take(place, node, position);
        }
        tree.sort();
        tree
    }

    fn add(&mut self, parent: Option<usize>, label: &str) -> usize {
        let place = self.nodes.len();
        let depth = parent.and_then(|parent| self.nodes.get(parent)).map_or(0, |parent| parent.depth + 1);
        self.nodes.push(Merged { depth, label: label.to_owned(), ..Merged::default() });
        match parent.and_then(|parent| self.nodes.get_mut(parent)) {
            Some(parent) => parent.children.push(place),
            None => self.roots.push(place),
        }
        place
    }

    fn take(&mut self, place: usize, node: &TreeNode, position: usize) {
        let Some(merged) = self.nodes.get_mut(place) else { return };
        let (time, own_time) = (Duration::from_nanos(node.weight), Duration::from_nanos(node.own_weight));
        if merged.samples == 0 || time > merged.heaviest {
            (merged.sample, merged.heaviest) = (position, time);
        }
        merged.samples = merged.samples.saturating_add(node.samples);
        merged.time = merged.time.saturating_add(time);
        merged.own_time = merged.own_time.saturating_add(own_time);
    }

    /// The one seen first stays first where two are equally heavy.
    fn sort(&mut self) {
        let times: Vec<_> = self.nodes.iter().map(|node| (node.time, node.samples)).collect();
        let heavier = |node: &usize| std::cmp::Reverse(times.get(*node).copied().unwrap_or_default());
        self.roots.sort_by_key(heavier);
        self.nodes.iter_mut().for_each(|node| node.children.sort_by_key(heavier));
    }

    /// From the outermost function on always the heaviest, up to one that has more time of its own than any that it calls.
    pub(crate) fn heaviest(&self) -> Option<usize> {
        let mut at = *self.roots.first()?;
        while let Some(node) = self.nodes.get(at) {
            let child = node.children.first().copied();
            let Some((next, child)) = child.and_then(|next| Some((next, self.nodes.get(next)?))) else {
                break;
            };
            if node.own_time > child.time {
                break;
            }
            at = next;
        }
        Some(at)
    }
}

impl Hang {
    /// The position in [`Hang::nodes`] of the innermost frame of the heaviest stack: the one whose functions most time
    /// was spent in, from the outermost on. `None` without samples.
    pub fn heaviest(&self) -> Option<usize> {
        let tree = MergedTree::of(self);
        Some(tree.nodes.get(tree.heaviest()?)?.sample)
    }

    /// Writes each stack as `outermost;…;innermost N`, N in milliseconds: what flame graphs are made of. Callers come
    /// before what they call, and the heaviest first.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_collapsed(&self, out: &mut dyn Write) -> io::Result<()> {
        let tree = MergedTree::of(self);
        let mut open: Vec<usize> = tree.roots.iter().rev().copied().collect();
        let mut stack: Vec<&str> = Vec::new();
        while let Some(node) = open.pop().and_then(|place| tree.nodes.get(place)) {
            stack.truncate(node.depth);
            stack.push(&node.label);
            if !node.own_time.is_zero() {
                let millis = (node.own_time.as_secs_f64() * 1000.0).round().max(1.0);
                writeln!(out, "{} {millis}", stack.join(";"))?;
            }
            open.extend(node.children.iter().rev());
        }
        Ok(())
    }
}

/// The names of one frame, innermost first; `image+0x…` where it has none. A semicolon would end the frame, a line break
/// the stack.
pub(crate) fn names(hang: &Hang, frame: &Frame) -> Vec<String> {
    let mut names: Vec<_> = frame.names().map(str::to_owned).collect();
    if names.is_empty() {
        names.push(place(hang, frame));
    }
    names.iter_mut().for_each(|name| *name = name.replace(';', ":").replace(['\n', '\r'], " "));
    names
}

/// Where a frame without a name is.
pub(crate) fn place(hang: &Hang, frame: &Frame) -> String {
    let Some(address) = frame.address.map(backtrail_core::FrameAddress::raw) else {
        return "no address".to_owned();
    };
    let image = frame.image.and_then(|image| hang.process.images.get(image));
    let offset = image.and_then(|image| address.offset_from(image.load_address));
    match (image, offset) {
        (Some(image), Some(offset)) => format!("{}+{offset:#x}", image.name),
        _ => address.to_string(),
    }
}
