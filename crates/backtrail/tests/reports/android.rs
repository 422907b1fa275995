//! Names of Android's frames: by build id, by name, from addresses and from offsets in the file; Java's by a mapping file.

use backtrail::{Analysis, Frame, Limits, NoProgress, SymbolStatus, Symbols};
use backtrail_testkit::{TempDir, fixtures};

const ID: &str = "a8ddfeab095c481d72d5f54e0417876ac6dc1500";

/// A program whose code has other addresses than file offsets: `total_of` is at 0x112f0, 0x2f0 bytes into the file.
fn symbols() -> Symbols {
    Symbols::scan(&[fixtures().join("stacks/orders")], &NoProgress)
}

fn analysed(release: &str, row: &str) -> Analysis {
    let text = format!(
        "*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***\n\
         Build fingerprint: 'm/d/d:{release}/ID/1:user/release-keys'\nABI: 'x86_64'\n\
         pid: 1, tid: 1, name: orders  >>> orders <<<\n\
         signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0\n\nbacktrace:\n    {row}\n"
    );
    Analysis::new(text.as_bytes(), &symbols(), &Limits::default()).unwrap()
}

fn first(analysis: &Analysis) -> &Frame {
    &analysis.report.process.threads[0].frames[0]
}

#[test]
fn addresses_count_from_what_the_version_says() {
    for (release, pc) in [("13", "112f0"), ("9", "2f0")] {
        let analysis = analysed(
            release,
            &format!("#00 pc {pc}  /data/app/x/base.apk!orders (offset 0x1000) (BuildId: {ID})"),
        );
        let frame = first(&analysis);
        let function = frame.functions.last().unwrap();
        assert_eq!(function.name, "total_of", "{release}");
        assert!(function.file.is_some() && function.line.is_some(), "{release}");
        let image = &analysis.report.process.images[0];
        assert_eq!((image.name.as_str(), &image.symbols.status), ("orders", &SymbolStatus::Found));
        assert!(!image.symbols.is_unproven);
    }
}

#[test]
fn rows_are_filled_in() {
    let row = format!("#00 pc 112f8  /data/app/x/orders (BuildId: {ID})");
    let analysis = analysed("13", &row);
    let text = format!("*** *** *** *** *** *** *** *** ***\nbacktrace:\n    {row}\nbehind\n");
    let again = Analysis::new(text.as_bytes(), &symbols(), &Limits::default()).unwrap();
    let filled = String::from_utf8(again.filled_in(text.as_bytes())).unwrap();
    let rows: Vec<_> = filled.lines().skip(2).collect();
    assert_eq!(rows[0], format!("    #00 pc 112f8  /data/app/x/orders (total_of+8) (BuildId: {ID})"));
    assert!(rows[1].starts_with("        total_of (orders.c"), "{}", rows[1]);
    assert_eq!(rows[2], "behind");
    assert!(first(&analysis).function_offset == Some(8));
}

#[test]
fn the_function_that_the_report_names_decides_between_both_readings() {
    for release in ["13", "9"] {
        for pc in ["112f8", "2f8"] {
            let analysis =
                analysed(release, &format!("#00 pc {pc}  /data/app/x/orders (total_of+8) (BuildId: {ID})"));
            assert_eq!(first(&analysis).names().last(), Some("total_of"), "{release} {pc}");
        }
    }
}

#[test]
fn without_a_build_id_the_name_counts_and_is_said_to_be_unproven() {
    let analysis = analysed("13", "#00 pc 112f8  /data/app/x/orders");
    assert_eq!(first(&analysis).names().last(), Some("total_of"));
    assert!(analysis.report.process.images[0].symbols.is_unproven);
    let other = analysed("13", "#00 pc 112f8  /data/app/x/orders (something_else+8)");
    assert_eq!(first(&other).names().collect::<Vec<_>>(), ["something_else"], "another build says nothing");
    assert!(other.report.process.images[0].symbols.tried[0].contains("another build?"));
    let mismatch = analysed("13", "#00 pc 112f8  /data/app/x/orders (BuildId: 0011223344)");
    assert!(first(&mismatch).is_unnamed());
    assert!(matches!(mismatch.report.process.images[0].symbols.status, SymbolStatus::IdMismatch(_)));
}

const MAPPING: &str = "# compiler: R8\n# pg_map_id: 1a2b3c4\ncom.example.Cart -> a.b:\n    1:1:int total(int):10:10 -> c\n    \
                       1:1:void pay():20 -> c\n    2:2:void add(int):31:32 -> c\ncom.example.NoCart -> a.x:\n";

