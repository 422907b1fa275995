//! Each leading rule on a report that it is for, and on one close by that it is not for.

use super::super::testing::{Build, report};
use super::super::{Explanation, LEADING, explain};
use backtrail_core::Arch;
use backtrail_model::{AppInfo, Exception, Source, Termination, ThrowingRuntime, ThrownException};

/// A report, the rule that has to lead, what the title begins with, and texts that the explanation has to hold.
struct Case {
    rule: &'static str,
    report: Build,
    title: &'static str,
    holds: &'static [&'static str],
}

fn case(rule: &'static str, report: Build, title: &'static str, holds: &'static [&'static str]) -> Case {
    Case { rule, report, title, holds }
}

fn all_text(explanation: &Explanation) -> String {
    let lists = [&explanation.evidence, &explanation.causes, &explanation.next_steps];
    let lists = lists.into_iter().flatten().cloned();
    let heads = [explanation.title.clone(), explanation.summary.clone()];
    heads.into_iter().chain(lists).collect::<Vec<_>>().join("\n")
}

fn check(cases: Vec<Case>) {
    for Case { rule, report, title, holds } in cases {
        let explanation = explain(&report.done());
        let text = all_text(&explanation);
        assert_eq!(explanation.rule, rule, "{text}");
        assert!(explanation.title.starts_with(title), "{title:?} expected of {text}");
        for part in holds {
            assert!(text.contains(part), "{part:?} expected in:\n{text}");
        }
        assert!(!explanation.summary.is_empty(), "{text}");
    }
}

fn access(codes: &str) -> Build {
    report("EXC_BAD_ACCESS", "SIGSEGV").subtype(codes)
}

fn crash(signal: &str) -> Build {
    report("EXC_CRASH", signal).codes("0x0000000000000000, 0x0000000000000000")
}

const APP: &str = "Demo -[Cart total]\nUIKitCore UIApplicationMain\nDemo main";
const MESSAGE: &str = "libobjc.A.dylib objc_msgSend\nKit -[KITLoader load]\nDemo -[Cart total]\nDemo main";
const ABORT: &str =
    "libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nDemo -[Cart total]\nDemo main";

/// ESR of a data abort that read unmapped memory, and of one that wrote to mapped memory.
const READ: &str = "esr=0x92000006";
const WRITE_DENIED: &str = "esr=0x9200004f";

/// What `backtrail watch` keeps of a process that did not crash.
fn watched(event: &str, key: &str, value: &str) -> Build {
    let build = report("", "").field(key, value);
    build.with(|report| {
        (report.source, report.exception, report.event) = (Source::CrashFile, None, Some(event.to_owned()));
    })
}

/// What a reporter inside of the app states of an exception with the reason `why`.
fn thrown(runtime: ThrowingRuntime, name: &str, is_handled: bool) -> Build {
    let thrown =
        ThrownException { runtime, name: name.to_owned(), reason: Some("why".to_owned()), is_handled };
    report("", "").frames(APP).with(|report| (report.thrown, report.exception) = (Some(thrown), None))
}

/// A report for each rule.
/// A crash file of Linux whose walk could read nothing at the stack pointer.
fn no_stack(code: &str, address: u64) -> Build {
    report("", "SIGSEGV").arch(Arch::X86_64).codes(code).frames("Demo fill").with(|report| {
        report.source = Source::CrashFile;
        report.os = Some("Linux 6.1".to_owned());
        let exception = report.exception.as_mut().unwrap();
        (exception.kind, exception.address) = (None, Some(backtrail_core::Avma::new(address)));
        report.process.threads[0].ended = Some(backtrail_model::Ended {
            kind: backtrail_model::EndKind::Failed,
            why: "memory at 0x414141414000 cannot be read".to_owned(),
        });
    })
}

fn positive() -> Vec<Case> {
    let mut cases = events();
    cases.extend(ended());
    cases.extend(said());
    cases.extend(accesses());
    cases.extend(runtimes());
    cases.extend(others());
    cases.extend(stated());
    cases
}

fn stated() -> Vec<Case> {
    vec![
        case(
            "stated-exception",
            thrown(ThrowingRuntime::Other, "TypeError", false),
            "TypeError: why",
            &["noted TypeError"],
        ),
        case(
            "stated-exception",
            thrown(ThrowingRuntime::Other, "App Hanging", true),
            "App Hanging: why",
            &["did not end the app"],
        ),
        case("stated-exception", thrown(ThrowingRuntime::Other, " ", false), "why", &["without a name"]),
        case("objc-exception", thrown(ThrowingRuntime::ObjectiveC, "NSX", false), "Uncaught NSX: why", &[]),
        case(
            "cpp-exception",
            thrown(ThrowingRuntime::Cpp, "a::B", false),
            "Uncaught C++ exception: a::B: why",
            &[],
        ),
    ]
}

/// A signal, and nothing else.
fn signal_without_stack(source: Source) -> Build {
    report("", "SIGSEGV").with(move |report| {
        report.source = source;
        report.process.threads.clear();
        report.process.crashed_thread = None;
        report.exception.iter_mut().for_each(|exception| exception.kind = None);
    })
}

/// Titles, sentences and causes that were wrong once.
#[test]
fn traps_tell_their_check() {
    let trap = |immediate: u64| {
        report("EXC_BREAKPOINT", "SIGTRAP")
            .frames(APP)
            .registers(&format!("esr={:#x}", 0xf200_0000 | immediate))
    };
    let cases = vec![
        case(
            "pointer-authentication",
            trap(0xc471),
            "A pointer failed its authentication",
            &["return addresses (IB)"],
        ),
        case("trap", trap(0x5512), "Undefined behavior: an index beyond the bounds of an array", &[]),
        case("trap", trap(0x55ff), "Undefined behavior: a check of clang failed", &["does not tell which"]),
        case("trap", trap(1), "Deliberate trap", &["Swift's runtime checks"]),
        case(
            "telling-frame",
            report("EXC_BREAKPOINT", "SIGTRAP").frames("UIKitCore ___forwarding___\nDemo -[Cart total]"),
            "Message to a zombie",
            &[],
        ),
    ];
    for case in &cases {
        // A report without images does not tell whether Swift is in the process.
        let mut bare = case.report.clone().done();
        bare.process.images.clear();
        let swift = explain(&bare).causes.iter().any(|cause| cause.starts_with("Swift"));
        assert_eq!(swift, case.title == "Deliberate trap", "{}", case.title);
    }
    check(cases);
}

