//! The directory that files are kept in: elfutils' layout, so that gdb and all other users of libdebuginfod share it.
//!
//! `HEX/debuginfo` and `HEX/executable` are files; an empty one says that no server had it, for `cache_miss_s` seconds from
//! its last change on. What was not used for `max_unused_age_s` seconds goes, at most every `cache_clean_interval_s`
//! seconds. Both numbers stand in files of these names.

use std::fs::{self, DirBuilder, File, FileTimes, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use backtrail_core::ImageId;
use backtrail_object::{Limits, Object};

use crate::data::FileData;
use crate::identity::identity_of;
use crate::new_file::NewFile;
use crate::remote::{RemoteFile, RemoteKind};

#[derive(Debug)]
pub(super) struct Cache {
    root: PathBuf,
    max_bytes: u64,
}

/// What the cache has of a file.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum CacheEntry {
    /// The file, and it is the right one.
    File(PathBuf),
    /// No server had it a short while ago.
    NotThere,
    /// Nothing.
    Nothing,
}

/// A file that is being written, and gone unless it is [kept](Self::keep).
#[derive(Debug)]
pub(super) struct Draft {
    file: NewFile,
    place: PathBuf,
}

/// Files with numbers of seconds, and what stands in them where nobody changed them.
const CLEAN_INTERVAL: (&str, u64) = ("cache_clean_interval_s", 24 * 60 * 60);
const MAX_UNUSED_AGE: (&str, u64) = ("max_unused_age_s", 7 * 24 * 60 * 60);
const MISS: (&str, u64) = ("cache_miss_s", 600);

/// What was used as recently does not go for its size: somebody may be about to open it.
const IN_USE: Duration = Duration::from_secs(60 * 60);

/// Files that are looked at in one cleaning.
const MAX_FILES: usize = 1 << 20;

impl Cache {
    pub(super) fn new(root: &Path, max_bytes: u64) -> Self {
        Self { root: root.to_owned(), max_bytes }
    }

    fn directory(&self, id: &ImageId) -> PathBuf {
        self.root.join(digits(id))
    }

    fn path(&self, file: &RemoteFile) -> PathBuf {
        self.directory(&file.id).join(name(file.kind))
    }

    /// Looks for a file. What is there and is not the right file counts as nothing: it is fetched again.
    pub(super) fn find(&self, file: &RemoteFile) -> CacheEntry {
        let path = self.path(file);
        let Ok(metadata) = fs::metadata(&path) else { return CacheEntry::Nothing };
        if metadata.is_file() && metadata.len() == 0 {
            let is_recent = age(metadata.modified()).is_some_and(|age| age <= self.seconds(MISS));
            return if is_recent { CacheEntry::NotThere } else { CacheEntry::Nothing };
        }
        if check(&path, &file.id).is_err() {
            return CacheEntry::Nothing;
        }
        // File systems seldom do that on their own, and what is in use is not to go.
        let used = FileTimes::new().set_accessed(SystemTime::now());
        let _ = File::open(&path).and_then(|file| file.set_times(used));
        CacheEntry::File(path)
    }

