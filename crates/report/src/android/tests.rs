//! Tests of the reader as a whole.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails")]

use crate::{Limits, parse};
use backtrail_model::{Frame, Report, Source};

/// A crash as `debuggerd` prints it.
const TEXT: &str = "\
*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***
Build fingerprint: 'maker/device/device:13/ID/1:user/release-keys'
Revision: '0'
ABI: 'arm64'
Timestamp: 2024-01-01 10:00:00.123456789+0000
Process uptime: 4s
Cmdline: com.example.shop
pid: 7, tid: 8, name: worker  >>> com.example.shop <<<
uid: 10001
tagged_addr_ctrl: 0000000000000001 (PR_TAGGED_ADDR_ENABLE)
signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0000000000000010
Cause: null pointer dereference
Abort message: 'no cart'
    x0  0000000000000001  x1  00000070000000ff

backtrace:
      #00 pc 0000000000001000  /data/app/com.example.shop-1/base.apk!libshop.so (offset 0x4000) (total(int)+12) (BuildId: 00112233445566778899aabbccddeeff00112233)
      #01 pc 0000000000002000  /apex/com.android.runtime/lib64/bionic/libc.so (__start_thread+64)

memory near x0 ([stack]):
    0000007000000000 0706050403020100 0f0e0d0c0b0a0908  ................
    0000007000000010 6867666564636261                   abcdefgh

memory map (1 entries):
    00000070'00000000-00000070'00000fff r-x         0      1000  /lib.so (BuildId: 00ff) (load bias 0x1000)

open files:
    fd 3: /dev/null (unowned)

--------- log main
01-01 10:00:00.000     7     8 F libc    : Fatal signal
--- --- --- --- --- --- --- --- --- --- --- --- --- --- --- ---
pid: 7, tid: 9, name: other  >>> com.example.shop <<<
    x0  0000000000000002

backtrace:
      #00 pc 0000000000003000  /system/lib64/libx.so
";

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7f).unwrap();
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return bytes;
        }
    }
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

fn frame(pc: u64, function: &str, offset: u64, file: &str, map: u64, id: &str) -> Vec<u8> {
    [number(1, pc), bytes(4, function), number(5, offset), bytes(6, file), number(7, map), bytes(8, id)]
        .concat()
}

fn register(name: &str, value: u64) -> Vec<u8> {
    bytes(3, [bytes(1, name), number(2, value)].concat())
}

/// The same crash as a protocol buffer.
fn proto() -> Vec<u8> {
    let shop = frame(
        0x1000,
        "total(int)",
        12,
        "/data/app/com.example.shop-1/base.apk!libshop.so",
        0x4000,
        "00112233445566778899aabbccddeeff00112233",
    );
    let libc = frame(0x2000, "__start_thread", 64, "/apex/com.android.runtime/lib64/bionic/libc.so", 0, "");
    let other = [number(1, 0x3000), bytes(6, "/system/lib64/libx.so")].concat();
    let content: Vec<u8> = (0..16).chain(b'a'..=b'h').collect();
    let memory = [bytes(1, "x0"), bytes(2, "[stack]"), number(3, 0x70_0000_0000), bytes(4, content)].concat();
    let worker = [
        number(1, 8),
        bytes(2, "worker"),
        register("x0", 1),
        register("x1", 0x70_0000_00ff),
        bytes(4, shop),
        bytes(4, libc),
        bytes(5, memory),
        number(6, 1),
        number(8, u64::MAX),
    ];
    let second = [number(1, 9), bytes(2, "other"), register("x0", 2), bytes(4, other)].concat();
    let entry = |tid: u64, thread: &[u8]| bytes(16, [number(1, tid), bytes(2, thread)].concat());
    let signal = [
        number(1, 11),
        bytes(2, "SIGSEGV"),
        number(3, 1),
        bytes(4, "SEGV_MAPERR"),
        number(8, 1),
        number(9, 16),
    ];
    let map = [
        number(1, 0x70_0000_0000),
        number(2, 0x70_0000_1000),
        number(4, 1),
        number(6, 1),
        bytes(7, "/lib.so"),
        bytes(8, "00ff"),
        number(9, 0x1000),
    ];
    let log = [
        bytes(1, "01-01 10:00:00.000"),
        number(2, 7),
        number(3, 8),
        number(4, 7),
        bytes(5, "libc"),
        bytes(6, "Fatal signal"),
    ];
    [
        number(1, 1),
        bytes(2, "maker/device/device:13/ID/1:user/release-keys"),
        bytes(3, "0"),
        bytes(4, "2024-01-01 10:00:00.123456789+0000"),
        number(5, 7),
        number(6, 8),
        number(7, 10001),
        bytes(9, "com.example.shop"),
        bytes(10, signal.concat()),
        bytes(14, "no cart"),
        bytes(15, bytes(1, "null pointer dereference")),
        // A map has no order.
        entry(9, &second),
        entry(8, &worker.concat()),
        bytes(17, map.concat()),
        bytes(18, [bytes(1, "main"), bytes(2, log.concat())].concat()),
        bytes(19, [number(1, 3), bytes(2, "/dev/null")].concat()),
        number(20, 4),
    ]
    .concat()
}

