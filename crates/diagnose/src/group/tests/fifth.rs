//! Version 5 of the rules: places that words name, panics of Rust's without names, closures, and functions in front of a bug.

use super::{keys, stalls, traceback};
use crate::explain::testing::{Build, report};
use crate::group::{group, group_and_begins};
use backtrail_model::{Image, Language, Report, Source};

fn abort(frames: &str) -> Build {
    report("EXC_CRASH", "SIGABRT").frames(frames)
}

/// So many of the program's frames without names, called by `main`.
fn nameless(count: usize) -> String {
    format!("{}UIKitCore start", "Demo -\n".repeat(count))
}

/// The same program with an unwinder and no runtime of C++.
fn of_rust(build: Build) -> Build {
    build.with(|report| {
        let name = "libgcc_s.so.1".to_owned();
        report.process.images.push(Image { name, ..report.process.images[1].clone() });
        report.process.images[0].id = Some(backtrail_core::ImageId::Uuid([7; 16]));
    })
}

#[test]
fn the_place_that_a_panic_names_counts_where_nothing_has_a_name() {
    let of = |line: u32, frames: &str| {
        keys(&abort(frames).message(&format!("thread 'main' panicked at src/cart.rs:{line}:5:\nno cart")))
    };
    let (one, other) = (of(10, &nameless(6)), of(20, &nameless(6)));
    assert_ne!(one.key, other.key);
    assert!(one.key.starts_with("5:"));
    assert_eq!(one.key, of(10, &nameless(6)).key);
    // With names, the line may move; and the key is that of the report without.
    let named = "Demo shop::price\n".to_owned() + &nameless(5);
    let (one, moved) = (of(10, &named), of(20, &named));
    assert_eq!(one.symbol_key, moved.symbol_key);
    assert!(one.symbol_key.is_some_and(|key| key.starts_with("1:")));
    assert_eq!(one.key, of(10, &nameless(6)).key);
    let check = |line: u32| {
        keys(&abort(&nameless(6)).message(&format!("[1:FATAL:cart.cc({line})] Check failed"))).key
    };
    assert_ne!(check(3), check(4));
}

/// Seen with `backtrail watch`: 15 panics of a program without symbols were one group.
#[test]
fn panics_of_which_nothing_is_known_are_told_by_more_places() {
    // Their innermost places are the same, what called those differs.
    let of = |outer: usize| {
        of_rust(abort(&nameless(24))).with(|report| {
            for frame in &mut report.process.threads[0].frames[12..24] {
                let place = 0x1_0000_2000 + 0x100 * outer as u64 + u64::from(frame.index);
                frame.address = Some(backtrail_core::FrameAddress::Return(backtrail_core::Avma::new(place)));
            }
        })
    };
    assert_ne!(keys(&of(1)).key, keys(&of(2)).key);
    assert_eq!(keys(&of(1)).key, keys(&of(1)).key);
    assert!(keys(&of(1)).why.iter().any(|line| line.contains("may be Rust's")));
    // Cut before that, nothing tells.
    let cut = of_rust(abort("Demo -\nDemo -\nDemo -\nDemo -\nDemo -\nDemo -")).done();
    let (none, begins) = group_and_begins(&cut);
    assert_eq!(none, None);
    assert_eq!(begins.shown.len(), 1);
    // Names tell.
    assert!(group(&of_rust(abort("Demo load_page\nDemo -")).done()).is_some());
    // C++ is not Rust: five places are enough.
    let cpp = of(1).with(|report| {
        let name = "libstdc++.so.6".to_owned();
        report.process.images.push(Image { name, ..report.process.images[1].clone() });
    });
    assert!(keys(&cpp).key.starts_with("1:"));
}

#[test]
fn words_of_rusts_library_are_told_by_their_place() {
    let of = |place: &str, message: &str| {
        let mut report = Report { source: Source::RustPanic, ..Report::default() };
        report.fields.push(backtrail_model::Field { key: "place".to_owned(), value: place.to_owned() });
        report.exception = Some(backtrail_model::Exception {
            kind: Some("panic".to_owned()),
            message: Some(message.to_owned()),
            ..Default::default()
        });
        group(&report).unwrap()
    };
    let unwrap = "called `Option::unwrap()` on a `None` value";
    assert_ne!(of("src/a.rs:1:5", unwrap).key, of("src/a.rs:9:5", unwrap).key);
    // What the program itself says is the same bug in the next release, but not in another file.
    let one = of("src/a.rs:1:5", "no cart 7");
    assert_eq!(one.key, of("/build/src/a.rs:9:5", "no cart 8").key);
    assert_ne!(one.key, of("src/b.rs:1:5", "no cart 7").key);
    assert_eq!(one.place.as_deref(), Some("a.rs"));
}