#[test]
fn fill_values_are_no_text_and_say_what_became_of_the_memory() {
    for (value, cause) in [("0x5555555555555555", "was freed"), ("0xaaaaaaaaaaaaaaaa", "never set")] {
        let report = access(&format!("KERN_INVALID_ADDRESS at {value}")).frames(APP).done();
        let explanation = explain(&report);
        assert!(explanation.causes[0].contains(cause), "{explanation:#?}");
        assert!(!all_text(&explanation).contains("as text"), "{explanation:#?}");
    }
}

#[test]
fn a_message_to_nil_is_no_crash() {
    let noted = |registers| {
        access("KERN_INVALID_ADDRESS at 0x88")
            .frames(APP)
            .said("", "objc_msgSend() selector name: respondsToSelector:")
            .registers(registers)
    };
    check(vec![
        case("null-pointer", noted("x0=0x0"), "Null pointer access at 0x88", &[]),
        case("objc-message", noted("x0=0x600000000010"), "Message `respondsToSelector:`", &[]),
    ]);
}

/// A report of an event of that kind, from that source.
fn event(source: Source, event: &str) -> Build {
    report("", "").with(|report| {
        (report.source, report.event, report.exception) = (source, Some(event.to_owned()), None);
    })
}

/// Each is tested closer in `events/tests.rs`.
fn events() -> Vec<Case> {
    vec![
        case("memory-event", event(Source::AppleJetsam, "jetsam (memory) event"), "Memory ran low", &[]),
        case("kernel-panic", event(Source::ApplePanic, "kernel panic"), "Kernel panic", &["no panic string"]),
        case("samples", event(Source::AppleSamples, "hang"), "Hang: Demo", &["Event: hang"]),
        case("stackshot", event(Source::AppleStackshot, "stackshot"), "A snapshot of all processes", &[]),
        case("metrickit", event(Source::MetricKit, "hang"), "Hang", &["does not say how much"]),
        case("other-kind", event(Source::AppleIpsOther, "analytics"), "No crash", &["nothing failed"]),
    ]
}

/// A core whose stack has a function of that name.
fn core_in(function: &'static str) -> Build {
    report("", "SIGABRT")
        .frames(&format!("libsystem_kernel.dylib abort\nDemo {function}\nDemo main"))
        .with(|report| report.source = Source::ElfCore)
}

/// A core in which the C library's image of that name left a message.
fn core_with(image: &'static str) -> Build {
    core_in("f").with(move |report| {
        let lines = vec!["free(): invalid pointer".to_owned()];
        report.app_info.push(AppInfo { image: Some(image.to_owned()), lines });
    })
}

/// A loader's message, in the words of that writer.
fn words_of(image: &'static str) -> Build {
    said_by(image, "shop: error while loading shared libraries: libz.so: file too short")
}

fn said_by(image: &'static str, words: &'static str) -> Build {
    crash("SIGABRT").with(move |report| {
        let lines = vec![words.to_owned()];
        report.app_info.push(AppInfo { image: Some(image.to_owned()), lines });
    })
}

/// A sentence with an exit code.
fn exit_code(source: Source) -> Build {
    crash("").with(move |report| {
        report.source = source;
        report.process.threads.clear();
        report.exception = Some(Exception {
            kind: Some("exit code".to_owned()),
            codes: Some("127".to_owned()),
            message: Some("it did end so".to_owned()),
            ..Exception::default()
        });
    })
}

/// What KSCrash says of a process that was ended so.
fn kscrash(reason: &'static str) -> Build {
    crash("SIGKILL").with(move |report| {
        report.source = Source::KsCrash;
        report.termination = Some(Termination { reason: Some(reason.to_owned()), ..Termination::default() });
    })
}

fn ended() -> Vec<Case> {
    vec![
        case("memory-limit", kscrash("memory_termination"), "Killed for using too much memory", &[]),
        case(
            "c-library-message",
            core_with("libc.so.6"),
            "Heap error found by malloc: free(): invalid pointer",
            &[],
        ),
        case(
            "rust-panic",
            core_in("core::panicking::panic_bounds_check"),
            "Rust panic: index out of bounds",
            &[],
        ),
        case("go-panic", core_in("runtime.gopanic"), "Go panic", &[]),
        case(
            "simulated",
            report("EXC_CRASH", "SIGKILL").note("SIMULATED (this is NOT a crash)"),
            "A report made on purpose",
            &["Exception Note: SIMULATED", "Do not count it as a crash"],
        ),
        case(
            "resource",
            report("EXC_RESOURCE", "").subtype("WAKEUPS").raw(&[2 << 61 | 1 << 58 | 300 << 20 | 150, 206]),
            "Too many wake-ups: 206 (limit 150) wake-ups per second",
            &["150 wake-ups per second over 300 seconds", "does not tell whether the process was ended"],
        ),
        case(
            "guard",
            report("EXC_GUARD", "").raw(&[2 << 61 | 1 << 32 | 14, 0x08fd_4dbf_ade2_dead]),
            "Forbidden use of a file descriptor: CLOSE",
            &["file descriptor 14", "The guard is SQLite's"],
        ),
        case(
            "killed",
            crash("SIGKILL").termination("RUNNINGBOARD", 0xdead_10cc, ""),
            "Killed for holding a file lock while being suspended (0xdead10cc)",
            &["no stack shows a database"],
        ),
        case(
            "watched-hang",
            watched("hang", "Time without running", "1500 ms")
                .frames("libc.so.6 __lll_lock_wait\nlibc.so.6 ___pthread_mutex_lock\nDemo need\nDemo main"),
            "Hang: the first thread did not run for 1500 ms",
            &["waiting for a mutex"],
        ),
        case(
            "failing-exit",
            watched("exit", "Exit code", "3").frames(APP),
            "The process ended with exit code 3",
            &["nothing crashed"],
        ),
        case(
            "message",
            watched("the cart is empty", "level", "warning").with(|report| report.source = Source::Sentry),
            "the cart is empty",
            &["sent a message", "nothing crashed"],
        ),
        case(
            "launch-hang",
            crash("SIGQUIT").subtype("LAUNCH_HANG").frames(APP),
            "The extension took too long",
            &["`-[Cart total]`"],
        ),
        case(
            "signal",
            crash("SIGPIPE").frames(APP),
            "Write to a closed connection (SIGPIPE)",
            &["does not tell who sent it", "SO_NOSIGPIPE"],
        ),
        case("sigkill", crash("SIGKILL").frames(APP), "Killed with SIGKILL", &["neither who did it nor why"]),
        case("anything", report("EXC_EMULATION", ""), "EXC_EMULATION", &["does not tell more"]),
        case(
            "system-words",
            report("EXC_BAD_INSTRUCTION", "SIGILL")
                .codes("0x1, 0x0")
                .said("AppKit", "Over-release of NSResponder or subclass")
                .frames("UIKitCore -[NSResponder dealloc]\nDemo -[Cart close]\nDemo main"),
            "Over-release of NSResponder or subclass",
            &["found itself used wrongly"],
        ),
        case(
            "recursion-alone",
            looping(12).with(|report| report.exception = None),
            "Recursion, probably without an end",
            &["12 frames from frame 1 on", "-[Cart total]", "exchanged (swizzled) twice"],
        ),
        case(
            "reporters-words",
            report("", "")
                .with(|report| report.exception = None)
                .section("", "Application received signal SIGBUS\n(null)"),
            "The process received SIGBUS",
            &["neither address nor codes"],
        ),
    ]
}

