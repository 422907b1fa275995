//! `callStackTree`: threads where it is one stack each, trees where it is samples.

use super::images::{Images, Stated};
use crate::call_tree::{add_heaviest, finish};
use crate::json::Json;
use crate::leftovers::{fill, flatten, text};
use crate::members::Members;
use crate::stack::{Origin, settle, unsettled};
use backtrail_core::{Avma, ImageId};
use backtrail_model::{Frame, Process, Thread, Tree, TreeNode};

/// A frame with what it is called from.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    stated: Stated,
    samples: u64,
}

/// One of `callStacks`.
#[derive(Debug, Default)]
struct Stack {
    is_attributed: bool,
    nodes: Vec<Node>,
}

impl Stack {
    /// Whether each frame has one neighbour at most: a stack rather than a tree.
    fn is_linear(&self) -> bool {
        self.nodes.iter().enumerate().all(|(at, node)| node.parent == at.checked_sub(1))
    }
}

/// Images that a thread's outermost frames lie in.
const OUTERMOST: [&str; 3] = ["dyld", "libdyld.dylib", "libsystem_pthread.dylib"];

/// Which frame a list begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    InnermostFirst,
    OutermostFirst,
}

impl Members<'_, '_> {
    pub(super) fn stacks(&mut self, json: &Json<'_>, kind: &str, process: &mut Process) {
        let mut stacks = Vec::new();
        for member in json.members() {
            let (name, value) = (member.name(), &member.value);
            if name == "callStacks" && stacks.is_empty() {
                stacks = value.items().iter().map(|item| self.stack(item, process)).collect();
            } else {
                flatten(&mut process.fields, self.input, &name, value, self.limits.max_items);
            }
        }
        let is_crash = kind == "crash" || (kind == "diagnostic" && stacks.iter().all(Stack::is_linear));
        let all: Vec<Stated> =
            stacks.iter().flat_map(|stack| &stack.nodes).map(|node| node.stated.clone()).collect();
        let images = Images::of(&all);
        for name in &images.odd {
            self.notes
                .add(|| format!("{kind}: frames of {name} state offsets that fit no load address of it"));
        }
        for (position, stack) in stacks.into_iter().enumerate() {
            if is_crash && stack.is_linear() {
                process.threads.push(thread(position, stack, &images));
                continue;
            }
            let order = order(&stack, is_crash);
            if order.is_none() && stack.nodes.len() > 1 {
                self.notes.add(|| {
                    format!("the payload does not tell which end of stack {position} is the innermost; the first frame is taken as the outermost")
                });
            }
            let order = order.unwrap_or(Order::OutermostFirst);
            process.trees.push(tree(position, stack, &images, order));
        }
        process.crashed_thread = process.threads.iter().position(|thread| thread.crashed);
        process.images = images.list;
        // The thread that hung comes first: its heaviest stack is the one to look at.
        let attributed = process.trees.iter().position(|tree| tree.title.ends_with(ATTRIBUTED));
        if let Some(attributed) = attributed.filter(|position| *position > 0) {
            process.trees.swap(0, attributed);
        }
        add_heaviest(process);
    }

