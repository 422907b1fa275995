//! Stacks of this process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test's helpers may")]

use backtrail::Symbols;
use backtrail::capture::{CaptureError, Capturer, Method, Options, RawStack, ThreadCache, ThreadId};
use std::hint::black_box;
use std::sync::mpsc;

fn capturer(method: Method) -> Capturer {
    let mut options = Options::default();
    options.method = method;
    options.timeout = std::time::Duration::from_secs(30);
    Capturer::new(options).unwrap()
}

fn names(capturer: &Capturer, stack: &RawStack) -> Vec<String> {
    let frames = backtrail::capture::symbolize(capturer, stack, &Symbols::new());
    frames.iter().flat_map(|frame| frame.names().map(str::to_owned).collect::<Vec<_>>()).collect()
}

/// Positions of functions in a stack's names, which must ascend.
fn assert_chain(names: &[String], wanted: &[&str]) {
    let mut rest = names.iter();
    for name in wanted {
        assert!(rest.any(|seen| seen.contains(name)), "{name} of {wanted:?} not in {names:#?}");
    }
}

#[inline(never)]
fn outer(work: &mut dyn FnMut()) {
    middle(work);
    black_box(1);
}

#[inline(never)]
fn middle(work: &mut dyn FnMut()) {
    inner(work);
    black_box(2);
}

#[inline(never)]
fn inner(work: &mut dyn FnMut()) {
    work();
    black_box(3);
}

#[test]
fn this_thread_from_its_caller_on() {
    let capturer = capturer(Method::Rules);
    let (mut stack, mut skipped, mut cached) = (RawStack::new(), RawStack::new(), RawStack::new());
    let mut cache = ThreadCache::new().unwrap();
    outer(&mut || {
        capturer.current(&mut stack);
        capturer.current_skipping(1, &mut skipped);
        for _ in 0..2 {
            capturer.current_cached(&mut cache, 0, &mut cached);
        }
        // Else the last call may be a jump, and this frame is gone before it.
        black_box(&cached);
    });
    let names = names(&capturer, &stack);
    println!("{names:#?}\n{:?}", stack.ended());
    assert!(names[0].contains("this_thread_from_its_caller_on"), "{names:#?}");
    assert_chain(&names, &["this_thread", "inner", "middle", "outer", "this_thread", "thread_start"]);
    assert_eq!(skipped.frames()[..], stack.frames()[1..]);
    assert_eq!(cached.frames()[1..], stack.frames()[1..]);
    assert!(matches!(stack.ended(), Some(backtrail::capture::WalkEnd::EndOfStack(_))), "{stack:?}");
    assert_eq!(stack.thread(), Some(ThreadId::current()));
}

#[test]
fn the_main_thread() {
    let capturer = capturer(Method::Rules);
    let mut stack = RawStack::new();
    capturer.main_thread(&mut stack).unwrap();
    assert_eq!(stack.thread(), Some(ThreadId::main()));
    assert_eq!(ThreadId::main().get(), std::process::id());
    // It waits for this test. 32-bit ARM's C library has no unwind information for that.
    if cfg!(not(target_arch = "arm")) {
        assert_chain(&names(&capturer, &stack), &["main"]);
    }
}

#[test]
fn another_thread_by_its_handle() {
    for method in [Method::Rules, Method::CopyStack(64 << 10)] {
        let capturer = capturer(method);
        let (sender, receiver) = mpsc::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            outer(&mut || {
                sender.send(()).unwrap();
                // 32-bit ARM's C library has no unwind information for the function that waits in the kernel.
                while cfg!(target_arch = "arm") && stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {}
                let _ = stopped.recv();
            });
        });
        receiver.recv().unwrap();
        let id = ThreadId::of(&thread).unwrap();
        let mut stack = RawStack::new();
        capturer.thread(id, &mut stack).unwrap();
        let names = names(&capturer, &stack);
        println!("{names:#?}\n{:?}", stack.ended());
        assert_chain(&names, &["inner", "middle", "outer", "thread_start"]);
        let all = capturer.all();
        let found = all.iter().find(|thread| thread.id == id).unwrap();
        let again = found.stack.as_ref().unwrap();
        assert!(again.frames().len() > 5, "{again:?}");
        drop(stop);
        thread.join().unwrap();
        assert_eq!(capturer.thread(id, &mut stack), Err(CaptureError::Gone));
        assert!(stack.frames().is_empty());
    }
}
