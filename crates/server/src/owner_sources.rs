//! What tells of a project whose code is whose: its rules, fingerprints of libraries, and linkers' maps of builds. They come in, are listed
//! and removed. Workers and pages have them from `known_owners`.

mod child;
mod service;

use crate::database::{Connection, OptionalExtension as _, Result as DatabaseResult, params};
use crate::http::Refused;
use crate::known_owners::{Code, MAX_ANSWER};
use crate::objects::{self, Object};
use crate::owner_problems;
use crate::projects::{Project, Scope};
use crate::secret;
use crate::state::State;
use crate::symbols::{Received, shown};
use crate::tables::{Ended, Line, TableLimits, Task, run};
use crate::time::{now, rfc3339};
use axum::http::StatusCode;
use backtrail::Rules;
use backtrail::sdk::Fingerprint;
pub use child::find_owners;
use child::{ANSWER, REQUEST, Request};
use serde_json::{Value, json};
pub(crate) use service::start;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::time::Duration;

/// Of one project.
const MAX_FINGERPRINTS: i64 = 100;
const MAX_LINK_MAPS: i64 = 500;

/// Bytes of each.
const MAX_RULES_SIZE: u64 = 256 << 10;
const MAX_FINGERPRINT_SIZE: u64 = 8 << 20;
const MAX_LINK_MAP_SIZE: u64 = 1 << 30;

/// Bytes of memory that a process may write to beside four times what it reads, its seconds of processor time, and of any.
const MEMORY: u64 = 512 << 20;
const MOST_MEMORY: u64 = 4 << 30;
const SECONDS: u64 = 60;
const LONGEST: Duration = Duration::from_secs(120);

/// What a source is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Rules,
    Fingerprint,
    LinkMap,
}

impl Kind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Fingerprint => "fingerprint",
            Self::LinkMap => "link map",
        }
    }

    /// What a file is, if it is one: rules by their name, since any text may be some, the others by their content.
    pub(crate) fn of(name: &str, received: &Received) -> io::Result<Option<Self>> {
        let head = head(received.path())?;
        let is_map = |line: &str| {
            line.starts_with("# Path:")
                || line.starts_with("# Object files:")
                || line.contains("VMA") && line.contains("Out     In")
                || line.starts_with("Linker script and memory map")
                || line.starts_with("Archive member included ")
        };
        if head.starts_with(b"BTSDK\0") {
            Ok(Some(Self::Fingerprint))
        } else if String::from_utf8_lossy(&head).lines().take(64).any(is_map) {
            Ok(Some(Self::LinkMap))
        } else {
            Ok(name.ends_with(".toml").then_some(Self::Rules))
        }
    }

    /// What a token has to be good for that adds one.
    pub(crate) fn scope(self) -> Scope {
        match self {
            Self::Rules => Scope::Member,
            Self::Fingerprint | Self::LinkMap => Scope::Symbols,
        }
    }

    /// It, as sentences have it.
    fn one(self) -> &'static str {
        match self {
            Self::Rules => "rules",
            Self::Fingerprint => "a fingerprint",
            Self::LinkMap => "a link map",
        }
    }

    fn most(self) -> i64 {
        match self {
            Self::Rules => 1,
            Self::Fingerprint => MAX_FINGERPRINTS,
            Self::LinkMap => MAX_LINK_MAPS,
        }
    }

    fn most_bytes(self) -> u64 {
        match self {
            Self::Rules => MAX_RULES_SIZE,
            Self::Fingerprint => MAX_FINGERPRINT_SIZE,
            Self::LinkMap => MAX_LINK_MAP_SIZE,
        }
    }
}

/// The beginning of a file.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(64 << 10).read_to_end(&mut head)?;
    Ok(head)
}

/// A row.
pub(crate) struct Source {
    pub(crate) id: i64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) app: Option<String>,
    /// The build that a link map was found to be that of.
    pub(crate) image: Option<String>,
    pub(crate) digest: String,
    pub(crate) size: i64,
    pub(crate) uploaded: i64,
}

/// A project's sources, the latest first.
pub(crate) fn rows(connection: &Connection, project: i64) -> DatabaseResult<Vec<Source>> {
    connection.query_map(
        "SELECT id, kind, name, version, app, image_id, digest, size, uploaded FROM owner_source \
         JOIN blob ON digest = owner_source.blob WHERE project = ?1 ORDER BY id DESC",
        params![project],
        |row| {
            Ok(Source {
                id: row.get(0)?,
                kind: row.get(1)?,
                name: row.get(2)?,
                version: row.get(3)?,
                app: row.get(4)?,
                image: row.get(5)?,
                digest: row.get(6)?,
                size: row.get(7)?,
                uploaded: row.get(8)?,
            })
        },
    )
}

pub(crate) fn told(row: &Source) -> Value {
    json!({
        "id": row.id, "kind": row.kind, "name": row.name, "version": row.version, "app": row.app, "image": row.image,
        "sha256": row.digest, "size": row.size, "uploaded": rfc3339(row.uploaded),
    })
}

