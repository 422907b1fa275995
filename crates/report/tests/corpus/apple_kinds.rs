//! Apple's reports other than crashes: what they say is in the model, all of it.

use crate::losses::{Words, leaves, words};
use crate::{files, read};
use backtrail_model::{Frame, Report, Source};
use backtrail_report::emit;
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Words of the form, which the model states by its own structure.
const FORM: &str = "Process Path PID Command Identifier Version Code Type Parent Date/Time OS Version Incident Identifier \
    Hardware model Event Binary Images Call graph Analysis of Powerstats for in load address ??? \
    Program crashed Platform Thread Registers unknown ra namespace";

fn texts() -> Vec<PathBuf> {
    let mut found = files("apple/sample", ".txt");
    for (directory, ending) in [
        ("kinds/apple-hang", ".hang"),
        ("kinds/apple-resource", ".diag"),
        ("kinds/apple-panic", ""),
        ("kinds/swift-backtrace", ".txt"),
    ] {
        found.extend(files(directory, ending));
    }
    found
}

fn json() -> Vec<PathBuf> {
    let directories =
        ["apple-ips-other", "apple-jetsam", "apple-watchdog"].map(|name| format!("kinds/{name}"));
    let kinds = directories.iter().flat_map(|directory| files(directory, ".ips"));
    kinds.chain(files("apple/metrickit", ".json")).collect()
}

fn check_text(path: &Path, text: &str, report: &Report, form: &HashSet<String>) {
    let model = Words::of(report);
    for (number, line) in text.lines().enumerate() {
        let is_lost = |word: &String| !model.0.contains(word) && !form.contains(word);
        let lost: Vec<String> = words(line).filter(is_lost).collect();
        assert!(lost.is_empty(), "{} line {}: {lost:?} of `{line}`", path.display(), number + 1);
    }
}

#[test]
fn every_word_of_a_text_is_in_the_model() {
    let form: HashSet<String> = words(FORM).collect();
    for path in texts() {
        let (input, report) = read(&path);
        check_text(&path, &String::from_utf8_lossy(&input), &report, &form);
        assert!(emit(&input, &report) == input, "{}", path.display());
    }
}

#[test]
fn every_leaf_of_json_is_in_the_model() {
    let form: HashSet<String> = words(FORM).collect();
    for path in json() {
        let (input, report) = read(&path);
        let model = Words::of(&report);
        let text = String::from_utf8_lossy(&input);
        let mut found = Vec::new();
        for document in serde_json::Deserializer::from_str(&text).into_iter::<Value>().map_while(Result::ok) {
            leaves("", &document, &mut found);
        }
        // Structure: which thread it is about. Numbers of exceptions and signals become their names.
        let structure =
            [".threadAttributed", ".exceptionType", ".signal", ".sampleCount", ".callStackPerThread"];
        let found = found.iter().filter(|(leaf, _)| !structure.iter().any(|end| leaf.ends_with(end)));
        for (leaf, value) in found {
            let is_lost = |word: &String| !model.0.contains(word) && !form.contains(word);
            let lost: Vec<String> = words(value).filter(is_lost).collect();
            assert!(lost.is_empty(), "{} {leaf}: {lost:?} of `{value}`", path.display());
        }
        assert!(emit(&input, &report) == input, "{}", path.display());
    }
}

fn one(directory: &str, name: &str) -> Option<Report> {
    let path = backtrail_testkit::corpus_file(format!("{directory}/{name}"))?;
    Some(read(&path).1)
}

#[test]
fn samples_have_their_trees_and_images() {
    let Some(report) = one("apple/sample", "sampling.txt") else { return };
    let process = &report.process;
    assert_eq!((report.source, process.name.as_deref()), (Source::AppleSamples, Some("Slack")));
    assert_eq!((process.trees.len(), process.images.len()), (34, 458));
    let nodes: usize = process.trees.iter().map(|tree| tree.nodes.len()).sum();
    assert!(nodes > 400, "{nodes}");
    // Code that was made while the process ran has no image.
    let is_placed =
        |frame: &Frame| frame.image.is_some() || frame.image_name.as_deref() == Some("<unknown binary>");
    assert!(process.trees.iter().flat_map(|tree| &tree.nodes).all(|node| is_placed(&node.frame)));
    for tree in &process.trees {
        let roots: u64 = tree.nodes.iter().filter(|node| node.parent.is_none()).map(|node| node.weight).sum();
        let own: u64 = tree.nodes.iter().map(|node| node.own_weight).sum();
        assert_eq!(roots, own, "{}", tree.title);
    }
    let report = one("apple/sample", "spindump.txt").unwrap();
    assert_eq!(report.process.pid, Some(2252));
    assert_eq!(report.process.trees[0].nodes[0].weight, 1000);
}

#[test]
fn panics_have_their_stack_and_extensions() {
    let Some(report) = one("kinds/apple-panic", "opticks-macos-10.13-1.panic") else { return };
    let thread = report.crashed().unwrap();
    assert_eq!(thread.frames.len(), 25);
    let of = |name: &str| {
        let position = report.process.images.iter().position(|image| image.name == name);
        thread.frames.iter().filter(|frame| frame.image == position).count()
    };
    assert_eq!(
        (of("kernel"), of("com.nvidia.web.NVDAResmanWeb"), of("com.nvidia.web.NVDAGK100HalWeb")),
        (19, 5, 1)
    );
    assert!(report.exception.unwrap().message.unwrap().starts_with("\"thread_invoke: preemption_level 1"));
    let report = one("kinds/apple-panic", "syz-darwin-report-6").unwrap();
    assert_eq!(report.crashed().unwrap().frames.len(), 23);
    assert_eq!(report.crashed().unwrap().frames[0].names().next(), Some("_handle_debugger_trap"));
}

#[test]
fn payloads_of_metrickit_have_their_stacks() {
    let Some(report) = one("apple/metrickit", "ios_uncaugh_exception_payload.json") else { return };
    assert_eq!(report.process.threads.len(), 10);
    let crashed = report.crashed().unwrap();
    assert_eq!(crashed.frames.len(), 31);
    let bases: Vec<u64> = report.process.images.iter().map(|image| image.load_address.get()).collect();
    assert!(bases.iter().all(|base| base % 0x1000 == 0 && *base > 0), "{bases:x?}");
    assert_eq!(report.notes, Vec::<String>::new());
    let report = one("apple/metrickit", "xcode_simulated_macOS_13.json").unwrap();
    assert_eq!(report.processes.len(), 4, "a hang, processor, disk, launch");
    let report = one("apple/metrickit", "not-per-thread.json").unwrap();
    assert_eq!(report.process.trees.len() + report.process.threads.len(), 1);
}
