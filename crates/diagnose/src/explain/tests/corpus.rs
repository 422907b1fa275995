//! Real reports: CrashProbe's crashes, whose kind is the file's name, and Apple's own.

use super::super::{Explanation, explain};
use crate::{Attribution, attribute};
use backtrail_core::Function;
use backtrail_model::OwnerKind;
use backtrail_model::Report;
use backtrail_report::{Limits, parse};
use backtrail_testkit::corpus_file;
use serde_json::Value;
use std::path::Path;

/// What the reports of one kind of crash have to say: rule and beginning of the title as the text reports with their
/// registers have it, on arm64, armv7 and x86_64.
struct Kind {
    name: &'static str,
    titles: [(&'static str, &'static str); 3],
}

const fn kind(name: &'static str, titles: [(&'static str, &'static str); 3]) -> Kind {
    Kind { name, titles }
}

const fn all(name: &'static str, rule: &'static str, title: &'static str) -> Kind {
    Kind { name, titles: [(rule, title); 3] }
}

const ARCHS: [&str; 3] = ["arm64", "armv7", "x86_64"];
const UNTOLD: (&str, &str) =
    ("address-untold", "Bad memory access at an address that the report does not give");
const SMASHED: (&str, &str) = ("code-fetch", "Return to an overwritten address 0xa5a5a5a");
const SMASHED_X86: (&str, &str) = ("address-untold", "Bad memory access after the stack was overwritten");
const MISTAKEN: &str = "Message to something that is no object: receiver 0x10";
const TRAP: (&str, &str) = ("trap", "Deliberate trap");
const UD2: (&str, &str) = ("trap", "Illegal instruction: most likely a deliberate trap");

/// Where the report loses what happened, the title says no more than the report does: the armv7 reports have no
/// addresses, the others no codes, and x86 reports forbidden instructions as accesses to 0.
static KINDS: [Kind; 22] = [
    all("access-a-non-object-as-an-object", "objc-message", MISTAKEN),
    all("call-abort", "abort", "The process ended itself with abort()"),
    kind("call-builtin-trap", [TRAP, TRAP, UD2]),
    kind(
        "corrupt-malloc-s-internal-tracking-information",
        [
            ("unmapped", "Bad pointer at 0xababac7b"),
            ("malloc-frames", "Heap error found by malloc"),
            ("telling-frame", "Heap error found by malloc"),
        ],
    ),
    all(
        "corrupt-the-objective-c-runtime-s-structures",
        "objc-runtime",
        "Bad access inside the Objective-C runtime",
    ),
    all("crash-inside-objc-msgsend", "objc-message", "Message to a released or overwritten object"),
    kind(
        "crash-with-pthread-list-lock-held",
        [
            ("null-pointer", "Null pointer access at 0x8"),
            UNTOLD,
            ("null-pointer", "Null pointer access at 0x8"),
        ],
    ),
    kind(
        "dereference-a-bad-pointer",
        [("unmapped", "Bad pointer at 0x2748000"), UNTOLD, ("unmapped", "Bad pointer at 0x16a3c000")],
    ),
    all("dereference-a-null-pointer", "null-pointer", "Null pointer access at 0x0"),
    all("dwarf-unwinding", "null-pointer", "Null pointer access at 0x0"),
    kind(
        "execute-a-privileged-instruction",
        [
            ("bad-instruction", "Privileged or system instruction: 0xd50c879f"),
            ("code-fetch", "Jump to an address that is no code: 0xffda6cfa"),
            UNTOLD,
        ],
    ),
    kind(
        "execute-an-undefined-instruction",
        [
            ("bad-instruction", "Undefined instruction: 0xf7f8a000"),
            ("bad-instruction", "Undefined instruction"),
            UD2,
        ],
    ),
    all("jump-into-an-nx-page", "code-fetch", "Call through a null function pointer: jump to 0x0"),
    all("message-a-released-object", "objc-message", "Message to a released or overwritten object"),
    all("overwrite-link-register-then-crash", "null-pointer", "Null pointer access at 0x0"),
    kind("smash-the-bottom-of-the-stack", [SMASHED, SMASHED, SMASHED_X86]),
    kind("smash-the-top-of-the-stack", [SMASHED, SMASHED, SMASHED_X86]),
    all("stack-overflow", "stack-overflow", "Stack overflow"),
    all("swift", "telling-frame", "Swift fatal error"),
    all("throw-c-exception", "abort", "Abort (SIGABRT) without a reason in the report"),
    all(
        "throw-objective-c-exception",
        "objc-exception",
        "Uncaught NSGenericException: Application threw exception",
    ),
    kind(
        "write-to-a-read-only-page",
        [
            ("protection", "Write to read-only memory: 0x128464 in CrashLibiOS"),
            ("address-untold", "Memory access that its protection forbids"),
            ("protection", "Write to read-only memory: 0x7f06d60 in CrashLibiOS"),
        ],
    ),
];

