//! Whose code: each kind of image, each reason to pass a frame over, each kind of end.

use super::Attribution;
use crate::explain::testing::{Build, report};
use crate::{Rules, add_owners, explain};
use backtrail_core::{Avma, Confidence};
use backtrail_model::{Image, Owner, OwnerKind, Report, Source};
use std::sync::Arc;

/// A crash with these frames; `Other` is an image loaded from `path`.
fn crash(path: &str, frames: &str) -> Build {
    report("EXC_BAD_ACCESS", "SIGSEGV").with(|report| report.process.images.push(other(path))).frames(frames)
}

fn other(path: &str) -> Image {
    Image {
        name: "Other".to_owned(),
        path: Some(path.to_owned()),
        load_address: Avma::new(0x1_0200_0000),
        ..Image::default()
    }
}

/// The verdict; owners on frames say the same as images.
fn attribute(report: &Report) -> Attribution {
    let found = super::attribute(report, &explain(report));
    let mut owned = report.clone();
    add_owners(&mut owned, &Rules::default());
    let with_owners = super::attribute(&owned, &explain(&owned));
    assert_eq!(with_owners, found);
    found
}

fn verdict(report: &Report) -> (OwnerKind, Option<String>) {
    let attribution = attribute(report);
    assert!(!attribution.evidence.is_empty());
    (attribution.verdict, attribution.name)
}

#[track_caller]
fn expect(report: Build, expected: OwnerKind, name: Option<&str>, evidence: &str) {
    let found = attribute(&report.done());
    let all = found.evidence.join("\n");
    assert_eq!((found.verdict, found.name.as_deref()), (expected, name), "{all}");
    assert!(all.contains(evidence), "{evidence:?} expected in:\n{all}");
}

const APP: &str = "/private/var/containers/Bundle/Application/8B/Demo.app";

#[test]
fn images_are_told_by_where_they_were_loaded_from() {
    use OwnerKind::{Sdk, System};
    let on_top = "Other -[X y]\nUIKitCore UIApplicationMain\nDemo main";
    for (path, expected, evidence) in [
        (format!("{APP}/Frameworks/Other.framework/Other"), Sdk, "the path alone does not tell"),
        (format!("{APP}/PlugIns/Other.bundle/Other"), Sdk, "ships inside the app"),
        // Not the process's app.
        (
            "/private/var/containers/Bundle/Application/9C/Else.app/Frameworks/Other".to_owned(),
            Sdk,
            "neither the app's bundle",
        ),
        ("/opt/homebrew/lib/Other.dylib".to_owned(), Sdk, "neither the app's bundle nor the system's place"),
        ("/usr/local/lib/Other.dylib".to_owned(), Sdk, "a library installed on this machine"),
        ("/Library/MobileSubstrate/DynamicLibraries/Other.dylib".to_owned(), Sdk, "jailbroken"),
        ("/usr/lib/Other.dylib".to_owned(), System, "no frame of Thread 0 lies in the app"),
    ] {
        let frames = if expected == System {
            "Other -[X y]\nUIKitCore UIApplicationMain\nUIKitCore start"
        } else {
            on_top
        };
        expect(crash(&path, frames), expected, Some("Other"), evidence);
    }
}

#[test]
fn apples_files_inside_the_app_are_the_systems() {
    for file in ["libswiftCore.dylib", "libclang_rt.asan_ios_dynamic.dylib", "XCTest.framework/XCTest"] {
        let frames = "Other swift_release\nDemo -[Cart total]\nDemo main";
        expect(
            crash(&format!("{APP}/Frameworks/{file}"), frames),
            OwnerKind::App,
            Some("Demo"),
            "the process's own executable",
        );
    }
    // The same name outside of such a place is nobody's but its maker's.
    expect(
        crash(&format!("{APP}/Frameworks/XCTestify"), "Other f\nDemo main"),
        OwnerKind::Sdk,
        Some("Other"),
        "",
    );
}

