//! Kinds of reports other than crashes.

use super::{METADATA, field, read, section};
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Report, Source};

fn of_type(bug_type: &str, body: &str) -> Report {
    read(&format!("{}\n{body}", METADATA.replace("309", bug_type))).unwrap()
}

#[test]
fn kinds_without_a_form_of_their_own_keep_all() {
    for (bug_type, event) in
        [("183", "software update report"), ("151", "forced reset"), ("777", "bug type 777")]
    {
        let report = of_type(bug_type, r#"{"pid":1,"reason":"x","error":{"code":7,"list":[1,2]}}"#);
        assert_eq!((report.source, report.event.as_deref()), (Source::AppleIpsOther, Some(event)));
        assert_eq!(report.process.pid, Some(1));
        assert_eq!(field(&report, "error.code"), Some("7"));
        assert_eq!(field(&report, "error.list"), Some("[1,2]"));
        let report = of_type(bug_type, "free text\nof two lines\n");
        assert_eq!(section(&report, "Text"), Some("free text\nof two lines"));
        assert_eq!(of_type(bug_type, "").event.as_deref(), Some(event), "metadata alone");
    }
    let report = of_type("777", r#"{"procName":"D","threads":[]}"#);
    assert_eq!(report.source, Source::AppleIps, "an unknown number with a crash's body is a crash");
    let report = of_type("385", r#"{"procName":"D","threads":[],"exception":{"type":"EXC_RESOURCE"}}"#);
    assert_eq!(report.source, Source::AppleIps, "limits on resources come in a crash's form");
    assert_eq!(report.event.as_deref(), Some("resource limit report"));
}

#[test]
fn jetsam() {
    let report = of_type(
        "298",
        r#"{"product":"iPhone18,1","largestProcess":"Photos","memoryStatus":{"pageSize":16384,"memoryPages":{"free":11}},
        "processes":[{"pid":1,"name":"Photos","rpages":1000,"states":["daemon"]},
        {"pid":2,"name":"Shop","rpages":500,"lifetimeMax":600,"states":["frontmost","resume"],"reason":"per-process-limit","coalition":5},
        {"pid":3,"name":"New","physicalPages":{"internal":[10,20]},"reason":"vm-pageshortage"},7]}"#,
    );
    assert_eq!((report.source, report.device.as_deref()), (Source::AppleJetsam, Some("iPhone18,1")));
    let main = &report.process;
    assert_eq!((main.name.as_deref(), main.pid, main.memory), (Some("Shop"), Some(2), Some(500 * 16384)));
    assert_eq!(
        (main.role.as_deref(), main.kill_reason.as_deref()),
        (Some("frontmost, resume"), Some("per-process-limit"))
    );
    assert!(main.fields.iter().any(|field| field.key == "lifetimeMax" && field.value == "600"));
    let others: Vec<_> = report.processes.iter().map(|other| (other.name.as_deref(), other.memory)).collect();
    assert_eq!(others, [(Some("Photos"), Some(1000 * 16384)), (Some("New"), Some(30 * 16384))]);
    assert_eq!(field(&report, "memoryStatus.memoryPages.free"), Some("11"));
    assert_eq!(field(&report, "processes[3]"), Some("7"), "what is no process is kept");
}

#[test]
fn panics() {
    let report = of_type(
        "210",
        r#"{"build":"iPhone OS 17.0 (21A1)","product":"iPhone15,2","panicString":"panic(cpu 1 caller 0xfffffff01d1c5a58): \"userspace watchdog timeout: no successful checkins from thermalmonitord in 120 seconds\"\nPanicked thread: 0x1, backtrace: 0x2, tid: 9\n\t\t  lr: 0xfffffff01c1e4b10  fp: 0x1\n",
        "binaryImages":[["11111111-2222-3333-4444-555555555555",4294967296,"P"]],"panicFlags":"0x2",
        "processByPid":{"9":{"pid":9,"procname":"thermalmonitord","threadById":{"1":{"id":1,"userFrames":[[0,16]]}}}}}"#,
    );
    assert_eq!((report.source, report.event.as_deref()), (Source::ApplePanic, Some("kernel panic")));
    let message = report.exception.as_ref().unwrap().message.as_deref().unwrap();
    assert!(message.contains("thermalmonitord in 120 seconds"), "{message}");
    assert_eq!(report.crashed().unwrap().frames.len(), 1);
    let other = &report.processes[0];
    assert_eq!(other.threads[0].frames[0].address, Some(FrameAddress::Exact(Avma::new(0x1_0000_0010))));
    assert_eq!(field(&report, "panicFlags"), Some("0x2"));
}

#[test]
fn stackshots() {
    let report = of_type(
        "288",
        r#"{"build":"iPhone OS 17.0 (21A1)","reason":"buttons","frontmostPids":[7],
        "binaryImages":[["11111111-2222-3333-4444-555555555555",4294967296,"P"],["00000000-0000-0000-0000-000000000000",0,"A"],["11111111-2222-3333-4444-555555555556",18446741874686296064,"K"]],
        "processByPid":{"1":{"pid":1,"procname":"launchd","threadById":{}},
        "7":{"pid":7,"procname":"Shop","residentMemoryBytes":4096,"waitInfo":["thread 5: semaphore port 1"],
            "threadById":{"5":{"id":5,"name":"main","state":["TH_WAIT","TH_UNINT"],"schedPriority":46,"basePriority":47,"user_usec":1500000,
            "kernelFrames":[[2,256]],"userFrames":[[0,16],[0,32],[1,4660],[9,1]]}}}}}"#,
    );
    assert_eq!(report.source, Source::AppleStackshot);
    let process = &report.process;
    assert_eq!((process.name.as_deref(), process.pid, process.memory), (Some("Shop"), Some(7), Some(4096)));
    let thread = &process.threads[0];
    assert_eq!(
        (thread.id, thread.name.as_deref(), thread.state.as_deref()),
        (Some(5), Some("main"), Some("TH_WAIT TH_UNINT"))
    );
    assert_eq!((thread.user_time, thread.priority), (Some(1.5), Some(46)));
    let addresses: Vec<_> = thread.frames.iter().map(|frame| frame.address).collect();
    let exact = |address| Some(FrameAddress::Exact(Avma::new(address)));
    let back = |address| Some(FrameAddress::Return(Avma::new(address)));
    let expected =
        [exact(0xffff_fe00_0700_4100), exact(0x1_0000_0010), back(0x1_0000_0020), back(0x1234), None];
    assert_eq!(addresses[1..], expected[1..]);
    assert_eq!(addresses[0].map(FrameAddress::raw), Some(Avma::new(18_446_741_874_686_296_064 + 256)));
    let images: Vec<_> = thread.frames.iter().map(|frame| frame.image).collect();
    assert_eq!(images, [Some(0), Some(1), Some(1), None, None]);
    assert_eq!(process.images.len(), 2, "a process has the images that its frames lie in");
    assert!(process.fields.iter().any(|field| field.key == "waitInfo"));
    assert!(thread.fields.iter().any(|field| field.key == "basePriority" && field.value == "47"));
    assert_eq!(report.processes[0].name.as_deref(), Some("launchd"));
    assert_eq!(field(&report, "reason"), Some("buttons"));
}

