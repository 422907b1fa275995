//! Rows and blocks, on small reports of our own.

use super::read;
use crate::Limits;
use backtrail_core::{Avma, FrameAddress};
use backtrail_model::{Frame, Report, Source, Tree};

fn parse(text: &str) -> Report {
    read(text.as_bytes(), 0..text.len(), 1, &Limits::default())
}

/// Depth, name, weight and own weight of each node.
fn shape(tree: &Tree) -> Vec<(u32, &str, u64, u64)> {
    let nodes = tree.nodes.iter().map(|node| {
        let name = node.frame.reported.as_ref().map_or("???", |symbol| symbol.name.as_str());
        (node.frame.index, name, node.weight, node.own_weight)
    });
    nodes.collect()
}

const SAMPLE: &str = "\
Analysis of sampling Shop (pid 7) every 1 millisecond
Process:         Shop [7]
Path:            /Applications/Shop.app/Contents/MacOS/Shop
Code Type:       ARM64
Physical footprint:         12.5M
----

Call graph:
    10 Thread_5   DispatchQueue_1: com.apple.main-thread  (serial)
    + 10 main  (in Shop) + 20  [0x100001014]  main.m:12
    +   7 work(int, char*)  (in Shop) + 8,12,...  [0x100001108,0x10000110c,...]
    +   ! 4 ???  (in Shop)  load address 0x100000000 + 0x1200  [0x100001200]
    +   2 __wait  (in libsystem_kernel.dylib) + 4  [0x180001004]
    3 Thread_6: worker
    + 3 start_wqthread  (in libsystem_pthread.dylib) + 8  [0x180002008]

Sort by top of stack, same collapsed (when >= 5):
        work(int, char*)  (in Shop)        7

Binary Images:
       0x100000000 -        0x100007fff +com.example.shop (1.0 - 1) <11111111-2222-3333-4444-555555555555> /Applications/Shop.app/Contents/MacOS/Shop
       0x180001000 -        0x180002fff  libsystem_kernel.dylib (1) <11111111-2222-3333-4444-555555555556> /usr/lib/system/libsystem_kernel.dylib
";

#[test]
fn sample_prints_a_tree_for_each_thread() {
    let report = parse(SAMPLE);
    let process = &report.process;
    assert_eq!((process.name.as_deref(), process.pid), (Some("Shop"), Some(7)));
    assert_eq!(report.event.as_deref(), Some("sampling Shop (pid 7) every 1 millisecond"));
    assert_eq!(process.trees.len(), 2);
    assert_eq!(process.trees[0].title, "Thread_5 DispatchQueue_1: com.apple.main-thread (serial)");
    assert_eq!(
        shape(&process.trees[0]),
        [(0, "main", 10, 1), (1, "work(int, char*)", 7, 3), (2, "???", 4, 4), (1, "__wait", 2, 2)]
    );
    let node = |at: usize| &process.trees[0].nodes[at];
    assert_eq!(node(0).frame.address, Some(FrameAddress::Return(Avma::new(0x1_0000_1014))));
    assert_eq!(node(2).frame.address, Some(FrameAddress::Exact(Avma::new(0x1_0000_1200))));
    let symbol = node(0).frame.reported.as_ref().unwrap();
    assert_eq!((symbol.file.as_deref(), symbol.line), (Some("main.m"), Some(12)));
    assert_eq!(node(1).note.as_deref(), Some("+ 8,12,... [0x100001108,0x10000110c,...]"));
    assert_eq!(node(2).frame.image_offset, Some(0x1200));
    assert_eq!((node(1).frame.image, node(3).frame.image), (Some(0), Some(1)));
    assert_eq!(process.images[0].name, "Shop");
    assert_eq!(process.backtraces[0].frames.len(), 3, "the heaviest stack of the main thread");
    assert_eq!(process.backtraces[0].frames[0].index, 0);
    assert!(report.sections.iter().any(|section| section.title.starts_with("Sort by top")));
}

