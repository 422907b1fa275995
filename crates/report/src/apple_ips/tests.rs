//! Members that real reports have and the shapes they come in, in small reports of our own.

use crate::{Error, ErrorKind, Limits, parse};
use backtrail_core::{Arch, Avma, FrameAddress};
use backtrail_model::{Recursion, Report, Source};

const METADATA: &str = r#"{"app_name":"Demo","timestamp":"2022-03-16 11:45:14.00 +0800","bug_type":"309","os_version":"iPhone OS 15.2.1 (19C63)","incident_id":"4904A8AF","name":"Demo"}"#;

fn read(text: &str) -> Result<Report, Error> {
    parse(text.as_bytes(), &Limits::default())
}

/// A report with that body.
fn body(text: &str) -> Report {
    read(&format!("{METADATA}\n{text}")).unwrap()
}

fn field<'r>(report: &'r Report, key: &str) -> Option<&'r str> {
    report.fields.iter().find(|field| field.key == key).map(|field| field.value.as_str())
}

fn section<'r>(report: &'r Report, title: &str) -> Option<&'r str> {
    report.sections.iter().find(|section| section.title == title).map(|section| section.text.as_str())
}

const IMAGES: &str = r#""usedImages":[
  {"source":"P","arch":"arm64e","base":4310990848,"size":16384,"uuid":"35e96ff1-979e-31e0-a805-4b0a98ef18ec","path":"/App.app/App","name":"App"},
  {"source":"S","arch":"arm64e","base":6450593792,"size":4096,"uuid":"9618b2f2-a4c2-3e07-b7ee-d8d9e1bdeaec","path":"/usr/lib/libx.dylib","CFBundleShortVersionString":"6.9","CFBundleVersion":"1259","CFBundleIdentifier":"com.apple.x"},
  {"size":0,"source":"A","base":0,"uuid":"00000000-0000-0000-0000-000000000000"}]"#;

#[test]
fn frames_and_images() {
    let report = body(&format!(
        r#"{{"procName":"Demo","faultingThread":0,"threads":[{{"id":77,"triggered":true,"frames":[
            {{"imageIndex":0,"imageOffset":1176,"symbol":"inner","symbolLocation":4,"inline":1,"sourceFile":"A.swift","sourceLine":3}},
            {{"imageIndex":0,"imageOffset":1176,"symbol":"outer","symbolLocation":20}},
            {{"imageIndex":1,"imageOffset":16,"region":"__TEXT"}},
            {{"imageIndex":2,"imageOffset":4096}},
            {{"imageIndex":9,"imageOffset":5}},
            [1, 32]]}}],{IMAGES}}}"#
    ));
    let frames = &report.process.threads[0].frames;
    assert_eq!(frames.iter().map(|f| f.index).collect::<Vec<_>>(), [0, 0, 1, 2, 3, 4]);
    assert_eq!(
        frames.iter().map(|f| f.image).collect::<Vec<_>>(),
        [Some(0), Some(0), Some(1), None, None, Some(1)]
    );
    let at = |position: usize| frames[position].address;
    assert_eq!(at(0), Some(FrameAddress::Exact(Avma::new(4_310_990_848 + 1176))));
    assert_eq!(at(1), at(0));
    assert_eq!(at(2), Some(FrameAddress::Return(Avma::new(6_450_593_792 + 16))));
    assert_eq!(
        at(3),
        Some(FrameAddress::Return(Avma::new(4096))),
        "in the unknown image offsets are addresses"
    );
    assert_eq!(at(4), None);
    assert_eq!(frames[4].image_offset, Some(5));
    assert!(frames[0].inlined);
    let symbol = frames[0].reported.as_ref().unwrap();
    assert_eq!((symbol.file.as_deref(), symbol.line, symbol.offset), (Some("A.swift"), Some(3), Some(4)));
    assert_eq!(field(&report, "threads[0].frames[2].region"), Some("__TEXT"));
    assert_eq!(report.notes, ["threads[0].frames[4]: names image 9 of 3"]);
    let image = &report.process.images[1];
    assert_eq!((image.name.as_str(), image.version.as_deref()), ("libx.dylib", Some("6.9 - 1259")));
    assert_eq!((image.arch, image.source.as_deref()), (Some(Arch::Arm64e), Some("S")));
    assert_eq!((report.process.images[2].id, report.process.images[2].end_address), (None, None));
    assert_eq!(report.process.threads[0].id, Some(77));
}

