//! Every output form, on the sample that the repository ships. `BLESS=1` takes new output over.

use crate::run::{backtrail, with_input};
use backtrail_testkit::{TempDir, assert_snapshot, workspace_root};

const SYMBOLS: &str = "fixtures/sample/symbols";

fn snapshot(name: &str, actual: &str) {
    assert_snapshot(workspace_root().join("crates/cli/tests/program/snapshots").join(name), actual);
}

/// A page. Its style stands in `page.css` already.
fn page_snapshot(name: &str, page: &str) {
    let style = std::fs::read_to_string(workspace_root().join("crates/render/src/page.css")).unwrap();
    assert!(page.contains(&style), "{name}: the page has another style than page.css");
    snapshot(name, &page.replacen(&style, "page.css", 1));
}

#[test]
fn help_of_every_command() {
    let mut help = String::new();
    for command in [
        "",
        "symbolicate",
        "explain",
        "group",
        "lookup",
        "stacks",
        "watch",
        "convert",
        "images",
        "cfi",
        "sdk",
        "sdk learn",
        "sdk map",
        "sdk mine",
        "sdk stamp",
        "sdk unstamp",
        "serve",
        "demangle",
        "addr2line",
        "atos",
        "ndk-stack",
    ] {
        let arguments: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let run = backtrail(&arguments);
        assert_eq!(run.code, 0);
        help.push_str(&format!("$ backtrail {}\n{}\n", arguments.join(" "), run.stdout));
    }
    snapshot("help.txt", &help);
}

#[test]
fn symbolicate_in_every_form() {
    for report in ["null-member", "sdk-exception", "watchdog", "worker-assertion", "null-member-simulator"] {
        for (form, ending) in [("text", "txt"), ("crash", "crash")] {
            for source in ["ips", "crash"] {
                let path = format!("fixtures/sample/reports/{report}.{source}");
                let run = backtrail(&["symbolicate", &path, "-s", SYMBOLS, "--format", form]);
                snapshot(&format!("{report}.{source}.{ending}"), &run.whole());
            }
        }
    }
}

#[test]
fn symbolicate_for_programs() {
    for report in ["null-member.ips", "sdk-exception.crash"] {
        let path = format!("fixtures/sample/reports/{report}");
        let run = backtrail(&["symbolicate", &path, "-s", SYMBOLS, "--format", "json"]);
        snapshot(&format!("{report}.json"), &run.whole());
    }
}

#[test]
fn reports_of_other_kinds() {
    for report in [
        "jetsam.ips",
        "jetsam-old.txt",
        "panic.ips",
        "panic.txt",
        "stackshot.ips",
        "spindump.txt",
        "sample.txt",
        "metrickit.json",
        "swift.txt",
        "swift.json",
    ] {
        let path = format!("fixtures/kinds/{report}");
        let text = backtrail(&["symbolicate", &path]);
        snapshot(&format!("kind-{report}.txt"), &text.whole());
        let crash = backtrail(&["symbolicate", &path, "--format", "crash"]);
        assert_eq!((crash.code, crash.stdout.as_str()), (2, ""), "{report}");
        assert!(crash.stderr.contains("has no rows to fill in"), "{report}: {}", crash.stderr);
    }
    let page = backtrail(&["symbolicate", "fixtures/kinds/spindump.txt", "--format", "html"]);
    page_snapshot("kind-spindump.html", &page.stdout);
}

#[test]
fn last_words() {
    let mut all = String::new();
    for text in [
        "segfault.txt",
        "oom-kill.txt",
        "node-heap.txt",
        "loader.txt",
        "exit-code.txt",
        "java.txt",
        "dart.txt",
        "abrt.json",
    ] {
        let path = format!("fixtures/last-words/{text}");
        let binary = "fixtures/symbolize/bin/clang-dwarf5.elf";
        let run = backtrail(&["symbolicate", &path, "-s", binary]);
        all.push_str(&format!("$ backtrail symbolicate {path} -s {binary}\n{}\n", run.whole()));
    }
    snapshot("last-words.txt", &all);
}

#[test]
fn symbolicate_as_a_page() {
    let run = backtrail(&[
        "symbolicate",
        "fixtures/sample/reports/null-member.ips",
        "-s",
        SYMBOLS,
        "--format",
        "html",
    ]);
    page_snapshot("null-member.html", &run.stdout);
    for outside in ["http://", "https://", "<script", "<link", "<img", "url("] {
        assert!(!run.stdout.contains(outside), "{outside}: the page must stand alone");
    }
}