#[test]
fn frameworks_of_the_apps_own_makers_are_told_by_their_identifier() {
    let path = format!("{APP}/Frameworks/Other.framework/Other");
    let with = |id: &str| {
        crash(&path, "Other f\nDemo main")
            .with(|report| report.process.images.last_mut().unwrap().bundle_id = Some(id.to_owned()))
    };
    expect(with("com.acme.core"), OwnerKind::Sdk, Some("Other"), "com.acme.core begins as the app's");
    expect(with("com.other.core"), OwnerKind::Sdk, Some("Other"), "is not of the app's family");
    expect(with("com"), OwnerKind::Sdk, Some("Other"), "");
    let github =
        |app: &str, id: &str| with(id).with(|report| report.process.identifier = Some(app.to_owned()));
    expect(github("com.github.me.demo", "com.github.other.kit"), OwnerKind::Sdk, Some("Other"), "");
    // Debug builds of Xcode 16 keep the app's code in a library.
    expect(
        crash(&format!("{APP}/Demo.debug.dylib"), "Other f\nDemo main"),
        OwnerKind::App,
        Some("Other"),
        "debug builds",
    );
}

#[test]
fn an_extensions_own_binary_is_the_apps_and_a_systems_process_the_systems() {
    let extension = format!("{APP}/PlugIns/Share.appex/Share");
    let build = crash(&extension, "Other f\nUIKitCore g\nUIKitCore start")
        .with(|report| report.process.path = Some(extension.clone()));
    expect(build, OwnerKind::App, Some("Other"), "own executable");
    let system = |path: &str, os: &str| {
        let os = os.to_owned();
        let path = path.to_owned();
        crash(&path, "Other f\nUIKitCore g\nUIKitCore start").with(|report| {
            report.process.path = Some(path.clone());
            report.os = Some(os);
        })
    };
    expect(system("/usr/libexec/thing", "iPhone OS 17.1"), OwnerKind::System, Some("Other"), "");
    // A resource report states the path of the process alone.
    let alone = system("/usr/libexec/thing", "iPhone OS 17.1").with(|report| {
        report.process.name = Some("Other".to_owned());
        report.process.images.iter_mut().for_each(|image| image.path = None);
    });
    expect(alone, OwnerKind::System, Some("Other"), "which runs from /usr/libexec/thing");
    expect(
        system("/Applications/MobileSafari.app/Other", "iPhone OS 17.1"),
        OwnerKind::System,
        Some("Other"),
        "iOS keeps its own apps",
    );
    expect(
        system("/Applications/Other.app/Contents/MacOS/Other", "macOS 14.1"),
        OwnerKind::App,
        Some("Other"),
        "own executable",
    );
}

#[test]
fn frames_that_end_the_process_for_others_are_passed_over() {
    for (frames, expected, name) in [
        ("Demo abort\nKit -[KITLoader load]\nDemo main", OwnerKind::Sdk, "Kit"),
        ("Demo std::__1::__throw_out_of_range()\nDemo -[Cart total]\nDemo main", OwnerKind::App, "Demo"),
        ("Kit objc_retain\nDemo -[Cart total]\nDemo main", OwnerKind::App, "Demo"),
        ("Kit operator new(unsigned long)\nDemo -[Cart total]", OwnerKind::App, "Demo"),
        ("Kit -[SentryCrashMonitor crashed]\nDemo -[Cart total]", OwnerKind::App, "Demo"),
        // Inlined into app code: the frame is the app's.
        ("Demo Swift runtime failure: Index out of range < Cart.total.getter\nKit f", OwnerKind::App, "Demo"),
        // Ordinary names that only resemble them.
        ("Kit abortUpload\nDemo -[Cart total]", OwnerKind::Sdk, "Kit"),
        // Behind a signal handler the stack proper begins.
        (
            "Kit handler\nlibsystem_kernel.dylib _sigtramp\nDemo -[Cart total]\nDemo main",
            OwnerKind::App,
            "Demo",
        ),
    ] {
        assert_eq!(verdict(&crash("/x", frames).done()), (expected, Some(name.to_owned())), "{frames}");
    }
}

#[test]
fn the_throw_decides_where_the_report_has_it() {
    let thrown = crash("/x", "libsystem_kernel.dylib __pthread_kill\nUIKitCore g\nDemo main")
        .thrown("UIKitCore __exceptionPreprocess\nlibobjc.A.dylib objc_exception_throw\nKit -[KITLoader load]\nDemo main");
    expect(thrown, OwnerKind::Sdk, Some("Kit"), "Last Exception Backtrace frame 2: -[KITLoader load]");
}

