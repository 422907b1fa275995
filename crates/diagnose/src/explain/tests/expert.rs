//! What somebody who reads such reports every day looks at first, one test a habit. Stacks are those of public reports, cut
//! and renamed; where one is from a page, the test names it.

use super::super::testing::{Build, report};
use super::super::{Explanation, explain};
use crate::blamed;
use backtrail_core::{Arch, Trust};
use backtrail_model::{Image, ReportedSymbol};

fn crash(signal: &str) -> Build {
    report("EXC_CRASH", signal).codes("0x0000000000000000, 0x0000000000000000")
}

fn access(codes: &str) -> Build {
    report("EXC_BAD_ACCESS", "SIGSEGV").subtype(codes)
}

fn all(explanation: &Explanation) -> String {
    let lists = [&explanation.evidence, &explanation.causes, &explanation.next_steps];
    let heads = [&explanation.title, &explanation.summary];
    heads.into_iter().chain(lists.into_iter().flatten()).cloned().collect::<Vec<_>>().join("\n")
}

/// The title, and that the explanation holds some texts and not others.
#[track_caller]
fn expect(build: Build, rule: &str, title: &str, holds: &[&str], lacks: &[&str]) {
    let explanation = explain(&build.done());
    let text = all(&explanation);
    assert_eq!(explanation.rule, rule, "{text}");
    assert!(explanation.title.starts_with(title), "{title:?} expected of {text}");
    holds.iter().for_each(|part| assert!(text.contains(part), "{part:?} expected in:\n{text}"));
    lacks.iter().for_each(|part| assert!(!text.contains(part), "{part:?} not expected in:\n{text}"));
}

/// Where to look first: the function's name, or the image and offset.
#[track_caller]
fn expect_place(build: Build, place: Option<&str>) {
    let report = build.done();
    let blamed = blamed(&report);
    let name = blamed.as_ref().map(|blamed| crate::names::cite(&report, &blamed.stack, blamed.frame));
    assert_eq!(name.as_deref(), place);
}

const MAIN: &str = "UIKitCore UIApplicationMain\nDemo main";
const IDLE: &str = "libsystem_kernel.dylib mach_msg2_trap\nUIKitCore __CFRunLoopServiceMachPort\nUIKitCore GSEventRunModal\nUIKitCore UIApplicationMain\nDemo main";

/// Gives the frame at `index` of the crashed thread an offset from its symbol's start.
fn offset(build: Build, index: usize, offset: u64) -> Build {
    build.with(|report| {
        let frame = &mut report.process.threads[0].frames[index];
        frame.reported.as_mut().unwrap().offset = Some(offset);
    })
}

// 6. The exception first.

/// iOS 14's reports have `abort() called` and the stack of the throw, not the reason.
#[test]
fn the_throw_stack_tells_what_no_message_does() {
    let thrown = |frames: &str| {
        let stack = format!(
            "UIKitCore __exceptionPreprocess\nlibobjc.A.dylib objc_exception_throw\n{frames}\nDemo -[Cart total]\n{MAIN}"
        );
        crash("SIGABRT").said("libsystem_c.dylib", "abort() called").thrown(&stack).frames(
            "libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nlibsystem_kernel.dylib abort_message\nlibobjc.A.dylib _objc_terminate()\nlibobjc.A.dylib std::__terminate(void (*)())\nUIKitCore _dispatch_client_callout",
        )
    };
    for (frames, title) in [
        (
            "UIKitCore -[NSObject(NSObject) doesNotRecognizeSelector:]\nUIKitCore ___forwarding___\nUIKitCore _CF_forwarding_prep_0\nUIKitCore -[_NSPlaceholderData initWithData:]",
            "Uncaught NSInvalidArgumentException: a message that the object does not know",
        ),
        ("UIKitCore -[__NSArrayM objectAtIndex:]", "Uncaught NSRangeException: an index beyond the bounds"),
        (
            "UIKitCore -[__NSPlaceholderDictionary initWithObjects:forKeys:count:]",
            "Uncaught NSInvalidArgumentException: nil put into a container",
        ),
        (
            "UIKitCore -[NSObject(NSKeyValueCoding) valueForUndefinedKey:]",
            "Uncaught NSUnknownKeyException: a key",
        ),
        (
            "UIKitCore -[NSObject(NSKeyValueObserverRegistration) removeObserver:forKeyPath:]",
            "Uncaught exception: an observer that does not fit",
        ),
        (
            "UIKitCore _AssertAutoLayoutOnAllowedThreadsOnly",
            "Uncaught NSInternalInconsistencyException: the interface used off the main thread",
        ),
        (
            "UIKitCore -[NSAssertionHandler handleFailureInMethod:object:file:lineNumber:description:]\nUIKitCore -[UITableView _endCellAnimationsWithContext:]",
            "Uncaught NSInternalInconsistencyException: changes of a table or collection view",
        ),
        ("UIKitCore -[SomeView somethingElse]", "Uncaught Objective-C exception"),
    ] {
        let build = thrown(frames);
        expect(
            build.clone(),
            "objc-throw",
            title,
            &["It was thrown below `-[Cart total]` in Demo"],
            &["C++", "__cxa_throw", "noexcept", "std::thread"],
        );
        expect_place(
            build,
            Some(&format!(
                "Last Exception Backtrace frame {}: -[Cart total] + 8 (Demo)",
                frames.lines().count() + 2
            )),
        );
    }
    expect(
        thrown(
            "UIKitCore -[NSObject(NSObject) doesNotRecognizeSelector:]\nUIKitCore ___forwarding___\nUIKitCore -[_NSPlaceholderData initWithData:]",
        ),
        "objc-throw",
        "Uncaught",
        &["The message was sent by `-[_NSPlaceholderData initWithData:]` in UIKitCore"],
        &[],
    );
}

