//! Other handlers of signals for as long as something lives.

use super::{exchanged, handler_address, ours, previous};
use std::ffi::c_int;

/// While this lives, SIGABRT does what it would do without us. A handler from before that ends the process by `abort`, as Rust's does
/// of a stack that has overflowed, would come to ours once more, for nothing; and a small stack for signals has no room for a second
/// frame (with AVX-512 and AMX one has 11 KB, and Rust's stack 12).
pub(super) struct AbortsByDefault {
    ours: Option<libc::sigaction>,
}

impl AbortsByDefault {
    pub(super) fn after(number: c_int) -> Self {
        let had_none = previous(libc::SIGABRT).is_some_and(|before| before.sa_sigaction == libc::SIG_DFL);
        if number == libc::SIGABRT || !had_none {
            return Self { ours: None };
        }
        // SAFETY: all zeros is a valid `sigaction` and means the default action; the pointers are valid.
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            let mut default: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            let answer = libc::sigaction(libc::SIGABRT, &raw const default, &raw mut ours);
            let is_ours = answer == 0 && ours.sa_sigaction == handler_address();
            if answer == 0 && !is_ours {
                // Somebody's that was installed later.
                libc::sigaction(libc::SIGABRT, &raw const ours, std::ptr::null_mut());
            }
            Self { ours: is_ours.then_some(ours) }
        }
    }
}

impl Drop for AbortsByDefault {
    fn drop(&mut self) {
        if let Some(ours) = &self.ours {
            // SAFETY: the pointers are valid or null.
            unsafe { libc::sigaction(libc::SIGABRT, ours, std::ptr::null_mut()) };
        }
    }
}

/// While this lives, faults come to our handler, whoever has installed one since: HotSpot does before it writes its own report. The
/// worker's would end the process or stop it for ever otherwise.
pub(super) struct TakenBack([Option<(c_int, libc::sigaction)>; 7]);

impl TakenBack {
    pub(super) fn faults() -> Self {
        let faults = [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGSYS,
        ];
        Self(faults.map(|number| {
            previous(number)?;
            let theirs = exchanged(number, &ours())?;
            if theirs.sa_sigaction != handler_address() {
                return Some((number, theirs));
            }
            None
        }))
    }
}

impl Drop for TakenBack {
    fn drop(&mut self) {
        for (number, theirs) in self.0.iter().flatten() {
            exchanged(*number, theirs);
        }
    }
}