#[test]
fn stacks_without_such_frames_are_the_systems_or_nobodys() {
    let system = "libobjc.A.dylib objc_release\nUIKitCore CFRunLoopRun\nUIKitCore start";
    expect(
        crash("/x", system),
        OwnerKind::System,
        Some("libobjc.A.dylib"),
        "no frame of Thread 0 lies in the app",
    );
    expect(
        crash("/x", "libsystem_kernel.dylib __workq_kernreturn\nlibsystem_kernel.dylib start_wqthread"),
        OwnerKind::System,
        Some("libsystem_kernel.dylib"),
        "",
    );
    // Torn after one frame: the way to the caller is lost.
    expect(
        crash("/x", "libsystem_kernel.dylib bzero"),
        OwnerKind::Unknown,
        None,
        "the way to the caller is lost",
    );
    expect(crash("/x", ""), OwnerKind::Unknown, None, "");
    expect(
        report("EXC_BAD_ACCESS", "").with(|report| report.process.threads.clear()),
        OwnerKind::Unknown,
        None,
        "does not say which thread",
    );
    let jumped = crash("/x", "").registers("pc=0x0 lr=0x101000040");
    expect(jumped, OwnerKind::Sdk, Some("Kit"), "its link register lr = 0x101000040 lies in Kit + 64");
}

#[test]
fn ends_from_outside_are_no_ones_fault_or_carry_a_caution() {
    let killed = |namespace: &str, code: u64| {
        report("EXC_CRASH", "SIGKILL").termination(namespace, code, "").frames("Kit work\nDemo main")
    };
    expect(
        killed("SPRINGBOARD", 0x8bad_f00d),
        OwnerKind::Sdk,
        Some("Kit"),
        "caution: the stacks were taken when the process was killed",
    );
    expect(killed("SPRINGBOARD", 0xdead_fa11), OwnerKind::System, None, "no fault of any code");
    expect(killed("SPRINGBOARD", 0xbadd_d15c), OwnerKind::System, None, "storage was low");
    expect(killed("SPRINGBOARD", 0xfbfb_fbfb), OwnerKind::System, None, "simulator");
    expect(killed("JETSAM", 7), OwnerKind::Unknown, None, "does not tell whose code");
    expect(killed("RUNNINGBOARD", 0xdead_10cc), OwnerKind::Unknown, None, "does not tell whose code");
    expect(killed("DYLD", 1), OwnerKind::App, Some("Demo"), "built or packaged");
    expect(killed("TCC", 0), OwnerKind::App, Some("Demo"), "built or packaged");
    expect(killed("SIGNAL", 9), OwnerKind::Unknown, None, "does not tell who");
    expect(
        report("EXC_RESOURCE", "").subtype("CPU").frames("Kit work\nDemo main"),
        OwnerKind::Sdk,
        Some("Kit"),
        "Too much CPU time",
    );
    expect(
        report("EXC_RESOURCE", "").subtype("MEMORY").frames("Kit work\nDemo main"),
        OwnerKind::Unknown,
        None,
        "",
    );
    expect(
        report("EXC_CRASH", "SIGKILL").note("SIMULATED (this is NOT a crash)").frames("Kit work"),
        OwnerKind::System,
        None,
        "made on purpose",
    );
    // A hardware exception stays one, whatever namespace took note of it.
    expect(
        report("EXC_BREAKPOINT", "SIGKILL").termination("FOUNDATION", 1, "").frames("Demo f\nDemo main"),
        OwnerKind::App,
        Some("Demo"),
        "",
    );
}

#[test]
fn the_watchdogs_verdict_is_on_the_main_thread() {
    let build = report("EXC_CRASH", "SIGKILL")
        .termination("FRONTBOARD", 0x8bad_f00d, "")
        .frames("libsystem_kernel.dylib __ulock_wait\nDemo -[Store open]\nDemo main")
        .thread("Kit work\nKit start")
        .with(|report| report.process.crashed_thread = Some(1));
    expect(build, OwnerKind::App, Some("Demo"), "Thread 0 (main) frame 1: -[Store open]");
}

#[test]
fn names_stand_in_where_there_are_no_paths() {
    // Frames keep the name of their image where the report has no list of images.
    let bare = |frames: &str| {
        crash("/x", frames).with(|report| {
            report.process.images.clear();
            report.process.threads[0].frames.iter_mut().for_each(|frame| frame.image = None);
        })
    };
    expect(
        bare("com.apple.Foundation f\nDemo g\nDemo main"),
        OwnerKind::App,
        Some("Demo"),
        "the process's own name",
    );
    expect(
        bare("libsystem_c.dylib f\nUIKit g\nUIKit start"),
        OwnerKind::System,
        Some("libsystem_c.dylib"),
        "the name of one of",
    );
    expect(
        bare("Kit f\nUIKit g\nUIKit start"),
        OwnerKind::Unknown,
        Some("Kit"),
        "the report gives no path for Kit",
    );
    let nameless = |report: &mut Report| {
        let process = &mut report.process;
        (process.name, process.path, process.identifier) = (None, None, None);
    };
    expect(
        bare("Kit f\nUIKit g\nKit main").with(nameless),
        OwnerKind::App,
        Some("Kit"),
        "it has the function `main`",
    );
}

