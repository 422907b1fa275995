//! What a scan found, by identity and by name.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use backtrail_core::{Arch, ImageId};
use backtrail_object::Kind;

use crate::data::{Backing, FileData};
use crate::entry::{Entry, Location, rank};
use crate::error::{Error, ErrorKind, Fault};
use crate::identity::identity_of;
use crate::open_file::OpenFile;
use crate::progress::{Counts, Progress};
use crate::remote::{RemoteError, RemoteErrorKind, RemoteFile, RemoteFiles};
use crate::scan::{self, Findings, ScanOptions};
use crate::{Limits, open};

/// The binaries and debug files below some paths.
///
/// Can be shared among threads.
#[derive(Debug, Default)]
pub struct Index {
    roots: Vec<PathBuf>,
    entries: Vec<Entry>,
    by_id: HashMap<ImageId, Vec<usize>>,
    by_name: HashMap<String, Vec<usize>>,
    /// Symbol files of other tools, by as much of their identity as all of them state.
    by_start: HashMap<[u8; START], Vec<usize>>,
    loose: HashMap<String, Vec<Location>>,
    mappings: Vec<Location>,
    problems: Vec<Error>,
    counts: Counts,
    limits: Limits,
    /// The file that was given as bytes.
    held: Option<FileData>,
    /// What the scan left open, until it is wanted.
    left_open: Mutex<HashMap<Arc<Path>, File>>,
    /// What is open somewhere is not mapped or inflated a second time.
    opened: Mutex<HashMap<Location, Weak<Backing>>>,
    /// What is parsed somewhere is not parsed a second time.
    parsed: Mutex<HashMap<FileKey, Arc<Mutex<Weak<OpenFile>>>>>,
    pub(crate) places: Places,
    remote: Option<Arc<dyn RemoteFiles>>,
    /// What servers gave, by identity.
    fetched: Mutex<HashMap<ImageId, Vec<PathBuf>>>,
}

/// Where files are that others name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// Directories laid out as `/usr/lib/debug` is: separate debug files by build id and by the binary's path.
    pub debug_directories: Vec<PathBuf>,
    /// Beginnings of paths in debug info, and what stands for them on this machine. The first that fits counts.
    pub remaps: Vec<(PathBuf, PathBuf)>,
    /// Whether files are opened at the paths that captures and debug info name. Those of strangers may name any file of
    /// this machine; without, the scanned files alone are looked through, by name and identity.
    pub named_paths: bool,
}

impl Default for Places {
    fn default() -> Self {
        Self { debug_directories: vec!["/usr/lib/debug".into()], remaps: Vec::new(), named_paths: true }
    }
}

/// What tells one part of a file from all others.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum FileKey {
    /// Device, inode, start, size.
    OnDisk(u64, u64, u64, u64),
    Other(Location, u64, u64),
}

impl FileKey {
    fn new(location: &Location, start: u64, size: u64) -> Self {
        match std::fs::metadata(location.path()) {
            Ok(data) if !location.is_in_zip() => Self::OnDisk(data.dev(), data.ino(), start, size),
            _ => Self::Other(location.clone(), start, size),
        }
    }
}

impl Index {
    /// Looks into every file below `paths`, which may be files and directories, reading no more than headers. What could
    /// not be read is listed in [`problems`](Self::problems). Links are followed; a file with several names counts
    /// once. The result does not depend on the number of threads.
    pub fn scan(paths: &[PathBuf], options: &ScanOptions, progress: &dyn Progress) -> Self {
        let (findings, counts) = scan::scan(paths, options, progress);
        Self::new(paths.to_vec(), findings, counts, options)
    }

    /// Looks into one file that is in memory, such as an uploaded zip; `name` is what it is called in locations.
    pub fn of_bytes(name: &Path, bytes: Vec<u8>, options: &ScanOptions) -> Self {
        let held = FileData::from(bytes);
        let (findings, counts) = scan::scan_bytes(&name.into(), &held, options);
        let index = Self::new(vec![name.to_owned()], findings, counts, options);
        Self { held: Some(held), ..index }
    }

