//! Payloads of our own, of each kind.

use super::read;
use crate::Limits;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::Report;

fn parse(text: &str) -> Report {
    read(text.as_bytes(), 0, &Limits::default()).unwrap()
}

const APP: &str = "11111111-2222-3333-4444-555555555555";
const DYLD: &str = "11111111-2222-3333-4444-555555555556";

fn frame(id: &str, name: &str, address: u64, offset: u64, count: u64, below: &str) -> String {
    format!(
        r#"{{"binaryUUID":"{id}","binaryName":"{name}","address":{address},"offsetIntoBinaryTextSegment":{offset},"sampleCount":{count},"subFrames":[{below}]}}"#
    )
}

fn payload() -> String {
    let outer = frame(DYLD, "libdyld.dylib", 0x1_9000_1234, 0x1_9000_0000, 1, "");
    let crash = frame(APP, "Shop", 0x1_0000_5abc, 0x1_0000_0000, 1, &outer);
    let inner =
        [frame(APP, "Shop", 0x1_0000_6004, 0x6004, 3, ""), frame(APP, "Shop", 0x1_0000_6104, 0x6104, 1, "")];
    let hang = frame(DYLD, "dyld", 0x1_9000_1234, 0x1234, 5, &inner.join(","));
    format!(
        r#"{{"timeStampBegin":"2024-01-01 00:00:00","timeStampEnd":"2024-01-02 00:00:00",
        "hangDiagnostics":[{{"version":"1.0.0","callStackTree":{{"callStackPerThread":true,"callStacks":[{{"threadAttributed":true,"callStackRootFrames":[{hang}]}}]}},
            "diagnosticMetaData":{{"hangDuration":"20 sec","bundleIdentifier":"com.example.shop"}}}}],
        "crashDiagnostics":[{{"version":"1.0.0","callStackTree":{{"callStackPerThread":true,"callStacks":[
            {{"threadAttributed":false,"callStackRootFrames":[{outer}]}},{{"threadAttributed":true,"callStackRootFrames":[{crash}]}}]}},
            "diagnosticMetaData":{{"appVersion":"1.0","appBuildVersion":"7","osVersion":"iPhone OS 14.0.1 (18A393)","deviceType":"iPhone10,2",
            "exceptionType":1,"exceptionCode":2,"signal":11,"platformArchitecture":"arm64","regionFormat":"CA",
            "terminationReason":"Namespace SIGNAL, Code 0xb","virtualMemoryRegionInfo":"0 is not in any region"}}}}]}}"#
    )
}

#[test]
fn a_crash_is_the_reports_own_whatever_stands_before() {
    let report = parse(&payload());
    let exception = report.exception.as_ref().unwrap();
    assert_eq!(exception.kind.as_deref(), Some("EXC_BAD_ACCESS"));
    assert_eq!(
        (exception.signal.as_deref(), exception.subtype.as_deref()),
        (Some("SIGSEGV"), Some("KERN_PROTECTION_FAILURE"))
    );
    let termination = report.termination.as_ref().unwrap();
    assert_eq!((termination.namespace.as_deref(), termination.code), (Some("SIGNAL"), Some(11)));
    assert_eq!((report.device.as_deref(), report.event.as_deref()), (Some("iPhone10,2"), None));
    assert_eq!(report.process.version.as_deref(), Some("1.0 (7)"));
    let crashed = report.crashed().unwrap();
    assert_eq!((crashed.number, crashed.frames.len()), (1, 2));
    assert_eq!(crashed.frames[0].address, Some(FrameAddress::Exact(Avma::new(0x1_0000_5abc))));
    assert_eq!(crashed.frames[1].address, Some(FrameAddress::Return(Avma::new(0x1_9000_1234))));
    // Here the number is the load address.
    assert_eq!(crashed.frames[0].image_offset, Some(0x5abc));
    let bases: Vec<_> = report.process.images.iter().map(|image| image.load_address.get()).collect();
    assert_eq!(bases, [0x1_9000_0000, 0x1_0000_0000]);
    assert_eq!(report.notes, Vec::<String>::new());
}

