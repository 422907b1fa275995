//! Grammar that real reports show, in small reports of our own.

use super::*;
use backtrail_core::{Arch, Avma, FrameAddress, ImageId};
use backtrail_model::{Frame, Thread};

fn read(text: &str) -> Report {
    super::read(text.as_bytes(), 0..text.len(), 1, &Limits::default())
}

fn raw(frame: &Frame) -> u64 {
    frame.address.unwrap().raw().get()
}

fn field<'r>(report: &'r Report, key: &str) -> Option<&'r str> {
    report.fields.iter().find(|field| field.key == key).map(|field| field.value.as_str())
}

fn section<'r>(report: &'r Report, title: &str) -> Option<&'r str> {
    report.sections.iter().find(|section| section.title == title).map(|section| section.text.as_str())
}

fn name_of(frame: &Frame) -> &str {
    frame.reported.as_ref().map_or("", |symbol| &symbol.name)
}

const MACOS_12: &str = "\
Process:               Painter [842]
Path:                  /Applications/Painter.app/Contents/MacOS/Painter
Identifier:            org.example.painter
Version:               2.1 (21)
Code Type:             ARM-64 (Native)
Parent Process:        launchd [1]
Responsible:           Painter [842]
User ID:               501

Date/Time:             2024-05-01 14:47:18.2119 -0500
OS Version:            macOS 14.4.1 (23E224)
Report Version:        12
Anonymous UUID:        754A81E0-E986-50D2-0D2E-B0250A89C2B5

Time Awake Since Boot: 69 seconds

System Integrity Protection: enabled

Notes:
PC register does not match crashing frame (0x0 vs 0x14071145F)

Crashed Thread:        0  Dispatch queue: com.apple.main-thread

Exception Type:        EXC_BAD_ACCESS (SIGSEGV)
Exception Codes:       KERN_INVALID_ADDRESS at 0x00000000000000e0
Exception Codes:       0x0000000000000001, 0x00000000000000e0

Termination Reason:    Namespace SIGNAL, Code 11 Segmentation fault: 11
Terminating Process:   exc handler [842]

VM Region Info: 0xe0 is not in any region.  Bytes before following region: 4307009312
      REGION TYPE                    START - END         [ VSIZE] PRT/MAX SHRMOD  REGION DETAIL
      UNUSED SPACE AT START
--->  
      __TEXT                      100b7c000-100b80000    [   16K] r-x/r-x SM=COW  /App

Kernel Triage:
VM - (arg = 0x3) mach_vm_allocate_kernel failed within call to vm_map_enter

Thread 0 Crashed::  Dispatch queue: com.apple.main-thread
0   Painter                       \t       0x100b7d498 Brush.stroke(at:) + 24 (Brush.swift:31) [inlined]
1   Painter                       \t       0x100b7d498 Canvas.touch(_:with:) + 120 (Canvas.swift:77)
2   AppKit                        \t       0x18a5ca7b0 -[NSApplication run] + 416
3   ???                           \t               0x40 ???

Thread 1:: caulk.messenger.shared:17
0   libsystem_kernel.dylib        \t       0x1860e6bb0 semaphore_wait_trap + 8

Thread 2:


Thread 0 crashed with ARM Thread State (64-bit):
    x0: 0x0000000bdb284780   x1: 0x0000000000000060
    fp: 0x000000016d8069d0   lr: 0x0000000185ce3c84
    sp: 0x000000016d806990   pc: 0x0000000100b7d498 cpsr: 0x80001000
   far: 0x00000000000000e0  esr: 0x92000006 (Data Abort) byte read Translation fault

Binary Images:
       0x100b7c000 -        0x100b7ffff org.example.painter (2.1) <35e96ff1-979e-31e0-a805-4b0a98ef18ec> /Applications/Painter.app/Contents/MacOS/Painter
       0x18a5b2000 -        0x18bcdeb9f com.apple.AppKit (6.9) <3c0949bb-e361-369a-80b7-17440eb09e98> /System/Library/Frameworks/AppKit.framework/Versions/C/AppKit
               0x0 - 0xffffffffffffffff ??? (*) <00000000-0000-0000-0000-000000000000> ???