    fn new(roots: Vec<PathBuf>, findings: Findings, counts: Counts, options: &ScanOptions) -> Self {
        let mut index = Self { roots, counts, limits: options.limits.clone(), ..Self::default() };
        for (at, entry) in findings.entries.iter().enumerate() {
            if let Some(id) = entry.identity.id {
                index.by_id.entry(id).or_default().push(at);
                if entry.identity.kind == Kind::SymbolFile {
                    index.by_start.entry(start(&id)).or_default().push(at);
                }
            }
            for name in entry.names() {
                index.by_name.entry(name.to_owned()).or_default().push(at);
            }
        }
        for location in findings.loose {
            index.loose.entry(location.file_name().to_owned()).or_default().push(location);
        }
        index.left_open = Mutex::new(findings.open.into_iter().collect());
        index.entries = findings.entries;
        index.mappings = findings.mappings;
        index.problems = findings.problems;
        index
    }

    /// Everything found, ordered by path and position.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Texts that are likely R8's or ProGuard's mapping files, also in zips (an app bundle has one), ordered by path.
    pub fn mappings(&self) -> &[Location] {
        &self.mappings
    }

    /// The paths that were scanned.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// What could not be read, ordered by path.
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// What the scan cost.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What has this identity, the best first: tables made from debug
    /// information, debug companions, then binaries with debug information, symbol files of other tools, then those
    /// with symbols, then the rest; among equals, files before members of zips. With `arch`, only what is of its
    /// family, the very same first.
    ///
    /// GSYM does not tell UUIDs from build ids, and Breakpad keeps 16 bytes of either as a rule: theirs have to be the same
    /// as far as both go, 16 bytes at least.
    pub fn find(&self, id: &ImageId, arch: Option<Arch>) -> Vec<&Entry> {
        let exact = self.by_id.get(id).into_iter().flatten();
        let similar = self.by_start.get(&start(id)).into_iter().flatten();
        let is_similar = |at: &&usize| {
            let other = self.entries.get(**at).and_then(|entry| entry.identity.id);
            other.is_some_and(|other| other != *id && is_same_as_far(id, &other))
        };
        let all = exact.chain(similar.filter(is_similar));
        let mut found: Vec<_> = all.filter_map(|at| self.entries.get(*at)).collect();
        if let Some(arch) = arch {
            found.retain(|entry| is_family(entry.identity.arch, arch));
        }
        found.sort_by_key(|entry| {
            let stated = Some(entry.identity.arch).filter(|arch| *arch != Arch::Unknown);
            let other_arch = arch.zip(stated).is_some_and(|(arch, stated)| arch != stated);
            (
                other_arch,
                rank(entry.identity.kind, entry.identity.has_debug_info, entry.identity.has_symbols),
                entry.location.is_in_zip(),
            )
        });
        found
    }

    /// What can be asked for by `name`: see [`Entry::names`]. Upper and lower case differ.
    pub fn named(&self, name: &str) -> Vec<&Entry> {
        self.pick(self.by_name.get(name)).collect()
    }

    /// Object files without an identity (`.o`, `.a`, `.dwo`, `.dwp`) of this file name.
    pub fn loose(&self, file_name: &str) -> &[Location] {
        self.loose.get(file_name).map_or(&[], Vec::as_slice)
    }

    fn pick<'s>(&'s self, at: Option<&'s Vec<usize>>) -> impl Iterator<Item = &'s Entry> {
        at.into_iter().flatten().filter_map(|at| self.entries.get(*at))
    }

