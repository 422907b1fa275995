//! All CrashProbe crashes of the corpus, in both formats, against what their dSYMs say and what CrashProbe publishes.

use backtrail::{Analysis, Frame, Limits, NoProgress, Symbols};
use serde_json::Value;
use std::path::Path;

#[test]
fn every_application_frame_gets_its_functions() {
    let Some(corpus) = backtrail_testkit::corpus() else { return };
    let directory = corpus.join("crashprobe");
    let expected: Value =
        serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap();
    let symbols = Symbols::scan(&[directory.join("dSYMs")], &NoProgress);
    let (mut reports, mut frames) = (0, 0);
    for (name, expected) in expected.as_object().unwrap() {
        for ending in ["crash", "ips"] {
            let path = directory.join("reports").join(format!("{name}.{ending}"));
            frames += check(&path, expected, &symbols);
            reports += 1;
        }
    }
    assert_eq!(reports, 128);
    assert!(frames > 500, "{frames} frames compared");
    assert_eq!(symbols.problems(), []);
    assert_eq!(symbols.late_problems(), Vec::<String>::new());
}

/// Compares one report; gives the number of frames compared.
fn check(path: &Path, expected: &Value, symbols: &Symbols) -> usize {
    let input = std::fs::read(path).unwrap();
    let analysis = Analysis::new(&input, symbols, &Limits::default()).unwrap();
    let report = &analysis.report;
    let wanted = expected["frames"].as_array().unwrap();
    for wanted in wanted {
        let thread = usize::try_from(wanted["thread"].as_u64().unwrap()).unwrap();
        let frame = usize::try_from(wanted["frame"].as_u64().unwrap()).unwrap();
        // Frames out of the registers are not the published ones.
        let mut frames = report.process.threads[thread].frames.iter().filter(|frame| frame.span.is_some());
        let frame = frames.nth(frame).unwrap();
        let place = format!("{} frame {}", path.display(), frame.index);
        let image = &report.process.images[frame.image.unwrap()];
        assert_eq!(image.name, wanted["image"].as_str().unwrap(), "{place}");
        assert_eq!(functions(frame), published(&wanted["functions"]), "{place}");
    }
    check_innermost(path, expected, &report.process.threads[0].frames);
    wanted.len()
}

type Place = (String, Option<String>, Option<u64>);

fn functions(frame: &Frame) -> Vec<Place> {
    let place = |function: &backtrail::Function| {
        let name = function.linkage_name.clone().unwrap_or_else(|| function.name.clone());
        (name, function.file.clone(), function.line.map(u64::from))
    };
    // Assembly has no debug info; its symbols answer, without file and line.
    let symbol = frame.symbol.iter().map(|symbol| (symbol.linkage_name.clone().unwrap(), None, None));
    frame.functions.iter().map(place).chain(symbol).collect()
}

fn published(functions: &Value) -> Vec<Place> {
    let place = |function: &Value| {
        let text = |key: &str| function[key].as_str().map(str::to_owned);
        let file = text("file").filter(|file| !file.is_empty());
        (text("linkage_name").unwrap(), file, function["line"].as_u64().filter(|line| *line != 0))
    };
    functions.as_array().unwrap().iter().map(place).collect()
}

/// The first frames with a source line are the ones that CrashProbe publishes for this crash.
fn check_innermost(path: &Path, expected: &Value, frames: &[Frame]) {
    let located = frames.iter().flat_map(|frame| &frame.functions).filter(|function| function.line.is_some());
    for (function, wanted) in located.zip(expected["expected_innermost"].as_array().unwrap()) {
        let file = function.file.as_deref().unwrap().rsplit('/').next();
        assert_eq!(file, wanted[0].as_str(), "{}", path.display());
        assert_eq!(function.line.map(u64::from), wanted[1].as_u64(), "{}", path.display());
    }
}