#[test]
fn numbers_past_i64_and_past_u64() {
    let report = body(
        r#"{"procName":"D","threads":[{"frames":[{"imageIndex":0,"imageOffset":18446744073709551615},{"imageIndex":0,"imageOffset":99999999999999999999999}]}],
           "usedImages":[{"base":9223372036854775808,"size":18446744073709551615,"name":"Top"}]}"#,
    );
    let frames = &report.process.threads[0].frames;
    assert_eq!((frames[0].address, frames[0].image_offset), (None, Some(u64::MAX)));
    assert_eq!(field(&report, "threads[0].frames[1].imageOffset"), Some("99999999999999999999999"));
    assert_eq!(report.notes.len(), 2, "{:?}", report.notes);
    assert_eq!(report.process.images[0].load_address, Avma::new(1 << 63));
}

#[test]
fn registers_of_all_flavours() {
    let report = body(
        r#"{"procName":"D","exception":{"type":"EXC_CRASH"},"threads":[{"frames":[],"threadState":{"flavor":"ARM_THREAD_STATE64",
            "x":[{"value":1},{"value":2,"symbol":"main","symbolLocation":8}],"pc":{"value":3,"matchesCrashFrame":1},
            "esr":{"value":4,"description":"(Breakpoint) brk 1"},"rosetta":{"tmp0":{"value":5}},"odd":"text"}},
            {"frames":[],"threadState":{"rax":{"value":-1},"flavor":"x86_THREAD_STATE"}}]}"#,
    );
    let rows = |thread: usize| -> Vec<(&str, u64, Option<&str>)> {
        let registers = report.process.threads[thread].registers.iter();
        registers.map(|r| (r.name.as_str(), r.value, r.note.as_deref())).collect()
    };
    assert_eq!(
        rows(0),
        [
            ("x0", 1, None),
            ("x1", 2, Some("main + 8")),
            ("pc", 3, None),
            ("esr", 4, Some("(Breakpoint) brk 1")),
            ("tmp0", 5, None)
        ]
    );
    assert_eq!(rows(1), [("rax", u64::MAX, None)]);
    assert_eq!(field(&report, "threads[0].threadState.flavor"), Some("ARM_THREAD_STATE64"));
    assert_eq!(field(&report, "threads[0].threadState.pc.matchesCrashFrame"), Some("1"));
    assert_eq!(field(&report, "threads[0].threadState.odd"), Some("text"));
}

#[test]
fn recursion_counts_what_was_left_out() {
    let report = body(&format!(
        r#"{{"procName":"D","threads":[{{"frames":[{{"imageIndex":0,"imageOffset":1}},{{"imageIndex":0,"imageOffset":2}},{{"imageIndex":0,"imageOffset":3}}],
            "recursionInfoArray":[{{"hottestElided":2,"coldestElided":5804,"depth":5799,"keyFrame":{{"imageIndex":0,"imageOffset":2}}}}],"originalLength":5806}}],{IMAGES}}}"#
    ));
    let thread = &report.process.threads[0];
    let expected = Recursion { depth: 5806, first_elided: Some(2), last_elided: Some(5804) };
    assert_eq!(thread.recursion, Some(expected));
    assert_eq!(thread.frames.iter().map(|f| f.index).collect::<Vec<_>>(), [0, 1, 5805]);
    assert_eq!(field(&report, "threads[0].recursionInfoArray[0].depth"), Some("5799"));
}

