use crate::{Limits, emit, parse};
use backtrail_core::{Function, Symbol};
use backtrail_model::{Frame, Report};

fn read(text: &str) -> Report {
    parse(text.as_bytes(), &Limits::default()).unwrap()
}

fn function(name: &str, file: Option<&str>, line: Option<u32>, inlined: bool) -> Function {
    let file = file.map(str::to_owned);
    Function { name: name.to_owned(), file, line, inlined, ..Function::default() }
}

/// What symbolizing would find: an inline chain with lines, innermost first.
fn fill_chain(frame: &mut Frame) {
    frame.functions = vec![
        function("Brush.stroke(at:)", Some("/Users/me/src/Brush.swift"), Some(31), true),
        function("Canvas.touch(_:)", Some("/Users/me/src/Canvas.swift"), Some(77), false),
    ];
    frame.function_offset = Some(120);
}

/// A symbol table's answer.
fn fill_symbol(frame: &mut Frame) {
    let name = "-[NSApplication run]".to_owned();
    frame.symbol = Some(Symbol { name, linkage_name: None, offset: 416 });
}

fn emitted(text: &str, fill: impl FnOnce(&mut Report)) -> String {
    let mut report = read(text);
    assert!(emit(text.as_bytes(), &report) == text.as_bytes(), "nothing filled in, nothing changed");
    fill(&mut report);
    String::from_utf8(emit(text.as_bytes(), &report)).unwrap()
}

const TEXT: &str = "Report Version: 104\r
Thread 0 Crashed:\r
0   My App                        \t0x0000000102afb3d0 0x102aec000 + 62416\r
1   AppKit                        \t0x000000018a5ca7b0 0x18a5b2000 + 100272\r
2   Other                         \t0x00000001aaaaaaaa <redacted> + 4\r
\r
Binary Images:\r
0x102aec000 - 0x102afffff My App arm64  <35e96ff1979e31e0a8054b0a98ef18ec> /var/My App\r
";

#[test]
fn rows_keep_everything_up_to_the_address() {
    let text = emitted(TEXT, |report| {
        fill_chain(&mut report.process.threads[0].frames[0]);
        fill_symbol(&mut report.process.threads[0].frames[1]);
    });
    let expected = TEXT
        .replace(
            "0   My App                        \t0x0000000102afb3d0 0x102aec000 + 62416\r\n",
            "0   My App                        \t0x0000000102afb3d0 Brush.stroke(at:) (Brush.swift:31) [inlined]\r\n\
             0   My App                        \t0x0000000102afb3d0 Canvas.touch(_:) + 120 (Canvas.swift:77)\r\n",
        )
        .replace("0x18a5b2000 + 100272", "-[NSApplication run] + 416");
    assert_eq!(text, expected);
}

#[test]
fn what_was_emitted_reads_back_with_its_names_and_emits_the_same_again() {
    let once = emitted(TEXT, |report| fill_chain(&mut report.process.threads[0].frames[0]));
    let frames = &read(&once).process.threads[0].frames;
    assert_eq!(frames.iter().map(|frame| frame.inlined).collect::<Vec<_>>(), [true, false, false, false]);
    assert_eq!(frames[0].address, frames[1].address);
    let symbol = frames[1].reported.as_ref().unwrap();
    assert_eq!((symbol.name.as_str(), symbol.offset, symbol.line), ("Canvas.touch(_:)", Some(120), Some(77)));
    // Inline rows of an earlier run go with their machine frame; also when there is one row less now.
    let again = emitted(&once, |report| fill_chain(&mut report.process.threads[0].frames[1]));
    assert_eq!(again, once);
    let fewer = emitted(&once, |report| fill_symbol(&mut report.process.threads[0].frames[1]));
    assert_eq!(fewer, TEXT.replace("0x102aec000 + 62416", "-[NSApplication run] + 416"));
}

