//! What a power cut leaves of a folder, after any of the calls that changed it.
//!
//! The calls are recorded (programs/record.c) and played back. What was synced is there. Of the rest, any beginning of the changes of
//! names may be, and of each file's bytes: all, none, half, or zeros in their place. POSIX, `fsync`; ext4 and XFS do no worse.

use crate::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// A call that changed the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Create(String),
    Truncate(String),
    Write(String, Vec<u8>),
    /// Of a file or of the folder.
    Sync(String),
    Rename(String, String),
    Remove(String),
}

/// Reads a record of calls.
pub(crate) fn read(mut record: &[u8]) -> Result<Vec<Change>> {
    let mut changes = Vec::new();
    while let Some((kind, rest)) = record.split_first() {
        record = rest;
        let mut field = || {
            let (size, rest) = record.split_first_chunk::<4>()?;
            let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
            record = rest;
            Some(bytes.to_vec())
        };
        let (first, second) = field().zip(field()).ok_or("the record of calls is cut off")?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let path = text(&first);
        changes.push(match kind {
            b'c' => Change::Create(path),
            b't' => Change::Truncate(path),
            b'w' => Change::Write(path, second),
            b's' => Change::Sync(path),
            b'r' => Change::Rename(path, text(&second)),
            b'u' => Change::Remove(path),
            other => return Err(format!("the record of calls has one of kind {other}")),
        });
    }
    Ok(changes)
}

/// A file: what the disk has for sure, and what the program has written.
#[derive(Clone, Default, Debug)]
struct Inode {
    synced: Vec<u8>,
    written: Vec<u8>,
}

/// Names by path, each of one file.
type Names = BTreeMap<String, usize>;

/// A folder as a power cut may leave it: bytes by path.
pub(crate) type Folder = BTreeMap<String, Vec<u8>>;

#[derive(Default)]
struct Disk {
    files: Vec<Inode>,
    names: Names,
    /// The names that may be on the disk: those of the last sync of the folder, and after each change since.
    possible: Vec<Names>,
}

impl Disk {
    fn new() -> Self {
        Self { possible: vec![Names::new()], ..Self::default() }
    }

    fn apply(&mut self, folder: &str, change: &Change) {
        let file = |disk: &Self, path: &str| disk.names.get(path).copied();
        match change {
            Change::Create(path) => {
                self.files.push(Inode::default());
                self.names.insert(path.clone(), self.files.len() - 1);
            }
            Change::Rename(from, to) => {
                if let Some(moved) = self.names.remove(from) {
                    self.names.insert(to.clone(), moved);
                }
            }
            Change::Remove(path) => _ = self.names.remove(path),
            Change::Sync(path) if path == folder => self.possible.clear(),
            Change::Sync(path) | Change::Truncate(path) | Change::Write(path, _) => {
                let Some(inode) = file(self, path).and_then(|file| self.files.get_mut(file)) else { return };
                match change {
                    Change::Write(_, bytes) => inode.written.extend_from_slice(bytes),
                    Change::Truncate(_) => inode.written.clear(),
                    _ => inode.synced.clone_from(&inode.written),
                }
                return;
            }
        }
        self.possible.push(self.names.clone());
    }

    /// Every folder that the disk may have now.
    fn left(&self) -> Vec<Folder> {
        let mut left: Vec<Folder> = Vec::new();
        for names in &self.possible {
            for unsynced in [all, none, half, zeros] {
                let bytes = |file: &usize| self.files.get(*file).map(unsynced).unwrap_or_default();
                let folder = names.iter().map(|(path, file)| (path.clone(), bytes(file))).collect();
                if !left.contains(&folder) {
                    left.push(folder);
                }
            }
        }
        left
    }
}

fn all(file: &Inode) -> Vec<u8> {
    file.written.clone()
}

fn none(file: &Inode) -> Vec<u8> {
    file.synced.clone()
}

fn half(file: &Inode) -> Vec<u8> {
    let end = usize::midpoint(file.synced.len(), file.written.len());
    file.written.get(..end).map_or_else(|| none(file), <[u8]>::to_vec)
}

