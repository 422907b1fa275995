//! Which reports are of one group, and which are not.

use super::{Group, group};
use crate::explain::testing::{Build, report};
use backtrail_core::ImageId;
use backtrail_model::{
    Backtrace, Exception, Frame, Language, Owner, OwnerKind, Report, ReportedSymbol, Source, Thread,
    ThrowingRuntime, ThrownException,
};
use std::sync::Arc;

mod begins;
mod fifth;

fn keys(build: &Build) -> Group {
    group(&build.clone().done()).unwrap()
}

fn crash(frames: &str) -> Build {
    report("EXC_BAD_ACCESS", "SIGSEGV").frames(frames)
}

const LOAD: &str = "Demo load_page(int)\nDemo main\nUIKitCore start";

#[test]
fn the_first_function_that_tells_is_the_group() {
    let one = keys(&crash(LOAD));
    let other = keys(&crash(
        "Demo void load_page<int>(int, char) [clone .cold]\nDemo other_way\nDemo main\nUIKitCore start",
    ));
    assert_eq!(one.symbol_key, other.symbol_key);
    assert_ne!(one.key, other.key);
    assert_eq!(one.place.as_deref(), Some("load_page"));
    let third = keys(&crash("Demo save_page(int)\nDemo main\nUIKitCore start"));
    assert_ne!(one.symbol_key, third.symbol_key);
}

#[test]
fn the_sort_of_event_counts() {
    let access = keys(&crash(LOAD));
    let abort = keys(&report("EXC_CRASH", "SIGABRT").frames(LOAD));
    assert_ne!(access.symbol_key, abort.symbol_key);
    assert_ne!(access.key, abort.key);
}

#[test]
fn helpers_count_with_their_callers() {
    let one = keys(&crash("Demo Buffer::at(int)\nDemo load_page\nDemo main\nUIKitCore start"));
    let other = keys(&crash("Demo Buffer::at(int)\nDemo save_page\nDemo main\nUIKitCore start"));
    assert_ne!(one.symbol_key, other.symbol_key);
    // Called from `main`, with nothing else in between, it is all there is.
    assert!(keys(&crash("Demo Buffer::at(int)\nDemo main\nUIKitCore start")).symbol_key.is_some());
    // Cut behind the helper: nothing tells which of its callers it was.
    let cut = keys(&crash("Demo Buffer::at(int)"));
    assert_eq!(cut.symbol_key, None);
}

#[test]
fn inlined_functions_are_functions() {
    let plain = keys(&crash("Demo Buffer::at(int)\nDemo load_page(int)\nDemo main\nUIKitCore start"));
    let inlined = keys(&crash("Demo Buffer::at(int) < load_page(int) < main\nUIKitCore start"));
    assert_eq!(plain.symbol_key, inlined.symbol_key);
}

#[test]
fn what_throws_and_allocates_is_passed_over() {
    let plain = keys(&crash(LOAD));
    let library = keys(&crash(
        "libsystem_malloc.dylib free\nDemo std::vector<int>::at(unsigned long)\nDemo operator new(unsigned long)\nDemo load_page(int)\nDemo main",
    ));
    assert_eq!(plain.symbol_key, library.symbol_key);
}

/// Seen in CrashProbe: on x86_64 `objc_msgSend` has no frame of its own, so that its caller was lost, and the one before the
/// dispatcher of all other crashes.
#[test]
fn messages_to_broken_objects_are_their_own_sort() {
    let sent = keys(&crash("libobjc.A.dylib objc_msgSend\nDemo load_page\nDemo main\nUIKitCore start"));
    let own = keys(&crash("libsystem_malloc.dylib free\nDemo load_page\nDemo main\nUIKitCore start"));
    assert_ne!(sent.symbol_key, own.symbol_key);
    assert_ne!(sent.key, own.key);
}

/// Seen in CrashProbe, where stacks were overwritten: one frame at an address in no image.
#[test]
fn what_is_left_of_an_overwritten_stack_is_no_place() {
    assert_eq!(group(&crash("??? -").done()), None);
    assert_eq!(group(&crash("libsystem_kernel.dylib memset").done()), None);
}

