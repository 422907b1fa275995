//! Cores and tombstones: who called abort(), what was thrown, where a jump went. Stacks are those of small programs of our own.

use super::super::testing::report;
use super::super::{Explanation, explain};
use crate::{attribute, blamed};
use backtrail_core::Trust;
use backtrail_model::OwnerKind;
use backtrail_model::{EndKind, Ended, Image, Register, Report, Source};
use backtrail_report::{Limits, parse};

/// A core of a program `Demo` for Linux. Frames are `image function`, one a line.
fn core(signal: &str, codes: &str, frames: &str) -> Report {
    let mut report = report("", signal)
        .codes(codes)
        .with(|report| {
            report.source = Source::ElfCore;
            report.process.pid = Some(77);
            report.os = Some("Linux".to_owned());
            report.process.path = Some("/opt/demo/Demo".to_owned());
            for (image, path) in [(0, "/opt/demo/Demo"), (1, "/lib/libc.so.6"), (2, "/lib/libstdc++.so.6")] {
                let load_address = report.process.images[image].load_address;
                let end_address = report.process.images[image].end_address;
                let name = path.rsplit('/').next().unwrap().to_owned();
                let path = Some(path.to_owned());
                report.process.images[image] =
                    Image { name, path, load_address, end_address, ..Image::default() };
            }
            report.process.images.truncate(3);
        })
        .frames(frames)
        .done();
    report.exception.as_mut().unwrap().kind = None;
    for (index, frame) in report.process.threads[0].frames.iter_mut().enumerate() {
        frame.trust = if index == 0 { Trust::Context } else { Trust::Cfi };
    }
    report
}

fn text(explanation: &Explanation) -> String {
    format!("{explanation:#?}")
}

const ABORT: &str = "libc.so.6 __pthread_kill_implementation\nlibc.so.6 raise\nlibc.so.6 abort\n";

#[test]
fn abort_was_called_by_who_is_behind_it() {
    let explanation = explain(&core("SIGABRT", "SI_TKILL", &format!("{ABORT}Demo main")));
    assert_eq!(explanation.summary.split(". ").next(), Some("abort() was called"), "{}", text(&explanation));
    assert!(explanation.summary.contains("below `main`"), "{}", text(&explanation));
    assert!(!text(&explanation).contains("exception"), "{}", text(&explanation));
    let by_library =
        explain(&core("SIGABRT", "SI_TKILL", &format!("{ABORT}libstdc++.so.6 check\nDemo main")));
    assert!(by_library.summary.contains("abort() was called by `check`"), "{}", text(&by_library));
    let raised = explain(&core("SIGABRT", "SI_TKILL", "libc.so.6 raise\nDemo main"));
    assert_eq!(raised.title, "The process ended itself with SIGABRT");
}

#[test]
fn whether_abort_was_called_is_unknown_where_frames_have_no_names() {
    let frames = "libc.so.6 -\nlibc.so.6 -\nDemo -";
    let own = explain(&core("SIGABRT", "SI_TKILL from pid 77", frames));
    assert!(own.summary.contains("The process sent the signal to itself"), "{}", text(&own));
    assert!(own.summary.contains("Frames of libc.so.6 have no names"), "{}", text(&own));
    for explanation in [own, explain(&core("SIGABRT", "SI_USER", frames))] {
        assert!(!text(&explanation).contains("No abort() is on the stack"), "{}", text(&explanation));
    }
}

#[test]
fn a_thread_that_was_not_joined_threw_nothing() {
    let frames = format!(
        "{ABORT}libstdc++.so.6 -\nlibstdc++.so.6 std::terminate()\nDemo std::__terminate() < std::thread::~thread() < main"
    );
    let report = core("SIGABRT", "SI_TKILL", &frames);
    let explanation = explain(&report);
    assert_eq!(explanation.rule, "joinable-thread", "{}", text(&explanation));
    assert!(explanation.summary.contains("Nothing was thrown"));
    assert!(explanation.summary.contains("`main`"), "{}", text(&explanation));
    let blamed = blamed(&report).unwrap();
    assert_eq!((blamed.frame.index, blamed.passed), (5, 2));
    // An exception that leaves a function while its thread runs is one all the same.
    let thrown = frames.replace("Demo std::__terminate() <", "libstdc++.so.6 __cxa_throw\nDemo");
    assert_eq!(explain(&core("SIGABRT", "SI_TKILL", &thrown)).rule, "cpp-exception");
}