#[test]
fn a_throw_of_cpp_stays_cpps() {
    let build =
        crash("SIGABRT").thrown("libobjc.A.dylib __cxa_throw\nDemo acme::parse(char const*)\nDemo main");
    expect(
        build
            .clone()
            .said("", "libc++abi: terminating due to uncaught exception of type std::out_of_range: vector"),
        "cpp-exception",
        "Uncaught C++ exception",
        &[],
        &["does not tell", "has no stack"],
    );
    expect(
        build.said("", "libc++abi: terminating due to uncaught exception of type NSException"),
        "cpp-exception",
        "Uncaught Objective-C exception",
        &[],
        &["noexcept", "__cxa_throw"],
    );
}

#[test]
fn a_reason_is_found_wherever_it_stands() {
    const REASON: &str = "-[MSStyle hasMarkers]: unrecognized selector sent to instance 0x608002a4f510";
    let title = "Uncaught exception: -[MSStyle hasMarkers]: unrecognized selector";
    let trap = || {
        report("EXC_BREAKPOINT", "SIGTRAP").frames("UIKitCore -[NSApplication _crashOnException:]\nDemo main")
    };
    expect(
        trap().said("AppKit", &format!("Crashing on exception: {REASON}")),
        "objc-exception",
        title,
        &["does not know"],
        &["no message"],
    );
    let uncaught = |reason: &str| {
        format!("*** Terminating app due to uncaught exception 'NSRangeException', reason: {reason}")
    };
    let title = "Uncaught NSRangeException: index 3 beyond bounds [0 .. 2]";
    for build in [
        crash("SIGABRT")
            .said("CoreFoundation", &uncaught("'index 3\nbeyond bounds [0 .. 2]'\nmore of another message")),
        crash("SIGABRT").said("CoreFoundation", &uncaught("\"index 3\nbeyond bounds [0 .. 2]\"")),
        crash("SIGABRT")
            .section("Application Specific Signatures", &uncaught("'index 3 beyond bounds [0 .. 2]'")),
        crash("SIGABRT").section("Filtered syslog", &uncaught("'index 3 beyond bounds [0 .. 2]'")),
        crash("SIGABRT").message(&uncaught("'index 3 beyond bounds [0 .. 2]'")),
        crash("SIGABRT").termination("LIBSYSTEM", 1, &uncaught("'index 3 beyond bounds [0 .. 2]'")),
        crash("SIGABRT").field(
            "exceptionReason",
            r#"{"composed_message":"index 3 beyond bounds [0 .. 2]","name":"NSRangeException"}"#,
        ),
    ] {
        expect(
            build,
            "objc-exception",
            title,
            &[],
            &["does not tell the reason", "no message is left", "no library left"],
        );
    }
}

