//! Reports of sanitizers, debuggers, languages' runtimes, Java virtual machines and Linux's kernel.

use crate::files;
use crate::losses::{Words, leaves, words};
use backtrail_model::{Frame, Report, Source};
use backtrail_report::{Limits, documents, parse};
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

/// Every text of these kinds that is one, and what it is taken for.
fn texts() -> Vec<(PathBuf, Vec<u8>, Report)> {
    let directories = [
        "kinds/sanitizer",
        "kinds/gdb-backtrace",
        "kinds/abrt",
        "kinds/go",
        "kinds/rust",
        "kinds/python",
        "kinds/java-hs_err",
        "kinds/kernel-oops",
        "kinds/assert-abort",
        "kinds/chromium-v8",
        "kinds/dart",
    ];
    let mut found = Vec::new();
    for path in directories.iter().flat_map(|directory| files(directory, "")) {
        let Ok(input) = std::fs::read(&path) else { continue };
        let Ok(report) = parse(&input, &Limits::default()) else { continue };
        // What JSON states is looked at by its leaves.
        if report.source.is_runtimes() && input.trim_ascii_start().first() != Some(&b'{') {
            found.push((path, input, report));
        }
    }
    found
}

fn all_frames(report: &Report) -> impl Iterator<Item = &Frame> {
    let threads = report.process.threads.iter().flat_map(|thread| &thread.frames);
    threads.chain(report.process.backtraces.iter().flat_map(|backtrace| &backtrace.frames))
}

/// Words of the form, which the model states by its own structure.
const FORM: &str = "in at from File line created by BuildId goroutine null of thread Thread frame mod stack V C J j abs virt unknown";

#[test]
fn every_word_is_in_the_model() {
    let form: HashSet<String> = words(FORM).collect();
    let mut count = 0;
    for (path, input, report) in texts() {
        let mut model = Words::of(&report);
        for frame in all_frames(&report) {
            let column = frame.reported.as_ref().and_then(|symbol| symbol.column);
            model.number(column.unwrap_or_default().into());
            if let Some(relative) = frame.relative_pc {
                model.number(relative.get());
            }
        }
        // A stack in parentheses is split at them.
        for (number, line) in String::from_utf8_lossy(&input).lines().enumerate() {
            let has = |word: &String| {
                let digits = word.trim_start_matches('0');
                let as_number = u64::from_str_radix(digits, 16).map(|value| format!("{value:#x}"));
                model.0.contains(word)
                    || form.contains(word)
                    || digits.is_empty()
                    || model.0.contains(digits)
                    || as_number.is_ok_and(|number| model.0.contains(&number))
            };
            let lost: Vec<String> = words(line).filter(|word| !has(word)).collect();
            assert!(lost.is_empty(), "{} line {}: {lost:?} of `{line}`", path.display(), number + 1);
        }
        count += 1;
    }
    assert!(count > 500 || backtrail_testkit::corpus().is_none(), "{count}");
}

/// How many of each directory are read, which is all but those that have no report.
#[test]
fn nearly_all_are_read() {
    let mut counts: BTreeMap<String, (usize, usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    for directory in [
        "sanitizer",
        "gdb-backtrace",
        "abrt",
        "go",
        "rust",
        "python",
        "java-hs_err",
        "kernel-oops",
        "node-report",
        "grouping-casr",
    ] {
        for path in files(&format!("kinds/{directory}"), "") {
            let name = path.to_string_lossy().into_owned();
            // Sources, the answers of other tools, the facts of a problem directory.
            if name.contains("/sample_problem/") && !name.ends_with("backtrace")
                || name.ends_with(".go")
                || name.ends_with(".golden.json")
                || name.ends_with(".gz")
            {
                continue;
            }
            let input = std::fs::read(&path).unwrap();
            let report = parse(&input, &Limits::default());
            let count = counts.entry(directory.to_owned()).or_default();
            count.0 += 1;
            match report {
                Ok(report) if report.source.is_runtimes() => {
                    count.1 += 1;
                    count.2 += usize::from(all_frames(&report).next().is_some());
                }
                other => {
                    let other = other.map(|report| report.source.as_str()).ok();
                    missed.push(format!("{name}: {}", other.unwrap_or("no report")));
                }
            }
        }
    }
    let read: usize = counts.values().map(|count| count.1).sum();
    assert!(read > 900 || backtrail_testkit::corpus().is_none(), "{counts:?}\n{}", missed.join("\n"));
}

#[test]
fn every_leaf_of_a_json_report_is_in_the_model() {
    let mut paths = files("kinds/node-report", ".json");
    paths.extend(files("kinds/abrt", "core_backtrace"));
    paths.extend(files("kinds/grouping-casr/dedup-in", ".casrep"));
    paths.extend(files("kinds/grouping-casr/test_clustering_gdb", ".casrep").into_iter().take(40));
    for path in paths {
        let input = std::fs::read(&path).unwrap();
        let report = parse(&input, &Limits::default()).unwrap();
        let model = Words::of(&report);
        let document = serde_json::from_slice(&input).unwrap();
        let mut found = Vec::new();
        leaves("", &document, &mut found);
        for (leaf, value) in found {
            let is_there = |word: &String| {
                let digits = word.trim_start_matches('0');
                let number = word.parse::<u64>().map(|number| format!("{number:#x}")).unwrap_or_default();
                model.0.contains(word)
                    || model.0.contains(&number)
                    || digits.is_empty()
                    || model.0.contains(digits)
            };
            let form = ["in", "at", "from", "null", "true"];
            let lost: Vec<String> =
                words(&value).filter(|word| !is_there(word) && !form.contains(&word.as_str())).collect();
            let is_column = lost.iter().all(|word| word.parse::<u32>().is_ok()) && leaf.ends_with(".stack");
            assert!(lost.is_empty() || is_column, "{} {leaf}: {lost:?} of `{value}`", path.display());
        }
    }
}

#[test]
fn sanitizers_reports_have_kind_stack_and_place() {
    let mut without = Vec::new();
    for (path, _, report) in texts() {
        if report.source == Source::Sanitizer
            && report.process.threads.is_empty()
            && report.process.backtraces.is_empty()
        {
            without.push(path.display().to_string());
        }
    }
    assert!(without.len() < 12, "{without:?}");
}

#[test]
fn a_log_of_several_is_divided() {
    let undefined = "a.c:1:2: runtime error: x\nb.c:3:4: runtime error: y\n";
    let race = "==================\nWARNING: ThreadSanitizer: data race (pid=1)\n  Write of size 4 at 0x1 by main thread:\n    #0 main /a.c:1 (a+0x1)\n==================\n";
    let python = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: 1\n";
    let panic = "thread 'main' panicked at a.rs:1:2:\nx\n";
    for text in [undefined.to_owned(), race.repeat(2), python.repeat(2), panic.repeat(2)] {
        let parts = documents(text.as_bytes());
        assert_eq!(parts.len(), 2, "{text}");
        assert_eq!(parts.iter().map(|part| part.bytes.len()).sum::<usize>(), text.len());
        for part in parts {
            assert!(parse(&part.bytes, &Limits::default()).unwrap().source.is_runtimes());
        }
    }
}
