//! Which files there are below the given paths.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{FileType, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Fault, ShownPath};
use crate::{Limits, entry::Location};

/// Device and inode: the same for all the names of a file.
pub(super) type FileKey = (u64, u64);

pub(super) fn key(metadata: &Metadata) -> FileKey {
    (metadata.dev(), metadata.ino())
}

/// Lists files, in an order that depends on nothing but what is there: directory by directory, by name, and links only
/// after all that is reached without them, so that a file is found under its own name rather than a link's.
///
/// A link may lead anywhere: one to `/` would have the whole machine read. So links to a directory that has a scanned path
/// within it are not followed, and what lies outside of the scanned paths has a bound of its own.
#[derive(Debug)]
pub(super) struct Walk {
    /// The scanned paths, without links.
    roots: Vec<PathBuf>,
    directories: Vec<Directory>,
    links: VecDeque<(PathBuf, usize)>,
    files: VecDeque<PathBuf>,
    visited: HashSet<FileKey>,
    /// Files that may still be listed.
    files_left: usize,
    /// Directories that may still be listed.
    directories_left: usize,
    /// Files and directories outside of the scanned paths that may still be listed.
    linked_left: usize,
    limits: Limits,
    pub(super) problems: Vec<Error>,
}

/// A directory that is still to be listed.
#[derive(Debug)]
struct Directory {
    path: PathBuf,
    depth: usize,
    /// Whether only a link leads there, from the scanned paths out.
    is_outside: bool,
}

impl Walk {
    pub(super) fn new(roots: &[PathBuf], limits: &Limits) -> Self {
        let mut walk = Self {
            roots: roots.iter().filter_map(|root| std::fs::canonicalize(root).ok()).collect(),
            directories: Vec::new(),
            links: VecDeque::new(),
            files: VecDeque::new(),
            visited: HashSet::new(),
            files_left: limits.files,
            directories_left: limits.directories,
            linked_left: limits.linked,
            limits: limits.clone(),
            problems: Vec::new(),
        };
        for root in roots {
            walk.add_root(root.clone());
        }
        // The last added is listed first.
        walk.directories.reverse();
        walk
    }

    /// The next files, at least one unless all have been listed.
    pub(super) fn next_batch(&mut self, size: usize) -> Vec<PathBuf> {
        while self.files.len() < size && self.files_left > 0 {
            if let Some(directory) = self.directories.pop() {
                self.list(&directory);
            } else if let Some((link, depth)) = self.links.pop_front() {
                self.follow(link, depth);
            } else {
                break;
            }
        }
        let size = size.min(self.files.len());
        self.files.drain(..size).collect()
    }

