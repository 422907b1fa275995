//! Whose code is where in the builds of projects: worked out once for each, by a thread of its own, and kept.
//!
//! Nobody waits for it. Who asks for a build that nothing is known of yet is told so and asks again; reports that need it are put off.

use crate::bell::Bell;
use crate::secret;
use backtrail::sdk::{ImageOwners, OwnerFinder};
use backtrail::{Arch, ImageId};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// Bytes of what is known that are kept in memory; what was not asked for the longest time goes.
const MAX_MEMORY: usize = 32 << 20;

/// Bytes of what is known of one build.
pub(crate) const MAX_ANSWER: u64 = 24 << 20;

/// Builds that are kept on the disk; the oldest go.
const MAX_KEPT: usize = 2_000;

/// Where the code section of a build is: its start and its end.
pub(crate) type Code = (u64, u64);

/// A build, and what tells whose code is where in it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Build {
    pub(crate) id: String,
    pub(crate) arch: String,
    /// What is there of it, the binary first.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) fingerprints: Vec<PathBuf>,
    /// With their names, and where their code sections are.
    pub(crate) link_maps: Vec<(String, PathBuf, Code)>,
}

/// What a project's fingerprints and linkers' maps say of its builds.
#[derive(Debug)]
pub(crate) struct Finder {
    pub(crate) project: i64,
    pub(crate) fingerprints: Vec<String>,
    pub(crate) link_maps: Vec<(String, Code)>,
    pub(crate) known: Arc<Known>,
}

impl Finder {
    /// The digests of maps whose code section is there.
    fn maps_of(&self, code: Option<Code>) -> Vec<String> {
        let fitting = self.link_maps.iter().filter(|(_, other)| Some(*other) == code);
        fitting.map(|(digest, _)| digest.clone()).collect()
    }
}

/// A project's finder, as its symbols have it.
#[derive(Debug)]
pub(crate) struct SharedFinder(pub(crate) Arc<Finder>);

impl OwnerFinder for SharedFinder {
    fn owners(&self, id: ImageId, arch: Arch, files: &[&Path]) -> Option<Arc<ImageOwners>> {
        self.0.known.get(&self.0, id, arch, files)
    }
}

/// A build that is to be looked at.
pub(crate) struct Job {
    /// How often somebody killed the process that looked at it.
    pub(crate) killed: u32,
    key: String,
    id: ImageId,
    arch: Arch,
    files: Vec<PathBuf>,
    finder: Arc<Finder>,
}

/// What is known of a build.
struct Found {
    /// `None` where working it out failed.
    owners: Option<Arc<ImageOwners>>,
    head: Head,
    /// When it was last asked for.
    used: u64,
}

impl Found {
    /// Whether the project's maps are those that it was found by.
    fn is_of(&self, finder: &Finder) -> bool {
        match self.owners {
            Some(_) => self.head.maps == finder.maps_of(self.head.code),
            // Any of them may be what it failed by.
            None => self.head.maps.iter().eq(finder.link_maps.iter().map(|(digest, _)| digest)),
        }
    }

    fn memory(&self) -> usize {
        self.owners.as_ref().map_or(0, |owners| owners.memory()) + 1024
    }
}

/// What it was found by: where a project has other maps of such a build, it is worked out anew.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Head {
    code: Option<Code>,
    maps: Vec<String>,
}

#[derive(Default)]
struct Inner {
    found: HashMap<String, Found>,
    memory: usize,
    /// Rises with each question.
    clock: u64,
    queue: VecDeque<Job>,
    /// Builds that wait or are being worked out.
    pending: HashMap<String, (i64, ImageId)>,
    /// How many were.
    finished: u64,
    /// The project of the last of them that was taken.
    last: i64,
}

