//! Inputs made to hurt: none may panic, take long, or take memory beyond a small multiple of their size.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails")]

use backtrail_model::Report;
use backtrail_report::{ErrorKind, Limits, emit, parse};
use std::time::{Duration, Instant};

fn read(input: &[u8]) -> Result<Report, backtrail_report::Error> {
    let start = Instant::now();
    let result = parse(input, &Limits::default());
    if let Ok(report) = &result {
        assert!(emit(input, report) == input);
    }
    // Generous, for slow machines and debug builds: what is quadratic takes minutes here.
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    result
}

fn repeated(unit: &str, bytes: usize) -> Vec<u8> {
    unit.as_bytes().iter().copied().cycle().take(bytes / unit.len() * unit.len()).collect()
}

#[test]
fn one_line_of_64_megabytes() {
    let small = ["<", "0x1 ", "a: ", ": ", "[", "\\", "(", "Thread 0 ", "\u{a0}"].map(|unit| (unit, 4 << 20));
    for (unit, bytes) in [("x", 64 << 20), ("{", 64 << 20)].into_iter().chain(small) {
        let input = repeated(unit, bytes);
        let error = read(&input).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unrecognized | ErrorKind::Malformed), "{unit}: {error}");
        assert!(error.to_string().len() < 300, "{error}");
    }
}

#[test]
fn a_report_with_a_long_line_keeps_it_as_text() {
    let mut input = b"Thread 0 Crashed:\n0 App 0x1000 main + 1\n".to_vec();
    input.extend(repeated("0 App 0x1000 ", 8 << 20));
    let report = read(&input).unwrap();
    assert_eq!(report.process.threads[0].frames.len(), 1);
    assert!(report.sections.iter().map(|section| section.text.len()).sum::<usize>() > 8 << 19);
    assert!(report.notes[0].contains("kept as text only"), "{:?}", report.notes);
}

#[test]
fn many_small_lines_of_every_kind() {
    for unit in [
        "a: b\n",
        "Title:\n\n",
        "\n",
        "Thread 0:\n",
        "Thread 0 name: x\n",
        "Thread 1 crashed with X:\n",
        "Unknown thread crashed with X:\n",
        "r0: 0x1\n",
        "0 a 0x1\n",
        "(0x1)\n",
        "0x1 - 0x2 a\n",
        "0x1 - 0x2 <<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<\n",
        "Application Specific Information:\nx\n",
        "Last Exception Backtrace:\n(0x1 0x2)\n",
        "Termination Reason: A 1\nx\n",
        "Binary Images:\nx\nThread 0:\nx\n",
        "x call stack:\n(0x1)\n",
        "{\"bug_type\n",
        "-------- ELIDED \n",
    ] {
        let mut input = b"Incident Identifier: 1\nThread 0 Crashed:\n".to_vec();
        input.extend(repeated(unit, 1 << 20));
        assert!(read(&input).is_ok(), "{unit}");
    }
}

#[test]
fn many_small_lines_of_other_kinds() {
    for (head, units) in [
        (
            "Analysis of sampling a\nCall graph:\n",
            &["    1 Thread_1\n", "    + 1 a  (in b)  [0x1]\n", "0x1 - 0x2 a\n", "x:\n", "1 \n"][..],
        ),
        (
            "Data Source: a\n",
            &[
                "Process: a [1]\n",
                "Process: a [1]\n\n  Thread 0x1\n  1 a\n",
                "  1 a (b + 1) [0x1]\n",
                "Heaviest stack for a:\n 1 a\nx\n",
                "a: b\n",
                "  Binary Images:\n0x1 - 0x2 a\n",
            ],
        ),
        (
            "panic(cpu 0 caller 0x1): a\n",
            &[
                "Backtrace (CPU 0)\n0x1 : 0x2\n",
                "lr: 0x1\n",
                "a(1)[2]@0x1->0x2\n",
                "RAX: 0x1, RBX: 0x2\n",
                "Kernel UUID: a\n",
            ],
        ),
        (
            "*** Program crashed: a ***\n",
            &[
                "Thread 1:\n",
                "Thread 1 crashed:\n0 0x1 a in b at c:1:2\n",
                "Registers:\na 0x1\n",
                "Images:\n0x1-0x2 a b\n",
                "Thread 1:\nRegisters:\na 0x1\n",
            ],
        ),
        ("Largest process: a\nProcesses\n", &["a <1> 2 3 [b] (c)\n", "a: b\n"]),
        (
            "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x0\n",
            &[
                "#0 0x1 in f /a.c:1:2\n",
                "#0 0x1  (/a+0x1) (BuildId: 0a1b)\n",
                "a.c:1:2: runtime error: x\n",
                "freed by:\n#0 0x1 in f\n",
            ],
        ),
        (
            "Thread 1 (LWP 1):\n",
            &["#0  0x1 in f (\n", "Thread 1 (LWP 1):\n#0  0x1 in f () at a.c:1\n", "    at a.c:1\n"],
        ),
        (
            "goroutine 1 [running]:\n",
            &["main.f(0x1)\n\t/a.go:1 +0x1\n", "main.f(\n", "goroutine 1 [a, b, c]:\n", "created by a\n"],
        ),
        (
            "thread 'a' panicked at a.rs:1:2:\n",
            &["x\n", "stack backtrace:\n   0: a\n", "Caused by:\n    0: a\n"],
        ),
        (
            "Traceback (most recent call last):\n",
            &[
                "  File \"a\", line 1, in f\n",
                "Traceback (most recent call last):\nE: x\n",
                "  | \n",
                "E: x\n",
            ],
        ),
        (
            "# A fatal error has been detected by the Java Runtime Environment:\n",
            &["Native frames:\nV  [a+0x1]  f+0x1\n", "# SIGSEGV\n"],
        ),
        (
            "Call Trace:\n",
            &[
                " f+0x1/0x2\n",
                "Call Trace:\n f+0x1/0x2\n",
                " f+0x1/0x2\nRAX: 0000000000000001\n",
                "a:\n ? f+0x1/0x2 [m]\n",
            ],
        ),
        ("Unhandled exception. A.B: x\n", &["   at A.B(C d) in /a.cs:line 1\n", " ---> A.B: x\n"]),
        ("E: x\n    at f (a.js:1:2)\n", &["    at f (a.js:1:2)\n", "E: x\n    at f (a.js:1:2)\n", "(((((\n"]),
    ] {
        for unit in units {
            let mut input = head.as_bytes().to_vec();
            input.extend(repeated(unit, 1 << 20));
            assert!(read(&input).is_ok(), "{unit}");
        }
    }
}

