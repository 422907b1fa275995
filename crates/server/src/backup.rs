//! A copy of everything that a server keeps, taken while it runs.

use crate::config::Config;
use crate::database::{Database, Source};
use crate::error::ServerError;
use crate::objects::{Objects, digests, link};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Copied {
    /// Files of reports and symbols.
    pub files: usize,
    /// Files that the database names and that are not there: the data was not whole.
    pub missing: Vec<String>,
}

/// Copies a server's data into a directory that is empty or not there yet. The server may run: the copy is that of one moment.
/// Files are linked where both are on one file system, since no file is ever changed; where a copy is kept safe from a
/// disk that fails, it is taken elsewhere from there. Those of a bucket are fetched.
///
/// A server starts from the copy as from the original.
///
/// # Errors
/// Where `from` has no database, or one in PostgreSQL; where `to` has files, or something cannot be read or written.
pub fn copy(from: &Config, to: &Path) -> Result<Copied, ServerError> {
    copy_to(from, &Config::new(to))
}

/// Puts a copy back: to the directory of `to`, which is empty or not there yet, and its files to where that says that they are.
///
/// # Errors
/// As [`copy`], and where the files of `to` are another server's.
pub fn restore(from: &Path, to: &Config) -> Result<Copied, ServerError> {
    copy_to(&Config::new(from), to)
}

fn copy_to(from: &Config, target: &Config) -> Result<Copied, ServerError> {
    let to = target.data.as_path();
    let at = |path: &Path| {
        let path = path.display().to_string();
        move |error| ServerError::files(path, error)
    };
    let database = Database::open_to_read(Source::of(from)?)?;
    fs::create_dir_all(to).map_err(at(to))?;
    if fs::read_dir(to).map_err(at(to))?.next().is_some() {
        let why = io::Error::new(io::ErrorKind::AlreadyExists, "expected an empty directory");
        return Err(ServerError::files(to.display().to_string(), why));
    }
    // Files first: what is removed meanwhile, being old, is in the copy whether or not its database names it. What came
    // meanwhile is copied afterwards.
    let objects = (Objects::at(from)?, Objects::open(target)?);
    let first = database.read(digests)?;
    let mut copied = Copied::default();
    let mut taken = HashSet::new();
    let mut take = |digest: &String| -> Result<(), ServerError> {
        if objects.0.copy_to(&objects.1, &database, digest).map_err(at(to))? {
            copied.files += 1;
            taken.insert(digest.clone());
        }
        Ok(())
    };
    first.keys().try_for_each(&mut take)?;
    let snapshot = database.copy(Source::of(target)?)?;
    let mut needed: Vec<_> = snapshot.read(digests)?.into_keys().collect();
    needed.sort();
    needed.iter().filter(|digest| !first.contains_key(*digest)).try_for_each(&mut take)?;
    copied.missing.extend(needed.into_iter().filter(|digest| !taken.contains(digest)));
    copied.files +=
        symbols(&from.data.join("symbols"), &to.join("symbols")).map_err(at(&to.join("symbols")))?;
    File::open(to).and_then(|directory| directory.sync_all()).map_err(at(to))?;
    Ok(copied)
}

/// What people put there by hand, by project. Uploads are linked anew by the next start, and half of one is nobody's.
fn symbols(from: &Path, to: &Path) -> io::Result<usize> {
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