/// What is known of all projects' builds.
pub(crate) struct Known {
    directory: PathBuf,
    /// Wakes who works it out.
    pub(crate) bell: Bell,
    inner: Mutex<Inner>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Known {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, bell: Bell::default(), inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of a build. Where nothing is, it is worked out soon.
    fn get(
        &self,
        finder: &Arc<Finder>,
        id: ImageId,
        arch: Arch,
        files: &[&Path],
    ) -> Option<Arc<ImageOwners>> {
        let key = key(finder, id, arch, files);
        let mut inner = self.inner();
        inner.clock += 1;
        let now = inner.clock;
        if let Some(found) = inner.found.get_mut(&key) {
            if found.is_of(finder) {
                found.used = now;
                return found.owners.clone();
            }
            inner.forget(&key);
        }
        if inner.pending.contains_key(&key) {
            return None;
        }
        if let Some((head, owners)) = read(&self.directory.join(&key))
            && head.maps == finder.maps_of(head.code)
        {
            let owners = Arc::new(owners);
            inner.keep(&key, Found { owners: Some(Arc::clone(&owners)), head, used: now });
            return Some(owners);
        }
        inner.pending.insert(key.clone(), (finder.project, id));
        let files = files.iter().map(|file| file.to_path_buf()).collect();
        inner.queue.push_back(Job { killed: 0, key, id, arch, files, finder: Arc::clone(finder) });
        drop(inner);
        self.bell.ring();
        None
    }

    /// Whether one of these builds is still to be worked out.
    pub(crate) fn is_pending(&self, project: i64, ids: impl Iterator<Item = ImageId>) -> bool {
        let inner = self.inner();
        if inner.pending.is_empty() {
            return false;
        }
        let of_project = inner.pending.values().filter(|(other, _)| *other == project);
        let pending: HashSet<_> = of_project.map(|(_, id)| *id).collect();
        ids.into_iter().any(|id| pending.contains(&id))
    }

    /// How many builds were worked out.
    pub(crate) fn finished(&self) -> u64 {
        self.inner().finished
    }

    /// The next build. One project's many hold another's up by one.
    pub(crate) fn next(&self) -> Option<Job> {
        let mut inner = self.inner();
        let last = inner.last;
        let other = inner.queue.iter().position(|job| job.project() != last).unwrap_or_default();
        let job = inner.queue.remove(other)?;
        inner.last = job.project();
        Some(job)
    }

    /// It is worked out later, after what waits already.
    pub(crate) fn put_back(&self, job: Job) {
        self.inner().queue.push_back(job);
    }

    /// Keeps what came of a build. Says whether that is something, and gives the map that is that of it.
    pub(crate) fn finish(&self, job: &Job, answer: Option<&[u8]>) -> (bool, Option<String>) {
        let (code, owners) = answer.and_then(parse).unzip();
        let code = code.flatten();
        let maps = match owners {
            Some(_) => job.finder.maps_of(code),
            None => job.finder.link_maps.iter().map(|(digest, _)| digest.clone()).collect(),
        };
        let head = Head { code, maps };
        if let Some(owners) = &owners {
            // Without it the build is worked out again after the next start.
            let _ = self.write(&job.key, &head, owners);
        }
        let map = owners.as_ref().and_then(|owners| owners.link_map().map(str::to_owned));
        let mut inner = self.inner();
        let (used, is_known) = (inner.clock, owners.is_some());
        inner.keep(&job.key, Found { owners: owners.map(Arc::new), head, used });
        inner.pending.remove(&job.key);
        inner.finished += 1;
        (is_known, map)
    }

    fn write(&self, key: &str, head: &Head, owners: &ImageOwners) -> io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let kept = fs::read_dir(&self.directory)?.flatten();
        let mut kept: Vec<_> =
            kept.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path()))).collect();
        kept.sort();
        for (_, oldest) in kept.iter().take((kept.len() + 1).saturating_sub(MAX_KEPT)) {
            fs::remove_file(oldest)?;
        }
        let mut bytes = serde_json::to_vec(head)?;
        bytes.push(b'\n');
        bytes.extend(owners.to_bytes());
        let mut file = backtrail_store::NewFile::create(&self.directory.join(key))?;
        io::Write::write_all(&mut file, &bytes)?;
        file.finish()
    }
}

impl Inner {
    fn forget(&mut self, key: &str) {
        if let Some(found) = self.found.remove(key) {
            self.memory = self.memory.saturating_sub(found.memory());
        }
    }

    fn keep(&mut self, key: &str, found: Found) {
        self.forget(key);
        self.memory += found.memory();
        self.found.insert(key.to_owned(), found);
        while self.memory > MAX_MEMORY && self.found.len() > 1 {
            let others = self.found.iter().filter(|(other, _)| *other != key);
            let Some(oldest) = others.min_by_key(|(_, found)| found.used).map(|(key, _)| key.clone()) else {
                return;
            };
            self.forget(&oldest);
        }
    }
}

impl Job {
    /// What is asked of the process; what is in a bucket is fetched.
    pub(crate) fn build(&self, local: impl Fn(&str) -> io::Result<PathBuf>) -> io::Result<Build> {
        let fingerprints = self.finder.fingerprints.iter().map(|digest| local(digest));
        let maps = self.finder.link_maps.iter();
        let maps = maps.map(|(digest, code)| Ok((digest.clone(), local(digest)?, *code)));
        Ok(Build {
            id: self.id.to_string(),
            arch: self.arch.name().to_owned(),
            files: self.files.clone(),
            fingerprints: fingerprints.collect::<io::Result<_>>()?,
            link_maps: maps.collect::<io::Result<_>>()?,
        })
    }

