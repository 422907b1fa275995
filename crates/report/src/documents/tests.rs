use super::*;
use crate::{Limits, parse};
use backtrail_model::Report;

const REPORT: &str = "Incident Identifier: 11111111-2222-3333-4444-555555555555\nProcess:         App [12]\n\
    Path:            /a/App\n\nException Type:  EXC_BAD_ACCESS (SIGSEGV)\nException Codes: KERN_INVALID_ADDRESS at 0x10\n\
    Crashed Thread:  0\n\nThread 0 Crashed:\n0   App           0x0000000100001234 main + 16\n\
    1   libdyld.dylib 0x0000000180001000 start + 4\n\nBinary Images:\n\
    0x100000000 - 0x100003fff +App arm64  <3f2504e04f8911d39a0c0305e82c3301> /a/App\n";

fn read(document: &Document<'_>) -> Report {
    parse(&document.bytes, &Limits::default()).unwrap()
}

fn only(text: &str) -> Report {
    let documents = documents(text.as_bytes());
    assert_eq!(documents.len(), 1, "{text}");
    read(&documents[0])
}

fn check(report: &Report) {
    assert_eq!(report.process.name.as_deref(), Some("App"));
    assert_eq!(report.process.threads.len(), 1);
    assert_eq!(report.process.threads[0].frames.len(), 2);
    assert_eq!(report.process.images.len(), 1);
    assert_eq!(
        report.process.images[0].id.unwrap().to_string().to_lowercase().replace('-', ""),
        "3f2504e04f8911d39a0c0305e82c3301"
    );
    assert!(report.exception.is_some());
}

#[test]
fn one_report_is_its_own_bytes() {
    for input in
        [REPORT, "", "{\"bug_type\":\"309\"}\n{\"threads\":[]}\n", "\u{feff}Process: a", "\0\u{1}", "[1,2]"]
    {
        let documents = documents(input.as_bytes());
        let found: Vec<_> = documents.iter().map(|document| (&document.bytes[..], document.line)).collect();
        assert_eq!(found, [(input.as_bytes(), 1)]);
    }
}

#[test]
fn what_was_pasted_reads_as_it_was() {
    let quoted = |mark: &str| REPORT.lines().map(|line| format!("{mark}{line}\n")).collect::<String>();
    for text in [
        quoted("> "),
        quoted(">"),
        quoted("> > "),
        quoted(">> "),
        format!("He wrote:\n\n{}\nWhat is it?\n", quoted("> ")),
        format!("Crash!\n```\n{REPORT}```\nPlease help.\n"),
        format!("Crash!\n\n~~~text\n{REPORT}~~~\n"),
        format!("{{code:java}}\n{REPORT}{{code}}\n"),
        format!("{{noformat}}\n{REPORT}{{noformat}}\n"),
        quoted("    "),
        quoted("\t"),
        REPORT.replace('\n', "\r\n"),
        quoted("> ").replace('\n', "\r\n"),
        REPORT.replace('<', "&lt;").replace('>', "&gt;"),
        format!("<pre><code>{}</code></pre>", REPORT.replace('<', "&lt;").replace('>', "&gt;")),
        format!("```\n{}```", quoted("> ")),
        format!("> ```\n{}> ```\n", quoted("> ")),
        REPORT.replace("0   App   ", "0\u{a0}\u{a0}\u{a0}App "),
        REPORT.replace("   ", "\t"),
    ] {
        check(&only(&text));
    }
}

/// Trackers make links of functions and places.
#[test]
fn what_has_links_reads_as_it_was() {
    let linked = REPORT.replace(" main + 16", " [main](https://example.org/app.c#L7) + 16");
    check(&only(&linked));
    let frame = &only(&linked).process.threads[0].frames[0];
    assert_eq!(frame.reported.as_ref().unwrap().name, "main");
    for text in ["f[0](x)", "-[Cart total](7)", "[text](/relative)", "[a](b ://c)", "](https://x/)"] {
        let with = format!("{REPORT}{text}\n");
        assert_eq!(documents(with.as_bytes())[0].bytes, Cow::Borrowed(with.as_bytes()), "{text}");
    }
}

