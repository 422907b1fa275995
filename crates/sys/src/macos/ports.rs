//! Mach ports: made ahead of time, then messages to and from them by system calls alone.

use super::error::check;
use super::ffi::{self, Port};
use crate::error::OsError;
use crate::mach_message;
use std::ffi::c_void;
use std::time::Duration;

/// `MACH_PORT_RIGHT_RECEIVE`.
const RECEIVE: i32 = 1;
/// `MACH_MSG_TYPE_MAKE_SEND`.
const MAKE_SEND: u32 = 20;
/// Options and answers of `mach_msg`: `mach/message.h`.
const SEND_MSG: i32 = 1;
const RCV_MSG: i32 = 2;
const SEND_TIMEOUT: i32 = 0x10;
const RCV_TIMEOUT: i32 = 0x100;
const RCV_TIMED_OUT: i32 = 0x1000_4003;

/// Room for a message with the trailer that the kernel adds.
#[repr(C, align(8))]
pub(super) struct Message {
    bytes: [u8; 512],
}

impl Message {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; 512] }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A port that this task receives from and may send to.
pub(super) fn make() -> Result<Port, OsError> {
    let mut port = 0;
    // SAFETY: the pointer is valid; the name is the one that was made.
    unsafe {
        check("mach_port_allocate", ffi::mach_port_allocate(ffi::task(), RECEIVE, &raw mut port))?;
        check("mach_port_insert_right", ffi::mach_port_insert_right(ffi::task(), port, port, MAKE_SEND))?;
    }
    Ok(port)
}

/// Waits for a message, for so long at most; `false` where none came.
///
/// # Signal safety
///
/// Safe.
pub(super) fn receive(from: Port, into: &mut Message, patience: Option<Duration>) -> Result<bool, OsError> {
    let (more, time) = match patience {
        Some(patience) => (RCV_TIMEOUT, u32::try_from(patience.as_millis()).unwrap_or(u32::MAX)),
        None => (0, 0),
    };
    let size = u32::try_from(into.bytes.len()).unwrap_or(0);
    // SAFETY: the kernel writes `size` bytes at most, for which there is room.
    let answer =
        unsafe { ffi::mach_msg(into.bytes.as_mut_ptr().cast(), RCV_MSG | more, 0, size, from, time, 0) };
    if answer == RCV_TIMED_OUT {
        return Ok(false);
    }
    check("mach_msg", answer).map(|()| true)
}

/// Sends a message. One that does not get in within a second is given up.
///
/// # Signal safety
///
/// Safe.
fn send(message: &[u8]) {
    const PATIENCE: u32 = 1000;
    let mut room = Message::new();
    room.bytes.iter_mut().zip(message).for_each(|(to, from)| *to = *from);
    let size = u32::try_from(message.len()).unwrap_or(0);
    let start: *mut c_void = room.bytes.as_mut_ptr().cast();
    // SAFETY: the message is as large as is said, and carries no memory.
    unsafe { ffi::mach_msg(start, SEND_MSG | SEND_TIMEOUT, size, 0, 0, PATIENCE, 0) };
}

/// Sends a message that has nothing but its number.
///
/// # Signal safety
///
/// Safe.
pub(super) fn tell(port: Port, id: i32) {
    send(&mach_message::note(port, id));
}

/// Answers a thread that met with an exception: it goes on, or the kernel asks whoever is next.
///
/// # Signal safety
///
/// Safe.
pub(super) fn answer(request: &mach_message::Request, answer: i32) {
    send(&request.answer(answer));
}
