//! Which files there are below the given paths.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Fault, Shown};
use crate::{Limits, entry::Location};

/// Device and inode: the same for all the names of a file.
pub(super) type FileKey = (u64, u64);

pub(super) fn key(metadata: &Metadata) -> FileKey {
    (metadata.dev(), metadata.ino())
}

/// Lists files, in an order that depends on nothing but what is there: folder by folder, by name, and links only
/// after all that is reached without them, so that a file is found under its own name rather than a link's.
#[derive(Debug)]
pub(super) struct Walk {
    folders: Vec<(PathBuf, usize)>,
    links: VecDeque<(PathBuf, usize)>,
    files: VecDeque<PathBuf>,
    visited: HashSet<FileKey>,
    left: usize,
    limits: Limits,
    pub(super) problems: Vec<Error>,
}

impl Walk {
    pub(super) fn new(roots: &[PathBuf], limits: &Limits) -> Self {
        let mut walk = Self {
            folders: Vec::new(),
            links: VecDeque::new(),
            files: VecDeque::new(),
            visited: HashSet::new(),
            left: limits.files,
            limits: limits.clone(),
            problems: Vec::new(),
        };
        for root in roots {
            walk.add(root.clone(), 0, true);
        }
        // The last added is listed first.
        walk.folders.reverse();
        walk
    }

    /// The next files, at least one unless all have been listed.
    pub(super) fn next_batch(&mut self, size: usize) -> Vec<PathBuf> {
        while self.files.len() < size && self.left > 0 {
            if let Some((folder, depth)) = self.folders.pop() {
                self.list(&folder, depth);
            } else if let Some((link, depth)) = self.links.pop_front() {
                self.add(link, depth, false);
            } else {
                break;
            }
        }
        let size = size.min(self.files.len());
        self.files.drain(..size).collect()
    }

    /// A path whose kind is not known, links followed.
    fn add(&mut self, path: PathBuf, depth: usize, is_root: bool) {
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.folders.push((path, depth)),
            Ok(metadata) if metadata.is_file() => self.add_file(path),
            Ok(_) if is_root => {
                let what = "expected a file or a folder, this is a device, pipe or socket";
                self.problem(&path, Fault::new(ErrorKind::NotAFile, what));
            }
            Ok(_) => {}
            Err(error) => self.problem(&path, Fault::io("cannot be read", &error)),
        }
    }

    fn add_file(&mut self, path: PathBuf) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.left == 0 {
            let what = format!("the scan ends here, after {} files", self.limits.files);
            self.problem(&path, Fault::new(ErrorKind::Limit, what));
        }
        self.files.push_back(path);
    }

    fn list(&mut self, folder: &Path, depth: usize) {
        match std::fs::metadata(folder) {
            Ok(metadata) if !self.visited.insert(key(&metadata)) => return,
            Ok(_) => {}
            Err(error) => return self.problem(folder, Fault::io("cannot be read", &error)),
        }
        if depth > self.limits.folder_depth {
            let what = format!("left unread: more than {} folders deep", self.limits.folder_depth);
            return self.problem(folder, Fault::new(ErrorKind::Limit, what));
        }
        let mut listed = self.read(folder);
        listed.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let first = self.folders.len();
        for (name, kind) in listed {
            let path = folder.join(name);
            if kind.is_dir() {
                self.folders.push((path, depth + 1));
            } else if kind.is_symlink() {
                self.links.push_back((path, depth + 1));
            } else if kind.is_file() {
                self.add_file(path);
            }
        }
        if let Some(added) = self.folders.get_mut(first..) {
            added.reverse();
        }
    }

    /// What is in a folder, no more than may still be looked at.
    fn read(&mut self, folder: &Path) -> Vec<(OsString, FileType)> {
        let mut listed = Vec::new();
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.problem(folder, Fault::io("cannot be listed", &error));
                return listed;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) {
                Ok((name, kind)) if !is_noise(name.as_encoded_bytes()) => listed.push((name, kind)),
                Ok(_) => {}
                Err(error) => {
                    self.problem(folder, Fault::io("cannot be listed in full", &error));
                    break;
                }
            }
            if listed.len() > self.left {
                break;
            }
        }
        listed
    }

    fn problem(&mut self, path: &Path, fault: Fault) {
        self.problems.push(fault.at(Shown(&path.to_string_lossy())));
    }
}

/// AppleDouble twins hold a file's attributes on foreign disks and in archives, under a name that looks like it.
pub(super) fn is_noise(name: &[u8]) -> bool {
    name.starts_with(b"._") || name == b"__MACOSX"
}

/// Whether `location` is where a dSYM bundle keeps its Mach-O file.
pub(super) fn is_in_dsym(location: &Location) -> bool {
    let mut parts = location.components().rev().skip(1);
    let mut folders = [parts.next(), parts.next(), parts.next()];
    folders.reverse();
    folders == [Some("Contents"), Some("Resources"), Some("DWARF")]
}
