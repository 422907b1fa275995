//! What cut stacks show, and which groups begin like that.

use super::{crash, traceback};
use crate::explain::testing::{Build, report};
use crate::group::{Beginning, Begins, ShownSort, group_and_begins};
use backtrail_core::ImageId;
use backtrail_model::{
    Backtrace, Exception, Frame, Language, Report, ReportedSymbol, Source, ThrownException,
};

fn begins(build: &Build) -> Begins {
    group_and_begins(&build.clone().done()).1
}

fn shown(build: &Build, sort: ShownSort) -> Option<Beginning> {
    begins(build).shown.into_iter().find(|it| it.sort == sort).map(|it| it.beginning)
}

#[test]
fn a_cut_stack_begins_as_the_whole_one() {
    let whole = begins(&crash("Demo Buffer::at(int)\nDemo load_page(int)\nDemo main\nUIKitCore start"));
    assert!(whole.shown.is_empty());
    // Another build, whose names lose more.
    let cut = shown(&crash("Demo Buffer::at(long) [clone .cold]"), ShownSort::Functions).unwrap();
    assert!(whole.of_group.contains(&cut));
    // Another event, another helper.
    let other = report("EXC_CRASH", "SIGABRT").frames("Demo Buffer::at(int)");
    assert!(!whole.of_group.contains(&shown(&other, ShownSort::Functions).unwrap()));
    let other = crash("Demo Buffer::front()");
    assert!(!whole.of_group.contains(&shown(&other, ShownSort::Functions).unwrap()));
    // It shows a function that tells: there is nothing to guess.
    assert!(begins(&crash("Demo Buffer::at(int)\nDemo load_page(int)")).shown.is_empty());
}

#[test]
fn places_of_a_build_are_compared_where_names_are_missing() {
    let known =
        |build: Build| build.with(|report| report.process.images[0].id = Some(ImageId::Uuid([7; 16])));
    let whole = begins(&known(crash("Demo -\nDemo -\nDemo main\nUIKitCore start")));
    let cut = shown(&known(crash("Demo -")), ShownSort::Places).unwrap();
    assert!(whole.shown.is_empty() && whole.of_group.contains(&cut));
    let two = shown(&known(crash("Demo -\nDemo -")), ShownSort::Places).unwrap();
    assert!(whole.of_group.contains(&two) && two != cut);
    // Nothing tells whether it is the same build.
    assert!(begins(&crash("Demo -")).shown.is_empty());
}

#[test]
fn a_recursion_that_was_cut_is_no_round_more() {
    let rounds = |count: usize| "Demo walk_tree\nDemo visit_node\n".repeat(count);
    let mut whole = crash(&format!("{}Demo main\nUIKitCore start", rounds(40))).done();
    let mut cut = crash(&rounds(4)).done();
    let mut plain = crash(&format!("{}Demo main\nUIKitCore start", rounds(4))).done();
    for report in [&mut whole, &mut cut, &mut plain] {
        for (at, frame) in report.process.threads[0].frames.iter_mut().enumerate() {
            frame.address = Some(backtrail_core::FrameAddress::Return(backtrail_core::Avma::new(
                0x1_0000_0000 + 0x100 * (at as u64 % 2),
            )));
        }
    }
    let of = |report: &Report| group_and_begins(report).1;
    let shown = of(&cut).shown.first().unwrap().beginning;
    assert!(of(&whole).of_group.contains(&shown), "{:?}", of(&whole));
    assert!(of(&plain).shown.is_empty(), "it goes on to where the thread began");
    assert!(!of(&plain).of_group.contains(&shown));
}

#[test]
fn words_are_the_same_whoever_wrote_them() {
    let apple = "terminating due to uncaught exception of type demo::Broken: page 7 of 12";
    let own = "Demo load_page(int)\nDemo main\nUIKitCore start";
    let whole = report("EXC_CRASH", "SIGABRT").said("libc++abi.dylib", apple).frames(own);
    let mut stated = report("EXC_CRASH", "SIGABRT").frames("libsystem_kernel.dylib __pthread_kill").done();
    stated.thrown = Some(ThrownException {
        name: "demo::Broken".to_owned(),
        reason: Some("page 3 of 4".to_owned()),
        ..ThrownException::default()
    });
    let (group, cut) = group_and_begins(&stated);
    assert_eq!(group, None, "the system's frames are those of every throw");
    assert_eq!(cut.shown.len(), 1);
    assert_eq!(begins(&whole).words, Some(cut.shown[0].beginning));
    // A fault's words are those of its signal.
    assert!(
        begins(&report("EXC_BAD_ACCESS", "SIGSEGV").message("x").frames("libsystem_c.dylib memcpy"))
            .shown
            .is_empty()
    );
}