const SPINDUMP: &str = "\
Date/Time:        2024-01-01 10:00:00.000 +0100
OS Version:       macOS 14.1 (Build 23B74)
Architecture:     arm64e
Data Source:      Stackshots

Command:          Shop
Path:             /Applications/Shop.app/Contents/MacOS/Shop
PID:              7

Event:            hang
Duration:         5.00s

Heaviest stack for the main thread of the target process:
  50  start + 10 (dyld + 4106) [0x190001010]
  50  Shop_main + 9 (App.swift:12,3 in Shop + 4116) [0x100001014]

Process:          Helper [8]
Path:             /bin/helper
Footprint:        2 MB

  Thread 0x11    50 samples (1-50)    priority 31 (base 31)
 *50  ??? (kernel + 6600128) [0xffffff800085b5c0] 1-50 (suspended)

Process:          Shop [7]
UUID:             11111111-2222-3333-4444-555555555555
Architecture:     arm64
Note:             1 idle work queue thread omitted

  Thread 0x3316    DispatchQueue \"com.apple.main-thread\"(1)    50 samples (1-50)    priority 46
  50  start + 10 (dyld + 4106) [0x190001010] 1-50
    30  ??? (<11111111-2222-3333-4444-555555555557> + 512) [0x1a0000200] 1-30
      *30  ??? (kernel + 64) [0xffffff8000000040] 1-30
    20  Shop_main + 9 (App.swift:12,3 in Shop + 4116) [0x100001014] 31-50 (running)

  Binary Images:
           0x100000000 -                ???  com.example.shop 1.0 (1) <11111111-2222-3333-4444-555555555555>  /Applications/Shop.app/Contents/MacOS/Shop
   *0xffffff8000000000 - 0xffffff8000c0ffff  kernel (1)                 <11111111-2222-3333-4444-555555555558>  /System/Library/Kernels/kernel
";

#[test]
fn spindump_prints_processes_and_the_target_is_the_reports_own() {
    let report = parse(SPINDUMP);
    let process = &report.process;
    assert_eq!((process.name.as_deref(), process.pid), (Some("Shop"), Some(7)));
    assert_eq!(report.event.as_deref(), Some("hang"));
    assert_eq!(report.processes.len(), 1);
    let helper = &report.processes[0];
    assert_eq!((helper.name.as_deref(), helper.memory), (Some("Helper"), Some(2 << 20)));
    assert_eq!(helper.trees[0].nodes[0].note.as_deref(), Some("kernel 1-50 (suspended)"));
    assert_eq!(
        shape(&process.trees[0]),
        [(0, "start", 50, 0), (1, "???", 30, 0), (2, "???", 30, 30), (1, "Shop_main", 20, 20)]
    );
    let frames: Vec<_> = process.trees[0].nodes.iter().map(|node| &node.frame).collect();
    let images: Vec<_> =
        frames.iter().map(|frame| frame.image.map(|at| process.images[at].name.as_str())).collect();
    let uuid = "<11111111-2222-3333-4444-555555555557>";
    assert_eq!(images, [None, Some(uuid), Some("kernel"), Some("Shop")]);
    assert_eq!(process.images[2].load_address, Avma::new(0x1_a000_0000), "an image that only rows name");
    let symbol = frames[3].reported.as_ref().unwrap();
    assert_eq!((symbol.name.as_str(), symbol.offset), ("Shop_main", Some(9)));
    assert_eq!((symbol.file.as_deref(), symbol.line), (Some("App.swift"), Some(12)));
    let heaviest = &process.backtraces[0];
    assert_eq!(heaviest.title, "Heaviest stack for the main thread of the target process");
    let names: Vec<_> = heaviest.frames.iter().flat_map(Frame::names).collect();
    assert_eq!(names, ["Shop_main", "start"], "innermost first");
    assert!(process.fields.iter().any(|field| field.key == "Note"));
    assert!(report.fields.iter().any(|field| field.key == "Duration" && field.value == "5.00s"));
}