/// The size was written, the bytes were not.
fn zeros(file: &Inode) -> Vec<u8> {
    let mut bytes = none(file);
    bytes.resize(file.written.len().max(bytes.len()), 0);
    bytes
}

/// Every folder that a power cut may leave after so many of the changes; none of them first.
pub(crate) fn every(folder: &str, changes: &[Change]) -> Vec<(usize, Folder)> {
    let mut disk = Disk::new();
    let mut left = vec![(0, Folder::new())];
    for (number, change) in changes.iter().enumerate() {
        disk.apply(folder, change);
        left.extend(disk.left().into_iter().map(|folder| (number + 1, folder)));
    }
    left
}

/// Looks at each as the next start does. What is pending has to be the whole report; when all changes were made it has to be there.
/// Gives how many folders that were.
pub(crate) fn check(folder: &str, changes: &[Change], scratch: &Path) -> Result<usize> {
    let shown = |error: std::io::Error| format!("{}: {error}", scratch.display());
    let mut disk = Disk::new();
    changes.iter().for_each(|change| disk.apply(folder, change));
    let finished: Vec<_> = disk.names.iter().filter(|(path, _)| path.ends_with(".btcrash")).collect();
    let [(_, whole)] = finished[..] else { return Err(format!("{} reports are left", finished.len())) };
    let whole = disk.files.get(*whole).map(all).unwrap_or_default();
    let every = every(folder, changes);
    for (number, left) in &every {
        let _ = std::fs::remove_dir_all(scratch);
        std::fs::create_dir_all(scratch).map_err(shown)?;
        for (path, bytes) in left {
            let name = Path::new(path).file_name().unwrap_or_default();
            std::fs::write(scratch.join(name), bytes).map_err(shown)?;
        }
        let pending = backtrail_crash::pending(scratch).map_err(shown)?;
        for file in &pending {
            let bytes = std::fs::read(file).map_err(shown)?;
            if bytes != whole {
                let size = bytes.len();
                return Err(format!(
                    "after {number} of {} calls a report of {size} bytes is pending; it has {}",
                    changes.len(),
                    whole.len()
                ));
            }
        }
        if *number == changes.len() && pending.is_empty() {
            return Err("after the last call the report may still be lost".to_owned());
        }
    }
    Ok(every.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    fn report() -> Vec<Change> {
        let (part, whole) = ("/c/1.btcrash.part".to_owned(), "/c/1.btcrash".to_owned());
        vec![
            Change::Create(part.clone()),
            Change::Write(part.clone(), vec![1; 100]),
            Change::Write(part.clone(), vec![2; 100]),
            Change::Sync(part.clone()),
            Change::Rename(part, whole),
            Change::Sync("/c".to_owned()),
        ]
    }

    fn checked(changes: &[Change]) -> Result<usize> {
        check("/c", changes, &TempDir::new("power-cut").path().join("left"))
    }

    #[test]
    fn a_missing_sync_is_found() {
        assert!(checked(&report()).is_ok_and(|folders| folders > 10));
        let without = |position: usize| {
            let mut changes = report();
            changes.remove(position);
            checked(&changes).unwrap_err()
        };
        assert!(without(3).contains("a report of "), "{}", without(3));
        assert!(without(5).contains("may still be lost"), "{}", without(5));
        let mut early = report();
        early.swap(3, 4);
        assert!(checked(&early).is_err());
    }

    #[test]
    fn records_are_read_and_cut_ones_are_told() {
        let record = b"c\x02\0\0\0/a\0\0\0\0w\x02\0\0\0/a\x03\0\0\0xyz";
        let path = || "/a".to_owned();
        assert_eq!(read(record), Ok(vec![Change::Create(path()), Change::Write(path(), b"xyz".to_vec())]));
        assert!(read(&record[..record.len() - 1]).is_err());
        assert!(read(b"?\0\0\0\0\0\0\0\0").is_err());
    }
}
