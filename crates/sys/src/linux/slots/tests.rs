#![allow(clippy::unwrap_used, clippy::panic, reason = "a test's helpers may")]

use super::super::DirectedSignal;
use super::*;

/// Says that somebody has it.
struct Owned(bool);

impl Work for Owned {
    fn run(&mut self, _: &Stopped) {}
}

#[test]
fn a_slot_has_one_owner_however_many_want_it() {
    let slots = Slots::new(2, || Owned(false));
    let rounds = if cfg!(miri) { 50 } else { 50_000 };
    let claims = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..rounds {
                    let Some(mut claim) = slots.claim() else { continue };
                    assert!(!std::mem::replace(&mut claim.work().0, true), "two have {claim:?}");
                    std::hint::spin_loop();
                    assert!(std::mem::replace(&mut claim.work().0, false), "two have {claim:?}");
                    claims.fetch_add(1, SeqCst);
                }
            });
        }
    });
    assert!(claims.load(SeqCst) > 0);
    assert!(slots.claim().is_some());
}

/// Counts how often it was done.
struct Counted(u32);

impl Work for Counted {
    fn run(&mut self, _: &Stopped) {
        self.0 += 1;
    }
}

/// Whether `signal` is blocked by the calling thread from now on.
fn block(signal: DirectedSignal, is_blocked: bool) {
    // SAFETY: the set is filled in before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal.number());
        let how = if is_blocked { libc::SIG_BLOCK } else { libc::SIG_UNBLOCK };
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

#[test]
#[cfg_attr(miri, ignore = "has no signals")]
fn a_signal_of_long_ago_is_not_taken_for_that_of_now() {
    let signal = DirectedSignal::take(None, false).unwrap();
    let slots = Slots::new(1, || Counted(0));
    block(signal, true);
    let late = slots.claim().unwrap().send(signal, ThreadId::current()).unwrap();
    let slot = late.slot;
    drop(late);
    // As many uses later as there are generations, the slot is at the same one again, for another thread.
    slot.head.word.store(FREE, SeqCst);
    let (begin, begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        block(signal, true);
        begin.send(ThreadId::current()).unwrap();
        let _ = may_go_on.recv();
        block(signal, false);
    });
    let sent = slots.claim().unwrap().send(signal, begun.recv().unwrap()).unwrap();
    block(signal, false);
    let Err(sent) = sent.wait(Instant::now()) else { panic!("this thread was not asked") };
    drop(go_on);
    let mut done = sent.wait(Instant::now() + Duration::from_secs(60)).unwrap();
    assert_eq!(done.work().0, 1);
    other.join().unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "has no forks")]
fn the_child_of_a_fork_has_the_slots_of_threads_that_it_has_not() {
    let slots = Slots::new(3, || Counted(0));
    let others = std::thread::scope(|scope| scope.spawn(|| slots.claim().unwrap()).join().unwrap());
    let own = slots.claim().unwrap();
    // SAFETY: the child touches atomics only, and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // One that was free, and the other thread's; this thread's own is its own here too.
        let all: [Option<Claim<Counted>>; 3] = std::array::from_fn(|_| slots.claim());
        let code = i32::from(!matches!(all, [Some(_), Some(_), None]));
        // SAFETY: no destructors run.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: the status is the caller's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    drop((others, own));
}
