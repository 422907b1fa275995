//! The kernel's own image (`[vdso]`), which is no file: every process that the running kernel started has the same one.

use crate::open_file::OpenFile;
use std::sync::Arc;

/// What the kernel calls it in `/proc/PID/maps`.
pub(crate) const NAME: &str = "[vdso]";

/// The one of this process.
#[cfg(target_os = "linux")]
pub(crate) fn open() -> Option<Arc<OpenFile>> {
    use crate::data::FileData;
    use backtrail_core::ReadMemory as _;
    use backtrail_sys::linux::{OwnMemory, loader};

    /// It has two to four pages, whatever the architecture.
    const MOST_PAGES: u64 = 16;
    const PAGE: usize = 4096;
    let start = loader::vdso()?;
    let memory = OwnMemory::without_stack();
    let mut bytes = Vec::new();
    for page in 0..MOST_PAGES {
        let mut copy = [0; PAGE];
        let at = start.checked_add(page * PAGE as u64)?;
        if memory.read(at, &mut copy).is_err() {
            break;
        }
        bytes.extend(copy);
    }
    let file = OpenFile::new(NAME, NAME, FileData::from(bytes));
    file.object().is_some().then_some(file)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn open() -> Option<Arc<OpenFile>> {
    None
}
