//! Crash files of earlier runs.

use std::io;
use std::path::{Path, PathBuf};

/// What a finished file's name ends with.
pub(crate) const ENDING: &str = "btcrash";

/// The finished crash files of a directory, oldest first; none where there is no such directory. One that a full disk cut short is
/// among them: it has what is surest, and its reader says that it is not whole. Files whose writer did not come to its end are
/// named `.part`, and left out.
///
/// # Errors
/// Where the directory cannot be read.
pub fn pending(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let is_whole = path.extension().is_some_and(|ending| ending == ENDING);
        if is_whole && entry.file_type()?.is_file() {
            files.push((entry.metadata()?.modified()?, path));
        }
    }
    files.sort();
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Removes a crash file: it has been sent, or is not wanted. One that is gone is no error.
///
/// # Errors
/// Where it cannot be removed.
pub fn sent(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    #[test]
    fn whole_files_are_listed_until_they_are_sent() {
        let directory = TempDir::new("pending");
        let directory = directory.path();
        assert!(pending(&directory.join("none")).unwrap().is_empty());
        for name in ["1-2.btcrash", "1-3.btcrash.part", "other"] {
            std::fs::write(directory.join(name), b"").unwrap();
        }
        let files = pending(directory).unwrap();
        assert_eq!(files, [directory.join("1-2.btcrash")]);
        sent(&files[0]).unwrap();
        sent(&files[0]).unwrap();
        assert!(pending(directory).unwrap().is_empty());
    }
}
