//! The document of one hang.

use super::HANG_SCHEMA;
use super::frame::{FrameJson, frame};
use super::report::{MappedJson, ProcessJson, mapped, process};
use backtrail_hang::{End, Hang, millis};
use backtrail_model::{Frame, Image, TreeNode};
use serde::Serialize;
use std::time::Duration;

/// The whole document: serialize it with any `serde` format.
#[derive(Debug, Serialize)]
pub struct HangJson<'a> {
    schema: &'static str,
    kind: &'static str,
    process: ProcessJson<'a>,
    time: Option<String>,
    thread: ThreadJson<'a>,
    number: u64,
    threshold_ms: f64,
    lasted_ms: f64,
    activity: &'static str,
    cpu_ms: Option<f64>,
    queued_ms: Option<f64>,
    measured_ms: f64,
    excused: ExcusedJson,
    samples: u64,
    incomplete: u64,
    missed: u64,
    missed_because: Option<&'a str>,
    ended: Option<&'static str>,
    heaviest: Vec<FrameJson<'a>>,
    tree: Vec<NodeJson<'a>>,
    images: Vec<MappedJson<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct ThreadJson<'a> {
    id: Option<u64>,
    name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct ExcusedJson {
    suspended_ms: f64,
    stopped_ms: f64,
    gaps: u64,
}

#[derive(Debug, Serialize)]
struct NodeJson<'a> {
    parent: Option<usize>,
    samples: u64,
    own_samples: u64,
    time_ms: f64,
    own_time_ms: f64,
    frame: FrameJson<'a>,
}

/// The document for one hang.
pub fn hang(hang: &Hang) -> HangJson<'_> {
    let heaviest = hang.heaviest().into_iter().flat_map(|node| hang.stack(node));
    HangJson {
        schema: HANG_SCHEMA,
        kind: "hang",
        process: process(&hang.process),
        time: hang.time(),
        thread: ThreadJson { id: hang.thread_id, name: hang.thread_name.as_deref() },
        number: hang.number,
        threshold_ms: millis(hang.threshold),
        lasted_ms: millis(hang.lasted),
        activity: hang.activity().as_str(),
        cpu_ms: hang.cpu.map(millis),
        queued_ms: hang.queued.map(millis),
        measured_ms: millis(hang.measured),
        excused: ExcusedJson {
            suspended_ms: millis(hang.excused.suspended),
            stopped_ms: millis(hang.excused.stopped),
            gaps: hang.excused.gaps,
        },
        samples: hang.samples,
        incomplete: hang.incomplete,
        missed: hang.missed,
        missed_because: hang.missed_because.as_deref(),
        ended: hang.end.map(End::as_str),
        heaviest: heaviest
            .zip(0..)
            .map(|(item, index)| at_place(index, item, &hang.process.images))
            .collect(),
        tree: hang.nodes().iter().map(|item| node(item, &hang.process.images)).collect(),
        images: hang.process.images.iter().map(mapped).collect(),
        notes: &hang.notes,
    }
}

/// In the tree a frame's index is its depth; in a stack it is its place, as in all others.
fn at_place<'a>(index: u32, item: &'a Frame, images: &'a [Image]) -> FrameJson<'a> {
    let mut shown = frame(item, images);
    shown.index = index;
    shown
}

fn node<'a>(node: &'a TreeNode, images: &'a [Image]) -> NodeJson<'a> {
    NodeJson {
        parent: node.parent,
        samples: node.samples,
        own_samples: node.own_samples,
        time_ms: millis(Duration::from_nanos(node.weight)),
        own_time_ms: millis(Duration::from_nanos(node.own_weight)),
        frame: frame(&node.frame, images),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Function;
    use backtrail_model::{Tree, Unit};

    fn node(parent: Option<usize>, index: u32, name: &str, own_weight: u64) -> TreeNode {
        let mut node = TreeNode::new(parent, Frame::new(index));
        node.frame.functions.push(Function { name: name.to_owned(), ..Function::default() });
        (node.own_samples, node.own_weight) = (own_weight.min(1), own_weight);
        node
    }

    #[test]
    fn json_has_the_tree_and_the_heaviest_stack() {
        let nodes =
            vec![node(None, 0, "main", 0), node(Some(0), 1, "hash", 9_000_000), node(Some(0), 1, "read", 1)];
        let mut tree = Tree { unit: Unit::Nanoseconds, nodes, ..Tree::default() };
        tree.add_up();
        let mut shown = Hang::default();
        shown.process.trees.push(tree);
        (shown.lasted, shown.end) = (Duration::from_millis(330), Some(End::Recovered));
        let json = serde_json::to_value(hang(&shown)).unwrap();
        assert_eq!(json["schema"], "backtrail-hang/1");
        assert_eq!((&json["lasted_ms"], &json["ended"]), (&330.0.into(), &"recovered".into()));
        assert_eq!(json["heaviest"].as_array().unwrap().len(), 2);
        assert_eq!(json["heaviest"][0]["functions"][0]["name"], "hash");
        assert_eq!((&json["heaviest"][0]["index"], &json["heaviest"][1]["index"]), (&0.into(), &1.into()));
        let tree = json["tree"].as_array().unwrap();
        assert_eq!(tree.len(), 3);
        assert_eq!((&tree[0]["parent"], &tree[1]["parent"]), (&serde_json::Value::Null, &0.into()));
        assert_eq!((&tree[0]["samples"], &tree[1]["time_ms"]), (&2.into(), &9.0.into()));
    }
}