/// The same crash with rules of the user.
fn by_rules(build: Build, rules: &str) -> Attribution {
    let mut report = build.done();
    add_owners(&mut report, &Rules::parse(rules.as_bytes(), "rules").unwrap());
    super::attribute(&report, &explain(&report))
}

const FOO: &str = "[[owner]]\nname = \"FooSDK\"\nversion = \"2.1\"\nsymbol = \"FOO\"\n";

#[test]
fn rules_tell_libraries_inside_of_the_app() {
    let found = by_rules(crash("/x", "Demo -[FOOClient send]\nDemo -[Cart total]\nDemo main"), FOO);
    assert_eq!((found.verdict, found.name.as_deref()), (OwnerKind::Sdk, Some("FooSDK")));
    assert_eq!((found.version.as_deref(), found.confidence), (Some("2.1"), Some(Confidence::Strong)));
    assert!(found.evidence[1].contains("FooSDK 2.1: strong (rule: symbol FOO)"), "{:?}", found.evidence);
    assert!(found.evidence.iter().any(|line| line.contains("the app called it")), "{:?}", found.evidence);
    let kinds = |layer: &Option<super::Layer>| layer.as_ref().map(|layer| (layer.kind, layer.frame));
    assert_eq!(kinds(&found.crashed), Some((OwnerKind::Sdk, 0)));
    assert_eq!(kinds(&found.called), Some((OwnerKind::App, 1)));
    let own = by_rules(crash("/x", "Demo -[Cart total]\nDemo main"), FOO);
    assert_eq!(own.verdict, OwnerKind::App);
    // The app's own helper that many call is no suspect if its makers say that it is like the system.
    let system = "[[owner]]\nkind = \"system\"\nsymbol = \"xalloc\"\n";
    let found = by_rules(crash("/x", "Demo xalloc\nDemo -[Cart total]\nDemo main"), system);
    assert!(found.evidence[0].contains("frame 1: -[Cart total]"), "{:?}", found.evidence);
}

#[test]
fn who_is_called_back_is_to_blame_and_not_who_calls() {
    let found = by_rules(crash("/x", "Demo -[Cart done]\nDemo -[FOOClient send]\nDemo main"), FOO);
    assert_eq!(found.verdict, OwnerKind::App);
    assert_eq!(found.called.unwrap().name.as_deref(), Some("FooSDK"));
    assert!(found.evidence.iter().any(|line| line.contains("FooSDK called back")), "{:?}", found.evidence);
}

#[test]
fn the_system_on_top_is_who_crashed_and_not_who_is_to_blame() {
    let frames = "libobjc.A.dylib lookUpImpOrForward\nDemo -[FOOClient send]\nUIKitCore f\nDemo main";
    let found = by_rules(crash("/x", frames), FOO);
    assert_eq!(found.name.as_deref(), Some("FooSDK"));
    let layer = |layer: Option<super::Layer>| layer.map(|layer| (layer.kind, layer.frame));
    assert_eq!(layer(found.crashed), Some((OwnerKind::System, 0)));
    assert_eq!(layer(found.called), Some((OwnerKind::Sdk, 1)));
    assert_eq!(layer(found.blamed), Some((OwnerKind::Sdk, 1)));
}

