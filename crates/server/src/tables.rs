//! Tables of symbols: made once of each file, in a process of its own with limits, and kept by their content beside it.
//!
//! A file is used for names once that process came to its end: with its tables, or as it is where none are needed or none could be
//! made. A file that the process did not survive is not used by the server either.

mod child;
mod process;

use crate::database::{Connection, DatabaseError, OptionalExtension as _, Result, Row, params};
use crate::error::eprint_problem;
use crate::objects::{self, Object, is_passing};
use crate::queue;
use crate::secret;
use crate::state::{App, State};
use crate::time::now;
pub(crate) use child::{Line, limit, write_line};
pub use child::{TableLimits, make_tables};
pub(crate) use process::{Ended, Task, run};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a file is tried: the server may have been killed meanwhile, and the disk full.
const MAX_ATTEMPTS: i64 = 3;

/// When it is tried again, in milliseconds, and how often is looked for that.
const AGAIN: i64 = 30_000;
const PATROL: Duration = Duration::from_secs(5);

/// A start: says which files are used without the tables that nobody makes, where nobody does.
pub(crate) fn prepare(connection: &Connection, are_made: bool) -> Result<()> {
    if !are_made {
        let sql = "UPDATE symbol_file SET usable = (SELECT coalesce(max(usable), 0) + 1 FROM symbol_file) \
                   WHERE usable IS NULL AND blob IN (SELECT blob FROM symbol_conversion WHERE state <> 'refused')";
        connection.execute(sql, params![])?;
    }
    Ok(())
}

/// A file is here. Says whether it is used from now on; and has its table made, unless it was.
pub(crate) fn want(connection: &Connection, digest: &str, are_made: bool) -> Result<bool> {
    connection.execute(
        "INSERT INTO symbol_conversion (blob, state) VALUES (?1, 'waiting') ON CONFLICT DO NOTHING",
        params![digest],
    )?;
    // Whoever sends it again has reason to believe that it goes better.
    connection.execute(
        "UPDATE symbol_conversion SET state = 'waiting', attempts = 0, due = 0 \
         WHERE ?2 = 1 AND blob = ?1 AND (state = 'refused' OR state = 'none' AND problem IS NOT NULL)",
        params![digest, are_made],
    )?;
    let state: String = connection.query_row(
        "SELECT state FROM symbol_conversion WHERE blob = ?1",
        params![digest],
        |row| row.get(0),
    )?;
    Ok(!are_made || matches!(state.as_str(), "made" | "none"))
}

