//! Several servers on one database: what a replica has to notice of the others.
//!
//! All that they know is in the database and among the files; a replica's own directory has copies of symbols and uploads that are not
//! whole. Each works what it took itself at once, and what another one left as soon as that is not there any more.

use crate::database::Result;
use crate::http::eprint_problem;
use crate::queue;
use crate::state::{App, State};
use crate::symbols;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a replica looks at what the others did.
const PATROL: Duration = Duration::from_secs(5);

/// Starts who looks. It ends with those who tell of issues.
pub(crate) fn start(app: &App) -> io::Result<JoinHandle<()>> {
    let app = Arc::clone(app);
    std::thread::Builder::new().name("replicas".to_owned()).spawn(move || {
        while !app.notices.is_closed() {
            if let Err(error) = look(&app) {
                eprint_problem(&error.to_string());
            }
            app.notices.wait(0, PATROL);
        }
    })
}

fn look(app: &State) -> Result<()> {
    if app.database.write(queue::release)? > 0 {
        app.bell.ring();
        app.conversions.ring();
    }
    app.counters.waiting.store(app.database.read(queue::waiting)?, Ordering::Relaxed);
    follow_symbols(app)
}

/// Links symbols that came by other replicas, and removes those that went.
pub(crate) fn follow_symbols(app: &State) -> Result<()> {
    let files = app.database.read(symbols::files)?;
    if app.symbols.are(&files) {
        return Ok(());
    }
    let all = files.iter().map(|(project, digest)| (*project, digest.as_str()));
    app.symbols.fetch(all, |digest| app.objects.path(digest));
    let (symbols, objects) = (Arc::clone(&app.symbols), app.objects.clone());
    // Uploads to this replica are linked by the same thread, before their rows are committed.
    app.database.write(move |connection| {
        let files = symbols::files(connection)?;
        symbols.restore(&files, |digest| objects.path(digest)).map_err(crate::database::DatabaseError::Thread)
    })
}