    /// The bytes of the slice or member of an archive that `entry` is. Files are mapped, members of zips inflated
    /// into memory; what is already open is shared.
    ///
    /// # Errors
    /// When the file is gone or no longer what it was, or a zip member is broken or beyond the limits.
    pub fn open(&self, entry: &Entry) -> Result<FileData, Error> {
        let range = entry.identity.range;
        self.open_file(&entry.location)?.part(range.start(), range.size()).ok_or_else(|| {
            let what = "expected the slice that the scan found here, the file has become shorter";
            Fault { offset: Some(range.start()), ..Fault::new(ErrorKind::Changed, what) }.at(&entry.location)
        })
    }

    /// All bytes of the file or zip member at `location`, whatever slices it has.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_file(&self, location: &Location) -> Result<FileData, Error> {
        if let Some(data) = self.already_open(location) {
            return Ok(data);
        }
        let data = match location.zip_members().split_last() {
            None => match &self.held {
                Some(held) => held.clone(),
                None => self.map(location.path())?,
            },
            Some((member, _)) => {
                let outer = self.open_file(&location.outer())?;
                open::unpack(outer, member, &self.limits).map_err(|fault| fault.at(location))?
            }
        };
        if !data.is_part() {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            if is_worth_pruning(opened.len()) {
                opened.retain(|_, backing| backing.strong_count() > 0);
            }
            opened.insert(location.clone(), Arc::downgrade(data.backing()));
        }
        Ok(data)
    }

    /// The part of a file that `entry` is, open and parsed: the same one for all who ask while somebody has it.
    ///
    /// # Errors
    /// As [`open`](Self::open). A file that cannot be parsed is there, and says so.
    pub fn object(&self, entry: &Entry) -> Result<Arc<OpenFile>, Error> {
        let range = entry.identity.range;
        let key = FileKey::new(&entry.location, range.start().get(), range.size());
        self.parsed_once(key, &entry.location, entry.location.to_string(), || self.open(entry))
    }

    /// A whole file, open and parsed: see [`object`](Self::object).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn object_at(&self, location: &Location) -> Result<Arc<OpenFile>, Error> {
        self.object_as(location, location.to_string())
    }

    /// The file at a path, open and parsed: see [`object`](Self::object).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn object_at_path(&self, path: &Path) -> Result<Arc<OpenFile>, Error> {
        self.object_at(&Location::file(path.into()))
    }

    /// The file at a path, under another name for people: that which a process has for it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn object_at_path_as(&self, path: &Path, name: String) -> Result<Arc<OpenFile>, Error> {
        self.object_as(&Location::file(path.into()), name)
    }

    fn object_as(&self, location: &Location, name: String) -> Result<Arc<OpenFile>, Error> {
        let size = std::fs::metadata(location.path()).map_or(u64::MAX, |data| data.len());
        self.parsed_once(FileKey::new(location, 0, size), location, name, || self.open_file(location))
    }

    fn parsed_once(
        &self,
        key: FileKey,
        location: &Location,
        name: String,
        open: impl FnOnce() -> Result<FileData, Error>,
    ) -> Result<Arc<OpenFile>, Error> {
        let slot = {
            let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
            if is_worth_pruning(parsed.len()) {
                parsed.retain(|_, slot| {
                    let is_alive = |file: &Weak<OpenFile>| file.strong_count() > 0;
                    Arc::strong_count(slot) > 1 || slot.try_lock().map_or(true, |file| is_alive(&file))
                });
            }
            Arc::clone(parsed.entry(key).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = slot.upgrade() {
            return Ok(file);
        }
        let file = OpenFile::new(name, location.path(), open()?);
        *slot = Arc::downgrade(&file);
        Ok(file)
    }

    /// Where files are that others name.
    #[must_use]
    pub fn with_places(self, places: Places) -> Self {
        Self { places, ..self }
    }

    /// Asks servers for what is not on this machine. Looking for files asks nobody: whoever knows that a file is needed
    /// calls [`fetch`](Self::fetch).
    #[must_use]
    pub fn with_remote(self, remote: Arc<dyn RemoteFiles>) -> Self {
        Self { remote: Some(remote), ..self }
    }

    /// The servers, where there are any.
    pub fn remote(&self) -> Option<&Arc<dyn RemoteFiles>> {
        self.remote.as_ref()
    }

    /// Fetches files from the servers, and answers in the order of `wanted`; empty where there are no servers. From then on
    /// whoever looks for files of that identity finds them.
    pub fn fetch(&self, wanted: &[RemoteFile]) -> Vec<Result<Arc<OpenFile>, RemoteError>> {
        let Some(remote) = self.remote.as_ref().filter(|_| !wanted.is_empty()) else { return Vec::new() };
        let open = |(wanted, path): (&RemoteFile, Result<PathBuf, RemoteError>)| {
            let path = path?;
            let file = self.slice_at_path(&path, &wanted.id)?;
            let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
            let paths = fetched.entry(wanted.id).or_default();
            if !paths.contains(&path) {
                paths.push(path);
            }
            Ok(file)
        };
        wanted.iter().zip(remote.fetch(wanted)).map(open).collect()
    }

    /// What was fetched of this identity.
    pub(crate) fn fetched(&self, id: &ImageId) -> Vec<Arc<OpenFile>> {
        let fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        let paths = fetched.get(id).cloned().unwrap_or_default();
        drop(fetched);
        paths.iter().filter_map(|path| self.slice_at_path(path, id).ok()).collect()
    }

    /// What of the file at a path has that identity: Apple's files may be fat.
    fn slice_at_path(&self, path: &Path, id: &ImageId) -> Result<Arc<OpenFile>, RemoteError> {
        let unreadable = |error: Error| RemoteError::unreadable(&error);
        if matches!(id, ImageId::BuildId(_)) {
            return self.object_at_path(path).map_err(unreadable);
        }
        let location = Location::file(path.into());
        let data = self.open_file(&location).map_err(unreadable)?;
        let wrong = |why| RemoteError::new(RemoteErrorKind::WrongFile, format!("{}: {why}", path.display()));
        let identity = identity_of(&data, id).map_err(wrong)?;
        self.object(&Entry { location, identity }).map_err(unreadable)
    }

    /// Maps a file, by the descriptor that the scan left open where it did.
    fn map(&self, path: &Path) -> Result<FileData, Error> {
        let left_open = self.left_open.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        left_open.map_or_else(|| FileData::map(path), |file| FileData::map_file(&file, path))
    }

    fn already_open(&self, location: &Location) -> Option<FileData> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.get(location)?.upgrade().map(FileData::from_shared)
    }
}

