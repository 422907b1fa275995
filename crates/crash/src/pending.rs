//! Crash files of earlier runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a finished file's name ends with.
pub(crate) const ENDING: &str = "btcrash";
/// What stands behind that until it is.
pub(crate) const PART: &str = "part";

/// The finished crash files of a directory, oldest first; none where there is no such directory. One that a full disk cut short is
/// among them: it has what is surest, and its reader says that it is not whole. Files whose writer did not come to its end are
/// named `.part`, and left out.
///
/// # Errors
/// Where the directory cannot be read.
pub fn pending(directory: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(files(directory, ENDING)?.into_iter().map(|(_, path)| path).collect())
}

/// Files of a directory with this ending, oldest first, and when each was written.
fn files(directory: &Path, ending: &str) -> io::Result<Vec<(SystemTime, PathBuf)>> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let has_ending = path.extension().is_some_and(|own| own == ending);
        if has_ending && entry.file_type()?.is_file() {
            files.push((entry.metadata()?.modified()?, path));
        }
    }
    files.sort();
    Ok(files)
}

/// How long a file stays whose writer did not come to its end: another process may be writing it.
const UNFINISHED: Duration = Duration::from_secs(7 * 24 * 3600);

/// Removes all but the newest finished files, and what was left unfinished long ago. What cannot be removed stays.
pub(crate) fn remove_old(directory: &Path, keep: usize) {
    let finished = files(directory, ENDING).unwrap_or_default();
    let too_many = finished.len().saturating_sub(keep);
    let is_old = |time: SystemTime| time.elapsed().is_ok_and(|age| age > UNFINISHED);
    let unfinished = files(directory, PART).unwrap_or_default();
    let unfinished = unfinished.into_iter().filter(|(time, path)| {
        is_old(*time)
            && path.file_stem().and_then(|name| Path::new(name).extension()).is_some_and(|own| own == ENDING)
    });
    for (_, path) in finished.into_iter().take(too_many).chain(unfinished) {
        let _ = std::fs::remove_file(path);
    }
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

    #[test]
    fn the_newest_are_kept_and_what_was_left_long_ago_is_not() {
        let directory = TempDir::new("pending");
        let directory = directory.path();
        let write = |name: &str, age: u64| {
            let path = directory.join(name);
            std::fs::write(&path, b"").unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            std::fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
        };
        let days = 24 * 3600;
        for (name, age) in [
            ("1.btcrash", 30 * days),
            ("2.btcrash", 20 * days),
            ("3.btcrash", 10),
            ("4.btcrash.part", 8 * days),
            ("5.btcrash.part", 10),
            ("other.part", 30 * days),
            ("other", 30 * days),
        ] {
            write(name, age);
        }
        remove_old(directory, 2);
        let mut left: Vec<_> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["2.btcrash", "3.btcrash", "5.btcrash.part", "other", "other.part"]);
    }
}
