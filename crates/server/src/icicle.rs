//! The stacks of many reports of an issue, merged: where it happened on top, who called below.

use backtrail::{Frame, Report, Trust, telling_stack};

/// Reports of an issue that are merged, the latest first.
pub(crate) const MAX_REPORTS: i64 = 50;
/// Functions of one stack: what called half of the program tells little.
const MAX_DEPTH: usize = 64;
/// Boxes of one picture.
const MAX_NODES: usize = 2_000;
/// What stands for callers that are not known.
const UNKNOWN: &str = "[unknown]";

/// Stacks that are merged.
#[derive(Debug, Default)]
pub(crate) struct Icicle {
    /// The innermost functions.
    pub(crate) roots: Vec<Node>,
    /// How many reports have a stack here.
    pub(crate) reports: u64,
    /// Whether functions were left out, since there are too many.
    pub(crate) is_cut: bool,
    nodes: usize,
}

/// A function that was on a stack, as one that the functions above it were called by.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) name: String,
    /// How many reports have it there.
    pub(crate) count: u64,
    /// Who called it.
    pub(crate) callers: Vec<Node>,
}

impl Icicle {
    /// Adds the stack that shows what happened.
    pub(crate) fn add(&mut self, report: &Report) {
        let Some((_, frames)) = telling_stack(report) else { return };
        let stack = names(report, &frames);
        if !stack.is_empty() {
            self.add_stack(stack.into_iter());
        }
    }

    fn add_stack(&mut self, stack: impl Iterator<Item = String>) {
        self.reports += 1;
        let mut level = &mut self.roots;
        for (depth, name) in stack.enumerate() {
            let known = level.iter().position(|node| node.name == name);
            let position = match known {
                Some(position) => position,
                None if self.nodes >= MAX_NODES || depth >= MAX_DEPTH => {
                    self.is_cut = true;
                    return;
                }
                None => {
                    self.nodes += 1;
                    level.push(Node { name, count: 0, callers: Vec::new() });
                    level.len() - 1
                }
            };
            let Some(node) = level.get_mut(position) else { return };
            node.count += 1;
            level = &mut node.callers;
        }
    }

    /// Puts what most reports have first.
    pub(crate) fn sort(&mut self) {
        let mut open: Vec<&mut Vec<Node>> = vec![&mut self.roots];
        while let Some(level) = open.pop() {
            level.sort_by(|one, other| other.count.cmp(&one.count).then_with(|| one.name.cmp(&other.name)));
            open.extend(level.iter_mut().map(|node| &mut node.callers));
        }
    }

    /// All functions with their depths, each before its callers.
    pub(crate) fn rows(&self) -> Vec<(usize, &Node)> {
        let mut rows = Vec::with_capacity(self.nodes);
        let mut open: Vec<(usize, &Node)> = self.roots.iter().rev().map(|node| (0, node)).collect();
        while let Some((depth, node)) = open.pop() {
            rows.push((depth, node));
            open.extend(node.callers.iter().rev().map(|caller| (depth + 1, caller)));
        }
        rows
    }
}

/// What the functions of a stack are called, innermost first and inlined ones among them. Where a frame is a guess, the rest is not
/// known.
fn names(report: &Report, frames: &[&Frame]) -> Vec<String> {
    let mut stack = Vec::new();
    for frame in frames {
        if frame.trust == Trust::Scan {
            stack.push(UNKNOWN.to_owned());
            break;
        }
        let before = stack.len();
        stack.extend(frame.names().map(str::to_owned));
        if stack.len() == before {
            stack.push(place(report, frame));
        }
        if stack.len() > MAX_DEPTH {
            break;
        }
    }
    stack
}

/// Where an unnamed frame is: in every report of the same build the same.
fn place(report: &Report, frame: &Frame) -> String {
    let image = frame.image.and_then(|position| report.process.images.get(position));
    let name = image.map(|image| image.name.as_str()).or(frame.image_name.as_deref()).unwrap_or("???");
    let address = frame.address.map(backtrail::FrameAddress::raw);
    let offset = match (frame.image_offset, image, address) {
        (Some(offset), ..) => Some(offset),
        (None, Some(image), Some(address)) => address.offset_from(image.load_address),
        _ => None,
    };
    offset.map_or_else(|| name.to_owned(), |offset| format!("{name} + {offset:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn icicle(stacks: &[&str]) -> Icicle {
        let mut icicle = Icicle::default();
        for stack in stacks {
            icicle.add_stack(stack.split(' ').map(str::to_owned));
        }
        icicle.sort();
        icicle
    }

    #[test]
    fn stacks_share_what_they_have_in_common_from_the_innermost_on() {
        let icicle = icicle(&["a b main", "a c main", "a c main", "x main"]);
        let rows: Vec<_> =
            icicle.rows().into_iter().map(|(depth, node)| (depth, node.name.clone(), node.count)).collect();
        let row = |depth, name: &str, count| (depth, name.to_owned(), count);
        assert_eq!(
            rows,
            [
                row(0, "a", 3),
                row(1, "c", 2),
                row(2, "main", 2),
                row(1, "b", 1),
                row(2, "main", 1),
                row(0, "x", 1),
                row(1, "main", 1)
            ]
        );
        assert!(icicle.reports == 4 && !icicle.is_cut);
    }

    #[test]
    fn neither_deep_stacks_nor_many_make_it_large() {
        let deep = (0..1000).map(|number| number.to_string()).collect::<Vec<_>>().join(" ");
        assert!(icicle(&[&deep]).is_cut);
        let many: Vec<String> = (0..3 * MAX_NODES).map(|number| format!("f{number} main")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let many = icicle(&many);
        assert!(many.is_cut && many.rows().len() == MAX_NODES);
        assert_eq!(many.reports, 3 * MAX_NODES as u64);
    }
}