External Modification Summary:
  Calls made by other processes targeting this process:
    task_for_pid: 0

VM Region Summary:
ReadOnly portion of Libraries: Total=1.8G resident=0K(0%)

REGION TYPE                        SIZE    COUNT (non-coalesced) 
TOTAL                              1.6G     3571 
";

#[test]
fn macos_version_12() {
    let report = read(MACOS_12);
    assert_eq!(report.notes, Vec::<String>::new());
    assert_eq!(report.process.arch, Some(Arch::Arm64));
    assert_eq!(field(&report, "Report Version"), Some("12"));
    assert_eq!(
        section(&report, "Notes"),
        Some("PC register does not match crashing frame (0x0 vs 0x14071145F)")
    );
    let exception = report.exception.as_ref().unwrap();
    assert_eq!(exception.subtype.as_deref(), Some("KERN_INVALID_ADDRESS at 0x00000000000000e0"));
    assert_eq!((exception.address, exception.raw_codes.as_slice()), (Some(Avma::new(0xe0)), &[1, 0xe0][..]));
    let termination = report.termination.as_ref().unwrap();
    assert_eq!(termination.reason.as_deref(), Some("Segmentation fault: 11"));
    assert!(section(&report, "VM Region Info").unwrap().contains("--->\n      __TEXT"));
    assert!(section(&report, "Kernel Triage").unwrap().starts_with("VM - (arg"));
    assert!(section(&report, "VM Region Summary").unwrap().ends_with("3571"));
    assert!(section(&report, "External Modification Summary").unwrap().contains("task_for_pid: 0"));
    assert_eq!(report.process.threads.len(), 3);
    assert_eq!(report.process.crashed_thread, Some(0));
    assert_eq!(report.process.threads[0].queue.as_deref(), Some("com.apple.main-thread"));
    assert_eq!(report.process.threads[1].name.as_deref(), Some("caulk.messenger.shared:17"));
    assert_eq!(report.process.images.len(), 3);
    assert_eq!(report.process.images[0].name, "Painter");
}

#[test]
fn inline_rows_of_macos_version_12() {
    let report = read(MACOS_12);
    let frames = &report.process.threads[0].frames;
    assert_eq!(frames.iter().map(|f| f.inlined).collect::<Vec<_>>(), [true, false, false, false]);
    let pc = FrameAddress::Exact(Avma::new(0x1_00b7_d498));
    assert_eq!((frames[0].address, frames[1].address), (Some(pc), Some(pc)));
    assert_eq!(frames[2].address, Some(FrameAddress::Return(Avma::new(0x1_8a5c_a7b0))));
    assert_eq!(frames.iter().map(|f| f.image).collect::<Vec<_>>(), [Some(0), Some(0), Some(1), None]);
    assert_eq!(frames[3].reported, None);
    let registers = &report.process.threads[0].registers;
    assert_eq!(registers.last().unwrap().note.as_deref(), Some("(Data Abort) byte read Translation fault"));
    assert_eq!(registers.len(), 9);
}

#[test]
fn line_breaks_and_indentation_change_nothing() {
    let model = |text: &str| {
        let mut report = read(text);
        report.process.frames_mut().for_each(|frame| frame.span = None);
        format!("{report:?}")
    };
    assert_eq!(model(MACOS_12), model(&MACOS_12.replace('\n', "\r\n")));
    // Single blanks, as an issue tracker leaves them. Texts are kept as written, so only stacks are compared.
    let squeezed: Vec<String> =
        MACOS_12.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let (plain, squeezed) = (read(MACOS_12), read(&squeezed.join("\n")));
    for (a, b) in plain.process.threads.iter().zip(&squeezed.process.threads) {
        let row = |f: &Frame| (f.index, f.address, f.image, f.reported.clone(), f.inlined);
        assert_eq!(
            a.frames.iter().map(row).collect::<Vec<_>>(),
            b.frames.iter().map(row).collect::<Vec<_>>()
        );
        assert_eq!((&a.name, &a.queue, &a.registers), (&b.name, &b.queue, &b.registers));
    }
    assert_eq!(plain.process.images, squeezed.process.images);
}

