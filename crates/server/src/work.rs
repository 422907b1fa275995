//! Workers: take reports that wait, find names, explain, attribute, group, and count.

use crate::analyses;
use crate::database::{Connection, Result};
use crate::issues::{self, Facts, Which};
use crate::objects::is_passing;
use crate::owners::{Part, UNKNOWN};
use crate::queue::{self, Leased};
use crate::replicas;
use crate::state::{App, State};
use crate::time::{day, now};
use backtrail::{Analysis, AnalysisError, Grouped, Image, Limits, SymbolStatus, is_crash};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// Reports that a worker takes at a time; they are committed together.
const TOGETHER: usize = 16;

/// How long a worker has them, in milliseconds.
const LEASE: i64 = 15 * 60_000;

/// When a report that failed is tried again, in milliseconds.
const AGAIN: i64 = 5_000;

/// How often is looked for what nobody rang for.
const PATROL: Duration = Duration::from_secs(5);

/// Images of one report whose symbols it may wait for.
const MAX_MISSING: usize = 256;

/// Starts the workers. They end when the bell is closed.
pub(crate) fn start(app: &App) -> io::Result<Vec<JoinHandle<()>>> {
    let count = match app.config.workers {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        count => count,
    };
    let start = |number: usize| {
        let app = Arc::clone(app);
        // Stacks of many thousand frames and deep names are read by recursion that has limits; they fit in this.
        let builder = std::thread::Builder::new().name(format!("worker-{number}")).stack_size(16 << 20);
        builder.spawn(move || work(&app))
    };
    (0..count.min(256)).map(start).collect()
}

fn work(app: &State) {
    // A lease that failed: where only its answer was lost, reports are leased that nobody works.
    let mut lost = None::<i64>;
    while !app.bell.is_closed() {
        let seen = app.bell.times();
        let given_back = match lost {
            Some(until) => app.database.write(move |connection| queue::give_back(connection, until)),
            None => Ok(()),
        };
        let until = app.lease_end(now() + LEASE);
        let worked = given_back.and_then(|()| {
            lost = Some(until);
            some(app, until)
        });
        match worked {
            Ok(count) => {
                lost = None;
                if count == 0 {
                    app.bell.wait(seen, PATROL);
                }
            }
            Err(error) => {
                crate::error::eprint_problem(&error.to_string());
                app.bell.wait(seen, PATROL);
            }
        }
    }
}

/// Works some reports, which it has until then, and returns how many there were.
fn some(app: &State, until: i64) -> Result<usize> {
    let leased = app.database.write(move |connection| queue::lease(connection, TOGETHER, until))?;
    let count = leased.len();
    if count == 0 {
        // Counting goes through all that waits: only when that is little.
        let waiting = app.database.read(queue::waiting)?;
        app.counters.waiting.store(waiting, Ordering::Relaxed);
        return Ok(0);
    }
    let symbols = leased.first().map_or(0, |report| report.symbols);
    let follows = app.database.is_shared() || app.objects.is_remote();
    if follows && app.followed.load(Ordering::Relaxed) != symbols {
        // Reports that waited for symbols of another replica are worked with them.
        match replicas::follow_symbols(app) {
            Err(error) if app.objects.is_remote() => {
                // Without them they would be done, and stay without names.
                let why = error.to_string();
                app.database.write(move |connection| {
                    let mut leased = leased.iter();
                    leased.try_for_each(|report| queue::put_off(connection, report, &why, now() + AGAIN))
                })?;
                return Err(error);
            }
            followed => {
                app.followed.store(symbols, Ordering::Relaxed);
                followed.unwrap_or_else(|error| crate::error::eprint_problem(&error.to_string()));
            }
        }
    }
    let mut done = Vec::with_capacity(count);
    for report in leased {
        let worked = catch_unwind(AssertUnwindSafe(|| one(app, &report)));
        done.push((report, worked.unwrap_or_else(|_| Worked::Failed("a fault of the server".to_owned()))));
    }
    let ended = write_down(app, &Arc::new(done))?;
    app.counters.worked.fetch_add(ended, Ordering::Relaxed);
    let less = |waiting: u64| Some(waiting.saturating_sub(ended));
    let _ = app.counters.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    Ok(count)
}

/// Writes down what became of reports, and returns of how many the work ended. A full disk may have room again later: until the
/// lease ends nobody else has them.
fn write_down(app: &State, done: &Arc<Vec<(Leased, Worked)>>) -> Result<u64> {
    let end = now() + LEASE;
    loop {
        let done = Arc::clone(done);
        let written = app.database.write(move |connection| {
            let mut ended = 0;
            for (report, worked) in done.iter() {
                ended += u64::from(finish(connection, report, worked)?);
            }
            Ok(ended)
        });
        match written {
            Err(error) if now() < end && !app.bell.is_closed() => {
                crate::error::eprint_problem(&error.to_string());
                // New reports are no reason to try it sooner.
                std::thread::sleep(AFTER_FAILURE);
            }
            written => return written,
        }
    }
}