fn read(input: &[u8]) -> Report {
    parse(input, &Limits::default()).unwrap()
}

/// What the text form has no words for: where a frame stands in it, and what each frame's place is in the process.
fn plain(mut report: Report) -> Report {
    for frame in report.process.frames_mut() {
        *frame = Frame { span: None, address: None, stack_pointer: None, ..frame.clone() };
    }
    let text = |section: &mut backtrail_model::Section| section.text = section.text.trim_end().to_owned();
    report.sections.iter_mut().for_each(text);
    report.sections.sort_by(|a, b| a.title.cmp(&b.title));
    report.fields.sort_by(|a, b| a.key.cmp(&b.key));
    report
}

#[test]
fn both_forms_of_a_tombstone_give_the_same_model() {
    let (text, proto) = (plain(read(TEXT.as_bytes())), plain(read(&proto())));
    let (one, other) = (format!("{text:#?}"), format!("{proto:#?}"));
    let differs = one.lines().zip(other.lines()).find(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(one.len(), other.len());
    assert_eq!(text.source, Source::AndroidTombstone);
    assert_eq!(text.process.threads.len(), 2);
    assert_eq!(text.process.threads[0].fields[0].key, "tagged_addr_ctrl");
    assert_eq!(text.notes, Vec::<String>::new());
}

#[test]
fn a_protocol_buffer_that_is_cut_keeps_what_stands_before() {
    let whole = proto();
    for length in 100..whole.len() {
        let report = read(&whole[..length]);
        assert_eq!(report.process.pid, Some(7));
        assert!(report.notes.iter().all(|note| note.contains("cut or broken")), "{:?}", report.notes);
    }
    let mut more = whole;
    more.extend(bytes(777, "something new"));
    let report = read(&more);
    assert!(report.fields.iter().any(|f| f.key == "tombstone field 777" && f.value == "something new"));
}

#[test]
fn a_log_is_read_behind_its_prefixes() {
    let text: String =
        TEXT.lines().map(|line| format!("11-22 17:00:00.123  1234  1235 F DEBUG   : {line}\n")).collect();
    let report = read(text.as_bytes());
    assert_eq!(report.process.threads[0].frames.len(), 2);
    assert_eq!(report.exception.unwrap().signal.as_deref(), Some("SIGSEGV"));
    assert!(report.sections.iter().any(|section| section.text.contains("F DEBUG")), "prefixes are kept");
    let java = "E/AndroidRuntime( 12): FATAL EXCEPTION: main\nE/AndroidRuntime( 12): Process: com.example.shop, PID: 12\n\
                E/AndroidRuntime( 12): a.b.C: no cart\nE/AndroidRuntime( 12): and more\nE/AndroidRuntime( 12): \tat a.b.C.d(C.java:1)\n\
                E/AndroidRuntime( 12): Caused by: a.b.E\nE/AndroidRuntime( 12): \tat a.b.C.e(C.java:2)\nE/AndroidRuntime( 12): \t... 1 more\n";
    let report = read(java.as_bytes());
    assert_eq!(report.source, Source::JavaTrace);
    let titles: Vec<_> =
        report.process.backtraces.iter().map(|it| (it.title.as_str(), it.is_exception)).collect();
    assert_eq!(titles, [("a.b.C: no cart\nand more", false), ("Caused by: a.b.E", true)]);
    assert_eq!(report.exception.unwrap().message.as_deref(), Some("no cart\nand more"));
}

#[test]
fn several_processes_of_one_trace_stay_apart() {
    let one = |pid: u32, name: &str| {
        format!(
            "----- pid {pid} at 2024-01-01 10:00:00 -----\nCmd line: {name}\n\nDALVIK THREADS (1):\n\"main\" prio=5 tid=1 Native\n  \
             native: #00 pc 10  /{name}.so\n  at {name}.A.b(A.java:1)\n\n----- end {pid} -----\n"
        )
    };
    let report = read((one(1, "x") + &one(2, "y")).as_bytes());
    assert_eq!((report.process.pid, report.processes.len()), (Some(1), 1));
    assert_eq!(report.processes[0].pid, Some(2));
    let frames = |process: &backtrail_model::Process| process.threads[0].frames.len();
    assert_eq!((frames(&report.process), frames(&report.processes[0])), (2, 2));
    assert_eq!(report.processes[0].images[0].name, "y.so");
}

#[test]
fn an_export_of_crashlytics() {
    let report = read(
        b"# Crashlytics - Stack trace\n# Application: com.example.shop\n# Platform: android\n# Version: 4.2.1 (421)\n# Date: today\n\n\
        Fatal Exception: java.lang.Error: no cart\n       at a.b.C.d(C.java:1)\n\n\
        main (runnable):tid=1 systid=12345 \n       at a.b.C.e(C.java:2)\n",
    );
    let process = &report.process;
    assert_eq!(
        (process.identifier.as_deref(), process.version.as_deref()),
        (Some("com.example.shop"), Some("4.2.1 (421)"))
    );
    assert_eq!((report.source, report.time.as_deref()), (Source::JavaTrace, Some("today")));
    let threads: Vec<_> = process.threads.iter().map(|it| (it.name.as_deref(), it.frames.len())).collect();
    assert_eq!(threads, [(Some("main"), 1)]);
    assert_eq!((process.backtraces.len(), process.backtraces[0].frames.len()), (1, 1));
    assert!(report.sections.is_empty(), "{:?}", report.sections);
}

/// What `adb logcat` prints first is no title of a log that a tombstone quotes.
#[test]
fn a_log_that_begins_with_logcats_divider() {
    let report = read(
        b"--------- beginning of crash\n\
        04-06 22:49:58.523  5882  5909 F libc    : Fatal signal 11 (SIGSEGV), code 1, fault addr 0x50f04 in tid 5909 (Worker)\n\
        04-06 22:49:58.552  6162  6162 F DEBUG   : pid: 5882, tid: 5909, name: Worker  >>> com.example.shop <<<\n\
        04-06 22:49:58.552  6162  6162 F DEBUG   : signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x50f04\n\
        04-06 22:49:58.552  6162  6162 F DEBUG   :     #00 pc 00012  /system/lib/libc.so (abort+4)\n",
    );
    assert_eq!(report.process.pid, Some(5882));
    assert_eq!(report.process.threads.len(), 1);
    assert_eq!(report.process.threads[0].frames.len(), 1);
}

/// Of some crashes nothing else is logged.
#[test]
fn a_fatal_signal_without_a_tombstone() {
    let report = read(
        b"09-23 17:12:33.341  4755  4780 F libc    : Fatal signal 11 (SIGSEGV), code 128, fault addr 0x0 in tid 4780 (ui_thread)\n\
        09-23 17:12:33.413   507  5003 W ActivityManager:   Force finishing activity a/b\n",
    );
    let exception = report.exception.unwrap();
    assert_eq!(
        (exception.signal.as_deref(), exception.codes.as_deref()),
        (Some("SIGSEGV"), Some("code 128, fault addr 0x0"))
    );
    let thread = &report.process.threads[0];
    assert_eq!((thread.id, thread.name.as_deref(), thread.crashed), (Some(4780), Some("ui_thread"), true));
}

/// The runtime's words of a wrong call of JNI, with the thread that made it, are all that many logs have.
#[test]
fn a_wrong_call_of_jni_without_a_tombstone() {
    let text = "07-11 14:39:46.013 21191-21275/org.example A/art: art/runtime/java_vm_ext.cc:410] JNI DETECTED ERROR IN APPLICATION: use of deleted local reference 0x2\n\
        07-11 14:39:46.013 21191-21275/org.example A/art: art/runtime/java_vm_ext.cc:410] \"main\" prio=5 tid=1 Runnable\n";
    let report = crate::parse(text.as_bytes(), &Limits::default()).unwrap();
    assert_eq!(report.source, Source::AndroidTombstone);
    assert_eq!(
        report.app_info[0].lines,
        ["JNI DETECTED ERROR IN APPLICATION: use of deleted local reference 0x2"]
    );
    assert!(crate::parse(b"It said JNI DETECTED ERROR IN APPLICATION: x\n", &Limits::default()).is_err());
}