/// What is known of a file's tables: the state of making them, and why there is none.
pub(crate) fn state(connection: &Connection, digest: &str) -> Result<(String, Option<String>)> {
    connection.query_row(
        "SELECT state, problem FROM symbol_conversion WHERE blob = ?1",
        params![digest],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

/// What of a file is linked where its project's symbols are: itself, and its tables.
pub(crate) fn linked(connection: &Connection, digest: &str) -> Result<Vec<String>> {
    let sql = "SELECT blob FROM symbol_table WHERE source = ?1";
    let mut all: Vec<String> = connection.query_map(sql, params![digest], |row| row.get(0))?;
    all.push(digest.to_owned());
    Ok(all)
}

/// Nobody needs a file's tables any more: the file itself is no project's. Gives what was needed.
pub(crate) fn remove(connection: &Connection, digest: &str) -> Result<Vec<String>> {
    let mut tables = linked(connection, digest)?;
    tables.pop();
    for table in &tables {
        objects::need_no_more(connection, table)?;
    }
    connection.execute("DELETE FROM symbol_table WHERE source = ?1", params![digest])?;
    connection.execute("DELETE FROM symbol_conversion WHERE blob = ?1", params![digest])?;
    Ok(tables)
}

/// What is wrong with tables: `serve --check`.
pub(crate) const FAULTS: [(&str, &str); 2] = [
    (
        "SELECT (SELECT count(DISTINCT blob) FROM symbol_file WHERE blob NOT IN (SELECT blob FROM symbol_conversion)) \
         + (SELECT count(*) FROM symbol_conversion WHERE blob NOT IN (SELECT blob FROM symbol_file)) \
         + (SELECT count(*) FROM symbol_conversion WHERE (state = 'made') <> \
         EXISTS (SELECT 1 FROM symbol_table WHERE source = symbol_conversion.blob))",
        "files of symbols whose tables are not those that they should have",
    ),
    (
        "SELECT count(*) FROM symbol_file JOIN symbol_conversion USING (blob) \
         WHERE state = 'refused' AND usable IS NOT NULL OR state IN ('made', 'none') AND usable IS NULL",
        "files of symbols that are used and should not be, or the other way round",
    ),
];

/// Starts who makes tables. It ends when its bell is closed.
pub(crate) fn start(app: &App) -> io::Result<JoinHandle<()>> {
    let app = Arc::clone(app);
    // The process ends with the thread that started it.
    std::thread::Builder::new().name("tables".to_owned()).spawn(move || {
        let Some(program) = app.config.tables.clone() else { return };
        while !app.conversions.is_closed() {
            let seen = app.conversions.times();
            match one(&app, &program) {
                Ok(true) => {}
                Ok(false) => app.conversions.wait(seen, PATROL),
                Err(error) => {
                    eprint_problem(&error.to_string());
                    app.conversions.wait(seen, PATROL);
                }
            }
        }
    })
}

/// What became of a file.
struct Outcome {
    state: &'static str,
    problem: Option<String>,
    tables: Vec<(Line, Object)>,
}

/// Makes the tables of the next file; `false` where none waits.
fn one(app: &State, program: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let Some((digest, attempts)) = app.database.write(next)? else { return Ok(false) };
    let directory = app.symbols.uploads().join(secret::key()?);
    let made = if attempts > MAX_ATTEMPTS {
        // The process is limited, so that it is hardly the file that ended the server.
        let problem = "the server ended each time that it was made".to_owned();
        Made::Ended(Outcome { state: "none", problem: Some(problem), tables: Vec::new() })
    } else {
        make(app, program, &digest, &directory, attempts == MAX_ATTEMPTS)
    };
    let (is_closed, is_put_off) = (app.conversions.is_closed(), matches!(made, Made::PutOff));
    let done = match made {
        Made::Ended(outcome) => end(app, &digest, attempts, outcome).map(|()| true),
        Made::Again | Made::PutOff => {
            let due = if is_closed { 0 } else { now() + AGAIN };
            let less = i64::from(is_closed || is_put_off);
            let again = app.database.write(move |connection| again(connection, &digest, attempts, less, due));
            again.map(|()| true)
        }
    };
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    Ok(done?)
}

/// The next file, and how often it was begun, this time included.
fn next(connection: &Connection) -> Result<Option<(String, i64)>> {
    // One thread of a server makes tables. What has the server's number now was given to it without its knowledge: the connection broke
    // before the answer came.
    let sql = "UPDATE symbol_conversion SET attempts = attempts + CASE WHEN worker = ?2 THEN 0 ELSE 1 END, worker = ?2 \
        WHERE blob = (SELECT blob FROM symbol_conversion \
        WHERE state = 'waiting' AND due <= ?1 AND (worker IS NULL OR worker = ?2) \
        ORDER BY due, blob LIMIT 1) RETURNING blob, attempts";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    connection.query_row(sql, params![now(), connection.replica()], read).optional()
}

/// What came of making tables.
enum Made {
    Ended(Outcome),
    /// It may go better another time.
    Again,
    /// The same, and it is nobody's fault.
    PutOff,
}

/// It is tried later. That the server ends counts for nothing, nor that files are not to be had at present.
fn again(connection: &Connection, digest: &str, attempts: i64, less: i64, due: i64) -> Result<()> {
    connection.execute(
        "UPDATE symbol_conversion SET attempts = attempts - ?2, due = ?3, worker = NULL WHERE blob = ?1 AND attempts = ?4",
        params![digest, less, due, attempts],
    )?;
    Ok(())
}

/// Has the tables of a file made.
fn make(app: &State, program: &Path, digest: &str, directory: &Path, is_last: bool) -> Made {
    let none = |state, why: String| Made::Ended(Outcome { state, problem: Some(why), tables: Vec::new() });
    let failed = |what: &str, error: &io::Error| {
        eprint_problem(&format!("a table of symbols cannot be {what}: {error}"));
        if is_passing(error) { Made::PutOff } else { Made::Again }
    };
    let file = match app.objects.local(&app.database, digest) {
        Ok(file) => file,
        Err(error) if is_last && !is_passing(&error) => {
            return none("none", format!("it cannot be made: {error}"));
        }
        Err(error) => return failed("made", &error),
    };
    let limits = &app.config.limits;
    let size = fs::metadata(&file).map_or(0, |metadata| metadata.len());
    let memory =
        limits.table_memory.saturating_add(size.saturating_mul(4)).min(limits.table_memory.max(4 << 30));
    let given = TableLimits::new(memory, limits.table_time.as_secs().max(1), limits.symbol_file);
    let made = fs::create_dir(directory).and_then(|()| {
        let stopped = || app.conversions.is_closed();
        let task = Task { name: "make-tables", doing: "making it", arguments: &[&file, directory] };
        run(program, &task, given, limits.table_time * 2, stopped)
    });
    let lines = match made {
        Ok(Ended::Well(lines)) => lines,
        Ok(Ended::Killed(_)) if !is_last => return Made::Again,
        Ok(Ended::Badly(why) | Ended::Killed(why)) => return none("refused", why),
        Ok(Ended::Stopped) => return Made::Again,
        Err(error) if is_last => return none("none", format!("it cannot be made: {error}")),
        Err(error) => return failed("made", &error),
    };
    if lines.iter().any(|line| line.again) && !is_last {
        return Made::Again;
    }
    let problem = lines.iter().find_map(|line| line.problem.clone());
    let kept = keep(app, lines, directory);
    match kept {
        Ok(tables) => {
            let state = if tables.is_empty() { "none" } else { "made" };
            Made::Ended(Outcome { state, problem, tables })
        }
        Err(error) if is_last && !is_passing(&error) => none("none", format!("it cannot be kept: {error}")),
        Err(error) => {
            app.leave_files();
            failed("kept", &error)
        }
    }
}

/// Takes the tables, which are on disk, among the files.
fn keep(app: &State, lines: Vec<Line>, directory: &Path) -> io::Result<Vec<(Line, Object)>> {
    let (mut tables, mut known) = (Vec::new(), HashSet::new());
    for (line, number) in lines.into_iter().zip(0_usize..) {
        // A file may say twice that it is the same image.
        if !line.table || !known.insert((line.id.clone(), line.arch.clone())) {
            continue;
        }
        let path = directory.join(number.to_string());
        let object = object_of(&path)?;
        tables.push((line, app.objects.adopt(&app.database, &path, &object)?));
    }
    Ok(tables)
}

/// A file's digest and size, read piece by piece.
fn object_of(path: &Path) -> io::Result<Object> {
    let (mut file, mut hash, mut size) = (File::open(path)?, Sha256::new(), 0_u64);
    let mut piece = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut piece)?;
        let read = piece.get(..count).unwrap_or_default();
        if read.is_empty() {
            return Ok(Object { digest: secret::hex(&hash.finalize()), size, packed: None, placed: None });
        }
        hash.update(read);
        size = size.saturating_add(read.len() as u64);
    }
}