#[test]
fn stacks_of_the_system_are_no_bucket() {
    let frames = |inner: &str| {
        format!(
            "libsystem_kernel.dylib __pthread_kill\nlibsystem_malloc.dylib abort\n{inner}\nDemo main\nUIKitCore start"
        )
    };
    let looped = |inner: &str| {
        keys(
            &report("EXC_CRASH", "SIGABRT").frames(&frames(&format!("{inner}\nUIKitCore UIApplicationMain"))),
        )
    };
    let (one, other) = (looped("UIKitCore -[UIView layout]"), looped("UIKitCore -[UIWindow draw]"));
    assert_ne!(one.symbol_key, other.symbol_key);
    let nameless = |offset: u64| {
        let build = crash("UIKitCore -\nUIKitCore -\nDemo -\nUIKitCore start");
        keys(&build.with(|report| {
            let frame = &mut report.process.threads[0].frames[1];
            let base = report.process.images[2].load_address.get();
            frame.address =
                Some(backtrail_core::FrameAddress::Return(backtrail_core::Avma::new(base + offset)));
        }))
    };
    assert_ne!(nameless(0x1000).key, nameless(0x2000).key);
    // Cut before any own frame: every throw begins so.
    let cut = "libsystem_kernel.dylib __pthread_kill\nlibsystem_malloc.dylib abort\nlibobjc.A.dylib __cxa_throw\nUIKitCore -[UIView layout]";
    assert_eq!(group(&crash(cut).done()), None);
}

#[test]
fn places_belong_to_builds() {
    let nameless = |id: u8| {
        keys(&crash("Demo -\nDemo -\nDemo -\nUIKitCore start").with(|report| {
            report.process.images[0].id = Some(ImageId::Uuid([id; 16]));
        }))
    };
    assert_ne!(nameless(1).key, nameless(2).key);
    assert_eq!(nameless(1).key, nameless(1).key);
    assert_eq!(nameless(1).symbol_key, None);
}

#[test]
fn names_do_not_change_the_key() {
    let named = keys(&crash("Demo load_page\nDemo run_all\nDemo main\nUIKitCore start"));
    let nameless = keys(&crash("Demo -\nDemo -\nDemo -\nUIKitCore start"));
    assert_eq!(named.key, nameless.key);
}

#[test]
fn recursions_are_one_round() {
    let deep = |start: usize, rounds: usize| {
        let frames: Vec<String> =
            (0..rounds).map(|at| format!("Demo {}", ["walk", "walk_child"][(at + start) % 2])).collect();
        let build = crash(&format!("{}\nDemo main\nUIKitCore start", frames.join("\n")));
        // The same call returns to the same place.
        keys(&build.with(|report| {
            for (at, frame) in report.process.threads[0].frames.iter_mut().enumerate().take(rounds) {
                let base = report.process.images[0].load_address.get();
                let place = 0x100 + 0x40 * ((at + start) % 2) as u64;
                frame.address =
                    Some(backtrail_core::FrameAddress::Return(backtrail_core::Avma::new(base + place)));
            }
        }))
    };
    let (one, other) = (deep(0, 60), deep(1, 71));
    assert_eq!(one.symbol_key, other.symbol_key);
    assert_eq!(one.key, other.key);
    assert!(one.kind.starts_with("recursion"));
}

#[test]
fn reports_that_say_nothing_have_no_group() {
    assert_eq!(group(&report("EXC_CRASH", "SIGABRT").done()), None);
    let told = |text: &str| group(&report("EXC_CRASH", "SIGABRT").message(text).done()).unwrap().key;
    assert_eq!(told("index 7 out of range"), told("index 12 out of range"));
    assert_ne!(told("index 7 out of range"), told("nil found"));
}

#[test]
fn exceptions_of_different_classes_are_different_bugs() {
    let thrown = |name: &str| {
        let text = format!("*** Terminating app due to uncaught exception '{name}', reason: 'x'");
        keys(&report("EXC_CRASH", "SIGABRT").said("", &text).frames(LOAD)).symbol_key
    };
    assert_ne!(thrown("NSRangeException"), thrown("NSInvalidArgumentException"));
}

#[test]
fn titles_have_no_addresses() {
    let explanation =
        crate::Explanation { title: "Bad access: read at 0x16fdff2a0".to_owned(), ..Default::default() };
    assert_eq!(keys(&crash(LOAD)).title(&explanation), "Bad access: read at 0x… in load_page");
}

fn owned(kind: OwnerKind) -> Option<Arc<Owner>> {
    Some(Arc::new(Owner { kind, ..Owner::default() }))
}

/// A compiler's own function, linked into the program: debug info tells whose it is, which must not change the place.
#[test]
fn what_is_the_systems_in_the_program_is_passed_over_by_names_alone() {
    let stack = "Demo divide_wide\nDemo load_page(int)\nDemo main\nUIKitCore start";
    let unknown = keys(&crash(stack));
    let known = keys(&crash(stack).with(|report| {
        report.process.threads[0].frames[0].owner = owned(OwnerKind::System);
    }));
    assert_eq!(known.key, unknown.key);
    assert_ne!(known.symbol_key, unknown.symbol_key);
    assert_eq!(known.symbol_key, keys(&crash(LOAD)).symbol_key);
}