#[test]
fn sanitizers_and_checkers_speak_first() {
    let abort = || {
        crash("SIGABRT").frames("libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nDemo -[Cart total]\nDemo main")
    };
    for (said, title) in [
        (
            "=================================================================\n==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x602000 at pc 0x10\nREAD of size 8",
            "AddressSanitizer: heap-use-after-free on address 0x602000",
        ),
        ("WARNING: ThreadSanitizer: data race (pid=4711)", "ThreadSanitizer: data race"),
        ("Cart.m:12:7: runtime error: signed integer overflow", "runtime error: signed integer overflow"),
        (
            "Main Thread Checker: UI API called on a background thread: -[UIView setFrame:]",
            "Main Thread Checker: UI API called on a background thread: -[UIView setFrame:]",
        ),
    ] {
        expect(abort().said("", said), "sanitizer", title, &[], &["no library left"]);
    }
}

#[test]
fn no_message_is_said_to_be_missing_where_there_is_one() {
    let bare = || crash("SIGABRT");
    expect(bare(), "abort", "Abort (SIGABRT)", &["no message is left"], &[]);
    expect(
        bare().said("", "connection to the server was lost"),
        "abort",
        "Ended by SIGABRT: connection to the server was lost",
        &["connection to the server was lost"],
        &["no message is left"],
    );
    expect(
        bare().section("Application Specific Signatures", "Unbalanced calls to %@"),
        "abort",
        "Ended by SIGABRT: Unbalanced calls",
        &["Unbalanced calls"],
        &["no message is left"],
    );
    expect(
        bare().said("", "stack buffer overflow"),
        "abort",
        "Ended by abort(): stack buffer overflow",
        &["stack protector"],
        &["another process", "without a reason"],
    );
    let nothing = report("EXC_SOFTWARE", "").said("", "hello");
    expect(nothing, "anything", "EXC_SOFTWARE", &["hello"], &["does not tell more"]);
}

// 7. Callers.

/// `__assert_rtn` ends with its call of abort(); iOS 11 names `basename_r`, which lies behind it.
#[test]
fn a_caller_at_symbol_plus_0_is_the_function_before() {
    let stack = "libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nlibsystem_c.dylib basename_r\nDemo -[Planet init]\nUIKitCore UIApplicationMain\nDemo main";
    let build = || offset(crash("SIGABRT").with(with_libc).frames(stack), 2, 0);
    expect(
        build(),
        "abort",
        "Failed assertion, very probably",
        &["right before `basename_r`", "a call that does not return"],
        &["basename_r +", "by `basename_r`"],
    );
    expect_place(build(), Some("Thread 0 frame 3: -[Planet init] + 8 (Demo)"));
    // A little further in it is the caller.
    let inside = offset(crash("SIGABRT").with(with_libc).frames(stack), 2, 4);
    expect(inside, "abort", "The process ended itself", &["by `basename_r`"], &[]);
    // Where a stack begins, reporters give the function's own start.
    let report = offset(crash("SIGABRT").frames("Demo f\nDemo thread_start"), 1, 0).done();
    assert_eq!(report.process.threads[0].frames[1].names().next(), Some("thread_start"));
}

fn with_libc(report: &mut backtrail_model::Report) {
    report.process.images.push(Image {
        name: "libsystem_c.dylib".to_owned(),
        path: Some("/usr/lib/system/libsystem_c.dylib".to_owned()),
        load_address: backtrail_core::Avma::new(0x1_8400_0000),
        end_address: Some(backtrail_core::Avma::new(0x1_8410_0000)),
        ..Image::default()
    });
}

fn translated(build: Build) -> Build {
    build.arch(Arch::X86_64).with(|report| report.process.translated = true)
}

/// "iOS Crash Dump Analysis" (F. Memon), chapter "Apple Silicon": a child of fork() under Rosetta.
#[test]
fn rosettas_frames_are_not_the_programs() {
    let stack = "??? -\nlibsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nDemo start_threads\nlibsystem_kernel.dylib _dispatch_worker_thread2";
    let forked = "*** multi-threaded process forked ***\ncrashed on child side of fork pre-exec";
    let build = || translated(crash("SIGABRT").frames(stack));
    expect(
        build(),
        "abort",
        "The process ended itself with abort()",
        &["below `start_threads` in Demo"],
        &["no image", "???"],
    );
    expect_place(build(), Some("Thread 0 frame 3: start_threads + 8 (Demo)"));
    expect(build().said("", forked), "abort", "Ended by abort(): ", &["posix_spawn"], &["does not tell why"]);
    // Without Rosetta, frame 0 in no image is a jump into nowhere.
    let native =
        access("KERN_INVALID_ADDRESS at 0x7fff0144ff40").registers("pc=0x7fff0144ff40").frames(stack);
    expect(native, "code-fetch", "Jump", &[], &[]);
}