fn said() -> Vec<Case> {
    vec![
        case(
            "sanitizer",
            crash("SIGABRT").said("", "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60").frames(ABORT),
            "AddressSanitizer: heap-buffer-overflow on address 0x60",
            &["beyond the end of a block"],
        ),
        case(
            "objc-throw",
            crash("SIGABRT").thrown("UIKitCore __exceptionPreprocess\nlibobjc.A.dylib objc_exception_throw\nUIKitCore -[__NSArrayM objectAtIndex:]\nDemo -[Cart total]\nDemo main").frames(ABORT),
            "Uncaught NSRangeException: an index beyond the bounds of an array",
            &["Last Exception Backtrace frame 2: -[__NSArrayM objectAtIndex:]"],
        ),
        case(
            "client-bug",
            report("EXC_BREAKPOINT", "SIGTRAP").said("libdispatch.dylib", "BUG IN CLIENT OF LIBDISPATCH: dispatch_sync called on queue already owned by current thread"),
            "BUG IN CLIENT OF LIBDISPATCH: dispatch_sync called on queue",
            &["it would wait for itself forever", "Application Specific Information (libdispatch.dylib)"],
        ),
        case(
            "objc-exception",
            crash("SIGABRT")
                .said("CoreFoundation", "*** Terminating app due to uncaught exception 'NSRangeException', reason: '*** -[__NSArrayM objectAtIndex:]: index 3 beyond bounds [0 .. 2]'")
                .thrown("UIKitCore __exceptionPreprocess\nlibobjc.A.dylib objc_exception_throw\nDemo -[Cart total]\nDemo main")
                .frames(ABORT),
            "Uncaught NSRangeException: *** -[__NSArrayM objectAtIndex:]: index 3 beyond bounds",
            &["It was thrown below `-[Cart total]` in Demo"],
        ),
        case(
            "malloc-message",
            crash("SIGABRT").said("libsystem_malloc.dylib", "*** error for object 0x600000: pointer being freed was not allocated").frames(ABORT),
            "Heap error found by malloc: ",
            &["free() got an address that malloc never gave out", "often not the code that did it"],
        ),
        case(
            "swift-message",
            report("EXC_BREAKPOINT", "SIGTRAP").said("libswiftCore.dylib", "Demo/Cart.swift:12: Fatal error: Unexpectedly found nil while unwrapping an Optional value").frames(APP),
            "Swift fatal error: Unexpectedly found nil while unwrapping an Optional value",
            &["Look at Cart.swift:12", "unwrapped with `!`"],
        ),
        case(
            "swift-runtime-failure",
            report("EXC_BREAKPOINT", "SIGTRAP").frames("Demo Swift runtime failure: Index out of range < Cart.total.getter\nDemo main"),
            "Swift runtime failure: Index out of range",
            &["Thread 0 frame 0:", "An index lay outside"],
        ),
        case(
            "assertion",
            crash("SIGABRT").said("libsystem_c.dylib", "Assertion failed: (count > 0), function total, file Cart.m, line 12.").frames(ABORT),
            "Assertion failed: (count > 0)",
            &["Look at the function, file and line"],
        ),
        case("telling-frame", report("EXC_BAD_ACCESS", "SIGBUS").codes("0x1, 0x1").frames("Kit gpus_ReturnNotPermittedKillClient\nDemo -[View draw]\nDemo main"), "Graphics work in the background", &["applicationWillResignActive"]),
        case(
            "cpp-exception",
            crash("SIGABRT").said("libc++abi.dylib", "terminating due to uncaught exception of type std::out_of_range: vector").frames(ABORT),
            "Uncaught C++ exception: std::out_of_range: vector",
            &["An index or key does not exist", "does not", "__cxa_throw"],
        ),
        case(
            "joinable-thread",
            crash("SIGABRT").frames("libsystem_kernel.dylib abort\nDemo std::terminate()\nDemo std::__1::thread::~thread()\nDemo main"),
            "A std::thread was destroyed while its thread could still be joined",
            &["Nothing was thrown"],
        ),
        case(
            "sent-signal",
            report("", "SIGSEGV").codes("SI_USER from pid 5").frames(APP),
            "SIGSEGV sent by another process",
            &["Another process (pid 5) sent SIGSEGV"],
        ),
        case("loader-message", words_of("ld.so"), "A library's file is empty or cut off: libz.so", &["file too short"]),
        case(
            "qt-platform",
            said_by("Qt", "Could not load the Qt platform plugin \"xcb\" in \"\" even though it was found."),
            "Qt's platform plugin could not be loaded: xcb",
            &["libxcb-cursor0", "QT_DEBUG_PLUGINS=1"],
        ),
        case("java-memory", words_of("java"), "A Java virtual machine had no memory", &[]),
        case("exit-code", exit_code(Source::ExceptionLog), "Exit code 127: the program was not found", &["did end so"]),
        case(
            "signal-alone",
            signal_without_stack(Source::ExceptionLog),
            "Segmentation fault (SIGSEGV)",
            &["neither where nor why", "backtrail watch"],
        ),
        case("malloc-frames", crash("SIGABRT").frames("libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nlibsystem_malloc.dylib -\nDemo -[Cart total]"), "Heap error found by malloc", &["does not tell which of the two"]),
        case("abort", crash("SIGABRT").frames(ABORT), "The process ended itself with abort()", &["It happened below `-[Cart total]` in Demo", "no library left a message"]),
    ]
}