    /// Reads one stack; without recursion, as deep as the JSON is.
    fn stack(&mut self, item: &Json<'_>, process: &mut Process) -> Stack {
        let mut stack = Stack::default();
        let mut open: Vec<(Option<usize>, &Json<'_>)> = Vec::new();
        for member in item.members() {
            let (name, value) = (member.name(), &member.value);
            match &*name {
                "threadAttributed" => stack.is_attributed = value.truth() == Some(true),
                "callStackRootFrames" => open.extend(value.items().iter().rev().map(|frame| (None, frame))),
                _ => flatten(
                    &mut process.fields,
                    self.input,
                    &format!("callStacks.{name}"),
                    value,
                    self.limits.max_items,
                ),
            }
        }
        while let Some((parent, frame)) = open.pop() {
            let Some(left) = self.frames_left.checked_sub(1) else {
                self.notes.add(|| "more frames than the limit allows; the rest is not read".to_owned());
                break;
            };
            self.frames_left = left;
            let position = stack.nodes.len();
            let node = self.node(parent, frame, process);
            stack.nodes.push(node);
            let below = frame.get("subFrames").map(Json::items).unwrap_or_default();
            open.extend(below.iter().rev().map(|frame| (Some(position), frame)));
        }
        stack
    }

    fn node(&self, parent: Option<usize>, frame: &Json<'_>, process: &mut Process) -> Node {
        let mut stated = Stated { id: None, name: None, address: None, offset: None };
        let mut samples = None;
        for member in frame.members() {
            let (name, value) = (member.name(), &member.value);
            let taken = match &*name {
                "binaryUUID" => {
                    fill(&mut stated.id, value.text().and_then(|id| ImageId::parse_uuid(&id).ok()))
                }
                "binaryName" => fill(&mut stated.name, text(value)),
                "address" => fill(&mut stated.address, value.number()),
                "offsetIntoBinaryTextSegment" => fill(&mut stated.offset, value.number()),
                "sampleCount" => fill(&mut samples, value.number()),
                "subFrames" => true,
                _ => false,
            };
            if !taken && process.fields.len() < self.limits.max_items {
                flatten(
                    &mut process.fields,
                    self.input,
                    &format!("frame.{name}"),
                    value,
                    self.limits.max_items,
                );
            }
        }
        Node { parent, stated, samples: samples.unwrap_or_default() }
    }
}

/// Which frame comes first. A tree with branches is one of calls, so its root is the outermost. Crashes begin with the
/// innermost frame (a real payload of iOS 14 ends in libdyld); of others the images of the ends tell, if anything does.
fn order(stack: &Stack, is_crash: bool) -> Option<Order> {
    if !stack.is_linear() {
        return Some(Order::OutermostFirst);
    }
    let is_outermost =
        |node: &Node| node.stated.name.as_deref().is_some_and(|name| OUTERMOST.contains(&name));
    let (first, last) = (stack.nodes.first()?, stack.nodes.last()?);
    match (is_outermost(first), is_outermost(last)) {
        (true, false) => Some(Order::OutermostFirst),
        (false, true) => Some(Order::InnermostFirst),
        _ if is_crash => Some(Order::InnermostFirst),
        _ => None,
    }
}

fn frame(stated: Stated, images: &Images) -> Frame {
    let mut frame = Frame::new(0);
    frame.image = stated.id.and_then(|id| images.position(id));
    frame.address =
        stated.address.filter(|address| *address > 0).map(|address| unsettled(Avma::new(address)));
    let base = frame.image.and_then(|image| images.list.get(image)).map(|image| image.load_address);
    let from_base = || Avma::new(stated.address?).offset_from(base?);
    // Where the payload's number is the load address, the offset is what is left.
    let is_base = base.is_some_and(|base| base.get() > 0 && Some(base.get()) == stated.offset);
    frame.image_offset = if is_base { from_base() } else { stated.offset };
    frame.image_name = stated.name;
    frame
}

fn thread(position: usize, stack: Stack, images: &Images) -> Thread {
    let mut frames: Vec<Frame> = stack.nodes.into_iter().map(|node| frame(node.stated, images)).collect();
    for (frame, index) in frames.iter_mut().zip(0..) {
        frame.index = index;
    }
    settle(&mut frames, Origin::Thread);
    Thread { number: position as u64, crashed: stack.is_attributed, frames, ..Thread::default() }
}

/// What the title of the thread ends with that the diagnostic is about.
const ATTRIBUTED: &str = "(attributed)";

fn tree(position: usize, stack: Stack, images: &Images, order: Order) -> Tree {
    let mark = if stack.is_attributed { format!(" {ATTRIBUTED}") } else { String::new() };
    let mut tree = Tree { title: format!("Stack {position}{mark}"), ..Tree::default() };
    let mut nodes: Vec<Node> = stack.nodes;
    if order == Order::InnermostFirst {
        // A stack only, never a tree: turned round, each is called by the one before.
        nodes.reverse();
        for (at, node) in nodes.iter_mut().enumerate() {
            node.parent = at.checked_sub(1);
        }
    }
    let mut depths: Vec<u32> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let above = node.parent.and_then(|parent| depths.get(parent));
        let depth = above.map_or(0, |depth| depth.saturating_add(1));
        depths.push(depth);
        let frame = Frame { index: depth, ..frame(node.stated, images) };
        let mut added = TreeNode::new(node.parent, frame);
        (added.samples, added.weight) = (node.samples, node.samples);
        tree.nodes.push(added);
    }
    finish(&mut tree);
    tree
}
