//! The report document.

use super::diff::{DiffJson, diff};
use super::frame::{FrameJson, frame};
use super::lock::{DeadlockJson, LockWaitJson, deadlock, lock_wait};
use super::{Hex, Origin, REPORT_SCHEMA, STACKS_SCHEMA};
use crate::{Analysis, StackDiff, Stacks};
use backtrail_core::Confidence;
use backtrail_diagnose::{Group, Layer};
use backtrail_model::{
    AppInfo, Backtrace, Exception, Field, Image, Process, Section, Termination, Thread, Tree, TreeNode,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The whole document: serialize it with any `serde` format.
#[derive(Debug, Serialize)]
pub struct ReportJson<'a> {
    schema: &'static str,
    /// The file that it was read from, where the caller names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
    /// Which of the file's reports it is, where the caller says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<usize>,
    kind: &'static str,
    process: ProcessJson<'a>,
    os: Option<&'a str>,
    device: Option<&'a str>,
    time: Option<&'a str>,
    incident: Option<&'a str>,
    event: Option<&'a str>,
    exception: Option<ExceptionJson<'a>>,
    termination: Option<TerminationJson<'a>>,
    crashed_thread: Option<u64>,
    threads: Vec<ThreadJson<'a>>,
    backtraces: Vec<BacktraceJson<'a>>,
    images: Vec<ImageJson<'a>>,
    trees: Vec<TreeJson<'a>>,
    processes: Vec<OtherProcessJson<'a>>,
    explanation: ExplanationJson<'a>,
    attribution: AttributionJson<'a>,
    group: Option<GroupJson<'a>>,
    app_info: Vec<AppInfoJson<'a>>,
    fields: Vec<FieldJson<'a>>,
    sections: Vec<SectionJson<'a>>,
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
pub(super) struct ProcessJson<'a> {
    name: Option<&'a str>,
    pid: Option<u64>,
    path: Option<&'a str>,
    identifier: Option<&'a str>,
    version: Option<&'a str>,
    arch: Option<&'static str>,
    command_line: Option<&'a str>,
    role: Option<&'a str>,
    parent: Option<&'a str>,
    memory: Option<u64>,
    kill_reason: Option<&'a str>,
    translated: bool,
    fields: Vec<FieldJson<'a>>,
}

/// A further process, where the input has several.
#[derive(Debug, Serialize)]
struct OtherProcessJson<'a> {
    process: ProcessJson<'a>,
    crashed_thread: Option<u64>,
    threads: Vec<ThreadJson<'a>>,
    backtraces: Vec<BacktraceJson<'a>>,
    images: Vec<ImageJson<'a>>,
    trees: Vec<TreeJson<'a>>,
}

/// Samples of stacks as a call tree. The frames are a list, since stacks are deeper than readers of JSON go (128 levels as a
/// rule); trees that fit into that are nested as well.
#[derive(Debug, Serialize)]
struct TreeJson<'a> {
    title: &'a str,
    unit: &'static str,
    nodes: Vec<NodeJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<NestedJson<'a>>,
}

/// One frame of a tree.
#[derive(Debug, Serialize)]
struct NodeJson<'a> {
    depth: usize,
    frame: FrameJson<'a>,
    weight: u64,
    #[serde(rename = "self")]
    own_weight: u64,
    note: Option<&'a str>,
}

/// A frame with those that it calls inside of it.
#[derive(Debug, Serialize)]
struct NestedJson<'a> {
    frame: Option<FrameJson<'a>>,
    weight: u64,
    #[serde(rename = "self")]
    own_weight: u64,
    note: Option<&'a str>,
    children: Vec<NestedJson<'a>>,
}

