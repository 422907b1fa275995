//! What all requests and workers share.

use crate::bell::Bell;
use crate::config::Config;
use crate::database::{Connection, Database, Result};
use crate::known_owners::Owners;
use crate::objects::Objects;
use crate::passwords::Passwords;
use crate::scrubbing::Scrubbers;
use crate::symbol_files::SymbolFiles;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// A server's parts.
pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) database: Database,
    pub(crate) objects: Objects,
    pub(crate) symbols: Arc<SymbolFiles>,
    /// Whose code is where.
    pub(crate) owners: Owners,
    /// Wakes the workers.
    pub(crate) bell: Bell,
    /// Wakes who makes tables of symbols.
    pub(crate) conversions: Bell,
    /// Ends who tells of issues; it is never rung.
    pub(crate) notices: Bell,
    /// Places for large bodies.
    pub(crate) large: Arc<Semaphore>,
    pub(crate) counters: Counters,
    pub(crate) scrubbers: Scrubbers,
    pub(crate) passwords: Passwords,
    /// Whether something could not be kept, so that there may be files without a row.
    pub(crate) left_files: AtomicBool,
    /// When the last lease ends.
    leases: AtomicI64,
    /// The last symbols of whichever replica that are linked here.
    pub(crate) followed: AtomicI64,
    /// Held by who links them: each file is fetched once.
    pub(crate) following: Mutex<()>,
}

/// The state as handlers get it.
pub(crate) type App = Arc<State>;

impl State {
    pub(crate) fn new(config: Config, database: Database, objects: Objects, symbols: SymbolFiles) -> Self {
        let large = Arc::new(Semaphore::new(config.limits.large_bodies.max(1)));
        let (bell, counters) = (Bell::default(), Counters::default());
        let (notices, conversions, scrubbers) = (Bell::default(), Bell::default(), Scrubbers::default());
        let symbols = Arc::new(symbols);
        let owners = Owners::new(&config.data.join("owners"));
        Self {
            config,
            database,
            objects,
            symbols,
            owners,
            bell,
            conversions,
            notices,
            large,
            counters,
            scrubbers,
            passwords: Passwords::default(),
            left_files: AtomicBool::new(false),
            leases: AtomicI64::new(0),
            followed: AtomicI64::new(0),
            following: Mutex::default(),
        }
    }
}

impl State {
    /// Has `work` done in a transaction that rows of files are part of which are there already.
    pub(crate) fn write_rows_of_files<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let written = self.database.write(work);
        written.inspect_err(|_| self.leave_files())
    }

    /// The end of a lease, at that time or a little later: no two of this process have the same, so that it names the lease.
    pub(crate) fn lease_end(&self, wanted: i64) -> i64 {
        let next = |last: i64| wanted.max(last.saturating_add(1));
        let update = self.leases.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(update.unwrap_or_else(|last| last))
    }

    /// There may be files that no row needs, since a request was not kept or brought what is here: the next start looks for them.
    pub(crate) fn leave_files(&self) {
        self.left_files.store(true, Ordering::Relaxed);
    }
}

/// What was counted since the start, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Requests that were answered.
    pub(crate) requests: AtomicU64,
    /// Reports that were accepted.
    pub(crate) accepted: AtomicU64,
    /// Reports that wait or are worked; near enough for back-pressure.
    pub(crate) waiting: AtomicU64,
    /// Requests that were refused.
    pub(crate) refused: AtomicU64,
    /// Reports that were worked.
    pub(crate) worked: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}