#[test]
fn owners_tell_where_images_do_not() {
    let stack = "Plugin check_in\nPlugin load_page\nOther run_all\nUIKitCore start";
    let unknown = keys(&crash(stack));
    assert!(unknown.why.iter().any(|line| line.contains("does not tell whose")), "{:?}", unknown.why);
    let known = keys(&crash(stack).with(|report| {
        report.process.threads[0].frames[1].owner = owned(OwnerKind::App);
    }));
    assert_eq!(known.place.as_deref(), Some("load_page"));
    assert!(known.why.iter().any(|line| line.contains("the frames of the program")), "{:?}", known.why);
}

/// A Python report with rows of file, line and function, innermost first.
fn traceback(kind: &str, rows: &[(&str, u32, &str)]) -> Report {
    let frames = rows.iter().zip(0..).map(|((file, line, name), index)| {
        let (file, line) = (Some((*file).to_owned()), Some(*line));
        let name = (*name).to_owned();
        let reported = Some(ReportedSymbol { name, file, line, ..ReportedSymbol::default() });
        Frame { reported, language: Some(Language::Python), ..Frame::new(index) }
    });
    let mut report = Report { source: Source::PythonTraceback, ..Report::default() };
    report.exception = Some(Exception { kind: Some(kind.to_owned()), ..Exception::default() });
    let title = kind.to_owned();
    report.process.backtraces = vec![Backtrace { title, is_exception: true, frames: frames.collect() }];
    report
}

#[test]
fn functions_of_scripts_are_told_by_their_files() {
    let of = |kind: &str, file: &str, line: u32| {
        let json = ("/usr/lib/python3.11/json/decoder.py", 355, "raw_decode");
        let rows = [json, (file, line, "load_page"), ("/srv/main.py", 3, "<module>")];
        group(&traceback(kind, &rows)).unwrap()
    };
    let one = of("KeyError", "/srv/app/feed.py", 10);
    assert_eq!((one.kind.as_str(), one.place.as_deref()), ("exception KeyError", Some("load_page")));
    // The next release, elsewhere.
    let next = of("KeyError", "/opt/app/feed.py", 12);
    assert_eq!(one.symbol_key, next.symbol_key);
    assert_ne!(one.key, next.key);
    assert_ne!(one.symbol_key, of("KeyError", "/srv/app/shop.py", 10).symbol_key);
    assert_ne!(one.symbol_key, of("ValueError", "/srv/app/feed.py", 10).symbol_key);
    assert_ne!(
        of("KeyError", "/srv/feed/__init__.py", 1).symbol_key,
        of("KeyError", "/srv/shop/__init__.py", 1).symbol_key
    );
}

#[test]
fn functions_without_names_count_with_their_callers() {
    let of = |caller: &str| {
        let rows = [("/srv/feed.py", 10, "<lambda>"), ("/srv/feed.py", 20, caller)];
        group(&traceback("KeyError", &rows)).unwrap().symbol_key
    };
    assert_ne!(of("load_page"), of("save_page"));
}

#[test]
fn a_class_that_a_reporter_states_is_the_one_that_texts_tell() {
    let name = "NSRangeException";
    let text = format!("*** Terminating app due to uncaught exception '{name}', reason: 'x'");
    let told = keys(&report("EXC_CRASH", "SIGABRT").said("", &text).frames(LOAD));
    let stated = keys(&report("", "SIGABRT").frames(LOAD).with(|report| {
        let runtime = ThrowingRuntime::ObjectiveC;
        report.thrown =
            Some(ThrownException { runtime, name: name.to_owned(), ..ThrownException::default() });
    }));
    assert_eq!(told.symbol_key, stated.symbol_key);
}

/// A stall as Linux's kernel reports it: functions, innermost first.
fn stall(kind: &str, functions: &[&str]) -> Group {
    stalls(kind, &[functions])
}