    fn add_root(&mut self, path: PathBuf) {
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => {
                self.directories.push(Directory { path, depth: 0, is_outside: false });
            }
            Ok(metadata) if metadata.is_file() => self.add_file(path, false),
            Ok(_) => {
                let what = "expected a file or a directory, this is a device, pipe or socket";
                self.problem(&path, Fault::new(ErrorKind::NotAFile, what));
            }
            Err(error) => self.problem(&path, Fault::io("cannot be read", &error)),
        }
    }

    /// What a link leads to. A file is a file of the directory that the link is in: `.build-id` trees consist of such
    /// links.
    fn follow(&mut self, path: PathBuf, depth: usize) {
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.follow_directory(path, depth),
            Ok(metadata) if metadata.is_file() => self.add_file(path, false),
            Ok(_) => {}
            Err(error) => self.problem(&path, Fault::io("cannot be read", &error)),
        }
    }

    fn follow_directory(&mut self, path: PathBuf, depth: usize) {
        let target = match std::fs::canonicalize(&path) {
            Ok(target) => target,
            Err(error) => return self.problem(&path, Fault::io("cannot be read", &error)),
        };
        let is_outside = !self.roots.iter().any(|root| target.starts_with(root));
        if is_outside && self.roots.iter().any(|root| root.starts_with(&target)) {
            let what = format!(
                "a link to {}, which has a scanned path within it, is not followed: name it to have all of it scanned",
                ShownPath(&target)
            );
            return self.problem(&path, Fault::new(ErrorKind::Limit, what));
        }
        self.directories.push(Directory { path, depth, is_outside });
    }

    fn add_file(&mut self, path: PathBuf, is_outside: bool) {
        if self.files_left == 0 || (is_outside && !self.take_linked(&path)) {
            return;
        }
        self.files_left -= 1;
        if self.files_left == 0 {
            let what = format!("the scan ends here, after {} files", self.limits.files);
            self.problem(&path, Fault::new(ErrorKind::Limit, what));
        }
        self.files.push_back(path);
    }

    /// Counts what lies outside of the scanned paths; `false` where it is too much, which is said once.
    fn take_linked(&mut self, path: &Path) -> bool {
        let Some(left) = self.linked_left.checked_sub(1) else { return false };
        self.linked_left = left;
        if left == 0 {
            let what = format!(
                "the scan of what links lead to ends here, after {} files and directories outside of the scanned \
                 paths: name what is wanted of them",
                self.limits.linked
            );
            self.problem(path, Fault::new(ErrorKind::Limit, what));
        }
        left > 0
    }

    /// Whether this directory may be listed: for the first time, and within all bounds.
    fn enter(&mut self, directory: &Directory) -> bool {
        let path = &directory.path;
        match std::fs::metadata(path) {
            Ok(metadata) if !self.visited.insert(key(&metadata)) => return false,
            Ok(_) => {}
            Err(error) => {
                self.problem(path, Fault::io("cannot be read", &error));
                return false;
            }
        }
        if directory.depth > self.limits.directory_depth {
            let what = format!("left unread: more than {} directories deep", self.limits.directory_depth);
            self.problem(path, Fault::new(ErrorKind::Limit, what));
            return false;
        }
        if directory.is_outside && !self.take_linked(path) {
            return false;
        }
        let Some(left) = self.directories_left.checked_sub(1) else { return false };
        self.directories_left = left;
        if left == 0 {
            let what = format!("the scan ends here, after {} directories", self.limits.directories);
            self.problem(path, Fault::new(ErrorKind::Limit, what));
        }
        left > 0
    }

    fn list(&mut self, directory: &Directory) {
        if !self.enter(directory) {
            return;
        }
        let (depth, is_outside) = (directory.depth + 1, directory.is_outside);
        let mut listed = self.read(&directory.path);
        listed.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let first = self.directories.len();
        for (name, kind) in listed {
            let path = directory.path.join(name);
            if kind.is_dir() {
                self.directories.push(Directory { path, depth, is_outside });
            } else if kind.is_symlink() {
                self.links.push_back((path, depth));
            } else if kind.is_file() {
                self.add_file(path, is_outside);
            }
        }
        if let Some(added) = self.directories.get_mut(first..) {
            added.reverse();
        }
    }

    /// What is in a directory, no more than may still be looked at.
    fn read(&mut self, directory: &Path) -> Vec<(OsString, FileType)> {
        let mut listed = Vec::new();
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.problem(directory, Fault::io("cannot be listed", &error));
                return listed;
            }
        };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) {
                Ok((name, kind)) if !is_noise(name.as_encoded_bytes()) => listed.push((name, kind)),
                Ok(_) => {}
                Err(error) => {
                    self.problem(directory, Fault::io("cannot be listed in full", &error));
                    break;
                }
            }
            if listed.len() > self.files_left.saturating_add(self.directories_left) {
                break;
            }
        }
        listed
    }

    fn problem(&mut self, path: &Path, fault: Fault) {
        self.problems.push(fault.at(ShownPath(path)));
    }
}

/// AppleDouble twins hold a file's attributes on foreign disks and in archives, under a name that looks like it.
pub(super) fn is_noise(name: &[u8]) -> bool {
    name.starts_with(b"._") || name == b"__MACOSX"
}

/// Whether `location` is where a dSYM bundle keeps its Mach-O file.
pub(super) fn is_in_dsym(location: &Location) -> bool {
    let mut parts = location.components().rev().skip(1);
    let mut directories = [parts.next(), parts.next(), parts.next()];
    directories.reverse();
    directories == [Some("Contents"), Some("Resources"), Some("DWARF")]
}