fn accesses() -> Vec<Case> {
    vec![
        case(
            "code-signature",
            report("EXC_BAD_ACCESS", "Code Signature Invalid").codes("0x32, 0x11212c000"),
            "Killed for a page of code whose signature does not fit",
            &["codesign --verify"],
        ),
        case(
            "bad-stack-pointer",
            no_stack("SEGV_MAPERR", 0x4141_4141_3ff8).registers("rsp=0x414141414000 rip=0x100000100"),
            "Bad stack pointer: 0x414141414000",
            &["ends after one frame: memory at 0x414141414000 cannot be read", "does not tell who called"],
        ),
        case(
            "stack-overflow",
            access("KERN_PROTECTION_FAILURE at 0x000000016fc8bff8").registers("sp=0x16fc8bff0 pc=0x100000100").frames("Demo -[Node walk]"),
            "Stack overflow",
            &["close to the address", "the kernel gives that signal for its main stack only"],
        ),
        case(
            "code-fetch",
            access("KERN_INVALID_ADDRESS at 0x0000000000000000").registers("pc=0x0 lr=0x100000200").frames(APP),
            "Call through a null function pointer: jump to 0x0",
            &["lr = 0x100000200 (Demo + 512)"],
        ),
        case(
            "pointer-authentication",
            access("KERN_INVALID_ADDRESS at 0x0f24000186a18d80 -> 0x0000000186a18d80 (possible pointer authentication failure)").frames(APP),
            "Bad pointer 0xf24000186a18d80 (without its upper bits 0x186a18d80): its upper bits are no address",
            &["does not tell which of the two"],
        ),
        case("memory-tagging", access("KERN_INVALID_ADDRESS at 0x0000000106a18d80").registers("esr=0x92000011").frames(APP), "Memory tagging caught", &["tag check fault"]),
        case(
            "null-pointer",
            access("KERN_INVALID_ADDRESS at 0x0000000000000008").registers(&format!("x0=0x0 x8=0x8 {READ}")).frames(APP),
            "Null pointer access: read at 0x8",
            &["a member at that offset", "It happened in `-[Cart total]` in Demo", "x8 holds the address", "data abort, read, translation fault"],
        ),
        case("below-null", access("KERN_INVALID_ADDRESS at 0xfffffffffffffff8").frames(APP), "Null pointer access: 0x8 bytes below null", &["negative index"]),
        case("misaligned", report("EXC_BAD_ACCESS", "SIGBUS").subtype("EXC_ARM_DA_ALIGN at 0x0000000106a18d81").frames(APP), "Misaligned access at 0x106a18d81", &["loadUnaligned"]),
        case("memory-error", report("EXC_BAD_ACCESS", "SIGBUS").subtype("KERN_MEMORY_ERROR at 0x0000000106a18000").frames(APP), "A page could not be read from its file at 0x106a18000", &["truncated"]),
        case("address-untold", report("EXC_BAD_ACCESS", "SIGBUS").codes("0x1, 0x0").frames(APP), "Bad memory access at an address that the report does not give", &["The report does not tell the address"]),
        case(
            "beyond-address-space",
            access("KERN_INVALID_ADDRESS at 0x6c6c6568206f6c6c").frames(APP),
            "Bad pointer at 0x6c6c6568206f6c6c, which no program can use",
            &["read \"llo hell\" as text"],
        ),
        case(
            "protection",
            report("EXC_BAD_ACCESS", "SIGBUS").subtype("KERN_PROTECTION_FAILURE at 0x0000000100000300").registers(WRITE_DENIED).frames(APP),
            "Write to read-only memory: 0x100000300 in Demo + 768",
            &["permission fault"],
        ),
        case("unmapped", access("KERN_INVALID_ADDRESS at 0x0000000600fbeb80").registers("x16=0x600fbeb40").frames(APP), "Bad pointer at 0x600fbeb80", &["the address is x16 + 0x40", "where nothing is mapped"]),
    ]
}

fn runtimes() -> Vec<Case> {
    let garbage = || access("KERN_INVALID_ADDRESS at 0x0000000600fbeb80");
    vec![
        case(
            "objc-message",
            garbage().registers("x0=0x7001c1a0 x1=0x188057a33 x16=0x600fbeb70").said("", "objc_msgSend() selector name: reload").frames(MESSAGE),
            "Message `reload` to a released or overwritten object",
            &["Register x0 = 0x7001c1a0: the receiver", "Register x16 = 0x600fbeb70: the class", "Zombie Objects"],
        ),
        case(
            "reference-counting",
            garbage().frames("libobjc.A.dylib objc_release\nlibobjc.A.dylib AutoreleasePoolPage::releaseUntil(objc_object**)\nUIKitCore CFRunLoopRun\nDemo main"),
            "Released object in an autorelease pool",
            &["the stack shows the pool only"],
        ),
        case("weak-reference", garbage().frames("libobjc.A.dylib objc_loadWeakRetained\nDemo -[Cart total]\nDemo main"), "Bad access in a weak reference", &["weak variable"]),
        case("objc-runtime", garbage().frames("libobjc.A.dylib cache_getImp\nDemo -[Cart total]\nDemo main"), "Bad access inside the Objective-C runtime", &["cache_getImp"]),
    ]
}

fn others() -> Vec<Case> {
    vec![
        case(
            "trap",
            report("EXC_BREAKPOINT", "SIGTRAP")
                .codes("0x1, 0x100000100")
                .registers("esr=0xf2000001")
                .frames(APP),
            "Deliberate trap",
            &[
                "The instruction says: a trap by the compiler",
                "Swift's runtime checks",
                "does not tell which check",
            ],
        ),
        case(
            "bad-instruction",
            report("EXC_BAD_INSTRUCTION", "SIGILL").codes("0x1, 0xd50c879f").frames(APP),
            "Privileged or system instruction: 0xd50c879f",
            &["EXC_ARM_UNDEFINED"],
        ),
        case(
            "arithmetic",
            report("EXC_ARITHMETIC", "SIGFPE")
                .arch(Arch::X86_64)
                .codes("EXC_I386_DIV (divide by zero)")
                .frames(APP),
            "Arithmetic error: division by zero",
            &["EXC_I386_DIV: an integer division by zero"],
        ),
    ]
}

