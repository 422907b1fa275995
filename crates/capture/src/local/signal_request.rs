//! Asking a thread, and why it does not answer.

use super::{Claim, DirectedSignal, OsError, Sent, Status, ThreadId, Work};
use crate::ThreadState;
use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Why a thread was not captured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CaptureError {
    /// There is no such thread in this process, or no longer.
    Gone,
    /// It blocks the signal that asks it.
    SignalBlocked,
    /// It waits in the kernel, where no signal reaches it.
    InKernel,
    /// It is stopped, by a signal or a debugger.
    Stopped,
    /// It did not come round to answering in time.
    TimedOut,
    /// Somebody has replaced the handler of the signal.
    HandlerReplaced,
    /// Too many captures are under way.
    Busy,
    /// The signal could not be sent.
    System(OsError),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the thread is gone"),
            Self::SignalBlocked => f.write_str("the thread blocks the signal that asks for its stack"),
            Self::InKernel => f.write_str("the thread waits in the kernel and takes no signals"),
            Self::Stopped => f.write_str("the thread is stopped"),
            Self::TimedOut => f.write_str("the thread did not answer in time"),
            Self::HandlerReplaced => f.write_str("the handler of the signal was replaced"),
            Self::Busy => f.write_str("too many captures are under way"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CaptureError {}

/// Threads that did not answer lately: their signals may still be waiting for them, and more would pile up until the
/// process can send none at all. Of more threads than fit here some are asked in vain.
static SILENT: [AtomicU32; 128] = [const { AtomicU32::new(0) }; 128];

/// Which one is remembered for another the next time, where there is no room.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A thread that was asked by a signal. Numbers of threads have 22 bits at most (Linux, `PID_MAX_LIMIT`).
fn asked_by(signal: DirectedSignal, thread: ThreadId) -> u32 {
    thread.get() | signal.number().unsigned_abs() << 24
}

fn remember(silent: u32) {
    if SILENT.iter().any(|place| place.load(Relaxed) == silent) {
        return;
    }
    let free = |place: &&AtomicU32| place.compare_exchange(0, silent, Relaxed, Relaxed).is_ok();
    if SILENT.iter().find(free).is_none()
        && let Some(place) = SILENT.get(NEXT.fetch_add(1, Relaxed) as usize % SILENT.len())
    {
        // Most of those that are remembered for long have ended.
        place.store(silent, Relaxed);
    }
}

/// Why a thread that did not answer the last time would not answer now.
fn still_silent(signal: DirectedSignal, thread: ThreadId) -> Option<CaptureError> {
    let silent = asked_by(signal, thread);
    let place = SILENT.iter().find(|place| place.load(Relaxed) == silent)?;
    let status = Status::of(thread).filter(|status| !status.state.is_gone());
    if let Some(status) = status.filter(|status| status.has_pending(signal.number())) {
        return Some(why(&status, signal));
    }
    let _ = place.compare_exchange(silent, 0, Relaxed, Relaxed);
    None
}

fn why(status: &Status, signal: DirectedSignal) -> CaptureError {
    match status.state {
        state if state.is_gone() => CaptureError::Gone,
        // A thread that is in the handler blocks it too.
        _ if status.blocks(signal.number()) && status.has_pending(signal.number()) => {
            CaptureError::SignalBlocked
        }
        ThreadState::Uninterruptible => CaptureError::InKernel,
        ThreadState::Stopped | ThreadState::Tracing => CaptureError::Stopped,
        _ => CaptureError::TimedOut,
    }
}

/// Asks a thread to do a slot's work. Neither allocates nor locks.
///
/// # Errors
/// Where it cannot be asked, or is known not to answer.
pub fn send<W: Work>(
    claim: Claim<W>,
    signal: DirectedSignal,
    thread: ThreadId,
) -> Result<Sent<W>, CaptureError> {
    if let Some(why) = still_silent(signal, thread) {
        return Err(why);
    }
    claim.send(signal, thread).map_err(|error| match error.number {
        // No such thread; a number that is none.
        3 | 22 => CaptureError::Gone,
        _ => CaptureError::System(error),
    })
}

/// After these times it is looked whether the thread can answer at all.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), SLEEPS_LONG];
/// A thread that sleeps with the signal blocked, and for which the signal has waited for so long, will not answer soon. (It has
/// had it blocked all that time: else it would have answered when it ran.)
const SLEEPS_LONG: Duration = Duration::from_millis(20);

/// Waits for a thread that was asked at a moment, up to `deadline`. Neither allocates nor locks.
///
/// # Errors
/// Why it did not answer. That it is gone, or sleeps with the signal blocked, is noticed sooner.
pub fn wait<W: Work>(
    mut sent: Sent<W>,
    signal: DirectedSignal,
    thread: ThreadId,
    asked: Instant,
    deadline: Instant,
) -> Result<Claim<W>, CaptureError> {
    for look in LOOKS.into_iter().chain([Duration::MAX]) {
        let until = asked.checked_add(look).map_or(deadline, |look| look.min(deadline));
        sent = match sent.wait(until) {
            Ok(claim) => return Ok(claim),
            Err(sent) => sent,
        };
        let status = Status::of(thread);
        // In another namespace than that of `/proc` nothing shows what a thread is at, but the kernel knows it.
        if status.is_none() && thread.cpu_time().is_err() {
            return Err(gone_or_done(sent));
        }
        let why = status.map_or(CaptureError::TimedOut, |status| why(&status, signal));
        // One that runs may be in the handler for somebody else, or starting a thread, for which the C library blocks
        // all signals for a moment: on a busy machine such moments are long.
        let is_running = status.is_some_and(|status| status.state == ThreadState::Running);
        let is_blocked = why == CaptureError::SignalBlocked && !is_running;
        if until == deadline || why == CaptureError::Gone || (is_blocked && look >= SLEEPS_LONG) {
            // It may have answered while it was looked at.
            return sent.wait(Instant::now()).map_err(|_| {
                if why != CaptureError::Gone {
                    remember(asked_by(signal, thread));
                }
                if signal.is_ours() == Ok(false) { CaptureError::HandlerReplaced } else { why }
            });
        }
    }
    Err(CaptureError::TimedOut)
}

fn gone_or_done<W: Work>(sent: Sent<W>) -> CaptureError {
    drop(sent);
    CaptureError::Gone
}