#[test]
fn closures_of_one_function_are_told_by_what_went_wrong() {
    let of = |panic: &str, closure: &str| {
        keys(&abort(&format!("Demo {panic}\nDemo {closure}\nDemo main\nUIKitCore start"))).symbol_key.unwrap()
    };
    let (bounds, unwrap) = ("core::panicking::panic_bounds_check", "core::option::unwrap_failed");
    let closure = "shop::price::{{closure}}";
    assert_ne!(of(bounds, closure), of(unwrap, closure));
    assert_eq!(of(bounds, closure), of(bounds, "shop::price::{closure#3}"));
    assert!(of(bounds, closure).starts_with("5:"));
    // Of other functions it does not matter, nor where any panic looks the same.
    assert_eq!(of(bounds, "shop::price"), of(unwrap, "shop::price"));
    assert!(of("core::panicking::panic_fmt", closure).starts_with("1:"));
}

/// Seen in syzbot's reports: three bugs of arm64 were one group.
#[test]
fn the_kernels_way_into_a_fault_is_passed_over() {
    let fault = [
        "dump_backtrace",
        "__do_kernel_fault",
        "do_tag_check_fault",
        "do_mem_abort",
        "el1_abort",
        "el1_sync",
    ];
    let of = |function| {
        stalls(
            "KASAN",
            &[&[&fault[..], &[function, "mod_timer", "rx_poll", "rx_action", "do_softirq", "kthread"]]
                .concat()],
        )
    };
    let (one, other) = (of("enqueue_timer"), of("__list_add_valid"));
    assert_ne!(one.symbol_key, other.symbol_key);
    assert_eq!(one.place.as_deref(), Some("enqueue_timer"));
    assert!(one.symbol_key.unwrap().starts_with("5:"));
}

#[test]
fn what_a_virtual_machine_makes_and_checks_of_tests_tell_nothing() {
    let of = |inner: &str, outer: &str| {
        let mut report = traceback("SIGBUS", &[("", 0, inner), ("", 0, outer)]);
        report.source = Source::JavaErrorLog;
        for frame in &mut report.process.backtraces[0].frames {
            frame.language = Some(Language::Java);
        }
        group(&report).unwrap().symbol_key
    };
    for inner in [
        "~StubRoutines::jbyte_disjoint_arraycopy",
        "sun.reflect.GeneratedMethodAccessor12373.invoke",
        "shop.Cart$$Lambda$14/0x0000000800c03000.run",
        "org.junit.Assert.fail",
    ] {
        assert_ne!(of(inner, "shop.Cart.load"), of(inner, "shop.Cart.save"), "{inner}");
    }
    assert!(of("shop.Cart$$Lambda$14/0x0000000800c03000.run", "shop.Cart.load").unwrap().starts_with("5:"));
    let native = |name: &str| {
        keys(&report("", "SIGSEGV").frames(&format!("Demo {name}\nDemo load_page\nUIKitCore start")))
    };
    for name in
        ["_JNIEnv::NewStringUTF", "base::debug::CollectStackTrace", "testing::UnitTest::AddTestPartResult"]
    {
        assert_eq!(native(name).place.as_deref(), Some("load_page"), "{name}");
    }
}

/// Seen in fuzzers' logs: what stood in the place of a name was one group for all bugs.
#[test]
fn names_of_files_are_no_names() {
    for name in
        ["libc.so", "/usr/lib/x86_64-linux-gnu/libx.so.1", "<libclang_rt.asan.so>+0x56d71", "Ordinal101"]
    {
        let group =
            keys(&report("", "SIGSEGV").frames(&format!("Demo {name}\nDemo load_page\nUIKitCore start")));
        assert_eq!(group.symbol_key, None, "{name}");
    }
}

/// Seen in two apps' reports without a process: what they lacked was the same group.
#[test]
fn libraries_that_are_missing_are_different_bugs() {
    let of = |path: &str, frames: &str| {
        let build = report("EXC_CRASH", "SIGABRT").termination("DYLD", 1, "Library missing");
        keys(&build.frames(frames).with(|report| {
            let told = format!("Library not loaded: {path}");
            report.termination.as_mut().unwrap().details.push(told);
        }))
    };
    for frames in ["", "dyld __abort_with_payload\ndyld fail\ndyld prepare\ndyld start"] {
        let one = of("@rpath/libCart.dylib", frames);
        assert_ne!(one.key, of("@rpath/libShop.dylib", frames).key, "{frames}");
        assert_ne!(one.symbol_key, of("@rpath/libShop.dylib", frames).symbol_key, "{frames}");
        // Wherever it was looked for.
        assert_eq!(one.symbol_key, of("/usr/local/lib/libCart.dylib", frames).symbol_key, "{frames}");
        assert!(one.key.starts_with("5:"));
    }
}
