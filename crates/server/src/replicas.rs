//! Several servers on one database: what a replica has to notice of the others; and what a server on a bucket does now and then.
//!
//! All that they know is in the database and among the files; a replica's own directory has copies of symbols and uploads that are not
//! whole. Each works what it took itself at once, and what another one left as soon as that is not there any more.

use crate::database::{DatabaseError, Result};
use crate::error::eprint_problem;
use crate::queue;
use crate::state::{App, State};
use crate::symbols;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a replica looks at what the others did.
const PATROL: Duration = Duration::from_secs(5);

/// When a server on a bucket looks for files that no row names: once what an earlier one left is old enough to be removed, and then now
/// and then.
const FIRST_SWEEP: Duration = Duration::from_secs(3 * 3600);
const SWEEP: Duration = Duration::from_secs(12 * 3600);

/// Starts who looks. It ends with those who tell of issues.
pub(crate) fn start(app: &App) -> io::Result<JoinHandle<()>> {
    let app = Arc::clone(app);
    std::thread::Builder::new().name("replicas".to_owned()).spawn(move || {
        let mut sweep = Instant::now() + FIRST_SWEEP;
        while !app.notices.is_closed() {
            if let Err(error) = look(&app) {
                eprint_problem(&error.to_string());
            }
            if app.objects.is_remote() && Instant::now() > sweep {
                sweep = Instant::now() + SWEEP;
                if let Err(error) = app.objects.sweep(&app.database) {
                    eprint_problem(&error.to_string());
                }
            }
            app.notices.wait(0, PATROL);
        }
    })
}

fn look(app: &State) -> Result<()> {
    if app.database.is_shared() && app.database.write(queue::release)? > 0 {
        app.bell.ring();
        app.conversions.ring();
    }
    app.counters.waiting.store(app.database.read(queue::waiting)?, Ordering::Relaxed);
    follow_symbols(app)
}

/// Links symbols that came by other replicas, and removes those that went.
pub(crate) fn follow_symbols(app: &State) -> Result<()> {
    let _following = app.following.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..TRIES {
        let files = app.database.read(symbols::files)?;
        if app.symbols.are(&files) {
            return Ok(());
        }
        let all = files.iter().map(|(project, digest)| (*project, digest.as_str()));
        let fetched = app.symbols.fetch(all, |digest| app.objects.local(&app.database, digest));
        let is_remote = app.objects.is_remote();
        if is_remote {
            fetched.map_err(DatabaseError::Thread)?;
        }
        let (symbols, objects) = (Arc::clone(&app.symbols), app.objects.clone());
        // Uploads to this replica are linked by the same thread, before their rows are committed.
        let is_done = app.database.write(move |connection| {
            let now = symbols::files(connection)?;
            if is_remote && now != files {
                return Ok(false);
            }
            let restored = symbols.restore(&now, |digest| objects.path(digest));
            restored.map(|()| true).map_err(DatabaseError::Thread)
        })?;
        if is_done {
            return Ok(());
        }
    }
    Err(DatabaseError::Thread(io::Error::other("symbols come faster than they are fetched")))
}

/// How often what came is fetched while more comes.
const TRIES: usize = 10;
