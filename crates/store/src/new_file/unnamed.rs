//! Files without a name: `O_TMPFILE` of Linux.

use rustix::fs::{AtFlags, CWD, OFlags, linkat};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The way to a file that has no name, for as long as it is open.
#[derive(Debug)]
pub(super) struct Unnamed(PathBuf);

impl Unnamed {
    /// A new file on the file system of `directory`; `None` where that, or the lack of `/proc`, does not allow it.
    pub(super) fn create(directory: &Path) -> Option<(File, Self)> {
        let flags = i32::try_from(OFlags::TMPFILE.bits()).ok()?;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(directory).ok()?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some((file, Self(path)))
    }

    /// Where it can be opened again.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it a name that nothing has.
    pub(super) fn link(&self, place: &Path) -> io::Result<()> {
        Ok(linkat(CWD, &self.0, CWD, place, AtFlags::SYMLINK_FOLLOW)?)
    }
}