/// Writes down what became of a file. From then on it is used, with its tables, unless it is refused; reports that wait for its images
/// are worked again.
fn end(app: &State, digest: &str, attempts: i64, outcome: Outcome) -> Result<()> {
    if (app.database.is_shared() || app.objects.is_remote()) && outcome.state != "refused" {
        let sql = "SELECT DISTINCT project FROM symbol_file WHERE blob = ?1";
        let projects: Vec<i64> =
            app.database.read(|connection| connection.query_map(sql, params![digest], |row| row.get(0)))?;
        let links = outcome.tables.iter().map(|(_, table)| table.digest.as_str()).chain([digest]);
        let all = links.flat_map(|link| projects.iter().map(move |project| (*project, link)));
        // The transaction tries it again, and says what is wrong.
        let _ = app.symbols.fetch(all, |digest| app.objects.local(&app.database, digest));
    }
    let (symbols, objects, digest) = (Arc::clone(&app.symbols), app.objects.clone(), digest.to_owned());
    let made: HashSet<_> = outcome.tables.iter().map(|(_, table)| table.digest.clone()).collect();
    let worked = app.write_rows_of_files(move |connection| {
        let Outcome { state, problem, tables } = outcome;
        // Where this server was cut off from the database, another one began anew.
        let rows: Vec<(i64, String)> = connection.query_map(
            "SELECT project, image_id FROM symbol_file WHERE blob = ?1 AND EXISTS (SELECT 1 FROM symbol_conversion \
             WHERE symbol_conversion.blob = ?1 AND state = 'waiting' AND attempts = ?2)",
            params![digest, attempts],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        if rows.is_empty() {
            return Ok(None);
        }
        if !objects.has_all(connection, tables.iter().map(|(_, table)| table))? {
            return Err(DatabaseError::Thread(io::Error::other("tables went while they were added")));
        }
        for (line, table) in &tables {
            objects::need(connection, table)?;
            connection.execute(
                "INSERT INTO symbol_table (source, image_id, arch, blob) VALUES (?1, ?2, ?3, ?4)",
                params![digest, line.id, line.arch, table.digest],
            )?;
        }
        connection.execute(
            "UPDATE symbol_conversion SET state = ?2, problem = ?3, worker = NULL WHERE blob = ?1",
            params![digest, state, problem],
        )?;
        let sql = if state == "refused" {
            "UPDATE symbol_file SET usable = NULL WHERE blob = ?1"
        } else {
            "UPDATE symbol_file SET usable = (SELECT coalesce(max(usable), 0) + 1 FROM symbol_file) WHERE blob = ?1"
        };
        connection.execute(sql, params![&digest])?;
        let mut worked = 0;
        let links = linked(connection, &digest)?;
        for project in rows.iter().map(|(project, _)| *project).collect::<HashSet<_>>() {
            for link in &links {
                let linked = match state {
                    "refused" => symbols.remove(project, link),
                    _ => symbols.add(project, link, &objects.path(link)),
                };
                linked.map_err(DatabaseError::Thread)?;
            }
            // Before the reports are told: whoever works one from then on finds the files.
            symbols.changed(project);
            let of_project = rows.iter().filter(|(other, _)| *other == project);
            let images: Vec<_> = of_project.map(|(_, image)| image.clone()).collect();
            worked += queue::work_again(connection, project, &images)?;
        }
        Ok(Some(worked))
    })?;
    let Some(worked) = worked else {
        // It was removed meanwhile.
        app.leave_files();
        return app.objects.remove_unneeded(&app.database, made).map(drop);
    };
    if worked > 0 {
        app.bell.ring();
    }
    Ok(())
}
