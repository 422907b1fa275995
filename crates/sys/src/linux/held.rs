//! Threads that were asked for their stacks in a crash stand still until it is written down.
//!
//! A signal ends a wait (`pause`, `sleep`, `epoll_wait`) whatever its handler does. A program that takes that for an error would go on and
//! leave, in the midst of the report, with an exit code of its own.

use super::futex;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

const FREE: u32 = 0;
/// They take no signal.
const HELD: u32 = 1;
/// They take signals, for handlers of others, which may ask them something, too.
const HEARING: u32 = 2;

/// How long they stay then. A handler may leave by `longjmp`, and the program go on.
const LONGEST_HEARING: Duration = Duration::from_secs(1);

/// Bytes of a set of signals as the kernel has it.
const SET_BYTES: usize = 8;

static STATE: AtomicU32 = AtomicU32::new(FREE);
/// Milliseconds.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// From now on threads that were asked stay in their handlers, for so long at most. Safe in a signal handler, as the others are.
pub(super) fn hold(longest: Duration) {
    LONGEST.store(u64::try_from(longest.as_millis()).unwrap_or(u64::MAX), SeqCst);
    STATE.store(HELD, SeqCst);
}

/// Has them take signals, where they are held: the report is written, and handlers of others are called.
pub(super) fn hear() {
    if STATE.compare_exchange(HELD, HEARING, SeqCst, SeqCst).is_ok() {
        futex::wake(&STATE);
    }
}

/// Lets them go on: the process does.
pub(super) fn let_go() {
    if STATE.swap(FREE, SeqCst) != FREE {
        futex::wake(&STATE);
    }
}

/// Stays while threads are held. `mask` is the set of signals that the thread did not take before.
pub(super) fn stay(mask: *const c_void) {
    let longest = Duration::from_millis(LONGEST.load(SeqCst));
    if wait_while(HELD, longest) != HEARING {
        return;
    }
    // SAFETY: the caller's pointer is to a set of the kernel's. Where the handler returns, the kernel sets it likewise.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            mask,
            std::ptr::null::<c_void>(),
            SET_BYTES,
        );
    }
    wait_while(HEARING, longest.min(LONGEST_HEARING));
}

/// Gives the state afterwards.
fn wait_while(state: u32, longest: Duration) -> u32 {
    let begun = Instant::now();
    loop {
        let now = STATE.load(SeqCst);
        let left = longest.saturating_sub(begun.elapsed());
        if now != state || left.is_zero() {
            return now;
        }
        futex::wait(&STATE, state, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_held_stays_until_it_is_let_go_and_not_for_ever() {
        static NONE: [u8; SET_BYTES] = [0; SET_BYTES];
        let stay = || super::stay(NONE.as_ptr().cast());
        stay();
        hold(Duration::from_millis(20));
        let begun = Instant::now();
        stay();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        hear();
        let begun = Instant::now();
        stay();
        assert!(begun.elapsed() >= Duration::from_millis(20));
        hold(Duration::from_secs(600));
        let held = std::thread::spawn(stay);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!held.is_finished());
        let_go();
        held.join().unwrap();
        // Nobody is held any more.
        hear();
        stay();
    }
}
