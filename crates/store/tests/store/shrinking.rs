//! Files that another process makes shorter while they are read.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backtrail_store::{ErrorKind, FileData, Index, truncated_files};
use backtrail_testkit::TempDir;

use crate::common::*;

const DIRECTORY: &str = "BACKTRAIL_TEST_SHRINKING";
const FILES: usize = 24;
const SIZE: usize = 40_000;
/// Of the files with an even number; the others lose their last bytes alone, which no fault tells.
const SHORT: u64 = 100;

fn path(directory: &Path, number: usize) -> PathBuf {
    directory.join(number.to_string())
}

/// A process reads files with several threads while this one shortens them. It goes on, and says which they were.
#[test]
fn a_file_that_shrinks_is_an_error_and_no_signal() {
    let temp = TempDir::new("shrinking");
    for number in 0..FILES {
        temp.write(number.to_string(), vec![7; SIZE]);
    }
    let arguments = ["--exact", "shrinking::reads_what_shrinks", "--nocapture", "--test-threads=1"];
    let mut reader = Command::new(std::env::current_exe().unwrap())
        .args(arguments)
        .env(DIRECTORY, temp.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(reader.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("mapped")));
    for number in 0..FILES - 1 {
        let size = if number % 2 == 0 { SHORT } else { SIZE as u64 - 1 };
        std::fs::File::options().write(true).open(path(temp.path(), number)).unwrap().set_len(size).unwrap();
    }
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    assert!(reader.wait().unwrap().success(), "{rest:?}");
}

/// What the test above starts.
#[test]
fn reads_what_shrinks() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let files: Vec<_> = (0..FILES).map(|number| FileData::map(&path(&directory, number)).unwrap()).collect();
    assert!(files.iter().all(|file| file.check().is_ok()));
    println!("mapped");
    let until = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        for part in files[..FILES - 1].chunks(6) {
            scope.spawn(move || {
                for file in part {
                    while file.check().is_ok() {
                        assert!(file.iter().all(|byte| matches!(byte, 0 | 7)));
                        assert!(Instant::now() < until, "it was not noticed");
                    }
                }
            });
        }
    });
    let error = files[0].check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert_eq!(error.to_string(), format!("{}: shrank while it was read", path(&directory, 0).display()));
    assert_eq!((files[0][0], files[0][SIZE - 1]), (7, 0));
    // One that nobody touched, and one that is mapped after it became shorter.
    assert!(files[FILES - 1].check().is_ok() && !files[FILES - 1].is_truncated());
    let again = FileData::map(&path(&directory, 0)).unwrap();
    assert_eq!((again.len() as u64, again.is_truncated()), (SHORT, false));
    let mut all: Vec<_> = (0..FILES - 1).map(|number| path(&directory, number)).collect();
    all.sort();
    assert_eq!(truncated_files(), all, "while they are open");
    drop(files);
    assert_eq!(truncated_files(), all, "and afterwards");
}

/// A file that was replaced by a rename is the one that was mapped, whole as ever.
#[test]
fn a_file_that_is_replaced_did_not_shrink() {
    let temp = TempDir::new("replaced");
    let old = temp.write("file", vec![7; SIZE]);
    let new = temp.write("new", b"short");
    let data = FileData::map(&old).unwrap();
    std::fs::rename(new, &old).unwrap();
    assert!(data.check().is_ok() && data.iter().all(|byte| *byte == 7));
    std::fs::remove_file(old).unwrap();
    assert!(data.check().is_ok());
}

/// Debug information may name any file; what it says is not told.
#[test]
fn a_file_that_is_no_object_is_not_taken() {
    let temp = TempDir::new("secret");
    let secret = temp.write("secret", "root:x:0:0\n");
    for located in [
        Index::default().locator().file(&secret, &[]),
        Index::default().locator().debug_map_object(&secret, 0),
    ] {
        assert!(located.found.is_none());
        assert_eq!(located.tried, [(secret.clone(), "expected an object file".to_owned())]);
    }
    let binary = temp.write("tool", elf(1, false, 64));
    temp.write("tool.dwp", "root:x:0:0\n");
    assert!(Index::default().locator().package(&binary).found.is_none());
}