/// The `.ips` forms have no registers; these kinds cannot be told as well without them.
static WITHOUT_REGISTERS: [(&str, &str, &str); 12] = [
    ("access-a-non-object-as-an-object", "", "Message to a released or overwritten object"),
    ("execute-a-privileged-instruction", "armv7", UNTOLD.1),
    (
        "execute-a-privileged-instruction",
        "x86_64",
        "Null pointer access at 0x0, if the reported address is right",
    ),
    ("jump-into-an-nx-page", "", "Null pointer access at 0x0"),
    ("smash-the-bottom-of-the-stack", "arm64", "Bad pointer at 0xa5a5a5a5"),
    ("smash-the-bottom-of-the-stack", "armv7", UNTOLD.1),
    (
        "smash-the-bottom-of-the-stack",
        "x86_64",
        "Null pointer access at 0x0, if the reported address is right",
    ),
    ("smash-the-top-of-the-stack", "arm64", "Bad pointer at 0xa5a5a5a5"),
    ("smash-the-top-of-the-stack", "armv7", UNTOLD.1),
    ("smash-the-top-of-the-stack", "x86_64", "Null pointer access at 0x0, if the reported address is right"),
    ("stack-overflow", "", "Stack overflow, very probably"),
    ("dereference-a-null-pointer", "arm64", "Null pointer access at 0x0, if the reported address is right"),
];