#[test]
fn what_a_terminal_coloured_reads_as_it_was() {
    let coloured: String = REPORT.lines().map(|line| format!("\x1b[1;91m{line}\x1b[0m\n")).collect();
    assert_eq!(documents(coloured.as_bytes())[0].bytes, REPORT.as_bytes());
    // Other sequences are no colours, and one that is cut off is none.
    let other = format!("\x1b[2J{REPORT}\x1b[31");
    assert_eq!(documents(other.as_bytes())[0].bytes, other.as_bytes());
}

#[test]
fn few_lines_with_marks_stay_as_they_are() {
    let text = format!("{REPORT}\n> a line\n>> and one\n");
    assert_eq!(documents(text.as_bytes())[0].bytes, text.as_bytes());
    // The report states its identity in plain brackets, so that the escape is part of a message.
    let text = format!("Application Specific Information:\nexpected &lt;\n\n{REPORT}");
    assert_eq!(documents(text.as_bytes())[0].bytes, text.as_bytes());
}

#[test]
fn reports_one_after_the_other_are_several() {
    let second = REPORT.replace("[12]", "[13]");
    for text in [
        format!("{REPORT}{second}"),
        format!("First:\n{REPORT}\nSecond:\n\n{second}"),
        format!("{REPORT}\n{second}")
            .replace("Incident Identifier: 11111111-2222-3333-4444-555555555555\n", ""),
        format!("```\n{REPORT}```\nand\n```\n{second}```\n"),
    ] {
        let documents = documents(text.as_bytes());
        let pids: Vec<_> = documents.iter().map(|document| read(document).process.pid).collect();
        assert_eq!(pids, [Some(12), Some(13)], "{text}");
        documents.iter().for_each(|document| check(&read(document)));
        let line = text.lines().position(|line| line.contains("[13]")).unwrap() as u64 + 1;
        assert!((line - 1..=line).contains(&documents[1].line), "{line} {}", documents[1].line);
    }
    let text = format!("{REPORT}{second}");
    let whole: Vec<u8> =
        documents(text.as_bytes()).iter().flat_map(|document| document.bytes.to_vec()).collect();
    assert_eq!(whole, text.as_bytes());
}

const BODY: &str = "{\n  \"procName\" : \"A\",\n  \"pid\" : 7,\n  \"threads\" : [{\"frames\":[]}],\n  \"usedImages\" : []\n}";

#[test]
fn json_reports_one_after_the_other_are_several() {
    let one = format!("{{\"app_name\":\"A\",\"bug_type\":\"309\"}}\n{BODY}\n");
    let line = BODY.replace(['\n', ' '], "");
    for (text, count) in [
        (one.clone(), 1),
        (format!("{one}{one}"), 2),
        (format!("{one}\n\n{one}{one}"), 3),
        (format!("{line}\n{line}\n{line}\n"), 3),
        (format!("{one}System Profile:\nsome text\n{one}"), 2),
        (format!("{one}{}", &one[..60]), 2),
        (format!("{{\"bug_type\":\"109\"}}\n{REPORT}\n"), 1),
        ("{\"event_id\":\"1\",\"dsn\":\"x\"}\n{\"type\":\"event\"}\n{\"exception\":{}}\n".to_owned(), 1),
    ] {
        assert_eq!(documents(text.as_bytes()).len(), count, "{text}");
    }
    let text = format!("{one}{one}");
    assert!(documents(text.as_bytes()).iter().all(|document| read(document).process.pid == Some(7)));
}

#[test]
fn items_of_an_array_of_reports_are_several() {
    let item = r#"{"report":{"id":"[}"},"crash":{"threads":[]}}"#;
    let text = format!(" [{item}, {item}\n,{item}]\n");
    let found = documents(text.as_bytes());
    assert_eq!(found.len(), 3);
    assert!(found.iter().all(|document| document.bytes == item.as_bytes()));
    assert_eq!(documents(format!("[{item}, {{\"other\":1}}]").as_bytes()).len(), 1);
}

#[test]
fn a_report_and_its_full_form_are_one() {
    let body = BODY.replace("\"pid\" : 7", "\"pid\" : 8");
    let one = format!(
        "-------------------------------------\nTranslated Report (Full Report Below)\n\
         -------------------------------------\n\n{REPORT}\n-----------\nFull Report\n-----------\n\n\
         {{\"app_name\":\"A\",\"bug_type\":\"309\"}}\n{body}\n"
    );
    assert_eq!(documents(one.as_bytes()).len(), 1);
    let found = format!("{one}{one}");
    let found = documents(found.as_bytes());
    assert_eq!(found.iter().map(|document| document.bytes.len()).collect::<Vec<_>>(), [one.len(), one.len()]);
}