#[test]
fn a_library_that_refuses_its_arguments_is_not_to_blame() {
    let thrown = |name: &str, frames: &str| {
        let said = format!("*** Terminating app due to uncaught exception '{name}', reason: 'key is nil'");
        by_rules(report("EXC_CRASH", "SIGABRT").said("CoreFoundation", &said).thrown(frames), FOO)
    };
    let direct = "libobjc.A.dylib objc_exception_throw\nDemo -[FOOStore put:]\nDemo -[FOOStore add:]\nDemo -[Cart total]\nDemo main";
    let found = thrown("NSInvalidArgumentException", direct);
    assert_eq!((found.verdict, found.confidence), (OwnerKind::App, Some(Confidence::Likely)));
    assert_eq!(found.blamed.unwrap().frame, 3);
    assert!(found.evidence[0].contains("threw because of what it was called with"), "{:?}", found.evidence);
    // Another exception is no refusal.
    assert_eq!(thrown("FOOInternalException", direct).verdict, OwnerKind::Sdk);
    // The system refused what the library gave it.
    let below = "libobjc.A.dylib objc_exception_throw\nUIKitCore -[UIView add:]\nDemo -[FOOStore put:]\nDemo -[Cart total]\nDemo main";
    assert_eq!(thrown("NSInvalidArgumentException", below).verdict, OwnerKind::Sdk);
    // Nobody else called it.
    let alone = "libobjc.A.dylib objc_exception_throw\nDemo -[FOOStore put:]\nUIKitCore f\nDemo main";
    assert_eq!(thrown("NSInvalidArgumentException", alone).verdict, OwnerKind::Sdk);
}

#[test]
fn a_damaged_heap_blames_nobody() {
    let heap = |words: &str| {
        let frames = "libsystem_kernel.dylib __pthread_kill\nlibsystem_malloc.dylib malloc_vreport\nDemo -[FOOStore put:]\nDemo main";
        let said = format!("Demo(1,0x1) malloc: {words}");
        by_rules(report("EXC_CRASH", "SIGABRT").said("libsystem_malloc.dylib", &said).frames(frames), FOO)
    };
    let found = heap(
        "Incorrect checksum for freed object 0x1: probably modified after being freed.\n*** set a breakpoint",
    );
    let found = if found.verdict == OwnerKind::Unknown {
        found
    } else {
        heap(
            "*** error for object 0x1: incorrect checksum for freed object - object was probably modified after being freed.",
        )
    };
    assert_eq!((found.verdict, found.name, found.confidence), (OwnerKind::Unknown, None, None));
    assert!(found.evidence[0].starts_with("not decidable"), "{:?}", found.evidence);
    assert_eq!(found.called.unwrap().name.as_deref(), Some("FooSDK"), "who came across it is told");
    // Who frees what it did not get from malloc is on the stack.
    let found = heap("*** error for object 0x1: pointer being freed was not allocated");
    assert_eq!((found.name.as_deref(), found.confidence), (Some("FooSDK"), Some(Confidence::Likely)));
}

#[test]
fn every_frame_has_an_owner_and_what_the_linker_said_stands_above_rules() {
    let mut report = crash("/x", "libobjc.A.dylib f\nDemo -[FOOClient send]\nKit g\n??? h\nDemo main").done();
    let said = |confidence| Owner {
        kind: OwnerKind::Sdk,
        name: Some("Bar".to_owned()),
        confidence: Some(confidence),
        how: "link map".into(),
        ..Owner::default()
    };
    report.process.threads[0].frames[1].owner = Some(Arc::new(said(Confidence::Certain)));
    add_owners(&mut report, &Rules::parse(FOO.as_bytes(), "rules").unwrap());
    let owners: Vec<_> =
        report.process.threads[0].frames.iter().map(|frame| frame.owner.clone().unwrap()).collect();
    let kinds: Vec<_> = owners.iter().map(|owner| (owner.kind, owner.name.as_deref())).collect();
    use OwnerKind::{App, Sdk, System, Unknown};
    let expected = [
        (System, Some("libobjc.A.dylib")),
        (Sdk, Some("Bar")),
        (Sdk, Some("Kit")),
        (Unknown, None),
        (App, Some("Demo")),
    ];
    assert_eq!(kinds, expected);
    report.process.threads[0].frames[1].owner = Some(Arc::new(said(Confidence::Strong)));
    add_owners(&mut report, &Rules::parse(FOO.as_bytes(), "rules").unwrap());
    assert_eq!(report.process.threads[0].frames[1].owner.as_ref().unwrap().name.as_deref(), Some("FooSDK"));
}

/// Sanitizers' functions lie in the program's own image, often as its innermost frame.
#[test]
fn a_sanitizers_function_says_nothing_of_the_programs_other_frames() {
    let mut report = report("", "").frames("Demo __interceptor_strlen\nDemo load_page\nDemo main").done();
    report.source = Source::Sanitizer;
    add_owners(&mut report, &Rules::default());
    let frames = report.process.threads[0].frames.iter();
    let kinds: Vec<_> = frames.map(|frame| frame.owner.as_ref().unwrap().kind).collect();
    assert_eq!(kinds, [OwnerKind::System, OwnerKind::App, OwnerKind::App]);
}