#[test]
fn the_exception_of_a_crash_is_kept_as_in_other_reports() {
    let thrown = r#"{"exceptionName":"NSRangeException","composedMessage":"index 7 beyond bounds"}"#;
    for member in ["objectiveCexceptionReason", "exceptionReason"] {
        let text = payload()
            .replace(r#""exceptionType":1,"#, &format!(r#""{member}":{thrown},"exceptionType":10,"#));
        assert_eq!(parse(&text).text_of("exceptionReason"), Some(thrown), "{member}");
    }
}

#[test]
fn payloads_within_what_a_service_put_around_them() {
    let text = format!(r#"{{"customer":"7","payload":{}}}"#, payload());
    let report = parse(&text);
    assert_eq!(report.process.version.as_deref(), Some("1.0 (7)"));
    assert!(
        report.fields.iter().any(|field| (field.key.as_str(), field.value.as_str()) == ("customer", "7"))
    );
    let text = format!(r#"[{{"payloads":[{}]}}]"#, payload());
    assert_eq!(parse(&text).processes.len(), 1);
}

#[test]
fn a_hang_is_a_tree() {
    let report = parse(&payload());
    let hang = &report.processes[0];
    assert_eq!(hang.identifier.as_deref(), Some("com.example.shop"));
    let said: Vec<_> = hang.fields.iter().map(|field| (field.key.as_str(), field.value.as_str())).collect();
    assert!(said.contains(&("diagnostic", "hang")) && said.contains(&("hangDuration", "20 sec")), "{said:?}");
    let tree = &hang.trees[0];
    let nodes: Vec<_> = tree.nodes.iter().map(|node| (node.parent, node.weight, node.own_weight)).collect();
    assert_eq!(nodes, [(None, 5, 1), (Some(0), 3, 3), (Some(0), 1, 1)]);
    assert_eq!(tree.title, "Stack 0 (attributed)");
    assert_eq!(hang.backtraces[0].frames.len(), 2);
    assert_eq!(hang.images[1].load_address.get(), 0x1_0000_0000);
}

#[test]
fn bare_trees_and_stacks_turned_round() {
    let outer = frame(DYLD, "dyld", 0x1_9000_1234, 0x1234, 1, "");
    let stack = frame(APP, "Shop", 0x1_0000_5abc, 0x5abc, 1, &outer);
    let bare = format!(
        r#"{{"callStackPerThread":true,"callStacks":[{{"threadAttributed":true,"callStackRootFrames":[{stack}]}}]}}"#
    );
    let report = parse(&bare);
    assert_eq!(report.crashed().unwrap().frames.len(), 2);
    let hang = format!(r#"{{"hangDiagnostics":[{{"callStackTree":{bare}}}]}}"#);
    let report = parse(&hang);
    assert_eq!(report.event.as_deref(), Some("hang"));
    let names: Vec<_> =
        report.process.trees[0].nodes.iter().map(|node| node.frame.image_name.as_deref()).collect();
    assert_eq!(names, [Some("dyld"), Some("Shop")]);
}

#[test]
fn metrics_stay_fields() {
    let report = parse(
        r#"{"timeStampEnd":"now","memoryMetrics":{"peakMemoryUsage":"200,000 kB"},"metaData":{"osVersion":"iPhone OS 17.0","bundleIdentifier":"com.example.shop"}}"#,
    );
    assert_eq!(report.event.as_deref(), Some("metrics"));
    assert!(report.fields.iter().any(|field| field.key == "memoryMetrics.peakMemoryUsage"));
    assert_eq!(report.process.identifier.as_deref(), Some("com.example.shop"));
}

#[test]
fn deep_wide_and_cut_ones_end() {
    let mut deep = String::new();
    for _ in 0..2000 {
        deep = frame(APP, "Shop", 0x1_0000_5abc, 0x5abc, 1, &deep);
        if deep.len() > 4_000_000 {
            break;
        }
    }
    let text = format!(
        r#"{{"crashDiagnostics":[{{"callStackTree":{{"callStacks":[{{"threadAttributed":true,"callStackRootFrames":[{deep}]}}]}}}}]}}"#
    );
    assert_eq!(parse(&text).crashed().unwrap().frames.len(), 2000);
    let text = payload();
    for end in 1..text.len() {
        let report = parse(&text[..end]);
        assert!(report.notes.iter().any(|note| note.starts_with("the report is cut or broken")));
    }
}