    /// Begins a file.
    pub(super) fn draft(&self, file: &RemoteFile) -> io::Result<Draft> {
        let place = self.path(file);
        make_directory(&self.directory(&file.id))?;
        // What is there is no file of that identity. A link is not followed, and a note that there is none may be one that
        // nobody can read (elfutils before 0.186), which the new file would be, too.
        match fs::remove_file(&place) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = match NewFile::create(&place) {
            // Another program cleaned the empty directory away.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_directory(&self.directory(&file.id))?;
                NewFile::create(&place)?
            }
            created => created?,
        };
        Ok(Draft { file, place })
    }

    /// Notes that no server has a file.
    pub(super) fn note_absence(&self, file: &RemoteFile) {
        let path = self.path(file);
        let _ = make_directory(&self.directory(&file.id));
        // An old note is renewed; a file that another program has put there meanwhile stays.
        if fs::metadata(&path).is_ok_and(|metadata| metadata.len() == 0) {
            let _ = fs::remove_file(&path);
        }
        let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    }

    /// A setting of the directory; made as libdebuginfod makes it where it is missing.
    fn seconds(&self, (name, default): (&str, u64)) -> Duration {
        let path = self.root.join(name);
        let mut text = String::new();
        let seconds = match File::open(&path) {
            Ok(file) => file.take(32).read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok()),
            Err(_) => {
                let file = OpenOptions::new().write(true).create_new(true).open(&path);
                let _ = file.and_then(|mut file| file.write_all(default.to_string().as_bytes()));
                None
            }
        };
        Duration::from_secs(seconds.unwrap_or(default))
    }

    /// Removes what was not used for long, if the last time is long enough ago.
    pub(super) fn clean(&self) -> io::Result<()> {
        make_directory(&self.root)?;
        let interval = self.seconds(CLEAN_INTERVAL);
        let stamp = self.root.join(CLEAN_INTERVAL.0);
        let last = fs::metadata(&stamp).and_then(|metadata| metadata.modified());
        // A clean directory is new: the setting was made just now.
        if age(last).is_none_or(|age| age < interval) {
            return Ok(());
        }
        let now = FileTimes::new().set_modified(SystemTime::now());
        OpenOptions::new().write(true).open(&stamp)?.set_times(now)?;
        let max_age = self.seconds(MAX_UNUSED_AGE);
        for (path, metadata) in self.files() {
            if age(metadata.accessed()).is_some_and(|age| age >= max_age) {
                remove(&path);
            }
        }
        self.shrink();
        Ok(())
    }

    /// Removes what was not used for the longest time, until the rest is small enough.
    pub(super) fn shrink(&self) {
        let mut files = self.files();
        let mut total: u64 = files.iter().map(|(_, metadata)| metadata.len()).sum();
        files.sort_by_key(|(_, metadata)| metadata.accessed().ok());
        for (path, metadata) in files {
            if total <= self.max_bytes || age(metadata.accessed()).is_none_or(|age| age < IN_USE) {
                break;
            }
            remove(&path);
            total = total.saturating_sub(metadata.len());
        }
    }

    /// The files that are kept here; nothing else that may lie in the directory, and nothing behind links.
    fn files(&self) -> Vec<(PathBuf, Metadata)> {
        let is_hex = |name: &str| name.len() >= 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let directories = entries(&self.root, |name, metadata| metadata.is_dir() && is_hex(name));
        let is_kept = |name: &str, metadata: &Metadata| {
            const KINDS: [&str; 4] = ["debuginfo", "executable", "source", "section"];
            metadata.is_file() && KINDS.iter().any(|kind| name.starts_with(kind))
        };
        let files = directories.iter().flat_map(|(directory, _)| entries(directory, is_kept));
        files.take(MAX_FILES).collect()
    }
}

impl Draft {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Whether this is the whole file of that identity; else what it is.
    pub(super) fn check(&self, id: &ImageId) -> Result<(), String> {
        check(self.file.temporary(), id)
    }

    /// Puts the file where it is looked for, at once.
    pub(super) fn keep(self) -> io::Result<PathBuf> {
        self.file.finish()?;
        Ok(self.place)
    }
}

/// An identity as it stands in paths.
pub(super) fn digits(id: &ImageId) -> String {
    id.to_string().replace('-', "").to_ascii_lowercase()
}

fn name(kind: RemoteKind) -> &'static str {
    match kind {
        RemoteKind::DebugInfo => "debuginfo",
        RemoteKind::Executable => "executable",
    }
}

/// Whether a file has this identity and all bytes that its headers promise.
fn check(path: &Path, id: &ImageId) -> Result<(), String> {
    let data = FileData::map(path).map_err(|error| error.what().to_owned())?;
    let range = identity_of(&data, id)?.range;
    let slice = data.part(range.start(), range.size()).ok_or("ends before its object does")?;
    let object = Object::parse_with(&slice, &Limits::default()).map_err(|error| error.to_string())?;
    let ends = object.sections().iter().filter_map(|section| section.file.map(|range| range.end().get()));
    let end = ends.max().unwrap_or(0);
    if end > slice.len() as u64 {
        return Err(format!("has {} bytes, expected {end} at least", slice.len()));
    }
    Ok(())
}

fn entries(directory: &Path, wanted: impl Fn(&str, &Metadata) -> bool) -> Vec<(PathBuf, Metadata)> {
    let entries = fs::read_dir(directory).into_iter().flatten().take(MAX_FILES).flatten();
    let entries = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        wanted(entry.file_name().to_str()?, &metadata).then(|| (entry.path(), metadata))
    });
    entries.collect()
}