#[test]
fn exceptions_and_terminations() {
    let report = body(
        r#"{"procName":"D","isCorpse":1,"isSimulated":"1","isNonFatal":false,"exception":{"codes":"0x0000000000000001, 0x00000000000000e0",
            "rawCodes":[1,224],"type":"EXC_BAD_ACCESS","signal":"SIGSEGV","subtype":"KERN_INVALID_ADDRESS at 0x00000000000000e0","message":"m","odd":[1,2]},
            "termination":{"flags":518,"code":2343432205,"namespace":"FRONTBOARD","indicator":"Bad","byProc":"exc handler","byPid":12,
            "reasons":["one\ntwo"],"details":["three"]}}"#,
    );
    let exception = report.exception.as_ref().unwrap();
    assert_eq!((exception.address, exception.raw_codes.as_slice()), (Some(Avma::new(0xe0)), &[1, 224][..]));
    assert_eq!(exception.note.as_deref(), Some("EXC_CORPSE_NOTIFY, SIMULATED (this is NOT a crash)"));
    assert_eq!(field(&report, "isNonFatal"), Some("false"));
    assert_eq!(field(&report, "exception.odd"), Some("[1,2]"));
    assert_eq!(field(&report, "termination.flags"), Some("518"));
    let termination = report.termination.unwrap();
    assert_eq!(termination.details, ["one", "two", "three"]);
    assert_eq!((termination.code, termination.by_pid), (Some(0x8bad_f00d), Some(12)));
    assert_eq!(termination.reason.as_deref(), Some("Bad"));
}

#[test]
fn messages_and_backtraces_of_libraries() {
    let report = body(&format!(
        r#"{{"procName":"D","threads":[],"asi":{{"libswiftCore.dylib":["Fatal error: a\nmore"],"CoreFoundation":"*** Terminating"}},
            "asiBacktraces":["0   libx.dylib  \t0x00000001807c4010 objc_exception_throw + 48\n1   App \"q\" 0x0000000100f48498 main + 8\n\nwords"],
            "lastExceptionBacktrace":[{{"imageIndex":1,"imageOffset":16,"symbol":"__exceptionPreprocess","symbolLocation":164}}],{IMAGES}}}"#
    ));
    assert_eq!(report.app_info[0].image.as_deref(), Some("libswiftCore.dylib"));
    assert_eq!(report.app_info[0].lines, ["Fatal error: a", "more"]);
    assert_eq!(report.app_info[1].lines, ["*** Terminating"]);
    let [thrown, asi] = report.process.backtraces.as_slice() else {
        panic!("{:?}", report.process.backtraces)
    };
    assert_eq!((thrown.title.as_str(), thrown.is_exception), ("Last Exception Backtrace", true));
    assert_eq!(thrown.frames[0].address, Some(FrameAddress::Return(Avma::new(6_450_593_808))));
    assert_eq!((asi.title.as_str(), asi.is_exception), ("Application Specific Backtrace 0", false));
    assert_eq!(asi.frames.iter().map(|f| f.image).collect::<Vec<_>>(), [Some(1), Some(0)]);
    assert_eq!(asi.frames[1].image_name.as_deref(), Some("App \"q\""));
    assert_eq!(section(&report, "Application Specific Backtrace 0"), Some("words"));
}

