//! Threads that hang, watched live.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use backtrail::Symbols;
use backtrail::hang::{Activity, Beat, End, Event, Hang, Options, Watch, unfinished};
use backtrail_testkit::{Schema, TempDir};
use std::cell::Cell;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn options(threshold: Duration) -> Options {
    let mut options = Options::default();
    options.threshold = threshold;
    options
}

/// What a watch tells, from another thread.
#[derive(Debug)]
enum Told {
    Began(Hang),
    Ended(Hang),
    Problem(String),
}

fn watch(options: Options) -> (Watch, Receiver<Told>) {
    let (sender, receiver) = channel();
    let handler = move |event: Event<'_>| {
        let told = match event {
            Event::Began(hang) => Told::Began(hang.clone()),
            Event::Ended(hang) => Told::Ended(hang.clone()),
            Event::Problem(problem) => Told::Problem(problem.to_owned()),
            _ => return,
        };
        let _ = sender.send(told);
    };
    (Watch::current_thread(options, handler).unwrap(), receiver)
}

/// Waits for the hang's beginning to be told, however long a busy machine needs for that.
fn began(told: &Receiver<Told>) {
    match told.recv_timeout(ms(60_000)).unwrap() {
        Told::Began(hang) => assert!(hang.end.is_none()),
        other => panic!("expected a beginning, not {other:?}"),
    }
}

/// The hang that `began`, when it is over.
fn ended(told: &Receiver<Told>) -> Hang {
    match told.recv_timeout(ms(60_000)).unwrap() {
        Told::Ended(hang) => hang,
        other => panic!("expected an end, not {other:?}"),
    }
}