/// Reports close to those of a rule, of which another rule has to tell.
fn negative() -> Vec<(&'static str, Case)> {
    let trap = || report("EXC_BREAKPOINT", "SIGTRAP").codes("0x1, 0x100000100");
    // A crash's own form, whatever the report's type says that it is.
    let aborted = |source| crash("SIGABRT").with(|report| report.source = source);
    let no_event =
        |id| (id, case("abort", aborted(Source::AppleIps), "Abort (SIGABRT) without a reason", &[]));
    vec![
        no_event("memory-event"),
        no_event("kernel-panic"),
        no_event("samples"),
        no_event("stackshot"),
        no_event("other-kind"),
        ("metrickit", case("abort", aborted(Source::MetricKit), "Abort (SIGABRT) without a reason", &[])),
        (
            "simulated",
            case("anything", report("EXC_EMULATION", "").note("EXC_CORPSE_NOTIFY"), "EXC_EMULATION", &[]),
        ),
        (
            "resource",
            case(
                "abort",
                crash("SIGABRT").message("(Limit 150/sec) Observed 206/sec"),
                "Ended by SIGABRT: (Limit 150/sec) Observed 206/sec",
                &[],
            ),
        ),
        ("guard", case("abort", crash("SIGABRT").frames(ABORT), "The process ended itself", &[])),
        (
            "killed",
            case(
                "null-pointer",
                access("KERN_INVALID_ADDRESS at 0x8")
                    .termination("SIGNAL", 11, "Segmentation fault: 11")
                    .frames(APP),
                "Null pointer",
                &[],
            ),
        ),
        (
            "sanitizer",
            case("abort", crash("SIGABRT").said("", "linked with Address Sanitizer").frames(ABORT), "The process ended itself", &[]),
        ),
        // A reporter's signal handler that makes an exception of its own.
        (
            "objc-throw",
            case(
                "cpp-exception",
                crash("SIGABRT").frames("libobjc.A.dylib objc_exception_throw\nDemo SignalHandler\nlibsystem_kernel.dylib _sigtramp\nDemo -[Cart total]\nDemo main"),
                "Uncaught exception",
                &[],
            ),
        ),
        (
            "joinable-thread",
            case(
                "cpp-exception",
                crash("SIGABRT").frames("libsystem_kernel.dylib abort\nDemo std::terminate()\nDemo __cxa_throw\nDemo std::__1::thread::~thread()\nDemo main"),
                "Uncaught exception",
                &[],
            ),
        ),
        ("sent-signal", case("unmapped", report("EXC_BAD_ACCESS", "SIGSEGV").codes("SEGV_MAPERR at 0x600fbeb80").frames(APP), "Bad pointer", &[])),
        ("loader-message", case("abort", words_of("libother.so"), "", &[])),
        ("qt-platform", case("abort", words_of("libQt6Core.so"), "", &[])),
        ("java-memory", case("abort", words_of("javac"), "", &[])),
        ("exit-code", case("anything", exit_code(Source::default()), "", &[])),
        (
            "signal-alone",
            case(
                "address-untold",
                signal_without_stack(Source::default()),
                "Bad memory access at an address that the report does not give",
                &[],
            ),
        ),
        // Apple's hangs, and crashes that were kept, have rules of their own.
        (
            "watched-hang",
            case(
                "anything",
                watched("hang", "Time without running", "9 ms").with(|report| report.source = Source::default()),
                "The report does not tell what happened",
                &[],
            ),
        ),
        (
            "failing-exit",
            case(
                "anything",
                watched("exit", "Exit code", "3").with(|report| report.event = None),
                "The report does not tell what happened",
                &[],
            ),
        ),
        (
            "message",
            case(
                "anything",
                watched("the cart is empty", "level", "warning").with(|report| report.source = Source::default()),
                "The report does not tell what happened",
                &[],
            ),
        ),
        ("launch-hang", case("signal", crash("SIGQUIT").frames(APP), "Ended by a supervising process", &[])),
        (
            "client-bug",
            case(
                "trap",
                trap().said("", "Performing @selector(client:) from sender NSMenuItem"),
                "Deliberate trap",
                &[],
            ),
        ),
        (
            "objc-exception",
            case(
                "cpp-exception",
                crash("SIGABRT").said("", "terminating with uncaught exception of type int").frames(ABORT),
                "Uncaught C++ exception: int",
                &[],
            ),
        ),
        (
            "malloc-message",
            case(
                "abort",
                crash("SIGABRT").said("", "abort() called").frames(ABORT),
                "The process ended itself",
                &[],
            ),
        ),
        (
            "swift-message",
            case(
                "assertion",
                crash("SIGABRT")
                    .said("", "Assertion failed: (x), function f, file a.c, line 1.")
                    .frames(ABORT),
                "Assertion failed: (x)",
                &[],
            ),
        ),
        (
            "swift-runtime-failure",
            case("trap", trap().frames("Demo Cart.total.getter\nDemo main"), "Deliberate trap", &[]),
        ),
        (
            "assertion",
            case(
                "abort",
                crash("SIGABRT").said("", "the assertion holds").frames(ABORT),
                "The process ended itself",
                &[],
            ),
        ),
        // CFRelease on top of a bad access is a released object, not the trap for NULL.
        (
            "telling-frame",
            case(
                "reference-counting",
                access("KERN_INVALID_ADDRESS at 0x600fbeb80")
                    .frames("UIKitCore CFRelease\nDemo -[Cart total]"),
                "CFRelease on a released",
                &[],
            ),
        ),
        (
            "cpp-exception",
            case(
                "abort",
                crash("SIGABRT").said("", "terminating on request").frames(ABORT),
                "The process ended itself",
                &[],
            ),
        ),
        (
            "code-signature",
            case("unmapped", access("KERN_INVALID_ADDRESS at 0x600fbeb80").frames(APP), "Bad pointer", &[]),
        ),
        // Near null, both address and stack pointer prove nothing.
        // Its callers are known: the stack is one.
        (
            "bad-stack-pointer",
            case(
                "stack-overflow",
                no_stack("SEGV_MAPERR", 0x4141_4141_3ff8)
                    .registers("rsp=0x414141414000 rip=0x100000100")
                    .frames("Demo fill\nDemo main"),
                "Stack overflow, very probably",
                &[],
            ),
        ),
        (
            "stack-overflow",
            case(
                "null-pointer",
                access("KERN_INVALID_ADDRESS at 0x10").registers("sp=0x0").frames(APP),
                "Null pointer",
                &[],
            ),
        ),
        (
            "code-fetch",
            case(
                "null-pointer",
                access("KERN_INVALID_ADDRESS at 0x0").registers("pc=0x100000100").frames(APP),
                "Null pointer access at 0x0",
                &[],
            ),
        ),
        (
            "objc-message",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x600fbeb80")
                    .frames("Demo -[Cart total]\nlibobjc.A.dylib objc_msgSend"),
                "Bad pointer",
                &[],
            ),
        ),
        (
            "reference-counting",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x600fbeb80").frames("Demo releaseAll\nDemo main"),
                "Bad pointer",
                &[],
            ),
        ),
        (
            "weak-reference",
            case(
                "objc-runtime",
                access("KERN_INVALID_ADDRESS at 0x600fbeb80")
                    .frames("libobjc.A.dylib lookUpImpOrForward\nDemo main"),
                "Bad access inside",
                &[],
            ),
        ),
        (
            "objc-runtime",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x600fbeb80").frames("Kit cache_getImp\nDemo main"),
                "Bad pointer",
                &[],
            ),
        ),
        (
            "pointer-authentication",
            case("unmapped", access("KERN_INVALID_ADDRESS at 0x186a18d80").frames(APP), "Bad pointer", &[]),
        ),
        (
            "memory-tagging",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x106a18d80").registers(READ).frames(APP),
                "Bad pointer: read at",
                &[],
            ),
        ),
        (
            "null-pointer",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x4000").frames(APP),
                "Bad pointer at 0x4000",
                &["first 4 GB"],
            ),
        ),
        (
            "below-null",
            case(
                "beyond-address-space",
                access("KERN_INVALID_ADDRESS at 0xffffffffffff0000").frames(APP),
                "Bad pointer at 0xffffffffffff0000",
                &[],
            ),
        ),
        // Apple's kernels write BUS_ADRALN for nearly everything.
        (
            "misaligned",
            case(
                "unmapped",
                report("", "SIGBUS").codes("BUS_ADRALN at 0x600fbeb81").frames(APP),
                "Bad pointer",
                &[],
            ),
        ),
        (
            "memory-error",
            case(
                "protection",
                report("EXC_BAD_ACCESS", "SIGBUS")
                    .subtype("KERN_PROTECTION_FAILURE at 0x106a18000")
                    .frames(APP),
                "Memory access that its protection forbids at 0x106a18000",
                &[],
            ),
        ),
        (
            "address-untold",
            case(
                "null-pointer",
                report("EXC_BAD_ACCESS", "SIGBUS")
                    .codes("0x0, 0x8")
                    .registers("x8=0x0 pc=0x100000100")
                    .frames(APP),
                "Null pointer access at 0x0",
                &["is assumed"],
            ),
        ),
        (
            "beyond-address-space",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x7fff00000000").frames(APP),
                "Bad pointer",
                &[],
            ),
        ),
        (
            "protection",
            case(
                "unmapped",
                access("KERN_INVALID_ADDRESS at 0x100000300").registers(READ).frames(APP),
                "Bad pointer: read",
                &[],
            ),
        ),
        (
            "unmapped",
            case(
                "address-untold",
                report("EXC_BAD_ACCESS", "SIGSEGV").frames(APP),
                "Bad memory access at an address that the report does not give",
                &[],
            ),
        ),
        (
            "malloc-frames",
            case(
                "abort",
                crash("SIGABRT")
                    .frames("libsystem_kernel.dylib abort\nDemo -[Cart total]\nlibsystem_malloc.dylib -"),
                "The process ended itself",
                &[],
            ),
        ),
        ("abort", case("trap", trap().frames(APP), "Deliberate trap", &[])),
        (
            "trap",
            case(
                "bad-instruction",
                report("EXC_BAD_INSTRUCTION", "SIGILL").codes("0x1, 0xf7f8a000"),
                "Undefined instruction: 0xf7f8a000",
                &[],
            ),
        ),
        (
            "bad-instruction",
            case(
                "trap",
                report("EXC_BAD_INSTRUCTION", "SIGILL").arch(Arch::X86_64).codes("EXC_I386_INVOP"),
                "Illegal instruction: most likely a deliberate trap",
                &[],
            ),
        ),
        ("arithmetic", case("anything", report("EXC_SOFTWARE", ""), "EXC_SOFTWARE", &[])),
        (
            "stated-exception",
            case("objc-exception", thrown(ThrowingRuntime::ObjectiveC, "NSX", true), "Handled NSX: why", &["went on"]),
        ),
        ("signal", case("abort", crash("SIGABRT"), "Abort", &[])),
        ("memory-limit", case("sigkill", kscrash("termination"), "Killed", &[])),
        ("c-library-message", case("abort", core_with("libother.so"), "", &[])),
        ("rust-panic", case("abort", core_in("core::fmt::write"), "", &[])),
        ("go-panic", case("abort", core_in("runtime.mallocgc"), "", &[])),
        (
            "sigkill",
            case(
                "killed",
                crash("SIGKILL").termination("SIGNAL", 9, ""),
                "Killed with SIGKILL",
                &["does not tell who"],
            ),
        ),
        (
            "system-words",
            case(
                "bad-instruction",
                report("EXC_BAD_INSTRUCTION", "SIGILL")
                    .codes("0x1, 0x0")
                    .said("AppKit", "Over-release of NSResponder or subclass")
                    .frames("Demo -[Cart close]\nDemo main"),
                "",
                &[],
            ),
        ),
        (
            "recursion-alone",
            case(
                "anything",
                looping(6).with(|report| report.exception = None),
                "The report does not tell what happened",
                &[],
            ),
        ),
        (
            "reporters-words",
            case(
                "anything",
                report("", "").with(|report| report.exception = None),
                "The report does not tell what happened",
                &[],
            ),
        ),
        ("anything", case("signal", crash("SIGTERM"), "Asked to end", &[])),
    ]
}

