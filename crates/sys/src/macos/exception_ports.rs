//! Who is told of exceptions: this task's ports, and those from before.

use super::error::check;
use super::ffi::{self, Port};
use crate::error::OsError;
use crate::mach_exception::CAUGHT;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Kinds of exceptions that ports are kept for: `EXC_TYPES_COUNT`.
const KINDS: usize = 14;
/// `EXCEPTION_DEFAULT | MACH_EXCEPTION_CODES`.
const BEHAVIOUR: u32 = 1 | 0x8000_0000;
/// `THREAD_STATE_NONE`: of that behaviour none is sent.
#[cfg(target_arch = "aarch64")]
const NO_STATE: i32 = 5;
#[cfg(target_arch = "x86_64")]
const NO_STATE: i32 = 13;

/// Who was told before of some kinds.
struct Before {
    mask: AtomicU32,
    port: AtomicU32,
    behaviour: AtomicU32,
    flavor: AtomicU32,
}

static BEFORE: [Before; KINDS] = [const {
    Before {
        mask: AtomicU32::new(0),
        port: AtomicU32::new(0),
        behaviour: AtomicU32::new(0),
        flavor: AtomicU32::new(0),
    }
}; KINDS];

/// Has this port told of the task's exceptions, and keeps who was before. Not for signal handlers.
pub(super) fn take(port: Port) -> Result<(), OsError> {
    let (mut masks, mut ports, mut behaviours, mut flavors) =
        ([0; KINDS], [0; KINDS], [0; KINDS], [0; KINDS]);
    let mut count = u32::try_from(KINDS).unwrap_or(0);
    // SAFETY: the kernel fills in `count` entries of each at most, for which there is room.
    let answer = unsafe {
        ffi::task_swap_exception_ports(
            ffi::task(),
            CAUGHT,
            port,
            BEHAVIOUR,
            NO_STATE,
            masks.as_mut_ptr(),
            &raw mut count,
            ports.as_mut_ptr(),
            behaviours.as_mut_ptr(),
            flavors.as_mut_ptr(),
        )
    };
    check("task_swap_exception_ports", answer)?;
    let told = masks.into_iter().zip(ports).zip(behaviours.into_iter().zip(flavors));
    for (before, ((mask, port), (behaviour, flavor))) in BEFORE.iter().zip(told).take(count as usize) {
        before.port.store(port, SeqCst);
        before.behaviour.store(behaviour, SeqCst);
        before.flavor.store(flavor.cast_unsigned(), SeqCst);
        before.mask.store(mask, SeqCst);
    }
    Ok(())
}

/// Has the exceptions of one thread go to this port, before the task's.
pub(super) fn take_of_thread(thread: Port, port: Port) -> Result<(), OsError> {
    // SAFETY: takes numbers only.
    let answer = unsafe { ffi::thread_set_exception_ports(thread, CAUGHT, port, BEHAVIOUR, NO_STATE) };
    check("thread_set_exception_ports", answer)
}

/// Has those told again who were before.
///
/// # Signal safety
///
/// Safe.
pub(super) fn give_back() {
    for before in &BEFORE {
        let mask = before.mask.load(SeqCst);
        if mask != 0 {
            let (port, behaviour) = (before.port.load(SeqCst), before.behaviour.load(SeqCst));
            let flavor = before.flavor.load(SeqCst).cast_signed();
            // SAFETY: takes numbers only.
            unsafe { ffi::task_set_exception_ports(ffi::task(), mask, port, behaviour, flavor) };
        }
    }
}

/// Whether somebody was told before of a kind of exception.
///
/// # Signal safety
///
/// Safe.
pub(super) fn has_before(kind: u32) -> bool {
    let bit = 1_u32.checked_shl(kind).unwrap_or(0);
    BEFORE.iter().any(|before| before.mask.load(SeqCst) & bit != 0 && before.port.load(SeqCst) != 0)
}
