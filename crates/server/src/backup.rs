//! A copy of everything that a server keeps, taken while it runs.

use crate::config::Config;
#[cfg(feature = "postgres")]
use crate::database::LATEST;
use crate::database::{Database, Source};
use crate::error::ServerError;
use crate::objects::{Objects, digests, link};
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Copied {
    /// Files of reports and symbols.
    pub files: usize,
    /// Files that the database names and that are not there: the data was not whole.
    pub missing: Vec<String>,
}

/// The database's name while a copy is not whole.
const UNFINISHED: &str = "backtrail.sqlite.unfinished";

/// Copies a server's data into a directory that is empty or not there yet. The server may run: the copy is that of one moment.
/// Files are linked where both are on one file system, since no file is ever changed; where a copy is kept safe from a
/// disk that fails, it is taken elsewhere from there. Those of a bucket are fetched, and rows of PostgreSQL become a file of SQLite's.
///
/// A server starts from the copy as from the original. What was broken off has no database, and is no copy.
///
/// # Errors
/// Where `from` has no database; where `to` has files, or something cannot be read or written.
pub fn copy(from: &Config, to: &Path) -> Result<Copied, ServerError> {
    let database = Database::open_to_read(Source::of(from)?)?;
    let target = Config::new(to);
    make_directory(to)?;
    let mut files = Files::new(from, &target, &database)?;
    // Files first: what is removed meanwhile, being old, is in the copy whether or not its database names it. What came
    // meanwhile is copied afterwards.
    files.take(&database.read(digests)?)?;
    let unfinished = to.join(UNFINISHED);
    let needed = database.copy(&unfinished)?.read(digests)?;
    files.take(&needed)?;
    let mut copied = files.copied(&needed);
    copied.files += symbols(from, &target)?;
    finish(&unfinished, &target)?;
    Ok(copied)
}

/// Puts a copy back: to the directory of `to`, which is empty or not there yet, its files to where that says that they are, and its rows to
/// PostgreSQL where that says so, into a database that is empty.
///
/// # Errors
/// Where `from` is no copy, a broken one or a later program's; where `to` has something, or cannot be written; where the files of `to` are
/// another server's.
pub fn restore(from: &Path, to: &Config) -> Result<Copied, ServerError> {
    let backup = Config::new(from);
    let broken = |why: &dyn fmt::Display| {
        let why = io::Error::new(io::ErrorKind::InvalidData, format!("no backup that can be used: {why}"));
        ServerError::files(from.display().to_string(), why)
    };
    if from.join(UNFINISHED).exists() {
        return Err(broken(&"it was broken off"));
    }
    let database = Database::open_to_read(Source::of(&backup)?).map_err(|error| broken(&error))?;
    #[cfg_attr(
        not(feature = "postgres"),
        expect(unused_variables, reason = "a file is migrated when it is opened")
    )]
    let (version, sound) = database.check().map_err(|error| broken(&error))?;
    if sound != "ok" {
        return Err(broken(&format_args!("the database is broken: {sound}")));
    }
    let target = Source::of(to)?;
    target.expect_empty()?;
    make_directory(&to.data)?;
    let mut files = Files::new(&backup, to, &database)?;
    let needed = database.read(digests)?;
    files.take(&needed)?;
    let mut copied = files.copied(&needed);
    copied.files += symbols(&backup, to)?;
    // Then the database: a server that was started too early has no rows whose files are not there.
    let unfinished = to.data.join(UNFINISHED);
    match &target {
        Source::File(_) => {
            database.copy(&unfinished)?;
            finish(&unfinished, to)?;
        }
        #[cfg(feature = "postgres")]
        Source::Postgres(url) if version < LATEST => {
            database.copy(&unfinished)?;
            let migrated = Source::File(unfinished.clone());
            Database::open(migrated.clone())?.close();
            Database::open_to_read(migrated)?.copy_to_postgres(url)?;
            fs::remove_file(&unfinished).map_err(at(&unfinished))?;
        }
        #[cfg(feature = "postgres")]
        Source::Postgres(url) => database.copy_to_postgres(url)?,
    }
    Ok(copied)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ServerError + use<> {
    let path = path.display().to_string();
    move |error| ServerError::files(path, error)
}

fn make_directory(to: &Path) -> Result<(), ServerError> {
    fs::create_dir_all(to).map_err(at(to))?;
    if fs::read_dir(to).map_err(at(to))?.next().is_some() {
        let why = io::Error::new(io::ErrorKind::AlreadyExists, "expected an empty directory");
        return Err(ServerError::files(to.display().to_string(), why));
    }
    Ok(())
}

/// Gives the database its name, now that all else is there.
fn finish(unfinished: &Path, target: &Config) -> Result<(), ServerError> {
    fs::rename(unfinished, target.data.join("backtrail.sqlite"))
        .and_then(|()| File::open(&target.data)?.sync_all())
        .map_err(at(&target.data))
}

/// What a database says of the files that it needs.
type Needed = HashMap<String, Option<String>>;

/// Files that are copied, each once.
struct Files<'d> {
    database: &'d Database,
    from: Objects,
    to: Objects,
    target: PathBuf,
    taken: HashSet<String>,
}

impl<'d> Files<'d> {
    fn new(from: &Config, to: &Config, database: &'d Database) -> Result<Self, ServerError> {
        let (from, taken) = (Objects::at(from)?, HashSet::new());
        Ok(Self { database, from, to: Objects::open(to)?, target: to.data.clone(), taken })
    }

    fn take(&mut self, needed: &Needed) -> Result<(), ServerError> {
        for digest in needed.keys() {
            if !self.taken.contains(digest)
                && self.from.copy_to(&self.to, self.database, digest).map_err(at(&self.target))?
            {
                self.taken.insert(digest.clone());
            }
        }
        Ok(())
    }

    fn copied(&self, needed: &Needed) -> Copied {
        let missing = needed.keys().filter(|digest| !self.taken.contains(*digest));
        let mut missing: Vec<_> = missing.cloned().collect();
        missing.sort();
        Copied { files: self.taken.len(), missing }
    }
}

/// What people put there by hand, by project. Uploads are linked anew by the next start, and half of one is nobody's.
fn symbols(from: &Config, to: &Config) -> Result<usize, ServerError> {
    let (from, to) = (from.data.join("symbols"), to.data.join("symbols"));
    trees(&from, &to).map_err(at(&to))
}

fn trees(from: &Path, to: &Path) -> io::Result<usize> {
    let mut count = 0;
    let projects = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        projects => projects?,
    };
    for project in projects {
        let project = project?;
        let is_project = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<i64>().is_ok());
        if is_project(&project.file_name()) && project.file_type()?.is_dir() {
            count += tree(&project.path(), &to.join(project.file_name()), 0)?;
        }
    }
    Ok(count)
}

/// How deep bundles of symbols lie.
const MAX_DEPTH: usize = 32;

fn tree(from: &Path, to: &Path, depth: usize) -> io::Result<usize> {
    fs::create_dir_all(to)?;
    let mut count = 0;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() && depth < MAX_DEPTH {
            count += tree(&entry.path(), &target, depth + 1)?;
        } else if kind.is_file() {
            link(&entry.path(), &target)?;
            count += 1;
        }
    }
    Ok(count)
}