#[test]
fn symbolicate_without_symbols_says_what_is_missing() {
    let run = backtrail(&["symbolicate", "fixtures/sample/reports/null-member.crash"]);
    assert_eq!(run.code, 1);
    snapshot("missing.txt", &run.whole());
}

#[test]
fn symbolicate_with_another_builds_symbols_says_so() {
    let directory = TempDir::new("other-build");
    let original =
        workspace_root().join("fixtures/sample/symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather");
    let mut bytes = std::fs::read(original).unwrap();
    for id in uuids(&bytes) {
        bytes[id] ^= 0xff;
    }
    directory.write("Weather.app.dSYM/Contents/Resources/DWARF/Weather", &bytes);
    let symbols = directory.path().to_str().unwrap();
    let run = backtrail(&["symbolicate", "fixtures/sample/reports/null-member.crash", "-s", symbols]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("has the name but UUID"), "{}", run.stdout);
    assert!(run.stdout.contains("id-mismatch"), "{}", run.stdout);
}

/// Where the UUIDs of the slices begin: each after the command number 0x1b and its size 24.
fn uuids(bytes: &[u8]) -> Vec<usize> {
    let command = [0x1b, 0, 0, 0, 24, 0, 0, 0];
    let found = bytes.windows(8).enumerate().filter(|(_, window)| *window == command);
    found.map(|(start, _)| start + 8).collect()
}

#[test]
fn explain_needs_no_symbols() {
    let run = backtrail(&["explain", "fixtures/sample/reports/watchdog.ips"]);
    snapshot("explain.txt", &run.whole());
    let run = backtrail(&["explain", "--format", "json", "fixtures/sample/reports/watchdog.ips"]);
    snapshot("explain.json", &run.whole());
}

#[test]
fn lookup_in_both_forms() {
    let binary = "fixtures/sample/symbols/Weather.app.dSYM";
    let run =
        backtrail(&["lookup", "-e", binary, "--arch", "arm64", "0x1000041cc", "10000416c", "0x0", "zebra"]);
    snapshot("lookup.txt", &run.whole());
    let run = with_input(
        &["lookup", "-e", binary, "--arch", "arm64", "--format", "json"],
        b"0x1000041cc\n\n0xffffffffffffffff\n",
    );
    snapshot("lookup.json", &run.whole());
    let run = backtrail(&[
        "lookup",
        "-e",
        binary,
        "--arch",
        "arm64",
        "--load-address",
        "0x104430000",
        "0x1044341cc",
    ]);
    let slid = backtrail(&["lookup", "-e", binary, "--arch", "arm64", "--slide", "0x4430000", "0x1044341cc"]);
    assert_eq!(run.stdout, slid.stdout);
    let run_without = backtrail(&["lookup", "-e", binary, "0x1000041cc"]);
    assert_eq!(run_without.code, 2, "a fat file has no default slice");
    assert!(run_without.stderr.contains("x86_64, arm64"), "{}", run_without.stderr);
    assert!(run.stdout.contains("units.h:13"), "{}", run.stdout);
}

#[test]
fn images_in_both_forms() {
    let run = backtrail(&["images", "fixtures/sample/symbols/Weather.app.dSYM"]);
    snapshot("images.txt", &run.whole());
    let run = backtrail(&["images", "--format", "json", "fixtures/sample/symbols/Weather.app.dSYM"]);
    snapshot("images.json", &run.whole());
}

/// One name of each scheme.
const NAMES: [&str; 9] = [
    "_ZNSt6vectorIN3app5PointESaIS1_EE9push_backERKS1_",
    "__Z3maxIiET_S0_S0_.cold",
    "$s4shop4CartC3add_5countySaySiSgG_SitF",
    "_$s4shop1fyyxlFSi_Tg5",
    "_RINvMNtC4core3vecINtB3_3VecNtB5_3StrE3mapNCNvC1a1b0hEC1a",
    "_ZN3std2io5stdio6_print17h0a1b2c3d4e5f6071E",
    "_D3std5stdio7writelnFNfAyaZv",
    "?run@Base@app@@UEBAHH@Z",
    "plain",
];