#[test]
fn names_of_symbolicating_tools_are_read() {
    for name in
        ["-[NSException raise] (in CoreFoundation)", "objc_exception_throw + 59", "std::terminate() + 44"]
    {
        assert!(crate::suspect::skip::skip_reason(crate::names::base_name(name)).is_some(), "{name}");
    }
    let mut report = access("KERN_INVALID_ADDRESS at 0x8").frames("Demo -[Cart total]").done();
    let reported = |file: &str, line| ReportedSymbol {
        name: "f".to_owned(),
        offset: None,
        file: Some(file.to_owned()),
        line,
        column: None,
    };
    let frame = &mut report.process.threads[0].frames[0];
    frame.reported = Some(reported("Cart.swift", Some(0)));
    assert_eq!(crate::names::source_of(frame).as_deref(), Some("Cart.swift"));
    frame.reported = Some(reported("/<compiler-generated>", Some(0)));
    assert_eq!(crate::names::source_of(frame), None);
}

// 8. Kills.

/// The same book, chapter "Siri": thread 16 was inside fsync of SQLite, the main thread idle.
#[test]
fn a_file_lock_is_told_with_its_thread_and_line() {
    let sqlite = "libsystem_kernel.dylib fsync\nlibsqlite3.dylib unixSync\nlibsqlite3.dylib sqlite3_step\nDemo __25-[DataBase executeQuery:]_block_invoke\nlibsystem_kernel.dylib start_wqthread";
    let waits = "libsystem_kernel.dylib __ulock_wait\nlibsystem_kernel.dylib _dispatch_barrier_sync_f_slow\nDemo -[DataBase info]\nlibsystem_kernel.dylib start_wqthread";
    let build = || {
        crash("SIGKILL")
            .termination("SPRINGBOARD", 0xdead_10cc, "")
            .frames(IDLE)
            .thread(waits)
            .thread(sqlite)
            .with(|report| {
                let frame = &mut report.process.threads[2].frames[3];
                let reported = frame.reported.as_mut().unwrap();
                (reported.file, reported.line) = (Some("/src/DataBase.m".to_owned()), Some(1072));
            })
    };
    expect(
        build(),
        "killed",
        "Killed for holding a file lock",
        &[
            "Thread 2 is inside SQLite, called by `__25-[DataBase executeQuery:]_block_invoke` (DataBase.m:1072) in Demo",
        ],
        &["no stack shows", "idle"],
    );
    expect_place(build(), Some("Thread 2 frame 3: __25-[DataBase executeQuery:]_block_invoke + 8 (Demo)"));
    let flock = crash("SIGKILL")
        .termination("RUNNINGBOARD", 0xdead_10cc, "")
        .frames(IDLE)
        .thread("libsystem_kernel.dylib flock\nKit -[KITStore lock]\nlibsystem_kernel.dylib start_wqthread");
    expect(
        flock,
        "killed",
        "Killed for holding a file lock",
        &["Thread 1 is inside a file lock, called by `-[KITStore lock]` in Kit"],
        &[],
    );
    let none = crash("SIGKILL").termination("RUNNINGBOARD", 0xdead_10cc, "").frames(IDLE);
    expect(none, "killed", "Killed for holding a file lock", &["no stack shows a database"], &[]);
}

fn watchdog(frames: &str) -> Build {
    crash("SIGKILL").termination("FRONTBOARD", 0x8bad_f00d, "").frames(frames)
}