/// How long who could not write waits.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What became of a report.
enum Worked {
    Read(Box<Facts>),
    /// Nobody can read it.
    Unreadable(String),
    /// It may go better another time.
    Failed(String),
    /// Its bytes are not to be had at present.
    PutOff(String),
}

/// Writes down what became of a report; whether the work on it ended.
fn finish(connection: &Connection, report: &Leased, worked: &Worked) -> Result<bool> {
    match worked {
        Worked::Read(facts) => {
            queue::want_again(connection, report, facts.missing.iter().map(|(id, _, _)| id.as_str()))?;
            if !queue::end(connection, report, "done", None)? {
                return Ok(false);
            }
            let (received, day) = (report.received, day(report.received));
            let which = Which { project: report.project, id: report.id, received, day };
            issues::count(connection, which, facts)?;
            Ok(true)
        }
        Worked::Unreadable(why) => queue::end(connection, report, "unreadable", Some(why)),
        Worked::Failed(why) => {
            queue::fail(connection, report, why, now() + AGAIN)?;
            Ok(false)
        }
        Worked::PutOff(why) => {
            queue::put_off(connection, report, why, now() + AGAIN)?;
            Ok(false)
        }
    }
}

fn one(app: &State, report: &Leased) -> Worked {
    let bytes = match app.objects.get(&app.database, &report.blob) {
        Ok(bytes) => bytes,
        Err(error) if is_passing(&error) => return Worked::PutOff(error.to_string()),
        Err(error) => return Worked::Failed(format!("its bytes cannot be read: {error}")),
    };
    if analyses::is_core(&bytes) {
        return Worked::Unreadable(analyses::NO_CORES.to_owned());
    }
    let symbols = app.symbols.of_project(report.project);
    let grouped = match Grouped::new(&bytes, &symbols, &Limits::default()) {
        Ok(grouped) => grouped,
        Err(AnalysisError::Report(error)) => return Worked::Unreadable(error.to_string()),
        Err(AnalysisError::Capture(error)) => return Worked::Unreadable(error.to_string()),
        Err(other) => return Worked::Unreadable(other.to_string()),
    };
    if grouped.report.is_empty() {
        return Worked::Unreadable("expected a process, an exception, threads or images".to_owned());
    }
    Worked::Read(Box::new(facts(&grouped.analysis(), report.stated_release.as_deref())))
}

fn facts(analysis: &Analysis, stated_release: Option<&str>) -> Facts {
    let report = &analysis.report;
    let group = analysis.group.as_ref();
    let title = match group {
        Some(group) => group.title(&analysis.explanation),
        None => analysis.explanation.title.clone(),
    };
    let process = &report.process;
    let app = process.identifier.as_deref().or(process.name.as_deref()).unwrap_or(UNKNOWN);
    let part = Part {
        owner: shortened(&analysis.attribution.owner()),
        version: shortened(analysis.attribution.version.as_deref().unwrap_or(UNKNOWN)),
        app: shortened(app),
        crashed: is_crash(report),
    };
    // What the client calls the release is what its sessions are of: `app@1.2+34`, where the report has `1.2 (34)`.
    let release = stated_release.or(process.version.as_deref()).unwrap_or("unknown");
    let images = std::iter::once(process).chain(&report.processes).flat_map(|process| &process.images);
    Facts {
        keys: group.map(|group| (group.key.clone(), group.symbol_key.clone())),
        title: shortened(&title),
        kind: group.map(|group| shortened(&group.kind)).unwrap_or_default(),
        part,
        why: group.map(|group| group.why.join("\n")).unwrap_or_default(),
        release: shortened(release),
        os: shortened(report.os.as_deref().unwrap_or("unknown")),
        device: report.device.as_deref().map(shortened),
        happened: report.time.as_deref().map(shortened),
        incomplete: analysis.is_incomplete(),
        missing: images.filter_map(missing).take(MAX_MISSING).collect(),
    }
}

/// An image that further symbols would help.
fn missing(image: &Image) -> Option<(String, String, Option<String>)> {
    let wants = image.symbols.is_incomplete() || image.symbols.status == SymbolStatus::ExportsOnly;
    let id = image.id.filter(|_| wants)?;
    Some((id.to_string(), shortened(&image.name), image.arch.map(|arch| arch.name().to_owned())))
}

/// Texts of reports are shown in lists, and several of them are one key of an index, which has limits.
fn shortened(text: &str) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let letters = text.char_indices().take(MAX_TEXT);
    letters.map_while(|(at, letter)| (at + letter.len_utf8() <= 2 * MAX_TEXT).then_some(letter)).collect()
}

/// Characters; in bytes twice as many.
const MAX_TEXT: usize = 300;
