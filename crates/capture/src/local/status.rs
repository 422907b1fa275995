//! What the kernel tells of a thread of this process.

use super::ThreadId;
use crate::ThreadState;
use backtrail_sys::linux::raw_file;
use std::ffi::CStr;
use std::fmt::{self, Write as _};

/// Where the kernel tells none.
const NO_STATE: ThreadState = ThreadState::Other('?');
/// Bytes of a thread's name, the kernel's limit.
const NAME: usize = 16;

/// A thread's `status`, of `/proc/self/task`. A value of fixed size: neither reading nor keeping it allocates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    name: [u8; NAME],
    /// What it is at.
    pub state: ThreadState,
    blocked: u64,
    pending: u64,
    own: Option<ThreadId>,
    filters: bool,
}

impl Status {
    /// Reads the status of a thread by its own number. `None` where the thread is gone, or `/proc` is not there or lists other numbers.
    pub fn of(thread: ThreadId) -> Option<Self> {
        Self::read(thread).filter(|status| status.own.is_none_or(|own| own == thread))
    }

    /// Reads the status of a thread by the number that `/proc` lists. `None` where there is no such thread (or no `/proc`).
    pub fn read(thread: ThreadId) -> Option<Self> {
        let mut path = Text::new();
        write!(path, "/proc/self/task/{thread}/status\0").ok()?;
        let mut room = [0; 4096];
        let size = raw_file::read_proc(path.as_c_str()?, &mut room).ok().filter(|size| *size > 0)?;
        Some(Self::parse(room.get(..size)?))
    }

    fn parse(text: &[u8]) -> Self {
        let mut status =
            Self { name: [0; NAME], state: NO_STATE, blocked: 0, pending: 0, own: None, filters: false };
        for line in text.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (word, value) = (line.get(..colon), line.get(colon + 2..).unwrap_or_default());
            match word {
                Some(b"Name") => {
                    status.name.iter_mut().zip(value).for_each(|(place, byte)| *place = *byte);
                }
                Some(b"State") => {
                    status.state = value.first().map_or(NO_STATE, |letter| ThreadState::from_letter(*letter));
                }
                Some(b"SigBlk") => status.blocked = mask(value),
                Some(b"SigPnd") => status.pending = mask(value),
                // From the namespace of `/proc` to that of the thread.
                Some(b"NSpid") => status.own = value.split(u8::is_ascii_whitespace).next_back().and_then(id),
                Some(b"Seccomp") => status.filters = value.first().is_some_and(|mode| *mode != b'0'),
                _ => {}
            }
        }
        status
    }

    /// The thread's name, which programs set for debuggers. What is not UTF-8 is left out.
    pub fn name(&self) -> &str {
        let name = self.name.split(|byte| *byte == 0).next().unwrap_or_default();
        match std::str::from_utf8(name) {
            Ok(name) => name,
            Err(error) => {
                name.get(..error.valid_up_to()).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or("")
            }
        }
    }

    /// The name of the dispatch queue that the thread serves: none here.
    pub fn queue(&self) -> Option<String> {
        None
    }

    /// Whether the thread does not take this signal at the moment.
    pub fn blocks(&self, signal: i32) -> bool {
        self.blocked & bit(signal) != 0
    }

    /// Its number where it runs. `/proc` may be of another namespace of process numbers, which has another one for it.
    pub fn own_id(&self) -> Option<ThreadId> {
        self.own
    }

    /// Whether its system calls are filtered (seccomp(2)).
    pub fn is_filtered(&self) -> bool {
        self.filters
    }

    /// Whether this signal waits for the thread.
    pub fn has_pending(&self, signal: i32) -> bool {
        self.pending & bit(signal) != 0
    }
}

/// The kernel's sets of signals begin with signal 1.
fn bit(signal: i32) -> u64 {
    signal.checked_sub(1).and_then(|bit| u32::try_from(bit).ok()).map_or(0, |bit| 1 << (bit & 63))
}

fn id(digits: &[u8]) -> Option<ThreadId> {
    Some(ThreadId::new(std::str::from_utf8(digits).ok()?.parse().ok()?))
}

fn mask(digits: &[u8]) -> u64 {
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .unwrap_or(0)
}

/// A short text that is not allocated.
struct Text {
    bytes: [u8; 64],
    size: usize,
}

impl Text {
    fn new() -> Self {
        Self { bytes: [0; 64], size: 0 }
    }

    fn as_c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_with_nul(self.bytes.get(..self.size)?).ok()
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.size + text.len();
        self.bytes.get_mut(self.size..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.size = end;
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_matter_are_read() {
        let text = b"Name:\tworker \xc3\xa4\nUmask:\t0022\nState:\tD (disk sleep)\nSigQ:\t3/94948\n\
            SigPnd:\t0000000000000200\nSigBlk:\t8000000000010000\nSigCgt:\tffffffffffffffff\n";
        let status = Status::parse(text);
        assert_eq!((status.name(), status.state), ("worker ä", ThreadState::Uninterruptible));
        assert!(status.blocks(17) && status.blocks(64) && !status.blocks(10) && !status.blocks(0));
        assert!(status.has_pending(10) && !status.has_pending(17));
        assert_eq!(Status::parse(b"").name(), "");
        assert_eq!(Status::parse(b"Name:\tabc\xff").name(), "abc");
        assert_eq!(Status::parse(b"State:").state, NO_STATE);
    }

    #[test]
    fn this_thread_runs_and_a_thread_that_is_not_there_has_no_status() {
        let status = Status::of(ThreadId::current()).unwrap();
        assert_eq!(status.state, ThreadState::Running);
        assert_eq!(Status::of(ThreadId::new(0x3fff_fff0)), None);
    }
}
