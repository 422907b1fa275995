//! What is made ahead of time, for a crash to find.

use crate::extra::FILE;
use crate::line::Line;
use crate::options::Options;
use crate::pending::ENDING;
use crate::sections::Section;
use backtrail_capture::local::Shared;
use backtrail_core::Avma;
use backtrail_stacks::own::{Capturer, RawStack, StackCopy, ThreadId};
use backtrail_sys::linux::{OsError, raw_file};
use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The directory that the file is written to. The file's name has the time and the process: a child of `fork` leaves one of its own.
#[derive(Debug)]
pub(crate) struct Directory(pub(crate) CString);

/// The paths of the file that is being written. Not on the stack: who finishes it in need may have one of 8 KB.
static PATHS: Mutex<Paths> = Mutex::new(Paths { part: [0; LONGEST_PATH], whole: [0; LONGEST_PATH] });

/// The longest path that a system call takes: Linux, `include/uapi/linux/limits.h`.
const LONGEST_PATH: usize = 4096;

struct Paths {
    part: [u8; LONGEST_PATH],
    whole: [u8; LONGEST_PATH],
}

/// Puts a path together; says whether there was room.
fn put(into: &mut [u8; LONGEST_PATH], parts: [&[u8]; 4]) -> bool {
    let mut room = into.as_mut_slice();
    parts.into_iter().all(|part| room.write_all(part).is_ok()) && room.write_all(&[0]).is_ok()
}

fn c_str(path: &[u8; LONGEST_PATH]) -> &CStr {
    CStr::from_bytes_until_nul(path).unwrap_or(c"")
}

const BUSY: OsError = OsError { call: "open", number: 16 };
const TOO_LONG: OsError = OsError { call: "open", number: 36 };

impl Directory {
    /// Creates the file under a name that says that it is not finished. Safe in a signal handler, as the others are.
    pub(crate) fn create(&self) -> Result<(), OsError> {
        let mut paths = PATHS.try_lock().map_err(|_| BUSY)?;
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut name = Line::new();
        let _ = write!(name, "{}-{}.{ENDING}", time.as_micros(), std::process::id());
        let directory = self.0.to_bytes();
        let has_room = put(&mut paths.part, [directory, b"/", name.bytes(), b".part"])
            && put(&mut paths.whole, [directory, b"/", name.bytes(), b""]);
        if !has_room {
            return Err(TOO_LONG);
        }
        FILE.create(c_str(&paths.part))
    }

    /// Gives the file its name, once the disk has it.
    pub(crate) fn finish(&self) -> Result<(), OsError> {
        FILE.finish()?;
        let paths = PATHS.try_lock().map_err(|_| BUSY)?;
        raw_file::rename_durably(c_str(&paths.part), c_str(&paths.whole), &self.0)
    }

    /// Removes the file: the crash is not kept.
    #[allow(clippy::unused_self, reason = "it is the file that `create` made")]
    pub(crate) fn remove(&self) {
        FILE.close();
        if let Ok(paths) = PATHS.try_lock() {
            raw_file::remove(c_str(&paths.part));
        }
    }
}

/// Whether this is the path of the file that is being written.
pub(crate) fn is_written(path: &[u8]) -> bool {
    PATHS.try_lock().is_ok_and(|paths| c_str(&paths.part).to_bytes() == path)
}

/// What was made ahead of time.
pub(crate) struct Prepared {
    pub(crate) options: Options,
    pub(crate) program: Vec<u8>,
    pub(crate) system: String,
    /// When the handler was installed, by the monotonic clock.
    pub(crate) begun: u64,
    pub(crate) abort_message: Option<Avma>,
    pub(crate) images: Arc<Shared<Vec<u8>>>,
    pub(crate) capturer: Arc<Capturer>,
    pub(crate) section: Section,
    pub(crate) frames: RawStack,
    pub(crate) copy: StackCopy,
    pub(crate) maps: Vec<u8>,
    pub(crate) threads: Vec<ThreadId>,
}
