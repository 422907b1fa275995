//! Whose code: each kind of image, each reason to pass a frame over, each kind of end.

use super::{StaticOwner, StaticOwners, Verdict, attribute, attribute_with};
use crate::explain::testing::{Build, report};
use backtrail_core::Avma;
use backtrail_model::{Image, Report};

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

fn verdict(report: &Report) -> (Verdict, Option<String>) {
    let attribution = attribute(report);
    assert!(!attribution.evidence.is_empty());
    (attribution.verdict, attribution.name)
}

#[track_caller]
fn expect(report: Build, expected: Verdict, name: Option<&str>, evidence: &str) {
    let found = attribute(&report.done());
    let all = found.evidence.join("\n");
    assert_eq!((found.verdict, found.name.as_deref()), (expected, name), "{all}");
    assert!(all.contains(evidence), "{evidence:?} expected in:\n{all}");
}

const APP: &str = "/private/var/containers/Bundle/Application/8B/Demo.app";

#[test]
fn images_are_told_by_where_they_were_loaded_from() {
    use Verdict::{Sdk, System};
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
            Verdict::App,
            Some("Demo"),
            "the process's own executable",
        );
    }
    // The same name outside of such a place is nobody's but its maker's.
    expect(
        crash(&format!("{APP}/Frameworks/XCTestify"), "Other f\nDemo main"),
        Verdict::Sdk,
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
    expect(with("com.acme.core"), Verdict::Sdk, Some("Other"), "com.acme.core begins as the app's");
    expect(with("com.other.core"), Verdict::Sdk, Some("Other"), "is not of the app's family");
    expect(with("com"), Verdict::Sdk, Some("Other"), "");
    let github =
        |app: &str, id: &str| with(id).with(|report| report.process.identifier = Some(app.to_owned()));
    expect(github("com.github.me.demo", "com.github.other.kit"), Verdict::Sdk, Some("Other"), "");
    // Debug builds of Xcode 16 keep the app's code in a library.
    expect(
        crash(&format!("{APP}/Demo.debug.dylib"), "Other f\nDemo main"),
        Verdict::App,
        Some("Other"),
        "debug builds",
    );
}

#[test]
fn an_extensions_own_binary_is_the_apps_and_a_systems_process_the_systems() {
    let extension = format!("{APP}/PlugIns/Share.appex/Share");
    let build = crash(&extension, "Other f\nUIKitCore g\nUIKitCore start")
        .with(|report| report.process.path = Some(extension.clone()));
    expect(build, Verdict::App, Some("Other"), "own executable");
    let system = |path: &str, os: &str| {
        let os = os.to_owned();
        let path = path.to_owned();
        crash(&path, "Other f\nUIKitCore g\nUIKitCore start").with(|report| {
            report.process.path = Some(path.clone());
            report.os = Some(os);
        })
    };
    expect(system("/usr/libexec/thing", "iPhone OS 17.1"), Verdict::System, Some("Other"), "");
    expect(
        system("/Applications/MobileSafari.app/Other", "iPhone OS 17.1"),
        Verdict::System,
        Some("Other"),
        "iOS keeps its own apps",
    );
    expect(
        system("/Applications/Other.app/Contents/MacOS/Other", "macOS 14.1"),
        Verdict::App,
        Some("Other"),
        "own executable",
    );
}