#[test]
fn handlers_of_terminate_are_not_at_fault() {
    // Seen in crash files of programs with backtrail_crash.hpp: each had the handler for its fault.
    for handler in ["backtrail::detail::tell_and_terminate()", "shop::on_terminate()"] {
        for (called, at) in [
            ("libstdc++.so.6 std::terminate()\nDemo give_up\nDemo main", 6),
            (
                "libstdc++.so.6 std::terminate()\nlibstdc++.so.6 __cxa_pure_virtual\nDemo give_up\nDemo main",
                7,
            ),
            (
                "libstdc++.so.6 std::terminate()\nDemo std::__terminate() < std::thread::~thread() < give_up\nDemo main",
                6,
            ),
        ] {
            let report =
                core("SIGABRT", "SI_TKILL", &format!("{ABORT}Demo {handler}\nlibstdc++.so.6 -\n{called}"));
            assert_eq!(blamed(&report).unwrap().frame.index, at, "{called}");
            let explanation = explain(&report);
            assert!(explanation.summary.contains("`give_up`"), "{}", text(&explanation));
        }
    }
    // One that crashes itself is.
    let report = core(
        "SIGSEGV",
        "SEGV_MAPERR",
        "Demo shop::on_terminate()\nlibstdc++.so.6 std::terminate()\nDemo main",
    );
    assert_eq!(blamed(&report).unwrap().frame.index, 0);
}

/// A fault in `work` on x86-64, as Linux tells it.
fn fault(signal: &str, codes: &str, address: Option<u64>, registers: &str, frames: &str) -> Report {
    let mut report = core(signal, codes, frames);
    report.process.arch = Some(backtrail_core::Arch::X86_64);
    report.exception.as_mut().unwrap().address = address.map(backtrail_core::Avma::new);
    for register in registers.split(' ') {
        let (name, value) = register.split_once('=').unwrap();
        let value = u64::from_str_radix(value, 16).unwrap();
        report.process.threads[0].registers.push(Register { name: name.to_owned(), value, note: None });
    }
    report
}

#[test]
fn a_jump_into_the_stack_is_no_overflow() {
    let registers = "rip=7ffc00001090 rsp=7ffc00001078";
    let report = fault("SIGSEGV", "SEGV_ACCERR", Some(0x7ffc_0000_1090), registers, "??? -\nDemo main");
    let explanation = explain(&report);
    assert_eq!(explanation.rule, "code-fetch", "{}", text(&explanation));
    assert!(text(&explanation).contains("the address lies on the stack"), "{}", text(&explanation));
    let pushed = fault(
        "SIGSEGV",
        "SEGV_MAPERR",
        Some(0x7ffc_0000_0ff8),
        "rip=100000100 rsp=7ffc00001000",
        "Demo work\nDemo main",
    );
    assert_eq!(explain(&pushed).rule, "stack-overflow");
}