#[test]
fn the_watchdog_names_what_main_waits_for_and_who_could_let_it_go() {
    let sync = "libsystem_kernel.dylib __ulock_wait\nlibsystem_kernel.dylib __DISPATCH_WAIT_FOR_QUEUE__\nlibsystem_kernel.dylib _dispatch_sync_f_slow\nDemo -[Store open]\nUIKitCore UIApplicationMain\nDemo main";
    let works = "Demo -[Store vacuum]\nlibsystem_kernel.dylib start_wqthread";
    let on_queue = |build: Build| {
        build.with(|report| report.process.threads[1].queue = Some("com.acme.store".to_owned()))
    };
    expect(
        on_queue(watchdog(sync).thread(works))
            .thread("libsystem_kernel.dylib __workq_kernreturn\nlibsystem_kernel.dylib start_wqthread"),
        "killed",
        "Killed by the watchdog",
        &[
            "waiting for a dispatch queue (dispatch_sync), called by `-[Store open]` in Demo",
            "Thread 1 frame 0: -[Store vacuum] + 8 (Demo): runs on queue com.acme.store",
        ],
        &["Thread 2"],
    );
    // Nobody in the process can end a wait for the network or for another process.
    let network =
        "libsystem_kernel.dylib __connect\nDemo -[Api fetch]\nUIKitCore UIApplicationMain\nDemo main";
    expect(
        watchdog(network).thread(works),
        "killed",
        "Killed by the watchdog",
        &[
            "waiting for the network, called by `-[Api fetch]`",
            "Only the other side of the connection, or a timeout, can let it go on",
        ],
        &["Thread 1"],
    );
    for (call, what) in [
        ("fsync", "the file system"),
        ("semaphore_wait_trap", "a semaphore"),
        ("__psynch_mutexwait", "a mutex"),
    ] {
        let frames = format!(
            "libsystem_kernel.dylib {call}\nDemo -[Api fetch]\nUIKitCore UIApplicationMain\nDemo main"
        );
        expect(watchdog(&frames), "killed", "Killed by the watchdog", &[&format!("waiting for {what}")], &[]);
    }
}

/// developer.apple.com/forums/thread/725476: `+[RNSplashScreen show]` runs the loop until the app is up.
#[test]
fn an_idle_main_thread_is_said_to_be_idle_and_a_nested_loop_is_not() {
    expect(
        watchdog(IDLE),
        "killed",
        "Killed by the watchdog",
        &["the main thread was idle in its run loop"],
        &["called by"],
    );
    let nested = "libsystem_kernel.dylib mach_msg2_trap\nUIKitCore __CFRunLoopServiceMachPort\nUIKitCore CFRunLoopRunSpecific\nUIKitCore -[NSRunLoop(NSRunLoop) runMode:beforeDate:]\nDemo +[RNSplashScreen show]\nUIKitCore UIApplicationMain\nDemo main";
    expect(
        watchdog(nested),
        "killed",
        "Killed by the watchdog",
        &["an event loop of its own that `+[RNSplashScreen show]` in Demo runs"],
        &["was idle"],
    );
    expect_place(watchdog(nested), Some("Thread 0 frame 4: +[RNSplashScreen show] + 8 (Demo)"));
}

#[test]
fn limits_are_told_with_the_reports_own_figures() {
    // The same book, chapter "Resource crashes", iOS 5.
    let thermal = report("00000020", "")
        .codes("0xc00010ff")
        .field("Thermal Level", "16")
        .field("Thermal Sensors", "11336 29078 5149")
        .frames(IDLE);
    expect(
        thermal.clone(),
        "killed",
        "Killed to cool the device down",
        &["Thermal Level: 16", "Thermal Sensors: 11336 29078 5149"],
        &["main thread"],
    );
    expect_place(thermal, None);
    let cpu = report("EXC_RESOURCE", "")
        .subtype("CPU")
        .message("(Limit 80%) Observed 88% over 60 secs")
        .frames(IDLE);
    expect(cpu, "resource", "Too much CPU time: (Limit 80%) Observed 88% over 60 secs", &[], &[]);
    let wakeups = report("EXC_RESOURCE", "").raw(&[2 << 61 | 1 << 58 | 300 << 20 | 150, 206]);
    expect(
        wakeups,
        "resource",
        "Too many wake-ups: 206 (limit 150)",
        &["150 wake-ups per second over 300 seconds"],
        &[],
    );
    let watch = crash("SIGKILL").termination("CAROUSEL", 0xc51b_ad01, "CSLHandleBackgroundRefreshAction watchdog transgression: exhausted CPU time allowance of 4.00 seconds").frames(IDLE);
    expect(
        watch,
        "killed",
        "Watch app killed for too much CPU time",
        &["time allowance of 4.00 seconds"],
        &[],
    );
}