/// A stack on which the app's function stands `times` times.
fn looping(times: usize) -> Build {
    report("", "").frames("UIKitCore objc_layout\nDemo -[Cart total]\nDemo main").with(|report| {
        let frames = &mut report.process.threads[0].frames;
        let again = frames[1].clone();
        frames.splice(1..2, std::iter::repeat_n(again, times));
    })
}

#[test]
fn each_rule_leads_where_it_should() {
    let rules: Vec<&str> = positive().iter().map(|case| case.rule).collect();
    for rule in &LEADING {
        assert!(rules.contains(&rule.id), "no case for {}", rule.id);
    }
    check(positive());
}

#[test]
fn and_leaves_what_is_close_by_to_others() {
    let cases = negative();
    for rule in &LEADING {
        assert!(cases.iter().any(|(id, _)| *id == rule.id), "no case for {}", rule.id);
    }
    for (id, case) in &cases {
        assert_ne!(*id, case.rule);
    }
    check(cases.into_iter().map(|(_, case)| case).collect());
}

#[test]
fn registers_and_regions_tell_more() {
    check(vec![
        // Two registers that hold nothing like an address: the processor does not tell which one it was.
        case(
            "address-untold",
            report("EXC_BAD_ACCESS", "SIGSEGV").arch(Arch::X86_64).codes("EXC_I386_GPFLT").registers("rax=0x5555555555555555 rip=0x100000100"),
            "Bad pointer, probably 0x5555555555555555",
            &["MallocScribble", "does not report the address"],
        ),
        case(
            "address-untold",
            report("EXC_BAD_ACCESS", "SIGSEGV").arch(Arch::X86_64).codes("EXC_I386_GPFLT").registers("rax=0x10 rip=0x100000100"),
            "General protection fault",
            &["no register holds such a pointer"],
        ),
        case("unmapped", access("KERN_INVALID_ADDRESS at 0x5555555555555560").arch(Arch::Unknown).frames(APP).with(|report| report.process.arch = Some(Arch::Armv7)), "Bad pointer", &["0x55"]),
        case(
            "stack-overflow",
            access("KERN_PROTECTION_FAILURE at 0x16bc7fff0").section("VM Region Info", "0x16bc7fff0 is in 0x16bc7c000-0x16bc80000;\n--->  STACK GUARD  16bc7c000-16bc80000 [ 16K] ---/rwx SM=NUL  stack guard for thread 0"),
            "Stack overflow",
            &["VM Region Info: ---> STACK GUARD"],
        ),
        case(
            "protection",
            access("KERN_PROTECTION_FAILURE at 0x16bc7fff0").section("VM Region Info", "--->  STACK GUARD  16bc7c000-16bc80000 [ 16K] ---/rwx SM=NUL  stack guard for thread 7").frames(APP),
            "Stray access to another thread's stack guard",
            &["not a recursion of this thread"],
        ),
        case(
            "code-fetch",
            access("KERN_PROTECTION_FAILURE at 0x106a18d80").registers("pc=0x106a18d80").section("VM Region Info", "--->  MALLOC_TINY  106a00000-106b00000 [ 1M] rw-/rwx SM=PRV").frames("??? -\nDemo main"),
            "Jump into memory that may not be executed: 0x106a18d80 in MALLOC_TINY",
            &["mapped but is no code"],
        ),
        case(
            "code-fetch",
            access("KERN_INVALID_ADDRESS at 0x0f24000186a18d80 -> 0x0000000186a18d80 (possible pointer authentication failure)")
                .registers("pc=0xf24000186a18d80")
                .frames("??? -\nDemo main"),
            "Jump to 0xf24000186a18d80, whose upper bits are no address",
            &["failed pointer authentication, or a function pointer"],
        ),
        case(
            "objc-message",
            access("KERN_INVALID_ADDRESS at 0x10").registers("x0=0x10 x1=0x188057a33").frames(MESSAGE),
            "Message to something that is no object: receiver 0x10",
            &["a number was taken for one"],
        ),
        case(
            "objc-message",
            access("KERN_INVALID_ADDRESS at 0x600fbeb80").field("threads[0].threadState.x[1].objc-selector", "loadURL:").frames(MESSAGE),
            "Message `loadURL:` to a released",
            &[],
        ),
    ]);
}