#[test]
fn watchdogs_hold_a_stackshot() {
    let report = of_type(
        "409",
        r#"{"procName":"WindowServer","pid":4,"termination":{"namespace":"WATCHDOG","code":1,"indicator":"timed out"},
        "stackshot":{"x":1,"processByPid":{"4":{"procname":"WindowServer","threadById":{"9":{"userFrames":[[14,16]]}}},"1":{"procname":"launchd"}}}}"#,
    );
    assert_eq!((report.source, report.process.pid), (Source::AppleStackshot, Some(4)));
    assert_eq!(report.process.threads[0].frames[0].image_offset, Some(16), "without a list, what is stated");
    assert_eq!(report.processes.len(), 1);
    assert_eq!(field(&report, "stackshot.x"), Some("1"));
    assert!(report.termination.is_some());
}

#[test]
fn text_bodies_by_their_form() {
    let text = "Date/Time: now\nData Source: Microstackshots\nCommand: Shop\nPID: 7\nEvent: disk writes\n\n\
        Heaviest stack for the target process:\n  61  ??? (Shop + 2240) [0x1000008c0]\n";
    let report = of_type("145", text);
    assert_eq!((report.source, report.event.as_deref()), (Source::AppleSamples, Some("disk writes")));
    assert_eq!(report.process.backtraces[0].frames.len(), 1);
    assert_eq!(field(&report, "metadata.bug_type"), Some("145"));
    let report = of_type(
        "210",
        "panic(cpu 0 caller 0x1): \"x\"\nBacktrace (CPU 0), Frame : Return Address\n0x1 : 0x2\n",
    );
    assert_eq!((report.source, report.process.threads.len()), (Source::ApplePanic, 1));
}

#[test]
fn translated_processes() {
    let report = of_type("309", r#"{"procName":"D","threads":[],"translated":true}"#);
    assert!(report.process.translated);
    let report = of_type("309", r#"{"procName":"D","threads":[],"translated":false}"#);
    assert!(!report.process.translated && field(&report, "translated") == Some("false"));
    let report =
        of_type("109", "Process: D [1]\nCode Type: X86-64 (Translated)\n\nThread 0:\n0 a 0x1000 b + 1\n");
    assert!(report.process.translated);
}

#[test]
fn a_forced_reset_has_the_kernels_words_too() {
    let text = r#"{"bug_type":"151"}
{"string":"panic(cpu 1 caller 0xfffffff02e156784): btn_rst\nDebugger message: panic\nPanicked thread: 0x1, backtrace: 0x2, tid: 7\n\t\t  lr: 0xfffffff02e156784  fp: 0x1\n      Kernel Extensions in backtrace:\n         com.example.Buttons(1.0)[6AAC7152-26B3-355D-95F0-EC89EFA4152C]@0xfffffff02e13c800->0xfffffff02e156790\n            dependency: com.example.Platform(1.0.2)[98A24B67-A443-3C7F-A0D6-F33C1BADF6D4]@0xfffffff02d85a740->0xfffffff02d8a796f\n","processByPid":{"1":{"pid":1,"procname":"launchd","threadById":{"9":{"id":9}}}}}
"#;
    let report = read(text).unwrap();
    assert_eq!((report.source, report.event.as_deref()), (Source::AppleStackshot, Some("forced reset")));
    assert_eq!(report.exception.as_ref().unwrap().message.as_deref(), Some("btn_rst"));
    let frame = &report.crashed().unwrap().frames[0];
    assert_eq!(report.process.images[frame.image.unwrap()].name, "com.example.Buttons");
    assert!(report.process.images.iter().any(|image| image.name == "com.example.Platform"));
    assert_eq!(report.processes[0].threads.len(), 1);
}

#[test]
fn the_size_of_a_page_may_stand_outside() {
    let report = of_type(
        "298",
        r#"{"pageSize":16384,"largestProcess":"a","processes":[{"name":"a","pid":7,"rpages":3}]}"#,
    );
    let all = std::iter::once(&report.process).chain(&report.processes);
    assert!(all.into_iter().any(|process| process.memory == Some(3 * 16384)));
}
