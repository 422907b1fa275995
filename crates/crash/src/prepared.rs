//! What is made ahead of time, for a crash to find.

use crate::options::Options;
use crate::sections::Section;
use backtrail_capture::local::Shared;
use backtrail_core::Avma;
use backtrail_stacks::own::{Capturer, RawStack, StackCopy, ThreadId};
use std::ffi::CString;
use std::sync::Arc;

/// Where the file is written, and where it lies in the end.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) part: CString,
    pub(crate) whole: CString,
    pub(crate) directory: CString,
}

/// What was made ahead of time.
pub(crate) struct Prepared {
    pub(crate) options: Options,
    pub(crate) part: CString,
    pub(crate) whole: CString,
    pub(crate) directory: CString,
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