#[test]
fn recursion_is_told_by_repeating_frames() {
    let frames = "Demo -[Node walk]\n".repeat(60);
    let same = |build: Build| {
        build.frames(&frames).with(|report| {
            let address = report.process.threads[0].frames[1].address;
            report.process.threads[0].frames.iter_mut().skip(1).for_each(|frame| frame.address = address);
        })
    };
    check(vec![case(
        "stack-overflow",
        same(report("EXC_BAD_ACCESS", "SIGBUS").arch(Arch::Armv7).codes("0x2, 0x0")),
        "Stack overflow, very probably",
        &["59 frames from frame 1 on are the same frame", "`-[Node walk]` in Demo"],
    )]);
    let depth = |build: Build| {
        build.with(|report| {
            report.process.threads[0].recursion = Some(backtrail_model::Recursion {
                depth: 58_038,
                first_elided: Some(10),
                last_elided: Some(58_000),
            });
        })
    };
    let message =
        report("EXC_BAD_ACCESS", "SIGSEGV").message("Thread stack size exceeded due to excessive recursion");
    check(vec![case(
        "stack-overflow",
        depth(message),
        "Stack overflow",
        &["had 58038 frames", "Exception Message: Thread stack size"],
    )]);
}

#[test]
fn the_watchdogs_account_is_read_and_the_main_thread_cited() {
    let account = "scene-create watchdog transgression: application<com.acme.demo>:31 exhausted real (wall clock) time allowance of 19.97 seconds | ProcessVisibility: Foreground | WatchdogEvent: scene-create | WatchdogCPUStatistics: ( | \"Elapsed total CPU time (seconds): 15.390 (user 15.390, system 0.000), 38% CPU\", | \"Elapsed application CPU time (seconds): 0.070, 0% CPU\" | )";
    let waits = crash("SIGKILL")
        .termination("SPRINGBOARD", 0x8bad_f00d, account)
        .frames("libsystem_kernel.dylib __ulock_wait\nlibsystem_kernel.dylib _os_unfair_lock_lock_slow\nDemo -[Store open]\nUIKitCore UIApplicationMain\nDemo main")
        .thread("libsystem_kernel.dylib __psynch_mutexwait\nKit -[KITCache flush]\nKit work");
    let busy = crash("SIGKILL")
        .termination("FRONTBOARD", 2_343_432_205, "<RBSTerminateContext| domain:10 code:0x8BADF00D explanation:scene-update watchdog transgression: application<x>:1 exhausted real (wall clock) time allowance of 10.00 seconds\n\"Elapsed application CPU time (seconds): 9.5, 45% CPU\"")
        .frames("Demo -[Cart total]\nUIKitCore UIApplicationMain\nDemo main");
    let idle = crash("SIGKILL")
        .termination("SPRINGBOARD", 0x8bad_f00d, "")
        .frames("libsystem_kernel.dylib mach_msg2_trap\nUIKitCore __CFRunLoopServiceMachPort\nDemo main");
    let old = report("00000020", "").codes("0x8badf00d").frames(APP);
    check(vec![
        case(
            "killed",
            waits,
            "Killed by the watchdog (scene-create): not done after 19.97 s",
            &[
                "The main thread was waiting for a lock (or a thread that holds one), called by `-[Store open]` in Demo",
                "Thread 1 frame 1: -[KITCache flush] + 8 (Kit): waits for a mutex",
                "Elapsed application CPU time (seconds): 0.070, 0% CPU",
                "does not tell who holds what",
                "hardly ran",
            ],
        ),
        case(
            "killed",
            busy,
            "Killed by the watchdog (scene-update): not done after 10.00 s",
            &["It was busy", "was running `-[Cart total]`"],
        ),
        case(
            "killed",
            idle,
            "Killed by the watchdog",
            &["idle in its run loop", "does not tell whether it was busy or waiting"],
        ),
        case("killed", old, "Killed by the watchdog", &["was running `-[Cart total]`"]),
    ]);
}