#[test]
fn every_line_goes_somewhere() {
    let mut places = Vec::new();
    let whole = 0..MACOS_12.len();
    read_traced(MACOS_12.as_bytes(), whole, 1, &Limits::default(), |line, place| {
        assert_eq!(place == LineKind::Blank, line.bytes.trim_ascii().is_empty(), "line {}", line.number);
        places.push(place);
    });
    assert_eq!(places.len(), MACOS_12.lines().count());
    let count = |place: LineKind| places.iter().filter(|p| **p == place).count();
    assert_eq!(count(LineKind::Frame), 5);
    assert_eq!(count(LineKind::Registers), 4);
    assert_eq!(count(LineKind::Image), 3);
    assert_eq!(count(LineKind::KeyValue), 20);
}

#[test]
fn recursion_that_was_left_out() {
    let report = read(
        "\
Thread 0 Crashed:
0   App  0x100001000 leaf + 4
1   App  0x100002000 walk + 40
-------- RECURSION LEVEL 8000
2   App  0x100002000 walk + 40
-------- RECURSION LEVEL 7999
--------
-------- ELIDED 7994 LEVELS OF RECURSION THROUGH 0x100002000 walk + 40
--------
7996 App  0x100002000 walk + 40
-------- RECURSION LEVEL 1
7997 App  0x100003000 main + 12
",
    );
    let thread = &report.process.threads[0];
    assert_eq!(thread.frames.len(), 5);
    let recursion = thread.recursion.as_ref().unwrap();
    assert_eq!((recursion.depth, recursion.first_elided, recursion.last_elided), (7998, Some(3), Some(7995)));
    assert!(thread.frames.iter().all(|frame| !frame.inlined), "the same address again is recursion");
    assert!(report.notes.iter().any(|note| note.contains("ELIDED 7994 LEVELS")), "{:?}", report.notes);
    assert_eq!(report.sections, []);
}

