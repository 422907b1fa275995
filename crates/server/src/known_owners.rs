//! What workers and pages know of whose code it is: each project's rules, fingerprints and linkers' maps as they are at one moment, and
//! what the latter say of its builds.

mod builds;

use crate::database::{Connection, Database, Result as DatabaseResult, Row, params};
use crate::error::eprint_problem;
use crate::objects::{Objects, is_passing};
use backtrail::sdk::OwnerSources;
use backtrail::{Rules, Symbols};
pub(crate) use builds::{Build, Code, Job, Known, MAX_ANSWER};
use builds::{Finder, SharedFinder};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Projects whose sources are kept in memory, and bytes of their rules as they came: read, they take some twenty times as much.
const MAX_OPENED: usize = 100;
const MAX_RULES: usize = 2 << 20;

/// What tells of one project whose code is whose, at one moment.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Rises with each change.
    pub(crate) version: i64,
    pub(crate) rules: Rules,
    /// Bytes of the rules.
    size: usize,
    finder: Option<Arc<Finder>>,
}

impl Sources {
    /// Makes a project's symbols say whose code is where.
    pub(crate) fn add_to(&self, symbols: Symbols) -> Symbols {
        let Some(finder) = &self.finder else { return symbols };
        let sources = OwnerSources::new().skipping(backtrail::is_system_image);
        symbols.with_owners(sources.with_finder(Arc::new(SharedFinder(Arc::clone(finder)))))
    }

    /// Whether there is something to compare builds with.
    pub(crate) fn has_finder(&self) -> bool {
        self.finder.is_some()
    }
}

/// What all projects' workers and pages have it from.
pub(crate) struct Owners {
    pub(crate) known: Arc<Known>,
    opened: Mutex<Opened>,
    none: Arc<Sources>,
}

/// What is kept in memory.
#[derive(Default)]
struct Opened {
    projects: HashMap<i64, Arc<Sources>>,
    /// Bytes of all their rules.
    size: usize,
}

impl Opened {
    fn keep(&mut self, project: i64, sources: Arc<Sources>) {
        let size = sources.size;
        if let Some(former) = self.projects.remove(&project) {
            self.size -= former.size;
        }
        if self.projects.len() >= MAX_OPENED || self.size + size > MAX_RULES {
            self.projects.clear();
            self.size = 0;
        }
        self.size += size;
        self.projects.insert(project, sources);
    }
}

impl Owners {
    /// Keeps what is worked out in a directory.
    pub(crate) fn new(directory: &Path) -> Self {
        Self {
            known: Arc::new(Known::new(directory.to_owned())),
            opened: Mutex::default(),
            none: Arc::default(),
        }
    }

    /// What tells of a project whose code is whose, of that version or a later one.
    pub(crate) fn of_project(
        &self,
        database: &Database,
        objects: &Objects,
        project: i64,
        version: i64,
    ) -> io::Result<Arc<Sources>> {
        if version == 0 {
            return Ok(Arc::clone(&self.none));
        }
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = opened().projects.get(&project)
            && known.version >= version
        {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(read(database, objects, project, &self.known)?);
        opened().keep(project, Arc::clone(&read));
        Ok(read)
    }

    /// The same of this moment.
    pub(crate) fn now(
        &self,
        database: &Database,
        objects: &Objects,
        project: i64,
    ) -> io::Result<Arc<Sources>> {
        let version = database.read(|connection| version(connection, project));
        self.of_project(database, objects, project, version.map_err(io::Error::other)?)
    }
}

/// Reads what is there of a project at this moment.
fn read(database: &Database, objects: &Objects, project: i64, known: &Arc<Known>) -> io::Result<Sources> {
    let read = database.read(|connection| {
        let version = version(connection, project)?;
        let sql = "SELECT kind, blob, code, name FROM owner_source WHERE project = ?1 ORDER BY id";
        let text = |row: &Row<'_>, at: usize| row.get::<_, String>(at);
        let rows = connection.query_map(sql, params![project], |row| {
            Ok((text(row, 0)?, text(row, 1)?, row.get::<_, Option<String>>(2)?, text(row, 3)?))
        })?;
        Ok((version, rows))
    });
    let (version, rows) = read.map_err(io::Error::other)?;
    let mut sources = Sources { version, ..Sources::default() };
    let (mut fingerprints, mut link_maps) = (Vec::new(), Vec::new());
    for (kind, digest, code, name) in rows {
        match kind.as_str() {
            "rules" => {
                let bytes = match objects.get(database, &digest) {
                    Err(error) if is_passing(&error) => return Err(error),
                    bytes => bytes.map_err(|error| error.to_string()),
                };
                sources.size = bytes.as_ref().map_or(0, Vec::len);
                // Another program took them. Reports go on without.
                let rules =
                    bytes.and_then(|bytes| Rules::parse(&bytes, &name).map_err(|error| error.to_string()));
                sources.rules = rules.unwrap_or_else(|why| {
                    eprint_problem(&format!("rules of project {project} cannot be used: {why}"));
                    Rules::default()
                });
            }
            "fingerprint" => fingerprints.push(digest),
            _ => link_maps.extend(code.as_deref().and_then(code_of).map(|code| (digest, code))),
        }
    }
    if !fingerprints.is_empty() || !link_maps.is_empty() {
        let known = Arc::clone(known);
        sources.finder = Some(Arc::new(Finder { project, fingerprints, link_maps, known }));
    }
    Ok(sources)
}

fn version(connection: &Connection, project: i64) -> DatabaseResult<i64> {
    connection.query_row("SELECT sources FROM project WHERE id = ?1", params![project], |row| row.get(0))
}

fn code_of(text: &str) -> Option<Code> {
    let (start, end) = text.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred projects with as many rules as they may have were 470 MB.
    #[test]
    fn rules_of_many_projects_are_not_all_kept() {
        let mut opened = Opened::default();
        for project in 0..400 {
            opened.keep(project % 150, Arc::new(Sources { size: 256 << 10, ..Sources::default() }));
            let sum: usize = opened.projects.values().map(|sources| sources.size).sum();
            assert!(sum == opened.size && sum <= MAX_RULES && opened.projects.contains_key(&(project % 150)));
        }
        for project in 0..1000 {
            opened.keep(project, Arc::default());
            assert!(opened.projects.len() <= MAX_OPENED);
        }
    }
}
