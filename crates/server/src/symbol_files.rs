//! The symbols of each project, open for those who name frames.
//!
//! A project's files are below `symbols/PROJECT/`. What they are is found out by their headers, so that names do not matter.

use crate::known_owners::Sources;
use crate::objects;
use backtrail::{NoProgress, SymbolOptions, Symbols};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The directory of uploads that are not whole.
const UPLOADS: &str = "uploads";

/// Where symbols are, and what of them is open.
pub(crate) struct SymbolFiles {
    directory: PathBuf,
    opened: Mutex<HashMap<i64, Opened>>,
    /// What [`Self::restore`] linked last, if it did.
    restored: Mutex<Option<Vec<(i64, String)>>>,
}

/// A project's symbols, and with which of its owner sources they were opened.
struct Opened {
    sources: i64,
    symbols: Arc<Symbols>,
}

impl SymbolFiles {
    /// Uses a directory, and makes it.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let files =
            Self { directory: directory.to_owned(), opened: Mutex::default(), restored: Mutex::default() };
        // What an earlier server did not come to the end of.
        match fs::remove_dir_all(files.uploads()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => fs::create_dir_all(files.uploads())?,
        }
        Ok(files)
    }

    /// Where uploads are until they are whole.
    pub(crate) fn uploads(&self) -> PathBuf {
        self.directory.join(UPLOADS)
    }

    /// Whether each project has exactly these uploads since [`Self::restore`].
    pub(crate) fn are(&self, files: &[(i64, String)]) -> bool {
        self.restored.lock().unwrap_or_else(PoisonError::into_inner).as_deref() == Some(files)
    }

    /// Each project has the uploads that the database says, and no others: a start, and whenever another replica has changed them. What
    /// people put there stays.
    pub(crate) fn restore(&self, files: &[(i64, String)], path: impl Fn(&str) -> PathBuf) -> io::Result<()> {
        let known: HashSet<PathBuf> =
            files.iter().map(|(project, digest)| self.directory(*project).join(digest)).collect();
        for project in fs::read_dir(&self.directory)? {
            let project = project?.path();
            if project == self.uploads() {
                continue;
            }
            for file in fs::read_dir(project)? {
                let file = file?;
                let is_upload =
                    file.file_name().to_str().is_some_and(is_digest) && file.file_type()?.is_file();
                if is_upload && !known.contains(&file.path()) {
                    fs::remove_file(file.path())?;
                }
            }
        }
        for (project, digest) in files {
            self.add(*project, digest, &path(digest))?;
        }
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.restored.lock().unwrap_or_else(PoisonError::into_inner) = Some(files.to_owned());
        Ok(())
    }

    /// What is wrong with projects' symbols in a directory: files that are not there, and uploads that should not be.
    pub(crate) fn faults(directory: &Path, files: &[(i64, String)]) -> io::Result<Vec<String>> {
        let files: HashSet<PathBuf> =
            files.iter().map(|(project, digest)| directory.join(project.to_string()).join(digest)).collect();
        let mut others = 0;
        for project in fs::read_dir(directory)? {
            let project = project?.path();
            if project.ends_with(UPLOADS) {
                continue;
            }
            for file in fs::read_dir(project)? {
                let file = file?;
                let is_upload = file.file_name().to_str().is_some_and(is_digest);
                others += usize::from(is_upload && !files.contains(&file.path()));
            }
        }
        let missing = files.iter().filter(|file| fs::metadata(file).is_err()).count();
        let faults = [
            (missing, "symbols that a project has and that are not linked"),
            (others, "symbols that no project has"),
        ];
        let faults = faults.iter().filter(|(count, _)| *count > 0);
        Ok(faults.map(|(count, what)| format!("{count} {what}")).collect())
    }

    /// Adds a file to a project's. It is the same file as that of the objects.
    pub(crate) fn add(&self, project: i64, digest: &str, object: &Path) -> io::Result<()> {
        let directory = self.directory(project);
        fs::create_dir_all(&directory)?;
        let place = directory.join(digest);
        if place.exists() {
            // What it was linked to may have gone: a copy of what is in a bucket.
            return Ok(());
        }
        match fs::hard_link(object, &place) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Files that servers share are on another file system.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                if !place.exists() {
                    objects::copy(object, &place)?;
                }
            }
            Err(error) => return Err(error),
            Ok(()) => fs::File::open(&directory)?.sync_all()?,
        }
        Ok(())
    }

    /// Copies files to where projects have them, before a transaction says so: files that servers share may be on another machine, and
    /// nobody else writes until a transaction ends. What is not wanted after all goes with the next [`Self::restore`].
    pub(crate) fn fetch<'f>(
        &self,
        files: impl Iterator<Item = (i64, &'f str)>,
        path: impl Fn(&str) -> io::Result<PathBuf>,
    ) -> io::Result<()> {
        for (project, digest) in files {
            if !self.directory(project).join(digest).exists() {
                self.add(project, digest, &path(digest)?)?;
            }
        }
        Ok(())
    }

    /// Takes a file from a project's. Whoever has it open keeps it.
    pub(crate) fn remove(&self, project: i64, digest: &str) -> io::Result<()> {
        match fs::remove_file(self.directory(project).join(digest)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Where a project's files are.
    pub(crate) fn directory(&self, project: i64) -> PathBuf {
        self.directory.join(project.to_string())
    }

    /// A project's symbols, for names alone. Neither this machine's own debug files are among them nor what reports and debug info name
    /// by a path: a stranger chose that.
    pub(crate) fn of_project(&self, project: i64) -> Arc<Symbols> {
        self.opened(project, None)
    }

    /// The same, which say whose code is where.
    pub(crate) fn with_owners(&self, project: i64, sources: &Sources) -> Arc<Symbols> {
        self.opened(project, Some(sources))
    }

    fn opened(&self, project: i64, sources: Option<&Sources>) -> Arc<Symbols> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let version = sources.map(|sources| sources.version);
        if let Some(known) = opened.get(&project)
            && version.is_none_or(|version| version <= known.sources)
        {
            return Arc::clone(&known.symbols);
        }
        let directory = self.directory(project);
        let mut options = SymbolOptions::default();
        options.paths = if directory.is_dir() { vec![directory] } else { Vec::new() };
        options.debug_directories = Some(Vec::new());
        options.only_scanned = true;
        let symbols = Symbols::with_options(options, &NoProgress);
        let symbols = Arc::new(match sources {
            Some(sources) => sources.add_to(symbols),
            None => symbols,
        });
        // Without any sources there is nothing to open them again for.
        let sources = version.unwrap_or_default();
        opened.insert(project, Opened { sources, symbols: Arc::clone(&symbols) });
        symbols
    }

    /// Files came or went: who asks next finds them.
    pub(crate) fn changed(&self, project: i64) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(&project);
    }
}

fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