#[test]
fn last_exception_backtraces_in_both_forms() {
    let rows = read(
        "\
Last Exception Backtrace:
0   CoreFoundation  0x18e41edb0 __exceptionPreprocess + 228
1   libobjc.A.dylib 0x18d983f80 objc_exception_throw + 56

Thread 0 Crashed:
0   libsystem_kernel.dylib 0x18e3a6ec4 __pthread_kill + 8
",
    );
    let list = read(
        "\
Last Exception Backtrace:
(0x18e41edb0 0x18d983f80)

Thread 0 Crashed:
0   libsystem_kernel.dylib 0x18e3a6ec4 __pthread_kill + 8
",
    );
    for report in [&rows, &list] {
        let backtrace = &report.process.backtraces[0];
        assert!(backtrace.is_exception);
        let addresses: Vec<_> = backtrace.frames.iter().map(|frame| frame.address.unwrap()).collect();
        let expected = [0x1_8e41_edb0, 0x1_8d98_3f80].map(|address| FrameAddress::Return(Avma::new(address)));
        assert_eq!(
            addresses, expected,
            "an exception's stack is made of return addresses, the first one too"
        );
        assert_eq!(backtrace.frames.iter().map(|frame| frame.index).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(report.fault_frames().len(), 2);
    }
}

#[test]
fn backtraces_of_the_application_specific_information() {
    let report = read(
        "\
Application Specific Information:
*** Terminating app due to uncaught exception 'NSRangeException', reason: 'index 5 beyond bounds [0 .. 2]'
*** First throw call stack:
(0x18e41edb0 0x18d983f80)
libc++abi.dylib: terminating with uncaught exception of type NSException

Application Specific Backtrace 1:
0   CoreFoundation  0x18e41edb0 __exceptionPreprocess + 228
1   libobjc.A.dylib 0x18d983f80 objc_exception_throw + 56

Thread 0 Crashed:
0   libsystem_kernel.dylib 0x18e3a6ec4 __pthread_kill + 8
",
    );
    assert_eq!(report.app_info[0].lines.len(), 4, "the text stays whole: {:?}", report.app_info);
    let titles: Vec<_> = report
        .process
        .backtraces
        .iter()
        .map(|b| (b.title.as_str(), b.frames.len(), b.is_exception))
        .collect();
    let expected = [("First throw call stack", 2, false), ("Application Specific Backtrace 1", 2, true)];
    assert_eq!(titles, expected);
}

#[test]
fn dyld_error_messages_and_multi_line_terminations() {
    let report = read(
        "\
Exception Type:  EXC_CRASH (SIGABRT)
Termination Reason: DYLD, [0x1] Library missing
Library not loaded: @rpath/Alamofire.framework/Alamofire
Referenced from: <35E96FF1> /private/var/App.app/App
Reason: tried: '/usr/lib/swift/Alamofire' (no such file)
(terminated at launch; ignore backtrace)

Triggered by Thread:  0

Dyld Error Message:
  Library not loaded: @rpath/Alamofire.framework/Alamofire
  Reason: image not found

Application Specific Information:
abort() called

Thread 0 Crashed:
0   dyld  0x1024a4f6c __abort_with_payload + 8
",
    );
    let termination = report.termination.as_ref().unwrap();
    assert_eq!((termination.namespace.as_deref(), termination.code), (Some("DYLD"), Some(1)));
    assert_eq!(termination.details.len(), 4);
    assert!(termination.details[2].starts_with("Reason: tried"));
    assert!(section(&report, "Dyld Error Message").unwrap().contains("image not found"));
    assert_eq!(report.app_info[0].lines, ["abort() called"]);
    assert_eq!(report.process.crashed_thread, Some(0));
}

#[test]
fn no_blank_line_behind_the_region() {
    let report = read(
        "\
Exception Type:  EXC_BAD_ACCESS (SIGSEGV)
VM Region Info: 0 is not in any region.  Bytes before following region: 4307009536
      REGION TYPE                 START - END      [ VSIZE] PRT/MAX SHRMOD  REGION DETAIL
      Exception Type: indented, so of the text
--->  
      __TEXT                   100b7c000-100b84000 [   32K] r-x/r-x SM=COW  ...pp/MyGreatApp
Termination Reason: SIGNAL 11 Segmentation fault: 11
Terminating Process: exc handler [21776]

Triggered by Thread:  0

Thread 0 Crashed:
0   App  0x100001000 main + 4
",
    );
    assert!(section(&report, "VM Region Info").unwrap().ends_with("MyGreatApp"));
    let termination = report.termination.as_ref().unwrap();
    assert_eq!((termination.code, termination.by_pid), (Some(11), Some(21776)));
    assert_eq!(report.process.crashed_thread, Some(0));
    assert_eq!(report.fields, []);
}

#[test]
fn watchdog_terminations_keep_their_account() {
    let report = read(
        "\
Exception Type:  EXC_CRASH (SIGKILL)
Exception Codes: 0x0000000000000000, 0x0000000000000000
Exception Note:  EXC_CORPSE_NOTIFY
Termination Reason: FRONTBOARD 2343432205 
<RBSTerminateContext| domain:10 code:0x8BADF00D explanation:scene-update watchdog transgression
ProcessVisibility: Background
ProcessState: Running
WatchdogEvent: scene-update
WatchdogCPUStatistics: (
\"Elapsed total CPU time (seconds): 22.1 (user 16.0, system 6.1), 36% CPU\"
) reportType:CrashLog maxTerminationResistance:Interactive>

Triggered by Thread:  0
",
    );
    let termination = report.termination.unwrap();
    assert_eq!((termination.namespace.as_deref(), termination.code), (Some("FRONTBOARD"), Some(0x8bad_f00d)));
    assert_eq!(termination.details.len(), 7);
    assert_eq!(termination.details[1], "ProcessVisibility: Background");
    assert_eq!(report.exception.unwrap().note.as_deref(), Some("EXC_CORPSE_NOTIFY"));
}

#[test]
fn files_that_begin_in_the_middle() {
    let report = read(
        "\
4   App  0x100004000 0x100000000 + 16384
5   libdyld.dylib  0x1b3d88360 start + 4

Thread 1:
0   libsystem_kernel.dylib  0x18e3a6ec4 __workq_kernreturn + 8

Thread 7 crashed with ARM Thread State (64-bit):
    x0: 0x0000000000000001
",
    );
    assert_eq!(report.process.backtraces[0].frames.len(), 2);
    assert_eq!(report.process.backtraces[0].frames[0].image_offset, Some(0x4000));
    let numbers: Vec<_> =
        report.process.threads.iter().map(|thread: &Thread| (thread.number, thread.crashed)).collect();
    assert_eq!(numbers, [(1, false), (7, true)], "the state tells that thread 7 crashed");
    assert_eq!(report.process.threads[1].registers.len(), 1);
    let images = read("0x1000 - 0x1fff App arm64  <debeff4e26534f38e59bc9de7b8daade> /App\nEOF\n");
    assert_eq!(images.process.images.len(), 1);
}

#[test]
fn umeng_reports() {
    let rows = "(
  0  CoreFoundation                 0x00000001823b0f60 <redacted> + 148
  1  libobjc.A.dylib                0x000000019785bf80 objc_exception_throw + 56
  2  DemoApp                        0x00000001000f4ea0 DemoApp + 69280
)

dSYM UUID: E5B0A378-6816-3D90-86FD-2AEF15894A85
CPU Type: arm64
Slide Address: 0x0000000100000000
Binary Image: DemoApp
Base Address: 0x00000001000e4000
";
    let report = read(rows);
    let image = &report.process.images[0];
    assert_eq!((image.name.as_str(), image.load_address), ("DemoApp", Avma::new(0x1_000e_4000)));
    assert_eq!(image.id, ImageId::parse_uuid("E5B0A378-6816-3D90-86FD-2AEF15894A85").ok());
    let frame = &report.process.backtraces[0].frames[2];
    assert_eq!((frame.image, frame.image_offset, &frame.reported), (Some(0), Some(69280), &None));
    assert!(report.process.backtraces[0].is_exception);
    assert_eq!(report.fault_frames().len(), 3);
    // With a name in the row, nobody can tell whose address it is.
    let report = read(&rows.replace("DemoApp + 69280", "main (in DemoApp) (main.m:14)"));
    assert_eq!((report.process.images.len(), report.process.backtraces[0].frames[2].image), (0, None));
    assert_eq!(name_of(&report.process.backtraces[0].frames[2]), "main");
}