#[test]
fn codes_of_kills_are_told_and_unknown_ones_quoted() {
    // The same book, chapter "System terminations".
    let locked = crash("SIGKILL")
        .termination(
            "SPRINGBOARD",
            0x2bad_45ec,
            "Process detected doing insecure drawing while in secure mode",
        )
        .frames(IDLE);
    expect(
        locked,
        "killed",
        "Killed for drawing while the screen was locked (0x2bad45ec)",
        &["insecure drawing"],
        &[],
    );
    for code in [
        0x2182_bad2,
        0xbaad_ca11,
        0xbad2_2222,
        0xbadd_d15c,
        0xc000_10ff,
        0xc51b_ad02,
        0xd00d_2bad,
        0xdead_fa11,
    ] {
        let explanation = explain(&crash("SIGKILL").termination("RUNNINGBOARD", code, "").done());
        assert!(explanation.title.contains(&format!("({code:#x})")), "{explanation:#?}");
        assert!(!explanation.next_steps.is_empty(), "{code:#x}");
    }
    let unknown = crash("SIGKILL").termination("RUNNINGBOARD", 0x1234_5678, "<RBSTerminateContext| domain:15 code:0x12345678 explanation:the cat sat on it reportType:CrashLog>").frames(IDLE);
    expect(
        unknown,
        "killed",
        "Ended by the manager of processes' states (RUNNINGBOARD)",
        &["Termination Reason: the cat sat on it"],
        &["RBSTerminateContext", "does not tell why"],
    );
    let new = crash("SIGKILL").termination("NEWBOARD", 0x77, "peer is gone").frames(IDLE);
    expect(
        new,
        "killed",
        "Ended by NEWBOARD, code 0x77",
        &["peer is gone"],
        &["there is no termination reason"],
    );
}

// 9. What processor and runtimes say.

#[test]
fn failed_authentication_is_told_with_both_addresses() {
    let text = "KERN_INVALID_ADDRESS at 0x0f24000186a18d80 -> 0x0000000186a18d80 (possible pointer authentication failure)";
    expect(
        access(text).frames("Demo f"),
        "pointer-authentication",
        "Bad pointer 0xf24000186a18d80 (without its upper bits 0x186a18d80)",
        &["does not tell which"],
        &[],
    );
}

#[test]
fn a_refused_page_of_code_is_known_by_number_too() {
    let build = || report("EXC_BAD_ACCESS", "SIGKILL").frames("Demo f");
    for build in [
        build().codes("UNKNOWN_0x32 at 0x0000000104e9c000"),
        build().subtype("UNKNOWN_0x32 at 0x0000000104e9c000"),
        build().codes("0x32, 0x104e9c000"),
        build().subtype("KERN_CODESIGN_ERROR at 0x104e9c000"),
    ] {
        expect(
            build,
            "code-signature",
            "Killed for a page of code whose signature does not fit",
            &["codesign --verify"],
            &["race"],
        );
    }
}

/// The same book, chapter "Apple Silicon": AVX under Rosetta.
#[test]
fn avx_under_rosetta_is_told() {
    let build = || {
        report("EXC_BAD_INSTRUCTION", "SIGILL")
            .codes("0x0000000000000001, 0x0000000000000000")
            .frames("Demo -\nlibobjc.A.dylib _objc_msgSend_uncached\nUIKitCore NSApplicationMain\nDemo -")
    };
    expect(
        translated(build()),
        "trap",
        "Illegal instruction under Rosetta: AVX, or a deliberate trap",
        &["does not tell which"],
        &[],
    );
    let stream = |bytes: &str| {
        translated(build()).section("Thread 0 instruction stream", &format!("  90 90\n {bytes} <=="))
    };
    expect(stream("[c5]f8 77 c3"), "trap", "AVX instruction under Rosetta", &[], &["does not tell which"]);
    expect(stream("[0f]0b 66 2e"), "trap", "Deliberate trap", &[], &["AVX"]);
    expect(
        build().arch(Arch::X86_64),
        "trap",
        "Illegal instruction: most likely a deliberate trap",
        &[],
        &["Rosetta"],
    );
}

#[test]
fn kills_by_the_graphics_driver_are_told() {
    let build = |function: &str| {
        crash("SIGABRT").frames(&format!("libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort\nUIKitCore {function}\nDemo -[View draw]\n{MAIN}"))
    };
    expect(
        build("gpus_ReturnGuiltyForHardwareRestart"),
        "telling-frame",
        "Killed by the graphics driver",
        &["below `-[View draw]` in Demo"],
        &[],
    );
    expect(build("MTLReportFailure"), "telling-frame", "Metal's validation stopped the process", &[], &[]);
}

/// As macOS 26 writes it on a processor with memory tagging.
#[test]
fn memory_tagging_is_told_with_the_tag() {
    let build = report("EXC_BAD_ACCESS", "SIGKILL")
        .subtype("EXC_ARM_MTE_TAGCHECK_FAIL at 0x07000008db020050")
        .termination("MTE_FAIL", 262, "")
        .frames("Demo f");
    expect(
        build,
        "memory-tagging",
        "Memory tagging caught a stale or stray pointer at 0x8db020050",
        &["has the tag 0x7"],
        &[],
    );
}