#[test]
fn every_cut_is_divided_without_harm() {
    let text = format!("> {REPORT}\n{{\"bug_type\":\"309\"}}\n{BODY}\n[{{\"crash\":\"\\");
    for end in 0..text.len() {
        let cut = text.as_bytes().get(..end).unwrap();
        assert!(!documents(cut).is_empty());
        assert!(!documents(&text.as_bytes()[end..]).is_empty());
    }
}

#[test]
fn each_diagnostic_of_a_payload_is_a_report() {
    let diagnostic = |pid: u32, metadata: &str| {
        format!(
            r#"{{"diagnosticMetaData":{{"pid":{pid},{metadata}}},"callStackTree":{{"callStackPerThread":true,"callStacks":[
            {{"threadAttributed":true,"callStackRootFrames":[{{"binaryName":"App","address":74565,"offsetIntoBinaryTextSegment":5,"sampleCount":1}}]}}]}}}}"#
        )
    };
    let (hang, one, two) = (
        diagnostic(1, r#""hangDuration":"20 sec""#),
        diagnostic(2, r#""exceptionType":1"#),
        diagnostic(3, r#""exceptionType":6"#),
    );
    let payload = format!(
        "{{\"timeStampEnd\":\"2024-01-02\",\"hangDiagnostics\":[{hang}],\n\"note\":\"kept\",\n\"crashDiagnostics\":[\n{one},\n{two}]}}"
    );
    let documents = documents(payload.as_bytes());
    let reports: Vec<_> = documents.iter().map(read).collect();
    let pids: Vec<_> = reports.iter().map(|report| report.process.pid).collect();
    assert_eq!(pids, [Some(1), Some(2), Some(3)]);
    let events: Vec<_> = reports.iter().map(|report| report.event.as_deref()).collect();
    assert_eq!(events, [Some("hang"), None, None]);
    let kinds: Vec<_> = reports.iter().map(|report| report.exception.as_ref()?.kind.as_deref()).collect();
    assert_eq!(kinds, [None, Some("EXC_BAD_ACCESS"), Some("EXC_BREAKPOINT")]);
    assert!(reports.iter().all(|report| report.time.as_deref() == Some("2024-01-02")));
    let kept = |report: &Report| report.fields.iter().any(|field| field.key == "note");
    assert_eq!(reports.iter().map(kept).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(documents.iter().map(|document| document.line).collect::<Vec<_>>(), [1, 5, 7]);
    // Payloads in a list, in what a service put around them, and metrics beside them.
    let list = format!(
        "[{payload},\n{{\"timeStampBegin\":\"2024-01-02\",\"timeStampEnd\":\"2024-01-03\",\"cpuMetrics\":{{\"cumulativeCPUTime\":\"7 sec\"}}}}]"
    );
    let wrapped = format!("{{\"customer\":\"7\",\"payloads\":{list}}}");
    for (text, around) in [(&list, false), (&wrapped, true)] {
        let reports: Vec<_> = super::documents(text.as_bytes()).iter().map(read).collect();
        assert_eq!(reports.len(), 4);
        assert_eq!(reports[3].time.as_deref(), Some("2024-01-03"));
        assert!(reports[3].fields.iter().any(|field| field.value == "7 sec"));
        let of_customer = |report: &Report| report.fields.iter().any(|field| field.key == "customer");
        assert_eq!(reports.iter().map(of_customer).collect::<Vec<_>>(), [around, false, false, false]);
    }
    // Of one there is nothing to divide, and what is cut is read as far as it goes.
    for end in (1..payload.len()).filter(|end| payload.is_char_boundary(*end)) {
        let whole: Vec<u8> = super::documents(&payload.as_bytes()[..end])
            .iter()
            .flat_map(|document| document.bytes.to_vec())
            .collect();
        assert_eq!(whole, &payload.as_bytes()[..end]);
    }
}

/// Some systems log the exception behind the stack, most before it.
#[test]
fn an_exception_belongs_to_the_stack_beside_it() {
    const STACK: &str = "*** First throw call stack:\n(0x1a 0x1b)\n";
    const THROWN: &str = "*** Terminating app due to uncaught exception 'E', reason: 'x'\n";
    let counts = |parts: &[&str]| documents(parts.concat().as_bytes()).len();
    assert_eq!(counts(&[STACK, THROWN]), 1);
    assert_eq!(counts(&[THROWN, STACK]), 1);
    assert_eq!(counts(&[THROWN, STACK, THROWN, STACK]), 2);
    assert_eq!(counts(&[STACK, "words\n", THROWN, "words\n", STACK]), 2);
    // Threads behind both belong to them, too.
    const THREAD: &str = "Thread 0 Crashed:\n0   App  0x12 f + 1\n";
    assert_eq!(counts(&[STACK, THROWN, THREAD]), 1);
    assert_eq!(counts(&[THROWN, STACK, THROWN, THREAD]), 2);
}

#[test]
fn exports_of_crashlytics_are_parted() {
    let one = "# Crashlytics - Stack trace\n# Platform: apple\n\nCrashed: a.b\n0  App  0x12 f + 1\n\nThread\n0  App  0x12 f + 1\n\n";
    let text = one.repeat(3);
    let documents = documents(text.as_bytes());
    assert_eq!(documents.len(), 3);
    assert!(documents.iter().all(|document| read(document).process.threads.len() == 2));
}

/// Some put each line between backquotes of its own.
#[test]
fn lines_between_backquotes() {
    let text = b"We see:\n`Thread 0 Crashed:`\n`0   Shop  0x1234 f + 1`\n`1   Shop  0x1240 main + 1`\n";
    let all = documents(text);
    assert_eq!(
        &*all[0].bytes,
        b"We see:\nThread 0 Crashed:\n0   Shop  0x1234 f + 1\n1   Shop  0x1240 main + 1\n"
    );
}

#[test]
fn text_in_utf_16() {
    let text = "Process: App [7]\nIdentifier: com.é\n\nThread 0 Crashed:\n0   App  0x1234 main + 1\n";
    let little = text.encode_utf16().flat_map(u16::to_le_bytes);
    let big = text.encode_utf16().flat_map(u16::to_be_bytes);
    for mut bytes in [
        [0xff, 0xfe].into_iter().chain(little).collect::<Vec<_>>(),
        [0xfe, 0xff].into_iter().chain(big).collect(),
    ] {
        let found = documents(&bytes);
        assert_eq!(read(&found[0]).process.identifier.as_deref(), Some("com.é"));
        bytes.pop();
        assert_eq!(read(&documents(&bytes)[0]).process.pid, Some(7), "half a character at its end");
    }
}

#[test]
fn a_report_in_json_with_words_around_it() {
    let report = r#"{
  "report": {"version": "3.2.0"},
  "binary_images": [],
  "system": {"process_name": "App"},
  "crash": {"error": {"type": "signal", "signal": {"signal": 11, "name": "SIGSEGV"}}, "threads": []}
}"#;
    for text in [
        format!("It crashes, look:\n\n```\n{report}\n```\nThanks\n"),
        format!("From: a@b.c\nSubject: {{crash}}\n\n{report}\n"),
    ] {
        let found = documents(text.as_bytes());
        assert_eq!(found.len(), 1);
        let parsed = read(&found[0]);
        assert_eq!(parsed.source, backtrail_model::Source::KsCrash, "{text}");
        assert_eq!(found[0].line, text.lines().position(|line| line == "{").unwrap() as u64 + 1);
    }
    // An object in a log is no report.
    let log = format!("Process: App [7]\n{}\n{{\"event_id\":\"1\"}}\n", "words\n".repeat(9));
    assert!(documents(log.as_bytes())[0].bytes.starts_with(b"Process"));
}

#[test]
fn a_report_far_inside_of_a_log() {
    let noise = "12:00:00 INFO worker-7: nothing to say of the matter, as before\n".repeat(9000);
    let text = format!("{noise}{REPORT}");
    let found = documents(text.as_bytes());
    assert_eq!(found.len(), 1);
    check(&read(&found[0]));
    assert!(found[0].line > 1 && found[0].bytes.ends_with(REPORT.as_bytes()));
    // Where there is none, all of it is what is refused.
    assert_eq!(&*documents(noise.as_bytes())[0].bytes, noise.as_bytes());
}