/// The same with several stacks.
fn stalls(kind: &str, stacks: &[&[&str]]) -> Group {
    let frames = |functions: &[&str]| -> Vec<Frame> {
        let frames = functions.iter().zip(0..).map(|(name, index)| {
            let reported = Some(ReportedSymbol { name: (*name).to_owned(), ..ReportedSymbol::default() });
            Frame { reported, image_name: Some("vmlinux".to_owned()), ..Frame::new(index) }
        });
        frames.collect()
    };
    let mut report = Report { source: Source::LinuxKernel, ..Report::default() };
    report.exception = Some(Exception { kind: Some(kind.to_owned()), ..Exception::default() });
    let thread = |functions: &&[&str]| Thread { frames: frames(functions), ..Thread::default() };
    report.process.threads = stacks.iter().map(thread).collect();
    report.process.crashed_thread = Some(0);
    group(&report).unwrap()
}

const TICK: [&str; 7] = [
    "dump_stack",
    "nmi_cpu_backtrace.cold",
    "print_cpu_stall",
    "update_process_times",
    "tick_sched_timer",
    "smp_apic_timer_interrupt",
    "apic_timer_interrupt",
];

/// Seen in syzbot's reports: the timer's functions filled the keys of all stalls.
#[test]
fn stalls_are_told_by_what_the_timer_interrupted() {
    let of = |inner: &str, outer: &str| {
        let behind = [inner, outer, "vfs_ioctl", "ksys_ioctl", "do_syscall_64"];
        stall("RCU stall", &[&TICK[..], &behind].concat())
    };
    let (one, other) = (of("lo_ioctl", "blkdev_ioctl"), of("tcp_sendmsg", "sock_write_iter"));
    assert_ne!(one.key, other.key);
    assert_ne!(one.symbol_key, other.symbol_key);
    assert_eq!(one.place.as_deref(), Some("lo_ioctl"));
    assert!(one.why.iter().any(|line| line.contains("behind 7 of the interrupt")), "{:?}", one.why);
    assert!(one.key.starts_with("2:") && one.symbol_key.unwrap().starts_with("2:"));
    // Another interrupt may be what stalls: the watchdog shows the stack without its own part.
    let timers = ["hwsim_beacon", "run_timer_softirq", "apic_timer_interrupt", "lo_ioctl"];
    let own = stall("soft lockup", &timers);
    assert_eq!((own.place.as_deref(), &own.key[..2]), (Some("hwsim_beacon"), "1:"));
    // The same functions in a report of another sort say what they say.
    assert!(stall("warning", &TICK).key.starts_with("1:"));
    // Nothing lies behind.
    assert!(stall("RCU stall", &TICK).key.starts_with("1:"));
    // arm's rows name each function with its caller, and leave the entry's own row out.
    let arm = ["update_process_times", "tick_periodic", "handle_percpu_devid_irq", "gic_handle_irq"];
    let behind = ["lo_ioctl", "blkdev_ioctl", "vfs_ioctl", "ksys_ioctl", "do_syscall_64"];
    assert_eq!(stall("RCU stall", &[&arm[..], &behind].concat()).place.as_deref(), Some("lo_ioctl"));
    // The thread that misses the stalled processor is shown first.
    let waiting = ["schedule_timeout", "rcu_gp_kthread", "kthread", "ret_from_fork"];
    let behind = ["lo_ioctl", "blkdev_ioctl", "vfs_ioctl", "ksys_ioctl", "do_syscall_64"];
    let shown = stalls("RCU stall", &[&waiting, &[&TICK[..], &behind].concat()]);
    assert_eq!(shown.symbol_key, of("lo_ioctl", "blkdev_ioctl").symbol_key);
    assert!(stall("RCU stall", &waiting).key.starts_with("1:"));
}

/// Stores of groups have keys: those of released rules must not change. What may not be edited here are the keys.
#[test]
fn keys_of_version_1_are_as_they_were() {
    let build = |build: Build| {
        let group = keys(&build);
        [Some(group.key), group.symbol_key]
    };
    let inlined = "Demo Buffer::at(int) < load_page(int) < main\nUIKitCore start";
    let system = "libsystem_kernel.dylib __pthread_kill\nUIKitCore -[UIView layout]\nUIKitCore start";
    let found = [
        build(crash(LOAD)),
        build(crash(inlined)),
        build(report("EXC_CRASH", "SIGABRT").frames(system)),
        build(report("EXC_CRASH", "SIGABRT").message("index 7 out of range")),
        build(crash("Demo -\nDemo -\nDemo -\nUIKitCore start")),
    ];
    let found: Vec<Option<&str>> = found.iter().flatten().map(Option::as_deref).collect();
    let wanted = [
        Some("1:b6d6e6357801d39e4e63b505"),
        Some("1:2ee2c891b84f0807c550157c"),
        Some("1:e9fbdaed8bd8a36b93572819"),
        Some("1:33709d6648caea3579f48b9d"),
        Some("1:e66718b8c90e83aced74f7a3"),
        Some("1:f0ce6bfbea71c726efbf0f8c"),
        Some("1:f1c143c66ce6b4fa90779ac7"),
        Some("1:f1c143c66ce6b4fa90779ac7"),
        Some("1:b4d8d5e82c94cfe17a3f70f2"),
        None,
    ];
    assert_eq!(found, wanted);
    let python = group(&traceback("KeyError", &[("/srv/feed.py", 10, "load_page")])).unwrap();
    let kernel = stall("warning", &TICK);
    let found = [python.key, python.symbol_key.unwrap(), kernel.key, kernel.symbol_key.unwrap()];
    let wanted = [
        "1:96716b1b786dc5fa644b5438",
        "1:782676d5b5733f28b4655990",
        "1:b1220d7165d77b866a10a1df",
        "1:5da8531db68f096ba216aa2d",
    ];
    assert_eq!(found, wanted);
}