#[test]
fn members_of_another_type_are_kept_as_text() {
    let report = body(
        r#"{"procName":"D","exception":"EXC","pid":"many","threads":[7,{"frames":{"a":1},"name":null}],"usedImages":[[1,2],{"name":"x","uuid":"no"}],
            "asi":[[1]],"osVersion":5,"termination":{"code":"abc"},"vmSummary":7,"trialInfo":{"rollouts":[{"a":"long long long long"}]},
            "procName":"again"}"#,
    );
    assert_eq!(report.process.name.as_deref(), Some("D"));
    for (key, value) in [
        ("exception", "EXC"),
        ("pid", "many"),
        ("threads[0]", "7"),
        ("threads[1].frames", "{\"a\":1}"),
        ("threads[1].name", "null"),
        ("usedImages[0]", "[1,2]"),
        ("usedImages[1].uuid", "no"),
        ("asi", "[[1]]"),
        ("osVersion", "5"),
        ("termination.code", "abc"),
        ("trialInfo", "{\"rollouts\":[{\"a\":\"long long long long\"}]}"),
        ("procName", "again"),
    ] {
        assert_eq!(field(&report, key), Some(value), "{key}");
    }
    assert_eq!(section(&report, "VM Region Summary"), Some("7"));
    assert_eq!((report.process.threads.len(), report.process.images.len()), (2, 2));
}

