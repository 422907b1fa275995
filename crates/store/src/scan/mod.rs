//! Finding binaries and debug files below given paths by reading their headers.
//!
//! One thread lists files, all threads look into them, and the results are put into an order that does not depend
//! on which thread was first.

mod file;
mod walk;
mod zip;

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::data::FileData;
use crate::entry::{Entry, Location};
use crate::error::{Error, ErrorKind, Fault, ShownPath};
use crate::limits::Budget;
use crate::progress::{Counts, Progress};
use crate::source::Source;
use crate::{Limits, open};

/// How to scan.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ScanOptions {
    /// How far it may go.
    pub limits: Limits,
}

/// Whether these are the first bytes of an object file, or of a file that has some.
pub(crate) fn starts_as_object(bytes: &[u8]) -> bool {
    file::Magic::of(bytes.get(..file::MAGIC).unwrap_or(bytes)) == file::Magic::Object
}

/// What was found, in order.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Binaries and debug files, each slice on its own.
    pub(crate) entries: Vec<Entry>,
    /// Object files without an identity, which other files name by path: `.o`, `.a`, `.dwo`, `.dwp`.
    pub(crate) loose: Vec<Location>,
    /// Texts that may be R8's or ProGuard's mapping files.
    pub(crate) mappings: Vec<Location>,
    pub(crate) problems: Vec<Error>,
    /// Files that stay open, since they are likely to be wanted soon.
    pub(crate) open: Vec<(Arc<Path>, File)>,
    /// Zips within zips, to be looked into later.
    nested: Vec<Location>,
    /// Compressed archives of kinds that are not read.
    unread: Vec<Location>,
}

/// What all threads share.
struct Scan<'a> {
    limits: &'a Limits,
    budget: Budget,
    progress: &'a dyn Progress,
    files: AtomicU64,
    found: AtomicU64,
    bytes_read: AtomicU64,
    open: AtomicUsize,
}

/// Files that a scan leaves open: what most runs are given, and far below what a process may have.
const MAX_OPEN: usize = 64;

/// Files looked into at a time; large enough to keep all threads at work.
const BATCH: usize = 1024;

/// Everything below `roots`.
pub(crate) fn scan(roots: &[PathBuf], options: &ScanOptions, progress: &dyn Progress) -> (Findings, Counts) {
    let scan = Scan::new(&options.limits, progress);
    let mut walk = walk::Walk::new(roots, scan.limits);
    let mut seen = HashSet::new();
    let mut all = Findings::default();
    loop {
        let batch = walk.next_batch(BATCH);
        if batch.is_empty() {
            break;
        }
        let new = stat(batch, &mut seen, &mut all.problems);
        let findings: Vec<_> = new.into_par_iter().map(|path| scan.look_into(&path.into())).collect();
        all.extend(findings);
    }
    all.problems.append(&mut walk.problems);
    scan.finish(all, &|location| open::whole(location, &FileData::map, &options.limits))
}

/// What is in the bytes of one file; `name` is what it shall be called.
pub(crate) fn scan_bytes(name: &Arc<Path>, data: &FileData, options: &ScanOptions) -> (Findings, Counts) {
    let scan = Scan::new(&options.limits, &crate::NoProgress);
    let location = Location::file(Arc::clone(name));
    let findings = scan.look_into_source(&location, &Source::Bytes(data.clone()));
    let outermost = |_: &Path| Ok(data.clone());
    scan.finish(findings, &|location| open::whole(location, &outermost, &options.limits))
}

/// Leaves out files that were seen under another name, and those too small to be anything.
fn stat(batch: Vec<PathBuf>, seen: &mut HashSet<walk::FileKey>, problems: &mut Vec<Error>) -> Vec<PathBuf> {
    let stats: Vec<_> = batch.into_par_iter().map(|path| (std::fs::metadata(&path), path)).collect();
    let mut new = Vec::with_capacity(stats.len());
    for (metadata, path) in stats {
        match metadata {
            Ok(metadata) if seen.insert(walk::key(&metadata)) => new.push(path),
            Ok(_) => {}
            Err(error) => {
                problems.push(Fault::io("cannot be read", &error).at(ShownPath(&path)));
            }
        }
    }
    new
}

impl<'a> Scan<'a> {
    fn new(limits: &'a Limits, progress: &'a dyn Progress) -> Self {
        Self {
            limits,
            budget: Budget::new(limits.inflated_bytes),
            progress,
            files: AtomicU64::new(0),
            found: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            open: AtomicUsize::new(0),
        }
    }

    /// Whether one more file may stay open.
    fn may_keep_open(&self) -> bool {
        self.open.fetch_add(1, Ordering::Relaxed) < MAX_OPEN
    }

    fn counts(&self) -> Counts {
        Counts {
            files: self.files.load(Ordering::Relaxed),
            found: self.found.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
        }
    }

    /// Tells of one more file.
    fn count(&self, bytes_read: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes_read.fetch_add(bytes_read, Ordering::Relaxed);
        self.progress.scanned(&self.counts());
    }

    /// Looks into the zips within zips, one after the other since each may have to be held in memory.
    fn finish(
        &self,
        mut all: Findings,
        open: &dyn Fn(&Location) -> Result<FileData, Error>,
    ) -> (Findings, Counts) {
        let mut depth = 0;
        while !all.nested.is_empty() {
            depth += 1;
            for location in std::mem::take(&mut all.nested) {
                let findings = self.look_into_nested(&location, depth, open);
                all.extend([findings]);
            }
        }
        all.settle(self.limits);
        (all, self.counts())
    }
}

impl Findings {
    fn extend(&mut self, others: impl IntoIterator<Item = Findings>) {
        for mut other in others {
            self.entries.append(&mut other.entries);
            self.loose.append(&mut other.loose);
            self.mappings.append(&mut other.mappings);
            self.problems.append(&mut other.problems);
            self.open.append(&mut other.open);
            self.nested.append(&mut other.nested);
            self.unread.append(&mut other.unread);
        }
    }

    fn problem(error: Error) -> Self {
        Self { problems: vec![error], ..Self::default() }
    }

    fn settle(&mut self, limits: &Limits) {
        self.name_unread();
        let order = |entry: &Entry| (entry.location.clone(), entry.identity.range.start());
        self.entries.sort_by_cached_key(order);
        self.loose.sort_unstable();
        self.mappings.sort_unstable();
        self.problems.sort_by(|a, b| a.place().cmp(b.place()));
        let beyond = self.problems.len().saturating_sub(limits.problems);
        if beyond > 0 {
            self.problems.truncate(limits.problems);
            let what =
                format!("could not be read either; of {} only this number is kept", beyond + limits.problems);
            self.problems.push(Error::new(ErrorKind::Limit, format!("{beyond} more"), what));
        }
    }

    /// One note for all archives that are not read.
    fn name_unread(&mut self) {
        self.unread.sort_unstable();
        let Some(first) = self.unread.first() else { return };
        let others = match self.unread.len() {
            1 => String::new(),
            count => format!(" (and {} more such)", count - 1),
        };
        let what = format!("a compressed archive, not read{others}: unpack it, or pack it as a zip");
        self.problems.push(Error::new(ErrorKind::NotRead, first, what));
        self.unread.clear();
    }
}
