//! What is made ahead of time, for a crash to find.

use crate::extra::FILE;
use crate::images::Listed;
use crate::line::Line;
use crate::options::Options;
use crate::pending::ENDING;
use crate::sections::Section;
use backtrail_capture::local::Shared;
#[cfg(target_os = "linux")]
use backtrail_core::Avma;
use backtrail_stacks::own::{Capturer, RawStack, StackCopy, ThreadId};
use backtrail_sys::os::{KeptDirectory, OsError};
use std::ffi::{CStr, CString, OsStr};
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The directory that the file is written to. The file's name has the time and the process: a child of `fork` leaves one of its own.
#[derive(Debug)]
pub(crate) struct Directory(KeptDirectory);

/// The names of the file that is being written. Not on the stack: who finishes it in need may have one of 8 KB.
static NAMES: Mutex<Names> = Mutex::new(Names { part: [0; LONGEST_NAME], whole: [0; LONGEST_NAME] });

/// Two numbers and two endings have fewer.
const LONGEST_NAME: usize = 96;

struct Names {
    part: [u8; LONGEST_NAME],
    whole: [u8; LONGEST_NAME],
}

/// Puts a name together; says whether there was room.
fn put(into: &mut [u8; LONGEST_NAME], parts: [&[u8]; 2]) -> bool {
    let mut room = into.as_mut_slice();
    parts.into_iter().all(|part| room.write_all(part).is_ok()) && room.write_all(&[0]).is_ok()
}

fn c_str(name: &[u8; LONGEST_NAME]) -> &CStr {
    CStr::from_bytes_until_nul(name).unwrap_or(c"")
}

const BUSY: OsError = OsError { call: "open", number: 16 };
const TOO_LONG: OsError = OsError { call: "open", number: 36 };

impl Directory {
    /// Opens it, and what else a crash needs.
    pub(crate) fn open(path: CString) -> Result<Self, OsError> {
        #[cfg(target_os = "linux")]
        backtrail_sys::linux::keep_open();
        // On Apple's systems the standard library's lock allocates when it is taken for the first time.
        drop(NAMES.lock());
        KeptDirectory::open(path).map(Self)
    }

    /// Its path when it was opened.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.0.path().to_bytes()))
    }

    /// Whether a file is open for crashes alone.
    pub(crate) fn holds(&self, number: u32) -> bool {
        #[cfg(target_os = "linux")]
        if backtrail_sys::linux::is_kept(number) {
            return true;
        }
        self.0.holds(number)
    }

    /// Creates the file under a name that says that it is not finished. Safe in a signal handler, as the others are.
    pub(crate) fn create(&self) -> Result<(), OsError> {
        let mut names = NAMES.try_lock().map_err(|_| BUSY)?;
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut name = Line::new();
        let _ = write!(name, "{}-{}.{ENDING}", time.as_micros(), std::process::id());
        let has_room =
            put(&mut names.part, [name.bytes(), b".part"]) && put(&mut names.whole, [name.bytes(), b""]);
        if !has_room {
            return Err(TOO_LONG);
        }
        self.0.create(&FILE, c_str(&names.part))
    }

    /// Gives the file its name, once the disk has it. Where the disk does not say so (some file systems, sandboxes), what there is has its
    /// checksums.
    pub(crate) fn finish(&self) -> Result<(), OsError> {
        let synced = FILE.finish();
        self.rename()?;
        synced
    }

    /// The same while another thread may be writing.
    pub(crate) fn finish_early(&self) -> Result<(), OsError> {
        let synced = FILE.sync();
        self.rename()?;
        synced
    }

    fn rename(&self) -> Result<(), OsError> {
        let names = NAMES.try_lock().map_err(|_| BUSY)?;
        self.0.rename_durably(c_str(&names.part), c_str(&names.whole))
    }

    /// Removes the file: the crash is not kept.
    pub(crate) fn remove(&self) {
        FILE.close();
        if let Ok(names) = NAMES.try_lock() {
            self.0.remove(c_str(&names.part));
        }
    }
}

/// What was made ahead of time.
pub(crate) struct Prepared {
    pub(crate) options: Options,
    pub(crate) program: Vec<u8>,
    pub(crate) system: String,
    /// When the handler was installed, by the monotonic clock.
    pub(crate) begun: u64,
    #[cfg(target_os = "linux")]
    pub(crate) abort_message: Option<Avma>,
    pub(crate) images: Arc<Shared<Listed>>,
    pub(crate) capturer: Arc<Capturer>,
    pub(crate) section: Section,
    pub(crate) frames: RawStack,
    pub(crate) copy: StackCopy,
    #[cfg(target_os = "linux")]
    pub(crate) maps: Vec<u8>,
    pub(crate) threads: Vec<ThreadId>,
}