#[test]
fn x86_tells_no_address_of_some_faults() {
    // The kernel gives 0 with BUS_ADRALN, and with SI_KERNEL.
    let misaligned =
        fault("SIGBUS", "BUS_ADRALN", Some(0), "rip=100000100 rax=7ffc00001001", "Demo work\nDemo main");
    assert_eq!(explain(&misaligned).title, "Misaligned access");
    let far =
        fault("SIGSEGV", "SI_KERNEL", None, "rip=100000100 rax=dead00beef001234", "Demo work\nDemo main");
    let explanation = explain(&far);
    assert!(
        explanation.title.starts_with("Bad pointer, probably 0xdead00beef001234"),
        "{}",
        text(&explanation)
    );
    let refused = fault("SIGSEGV", "SI_KERNEL", None, "rip=100000100 rax=10", "Demo work\nDemo main");
    assert_eq!(explain(&refused).title, "General protection fault");
    let mut smashed =
        fault("SIGSEGV", "SI_KERNEL", None, "rip=100000100 rbp=4141414141414141", "Demo fill\n??? -");
    smashed.process.threads[0].frames[1].address =
        Some(backtrail_core::FrameAddress::Return(backtrail_core::Avma::new(0x4141_4141_4141_4141)));
    let explanation = explain(&smashed);
    assert!(explanation.title.contains("the stack was overwritten"), "{}", text(&explanation));
    assert!(text(&explanation).contains("is to return to 0x4141414141414141"), "{}", text(&explanation));
    // A stack pointer of zero.
    let mut none = fault("SIGSEGV", "SEGV_MAPERR", Some(u64::MAX - 7), "rip=100000100 rsp=0", "Demo work");
    none.process.threads[0].ended =
        Some(Ended { kind: EndKind::Failed, why: "memory at 0x0 cannot be read".to_owned() });
    assert_eq!(explain(&none).title, "Bad stack pointer: 0x0");
    let denied = fault("SIGSEGV", "SEGV_ACCERR", Some(0x5000_0000), "rip=100000100", "Demo work\nDemo main");
    assert!(!text(&explain(&denied)).contains("Apple"), "{}", text(&explain(&denied)));
}

#[test]
fn exceptions_of_cores_are_those_of_cpp() {
    let end = format!("{ABORT}libstdc++.so.6 -\nlibstdc++.so.6 std::terminate()\n");
    let thrown =
        explain(&core("SIGABRT", "SI_TKILL", &format!("{end}libstdc++.so.6 __cxa_throw\nDemo main")));
    assert_eq!(thrown.title, "Uncaught C++ exception");
    assert!(!text(&thrown).contains("bjective-C") && !text(&thrown).contains("objc"), "{}", text(&thrown));
    let called = explain(&core("SIGABRT", "SI_TKILL", &format!("{end}Demo main")));
    assert_eq!(called.title, "std::terminate was called");
    // A process that loads Objective-C's runtime may have thrown either.
    let mut either = core("SIGABRT", "SI_TKILL", &format!("{end}libstdc++.so.6 __cxa_throw\nDemo main"));
    either.process.images.push(Image { name: "libobjc.so.4".to_owned(), ..Image::default() });
    assert_eq!(explain(&either).title, "Uncaught exception");
}

#[test]
fn a_capture_has_frames_although_no_report_wrote_them() {
    let explanation = explain(&core("SIGQUIT", "SI_TKILL from pid 77", "libc.so.6 -\nlibc.so.6 -"));
    assert!(!text(&explanation).contains("has no frames"), "{}", text(&explanation));
    assert!(!text(&explanation).contains("keyboard"), "{}", text(&explanation));
    let sent = explain(&core("SIGQUIT", "SI_KERNEL", "libc.so.6 -"));
    assert!(!text(&sent).contains("keyboard"), "{}", text(&sent));
}

/// A tombstone of a process of that name; rows are `image function`.
fn tombstone(name: &str, signal: &str, more: &str, rows: &[&str]) -> Report {
    let mut text = format!(
        "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\nBuild fingerprint: 'a/b:14/C/1:user/release-keys'\nRevision: '0'\nABI: 'arm64'\npid: 42, tid: 42, name: {name}  >>> {name} <<<\n{signal}\n{more}\n\nbacktrace:\n"
    );
    for (index, row) in rows.iter().enumerate() {
        text.push_str(&format!("      #{index:02} pc 00000000000010{index:02}  {row}\n"));
    }
    parse(text.as_bytes(), &Limits::default()).unwrap()
}