#[test]
fn rows_at_the_end_of_the_file_and_without_a_tail() {
    let text =
        emitted("Thread 0:\n0 App 0x1000", |report| fill_chain(&mut report.process.threads[0].frames[0]));
    assert_eq!(
        text,
        "Thread 0:\n0 App 0x1000 Brush.stroke(at:) (Brush.swift:31) [inlined]\n\
         0 App 0x1000 Canvas.touch(_:) + 120 (Canvas.swift:77)"
    );
}

#[test]
fn odd_functions_stay_on_their_line() {
    let text = emitted("Thread 0:\n0 App 0x1000 f + 3\n", |report| {
        let mut odd = function("", None, None, false);
        report.process.threads[0].frames[0].functions = vec![odd.clone()];
        odd.linkage_name = Some("_Zx\ny".to_owned());
        report.process.threads[0].frames[0].functions.push(odd);
    });
    assert_eq!(text, "Thread 0:\n0 App 0x1000 ??? [inlined]\n0 App 0x1000 _Zx y\n");
    // Without an offset from symbolizing, the report's own holds where it speaks of the same function.
    let keep = |name: &'static str| {
        emitted("Thread 0:\n0 App 0x1000 f + 3\n", |report| {
            report.process.threads[0].frames[0].functions =
                vec![function(name, Some("/<compiler-generated>"), Some(0), false)];
        })
    };
    assert_eq!(keep("f"), "Thread 0:\n0 App 0x1000 f + 3 (/<compiler-generated>:0)\n");
    assert_eq!(keep("g"), "Thread 0:\n0 App 0x1000 g (/<compiler-generated>:0)\n");
}

#[test]
fn lists_of_addresses_become_rows() {
    let text = "Last Exception Backtrace:\n(0x102afb3d0 0x18a5ca7b0 0x40)\n\nBinary Images:\n\
                0x102aec000 - 0x102afffff My App arm64  <35e96ff1979e31e0a8054b0a98ef18ec> /var/My App\n";
    let expected = "Last Exception Backtrace:\n\
        0   My App                        \t0x0000000102afb3d0 0x102aec000 + 62416\n\
        1   ???                           \t0x000000018a5ca7b0 -[NSApplication run] + 416\n\
        2   ???                           \t0x0000000000000040 ???\n\nBinary";
    let emitted = emitted(text, |report| fill_symbol(&mut report.process.backtraces[0].frames[1]));
    assert!(emitted.starts_with(expected), "{emitted}");
}

const COMPACT: &str = r#"{"bug_type":"309"}
{"procName":"D","threads":[{"frames":[{"imageOffset":16,"imageIndex":0},{"imageOffset":32,"symbol":"old","symbolLocation":7,"imageIndex":0}]}],"usedImages":[{"base":4096,"size":4096,"name":"App"}],"asiBacktraces":["0   App \"x\"\t0x1010 App + 16\n1   App 0x1020 App + 32"]}
tail"#;