#[test]
fn cfi_of_every_kind_of_table() {
    let app = "fixtures/sample/app/Weather.app/Weather";
    let run = backtrail(&["cfi", "--arch", "x86_64", app]);
    snapshot("cfi-compact.txt", &run.whole());
    let run = backtrail(&["cfi", "fixtures/symbolize/bin/clang-thumb.elf"]);
    snapshot("cfi-exidx.txt", &run.whole());
    let run = backtrail(&["cfi", "--format", "json", "fixtures/symbolize/bin/clang-thumb.elf"]);
    snapshot("cfi-exidx.json", &run.whole());
    let run = backtrail(&["cfi", "--function", "outer", "fixtures/symbolize/bin/gcc-i386.elf"]);
    snapshot("cfi-function.txt", &run.whole());
    let run = backtrail(&["cfi", "--address", "0x1", "fixtures/symbolize/bin/gcc-i386.elf"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("no table covers 0x1"), "{}", run.stderr);
    let run = backtrail(&["cfi", "--arch", "armv6", app]);
    assert_eq!(run.code, 2);
}

#[test]
fn demangle_with_every_option() {
    let mut text = String::new();
    for options in [
        "",
        "-p",
        "--no-return-types",
        "--simplified",
        "--simplified -p",
        "--no-sugar",
        "--fold-depth 0",
        "--fold-length 24",
        "--max-length 32",
        "-_",
        "-n",
        "--quote",
        "-s none",
        "-s gnu-v3",
        "-s swift",
        "-s rust",
        "-s dlang",
        "-s msvc",
        "-i -r",
        "-i -R --compact",
    ] {
        let run = backtrail(
            &["demangle"].into_iter().chain(options.split_whitespace()).chain(NAMES).collect::<Vec<_>>(),
        );
        assert_eq!(run.code, 0, "{}", run.stderr);
        text.push_str(&format!("$ backtrail demangle {options}\n{}\n", run.stdout));
        let lines = with_input(
            &["demangle"].into_iter().chain(options.split_whitespace()).collect::<Vec<_>>(),
            NAMES.join("\n").as_bytes(),
        );
        assert_eq!(lines.stdout, run.stdout.trim_end_matches('\n'), "{options}: the filter says the same");
    }
    snapshot("demangle.txt", &text);
}

#[test]
fn demangle_types_and_text() {
    assert_eq!(
        backtrail(&["demangle", "-t", "PKc", "St9bad_alloc", "_Z1fv"]).stdout,
        "char const*\nstd::bad_alloc\nf()\n"
    );
    let run = with_input(&["demangle"], b"0x10 _ZN1a1bEi + 4\nbytes \xff\xfe stay\n");
    assert_eq!(run.stdout, "0x10 a::b(int) + 4\nbytes \u{fffd}\u{fffd} stay\n");
    let run = backtrail(&["demangle", "-s", "gnat", "x"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("gnat") && run.stderr.contains("itanium"), "{}", run.stderr);
}

#[test]
fn man_pages_and_completions_come_from_the_same_definitions() {
    let directory = TempDir::new("generated");
    let path = directory.path().to_str().unwrap();
    for what in ["man", "completions"] {
        assert_eq!(backtrail(&["generate", what, path]).code, 0);
    }
    let man = std::fs::read_to_string(directory.join("backtrail-symbolicate.1")).unwrap();
    assert!(man.contains("dSYM"), "{man}");
    assert!(directory.join("backtrail.bash").exists() && directory.join("_backtrail").exists());
}

#[test]
fn several_reports_go_into_a_directory() {
    let directory = TempDir::new("output");
    let path = format!("{}/out/", directory.path().display());
    let run = backtrail(&[
        "symbolicate",
        "fixtures/sample/reports",
        "-s",
        SYMBOLS,
        "--format",
        "html",
        "-o",
        &path,
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
    let pages = std::fs::read_dir(directory.join("out")).unwrap().count();
    assert_eq!(pages, 11, "one page for each report, also for those of the same name, and their index");
    let index = std::fs::read_to_string(directory.join("out/index.html")).unwrap();
    page_snapshot("index.html", &index);
    for link in index.split("href=\"./").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(directory.join("out").join(link).exists(), "{link}");
    }
}