#[test]
fn a_race_is_a_cause_only_where_another_thread_is_at_work_there() {
    let build = || {
        access("KERN_INVALID_ADDRESS at 0x0000000600fbeb80")
            .frames("Demo -[Cache get:]\nlibsystem_kernel.dylib start_wqthread")
    };
    let race = "A race: two threads";
    expect(build(), "unmapped", "Bad pointer", &[], &[race, "Thread Sanitizer"]);
    expect(
        build()
            .thread("libobjc.A.dylib objc_retain\nDemo -[Cache set:]\nlibsystem_kernel.dylib start_wqthread"),
        "unmapped",
        "Bad pointer",
        &[
            race,
            "Thread 1 frame 1: -[Cache set:] + 8 (Demo) is inside the same class, Cache",
            "Thread Sanitizer",
        ],
        &[],
    );
    expect(
        build().thread("Demo -[Other set:]\nlibsystem_kernel.dylib start_wqthread"),
        "unmapped",
        "Bad pointer",
        &[],
        &[race],
    );
    expect(build().thread("libsystem_kernel.dylib __psynch_cvwait\nDemo -[Cache wait]\nlibsystem_kernel.dylib start_wqthread"), "unmapped", "Bad pointer", &[], &[race]);
    let sdk = access("KERN_INVALID_ADDRESS at 0x0000000600fbeb80")
        .frames("Kit -[KITLoader load]")
        .thread("Kit -[KITCache flush]");
    expect(sdk, "unmapped", "Bad pointer", &[race, "is inside the same library"], &[]);
}

#[test]
fn managed_runtimes_are_recognised() {
    let with = |image: &str, function: &str| {
        access("KERN_INVALID_ADDRESS at 0x0000000600fbeb80")
            .with(|report| report.process.images[1].name = image.to_owned())
            .frames(&format!("{image} {function}\nDemo main"))
    };
    for (image, function, name) in [
        ("UnityFramework", "il2cpp::vm::Exception::Raise(Il2CppException*)", "Unity's engine"),
        ("libmonosgen-2.0.dylib", "mono_jit_runtime_invoke", "Mono"),
        ("libcoreclr.dylib", "-", ".NET's runtime"),
        ("Flutter", "-", "Flutter's engine"),
        ("hermes", "-", "React Native"),
        ("React", "-[RCTBridge run]", "React Native"),
    ] {
        expect(with(image, function), "unmapped", "Bad pointer", &[&format!("runs through {name}")], &[]);
    }
    expect(with("Kit", "-[KITLoader load]"), "unmapped", "Bad pointer", &[], &["runs through"]);
    let fatal = crash("SIGABRT").said("", "*** Terminating app due to uncaught exception 'RCTFatalException: Unhandled JS Exception: TypeError', reason: 'Unhandled JS Exception: TypeError: undefined is not a function'");
    expect(fatal, "objc-exception", "Uncaught RCTFatalException", &["source map"], &[]);
}

#[test]
fn registers_that_calls_use_are_cited() {
    let message = access("KERN_INVALID_ADDRESS at 0x600fbeb80")
        .registers("x0=0x7001c1a0 x1=0x180000a33")
        .frames("libobjc.A.dylib objc_msgSend\nDemo -[Cart total]\nDemo main");
    expect(
        message,
        "objc-message",
        "Message",
        &[
            "x0 = 0x7001c1a0: the receiver",
            "x1 = 0x180000a33: the address of the selector's name, in UIKitCore + 2611",
        ],
        &[],
    );
    let call = access("KERN_INVALID_ADDRESS at 0x600fbeb80")
        .registers("x0=0x7001c1a0 x8=0x600fbeb80 pc=0x600fbeb80 lr=0x100000104")
        .frames("??? -\nDemo f\nDemo main");
    expect(
        call,
        "code-fetch",
        "Jump to an address that is no code",
        &[
            "x8 holds 0x600fbeb80, as in a call of a virtual method",
            "x0 = 0x7001c1a0 would be its object",
            "lr = 0x100000104 (Demo + 260)",
        ],
        &[],
    );
}

// 10. Where.