#[test]
fn stacks_without_known_titles_are_told_apart_by_their_numbers() {
    let report = read(
        "\
# Crashlytics - plaintext stacktrace
Crashed: com.apple.main-thread
0  App                            0x1000 main + 4
1  libdyld.dylib                  0x2000 start + 4

com.apple.uikit.eventfetch-thread
0  libsystem_kernel.dylib         0x3000 mach_msg_trap + 8
0  libsystem_kernel.dylib         0x3000 same number, inlined or not
",
    );
    let lengths: Vec<_> = report.process.backtraces.iter().map(|backtrace| backtrace.frames.len()).collect();
    assert_eq!(lengths, [2, 2]);
    assert!(format!("{:?}", report.sections).contains("uikit.eventfetch"));
}

#[test]
fn kscrash_text_with_both_columns() {
    let report = read(
        "\
Incident Identifier: 1
Exception Type:  EXC_BAD_ACCESS (SIGSEGV)
Exception Codes: 0x0 at 0x8
Triggered by Thread:  0

Application Specific Information:
*** -[Crasher crash]: message sent to deallocated instance 0x1

Thread 0 Crashed:
0   Tester   0x0000000100001098 0x100000000 + 4248 (-[Crasher crash] + 24)

Extra Information:

Stack Dump (0x16fd8eae0-0x16fd8ebe0):

E0EAD86F01000000

CrashDoctor Diagnosis: Possible zombie in call: -[A b]
",
    );
    let frame = &report.process.threads[0].frames[0];
    assert_eq!((name_of(frame), frame.image_offset), ("-[Crasher crash]", Some(4248)));
    assert_eq!(report.exception.as_ref().unwrap().address, Some(Avma::new(8)));
    let all: String = report.sections.iter().map(|s| format!("{}: {}\n", s.title, s.text)).collect();
    for kept in
        ["Extra Information", "E0EAD86F01000000", "Stack Dump", "CrashDoctor Diagnosis: Possible zombie"]
    {
        assert!(all.contains(kept), "{kept}: {all}");
    }
}

