//! Apple's reports other than crashes are symbolicated: the sample's crashed thread, told again in the form of each kind.

use backtrail::{Analysis, Frame, FrameAddress, Image, Limits, NoProgress, Process, Symbols};
use backtrail_testkit::fixtures;
use std::fmt::Write as _;

fn symbols() -> Symbols {
    Symbols::scan(&[fixtures().join("sample/symbols")], &NoProgress)
}

fn analyse(text: &str) -> Analysis {
    Analysis::new(text.as_bytes(), &symbols(), &Limits::default()).unwrap()
}

/// The stack to be told again: frames of the crashed thread with an address in an image that has symbols.
struct Told {
    frames: Vec<(u64, Image)>,
    names: Vec<Vec<String>>,
}

fn names(frame: &Frame) -> Vec<String> {
    frame.functions.iter().map(|function| function.name.clone()).collect()
}

fn crash() -> Told {
    let path = fixtures().join("sample/reports/null-member.ips");
    let analysis = analyse(&std::fs::read_to_string(path).unwrap());
    let process = &analysis.report.process;
    let frames = process
        .crashed()
        .unwrap()
        .frames
        .iter()
        .filter(|frame| !frame.functions.is_empty() && !frame.inlined);
    let (frames, names): (Vec<_>, Vec<_>) = frames
        .map(|frame| {
            let image = process.images[frame.image.unwrap()].clone();
            ((frame.address.map(FrameAddress::raw).unwrap().get(), image), names(frame))
        })
        .unzip();
    assert!(frames.len() > 2);
    Told { frames, names }
}

fn offset(address: u64, image: &Image) -> u64 {
    address - image.load_address.get()
}

/// Names of a tree's nodes, innermost first.
fn in_tree(process: &Process) -> Vec<Vec<String>> {
    process.trees[0].nodes.iter().rev().map(|node| names(&node.frame)).collect()
}

#[test]
fn metrickit() {
    let told = crash();
    let mut below = String::new();
    for (address, image) in told.frames.iter().rev() {
        let sub = if below.is_empty() { String::new() } else { format!(",\"subFrames\":[{below}]") };
        below = format!(
            r#"{{"binaryUUID":"{}","binaryName":"{}","address":{address},"offsetIntoBinaryTextSegment":{},"sampleCount":1{sub}}}"#,
            image.id.unwrap(),
            image.name,
            offset(*address, image)
        );
    }
    let stacks = format!(
        r#""callStackTree":{{"callStackPerThread":true,"callStacks":[{{"threadAttributed":true,"callStackRootFrames":[{below}]}}]}}"#
    );
    let payload = format!(r#"{{"crashDiagnostics":[{{{stacks}}},{{{stacks}}}]}}"#);
    let report = analyse(&payload).report;
    let found: Vec<_> = report.process.crashed().unwrap().frames.iter().map(names).collect();
    assert_eq!(found, told.names);
    let other: Vec<_> = report.processes[0].crashed().unwrap().frames.iter().map(names).collect();
    assert_eq!(other, told.names, "a further process");
}

#[test]
fn spindump_with_and_without_a_list_of_images() {
    let told = crash();
    let (mut rows, mut by_id) = (String::new(), String::new());
    for (depth, (address, image)) in told.frames.iter().rev().enumerate() {
        let indent = " ".repeat(2 * depth + 2);
        let offset = offset(*address, image);
        writeln!(rows, "{indent}10  ??? ({} + {offset}) [{address:#x}]", image.name).unwrap();
        writeln!(by_id, "{indent}10  ??? (<{}> + {offset}) [{address:#x}]", image.id.unwrap()).unwrap();
    }
    let mut images = String::new();
    for (_, image) in &told.frames {
        let (low, high) = (image.load_address.get(), image.end_address.unwrap().get() - 1);
        writeln!(images, "  {low:#x} - {high:#x} {} (1) <{}> /{}", image.name, image.id.unwrap(), image.name)
            .unwrap();
    }
    let text = format!(
        "Data Source: Stackshots\nCommand: Weather\nPID: 1\nEvent: hang\n\nProcess: Weather [1]\n\n  Thread 0x1  10 samples\n{rows}\n  Binary Images:\n{images}\nProcess: Other [2]\n\n  Thread 0x2  10 samples\n{by_id}\n"
    );
    let report = analyse(&text).report;
    assert_eq!(in_tree(&report.process), told.names);
    assert_eq!(in_tree(&report.processes[0]), told.names, "images that only the rows name");
    let heaviest: Vec<_> = report.process.backtraces[0].frames.iter().map(names).collect();
    assert_eq!(heaviest, told.names);
}

#[test]
fn sample() {
    let told = crash();
    let (mut rows, mut images) = (String::new(), String::new());
    for (depth, (address, image)) in told.frames.iter().rev().enumerate() {
        let indent = " ".repeat(2 * depth);
        let (low, high) = (image.load_address.get(), image.end_address.unwrap().get() - 1);
        writeln!(
            rows,
            "    + {indent}10 ???  (in {})  load address {low:#x} + {:#x}  [{address:#x}]",
            image.name,
            offset(*address, image)
        )
        .unwrap();
        writeln!(
            images,
            "  {low:#x} - {high:#x} +{} (1) <{}> /{}",
            image.name,
            image.id.unwrap(),
            image.name
        )
        .unwrap();
    }
    let text = format!(
        "Analysis of sampling Weather (pid 1) every 1 millisecond\nCall graph:\n    10 Thread_1\n{rows}\nBinary Images:\n{images}"
    );
    assert_eq!(in_tree(&analyse(&text).report.process), told.names);
}

#[test]
fn stackshots() {
    let told = crash();
    let images: Vec<_> = told
        .frames
        .iter()
        .map(|(_, image)| format!(r#"["{}",{},"P"]"#, image.id.unwrap(), image.load_address.get()))
        .collect();
    let frames: Vec<_> = told
        .frames
        .iter()
        .enumerate()
        .map(|(at, (address, image))| format!("[{at},{}]", offset(*address, image)))
        .collect();
    let process = |pid: u64| {
        format!(
            r#""{pid}":{{"pid":{pid},"procname":"Weather","threadById":{{"5":{{"userFrames":[{}]}}}}}}"#,
            frames.join(",")
        )
    };
    let text = format!(
        "{{\"bug_type\":\"288\"}}\n{{\"frontmostPids\":[1],\"binaryImages\":[{}],\"processByPid\":{{{},{}}}}}",
        images.join(","),
        process(1),
        process(2)
    );
    let report = analyse(&text).report;
    for process in [&report.process, &report.processes[0]] {
        let found: Vec<_> = process.threads[0].frames.iter().map(names).collect();
        assert_eq!(found, told.names);
    }
}

/// Crashlytics' `(Missing UUID …)` states a build and an offset in it, and no address.
#[test]
fn offsets_in_a_known_build() {
    let symbols = Symbols::scan(&[fixtures().join("sample/symbols")], &NoProgress);
    let row = "Weather                        0x41cc (Missing UUID 4c4c44d455553144a1cf98ce2aa71bd7)";
    let text = format!(
        "Crashed: com.apple.main-thread\n0  {row}\n1  UIKitCore                      0x99 -[UIView f] + 4\n"
    );
    let analysis = Analysis::new(text.as_bytes(), &symbols, &Limits::default()).unwrap();
    let frame = &analysis.report.process.threads[0].frames[0];
    let names: Vec<_> = frame.names().collect();
    assert!(names.contains(&"weather::Forecast::refresh()"), "{names:?}");
    assert_eq!(frame.address, None);
}
