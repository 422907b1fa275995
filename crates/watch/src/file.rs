//! Keeping a crash file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes a file of its own name into `directory`. When this is over it is there whole, also after a power cut: a reader sees it
/// under its name then only. What exists is never written over.
pub(crate) fn keep(directory: &Path, pid: u32, bytes: &[u8]) -> Result<PathBuf, (PathBuf, io::Error)> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    let whole = directory.join(format!("{time}-{pid}.btcrash"));
    let part = directory.join(format!("{time}-{pid}.btcrash.part"));
    let written = write(&part, bytes).and_then(|()| fs::rename(&part, &whole)).and_then(|()| {
        // The new name, too, has to be on the disk.
        File::open(directory)?.sync_all()
    });
    match written {
        Ok(()) => Ok(whole),
        Err(error) => {
            let _ = fs::remove_file(&part);
            Err((whole, error))
        }
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
