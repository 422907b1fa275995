//! Waits that end at an interval.

use super::OsError;
use std::time::Duration;

/// Interrupts the waits of the thread that made it at an interval, as long as it lives: system calls end with `EINTR`. One that
/// begins just after an interrupt lasts until the next. timer_create(2), `SIGEV_THREAD_ID`.
#[derive(Debug)]
pub struct Interrupts(libc::timer_t);

impl Interrupts {
    /// Takes a real-time signal that nothing handles, for ever.
    ///
    /// # Errors
    /// Where there is no such signal, or no further timer.
    pub fn every(interval: Duration) -> Result<Self, OsError> {
        let signal = take_signal()?;
        // SAFETY: a structure of numbers and a pointer, for which zeros are valid.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: the call has no preconditions.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both pointers are valid until the call is over.
        let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) };
        if made == -1 {
            return Err(OsError::last("timer_create"));
        }
        let timer = Self(timer);
        let interval = libc::timespec {
            tv_sec: interval.as_secs().try_into().unwrap_or(i32::MAX.into()),
            #[allow(clippy::cast_lossless, reason = "words have 32 bits on some systems")]
            tv_nsec: interval.subsec_nanos() as libc::c_long,
        };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: the timer is there, and `times` lives until the call is over.
        let set = unsafe { libc::timer_settime(timer.0, 0, &raw const times, std::ptr::null_mut()) };
        if set == -1 { Err(OsError::last("timer_settime")) } else { Ok(timer) }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // SAFETY: the timer is there, and nobody else deletes it.
        unsafe { libc::timer_delete(self.0) };
    }
}

extern "C" fn nothing(_: libc::c_int) {}

/// The lowest real-time signal that nothing handles or that was taken here before. The first ones are skipped: people take those.
fn take_signal() -> Result<libc::c_int, OsError> {
    const SKIPPED: libc::c_int = 8;
    let ours = nothing as extern "C" fn(libc::c_int) as usize;
    for signal in libc::SIGRTMIN() + SKIPPED..=libc::SIGRTMAX() {
        // SAFETY: a structure of numbers, for which zeros are numbers.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: `action` lives until the call is over.
        let known = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
        if known == -1 || (action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != ours) {
            continue;
        }
        // Without `SA_RESTART`, so that waits end.
        action.sa_flags = 0;
        action.sa_sigaction = ours;
        // SAFETY: `action` lives until the call is over; its function does nothing.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } == 0 {
            return Ok(signal);
        }
    }
    Err(OsError { call: "sigaction", number: libc::EBUSY })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_wait_without_end_ends_at_the_interval() {
        let interrupts = Interrupts::every(Duration::from_millis(10)).unwrap();
        let begun = Instant::now();
        for _ in 0..3 {
            // SAFETY: no memory is involved.
            let answer = unsafe { libc::poll(std::ptr::null_mut(), 0, -1) };
            assert_eq!((answer, OsError::last("poll").number), (-1, libc::EINTR));
        }
        assert!(begun.elapsed() >= Duration::from_millis(20));
        drop(interrupts);
        // SAFETY: as before.
        assert_eq!(unsafe { libc::poll(std::ptr::null_mut(), 0, 50) }, 0, "no longer");
    }
}