/// The bytes of a project's rules; `None` where it has none.
pub(crate) fn rules(app: &State, project: i64) -> Result<Option<Vec<u8>>, Refused> {
    let sql = "SELECT blob FROM owner_source WHERE project = ?1 AND kind = 'rules'";
    let read = |connection: &Connection| {
        connection.query_row(sql, params![project], |row| row.get::<_, String>(0)).optional()
    };
    let digest = app.database.read(read)?;
    Ok(digest.map(|digest| app.objects.get(&app.database, &digest)).transpose()?)
}

/// What a file says of itself.
#[derive(Default)]
struct Read {
    name: String,
    version: Option<String>,
    app: Option<String>,
    code: Option<Code>,
}

/// Keeps a file as what it is said to be, once it was seen that it is that. Rules take the place of those before, a fingerprint that of one
/// of the same library and version.
pub(crate) fn keep(
    app: &State,
    project: &Project,
    kind: Kind,
    name: &str,
    received: &Received,
) -> Result<Source, Refused> {
    if received.size() > kind.most_bytes() {
        let (is, most) = (received.size(), kind.most_bytes());
        let why = format!("expected {} of at most {most} bytes, this has {is}", kind.one());
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    let name = shown(name);
    let read = look(app, kind, &name, received)?
        .map_err(|why| Refused::new(StatusCode::UNPROCESSABLE_ENTITY, why.replace(&here(received), &name)))?;
    let object = app.objects.adopt(&app.database, received.path(), received.object());
    let object = object.inspect_err(|_| app.leave_files())?;
    let (objects, project) = (app.objects.clone(), project.id);
    let kept = app.write_rows_of_files(move |connection| {
        if !objects.has_all(connection, [&object])? {
            return Ok(Added::Gone);
        }
        add(connection, project, kind, &read, &object)
    })?;
    match kept {
        Added::Row(id, replaced) => {
            app.objects.remove_unneeded(&app.database, replaced)?;
            app.owners.known.bell.ring();
            let all = app.database.read(|connection| rows(connection, project))?;
            all.into_iter().find(|row| row.id == id).ok_or_else(Refused::not_found)
        }
        Added::TooMany => {
            app.leave_files();
            let why = format!(
                "the project has {} {}s, which is the most: remove some first, on the page \"Upload\" or by the API",
                kind.most(),
                kind.as_str()
            );
            Err(Refused::new(StatusCode::CONFLICT, why))
        }
        Added::Gone => Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the file is gone, send it again")),
    }
}

/// Where a file is on this machine, which is nobody's matter.
fn here(received: &Received) -> String {
    received.path().display().to_string()
}

/// Reads a file, and says what is wrong with it. The outer error may go better another time.
fn look(app: &State, kind: Kind, name: &str, received: &Received) -> Result<Result<Read, String>, Refused> {
    let named = Read { name: name.to_owned(), ..Read::default() };
    Ok(match kind {
        Kind::Rules => {
            Rules::parse(&received.read()?, name).map(|_| named).map_err(|error| error.to_string())
        }
        Kind::Fingerprint => {
            let read = Fingerprint::from_bytes(&received.read()?).map_err(|error| error.to_string());
            read.map(|read| Read {
                name: shown(read.name()),
                version: Some(shown(read.version())),
                ..Read::default()
            })
        }
        Kind::LinkMap => {
            let request = Request::LinkMap(received.path().to_owned());
            match ask(app, &request, received.size())? {
                Asked::Answer(answer) => {
                    let code = serde_json::from_slice(&answer).map_err(io::Error::from)?;
                    Ok(Read { app: app_of_map(received.path()), code: Some(code), ..named })
                }
                Asked::Refused(why) => Err(why),
                Asked::Killed(why) => return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, why)),
            }
        }
    })
}

/// The app that a map of Apple's linkers or LLVM's for Mach-O says that it is of.
fn app_of_map(path: &Path) -> Option<String> {
    let lines = BufReader::new(File::open(path).ok()?.take(64 << 10)).lines().map_while(Result::ok);
    let path = lines.take(64).find_map(|line| line.strip_prefix("# Path:").map(str::to_owned))?;
    let name = shown(path.trim().rsplit('/').next().unwrap_or_default());
    Some(name).filter(|name| !name.is_empty())
}

/// What came of reading something.
enum Asked {
    Answer(Vec<u8>),
    /// It is none, or takes more than it may.
    Refused(String),
    /// Somebody else ended the process, where memory ran out say.
    Killed(String),
}

/// Has something read by a process of its own that reads so many bytes, where the server has a program for that; else here. The error
/// may go better another time.
fn ask(app: &State, request: &Request, size: u64) -> io::Result<Asked> {
    let Some(program) = &app.config.tables else {
        return Ok(child::answer(request).map_or_else(Asked::Refused, Asked::Answer));
    };
    let directory = app.symbols.uploads().join(secret::key()?);
    fs::create_dir(&directory)?;
    let asked = ask_in(app, program, &directory, request, size);
    fs::remove_dir_all(&directory)?;
    asked
}