const LIBC: &str = "/apex/com.android.runtime/lib64/bionic/libc.so";
const SHOP: &str = "/data/app/com.x.shop-1/lib/arm64/libshop.so (Cart::total()+16)";

#[test]
fn a_jump_to_nowhere_is_no_access() {
    let registers = "Cause: null pointer dereference\n    x0  0000000000000000  x1  0000000000000000  x2  0000000000000000  x3  0000000000000000\n    lr  0000007000001010  sp  0000007ff0001010  pc  0000000000000018  pst 0000000060000000";
    let signal = "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0000000000000018";
    let report = tombstone("com.x.shop", signal, registers, &["<unknown>", SHOP]);
    let explanation = explain(&report);
    assert_eq!(explanation.rule, "android-code-fetch", "{}", text(&explanation));
    // The same address, read by code.
    let reading = registers.replace("pc  0000000000000018", "pc  0000007000001010");
    assert_ne!(explain(&tombstone("com.x.shop", signal, &reading, &[SHOP])).rule, "android-code-fetch");
}

#[test]
fn abort_of_old_versions_is_no_freed_pointer() {
    let signal = "signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0xdeadbaad";
    let row = format!("{LIBC} (abort+4)");
    let explanation = explain(&tombstone("com.x.shop", signal, "", &[&row, SHOP]));
    assert_eq!(explanation.title, "The process ended itself with abort()");
}

#[test]
fn a_destroyed_lock_is_no_wrong_size() {
    let signal = "signal 6 (SIGABRT), code -1 (SI_QUEUE), fault addr --------";
    let message = "Abort message: 'FORTIFY: pthread_mutex_lock called on a destroyed mutex (0x7b12345650)'";
    let row = format!("{LIBC} (abort+164)");
    let explanation = explain(&tombstone("com.x.shop", signal, message, &[&row, SHOP]));
    assert!(explanation.title.starts_with("Lock used after it was destroyed"), "{}", text(&explanation));
    assert!(!text(&explanation).contains("size"), "{}", text(&explanation));
}

fn verdict(report: &backtrail_model::Report) -> OwnerKind {
    attribute(report, &explain(report)).verdict
}

#[test]
fn a_signal_from_outside_is_no_fault_of_the_stack() {
    let signal = "signal 6 (SIGABRT), code 0 (SI_USER from pid 1234, uid 1000), fault addr --------";
    let report = tombstone("com.x.shop", signal, "", &[SHOP]);
    let explanation = explain(&report);
    assert_eq!(explanation.title, "SIGABRT sent by another process", "{}", text(&explanation));
    assert_eq!(verdict(&report), OwnerKind::Unknown);
    assert!(blamed(&report).is_none());
    let own = signal.replace("1234", "42");
    assert_eq!(verdict(&tombstone("com.x.shop", &own, "", &[SHOP])), OwnerKind::App);
}

#[test]
fn programs_of_the_system_that_crash_are_looked_at_first() {
    let signal = "signal 6 (SIGABRT), code -1 (SI_QUEUE), fault addr --------";
    let rows: [&str; 4] = [
        &format!("{LIBC} (syscall+18)"),
        &format!("{LIBC} (abort+98)"),
        "/system/bin/crasher64 (maybe_abort+40)",
        "/system/bin/crasher64 (main+78)",
    ];
    let report = tombstone("crasher64", signal, "", &rows);
    assert_eq!(blamed(&report).map(|blamed| blamed.frame.index), Some(2));
    assert_eq!(verdict(&report), OwnerKind::App);
    // Of an app the same library is the system's; the end itself is never the place.
    let system: [&str; 3] = [rows[0], rows[1], "/system/lib64/libart.so (art::Runtime::Abort()+4)"];
    let report = tombstone("com.x.shop", signal, "", &system);
    assert_eq!(blamed(&report).map(|blamed| blamed.frame.index), Some(2));
    assert_eq!(verdict(&report), OwnerKind::System);
}