#[derive(Debug, Serialize)]
struct ExceptionJson<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    signal: Option<&'a str>,
    code: Option<Hex>,
    subtype: Option<&'a str>,
    codes: Option<&'a str>,
    address: Option<Hex>,
    message: Option<&'a str>,
    note: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct TerminationJson<'a> {
    namespace: Option<&'a str>,
    code: Option<Hex>,
    reason: Option<&'a str>,
    details: &'a [String],
    by_process: Option<&'a str>,
    by_pid: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ThreadJson<'a> {
    index: u64,
    id: Option<u64>,
    name: Option<&'a str>,
    queue: Option<&'a str>,
    state: Option<&'a str>,
    waiting_in: Option<&'a str>,
    waiting_on: Option<&'a str>,
    waits_for: Option<LockWaitJson<'a>>,
    kernel_stack: &'a [String],
    wait_channel: Option<&'a str>,
    cpu_usage: Option<f64>,
    start_time: Option<f64>,
    user_time: Option<f64>,
    system_time: Option<f64>,
    priority: Option<i64>,
    nice: Option<i64>,
    namespace_id: Option<u64>,
    crashed: bool,
    ended: Option<&'static str>,
    ended_because: Option<&'a str>,
    recursion_depth: Option<u64>,
    registers: BTreeMap<&'a str, Hex>,
    fields: Vec<FieldJson<'a>>,
    frames: Vec<FrameJson<'a>>,
}

#[derive(Debug, Serialize)]
struct BacktraceJson<'a> {
    title: &'a str,
    is_exception: bool,
    frames: Vec<FrameJson<'a>>,
}

/// What an image is, and where it lies.
#[derive(Debug, Serialize)]
pub(super) struct MappedJson<'a> {
    name: &'a str,
    path: Option<&'a str>,
    id: Option<String>,
    arch: Option<&'static str>,
    load_address: Hex,
    end_address: Option<Hex>,
}

/// One image, with what is known of its symbols.
#[derive(Debug, Serialize)]
pub struct ImageJson<'a> {
    #[serde(flatten)]
    mapped: MappedJson<'a>,
    slide: Option<String>,
    symbols: &'static str,
    unnamed_frames: usize,
    files: &'a [String],
    tried: &'a [String],
    how_to_get: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_offset: Option<Hex>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unproven: bool,
}

#[derive(Debug, Serialize)]
struct ExplanationJson<'a> {
    title: &'a str,
    summary: &'a str,
    evidence: &'a [String],
    causes: &'a [String],
    next_steps: &'a [String],
}

#[derive(Debug, Serialize)]
struct AttributionJson<'a> {
    verdict: &'static str,
    name: Option<&'a str>,
    version: Option<&'a str>,
    confidence: Option<&'static str>,
    crashed: Option<LayerJson<'a>>,
    called: Option<LayerJson<'a>>,
    blamed: Option<LayerJson<'a>>,
    evidence: &'a [String],
}

/// A frame of the stack that the verdict rests on, and whose it is.
#[derive(Debug, Serialize)]
struct LayerJson<'a> {
    kind: &'static str,
    name: Option<&'a str>,
    frame: u32,
}

fn layer(layer: &Layer) -> LayerJson<'_> {
    LayerJson { kind: layer.kind.as_str(), name: layer.name.as_deref(), frame: layer.frame }
}

#[derive(Debug, Serialize)]
struct AppInfoJson<'a> {
    image: Option<&'a str>,
    lines: &'a [String],
}

#[derive(Debug, Serialize)]
struct FieldJson<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Debug, Serialize)]
struct SectionJson<'a> {
    title: &'a str,
    text: &'a str,
}