#[test]
fn signal_handlers_interrupt_their_callers() {
    let report = read(
        "\
Thread 0 Crashed:
0   App  0x100001000 handler + 4
1   libsystem_platform.dylib  0x19827d93c _sigtramp + 52
2   App  0x100002000 victim + 4
3   App  0x100003000 main + 4
",
    );
    let exact =
        report.process.threads[0].frames.iter().map(|f| matches!(f.address, Some(FrameAddress::Exact(_))));
    assert_eq!(exact.collect::<Vec<_>>(), [true, false, true, false]);
}

#[test]
fn images_and_addresses_that_cannot_be() {
    let report = read(
        "\
Thread 0 Crashed:
0   App  0x11112222333344445555 main + 8
1   App  0xffffffffffffffff main + 9
2   Lib  0x2800 0x2000 + 2048

Binary Images:
0x2000 - 0x1fff App arm64  <debeff4e26534f38e59bc9de7b8daade> /App
0x2000 - 0x2fff Lib arm64  <debeff4e26534f38e59bc9de7b8daadf> /Lib
0x2000 - 0x2fff Twin arm64  <debeff4e26534f38e59bc9de7b8daae0> /Twin
0xfffffffffffff000 - 0xffffffffffffffff Top arm64  <debeff4e26534f38e59bc9de7b8daae1> /Top
0x11112222333344445555 - 0x11112222333344446666 Far arm64  <> /Far
",
    );
    let frames = &report.process.threads[0].frames;
    assert_eq!((frames[0].address, name_of(&frames[0])), (None, "main"));
    assert_eq!(raw(&frames[1]), u64::MAX);
    assert_eq!(
        report.process.images[frames[2].image.unwrap()].name,
        "Lib",
        "two claim it, the row names one"
    );
    assert_eq!(report.process.images.len(), 5);
    let notes = report.notes.join("\n");
    for word in
        ["line 2: address 0x11112222333344445555", "image App: it ends before", "image Far: its addresses"]
    {
        assert!(notes.contains(word), "{word}: {notes}");
    }
    let kept = section(&report, "Binary Images").unwrap();
    assert!(kept.contains("0x11112222333344446666") && kept.contains("0x2000 - 0x1fff App"), "{kept}");
}

#[test]
fn what_goes_beyond_a_limit_is_kept_as_text() {
    let limits = Limits {
        max_line: 120,
        max_threads: 2,
        max_frames: 3,
        max_images: 1,
        max_items: 3,
        max_notes: 4,
        ..Limits::default()
    };
    let mut text = String::new();
    for thread in 0..4 {
        text +=
            &format!("Thread {thread}:\n0  App  0x1000 symbol{thread}a\n1  App  0x1000 symbol{thread}b\n\n");
    }
    text += "Thread 9 crashed with X:\n  r0: 0x1  r1: 0x2\n  r2: 0x3 r3: 0x4\n\nBinary Images:\n";
    text += "0x1000 - 0x1fff image1 arm64  <> /a\n0x3000 - 0x3fff image2 arm64  <> /b\n\n";
    text += &format!("long{}tail\n\n", "x".repeat(200));
    for title in 'a'..'h' {
        text += &format!("Title {title}:\nwords {title}\n\n");
    }
    let report = super::read(text.as_bytes(), 0..text.len(), 1, &limits);
    assert_eq!((report.process.threads.len(), report.process.images.len()), (2, 1));
    assert_eq!(report.process.threads.iter().map(|thread| thread.frames.len()).sum::<usize>(), 3);
    assert_eq!(report.sections.len(), 3);
    assert_eq!(report.notes.len(), 5);
    let model = format!("{report:?}");
    for word in ["symbol1b", "symbol3b", "Thread 3", "image2", "tail", "Title g", "words g"] {
        assert!(model.contains(word), "{word}: {model}");
    }
}