fn ask_in(app: &State, program: &Path, directory: &Path, request: &Request, size: u64) -> io::Result<Asked> {
    fs::write(directory.join(REQUEST), serde_json::to_vec(request)?)?;
    let memory = MEMORY.saturating_add(size.saturating_mul(4)).min(MOST_MEMORY);
    let limits = TableLimits::new(memory, SECONDS, MAX_ANSWER);
    let task = Task { name: "find-owners", doing: "reading it", arguments: &[directory] };
    match run(program, &task, limits, LONGEST, || app.bell.is_closed())? {
        Ended::Well(lines) => match lines.into_iter().find(|line| line.problem.is_some()) {
            Some(Line { again: true, problem, .. }) => Err(io::Error::other(problem.unwrap_or_default())),
            Some(line) => Ok(Asked::Refused(line.problem.unwrap_or_default())),
            None => fs::read(directory.join(ANSWER)).map(Asked::Answer),
        },
        Ended::Badly(why) => Ok(Asked::Refused(why)),
        Ended::Killed(why) => Ok(Asked::Killed(why)),
        Ended::Stopped => Err(io::Error::other("the server is about to end")),
    }
}

/// What became of a new row.
enum Added {
    /// Its number, and the files of those whose place it took.
    Row(i64, HashSet<String>),
    TooMany,
    Gone,
}

fn add(
    connection: &Connection,
    project: i64,
    kind: Kind,
    read: &Read,
    object: &Object,
) -> DatabaseResult<Added> {
    let Read { name, version, app, code } = read;
    let known = connection.query_row(
        "SELECT id FROM owner_source WHERE project = ?1 AND kind = ?2 AND blob = ?3",
        params![project, kind.as_str(), object.digest],
        |row| row.get::<_, i64>(0),
    );
    if let Some(id) = known.optional()? {
        let sql = "UPDATE owner_source SET name = ?2, uploaded = ?3 WHERE id = ?1";
        connection.execute(sql, params![id, name, now()])?;
        return Ok(Added::Row(id, HashSet::new()));
    }
    let replaced: Vec<(i64, String)> = connection.query_map(
        "SELECT id, blob FROM owner_source WHERE project = ?1 AND kind = ?2 \
         AND (kind = 'rules' OR kind = 'fingerprint' AND name = ?3 AND version = ?4)",
        params![project, kind.as_str(), name, version],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let count: i64 = connection.query_row(
        "SELECT count(*) FROM owner_source WHERE project = ?1 AND kind = ?2",
        params![project, kind.as_str()],
        |row| row.get(0),
    )?;
    if replaced.is_empty() && count >= kind.most() {
        return Ok(Added::TooMany);
    }
    for (id, digest) in &replaced {
        connection.execute("DELETE FROM owner_source WHERE id = ?1", params![id])?;
        objects::need_no_more(connection, digest)?;
    }
    objects::need(connection, object)?;
    let code = code.map(|(start, end)| format!("{start:x}-{end:x}"));
    let id = connection.query_row(
        "INSERT INTO owner_source (project, kind, name, version, app, code, blob, uploaded) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
        params![project, kind.as_str(), name, version, app, code, object.digest, now()],
        |row| row.get(0),
    )?;
    changed(connection, project, kind == Kind::Rules)?;
    Ok(Added::Row(id, replaced.into_iter().map(|(_, digest)| digest).collect()))
}

/// Removes a source from a project; its rules where no number is given. `false` where it is not there.
pub(crate) fn remove(app: &State, project: i64, id: Option<i64>) -> Result<bool, Refused> {
    let removed = app.database.write(move |connection| {
        let found = connection.query_row(
            "SELECT id, kind, blob FROM owner_source WHERE project = ?1 AND (id = ?2 OR ?2 IS NULL AND kind = 'rules')",
            params![project, id],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?)),
        );
        let Some((id, kind, digest)) = found.optional()? else { return Ok(None) };
        connection.execute("DELETE FROM owner_source WHERE id = ?1", params![id])?;
        objects::need_no_more(connection, &digest)?;
        changed(connection, project, kind == Kind::Rules.as_str())?;
        Ok(Some(digest))
    })?;
    let Some(digest) = removed else { return Ok(false) };
    // Only now is it certain that no row needs the file.
    app.objects.remove_unneeded(&app.database, HashSet::from([digest]))?;
    app.owners.known.bell.ring();
    Ok(true)
}

/// A project knows something else of its code: whoever works a report next sees it, and those that are here are worked again.
fn changed(connection: &Connection, project: i64, are_rules: bool) -> DatabaseResult<()> {
    // Rules have no part in comparing builds.
    if !are_rules {
        owner_problems::remove_all(connection, project)?;
    }
    connection.execute(
        "UPDATE project SET sources = sources + 1, rules_since = CASE ?2 WHEN 1 THEN sources + 1 ELSE rules_since END, \
         again = (SELECT coalesce(max(id), 0) FROM report) WHERE id = ?1",
        params![project, are_rules],
    )?;
    Ok(())
}