fn read(path: &Path) -> Report {
    let bytes = std::fs::read(path).unwrap();
    parse(&bytes, &Limits::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn crashprobe(arch: &str, name: &str, extension: &str) -> Option<Report> {
    let directory = corpus_file("crashprobe/reports")?;
    let path = directory.join(arch).join(format!("{name}.{extension}"));
    path.exists().then(|| read(&path))
}

#[test]
fn crashprobes_crashes_are_told_apart_as_far_as_the_reports_do() {
    let mut seen = 0;
    for Kind { name, titles } in &KINDS {
        for (arch, (rule, title)) in ARCHS.into_iter().zip(titles) {
            let Some(report) = crashprobe(arch, name, "crash") else { continue };
            let explanation = explain(&report);
            assert_eq!(explanation.rule, *rule, "{arch}/{name}: {explanation:#?}");
            assert!(explanation.title.starts_with(title), "{arch}/{name}: {explanation:#?}");
            seen += 1;
        }
    }
    assert!(seen == 0 || seen == 64, "{seen}");
}

#[test]
fn and_without_registers_no_more_than_those_tell() {
    for Kind { name, titles } in &KINDS {
        for (arch, (_, title)) in ARCHS.into_iter().zip(titles) {
            let Some(report) = crashprobe(arch, name, "ips") else { continue };
            let fits = |row: &&(&str, &str, &str)| row.0 == *name && (row.1 == arch || row.1.is_empty());
            let expected = WITHOUT_REGISTERS.iter().find(fits).map_or(*title, |row| row.2);
            let explanation = explain(&report);
            assert!(explanation.title.starts_with(expected), "{arch}/{name}: {explanation:#?}");
        }
    }
}

/// CrashProbe's library ships inside of its app, whose maker nothing tells; these stacks say otherwise, or nothing.
static OTHER_VERDICTS: [(&str, &str, OwnerKind); 9] = [
    ("arm64", "smash-the-bottom-of-the-stack", OwnerKind::Unknown),
    ("arm64", "smash-the-top-of-the-stack", OwnerKind::Unknown),
    ("armv7", "smash-the-bottom-of-the-stack", OwnerKind::Unknown),
    ("armv7", "smash-the-top-of-the-stack", OwnerKind::Unknown),
    ("armv7", "execute-a-privileged-instruction", OwnerKind::App),
    ("x86_64", "smash-the-top-of-the-stack", OwnerKind::Unknown),
    ("x86_64", "jump-into-an-nx-page", OwnerKind::Unknown),
    ("x86_64", "crash-inside-objc-msgsend", OwnerKind::App),
    ("x86_64", "none", OwnerKind::System),
];

#[test]
fn crashprobes_crashes_are_its_librarys() {
    for Kind { name, .. } in &KINDS {
        for arch in ARCHS {
            let Some(report) = crashprobe(arch, name, "crash") else { continue };
            let Attribution { verdict, name: who, evidence, .. } = attribute(&report, &explain(&report));
            let other = OTHER_VERDICTS.iter().find(|row| (row.0, row.1) == (arch, *name)).map(|row| row.2);
            assert_eq!(verdict, other.unwrap_or(OwnerKind::Sdk), "{arch}/{name}: {evidence:#?}");
            let expected = match verdict {
                OwnerKind::App => Some("CrashProbeiOS"),
                OwnerKind::Sdk => Some("CrashLibiOS"),
                _ => None,
            };
            assert_eq!(who.as_deref(), expected, "{arch}/{name}: {evidence:#?}");
            assert!(!evidence.is_empty());
        }
    }
}

/// Puts the functions of `expected.json` into the frames, as symbolizing does.
fn fill(report: &mut Report, expected: &Value) -> usize {
    let mut filled = 0;
    for row in expected["frames"].as_array().unwrap() {
        let (thread, index) = (row["thread"].as_u64().unwrap(), row["frame"].as_u64().unwrap());
        let thread = report.process.threads.iter_mut().find(|candidate| candidate.number == thread);
        let frame = thread.and_then(|thread| thread.frames.get_mut(usize::try_from(index).unwrap()));
        let Some(frame) = frame else { continue };
        let function = |row: &Value| Function {
            name: row["linkage_name"].as_str().unwrap().to_owned(),
            file: row["file"].as_str().map(str::to_owned),
            line: row["line"].as_u64().and_then(|line| u32::try_from(line).ok()).filter(|line| *line != 0),
            ..Function::default()
        };
        frame.functions = row["functions"].as_array().unwrap().iter().map(function).collect();
        filled += 1;
    }
    filled
}

#[test]
fn symbols_put_function_and_line_into_the_summary() {
    let Some(path) = corpus_file("crashprobe/expected.json") else { return };
    let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut told = 0;
    for (key, expected) in all.as_object().unwrap() {
        let (arch, name) = key.split_once('/').unwrap();
        let Some(mut report) = crashprobe(arch, name, "ips") else { continue };
        let bare = explain(&report);
        if fill(&mut report, expected) == 0 {
            continue;
        }
        let Explanation { summary, title, .. } = explain(&report);
        let innermost = &expected["frames"][0];
        if innermost["thread"] != 0 || innermost["frame"].as_u64() > Some(12) {
            continue;
        }
        let function = &innermost["functions"][0];
        let file = function["file"].as_str().unwrap().rsplit('/').next().unwrap();
        let place = format!("({file}:{})", function["line"]);
        assert!(summary.contains(&place), "{key}: {place} expected in {summary}");
        assert!(!bare.summary.contains(&place));
        assert_eq!(title, bare.title, "{key}");
        told += 1;
    }
    assert!(told > 40, "{told}");
}

#[test]
fn apples_reports_are_explained_and_attributed() {
    let table = [
        (
            "apple/text/XCDYouTubeKit-54.txt",
            "Null pointer access at 0x8",
            OwnerKind::Sdk,
            Some("XCDYouTubeKit"),
        ),
        ("apple/text/bruno.txt", "Null pointer access at 0x88", OwnerKind::App, Some("YetAnotherMac")),
        (
            "apple/text/electron-crash.txt",
            "Killed for a page of code whose signature does not fit",
            OwnerKind::Sdk,
            Some("Electron Framework"),
        ),
        (
            "apple/text/handcrafted.txt",
            "Null pointer access at 0x88",
            OwnerKind::System,
            Some("libsystem_kernel.dylib"),
        ),
        ("apple/text/UmengDemo.crash", "The process received SIGSEGV", OwnerKind::App, Some("DemoApp")),
        ("apple/text/xcode16.txt", "The report does not tell what happened", OwnerKind::Unknown, None),
        (
            "apple/text/xcode_simulated.crash",
            "The report does not tell what happened",
            OwnerKind::Unknown,
            None,
        ),
        (
            "apple/ips/AppleJson.ips",
            "Private data accessed without a usage description",
            OwnerKind::App,
            Some("Demo"),
        ),
        (
            "apple/ips/AppleConverted.log",
            "Private data accessed without a usage description",
            OwnerKind::App,
            Some("Demo"),
        ),
        ("apple/ips/AppleDemo.ips", "Deliberate trap", OwnerKind::App, Some("demo")),
        (
            "apple/ips/DuckDuckGo-ExampleCrash.ips",
            "Swift fatal error: Fatal error triggered from the Debug menu",
            OwnerKind::App,
            Some("DuckDuckGo"),
        ),
    ];
    for (file, title, verdict, name) in table {
        let Some(path) = corpus_file(file) else { return };
        let report = read(&path);
        let explanation = explain(&report);
        assert!(explanation.title.starts_with(title), "{file}: {explanation:#?}");
        let attribution = attribute(&report, &explain(&report));
        assert_eq!(
            (attribution.verdict, attribution.name.as_deref()),
            (verdict, name),
            "{file}: {attribution:#?}"
        );
    }
}