fn names(hang: &mut Hang) -> Vec<String> {
    hang.name(&Symbols::new());
    let heaviest = hang.heaviest().expect("a stack");
    hang.stack(heaviest).flat_map(|frame| frame.names().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// The document of a hang, as it is written.
fn keeps_to_the_schema(hang: &Hang, schema: &mut Schema) {
    let mut line = Vec::new();
    backtrail::json::write_hang(&mut line, hang).unwrap();
    schema.check("hang", &serde_json::from_slice(&line).unwrap()).unwrap();
}

fn contains(names: &[String], wanted: &str) -> bool {
    names.iter().any(|name| name.contains(wanted))
}

#[inline(never)]
fn compute_in_vain(enough: impl Fn() -> bool) -> u64 {
    let mut work = 1u64;
    while !enough() {
        for _ in 0..10_000 {
            work = std::hint::black_box(work.wrapping_mul(6_364_136_223_846_793_005).rotate_left(7));
        }
    }
    work
}

#[inline(never)]
fn wait_in_vain(told: &Receiver<Told>) {
    began(told);
    // Much longer than it may have waited for a processor before it slept.
    std::thread::sleep(ms(2_000));
    std::hint::black_box(());
}

fn after(time: Duration) -> impl Fn() -> bool {
    let begin = Instant::now();
    move || begin.elapsed() >= time
}

/// Two seconds after the hang's beginning was told.
fn noticed(told: &Receiver<Told>) -> impl Fn() -> bool {
    let (limit, since) = (after(ms(60_000)), Cell::new(None::<Instant>));
    move || {
        match told.try_recv() {
            Ok(Told::Began(_)) => since.set(Some(Instant::now())),
            Ok(other) => panic!("expected a beginning, not {other:?}"),
            Err(_) => {}
        }
        limit() || since.get().is_some_and(|since| since.elapsed() >= ms(2_000))
    }
}

#[test]
fn a_busy_hang_says_what_it_was_busy_with() {
    let (watch, told) = watch(options(ms(250)));
    let beat = watch.beat();
    let start = Instant::now();
    beat.tick();
    compute_in_vain(noticed(&told));
    beat.rest();
    let took = start.elapsed();
    let mut hang = ended(&told);
    assert_eq!(hang.end, Some(End::Recovered));
    // Where the monitor had no processor, the time is told as a gap.
    assert!(hang.lasted + hang.excused.stopped >= ms(2_000), "{hang}");
    assert!(hang.lasted <= took + ms(15), "{:?} of {took:?}", hang.lasted);
    assert!(hang.samples > 2, "{hang}");
    // On a machine that has more to do it may have waited for a processor most of the time.
    assert!(!matches!(hang.activity(), Activity::Waiting | Activity::Unknown), "{hang}");
    let mut schema = Schema::new();
    keeps_to_the_schema(&hang, &mut schema);
    let names = names(&mut hang);
    keeps_to_the_schema(&hang, &mut schema);
    keeps_to_the_schema(&Hang::default(), &mut schema);
    // Whether there are symbols too is up to the C library: its debug info may be installed.
    for part in ["hangExcused).gaps", "hangImage).end_address", "hangNode).own_time_ms", "hangThread).id"] {
        assert!(schema.has_seen(part), "{part} was never written");
    }
    assert!(contains(&names, "compute_in_vain") && contains(&names, "a_busy_hang_says"), "{hang}");
    assert_eq!(hang.incomplete, 0, "{hang}");
}

/// What asks for the time all the time is in the kernel's image, most of it.
#[inline(never)]
fn watch_the_clock(enough: impl Fn() -> bool) {
    while !enough() {
        for _ in 0..20_000 {
            std::hint::black_box(Instant::now());
        }
    }
}

#[test]
fn functions_of_the_kernels_image_have_names() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    if !maps.contains("[vdso]") {
        return eprintln!("skipped: the kernel gives no image");
    }
    let (watch, told) = watch(options(ms(100)));
    let beat = watch.beat();
    beat.tick();
    watch_the_clock(noticed(&told));
    beat.rest();
    let mut hang = ended(&told);
    hang.name(&Symbols::new());
    let vdso = hang.process.images.iter().position(|image| image.name == "[vdso]").unwrap();
    let inside: Vec<_> =
        hang.nodes().iter().map(|node| &node.frame).filter(|frame| frame.image == Some(vdso)).collect();
    assert!(!inside.is_empty(), "{hang}");
    // The one whose symbol it has.
    let named =
        inside.iter().filter(|frame| frame.names().any(|name| name.contains("clock_gettime"))).count();
    assert_eq!(named, inside.len(), "{hang}");
    // Every instruction of it is one function: the tree is not split by them.
    let text = hang.to_string();
    assert!(!text.contains("[vdso]+0x"), "{text}");
}

#[test]
fn a_waiting_hang_says_what_it_waited_in() {
    let (watch, told) = watch(options(ms(250)));
    let beat = watch.beat();
    let work = beat.work();
    wait_in_vain(&told);
    drop(work);
    let mut hang = ended(&told);
    assert_eq!(hang.activity(), Activity::Waiting, "{hang}");
    assert!(contains(&names(&mut hang), "wait_in_vain"), "{hang}");
}

/// How long the calling thread has waited for a processor so far.
fn queued() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Ticks and rests; whether no tick came late for want of a processor, which is a hang.
fn tick_for(beat: &Beat, time: Duration, pause: Duration, threshold: Duration) -> bool {
    let enough = after(time);
    let (mut before, mut is_in_time) = (queued(), true);
    while !enough() {
        beat.tick();
        std::thread::sleep(pause);
        let now = queued();
        is_in_time &= now - before < threshold / 2;
        before = now;
    }
    beat.rest();
    is_in_time
}

#[test]
fn who_ticks_or_rests_is_left_alone() {
    let (watch, told) = watch(options(ms(2_000)));
    let is_in_time = tick_for(&watch.beat(), ms(1_000), ms(5), ms(2_000));
    std::thread::sleep(ms(2_500));
    watch.stop();
    assert!(!is_in_time || told.try_recv().is_err());
}

#[test]
fn a_watch_that_stops_ends_its_hang() {
    let (watch, told) = watch(options(ms(100)));
    watch.beat().tick();
    began(&told);
    watch.stop();
    assert_eq!(ended(&told).end, Some(End::Unwatched));
}

#[test]
fn a_directory_that_cannot_be_made_is_told_and_costs_only_the_file() {
    let mut options = options(ms(100));
    options.directory = Some("/proc/self/no-such-directory".into());
    let (watch, told) = watch(options);
    watch.beat().tick();
    let problem = told.recv_timeout(ms(60_000)).unwrap();
    assert!(
        matches!(&problem, Told::Problem(problem) if problem.contains("cannot be written")),
        "{problem:?}"
    );
    began(&told);
    watch.stop();
    ended(&told);
}

#[test]
fn a_thread_that_ends_without_a_rest_does_not_hang() {
    let (sender, receiver) = channel();
    let watched = std::thread::spawn(move || {
        sender.send(watch(options(ms(100)))).unwrap();
    });
    watched.join().unwrap();
    let (watch, told) = receiver.recv().unwrap();
    // Told for it when it has ended: it is not to be late before, however busy the machine is.
    watch.beat().tick();
    std::thread::sleep(ms(400));
    watch.stop();
    assert!(told.try_recv().is_err());
}

/// Not a test: what the tests below run as a process of its own.
#[test]
fn child() {
    let Ok(directory) = std::env::var("BACKTRAIL_TEST_HANG") else { return };
    let mut options = options(ms(1_000));
    options.directory = Some(directory.into());
    let (watch, told) = watch(options);
    let beat = watch.beat();
    if std::env::var_os("BACKTRAIL_TEST_HANG_TICKS").is_some() {
        return tick_for_a_while(&beat, watch, &told);
    }
    beat.tick();
    compute_in_vain(after(ms(60_000)));
}

fn tick_for_a_while(beat: &Beat, watch: Watch, told: &Receiver<Told>) {
    let is_in_time = tick_for(beat, ms(6_000), ms(1), ms(1_000));
    watch.stop();
    assert!(!is_in_time || told.try_recv().is_err(), "a false alarm");
}

fn start(directory: &Path, ticks: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env("BACKTRAIL_TEST_HANG", directory);
    if ticks {
        command.env("BACKTRAIL_TEST_HANG_TICKS", "1");
    }
    command.stdout(Stdio::null()).spawn().unwrap()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

#[test]
fn a_process_that_is_stopped_does_not_hang() {
    let directory = TempDir::new("hang-stop");
    let mut child = start(directory.path(), true);
    std::thread::sleep(ms(1_200));
    for _ in 0..2 {
        signal(&child, "-STOP");
        std::thread::sleep(ms(2_000));
        signal(&child, "-CONT");
        std::thread::sleep(ms(50));
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_hang_that_is_ended_by_a_kill_is_found_afterwards() {
    let directory = TempDir::new("hang-kill");
    let mut child = start(directory.path(), false);
    let end = Instant::now() + ms(60_000);
    let is_written = || {
        let entries = std::fs::read_dir(directory.path()).unwrap();
        entries.flatten().any(|entry| entry.metadata().is_ok_and(|data| data.len() > 20_000))
    };
    while !is_written() && Instant::now() < end {
        std::thread::sleep(ms(20));
    }
    assert_eq!(unfinished(directory.path()).unwrap().len(), 0, "the process still runs");
    child.kill().unwrap();
    child.wait().unwrap();
    let mut found = unfinished(directory.path()).unwrap();
    assert_eq!(found.len(), 1);
    let hang = found[0].hang.as_mut().unwrap();
    assert_eq!(hang.end, None);
    assert!(hang.lasted >= ms(1_000) && hang.samples > 0, "{hang}");
    assert_eq!(hang.process.pid, Some(u64::from(child.id())));
    assert!(contains(&names(hang), "compute_in_vain"), "{hang}");
    found[0].remove().unwrap();
    assert_eq!(unfinished(directory.path()).unwrap().len(), 0);
}
