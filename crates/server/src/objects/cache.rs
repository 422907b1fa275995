//! Copies of a bucket's files on this machine, for whoever needs a path: `cache/ab/cdef…`, by their digests.
//!
//! A file has its name only when it is whole. Removing one that somebody has open takes nothing from them, so that servers and commands may
//! share the directory without a word.

use super::copy;
use backtrail_store::NewFile;
use std::fs::{self, FileTimes};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What was used as recently stays: somebody may be about to open it.
const IN_USE: Duration = Duration::from_secs(600);

#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    /// Bytes that it may have.
    most: u64,
}

impl Cache {
    pub(super) fn new(directory: PathBuf, most: u64) -> Self {
        Self { directory, most }
    }

    pub(super) fn path(&self, digest: &str) -> PathBuf {
        self.directory.join(super::plain_name(digest))
    }

    /// Where a file is, if it is here. It stays for the next minutes.
    pub(super) fn find(&self, digest: &str) -> Option<PathBuf> {
        let path = self.path(digest);
        let used = FileTimes::new().set_modified(SystemTime::now());
        fs::File::open(&path).and_then(|file| file.set_times(used)).ok().map(|()| path)
    }

    /// Begins a file.
    pub(super) fn begin(&self, digest: &str) -> io::Result<NewFile> {
        let path = self.path(digest);
        fs::create_dir_all(path.parent().unwrap_or(&self.directory))?;
        NewFile::create(&path)
    }

    /// Takes a file that is whole. It is a copy: that it cannot be kept is no failure.
    pub(super) fn adopt(&self, file: &Path, digest: &str) {
        let path = self.path(digest);
        let made = fs::create_dir_all(path.parent().unwrap_or(&self.directory));
        let _ = made.and_then(|()| fs::rename(file, &path).or_else(|_| copy(file, &path)));
        let _ = self.find(digest);
        self.shrink();
    }

    /// Removes what was not used for the longest time, until the rest is small enough. What projects have linked is one file with
    /// theirs, and goes once it is linked no more: removing it earlier would free nothing.
    pub(super) fn shrink(&self) {
        let mut files = Vec::new();
        let mut size = 0_u64;
        let directories = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        for file in
            directories.flat_map(|directory| fs::read_dir(directory.path()).into_iter().flatten()).flatten()
        {
            let Ok(metadata) = file.metadata() else { continue };
            if metadata.is_file() && metadata.nlink() == 1 {
                size = size.saturating_add(metadata.len());
                files.push((
                    metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    metadata.len(),
                    file.path(),
                ));
            }
        }
        if size <= self.most {
            return;
        }
        files.sort();
        for (used, length, path) in files {
            let is_in_use = SystemTime::now().duration_since(used).is_ok_and(|age| age < IN_USE);
            if size <= self.most || is_in_use {
                break;
            }
            if fs::remove_file(&path).is_ok() {
                size = size.saturating_sub(length);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;
    use std::io::Write as _;

    fn put(cache: &Cache, digest: &str, age: u64) {
        let mut file = cache.begin(digest).unwrap();
        file.write_all(&[0; 100]).unwrap();
        file.finish().unwrap();
        let used = SystemTime::now() - Duration::from_secs(age);
        let file = fs::File::open(cache.path(digest)).unwrap();
        file.set_times(FileTimes::new().set_modified(used)).unwrap();
    }

    #[test]
    fn what_was_used_the_longest_time_ago_goes_first() {
        let directory = TempDir::new("server-cache");
        let cache = Cache::new(directory.join("cache"), 250);
        let there = || ["aa1", "aa2", "bb1", "bb2"].map(|digest| cache.path(digest).exists());
        for (digest, age) in [("aa1", 3000), ("aa2", 5000), ("bb1", 4000), ("bb2", 0)] {
            put(&cache, digest, age);
        }
        // What a project has is not counted.
        fs::hard_link(cache.path("aa2"), directory.join("link")).unwrap();
        cache.shrink();
        assert_eq!(there(), [true, true, false, true]);
        assert_eq!(cache.find("bb1"), None);
        assert_eq!(cache.find("aa1"), Some(cache.path("aa1")));
        Cache::new(directory.join("cache"), 0).shrink();
        assert_eq!(there(), [true, true, false, true], "what was used just now stays");
        fs::remove_file(directory.join("link")).unwrap();
        cache.shrink();
        assert_eq!(there(), [true, false, false, true]);
    }
}