#[test]
fn objects_get_members_and_neighbours() {
    let text = emitted(COMPACT, |report| {
        fill_chain(&mut report.process.threads[0].frames[0]);
        fill_symbol(&mut report.process.threads[0].frames[1]);
    });
    let expected = COMPACT
        .replace(
            r#"{"imageOffset":16,"imageIndex":0}"#,
            r#"{"symbol":"Brush.stroke(at:)","sourceLine":31,"sourceFile":"Brush.swift","inline":true,"imageIndex":0,"imageOffset":16},{"imageOffset":16,"imageIndex":0,"symbol":"Canvas.touch(_:)","symbolLocation":120,"sourceLine":77,"sourceFile":"Canvas.swift"}"#,
        )
        .replace(r#""symbol":"old","symbolLocation":7"#, r#""symbol":"-[NSApplication run]","symbolLocation":416"#);
    assert_eq!(text, expected);
    let again = emitted(&text, |report| fill_chain(&mut report.process.threads[0].frames[1]));
    assert_eq!(again, text);
}

#[test]
fn objects_keep_the_style_of_their_file() {
    let pretty = "{\"procName\" : \"D\",\n  \"threads\" : [\n    {\n      \"frames\" : [\n        {\n          \"imageOffset\" : 16,\n          \"imageIndex\" : 0\n        }\n      ]\n    }\n  ],\n  \"usedImages\" : []\n}\n";
    let text = emitted(pretty, |report| fill_chain(&mut report.process.threads[0].frames[0]));
    let expected = "[\n        {\n          \"symbol\" : \"Brush.stroke(at:)\",\n          \"sourceLine\" : 31,\n          \"sourceFile\" : \"Brush.swift\",\n          \"inline\" : true,\n          \"imageIndex\" : 0,\n          \"imageOffset\" : 16\n        },\n        {\n          \"imageOffset\" : 16,\n          \"imageIndex\" : 0,\n          \"symbol\" : \"Canvas.touch(_:)\",\n          \"symbolLocation\" : 120,\n          \"sourceLine\" : 77,\n          \"sourceFile\" : \"Canvas.swift\"\n        }\n";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn members_that_no_longer_hold_go() {
    let text = r#"{"procName":"D","threads":[{"frames":[{"symbolLocation":7,"sourceLine":5,"symbol":"old","imageIndex":0,"imageOffset":16,"x":[1, 2]}]}],"usedImages":[]}"#;
    let emitted = emitted(text, |report| {
        report.process.threads[0].frames[0].functions =
            vec![function("new \"q\"", Some("a\\b.c"), None, false)];
    });
    let expected = r#"{"imageIndex":0,"imageOffset":16,"x":[1, 2],"symbol":"new \"q\"","sourceFile":"b.c"}"#;
    assert!(emitted.contains(expected), "{emitted}");
}

#[test]
fn rows_inside_of_json_strings() {
    let text = emitted(COMPACT, |report| {
        fill_chain(&mut report.process.backtraces[0].frames[0]);
        let quoted = function("operator\"\" _x", Some("a.c"), Some(9), false);
        report.process.backtraces[0].frames[1].functions = vec![quoted];
    });
    let expected = COMPACT.replace(
        r#"0   App \"x\"\t0x1010 App + 16\n1   App 0x1020 App + 32"#,
        r#"0   App \"x\"\t0x1010 Brush.stroke(at:) (Brush.swift:31) [inlined]\n0   App \"x\"\t0x1010 Canvas.touch(_:) + 120 (Canvas.swift:77)\n1   App 0x1020 operator\"\" _x (a.c:9)"#,
    );
    assert_eq!(text, expected);
    assert!(serde_json::from_str::<serde_json::Value>(text.lines().nth(1).unwrap()).is_ok());
}

#[test]
fn both_halves_of_a_translated_report_are_filled() {
    let text = format!(
        "Translated Report (Full Report Below)\n\nReport Version: 12\n\nThread 0 Crashed:\n0   App \t   0x1010 0x1000 + 16\n\
         1   App \t   0x1020 0x1000 + 32\n\n-----------\nFull Report\n-----------\n\n{COMPACT}"
    );
    let emitted = emitted(&text, |report| fill_chain(&mut report.process.threads[0].frames[0]));
    assert!(
        emitted.contains("0   App \t   0x1010 Canvas.touch(_:) + 120 (Canvas.swift:77)\n1   App"),
        "{emitted}"
    );
    assert!(emitted.contains("0x1010 Brush.stroke(at:) (Brush.swift:31) [inlined]\n"), "{emitted}");
    assert!(emitted.contains(r#""symbol":"Canvas.touch(_:)","symbolLocation":120"#), "{emitted}");
    // The same address as a return address, in the text of another half, is another place.
    assert!(emitted.contains("0x1010 App + 16"), "{emitted}");
}

#[test]
fn a_report_of_another_input_does_no_harm() {
    let mut report = read(TEXT);
    report.process.frames_mut().for_each(fill_chain);
    for other in ["", "x", "Thread 0:\n0 App 0x1000\n", COMPACT] {
        let output = emit(other.as_bytes(), &report);
        assert!(output.len() >= other.len());
    }
    let mut report = read(COMPACT);
    report.process.frames_mut().for_each(fill_chain);
    emit(TEXT.as_bytes(), &report);
}