/// The document for one analysed report.
pub fn report(analysis: &Analysis) -> ReportJson<'_> {
    let (report, owner) = (&analysis.report, &analysis.report.process);
    ReportJson {
        schema: REPORT_SCHEMA,
        file: None,
        part: None,
        kind: report.source.as_str(),
        process: process(owner),
        os: report.os.as_deref(),
        device: report.device.as_deref(),
        time: report.time.as_deref(),
        incident: report.incident.as_deref(),
        event: report.event.as_deref(),
        exception: report.exception.as_ref().map(exception),
        termination: report.termination.as_ref().map(termination),
        crashed_thread: report.crashed().map(|thread| thread.number),
        threads: owner.threads.iter().map(|thread| thread_json(thread, owner)).collect(),
        backtraces: owner.backtraces.iter().map(|backtrace| backtrace_json(backtrace, owner)).collect(),
        images: owner.images.iter().map(image).collect(),
        trees: owner.trees.iter().map(|tree| tree_json(tree, owner)).collect(),
        processes: report.processes.iter().map(other_process).collect(),
        explanation: explanation(analysis),
        attribution: attribution(analysis),
        group: analysis.group.as_ref().map(|group| group_json(group, analysis)),
        app_info: report.app_info.iter().map(app_info).collect(),
        fields: report.fields.iter().map(field).collect(),
        sections: report.sections.iter().map(section).collect(),
        notes: &report.notes,
    }
}

fn other_process(other: &Process) -> OtherProcessJson<'_> {
    OtherProcessJson {
        process: process(other),
        crashed_thread: other.crashed().map(|thread| thread.number),
        threads: other.threads.iter().map(|thread| thread_json(thread, other)).collect(),
        backtraces: other.backtraces.iter().map(|backtrace| backtrace_json(backtrace, other)).collect(),
        images: other.images.iter().map(image).collect(),
        trees: other.trees.iter().map(|tree| tree_json(tree, other)).collect(),
    }
}

/// Deeper trees are not nested. A level of a tree is two of JSON, and of 128 the document takes some itself.
const MAX_NESTED: usize = 48;

fn tree_json<'a>(tree: &'a Tree, process: &'a Process) -> TreeJson<'a> {
    let order = pre_order(tree);
    let in_order = |&(position, depth): &(usize, usize)| Some((depth, tree.nodes.get(position)?));
    let node = |(depth, node): (usize, &'a TreeNode)| NodeJson {
        depth,
        frame: frame(&node.frame, &process.images),
        weight: node.weight,
        own_weight: node.own_weight,
        note: node.note.as_deref(),
    };
    let is_shallow = order.iter().all(|(_, depth)| *depth < MAX_NESTED);
    let root = is_shallow.then(|| {
        let mut nodes = order.iter().filter_map(in_order).peekable();
        let mut roots = nested(&mut nodes, 0, process);
        match roots.pop() {
            Some(only) if roots.is_empty() => only,
            last => {
                roots.extend(last);
                let weight = roots.iter().map(|root| root.weight).fold(0, u64::saturating_add);
                NestedJson { frame: None, weight, own_weight: 0, note: None, children: roots }
            }
        }
    });
    let nodes = order.iter().filter_map(in_order).map(node).collect();
    TreeJson { title: &tree.title, unit: tree.unit.as_str(), nodes, root }
}

/// The positions of a tree's nodes with their depths, each followed by what it calls.
fn pre_order(tree: &Tree) -> Vec<(usize, usize)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); tree.nodes.len()];
    let mut roots = Vec::new();
    for (position, node) in tree.nodes.iter().enumerate() {
        match node.parent.filter(|parent| *parent < position).and_then(|parent| children.get_mut(parent)) {
            Some(siblings) => siblings.push(position),
            None => roots.push(position),
        }
    }
    let mut order = Vec::with_capacity(tree.nodes.len());
    let mut open: Vec<(usize, usize)> = roots.into_iter().rev().map(|root| (root, 0)).collect();
    while let Some((position, depth)) = open.pop() {
        order.push((position, depth));
        let called = children.get(position).into_iter().flatten().rev();
        open.extend(called.map(|child| (*child, depth + 1)));
    }
    order
}