fn java(trace: &str, mappings: &[(&str, &str)]) -> Analysis {
    let directory = TempDir::new("mapping");
    for (name, text) in mappings {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let symbols = Symbols::scan(&[directory.path().to_owned()], &NoProgress);
    Analysis::new(trace.as_bytes(), &symbols, &Limits::default()).unwrap()
}

fn frames(analysis: &Analysis) -> &[Frame] {
    &analysis.report.process.backtraces[0].frames
}

#[test]
fn java_frames_by_a_mapping_file() {
    let trace = "a.x: empty\n\tat a.b.c(SourceFile:1)\n\tat a.b.c(SourceFile:2)\n\tat java.lang.Thread.run(Thread.java:1)\n";
    let analysis = java(trace, &[("mapping.txt", MAPPING), ("readme.txt", "x")]);
    let names =
        |frame: &Frame| frame.functions.iter().map(|function| function.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&frames(&analysis)[0]), ["com.example.Cart.total", "com.example.Cart.pay"]);
    assert_eq!(frames(&analysis)[0].functions[0].line, Some(10));
    assert!(frames(&analysis)[0].functions[0].inlined && !frames(&analysis)[0].functions[1].inlined);
    let second = &frames(&analysis)[1];
    assert_eq!((second.functions[0].line, second.alternatives.len()), (Some(31), 1));
    assert_eq!(second.alternatives[0][0].line, Some(32));
    assert_eq!(analysis.report.exception.as_ref().unwrap().kind.as_deref(), Some("com.example.NoCart"));
    assert!(
        analysis.report.notes.iter().any(|note| note.contains("states no map id")),
        "{:?}",
        analysis.report.notes
    );
    let filled = String::from_utf8(analysis.filled_in(trace.as_bytes())).unwrap();
    let expected = "com.example.NoCart: empty\n\tat com.example.Cart.total(Cart.java:10)\n\tat com.example.Cart.pay(Cart.java:20)\n\
                    \tat com.example.Cart.add(Cart.java:31)\n\t<OR> at com.example.Cart.add(Cart.java:32)\n\
                    \tat java.lang.Thread.run(Thread.java:1)\n";
    assert_eq!(filled, expected);
}

#[test]
fn a_wrong_mapping_is_refused() {
    let is_bare = |analysis: &Analysis| frames(analysis).iter().all(|frame| frame.functions.is_empty());
    let by_id = |id: &str| format!("a.x: empty\n\tat a.b.c(r8-map-id-{id}:1)\n");
    assert!(!is_bare(&java(&by_id("1a2b3c4"), &[("mapping.txt", MAPPING)])));
    let other = java(&by_id("9999999"), &[("mapping.txt", MAPPING)]);
    assert!(is_bare(&other));
    assert!(other.report.notes.iter().any(|note| note.contains("refused")), "{:?}", other.report.notes);
    for (trace, why) in [
        ("z.z: empty\n\tat z.z.c(SourceFile:1)\n", "has no class of the report"),
        ("z.z: empty\n\tat a.b.q(SourceFile:1)\n\tat a.b.c(SourceFile:77)\n", "of another build"),
    ] {
        let refused = java(trace, &[("mapping.txt", MAPPING)]);
        assert!(is_bare(&refused), "{trace}");
        assert!(refused.report.notes.iter().any(|note| note.contains(why)), "{:?}", refused.report.notes);
    }
    let several = java(
        "a.x: empty\n\tat a.b.c(SourceFile:1)\n",
        &[("mapping.txt", MAPPING), ("mapping2.txt", MAPPING)],
    );
    assert!(is_bare(&several));
    assert!(several.report.notes.iter().any(|note| note.contains("several mapping files")));
}

/// The kinds of the corpus, and what is said of them.
#[test]
fn titles_of_real_reports() {
    for (path, title, verdict) in [
        (
            "kinds/android-tombstone/fdsan-1.txt",
            "File descriptor closed by code that does not own it (fdsan)",
            "app",
        ),
        ("kinds/android-tombstone/android-gwp-asan.txt", "Use after free (GWP-ASan)", "app"),
        ("kinds/android-tombstone/aosp-x86.txt", "The process ended by SIGABRT", "app"),
        ("android/tombstone_native_arm64-v8a.txt", "Null pointer access at 0x0", "sdk"),
        (
            "android/tombstone_java.txt",
            "java.lang.IllegalStateException: Could not execute method for android:onClick",
            "app",
        ),
        (
            "kinds/android-anr/datadog-anr_crash_trace.txt",
            "ANR: Input dispatching timed out; the main thread was busy",
            "app",
        ),
        ("kinds/java-threaddump/jtd-thread-dump-deadlock.txt", "Deadlock of 2 threads", "unknown"),
        (
            "kinds/java/cf-java_IllegalStateException.txt",
            "java.lang.IllegalStateException: mustNeverBeCalled",
            "app",
        ),
    ] {
        let Some(path) = backtrail_testkit::corpus_file(path) else { return };
        let input = std::fs::read(&path).unwrap();
        let analysis = Analysis::new(&input, &Symbols::none(), &Limits::default()).unwrap();
        let explanation = &analysis.explanation;
        assert!(explanation.title.starts_with(title), "{}: {}", path.display(), explanation.title);
        assert_eq!(analysis.attribution.verdict.as_str(), verdict, "{}", path.display());
    }
}
