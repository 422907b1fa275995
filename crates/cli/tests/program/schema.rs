//! `docs/report.schema.json` against what the program prints, and the other way round. Of hangs: `crates/backtrail/tests`; of
//! processes that run: `tests/live`.

use crate::run::backtrail;
use backtrail_testkit::Schema;
use serde::Deserialize as _;
use serde_json::Value;

#[test]
fn every_report_keeps_to_the_schema_and_the_schema_says_no_more() {
    let mut arguments = vec![
        "symbolicate",
        "fixtures/sample/reports",
        "fixtures/kinds",
        "fixtures/last-words",
        "--format",
        "json",
        "-s",
        "fixtures/sample/symbols",
    ];
    let corpus = backtrail_testkit::corpus();
    let directories: Vec<_> = corpus
        .iter()
        .flat_map(|corpus| {
            // What `sample` prints nests deeper than `serde_json` reads (128 levels).
            let names = [
                "crashprobe",
                "apple/text",
                "apple/ips",
                "apple/metrickit",
                "kinds/apple-hang",
                "kinds/apple-ips-other",
                "kinds/apple-jetsam",
                "kinds/apple-panic",
                "kinds/apple-resource",
                "kinds/apple-watchdog",
                "kinds/swift-backtrace",
            ];
            names.map(|name| corpus.join(name).display().to_string())
        })
        .collect();
    for (position, directory) in directories.iter().enumerate() {
        let has_symbols = position == 0;
        arguments.push(directory);
        arguments.extend(has_symbols.then_some("-s"));
        arguments.extend(has_symbols.then_some(directory.as_str()));
    }
    let run = backtrail(&arguments);
    assert!(run.code < 2, "{}", run.stderr);
    let mut schema = Schema::new();
    for line in run.stdout.lines() {
        // A tree is as deep as the stacks in it, which readers with a limit of their own have to allow.
        let mut reader = serde_json::Deserializer::from_str(line);
        reader.disable_recursion_limit();
        let value = Value::deserialize(&mut reader).unwrap();
        schema.check("report", &value).unwrap();
    }
    let elsewhere = [
        "deadlock",
        "lockHolder",
        "lockWait",
        "group",
        "report",
        "stacks",
        "hang",
        "hangExcused",
        "hangImage",
        "hangNode",
        "hangThread",
        "movedThread",
        "stackDiff",
        "threadLabel",
        "unmovedThread",
    ];
    let words = ["address", "maybeAddress", "maybeString", "maybeInteger", "maybeNumber", "strings"];
    let is_printed = |name: &str| {
        elsewhere.contains(&name) || words.contains(&name) || schema.has_seen(&format!("{name})"))
    };
    let unused: Vec<_> = schema.names().into_iter().filter(|name| !is_printed(name)).collect();
    assert_eq!(unused, Vec::<String>::new(), "described, never printed");
}

#[test]
fn captured_processes_keep_to_the_schema() {
    let mut schema = Schema::new();
    for (input, named) in [
        ("--core=fixtures/stacks/orders.core", &["-e", "fixtures/stacks/orders"][..]),
        ("--core=fixtures/stacks/orders.core", &[]),
        ("--core=fixtures/stacks/orders.core", &["-e", "fixtures/symbolize/bin/dwz-one.elf"]),
        ("--offline=fixtures/stacks/saved", &[]),
    ] {
        let run = backtrail(&[&["stacks", "--format", "json", input], named].concat());
        assert!(run.code < 2, "{input}: {}", run.stderr);
        let value: Value = serde_json::from_str(&run.stdout).unwrap();
        schema.check("stacks", &value).unwrap();
    }
    for seen in ["exception).address", "frame).trust", "function).inlined", "symbol).offset", "image).tried"]
    {
        assert!(schema.has_seen(seen), "{seen} was never printed");
    }
}
