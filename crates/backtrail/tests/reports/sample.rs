//! The sample that the repository ships: every answer in `fixtures/sample/expected.json`, which comes from marks in the
//! sample's source, from both formats of its reports.

use backtrail::{Analysis, Bias, Frame, Limits, NoProgress, OwnerKind, Reason, Report, Svma, Symbols};
use backtrail_testkit::fixtures;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn sample() -> PathBuf {
    fixtures().join("sample")
}

/// Every report with its case's answers, against the symbols in that directory of the sample.
pub(crate) fn each_report(symbols: &str, mut check: impl FnMut(&Path, &[u8], &Analysis, &Value)) {
    let expected = std::fs::read(sample().join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let symbols = Symbols::scan(&[sample().join(symbols)], &NoProgress);
    let mut count = 0;
    for case in expected["cases"].as_array().unwrap() {
        for name in case["reports"].as_array().unwrap() {
            let path = sample().join("reports").join(name.as_str().unwrap());
            let input = std::fs::read(&path).unwrap();
            check(&path, &input, &Analysis::new(&input, &symbols, &Limits::default()).unwrap(), case);
            count += 1;
        }
    }
    let there = std::fs::read_dir(sample().join("reports")).unwrap().count();
    assert_eq!(count, there, "every report has answers");
    assert_eq!(symbols.problems(), []);
}

/// The frame that an answer speaks of; those of no thread belong to the uncaught exception.
pub(crate) fn frame<'r>(report: &'r Report, wanted: &Value) -> &'r Frame {
    let index = usize::try_from(wanted["frame"].as_u64().unwrap()).unwrap();
    match wanted["thread"].as_u64() {
        Some(thread) => &report.process.threads[usize::try_from(thread).unwrap()].frames[index],
        None => {
            &report.process.backtraces.iter().find(|backtrace| backtrace.is_exception).unwrap().frames[index]
        }
    }
}

pub(crate) fn functions(frame: &Frame) -> Value {
    let functions = frame.functions.iter().map(|function| {
        serde_json::json!({
            "linkage_name": function.linkage_name.as_deref().unwrap_or(&function.name),
            "file": function.file,
            "line": function.line,
            "inlined": function.inlined,
        })
    });
    functions.collect()
}

fn number(text: &Value) -> u64 {
    u64::from_str_radix(text.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn every_frame_of_ours_gets_its_functions() {
    each_report("symbols", |path, _, analysis, case| {
        let report = &analysis.report;
        for wanted in case["frames"].as_array().unwrap() {
            let frame = frame(report, wanted);
            let place = format!("{} thread {} frame {}", path.display(), wanted["thread"], frame.index);
            assert_eq!(functions(frame), wanted["functions"], "{place}");
            assert_eq!(frame.reason, None, "{place}");

            let image = frame.image.unwrap();
            assert_eq!(report.process.images[image].name, wanted["image"].as_str().unwrap(), "{place}");
            let avma = frame.address.unwrap().raw();
            assert_eq!(avma.get(), number(&wanted["avma"]), "{place}");
            let svma =
                analysis.report.process.images[image].symbols.bias.and_then(|bias: Bias| bias.to_svma(avma));
            assert_eq!(svma, Some(Svma::new(number(&wanted["svma"]))), "{place}");
        }
        let ours = all_frames(report).filter(|frame| !frame.functions.is_empty()).count();
        assert_eq!(
            ours,
            case["frames"].as_array().unwrap().len(),
            "{}: no frame but ours has functions",
            path.display()
        );
    });
}

fn all_frames(report: &Report) -> impl Iterator<Item = &Frame> {
    let threads = report.process.threads.iter().flat_map(|thread| &thread.frames);
    threads.chain(report.process.backtraces.iter().flat_map(|backtrace| &backtrace.frames))
}

#[test]
fn reports_are_read_whole_and_attributed() {
    each_report("symbols", |path, _, analysis, case| {
        let (report, place) = (&analysis.report, path.display());
        let counts: Vec<usize> = report.process.threads.iter().map(|thread| thread.frames.len()).collect();
        assert_eq!(serde_json::json!(counts), case["threads"], "{place}");
        assert_eq!(report.process.images.len() as u64, case["images"].as_u64().unwrap(), "{place}");
        assert_eq!(
            report.process.crashed_thread.map(|it| it as u64),
            case["crashed_thread"].as_u64(),
            "{place}"
        );
        let exception = report.exception.as_ref().unwrap();
        assert_eq!(exception.kind.as_deref(), case["exception"]["type"].as_str(), "{place}");
        assert_eq!(exception.signal.as_deref(), case["exception"]["signal"].as_str(), "{place}");
        assert!(report.termination.as_ref().is_some_and(|it| it.namespace.is_some()), "{place}");
        assert_eq!(report.notes, Vec::<String>::new(), "{place}");

        let verdict = match case["attribution"]["verdict"].as_str().unwrap() {
            "app" => OwnerKind::App,
            "sdk" => OwnerKind::Sdk,
            other => panic!("{place}: a verdict {other}"),
        };
        assert_eq!(analysis.attribution.verdict, verdict, "{place}");
        assert_eq!(analysis.attribution.name.as_deref(), case["attribution"]["name"].as_str(), "{place}");
        assert!(!analysis.is_incomplete(), "{place}: {:?}", analysis.report.process.images);
    });
}

#[test]
fn the_stripped_app_gives_no_wrong_names() {
    each_report("app", |path, _, analysis, case| {
        for wanted in case["frames"].as_array().unwrap() {
            let frame = frame(&analysis.report, wanted);
            let place = format!("{} frame {}", path.display(), frame.index);
            assert_eq!(frame.functions, [], "{place}: there is no debug info");
            let outermost = wanted["functions"].as_array().unwrap().last().unwrap();
            match &frame.symbol {
                // Exported functions keep their names.
                Some(symbol) => {
                    let name = symbol.linkage_name.as_deref().unwrap_or(&symbol.name);
                    assert_eq!(name.trim_start_matches('_'), outermost["linkage_name"], "{place}");
                }
                None => assert_eq!(frame.reason, Some(Reason::Stripped), "{place}"),
            }
        }
    });
}

#[test]
fn filled_in_reports_differ_in_frames_of_ours_only() {
    each_report("symbols", |path, input, analysis, case| {
        let filled = analysis.filled_in(input);
        if path.extension().is_some_and(|extension| extension == "ips") {
            return;
        }
        let (before, after) = (String::from_utf8_lossy(input), String::from_utf8_lossy(&filled));
        let kept = before.lines().filter(|line| after.lines().any(|other| other == *line)).count();
        let ours = case["frames"].as_array().unwrap().len();
        assert!(before.lines().count() - kept <= ours, "{}", path.display());
        for wanted in case["frames"].as_array().unwrap() {
            let innermost = &wanted["functions"][0];
            let file = innermost["file"].as_str().unwrap().rsplit('/').next().unwrap();
            let place = format!("({file}:{})", innermost["line"]);
            assert!(after.contains(&place), "{}: no {place} in\n{after}", path.display());
        }
    });
}