/// The nodes of one depth up to the next that is further out, what they call inside of them.
fn nested<'a>(
    nodes: &mut std::iter::Peekable<impl Iterator<Item = (usize, &'a TreeNode)>>,
    depth: usize,
    process: &'a Process,
) -> Vec<NestedJson<'a>> {
    let mut siblings = Vec::new();
    while let Some((_, node)) = nodes.next_if(|(at, _)| *at == depth) {
        siblings.push(NestedJson {
            frame: Some(frame(&node.frame, &process.images)),
            weight: node.weight,
            own_weight: node.own_weight,
            note: node.note.as_deref(),
            children: nested(nodes, depth + 1, process),
        });
    }
    siblings
}

pub(super) fn process(process: &Process) -> ProcessJson<'_> {
    ProcessJson {
        name: process.name.as_deref(),
        pid: process.pid,
        path: process.path.as_deref(),
        identifier: process.identifier.as_deref(),
        version: process.version.as_deref(),
        arch: process.arch.map(backtrail_core::Arch::name),
        command_line: process.command_line.as_deref(),
        role: process.role.as_deref(),
        parent: process.parent.as_deref(),
        memory: process.memory,
        kill_reason: process.kill_reason.as_deref(),
        translated: process.translated,
        fields: process.fields.iter().map(field).collect(),
    }
}

fn exception(exception: &Exception) -> ExceptionJson<'_> {
    ExceptionJson {
        kind: exception.kind.as_deref(),
        signal: exception.signal.as_deref(),
        code: exception.raw_codes.first().map(|code| Hex(*code)),
        subtype: exception.subtype.as_deref(),
        codes: exception.codes.as_deref(),
        address: exception.address.map(Hex::from),
        message: exception.message.as_deref(),
        note: exception.note.as_deref(),
    }
}

fn termination(termination: &Termination) -> TerminationJson<'_> {
    TerminationJson {
        namespace: termination.namespace.as_deref(),
        code: termination.code.map(Hex),
        reason: termination.reason.as_deref(),
        details: &termination.details,
        by_process: termination.by_process.as_deref(),
        by_pid: termination.by_pid,
    }
}

fn thread_json<'a>(thread: &'a Thread, process: &'a Process) -> ThreadJson<'a> {
    ThreadJson {
        index: thread.number,
        id: thread.id,
        name: thread.name.as_deref(),
        queue: thread.queue.as_deref(),
        state: thread.state.as_deref(),
        waiting_in: thread.waiting_in.as_deref(),
        waiting_on: thread.waiting_on.as_deref(),
        waits_for: thread.waits_for.as_ref().map(lock_wait),
        kernel_stack: &thread.kernel_stack,
        wait_channel: thread.wait_channel.as_deref(),
        cpu_usage: thread.cpu_usage,
        start_time: thread.start_time,
        user_time: thread.user_time,
        system_time: thread.system_time,
        priority: thread.priority,
        nice: thread.nice,
        namespace_id: thread.namespace_id,
        crashed: thread.crashed,
        ended: ended(thread),
        ended_because: thread.ended.as_ref().map(|ended| ended.why.as_str()),
        recursion_depth: thread.recursion.as_ref().map(|recursion| recursion.depth),
        registers: thread.registers.iter().map(|reg| (reg.name.as_str(), Hex(reg.value))).collect(),
        fields: thread.fields.iter().map(field).collect(),
        frames: thread.frames.iter().map(|item| frame(item, &process.images)).collect(),
    }
}

fn ended(thread: &Thread) -> Option<&'static str> {
    let walked = thread.ended.as_ref().map(|ended| ended.kind.as_str());
    walked.or_else(|| thread.recursion.as_ref().map(|_| "truncated"))
}

fn backtrace_json<'a>(backtrace: &'a Backtrace, process: &'a Process) -> BacktraceJson<'a> {
    BacktraceJson {
        title: &backtrace.title,
        is_exception: backtrace.is_exception,
        frames: backtrace.frames.iter().map(|item| frame(item, &process.images)).collect(),
    }
}