#[test]
fn limits_keep_the_rest_as_text() {
    for text in [SAMPLE, SPINDUMP] {
        let limits = Limits { max_frames: 2, max_images: 1, max_threads: 1, ..Limits::default() };
        let report = read(text.as_bytes(), 0..text.len(), 1, &limits);
        let nodes: usize = report.process.trees.iter().map(|tree| tree.nodes.len()).sum();
        assert!(nodes <= 2);
        let kept: String = report.sections.iter().map(|section| section.text.as_str()).collect();
        assert!(kept.contains("0xffffff8000000040") || kept.contains("0x180002008"), "{kept}");
        assert!(
            report.notes.iter().any(|note| note.contains("more frames than the limit")),
            "{:?}",
            report.notes
        );
    }
}

#[test]
fn cut_anywhere_it_stays_readable() {
    for text in [SAMPLE, SPINDUMP] {
        for end in 0..text.len() {
            parse(&text[..end]);
        }
    }
}

#[test]
fn rows_of_older_systems_name_the_image_alone() {
    let report =
        parse("Data Source: x\nProcess: App [1]\n\n  Thread 0x1\n  26 start + 52 (Xcode) [0x10a3]\n");
    let frame = &report.process.trees[0].nodes[0].frame;
    let symbol = frame.reported.as_ref().unwrap();
    assert_eq!((symbol.name.as_str(), symbol.offset), ("start", Some(52)));
    assert_eq!(frame.image_name.as_deref(), Some("Xcode"));
}

#[test]
fn a_limit_without_any_stack() {
    let text = "Somebody wrote:\n\nCommand:          Shop\nPID:              7\n\nEvent:            cpu usage\nAction taken:     \
                Process killed\nCPU:              48 seconds cpu time over 48 seconds (100% cpu average),\n                  exceeding \
                limit of 80% cpu over 60 seconds\nFootprint:        91.48 MB\n";
    assert_eq!(crate::detect(text.as_bytes()), crate::Detected::AppleSamples);
    let report = parse(text);
    assert_eq!((report.event.as_deref(), report.process.pid), (Some("cpu usage"), Some(7)));
    let field =
        |key: &str| report.fields.iter().find(|field| field.key == key).map(|field| field.value.as_str());
    assert_eq!(
        field("CPU"),
        Some(
            "48 seconds cpu time over 48 seconds (100% cpu average), exceeding limit of 80% cpu over 60 seconds"
        )
    );
    assert_eq!(field("Footprint"), Some("91.48 MB"));
    let ips = crate::parse(
        b"{\"bug_type\":\"202\",\"name\":\"Shop\"}\nEvent:            wakeups\nWakeups:          45001 wakeups\n",
        &Limits::default(),
    )
    .unwrap();
    assert_eq!((ips.source, ips.event.as_deref()), (Source::AppleSamples, Some("wakeups")));
}

#[test]
fn a_threads_rows_are_no_part_of_the_heaviest_stack() {
    let report = parse(
        "Command: Shop\nEvent: hang\n\nHeaviest stack for the main thread of the target process:\n  10  main + 12 (Shop + 12) [0x10000000c]\n  \
         10  sleep + 44 (libsystem_c.dylib + 44) [0x1a000002c]\n\nThread 0x12345 (Main Thread):\n  10  start + 12\n    10  main + 12 (Shop \
         + 12) [0x10000000c]\n",
    );
    let process = &report.process;
    assert_eq!(process.backtraces[0].frames.len(), 2);
    assert_eq!((process.trees.len(), process.trees[0].nodes.len()), (1, 2));
}

#[test]
fn a_report_that_somebody_indented_by_tabs() {
    for text in [SAMPLE, SPINDUMP] {
        let indented: String = text.lines().map(|line| format!("\t{line}\n")).collect();
        let documents = crate::documents(indented.as_bytes());
        assert_eq!(&*documents[0].bytes, text.as_bytes());
    }
}
