//! What programs do to capturers: panics, drops, forks, many at once. Nobody may be left waiting, and captures go on.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    unsafe_code,
    reason = "a test's helpers may, and a fork cannot be had without"
)]

use backtrail::capture::{Capturer, Options, RawStack, ThreadId, WalkEnd};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_secs(60);

fn capturer() -> Capturer {
    let mut options = Options::default();
    options.timeout = LONG;
    options.loader_patience = LONG;
    Capturer::new(options).unwrap()
}

#[inline(never)]
fn deep(depth: usize, work: &mut dyn FnMut()) {
    if depth > 0 {
        deep(depth - 1, work);
    } else {
        work();
    }
    black_box(depth);
}

/// Threads that are deep in recursion until this is dropped.
struct Busy {
    over: &'static AtomicBool,
    ids: Vec<ThreadId>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn start(count: usize) -> Self {
        let over: &'static AtomicBool = Box::leak(Box::default());
        let at: &'static [AtomicU32] = Box::leak((0..count).map(|_| AtomicU32::new(0)).collect());
        let start = |place: &'static AtomicU32| {
            std::thread::spawn(move || {
                deep(30, &mut || {
                    place.store(ThreadId::current().get(), SeqCst);
                    while !over.load(SeqCst) {
                        std::thread::yield_now();
                    }
                });
            })
        };
        let threads = at.iter().map(start).collect();
        let id = |place: &AtomicU32| loop {
            match place.load(SeqCst) {
                0 => std::thread::yield_now(),
                id => return ThreadId::new(id),
            }
        };
        Self { over, ids: at.iter().map(id).collect(), threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.over.store(true, SeqCst);
        self.threads.drain(..).for_each(|thread| thread.join().unwrap());
    }
}

fn assert_whole(stack: &RawStack) {
    assert!(stack.frames().len() > 30, "{stack:?}");
    assert!(matches!(stack.ended(), Some(WalkEnd::EndOfStack(_))), "{stack:?}");
}

/// More captures than there are slots: none was lost.
fn assert_all_slots_are_free(capturer: &Capturer, id: ThreadId) {
    let mut stack = RawStack::new();
    for _ in 0..100 {
        capturer.thread(id, &mut stack).unwrap();
        assert_whole(&stack);
    }
}

#[test]
fn panics_of_who_asks_leave_nothing_behind() {
    let busy = Busy::start(4);
    let capturer = capturer();
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| assert_all_slots_are_free(&capturer, busy.ids[0]));
        for round in 0..60 {
            let answer = catch_unwind(AssertUnwindSafe(|| {
                // While stacks are looked at, and while a capture of one's own is under way.
                if round % 2 == 0 {
                    for thread in capturer.all() {
                        assert!(thread.id != busy.ids[1], "a panic in the midst of the threads");
                    }
                } else {
                    let mut stack = RawStack::new();
                    deep(20, &mut || {
                        capturer.current(&mut stack);
                        assert!(stack.frames().is_empty(), "a panic with a stack just captured");
                    });
                }
            }));
            assert!(answer.is_err());
        }
        looking.join().unwrap();
    });
    assert_all_slots_are_free(&capturer, busy.ids[0]);
}

#[test]
fn capturers_come_and_go_while_others_capture() {
    let busy = Busy::start(2);
    let lasting = capturer();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..15 {
                    let mut stack = RawStack::new();
                    let own = capturer();
                    assert_eq!(own.signal(), lasting.signal());
                    own.thread(busy.ids[0], &mut stack).unwrap();
                    assert_whole(&stack);
                    drop(own);
                    lasting.thread(busy.ids[1], &mut stack).unwrap();
                    assert_whole(&stack);
                }
            });
        }
        scope.spawn(|| assert_all_slots_are_free(&lasting, busy.ids[0]));
    });
}

#[test]
fn many_capturers_share_a_signal_and_capture_each_other() {
    let all: Vec<Capturer> = (0..40).map(|_| capturer()).collect();
    let busy = Busy::start(1);
    std::thread::scope(|scope| {
        for part in all.chunks(10) {
            let busy = &busy;
            scope.spawn(move || {
                let mut stack = RawStack::new();
                for capturer in part {
                    capturer.thread(busy.ids[0], &mut stack).unwrap();
                    assert_whole(&stack);
                    let threads = capturer.all();
                    let one = threads.iter().find(|thread| thread.id == busy.ids[0]).unwrap();
                    assert_whole(one.stack.as_ref().unwrap());
                }
            });
        }
    });
}

/// What the child of a fork says by its exit code.
fn in_child(capturer: &Capturer) -> i32 {
    let mut stack = RawStack::new();
    let mut is_whole = false;
    deep(40, &mut || {
        capturer.current(&mut stack);
        is_whole = stack.frames().len() > 40;
    });
    if !is_whole {
        return 1;
    }
    // The list is not followed here, and nobody waits for that.
    if capturer.refresh() {
        return 2;
    }
    0
}

/// The child's exit code; `None` where it does not end.
fn wait(child: libc::pid_t) -> Option<i32> {
    let start = Instant::now();
    loop {
        let mut status = 0;
        // SAFETY: the status is the caller's.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            return Some(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -status });
        }
        if start.elapsed() > LONG {
            // SAFETY: a child of this test that was not waited for.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_fork_amidst_captures_leaves_a_child_that_captures() {
    let busy = Busy::start(3);
    let capturer = capturer();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for id in &busy.ids {
            let (capturer, over) = (&capturer, &over);
            scope.spawn(move || {
                let mut stack = RawStack::new();
                while !over.load(SeqCst) {
                    capturer.thread(*id, &mut stack).unwrap();
                }
            });
        }
        let codes: Vec<Option<i32>> = (0..20)
            .map(|_| {
                // SAFETY: the child allocates, which the C library's fork provides for, and ends without unwinding.
                match unsafe { libc::fork() } {
                    0 => {
                        let code = catch_unwind(AssertUnwindSafe(|| in_child(&capturer))).unwrap_or(9);
                        // SAFETY: no destructors run.
                        unsafe { libc::_exit(code) }
                    }
                    child => wait(child),
                }
            })
            .collect();
        over.store(true, SeqCst);
        assert_eq!(codes, [Some(0); 20]);
    });
    assert_all_slots_are_free(&capturer, busy.ids[0]);
}
