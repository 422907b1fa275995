//! Comparing output with a file that holds what it should be.

use crate::diff_lines;
use std::path::Path;

/// Fails unless the file at `path` holds exactly `actual`; the message shows the lines that differ.
///
/// `BLESS=1` in the environment writes `actual` to the file instead. Look at what `git diff` then shows: a snapshot
/// is right because somebody read it, not because the program printed it.
///
/// # Panics
/// Where the two differ, or the file cannot be read or, with `BLESS`, written.
#[track_caller]
pub fn assert_snapshot(path: impl AsRef<Path>, actual: &str) {
    let path = path.as_ref();
    let bless = std::env::var_os("BLESS").is_some_and(|value| !value.is_empty() && value != "0");
    if let Err(message) = compare(path, actual, bless) {
        fail(&message);
    }
}

fn compare(path: &Path, actual: &str, bless: bool) -> Result<(), String> {
    let name = path.display();
    if bless {
        let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        return written
            .and_then(|()| std::fs::write(path, actual))
            .map_err(|error| format!("cannot write {name}: {error}"));
    }
    let expected = std::fs::read(path)
        .map_err(|error| format!("cannot read {name}: {error}\nBLESS=1 writes it, from this:\n{actual}"))?;
    let expected = String::from_utf8_lossy(&expected);
    if expected == actual {
        return Ok(());
    }
    let diff = diff_lines(&expected, actual);
    Err(format!("{name} says otherwise (- the file, + this run; BLESS=1 takes this run's):\n{diff}"))
}

#[track_caller]
#[expect(clippy::panic, reason = "an assertion")]
fn fail(message: &str) -> ! {
    panic!("{message}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TempDir;

    #[test]
    fn says_what_differs_and_blesses() {
        let temp = TempDir::new("snapshot");
        let path = temp.join("deep/out.txt");
        assert!(compare(&path, "one\n", false).unwrap_err().contains("cannot read"));
        compare(&path, "one\ntwo\n", true).unwrap();
        compare(&path, "one\ntwo\n", false).unwrap();
        let message = compare(&path, "one\n2\n", false).unwrap_err();
        assert!(message.contains("\n- two\n+ 2\n"), "{message}");
    }

    #[test]
    #[should_panic(expected = "cannot read")]
    fn panics_where_the_file_is_missing() {
        let temp = TempDir::new("snapshot");
        // BLESS would write the file instead of missing it.
        if let Err(message) = compare(&temp.join("none"), "", false) {
            fail(&message);
        }
    }
}
