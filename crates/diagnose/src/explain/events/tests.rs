//! Events of our own, and each kind's nearest neighbour.

use crate::explain;
use backtrail_model::{
    Backtrace, Exception, Field, Frame, Image, Process, Report, ReportedSymbol, Source, Thread, Tree,
    TreeNode,
};

fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    pairs.iter().map(|(key, value)| Field { key: (*key).to_owned(), value: (*value).to_owned() }).collect()
}

fn process(name: &str, memory: u64, reason: Option<&str>) -> Process {
    Process {
        name: Some(name.to_owned()),
        pid: Some(7),
        memory: Some(memory),
        kill_reason: reason.map(str::to_owned),
        ..Process::default()
    }
}

fn named(index: u32, name: &str) -> Frame {
    let reported = ReportedSymbol { name: name.to_owned(), ..ReportedSymbol::default() };
    Frame { reported: Some(reported), ..Frame::new(index) }
}

fn said(report: &Report) -> (&'static str, String, String) {
    let explanation = explain(report);
    (explanation.rule, explanation.title, [explanation.summary, explanation.evidence.join("\n")].join("\n"))
}

#[test]
fn memory_events() {
    let mut report = Report {
        source: Source::AppleJetsam,
        event: Some("jetsam (memory) event".to_owned()),
        process: process("Shop", 800 << 20, Some("per-process-limit")),
        processes: vec![process("Photos", 900 << 20, None)],
        fields: fields(&[
            ("largestProcess", "Photos"),
            ("memoryStatus.pageSize", "16384"),
            ("memoryStatus.memoryPages.free", "640"),
        ]),
        ..Report::default()
    };
    let (rule, title, text) = said(&report);
    assert_eq!(
        (rule, title.as_str()),
        ("memory-event", "The system ended Shop [7] for memory: per-process-limit, 800.0 MB")
    );
    assert!(text.contains("more memory than the system allows a process"), "{text}");
    assert!(text.contains("Photos [7] held most (900.0 MB); all together held 1.66 GB"), "{text}");
    assert!(text.contains("memoryStatus: 10.0 MB free"), "{text}");
    let mut pages = report.clone();
    (pages.process.memory, pages.process.fields) = (None, fields(&[("rpages", "200000")]));
    assert_eq!(said(&pages).1, "The system ended Shop [7] for memory: per-process-limit, 200000 pages");
    report.processes[0].kill_reason = Some("vm-pageshortage".to_owned());
    let (_, title, text) = said(&report);
    assert_eq!(title, "The system ended 2 processes for memory: per-process-limit and vm-pageshortage");
    assert!(text.contains("ran out of free pages"), "{text}");
    (report.process.kill_reason, report.processes[0].kill_reason) = (None, None);
    assert!(said(&report).1.starts_with("Memory ran low"));
    report.source = Source::AppleIps;
    assert_ne!(said(&report).0, "memory-event");
}

#[test]
fn panics_by_their_words() {
    let image = Image { bundle_id: Some("com.example.spl".to_owned()), ..Image::default() };
    let frames = vec![named(0, "_panic_trap_to_debugger"), Frame { image: Some(0), ..named(1, "spl_free") }];
    let thread = Thread { crashed: true, frames, ..Thread::default() };
    let mut report = Report {
        source: Source::ApplePanic,
        process: Process {
            threads: vec![thread],
            images: vec![image],
            crashed_thread: Some(0),
            ..Process::default()
        },
        ..Report::default()
    };
    for (message, title) in [
        (
            "\"userspace watchdog timeout: no successful checkins from thermalmonitord in 120 seconds\"",
            "Kernel panic: a system service did not answer: the watchdog restarted the device (thermalmonitord)",
        ),
        (
            "userspace watchdog timeout: no successful checkins from WindowServer",
            "Kernel panic: a system service did not answer: the watchdog restarted the device (WindowServer)",
        ),
        ("SEP monitor error: x", "Kernel panic: the Secure Enclave (SEP) failed"),
        (
            "Unaligned kernel data abort. at pc 0x1",
            "Kernel panic: the kernel accessed memory at an address that is not aligned",
        ),
        ("Cannot grow ipc space beyond 7", "Kernel panic: the table of ports was full"),
        ("\"DCP PANIC - apt firmware\"", "Kernel panic: the display coprocessor (DCP) failed"),
        ("Kernel SError", "Kernel panic: a bus error of the hardware (SError)"),
        (
            "\"Sleep transition timed out after 180 seconds\"",
            "Kernel panic: going to sleep or waking up took too long",
        ),
        ("GFX PANIC - 1", "Kernel panic: the graphics processor failed"),
        ("x86 CPU CATERR detected", "Kernel panic: the Mac's processor failed (seen by the T2 chip)"),
        ("words that nobody knows", "Kernel panic: the kernel stopped"),
    ] {
        report.exception = Some(Exception { message: Some(message.to_owned()), ..Exception::default() });
        let (rule, found, text) = said(&report);
        assert_eq!((rule, found.as_str()), ("kernel-panic", title));
        assert!(text.contains("com.example.spl, which is not Apple's"), "{text}");
        assert!(text.contains("Panicked thread frame 1: spl_free"), "{text}");
    }
}