#[test]
fn a_limit_of_ten_frames_may_have_cut_them() {
    let of = |count: usize| {
        let mut rows = vec![("/srv/util.js", 3, "get")];
        rows.resize(count, ("node:internal/timers", 1, "listOnTimeout"));
        let mut report = traceback("TypeError", &rows);
        report.source = Source::JavaScriptError;
        let frames = &mut report.process.backtraces[0].frames;
        frames.iter_mut().for_each(|frame| frame.language = Some(Language::JavaScript));
        group_and_begins(&report)
    };
    let (group, begins) = of(9);
    assert!(group.unwrap().symbol_key.is_some() && begins.shown.is_empty());
    let (group, begins) = of(10);
    assert_eq!(group.unwrap().symbol_key, None);
    assert_eq!(begins.shown[0].sort, ShownSort::Functions);
}

/// What Java leaves out of a cause is in the exception around it.
#[test]
fn causes_go_on_in_what_is_around_them() {
    let rows = |names: &[&str], more: Option<&str>| {
        let frames = names.iter().zip(0..).map(|(name, index)| {
            let name = (*name).to_owned();
            let reported = Some(ReportedSymbol { name, ..ReportedSymbol::default() });
            Frame { reported, language: Some(Language::Java), ..Frame::new(index) }
        });
        let mut frames: Vec<Frame> = frames.collect();
        let last = frames.last_mut().unwrap();
        last.annotations.extend(more.map(str::to_owned));
        frames
    };
    let of = |caller: &str, more: Option<&str>| {
        let mut report = Report { source: Source::JavaTrace, ..Report::default() };
        let kind = Some("a.b.Broken".to_owned());
        report.exception = Some(Exception { kind, ..Exception::default() });
        let around = rows(&["a.b.Shop.open", caller, "a.b.App.main"], None);
        let cause = rows(&["a.b.Util.get"], more);
        report.process.backtraces = vec![
            Backtrace { title: "a.b.Failed".to_owned(), is_exception: true, frames: around },
            Backtrace { title: "Caused by: a.b.Broken".to_owned(), is_exception: true, frames: cause },
        ];
        group_and_begins(&report)
    };
    let (one, _) = of("a.b.Cart.load", Some("... 2 more"));
    let (other, _) = of("a.b.Stock.load", Some("... 2 more"));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.key, other.key, "the key without names is as it was");
    let name = one.symbol_key.unwrap();
    assert!(name.starts_with("4:") && Some(&name) != other.symbol_key.as_ref());
    // What the report says is elsewhere is not there.
    let (lost, begins) = of("a.b.Cart.load", Some("... 7 more"));
    assert_eq!(lost.unwrap().symbol_key, None);
    assert_eq!(begins.shown.len(), 1);
    let (whole, _) = of("a.b.Cart.load", None);
    assert!(whole.unwrap().symbol_key.unwrap().starts_with("1:"));
}

#[test]
fn who_knows_no_class_shows_that_something_was_thrown() {
    let own = "Demo load_page(int)\nDemo main\nUIKitCore start";
    let thrown = format!("libsystem_kernel.dylib __pthread_kill\nlibc++abi.dylib __cxa_throw\n{own}");
    let class = "terminating due to uncaught exception of type demo::Broken: x";
    let known = begins(&report("EXC_CRASH", "SIGABRT").said("libc++abi.dylib", class).frames(&thrown));
    assert!(known.shown.is_empty());
    let unknown = report("EXC_CRASH", "SIGABRT").frames(&thrown);
    let shown = shown(&unknown, ShownSort::Functions).unwrap();
    assert!(known.of_group.contains(&shown));
    // An abort of its own is none.
    let abort =
        report("EXC_CRASH", "SIGABRT").frames(&format!("libsystem_kernel.dylib __pthread_kill\n{own}"));
    assert!(begins(&abort).shown.is_empty());
}

/// Seen in tombstones, whose frames have no other address: before version 4, all that had no names were one group.
#[test]
fn places_that_a_report_states_in_files_are_places() {
    let of = |place: u64, name: &str| {
        let mut report = crash(&format!("Demo {name}\nDemo -\nDemo -")).done();
        report.process.images[0].id = Some(ImageId::Uuid([7; 16]));
        for (frame, at) in report.process.threads[0].frames.iter_mut().zip(0..) {
            frame.address = None;
            frame.image_offset = None;
            frame.relative_pc = Some(backtrail_core::Svma::new(place + at));
        }
        crate::group::group(&report).unwrap()
    };
    let one = of(0x1000, "-");
    assert!(one.key.starts_with("4:") && one.symbol_key.is_none());
    assert_ne!(one.key, of(0x2000, "-").key);
    let named = of(0x1000, "load_page");
    assert_eq!(named.key, one.key, "names that come late split nothing");
    assert!(named.symbol_key.unwrap().starts_with("1:"), "which groups with names are called by as before");
}