#[test]
fn frames_that_end_the_process_for_others_are_passed_over() {
    for (frames, expected, name) in [
        ("Demo abort\nKit -[KITLoader load]\nDemo main", Verdict::Sdk, "Kit"),
        ("Demo std::__1::__throw_out_of_range()\nDemo -[Cart total]\nDemo main", Verdict::App, "Demo"),
        ("Kit objc_retain\nDemo -[Cart total]\nDemo main", Verdict::App, "Demo"),
        ("Kit operator new(unsigned long)\nDemo -[Cart total]", Verdict::App, "Demo"),
        ("Kit -[SentryCrashMonitor crashed]\nDemo -[Cart total]", Verdict::App, "Demo"),
        // Inlined into app code: the frame is the app's.
        ("Demo Swift runtime failure: Index out of range < Cart.total.getter\nKit f", Verdict::App, "Demo"),
        // Ordinary names that only resemble them.
        ("Kit abortUpload\nDemo -[Cart total]", Verdict::Sdk, "Kit"),
        // Behind a signal handler the stack proper begins.
        (
            "Kit handler\nlibsystem_kernel.dylib _sigtramp\nDemo -[Cart total]\nDemo main",
            Verdict::App,
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
    expect(thrown, Verdict::Sdk, Some("Kit"), "Last Exception Backtrace frame 2: -[KITLoader load]");
}

#[test]
fn stacks_without_such_frames_are_the_systems_or_nobodys() {
    let system = "libobjc.A.dylib objc_release\nUIKitCore CFRunLoopRun\nUIKitCore start";
    expect(
        crash("/x", system),
        Verdict::System,
        Some("libobjc.A.dylib"),
        "no frame of Thread 0 lies in the app",
    );
    expect(
        crash("/x", "libsystem_kernel.dylib __workq_kernreturn\nlibsystem_kernel.dylib start_wqthread"),
        Verdict::System,
        Some("libsystem_kernel.dylib"),
        "",
    );
    // Torn after one frame: the way to the caller is lost.
    expect(
        crash("/x", "libsystem_kernel.dylib bzero"),
        Verdict::Unknown,
        None,
        "the way to the caller is lost",
    );
    expect(crash("/x", ""), Verdict::Unknown, None, "");
    expect(
        report("EXC_BAD_ACCESS", "").with(|report| report.process.threads.clear()),
        Verdict::Unknown,
        None,
        "does not say which thread",
    );
    let jumped = crash("/x", "").registers("pc=0x0 lr=0x101000040");
    expect(jumped, Verdict::Sdk, Some("Kit"), "its link register lr = 0x101000040 lies in Kit + 64");
}

#[test]
fn ends_from_outside_are_no_ones_fault_or_carry_a_caution() {
    let killed = |namespace: &str, code: u64| {
        report("EXC_CRASH", "SIGKILL").termination(namespace, code, "").frames("Kit work\nDemo main")
    };
    expect(
        killed("SPRINGBOARD", 0x8bad_f00d),
        Verdict::Sdk,
        Some("Kit"),
        "caution: the stacks were taken when the process was killed",
    );
    expect(killed("SPRINGBOARD", 0xdead_fa11), Verdict::System, None, "no fault of any code");
    expect(killed("SPRINGBOARD", 0xbadd_d15c), Verdict::System, None, "storage was low");
    expect(killed("SPRINGBOARD", 0xfbfb_fbfb), Verdict::System, None, "simulator");
    expect(killed("JETSAM", 7), Verdict::Unknown, None, "does not tell whose code");
    expect(killed("RUNNINGBOARD", 0xdead_10cc), Verdict::Unknown, None, "does not tell whose code");
    expect(killed("DYLD", 1), Verdict::App, Some("Demo"), "built or packaged");
    expect(killed("TCC", 0), Verdict::App, Some("Demo"), "built or packaged");
    expect(killed("SIGNAL", 9), Verdict::Unknown, None, "does not tell who");
    expect(
        report("EXC_RESOURCE", "").subtype("CPU").frames("Kit work\nDemo main"),
        Verdict::Sdk,
        Some("Kit"),
        "Too much CPU time",
    );
    expect(
        report("EXC_RESOURCE", "").subtype("MEMORY").frames("Kit work\nDemo main"),
        Verdict::Unknown,
        None,
        "",
    );
    expect(
        report("EXC_CRASH", "SIGKILL").note("SIMULATED (this is NOT a crash)").frames("Kit work"),
        Verdict::System,
        None,
        "made on purpose",
    );
    // A hardware exception stays one, whatever namespace took note of it.
    expect(
        report("EXC_BREAKPOINT", "SIGKILL").termination("FOUNDATION", 1, "").frames("Demo f\nDemo main"),
        Verdict::App,
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
    expect(build, Verdict::App, Some("Demo"), "Thread 0 (main) frame 1: -[Store open]");
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
        Verdict::App,
        Some("Demo"),
        "the process's own name",
    );
    expect(
        bare("libsystem_c.dylib f\nUIKit g\nUIKit start"),
        Verdict::System,
        Some("libsystem_c.dylib"),
        "the name of one of",
    );
    expect(
        bare("Kit f\nUIKit g\nUIKit start"),
        Verdict::Unknown,
        Some("Kit"),
        "the report gives no path for Kit",
    );
    let nameless = |report: &mut Report| {
        let process = &mut report.process;
        (process.name, process.path, process.identifier) = (None, None, None);
    };
    expect(
        bare("Kit f\nUIKit g\nKit main").with(nameless),
        Verdict::App,
        Some("Kit"),
        "it has the function `main`",
    );
}

struct ByPrefix;

impl StaticOwners for ByPrefix {
    fn owner(&self, image: &Image, function: &str, file: Option<&str>) -> Option<StaticOwner> {
        assert_eq!((image.name.as_str(), file), ("Demo", None));
        let library = function.starts_with("-[FOO").then(|| "FooSDK".to_owned())?;
        Some(StaticOwner { library, evidence: "the class prefix FOO".to_owned() })
    }
}

#[test]
fn static_libraries_inside_the_app_can_be_told_by_who_knows_them() {
    let report = |frames: &str| crash("/x", frames).done();
    let found = attribute_with(&report("Demo -[FOOClient send]\nDemo main"), &ByPrefix);
    assert_eq!((found.verdict, found.name.as_deref()), (Verdict::Sdk, Some("FooSDK")));
    assert!(found.evidence[1].contains("the class prefix FOO"), "{:?}", found.evidence);
    let own = attribute_with(&report("Demo -[Cart total]\nDemo main"), &ByPrefix);
    assert_eq!(own.verdict, Verdict::App);
}