#[test]
fn images_stand_in_several_lists_under_any_title() {
    let row = |at: u64, name: &str| {
        format!("  {at:#x} - {:#x} {name} arm64 <{at:032x}> /usr/lib/{name}\n", at + 0xfff)
    };
    let text = format!(
        "Process: App [1]\n\nThread 0 Crashed:\n0  c  0x3010 c + 1\n\nBinary Images:\n{}\nKernel Binary Images:\n{}\nLoaded later:\n{}\n\nBinary Images:\n{}",
        row(0x1000, "a"),
        row(0x2000, "b"),
        row(0x3000, "c"),
        row(0x4000, "d")
    );
    let input = text.as_bytes();
    let report = super::read(input, 0..input.len(), 1, &Limits::default());
    let names: Vec<_> = report.process.images.iter().map(|image| image.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(report.process.threads[0].frames[0].image, Some(2));
    assert!(report.fields.iter().any(|field| field.key == "Kernel Binary Images"));
}

/// A console's lines before a stack that nothing introduces.
#[test]
fn what_a_console_showed_before_a_stack_is_what_was_said() {
    const ROWS: &str = "0   CoreFoundation  0x7fff23c4f02e __exceptionPreprocess + 350\n1   App  0x10a0b5c20 -[Cart total] + 84\n";
    let report = read(&format!(
        "words\nMain Thread Checker: UI API called on a background thread: -[UILabel text]\nPID: 1\nBacktrace:\n{ROWS}"
    ));
    assert_eq!(report.app_info.len(), 1);
    let report = read(&format!(
        "App[1:2] *** Terminating app due to uncaught exception 'E', reason: 'first\nsecond'\nthird\n*** First throw call stack:\n{ROWS}"
    ));
    assert_eq!(report.app_info[0].lines.last().map(String::as_str), Some("second'"));
    assert_eq!(report.process.backtraces[0].frames.len(), 2);
}

/// A program that was started from a terminal leaves no report, but the loader's words.
#[test]
fn what_the_loader_prints_is_a_termination() {
    for (text, code) in [
        (
            "dyld[45]: Library not loaded: @rpath/A.framework/A\n  Referenced from: /x\n  Reason: tried: '/a' (no such file)\n",
            1,
        ),
        ("dyld: Symbol not found: _f\n  Referenced from: /x\n  Expected in: /usr/lib/a\n", 4),
    ] {
        let report = crate::parse(text.as_bytes(), &Limits::default()).unwrap();
        let termination = report.termination.unwrap();
        assert_eq!((termination.namespace.as_deref(), termination.code), (Some("DYLD"), Some(code)));
        assert_eq!(termination.details.len(), 3);
    }
    // The lines that people quote of a report.
    let report =
        crate::parse(b"Termination Reason: Namespace DYLD, Code 1 Library missing\n", &Limits::default());
    assert_eq!(report.unwrap().termination.unwrap().code, Some(1));
}

/// The header blames a thread whose stack was cut off.
#[test]
fn a_blamed_thread_that_is_not_there_is_told() {
    let report = read(
        "Exception Type: EXC_BAD_ACCESS (SIGSEGV)\nTriggered by Thread: 14  loop\n\nThread 0:\n0   A  0x12 f + 1\n",
    );
    assert_eq!(report.process.crashed_thread, None);
    assert!(report.fields.iter().any(|field| field.key == "Crashed Thread" && field.value == "14"));
}

/// Addresses are what people cut away first.
#[test]
fn rows_without_addresses() {
    let report = read(
        "Exception Type: EXC_BREAKPOINT (SIGTRAP)\n\nBUG IN CLIENT OF LIBX: no\n\nThread 20 Crashed:: Dispatch queue: a.b\n\
         0  libdispatch.dylib       __DISPATCH_WAIT_FOR_QUEUE__\n1  Hex\tf(int) + 12\n2  Hex                     + 58940\n\
         5  of them are missing\n",
    );
    let frames = &report.process.threads[0].frames;
    let told: Vec<_> = frames
        .iter()
        .map(|it| {
            (
                it.image_name.as_deref(),
                it.reported.as_ref().map(|symbol| symbol.name.as_str()),
                it.image_offset,
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some("libdispatch.dylib"), Some("__DISPATCH_WAIT_FOR_QUEUE__"), None),
            (Some("Hex"), Some("f(int)"), None),
            (Some("Hex"), None, Some(58940)),
        ]
    );
    assert_eq!(report.app_info[0].lines, ["BUG IN CLIENT OF LIBX: no"]);
}