/// An image alone.
pub(super) fn mapped(image: &Image) -> MappedJson<'_> {
    MappedJson {
        name: &image.name,
        path: image.path.as_deref(),
        id: image.id.map(|id| id.to_string()),
        arch: image.arch.map(backtrail_core::Arch::name),
        load_address: image.load_address.into(),
        end_address: image.end_address.map(Hex::from),
    }
}

/// An image and what is known of its symbols.
pub fn image(image: &Image) -> ImageJson<'_> {
    let symbols = &image.symbols;
    ImageJson {
        mapped: mapped(image),
        slide: symbols.bias.map(|bias| bias.to_string()),
        symbols: symbols.status.as_str(),
        unnamed_frames: symbols.unnamed_frames,
        files: &symbols.files,
        tried: &symbols.tried,
        how_to_get: symbols.how_to_get.as_deref(),
        file_offset: image.file_offset.map(|offset| Hex(offset.get())),
        unproven: symbols.is_unproven,
    }
}

fn explanation(analysis: &Analysis) -> ExplanationJson<'_> {
    let explanation = &analysis.explanation;
    ExplanationJson {
        title: &explanation.title,
        summary: &explanation.summary,
        evidence: &explanation.evidence,
        causes: &explanation.causes,
        next_steps: &explanation.next_steps,
    }
}

/// The stacks of a captured process.
#[derive(Debug, Serialize)]
pub struct StacksJson<'a> {
    schema: &'static str,
    kind: &'static str,
    process: ProcessJson<'a>,
    os: Option<&'a str>,
    exception: Option<ExceptionJson<'a>>,
    crashed_thread: Option<u64>,
    deadlocks: Vec<DeadlockJson<'a>>,
    diff: Option<DiffJson<'a>>,
    threads: Vec<ThreadJson<'a>>,
    images: Vec<ImageJson<'a>>,
    notes: &'a [String],
}

/// The document for the stacks of a captured process, and for what became of its threads since an earlier capture.
pub fn stacks<'a>(stacks: &'a Stacks, since: Option<&'a StackDiff>) -> StacksJson<'a> {
    let (report, owner) = (&stacks.report, &stacks.report.process);
    StacksJson {
        schema: STACKS_SCHEMA,
        kind: report.source.as_str(),
        process: process(owner),
        os: report.os.as_deref(),
        exception: report.exception.as_ref().map(exception),
        crashed_thread: report.crashed().map(|thread| thread.number),
        deadlocks: owner.deadlocks.iter().map(deadlock).collect(),
        diff: since.map(diff),
        threads: owner.threads.iter().map(|thread| thread_json(thread, owner)).collect(),
        images: owner.images.iter().map(image).collect(),
        notes: &report.notes,
    }
}

/// The explanation alone.
#[derive(Debug, Serialize)]
pub(super) struct ExplainedJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<usize>,
    explanation: ExplanationJson<'a>,
    attribution: AttributionJson<'a>,
}

/// The explanation and attribution of one report.
pub(super) fn explained<'a>(analysis: &'a Analysis, origin: Origin<'a>) -> ExplainedJson<'a> {
    ExplainedJson {
        file: origin.file,
        part: origin.part,
        explanation: explanation(analysis),
        attribution: attribution(analysis),
    }
}

fn attribution(analysis: &Analysis) -> AttributionJson<'_> {
    let attribution = &analysis.attribution;
    AttributionJson {
        verdict: attribution.verdict.as_str(),
        name: attribution.name.as_deref(),
        version: attribution.version.as_deref(),
        confidence: attribution.confidence.map(Confidence::as_str),
        crashed: attribution.crashed.as_ref().map(layer),
        called: attribution.called.as_ref().map(layer),
        blamed: attribution.blamed.as_ref().map(layer),
        evidence: &attribution.evidence,
    }
}

/// What puts a report into a group.
#[derive(Debug, Serialize)]
struct GroupJson<'a> {
    key: &'a str,
    symbol_key: Option<&'a str>,
    title: String,
    why: &'a [String],
}

