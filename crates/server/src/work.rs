//! Workers: take reports that wait, find names, explain, attribute, group, and count.

use crate::analyses;
use crate::database::{Connection, Result, Write};
use crate::issues::{self, Facts, Which};
use crate::known_owners::Sources;
use crate::objects::is_passing;
use crate::owners::{Part, UNKNOWN};
use crate::queue::{self, Leased};
use crate::replicas;
use crate::state::{App, State};
use crate::time::{day, now};
use backtrail::{
    Analysis, AnalysisError, Grouped, Image, Limits, Report, SymbolStatus, Symbols, Trust, is_crash,
    telling_stack,
};
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
    let mut done = Done::default();
    // Leases that failed: where only the answer was lost, reports are leased that nobody works.
    let mut lost = Vec::new();
    while !app.bell.is_closed() {
        let seen = app.bell.times();
        let until = app.lease_end(now() + LEASE);
        match turn(app, until, &mut lost, &mut done) {
            Ok(true) => {}
            Ok(false) => app.bell.wait(seen, PATROL),
            Err(error) => {
                crate::error::eprint_problem(&error.to_string());
                // New reports are no reason to try sooner to write down what is done.
                if done.reports.is_empty() {
                    app.bell.wait(seen, PATROL);
                } else {
                    std::thread::sleep(AFTER_FAILURE);
                }
            }
        }
    }
    if let Err(error) = done.start_write(app).and_then(|written| done.written(app, written)) {
        crate::error::eprint_problem(&error.to_string());
    }
}

/// Writes down what is done, takes further reports in the same commit, and works them; `false` where there are none.
fn turn(app: &State, until: i64, lost: &mut Vec<i64>, done: &mut Done) -> Result<bool> {
    let written = done.start_write(app)?;
    // Whoever comes first takes reports whose lease has ended.
    lost.retain(|until| *until > now());
    let give_back = lost.clone();
    lost.push(until);
    let leased = app.database.start_write(move |connection| {
        give_back.iter().try_for_each(|until| queue::give_back(connection, *until))?;
        queue::lease(connection, TOGETHER, until)
    })?;
    // Where something fails, the lease is given back in the next turn.
    done.written(app, written)?;
    let leased = leased.wait()?;
    follow_symbols(app, &leased)?;
    lost.clear();
    if leased.is_empty() {
        // Counting goes through all that waits: only when that is little.
        let waiting = app.database.read(queue::waiting)?;
        app.counters.waiting.store(waiting, Ordering::Relaxed);
        return Ok(false);
    }
    let worked = leased.into_iter().map(|report| {
        let worked = catch_unwind(AssertUnwindSafe(|| one(app, &report)));
        (report, worked.unwrap_or_else(|_| Worked::Failed("a fault of the server".to_owned())))
    });
    *done = Done { reports: Arc::new(worked.collect()), until };
    Ok(true)
}