/// Removes a file, and its directory if nothing is left in there.
fn remove(path: &Path) {
    let _ = fs::remove_file(path);
    let _ = path.parent().map(fs::remove_dir);
}

fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// How long ago that was; nothing of it that is yet to come.
fn age(time: io::Result<SystemTime>) -> Option<Duration> {
    SystemTime::now().duration_since(time.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::TempDir;

    fn set(path: &Path, days: u64) {
        let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
        let times = FileTimes::new().set_accessed(then).set_modified(then);
        File::open(path).unwrap().set_times(times).unwrap();
    }

    fn lies(directory: &TempDir, names: &[&str]) -> Vec<bool> {
        names.iter().map(|name| directory.join(name).exists()).collect()
    }

    #[test]
    fn what_was_not_used_for_a_week_goes_and_nothing_else() {
        let directory = TempDir::new("debuginfod-age");
        let names = ["aa01/debuginfo", "aa02/debuginfo", "aa02/executable", "aa03/notes", "xy/debuginfo"];
        for name in names {
            set(&directory.write(name, "content"), 8);
        }
        let cache = Cache::new(directory.path(), u64::MAX);
        cache.clean().unwrap();
        assert_eq!(lies(&directory, &names), [true; 5], "the directory is new");
        assert_eq!(std::fs::read_to_string(directory.join("cache_clean_interval_s")).unwrap(), "86400");
        set(&directory.join("cache_clean_interval_s"), 2);
        set(&directory.join("aa02/executable"), 6);
        cache.clean().unwrap();
        assert_eq!(lies(&directory, &names), [false, false, true, true, true]);
        assert!(!directory.join("aa01").exists(), "its directory goes with it");
        set(&directory.join("aa02/executable"), 8);
        cache.clean().unwrap();
        assert!(directory.join("aa02/executable").exists(), "cleaned a moment ago");
        directory.write("max_unused_age_s", "1000000\n");
        set(&directory.join("cache_clean_interval_s"), 2);
        cache.clean().unwrap();
        assert!(directory.join("aa02/executable").exists(), "as the directory is set");
    }

    #[test]
    fn beyond_its_size_the_oldest_go_first() {
        let directory = TempDir::new("debuginfod-size");
        let names = ["aa/debuginfo", "bb/debuginfo", "cc/debuginfo"];
        for (name, days) in names.iter().zip([2, 3, 0]) {
            set(&directory.write(name, [0; 100]), days);
        }
        Cache::new(directory.path(), 250).shrink();
        assert_eq!(lies(&directory, &names), [true, false, true]);
        Cache::new(directory.path(), 0).shrink();
        assert_eq!(lies(&directory, &names), [false, false, true], "what is in use stays");
    }

    #[test]
    fn links_out_of_the_directory_are_left_alone() {
        let (directory, other) = (TempDir::new("debuginfod-links"), TempDir::new("debuginfod-other"));
        set(&other.write("debuginfo", "content"), 100);
        std::os::unix::fs::symlink(other.path(), directory.join("abcd")).unwrap();
        set(&directory.write("cache_clean_interval_s", "86400"), 2);
        Cache::new(directory.path(), 0).clean().unwrap();
        assert!(other.join("debuginfo").exists());
    }

    #[test]
    fn an_empty_file_says_for_ten_minutes_that_there_is_none() {
        let directory = TempDir::new("debuginfod-miss");
        let cache = Cache::new(directory.path(), u64::MAX);
        let id = ImageId::from_build_id(&[0xab; 20]).unwrap();
        let file = RemoteFile { id, kind: RemoteKind::DebugInfo };
        assert_eq!(cache.find(&file), CacheEntry::Nothing);
        cache.note_absence(&file);
        assert_eq!(cache.find(&file), CacheEntry::NotThere);
        set(&cache.path(&file), 1);
        assert_eq!(cache.find(&file), CacheEntry::Nothing);
        cache.note_absence(&file);
        assert_eq!(cache.find(&file), CacheEntry::NotThere);
        let path = directory.write(format!("{id}/debuginfo"), "no object file");
        assert_eq!(cache.find(&file), CacheEntry::Nothing);
        cache.note_absence(&file);
        assert_eq!(std::fs::read(path).unwrap(), b"no object file", "it is for a fetch to replace it");
    }
}