#[test]
fn where_is_the_blamed_frame_or_frame_0_with_or_without_a_name() {
    let null = || access("KERN_INVALID_ADDRESS at 0x0000000000000008");
    expect_place(
        null().frames("libobjc.A.dylib objc_msgSend\nDemo -\nUIKitCore CFRunLoopRunSpecific\nDemo main"),
        Some("Thread 0 frame 1: Demo + 260"),
    );
    // Nothing of the app but main: frame 0, not main.
    expect_place(
        null().frames(&format!("libobjc.A.dylib objc_msgSend\nUIKitCore CFRunLoopRunSpecific\n{MAIN}")),
        Some("Thread 0 frame 0: objc_msgSend + 8 (libobjc.A.dylib)"),
    );
    expect_place(
        null().frames("UIKitCore -\nUIKitCore CFRunLoopRunSpecific"),
        Some("Thread 0 frame 0: UIKitCore + 256"),
    );
    expect_place(null(), None);
    // Ends and throws are never the place.
    let ends = "libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib pthread_kill\nlibsystem_kernel.dylib abort\nUIKitCore -[Thing check]\nUIKitCore UIApplicationMain\nDemo main";
    expect_place(crash("SIGABRT").frames(ends), Some("Thread 0 frame 3: -[Thing check] + 8 (UIKitCore)"));
    expect_place(
        crash("SIGABRT").frames("libsystem_kernel.dylib __pthread_kill\nlibsystem_kernel.dylib abort"),
        None,
    );
    // Closed by the user: no place at all.
    expect_place(crash("SIGKILL").termination("FRONTBOARD", 0xdead_fa11, "").frames(IDLE), None);
}

#[test]
fn nothing_rests_on_frames_that_were_found_by_scanning() {
    let build =
        crash("SIGABRT").frames("UIKitCore -[Thing check]\nDemo -[Cart total]\nDemo main").with(|report| {
            report.process.threads[0].frames[1].trust = Trust::Scan;
        });
    expect_place(build.clone(), Some("Thread 0 frame 0: -[Thing check] + 8 (UIKitCore)"));
    expect(build, "abort", "Abort", &[], &["Cart"]);
}

#[test]
fn evidence_does_not_repeat_the_head() {
    let explanation = explain(
        &access("KERN_INVALID_ADDRESS at 0x0000000000000008")
            .codes("0x1, 0x8")
            .frames(&format!("Demo -[Cart total]\n{MAIN}"))
            .done(),
    );
    let text = explanation.evidence.join("\n");
    for part in ["Exception Type", "Exception Codes", "Exception Subtype", "SIGSEGV", "frame 0"] {
        assert!(!text.contains(part), "{part}: {text}");
    }
}

#[test]
fn advice_that_cannot_apply_is_not_given() {
    let number = access("KERN_INVALID_ADDRESS at 0x10")
        .registers("x0=0x10")
        .frames("libobjc.A.dylib objc_msgSend\nDemo -[Cart total]\nDemo main");
    expect(number, "objc-message", "Message to something that is no object", &[], &["Zombie"]);
    let trap = report("EXC_BREAKPOINT", "SIGTRAP").codes("0x1, 0x100000100").frames("Demo f");
    expect(trap.clone(), "trap", "Deliberate trap", &[], &["Swift"]);
    let swift = trap.with(|report| report.process.images[4].name = "libswiftCore.dylib".to_owned());
    expect(swift, "trap", "Deliberate trap", &["Swift"], &[]);
    let stack = access("KERN_INVALID_ADDRESS at 0x8").frames("Demo -[Cart total]").thread("UIKitCore x");
    expect(stack, "null-pointer", "Null pointer", &[], &["Thread Sanitizer"]);
}

/// Crashlytics' exports name images and say no paths; its own code is linked into the app.
#[test]
fn a_crash_reporter_is_passed_over_where_nothing_tells_whose_its_image_is() {
    let rows = "Demo FIRCLSProcessRecordAllThreads\nDemo __CLSExceptionRecord_block_invoke\nlibsystem_kernel.dylib start_wqthread\n\
        Demo CLSTerminateHandler()\nlibobjc.A.dylib _objc_terminate\nDemo -[Cart load]\nUIKitCore UIApplicationMain";
    let build = report("", "").frames(rows).with(|report| {
        let process = &mut report.process;
        (process.path, process.identifier) = (None, None);
        process.images.clear();
        for frame in process.frames_mut() {
            (frame.image, frame.address) = (None, None);
        }
    });
    expect(build, "cpp-exception", "Uncaught exception", &["below `-[Cart load]` in Demo"], &["CLS"]);
}