/// Whether a list of this length is to be gone through for what nobody has any more: seldom, since a program may have
/// thousands of files of split debug info.
fn is_worth_pruning(len: usize) -> bool {
    len >= 64 && len.is_power_of_two()
}

/// Bytes of an identity that every symbol file has, shorter ones filled up with zeros.
const START: usize = 16;

fn start(id: &ImageId) -> [u8; START] {
    let mut start = [0; START];
    start.iter_mut().zip(id.as_bytes()).for_each(|(to, from)| *to = *from);
    start
}

/// Whether two identities with the same start are the same as far as both go.
fn is_same_as_far(one: &ImageId, other: &ImageId) -> bool {
    one.as_bytes().iter().zip(other.as_bytes()).all(|(one, other)| one == other)
}

/// Reports name the family (`ARM-64`) where files name the kind (`arm64e`), and the other way round.
fn is_family(one: Arch, other: Arch) -> bool {
    one == other || one == Arch::Unknown || other == Arch::Unknown || one.family() == other.family()
}

impl Index {
    pub(crate) fn same_name(&self, name: &str, arch: Option<Arch>) -> Vec<&Entry> {
        let named = self.named(name);
        let of_arch = |entry: &&&Entry| arch.is_none_or(|arch| is_family(entry.identity.arch, arch));
        let same: Vec<_> = named.iter().filter(of_arch).copied().collect();
        if same.is_empty() { named } else { same }
    }
}