    /// Bytes of what is read, about.
    pub(crate) fn size(&self, local: impl Fn(&str) -> io::Result<PathBuf>) -> u64 {
        let finder = &self.finder;
        let maps = finder.link_maps.iter().map(|(digest, _)| digest);
        let size = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        let sum: u64 = finder.fingerprints.iter().filter_map(|digest| Some(size(&local(digest).ok()?))).sum();
        // One map is that of the build.
        let largest = maps.filter_map(|digest| Some(size(&local(digest).ok()?))).max().unwrap_or_default();
        self.files.iter().map(|file| size(file)).sum::<u64>().saturating_add(sum).saturating_add(largest)
    }

    /// The digests of the fingerprints and maps that it is looked at with.
    pub(crate) fn sources(&self) -> HashSet<String> {
        let maps = self.finder.link_maps.iter().map(|(digest, _)| digest);
        self.finder.fingerprints.iter().chain(maps).cloned().collect()
    }

    pub(crate) fn project(&self) -> i64 {
        self.finder.project
    }

    pub(crate) fn id(&self) -> String {
        self.id.to_string()
    }
}

/// What a build is kept by: the project, which waits for it by itself; what is there of it, and the fingerprints, by their content; and the
/// program, whose rules may change.
fn key(finder: &Finder, id: ImageId, arch: Arch, files: &[&Path]) -> String {
    let mut text = format!("{} {} {id} {}\n", env!("CARGO_PKG_VERSION"), finder.project, arch.name());
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text.push_str(&name);
        // Uploads are called by their content; what people put there by hand is not.
        if name.len() != 64
            && let Ok(metadata) = fs::metadata(file)
        {
            let time = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            text.push_str(&format!(" {} {} {time:?}", file.display(), metadata.len()));
        }
        text.push('\n');
    }
    finder.fingerprints.iter().for_each(|digest| text.push_str(digest));
    secret::digest(text.as_bytes())
}

/// Where the code section is, and whose code is where, as the process answers it.
fn parse(answer: &[u8]) -> Option<(Option<Code>, ImageOwners)> {
    let end = answer.iter().position(|byte| *byte == b'\n')?;
    let code = serde_json::from_slice(answer.get(..end)?).ok()?;
    Some((code, ImageOwners::from_bytes(answer.get(end + 1..)?)?))
}

/// What is kept of a build, if every byte is as it was written.
fn read(file: &Path) -> Option<(Head, ImageOwners)> {
    let bytes = fs::read(file).ok()?;
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = serde_json::from_slice(bytes.get(..end)?).ok()?;
    Some((head, ImageOwners::from_bytes(bytes.get(end + 1..)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two projects have the same app and the same library: each waits for the answer, and gets it.
    #[test]
    fn projects_with_the_same_files_both_wait() {
        let directory = backtrail_testkit::TempDir::new("server-known");
        let known = Arc::new(Known::new(directory.join("owners")));
        let finder = |project| {
            let fingerprints = vec!["f".to_owned()];
            Arc::new(Finder { project, fingerprints, link_maps: Vec::new(), known: Arc::clone(&known) })
        };
        let (one, two) = (finder(1), finder(2));
        let id = ImageId::parse_uuid("4c4c447f-5555-3144-a124-6d7f0ca5ce78").unwrap();
        let file = "a".repeat(64);
        let get = |finder| known.get(finder, id, Arch::Arm64, &[Path::new(&file)]);
        assert_eq!((get(&one), get(&two)), (None, None));
        assert!(known.is_pending(1, [id].into_iter()) && known.is_pending(2, [id].into_iter()));
        assert!(!known.is_pending(3, [id].into_iter()));
        let answer = [b"null\n".as_slice(), &ImageOwners::default().to_bytes()].concat();
        let first = known.next().unwrap();
        assert_eq!(known.finish(&first, Some(&answer)), (true, None));
        assert!(!known.is_pending(first.project(), [id].into_iter()));
        assert!(known.is_pending(3 - first.project(), [id].into_iter()), "the other one goes on without");
        known.finish(&known.next().unwrap(), Some(&answer));
        assert_eq!(known.finish(&first, Some(b"null\nno answer")), (false, None));
        known.finish(&first, Some(&answer));
        assert!(get(&one).is_some() && get(&two).is_some() && known.next().is_none());
    }

    #[test]
    fn many_builds_of_one_project_hold_no_other_up() {
        let directory = backtrail_testkit::TempDir::new("server-turns");
        let known = Arc::new(Known::new(directory.join("owners")));
        let ask = |project, build: u8| {
            let fingerprints = vec!["f".to_owned()];
            let finder = Finder { project, fingerprints, link_maps: Vec::new(), known: Arc::clone(&known) };
            let id = ImageId::from_build_id(&[build; 20]).unwrap();
            known.get(&Arc::new(finder), id, Arch::X86_64, &[Path::new(&"a".repeat(64))]);
        };
        (0..4).for_each(|build| ask(1, build));
        ask(2, 0);
        let projects: Vec<i64> = std::iter::from_fn(|| known.next()).map(|job| job.project()).collect();
        assert_eq!(projects, [1, 2, 1, 1, 1]);
    }
}
