//! Threads, frames, images and registers: as many as the file has.

use crate::{json_reports, read, text_reports};
use backtrail_model::Report;
use backtrail_report::emit;
use serde_json::Value;
use std::path::Path;

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    threads: usize,
    frames: usize,
    images: usize,
    registers: usize,
}

fn of_report(report: &Report) -> Counts {
    let frames = |threads: usize, backtraces: usize| threads + backtraces;
    Counts {
        threads: report.process.threads.len(),
        frames: frames(
            report.process.threads.iter().map(|t| t.frames.len()).sum(),
            report.process.backtraces.iter().map(|b| b.frames.len()).sum(),
        ),
        images: report.process.images.len(),
        registers: report.process.threads.iter().map(|t| t.registers.len()).sum(),
    }
}

fn is_hex(word: &str) -> bool {
    word.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Counts rows by their look alone.
fn of_text(text: &str) -> Counts {
    let mut counts = Counts::default();
    let mut in_state = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [first, rest @ ..] = words.as_slice() else { continue };
        let is_number = first.bytes().all(|b| b.is_ascii_digit());
        if line.starts_with("Thread ") && line.contains("crashed with") {
            in_state = true;
        } else if line.starts_with("Thread ") && !line.contains(" name:") {
            counts.threads += 1;
        } else if is_hex(first) && rest.first() == Some(&"-") {
            in_state = false;
            counts.images += 1;
        } else if is_number && rest.iter().any(|word| is_hex(word)) {
            counts.frames += 1;
        } else if in_state && first.ends_with(':') && rest.first().is_some_and(|word| is_hex(word)) {
            counts.registers += words.iter().filter(|word| is_hex(word)).count();
        }
    }
    // `Error Code: 0x00000004` stands below the state and is no register; it does not begin so.
    counts
}

fn of_json(body: &Value) -> Counts {
    let threads = body["threads"].as_array().unwrap();
    let backtrace = body["lastExceptionBacktrace"].as_array().map_or(0, Vec::len);
    let registers = |state: &Value| -> usize {
        let members = state.as_object().into_iter().flatten();
        members
            .map(|(_, value)| value.as_array().map_or(usize::from(value.get("value").is_some()), Vec::len))
            .sum()
    };
    Counts {
        threads: threads.len(),
        frames: backtrace + threads.iter().map(|t| t["frames"].as_array().unwrap().len()).sum::<usize>(),
        images: body["usedImages"].as_array().unwrap().len(),
        registers: threads.iter().map(|t| registers(&t["threadState"])).sum(),
    }
}

/// The body of an `.ips`, with whatever stands behind it cut off.
pub(crate) fn json_body(text: &str) -> Value {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    documents.next().unwrap().unwrap();
    documents.next().unwrap().unwrap()
}

#[test]
fn text_reports_have_what_their_rows_say() {
    for path in text_reports() {
        let (input, report) = read(&path);
        let expected = of_text(&String::from_utf8(input).unwrap());
        assert_eq!(of_report(&report), expected, "{}", path.display());
        assert_eq!(report.notes, known_oddities(&path), "{}", path.display());
    }
}

fn known_oddities(path: &Path) -> Vec<String> {
    if path.ends_with("handcrafted.txt") {
        return vec!["the header blames thread 5, but thread 1 is marked as crashed".to_owned()];
    }
    if path.ends_with("UmengDemo.crash") {
        return vec![
            "rows of DemoApp have names already; their addresses are not looked up again".to_owned(),
        ];
    }
    Vec::new()
}

#[test]
fn json_reports_have_what_their_arrays_say() {
    for path in json_reports() {
        let (input, report) = read(&path);
        let body = json_body(&String::from_utf8(input).unwrap());
        assert_eq!(of_report(&report), of_json(&body), "{}", path.display());
        assert_eq!(report.notes, Vec::<String>::new(), "{}", path.display());
    }
}

#[test]
fn without_symbols_every_report_comes_back_as_it_was() {
    for path in text_reports().into_iter().chain(json_reports()) {
        let (input, report) = read(&path);
        assert!(emit(&input, &report) == input, "{}", path.display());
    }
}

#[test]
fn frames_lie_in_the_images_that_they_name() {
    for path in text_reports() {
        let (_, mut report) = read(&path);
        let images = report.process.images.clone();
        for frame in report.process.frames_mut() {
            let (Some(name), Some(image)) = (&frame.image_name, frame.image) else { continue };
            let image = &images[image];
            let names = [Some(image.name.as_str()), image.bundle_id.as_deref()];
            // Handcrafted on purpose.
            let odd = path.ends_with("handcrafted.txt");
            assert!(names.contains(&Some(name)) || odd, "{}: {frame:?} {image:?}", path.display());
        }
    }
}

#[test]
fn spans_are_the_rows_own_bytes() {
    for path in text_reports().into_iter().chain(json_reports()) {
        let (input, mut report) = read(&path);
        for frame in report.process.frames_mut() {
            let row = std::str::from_utf8(&input[frame.span.clone().unwrap()]).unwrap();
            let is_row = row.trim_start().starts_with(&frame.index.to_string()) && !row.contains('\n');
            let is_object = row.starts_with('{') && row.ends_with('}') && row.contains("\"imageOffset\"");
            assert!(is_row || is_object, "{}: {row}", path.display());
        }
    }
}