/// What Sentry's clients send of an exception, innermost frame first.
fn sent(language: Language, rows: &[(&str, u32, &str)]) -> Group {
    let mut report = traceback("Error", rows);
    report.source = Source::Sentry;
    report.exception = None;
    let frames = &mut report.process.backtraces[0].frames;
    frames.iter_mut().for_each(|frame| frame.language = Some(language));
    report.thrown = Some(ThrownException {
        runtime: ThrowingRuntime::Other,
        name: "Error".to_owned(),
        reason: Some("v".to_owned()),
        is_handled: true,
    });
    group(&report).unwrap()
}

#[test]
fn functions_without_a_name_do_not_make_sentrys_events_one() {
    // Seen with @sentry/node 11: three bugs of a module were one issue.
    let node = ("node:internal/modules/cjs/loader", 1521, "loader.Module._compile");
    for name in ["?", "app.Object.?", "Object.<anonymous>", "app.<anonymous>", "new <anonymous>"] {
        let [one, other] =
            [3, 9].map(|line| sent(Language::JavaScript, &[("/srv/app.js", line, name), node]));
        assert_ne!(one.key, other.key, "{name}");
        assert_eq!((one.symbol_key, other.symbol_key), (None, None), "{name}");
        // What called it tells.
        let [one, other] = [3, 9].map(|line| {
            sent(Language::JavaScript, &[("/srv/app.js", line, name), ("/srv/app.js", 1, "app.load"), node])
        });
        assert_eq!(one.symbol_key, other.symbol_key, "{name}");
        assert!(one.symbol_key.is_some_and(|key| key.starts_with("3:")), "{name}");
    }
    let module = sent(Language::Python, &[("/srv/main.py", 3, "__main__.<module>")]);
    assert!(module.symbol_key.is_some(), "a module's own code is as telling as `main`");
    let lambda = [("/srv/a.py", 3, "a.<lambda>"), ("/srv/a.py", 9, "a.<module>")];
    assert_eq!(sent(Language::Python, &lambda).symbol_key, None);
    let constructor = sent(Language::Java, &[("Cart.java", 3, "shop.Cart.<init>")]);
    assert!(constructor.symbol_key.is_some());
}

#[test]
fn frames_of_the_client_and_of_node_itself_are_not_where_it_happened() {
    let python = [
        ("/srv/.venv/lib/python3.11/site-packages/sentry_sdk/api.py", 9, "sentry_sdk.api.capture_message"),
        ("/srv/shop/pay.py", 3, "shop.pay.charge"),
    ];
    assert_eq!(sent(Language::Python, &python).place.as_deref(), Some("shop.pay.charge"));
    let node = [("node:fs", 448, "readFileSync"), ("/srv/app.js", 7, "app.load")];
    assert_eq!(sent(Language::JavaScript, &node).place.as_deref(), Some("app.load"));
}

#[test]
fn messages_are_told_apart_by_their_words() {
    let of = |words: &str| {
        let mut report = traceback("Error", &[("/srv/app.py", 3, "app.load")]);
        report.source = Source::Sentry;
        report.exception = None;
        report.event = Some(words.to_owned());
        report
    };
    let [one, other, same] =
        ["cart of 17 items", "no cart", "cart of 3 items"].map(|words| group(&of(words)).unwrap());
    assert_ne!(one.key, other.key);
    assert_ne!(one.symbol_key, other.symbol_key);
    assert_eq!((&one.key, &one.symbol_key), (&same.key, &same.symbol_key), "numbers differ each time");
    assert_eq!(one.kind, "message cart of # items");
    assert!(!super::is_crash(&of("no cart")));
}