/// Reports that waited for symbols of another replica are worked with them; they are put off where those are not to be had.
fn follow_symbols(app: &State, leased: &[Leased]) -> Result<()> {
    let follows = app.database.is_shared() || app.objects.is_remote();
    let Some(symbols) = leased.first().filter(|_| follows).map(|report| report.symbols) else {
        return Ok(());
    };
    if app.followed.load(Ordering::Relaxed) == symbols {
        return Ok(());
    }
    match replicas::follow_symbols(app) {
        Err(error) if app.objects.is_remote() => {
            // Without them they would be done, and stay without names.
            let (leased, why) = (leased.to_vec(), error.to_string());
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
    Ok(())
}

/// Reports that were worked, and what became of them, until that is written down.
#[derive(Default)]
struct Done {
    reports: Arc<Vec<(Leased, Worked)>>,
    /// Until then nobody else has them.
    until: i64,
}

impl Done {
    /// Starts to write it down, if there is something.
    fn start_write(&self, app: &State) -> Result<Option<Write<u64>>> {
        if self.reports.is_empty() {
            return Ok(None);
        }
        let reports = Arc::clone(&self.reports);
        let written = app.database.start_write(move |connection| {
            let mut ended = 0;
            for (report, worked) in reports.iter() {
                ended += u64::from(finish(connection, report, worked)?);
            }
            Ok(ended)
        });
        written.map(Some)
    }

    /// Waits until that is written. Where it fails, it is kept to be tried again, until the lease ends: a full disk may have room later.
    fn written(&mut self, app: &State, written: Option<Write<u64>>) -> Result<()> {
        let Some(written) = written else { return Ok(()) };
        let written = written.wait();
        if written.is_ok() || self.until <= now() {
            self.reports = Arc::default();
        }
        let ended = written?;
        app.counters.worked.fetch_add(ended, Ordering::Relaxed);
        let less = |waiting: u64| Some(waiting.saturating_sub(ended));
        let _ = app.counters.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        Ok(())
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
    let sources = match app.owners.of_project(&app.database, &app.objects, report.project, report.sources) {
        Ok(sources) => sources,
        Err(error) => return Worked::PutOff(error.to_string()),
    };
    let mut grouped = match grouped(app, report, &bytes, &sources) {
        Ok(Some(grouped)) => grouped,
        Ok(None) => return Worked::PutOff(queue::WAITS_FOR_OWNERS.to_owned()),
        Err(AnalysisError::Report(error)) => return Worked::Unreadable(error.to_string()),
        Err(AnalysisError::Capture(error)) => return Worked::Unreadable(error.to_string()),
        Err(other) => return Worked::Unreadable(other.to_string()),
    };
    if grouped.report.is_empty() {
        return Worked::Unreadable("expected a process, an exception, threads or images".to_owned());
    }
    let symbols = app.symbols.with_owners(report.project, &sources);
    let binaries = without_binary(&symbols, &mut grouped.report);
    let mut facts = facts(&grouped.analysis(), report.stated_release.as_deref());
    for image in binaries {
        if facts.missing.len() < MAX_MISSING && !facts.missing.iter().any(|(id, ..)| *id == image.0) {
            facts.missing.push(image);
        }
    }
    Worked::Read(Box::new(Facts { sources: sources.version, ..facts }))
}

/// Reads a report and puts it into a group; `None` where it is not worked out yet whose code is where in its images.
fn grouped(
    app: &State,
    leased: &Leased,
    bytes: &[u8],
    sources: &Sources,
) -> std::result::Result<Option<Grouped>, AnalysisError> {
    let symbols = app.symbols.with_owners(leased.project, sources);
    let known = &app.owners.known;
    for _ in 0..MAX_TURNS {
        let finished = known.finished();
        let grouped = Grouped::with_rules(&bytes.into(), &symbols, &sources.rules, &Limits::default())?;
        if !sources.has_finder() {
            return Ok(Some(grouped));
        }
        let report = &grouped.report;
        let images = std::iter::once(&report.process).chain(&report.processes);
        let images = images.flat_map(|process| &process.images);
        if known.is_pending(leased.project, images.filter_map(|image| image.id)) {
            return Ok(None);
        }
        // What was worked out meanwhile may have been asked for before.
        if known.finished() == finished {
            return Ok(Some(grouped));
        }
    }
    Ok(None)
}

/// How often a report is read anew while builds are worked out, before it is put off.
const MAX_TURNS: usize = 3;

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
        code: code(report),
        release: shortened(release),
        os: shortened(report.os.as_deref().unwrap_or("unknown")),
        device: report.device.as_deref().map(shortened),
        happened: report.time.as_deref().map(shortened),
        incomplete: analysis.is_incomplete(),
        begins: analysis.begins.clone(),
        missing: images.filter_map(missing).take(MAX_MISSING).collect(),
        sources: 0,
    }
}

/// Functions, files and images of the stack that shows what happened, each once, a line each.
fn code(report: &Report) -> String {
    let mut lines = Vec::new();
    let mut left = MAX_CODE;
    let mut add = |text: &str| {
        let text = text.trim();
        let fits = !text.is_empty() && text.len() <= MAX_CODE_LINE && text.len() < left;
        if fits && lines.len() < MAX_CODE_LINES && !lines.iter().any(|line| line == text) {
            left -= text.len() + 1;
            lines.push(text.to_owned());
        }
    };
    let frames = telling_stack(report).into_iter().flat_map(|(_, frames)| frames);
    // What follows a guess is one, too.
    for frame in frames.take_while(|frame| frame.trust != Trust::Scan).take(MAX_CODE_LINES) {
        frame.names().for_each(&mut add);
        for file in frame.functions.iter().filter_map(|function| function.file.as_deref()) {
            add(file.rsplit(['/', '\\']).next().unwrap_or_default());
        }
        let image = frame.image.and_then(|position| report.process.images.get(position));
        add(image.map(|image| image.name.as_str()).or(frame.image_name.as_deref()).unwrap_or_default());
    }
    lines.join("\n")
}

/// Bytes of what an issue is found by; of one of its lines; and how many of these there are.
const MAX_CODE: usize = 4096;
const MAX_CODE_LINE: usize = 500;
const MAX_CODE_LINES: usize = 128;

/// Images whose binaries would tell whose code is where in them.
fn without_binary(symbols: &Symbols, report: &mut Report) -> Vec<(String, String, Option<String>)> {
    let mut images = Vec::new();
    for process in report.all_processes_mut() {
        let positions = symbols.without_binary(process);
        images.extend(positions.into_iter().filter_map(|position| named(process.images.get(position)?)));
    }
    images
}

/// An image that further symbols would help.
fn missing(image: &Image) -> Option<(String, String, Option<String>)> {
    let wants = image.symbols.is_incomplete() || image.symbols.status == SymbolStatus::ExportsOnly;
    if wants { named(image) } else { None }
}

/// An image by its identity, if it states one.
fn named(image: &Image) -> Option<(String, String, Option<String>)> {
    let arch = image.arch.map(|arch| arch.name().to_owned());
    Some((image.id?.to_string(), shortened(&image.name), arch))
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