#[test]
fn the_metadata_fills_what_the_body_leaves_open() {
    let report = body(r#"{"threads":[],"procPath":"/a","usedImages":[]}"#);
    assert_eq!(report.process.name.as_deref(), Some("Demo"));
    assert_eq!(report.os.as_deref(), Some("iPhone OS 15.2.1 (19C63)"));
    assert_eq!(field(&report, "metadata.bug_type"), Some("309"));
    let report = body(
        r#"{"procName":"Body","osVersion":{"train":"macOS 12.0.1","build":"21A559","x":1},"threads":[]}"#,
    );
    assert_eq!(report.process.name.as_deref(), Some("Body"));
    assert_eq!(report.os.as_deref(), Some("macOS 12.0.1 (21A559)"));
    assert_eq!(field(&report, "osVersion.x"), Some("1"));
}

#[test]
fn bodies_without_metadata_and_with_something_behind() {
    let report = read(&format!(
        "{{\"procName\":\"D\",\"threads\":[{{\"frames\":[]}}],{IMAGES}}}\n\nModel: Mac, BootROM 1\n"
    ))
    .unwrap();
    assert_eq!(
        (report.source, report.process.threads.len(), report.process.images.len()),
        (Source::AppleIps, 1, 3)
    );
    assert_eq!(section(&report, "Text behind the report"), Some("Model: Mac, BootROM 1"));
}

#[test]
fn text_bodies_keep_the_metadata() {
    let metadata = METADATA.replace("309", "109");
    let report =
        read(&format!("{metadata}\nProcess:  App [1]\n\nThread 0 Crashed:\n0  App  0x1000 main + 1\n"))
            .unwrap();
    assert_eq!((report.source, report.process.threads.len()), (Source::AppleText, 1));
    assert_eq!(report.process.name.as_deref(), Some("App"));
    assert_eq!(report.incident.as_deref(), Some("4904A8AF"));
    assert_eq!(field(&report, "metadata.bug_type"), Some("109"));
}

#[test]
fn broken_ones_say_where_and_what_was_expected() {
    for (text, message) in [
        (
            METADATA.to_owned(),
            "line 1 (byte 158): expected the report's body behind the metadata, found the end of the file",
        ),
        (
            format!("{METADATA}\n{{\"a\":1}}"),
            "line 2 (byte 166): expected a crash report's body (with `threads`, `usedImages`…), found the end of the file",
        ),
        (format!("{METADATA}\n{{\"a\" 1}}"), "line 2 (byte 164): expected `:` behind a member's name"),
        (
            "{\"bug_type\":\"309\"".to_owned(),
            "line 1 (byte 17): expected `,` or `}` behind a member, found the end of the file",
        ),
        (
            "[\"bug_type\"]".to_owned(),
            "line 1 (byte 12): expected a JSON object with the report's metadata or body, found the end of the file",
        ),
    ] {
        let error = read(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn a_cut_report_gives_what_stands_before_the_cut() {
    let whole = format!(
        "{METADATA}\n{{\"procName\":\"D\",{IMAGES},\"threads\":[{{\"frames\":[{{\"imageIndex\":0,\"imageOffset\":16}}]}},{{\"frames\":[]}}]}}"
    );
    let cut = whole.find("]},{\"frames").unwrap();
    let report = read(&whole[..cut]).unwrap();
    assert_eq!((report.process.threads.len(), report.process.threads[0].frames.len()), (1, 1));
    assert_eq!(
        report.notes,
        [
            "the report is cut or broken, what stands before is read: line 5 (byte 707): expected `,` or `]` behind an item, found the end of the file"
        ]
    );
}

#[test]
fn limits_bound_frames_threads_and_images() {
    let frame = r#"{"imageIndex":0,"imageOffset":16}"#;
    let thread = format!("{{\"frames\":[{frame},{frame},{frame}]}}");
    let text = format!("{{\"procName\":\"D\",\"threads\":[{thread},{thread},{thread}],{IMAGES}}}");
    let limits = Limits { max_threads: 2, max_frames: 4, max_images: 1, ..Limits::default() };
    let report = parse(text.as_bytes(), &limits).unwrap();
    assert_eq!((report.process.threads.len(), report.process.images.len()), (2, 1));
    assert_eq!(report.process.threads[1].frames.len(), 1);
    assert_eq!(section(&report, "threads[1].frames from 1 on"), Some(&*format!("{frame},{frame}")));
    assert!(section(&report, "usedImages").is_some() && section(&report, "threads").is_some());
    assert_eq!(report.notes.len(), 3, "{:?}", report.notes);
    let limits = Limits { max_bytes: 10, ..Limits::default() };
    assert_eq!(parse(text.as_bytes(), &limits).unwrap_err().kind(), ErrorKind::TooLarge);
}

const TRANSLATED: &str = "\
-------------------------------------
Translated Report (Full Report Below)
-------------------------------------

Process:               App [842]
Report Version:        12

Thread 0 Crashed:
0   App  \t0x100f48498 ??? 

-----------
Full Report
-----------

";

#[test]
fn of_a_translated_report_the_full_one_is_read() {
    let json = format!(
        "{{\"procName\":\"App\",\"pid\":842,\"threads\":[{{\"triggered\":true,\"frames\":[{{\"imageIndex\":0,\"imageOffset\":1176}}]}}],{IMAGES}}}"
    );
    let text = format!("{TRANSLATED}{METADATA}\n{json}\n\nModel: Mac16,12\n");
    let report = read(&text).unwrap();
    assert_eq!(report.source, Source::AppleIps);
    assert_eq!(report.process.threads[0].frames[0].image, Some(0));
    assert!(section(&report, "Translated Report").unwrap().contains("Report Version:        12"));
    assert_eq!(section(&report, "Text behind the report"), Some("Model: Mac16,12"));
    // A full report that is cut says less than the translated one.
    let cut = read(&text[..text.find("\"threads\"").unwrap()]).unwrap();
    assert_eq!((cut.source, cut.process.threads.len()), (Source::AppleText, 1));
    assert!(cut.notes.last().unwrap().contains("was not used"), "{:?}", cut.notes);
}

#[test]
fn the_blamed_thread() {
    let blamed = |body_text: &str| {
        let report = body(body_text);
        (report.process.crashed_thread, report.notes.len(), report.crashed().and_then(|t| t.queue.clone()))
    };
    let queue = Some("q".to_owned());
    let legacy = r#""legacyInfo":{"threadTriggered":{"queue":"q"}}"#;
    assert_eq!(
        blamed(&format!(r#"{{"faultingThread":1,"threads":[{{}},{{}}],{legacy},"usedImages":[]}}"#)),
        (Some(1), 0, queue)
    );
    assert_eq!(
        blamed(r#"{"faultingThread":0,"threads":[{},{"triggered":true}],"usedImages":[]}"#),
        (Some(1), 1, None)
    );
    assert_eq!(blamed(r#"{"faultingThread":9,"threads":[{}],"usedImages":[]}"#), (None, 0, None));
}

mod kinds;