#[test]
fn many_blank_lines_before_a_message_cost_nothing() {
    let mut input = b"Thread 0:\n\nApplication Specific Information:\na\n".to_vec();
    input.extend(repeated("\n", 8 << 20));
    input.extend_from_slice(b"b\n");
    let report = read(&input).unwrap();
    assert!(report.app_info[0].lines.len() < 10);
}

/// Many images that all lie over each other, and as many frames as the limit has room for.
#[test]
fn a_hundred_thousand_frames_in_thousands_of_images() {
    let mut text = String::from("Thread 0 Crashed:\n");
    for frame in 0..100_000 {
        text += &format!("{frame} lib{} {:#x} symbol + 1\n", frame % 5000, 0x1000 + frame * 64);
    }
    text += "\nBinary Images:\n";
    for image in 0..5000_u64 {
        text += &format!("{:#x} - 0xffffffffffff lib{image} arm64  <> /usr/lib/lib{image}\n", 0x1000 + image);
    }
    let report = read(text.as_bytes()).unwrap();
    assert_eq!(report.process.threads[0].frames.len(), 100_000);
    assert!(report.process.threads[0].frames[5000..].iter().all(|frame| frame.image.is_some()));
}

#[test]
fn json_that_nests_or_goes_on() {
    let head = "{\"bug_type\":\"309\"}\n{\"procName\":\"D\",\"threads\":[],\"x\":";
    for unit in ["[", "{\"a\":", "[{\"frames\":["] {
        let report = read(format!("{head}{}", unit.repeat(1 << 18)).as_bytes()).unwrap();
        assert!(report.notes.iter().any(|note| note.contains("nests less deeply")), "{:?}", report.notes);
    }
    for unit in ["1,", "{},", "\"\",", "{\"a\":1},"] {
        let report = read(format!("{head}[{}0]}}", unit.repeat(1 << 18)).as_bytes()).unwrap();
        assert_eq!(report.process.name.as_deref(), Some("D"));
    }
    let members = "\"a\":1,".repeat(1 << 19);
    let report = read(format!("{head}0,{members}\"b\":2}}").as_bytes()).unwrap();
    assert!(report.fields.len() <= 100_010);
    assert!(report.sections.last().unwrap().text.ends_with("b: 2\n"));
    let digits = "9".repeat(1 << 20);
    let report = read(format!("{head}{digits},\"pid\":{digits}}}").as_bytes()).unwrap();
    assert_eq!(report.process.pid, None);
}

#[test]
fn what_is_no_report() {
    for input in
        [&b""[..], b"\0\0\0\0", b"\x7fELF\x02", b"hello world\n", b"{}", b"[]", b"{\"a\":1}", b"\xff\xfe\xfd"]
    {
        let error = read(input).unwrap_err();
        assert!(error.to_string().contains("expected"), "{error}");
    }
    let mut seed = 1_u32;
    let garbage: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed.to_be_bytes()[0]
    })
    .take(1 << 20)
    .collect();
    assert!(read(&garbage).is_err());
}