fn group_json<'a>(group: &'a Group, analysis: &Analysis) -> GroupJson<'a> {
    GroupJson {
        key: &group.key,
        symbol_key: group.symbol_key.as_deref(),
        title: group.title(&analysis.explanation),
        why: &group.why,
    }
}

fn app_info(info: &AppInfo) -> AppInfoJson<'_> {
    AppInfoJson { image: info.image.as_deref(), lines: &info.lines }
}

fn field(field: &Field) -> FieldJson<'_> {
    FieldJson { key: &field.key, value: &field.value }
}

fn section(section: &Section) -> SectionJson<'_> {
    SectionJson { title: &section.title, text: &section.text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_diagnose::{Attribution, Begins, Explanation};
    use backtrail_model::{Frame, Report, Unit};
    use backtrail_testkit::Schema;

    fn tree(names: &[(Option<usize>, u64)]) -> Tree {
        let node = |(parent, own): &(Option<usize>, u64)| {
            let mut node = TreeNode::new(*parent, Frame::new(u32::from(parent.is_some())));
            node.own_weight = *own;
            node
        };
        let nodes = names.iter().map(node).collect();
        let mut tree = Tree { title: "main".to_owned(), unit: Unit::Samples, nodes };
        tree.add_up();
        tree
    }

    #[test]
    fn trees_and_further_processes_keep_to_the_schema() {
        let one = tree(&[(None, 1), (Some(0), 2), (Some(1), 4)]);
        let two = tree(&[(None, 3), (None, 5)]);
        let other = Process { trees: vec![two], ..Process::default() };
        let report = Report {
            process: Process { trees: vec![one], ..Process::default() },
            processes: vec![other],
            ..Report::default()
        };
        let (explanation, attribution) = (Explanation::default(), Attribution::default());
        let begins = Begins::default();
        let analysis = Analysis { report, explanation, attribution, group: None, begins, mapping: None };
        let json = serde_json::to_value(super::report(&analysis)).unwrap();
        Schema::new().check("report", &json).unwrap();
        let root = &json["trees"][0]["root"];
        assert_eq!((&root["weight"], &root["self"]), (&7.into(), &1.into()));
        assert_eq!(root["children"][0]["children"][0]["weight"], 4);
        let root = &json["processes"][0]["trees"][0]["root"];
        assert_eq!((&root["frame"], &root["weight"]), (&serde_json::Value::Null, &8.into()));
    }

    /// One stack as deep as that, with a second leaf at its end.
    fn deep(depth: usize) -> String {
        let mut nodes: Vec<_> = (0..depth).map(|at| (at.checked_sub(1), 1)).collect();
        nodes.push((depth.checked_sub(2), 5));
        let process = Process { trees: vec![tree(&nodes)], ..Process::default() };
        let report = Report { processes: vec![process], ..Report::default() };
        let (explanation, attribution) = (Explanation::default(), Attribution::default());
        let begins = Begins::default();
        let analysis = Analysis { report, explanation, attribution, group: None, begins, mapping: None };
        serde_json::to_string(&super::report(&analysis)).unwrap()
    }

    #[test]
    fn trees_are_as_deep_as_readers_go_and_lists_are_whole() {
        for depth in [2, MAX_NESTED, MAX_NESTED + 1, 10_000] {
            // This reader's limit is 128 levels.
            let json: serde_json::Value = serde_json::from_str(&deep(depth)).unwrap();
            Schema::new().check("report", &json).unwrap();
            let tree = &json["processes"][0]["trees"][0];
            assert_eq!(tree.get("root").is_some(), depth <= MAX_NESTED, "{depth}");
            let nodes = tree["nodes"].as_array().unwrap();
            assert_eq!(nodes.len(), depth + 1);
            assert_eq!(nodes[0]["weight"], depth + 5);
            assert_eq!(nodes[depth - 1]["depth"], depth - 1);
            assert_eq!((&nodes[depth]["depth"], &nodes[depth]["self"]), (&(depth - 1).into(), &5.into()));
        }
    }
}