#[test]
fn terminations_are_told_with_their_words() {
    let dyld = crash("SIGABRT").termination("DYLD", 1, "Library missing\nLibrary not loaded: @rpath/Kit.framework/Kit\nReferenced from: <04B8> /Applications/Demo.app/Demo\nReason: tried: '/usr/lib/Kit' (no such file)\n(terminated at launch; ignore backtrace)");
    let tcc = crash("SIGABRT").termination("TCC", 0, "This app has crashed because it attempted to access privacy-sensitive data without a usage description. The app's Info.plist must contain an NSCameraUsageDescription key");
    let jetsam = crash("SIGKILL").termination("JETSAM", 7, "");
    let signing = crash("SIGKILL").termination("CODESIGNING", 2, "Invalid Page");
    let unknown = crash("SIGKILL").termination("LIBXPC", 77, "peer is gone");
    let by = crash("SIGKILL").termination("SIGNAL", 9, "Killed: 9").with(|report| {
        report.termination.as_mut().unwrap().by_process = Some("runningboardd".to_owned());
    });
    check(vec![
        case(
            "killed",
            dyld,
            "A library was not found at launch: @rpath/Kit.framework/Kit",
            &[
                "Library not loaded: @rpath/Kit.framework/Kit",
                "Referenced from:",
                "the stack does not matter",
                "No file was found",
            ],
        ),
        case(
            "killed",
            tcc,
            "Private data accessed without a usage description",
            &["The missing key is NSCameraUsageDescription."],
        ),
        case("killed", jetsam, "Killed for using too much memory", &["does not tell what used the memory"]),
        case("killed", signing, "Killed for a page of code", &["codesign --verify"]),
        case(
            "killed",
            unknown,
            "Ended by the library for talking to services (LIBXPC)",
            &["Code 0x4d peer is gone"],
        ),
        case("killed", by, "Killed with SIGKILL by runningboardd", &["killed it with SIGKILL"]),
    ]);
}

#[test]
fn limits_and_guards_are_told_by_words_where_there_are_no_codes() {
    check(vec![
        case(
            "resource",
            report("EXC_RESOURCE -> CPU_FATAL", "").subtype("CPU").message("(Limit 50%) Observed 85%"),
            "Too much CPU time",
            &["The limit was one that ends the process", "no codes with the numbers"],
        ),
        case(
            "resource",
            report("EXC_RESOURCE", "")
                .subtype("MEMORY")
                .raw(&[3 << 61 | 1 << 58 | 1450])
                .note("NON-FATAL CONDITION (this is NOT a crash)"),
            "Too much memory",
            &["1450 MB", "The process was not ended", "who asked last"],
        ),
        case(
            "resource",
            report("EXC_RESOURCE", "").subtype("LICHENS"),
            "A limit on a resource was exceeded",
            &[],
        ),
        case(
            "guard",
            report("EXC_GUARD", "")
                .subtype("GUARD_TYPE_FD")
                .message("CLOSE on file descriptor 14 (guarded with 0x08fd4dbfade2dead)"),
            "Forbidden use of a file descriptor: CLOSE",
            &["file descriptor 14", "SQLite's"],
        ),
        // Systems of 2013 left the type bits empty.
        case(
            "guard",
            report("EXC_GUARD", "").codes("0x0000000100000000, 0x08fd4dbfade2dead"),
            "Forbidden use of a file descriptor: CLOSE",
            &["SQLite's"],
        ),
        case(
            "guard",
            report("EXC_GUARD", "").raw(&[5 << 61 | 1 << 32, 0x2_8000_0000]),
            "Forbidden use of memory: DEALLOC_GAP",
            &["already unmapped"],
        ),
        case("guard", report("EXC_GUARD", "").codes("nothing"), "A guard of the system was violated", &[]),
    ]);
}

/// Cut reports, and what a console showed, say what is missing instead of what is not so.
#[test]
fn what_is_missing_is_said() {
    let cut = access("KERN_INVALID_ADDRESS at 0xb8").field("Crashed Thread", "14").with(|report| {
        report.process.threads.clear();
        report.process.crashed_thread = None;
    });
    let guard = access("KERN_PROTECTION_FAILURE at 0x70000").field("Crashed Thread", "19").with(|report| {
        report.process.threads.clear();
        report.process.crashed_thread = None;
    });
    let guard = guard.section(
        "VM Regions Near 0x70000",
        "--> STACK GUARD  70000-71000 [ 4K] ---/rwx SM=NUL  stack guard for thread 2",
    );
    check(vec![
        case("null-pointer", cut, "Null pointer access at 0xb8", &["ends before the stack of thread 14"]),
        case("protection", guard, "Stray access to another thread's stack guard", &["thread 19"]),
    ]);
    let bare = report("", "").said("", "libc++abi: terminating due to uncaught exception of type E: x").with(
        |report| {
            report.process.threads.clear();
            report.process.crashed_thread = None;
            report.exception = None;
        },
    );
    let text = all_text(&explain(&bare.done()));
    assert!(text.contains("The report has no stack."), "{text}");
    assert!(!text.contains("which thread") && !text.contains("the crashed thread"), "{text}");
}

/// The line of newer text reports that has the reason of an Objective-C exception, and no class.
#[test]
fn the_reason_of_a_thrown_exception_without_its_class() {
    let thrown = crash("SIGABRT")
        .message("+[%s %s]: unrecognized selector sent to class 0x105822dc8")
        .thrown("CoreFoundation __exceptionPreprocess\nlibobjc.A.dylib objc_exception_throw\nDemo main");
    let other = crash("SIGABRT")
        .message("the cart is broken")
        .thrown("CoreFoundation __exceptionPreprocess\nlibobjc.A.dylib objc_exception_throw\nDemo main");
    check(vec![
        case(
            "objc-exception",
            thrown,
            "Uncaught NSInvalidArgumentException: +[%s %s]: unrecognized",
            &["Exception Reason:"],
        ),
        case("objc-exception", other, "Uncaught exception: the cart is broken", &[]),
    ]);
}

/// A library that is there and was refused is not said to be missing.
#[test]
fn a_library_whose_signature_was_refused() {
    let refused = |words: &str| {
        crash("SIGABRT").termination("DYLD", 1, "").with(|report| {
            let lines = ["Library not loaded: @rpath/A.framework/A", "Referenced from: /x", words];
            let termination = report.termination.as_mut().unwrap();
            termination.details = lines.map(str::to_owned).to_vec();
        })
    };
    let teams = refused(
        "Reason: tried: '/a' (code signature in '/a' not valid for use in process: mapping process and mapped file (non-platform) have different Team IDs), '/b' (no such file)",
    );
    let missing = refused("Reason: tried: '/a' (no such file)");
    let text = all_text(&explain(&teams.done()));
    assert!(text.starts_with("A library was refused at launch: @rpath/A.framework/A"), "{text}");
    assert!(
        text.contains("different teams") && !text.contains("not embedded") && !text.contains("No file"),
        "{text}"
    );
    let text = all_text(&explain(&missing.done()));
    assert!(text.contains("not embedded") && text.contains("No file was found"), "{text}");
}
