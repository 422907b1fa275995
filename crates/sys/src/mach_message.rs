//! The messages by which Apple's kernels tell of exceptions. Plain code over bytes: tested on any system.
//!
//! Sources: XNU `osfmk/mach/mach_exc.defs`, whose messages are laid out by `mig`'s rules, and `osfmk/mach/message.h`.

use crate::mach_exception::Exception;

/// `mach_exception_raise`: `EXCEPTION_DEFAULT` with `MACH_EXCEPTION_CODES`.
pub const RAISE: i32 = 2405;
/// A message's header.
pub const HEADER: usize = 24;
/// A request without the trailer that the kernel adds.
pub const REQUEST: usize = 84;
/// An answer.
pub const ANSWER: usize = 36;
/// Answers of a message have its number and this.
const ANSWERS: i32 = 100;
/// `MACH_MSGH_BITS_REMOTE_MASK`.
const REMOTE: u32 = 0x1f;
/// `MACH_MSG_TYPE_COPY_SEND`.
const COPY_SEND: u32 = 19;

/// `KERN_SUCCESS`: the thread goes on where it was.
pub const GOES_ON: i32 = 0;
/// `KERN_FAILURE`: the kernel asks whoever is next, and makes a signal of it at last.
pub const NOT_MINE: i32 = 5;

/// A thread has met with an exception, and stands still until there is an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    bits: u32,
    /// Where the answer goes.
    remote: u32,
    /// How numbers are written: comes back as it was.
    record: [u8; 8],
    /// The thread's port.
    pub thread: u32,
    /// The task's port.
    pub task: u32,
    /// What happened, without what the processor says of it.
    pub exception: Exception,
}

/// The number that says what a message is.
pub fn id(message: &[u8]) -> Option<i32> {
    number(message, 20).map(u32::cast_signed)
}

impl Request {
    /// Reads a message; `None` for another one.
    pub fn parse(message: &[u8]) -> Option<Self> {
        let long = |at: usize| message.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
        // Two ports, two codes.
        let is_one = id(message)? == RAISE && number(message, 24)? == 2 && number(message, 64)? == 2;
        let (kind, code, subcode) = (number(message, 60)?, long(68)?, long(76)?);
        is_one.then_some(Self {
            bits: number(message, 0)?,
            remote: number(message, 8)?,
            record: message.get(52..)?.first_chunk().copied()?,
            thread: number(message, 28)?,
            task: number(message, 40)?,
            exception: Exception { kind, code, subcode, syndrome: 0 },
        })
    }

    /// The answer to it: [`GOES_ON`] or [`NOT_MINE`].
    pub fn answer(&self, answer: i32) -> [u8; ANSWER] {
        let header =
            [self.bits & REMOTE, ANSWER as u32, self.remote, 0, 0, (RAISE + ANSWERS).cast_unsigned()];
        let bytes = header.into_iter().flat_map(u32::to_ne_bytes).chain(self.record);
        filled(bytes.chain(answer.to_ne_bytes()))
    }
}

/// A message of one's own that has nothing but its number.
pub fn note(port: u32, id: i32) -> [u8; HEADER] {
    filled([COPY_SEND, HEADER as u32, port, 0, 0, id.cast_unsigned()].into_iter().flat_map(u32::to_ne_bytes))
}

fn filled<const SIZE: usize>(bytes: impl Iterator<Item = u8>) -> [u8; SIZE] {
    let mut message = [0; SIZE];
    message.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
    message
}

fn number(message: &[u8], at: usize) -> Option<u32> {
    message.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    /// Word by word as the headers have it: message header, count of descriptors, two port descriptors, NDR record, exception, codes.
    fn request() -> Vec<u8> {
        let words: [u32; 21] = [
            0x8000_1112, // MACH_MSGH_BITS_COMPLEX, local MOVE_SEND, remote MOVE_SEND_ONCE
            84,
            0x2f07, // where the answer goes
            0x1503, // the exception port
            0,
            2405,
            2,
            0x0b0b, // thread
            0,
            0x0011_0000,
            0x0203, // task
            0,
            0x0011_0000,
            0,
            1,
            1, // EXC_BAD_ACCESS
            2,
            1, // KERN_INVALID_ADDRESS
            0,
            0x10,
            1,
        ];
        words.map(u32::to_ne_bytes).concat()
    }

    #[test]
    fn a_request_tells_who_what_and_where_the_answer_goes() {
        let bytes = request();
        assert_eq!((bytes.len(), id(&bytes)), (REQUEST, Some(RAISE)));
        let read = Request::parse(&bytes).unwrap();
        assert_eq!((read.thread, read.task), (0x0b0b, 0x0203));
        assert_eq!(read.exception, Exception { kind: 1, code: 1, subcode: 0x1_0000_0010, syndrome: 0 });
        let answer = read.answer(NOT_MINE);
        let words: Vec<_> =
            answer.chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [0x12, 36, 0x2f07, 0, 0, 2505, 0, 1, 5]);
    }

    #[test]
    fn what_is_no_request_is_none() {
        let bytes = request();
        for size in 0..bytes.len() {
            assert_eq!(Request::parse(bytes.get(..size).unwrap()), None, "{size}");
        }
        // Another number, one port, one code.
        for (at, value) in [(20, 2401_u32), (24, 1), (64, 1)] {
            let mut other = bytes.clone();
            other.splice(at..at + 4, value.to_ne_bytes());
            assert_eq!(Request::parse(&other), None, "{at}");
        }
        let own = note(7, -1);
        assert_eq!((id(&own), Request::parse(&own)), (Some(-1), None));
    }
}