#[test]
fn hangs_and_limits() {
    let stack = Backtrace {
        title: "Heaviest stack for the target process".to_owned(),
        frames: vec![named(0, "hash"), named(1, "main")],
        ..Backtrace::default()
    };
    let mut report = Report {
        source: Source::AppleSamples,
        event: Some("wakeups".to_owned()),
        process: Process { backtraces: vec![stack], ..process("Shop", 1, None) },
        fields: fields(&[
            (
                "Wakeups",
                "45001 wakeups over the last 251 seconds (180 wakeups per second average), exceeding limit of 150 wakeups per second over 300 seconds",
            ),
            ("Action taken", "none"),
            ("Duration", "7.23s"),
            ("Duration Sampled", "4.90s"),
            ("Total CPU Time", "4.407s (8.0G cycles)"),
        ]),
        ..Report::default()
    };
    let (rule, title, text) = said(&report);
    assert_eq!(rule, "samples");
    assert_eq!(
        title,
        "Too many wake-ups by Shop [7]: 45001 wakeups over the last 251 seconds (180 wakeups per second average)"
    );
    assert!(text.contains("went over a limit of 150 wakeups per second over 300 seconds"), "{text}");
    assert!(text.contains("the process went on") && text.contains("ends in `hash`"), "{text}");
    let next = |report: &Report| explain(report).next_steps.join(" ");
    assert!(next(&report).contains("what the heaviest stack waits for"));
    let without = Report { process: process("Shop", 1, None), ..report.clone() };
    assert!(!next(&without).contains("heaviest stack"), "advice on what is not there");
    report.event = Some("hang".to_owned());
    let (_, title, text) = said(&report);
    assert_eq!(title, "Hang: Shop [7] did not react for 7.23s");
    assert!(text.contains("used 4.407 s of CPU in the 4.9 s"), "{text}");
    report.event = Some("sampling Shop".to_owned());
    let mut tree = Tree { nodes: vec![TreeNode::new(None, named(0, "main"))], ..Tree::default() };
    (tree.nodes[0].own_weight, tree.nodes[0].weight) = (5, 5);
    report.process.trees.push(tree);
    assert_eq!(said(&report).1, "Samples of Shop [7]: nothing crashed");
}

#[test]
fn payloads_of_metrickit() {
    let mut report = Report {
        source: Source::MetricKit,
        event: Some("CPU exception".to_owned()),
        process: Process {
            fields: fields(&[("totalCPUTime", "20 sec"), ("totalSampledTime", "30 sec")]),
            ..Process::default()
        },
        ..Report::default()
    };
    let (rule, title, _) = said(&report);
    assert_eq!((rule, title.as_str()), ("metrickit", "Too much CPU time: 20 sec of 30 sec"));
    report.event = Some("metrics".to_owned());
    report.fields =
        fields(&[("memoryMetrics.peakMemoryUsage", "200,000 kB"), ("x.cumulativeAbnormalExitCount", "0")]);
    let (_, title, text) = said(&report);
    assert!(
        title.starts_with("Metrics of") && text.contains("peakMemoryUsage: 200,000 kB"),
        "{title} {text}"
    );
    assert!(!text.contains("AbnormalExit"), "{text}");
    report.event = None;
    assert_ne!(said(&report).0, "metrickit", "a crash is explained as one");
}

#[test]
fn snapshots_and_other_kinds() {
    let mut report = Report {
        source: Source::AppleStackshot,
        event: Some("stackshot".to_owned()),
        fields: fields(&[("reason", "buttons")]),
        ..Report::default()
    };
    assert_eq!(said(&report).1, "A snapshot of all processes: nothing crashed: buttons");
    report.event = Some("forced reset".to_owned());
    assert!(said(&report).1.starts_with("The device was reset by force"));
    report.fields.clear();
    report.exception = Some(Exception { message: Some("btn_rst".to_owned()), ..Exception::default() });
    let (_, title, text) = said(&report);
    assert_eq!(title, "The device was reset by force: its buttons were held until it went off");
    assert!(text.contains("Panic: btn_rst"), "{text}");
    report.exception = None;
    report.source = Source::AppleIpsOther;
    report.fields = fields(&[("restore_error", "78")]);
    let (rule, title, text) = said(&report);
    assert_eq!(
        (rule, title.as_str()),
        ("other-kind", "No crash, but a report of another kind: forced reset")
    );
    assert!(text.contains("restore_error: 78") && text.contains("by its buttons"), "{text}");
}

#[test]
fn translated_and_foreign_apps_are_said_to_be() {
    let mut report = Report { os: Some("macOS 14.1 (23B74)".to_owned()), ..Report::default() };
    assert!(!said(&report).2.contains("Rosetta"));
    report.process.translated = true;
    report.fields = fields(&[("metadata.platform", "2")]);
    let text = said(&report).2;
    assert!(
        text.contains("translated while it ran (Rosetta)") && text.contains("app for iOS that ran on a Mac"),
        "{text}"
    );
    report.os = Some("iPhone OS 17.0 (21A1)".to_owned());
    assert!(!said(&report).2.contains("on a Mac"));
}
