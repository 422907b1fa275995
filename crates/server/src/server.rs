//! A server from its start to its end.

use crate::admin;
use crate::api;
use crate::chunks;
use crate::config::Config;
use crate::database::{Connection, Database, Source, is_current};
use crate::deletion;
use crate::error::ServerError;
use crate::http;
use crate::intake;
use crate::issues;
use crate::objects::{self, Objects};
use crate::owner_api;
use crate::owner_sources;
use crate::pages;
use crate::projects;
use crate::queue;
use crate::replicas;
use crate::retention::{self, Keep};
use crate::secret;
use crate::state::{App, State};
use crate::symbol_files::SymbolFiles;
use crate::symbol_list;
use crate::symbol_server;
use crate::symbolicator;
use crate::symbols;
use crate::tables;
use crate::webhooks;
use crate::work;
use axum::Router;
use axum::routing::get;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Threads that do what blocks: as many writes are committed together.
const MAX_BLOCKING: usize = 128;

/// A server that runs.
#[allow(missing_debug_implementations, reason = "threads have nothing to show")]
pub struct Server {
    app: App,
    address: SocketAddr,
    first: Option<FirstStart>,
    stop: watch::Sender<bool>,
    runtime: Runtime,
    task: tokio::task::JoinHandle<()>,
    workers: Vec<std::thread::JoinHandle<()>>,
    /// Locked for as long as this server lives.
    _lock: File,
}

/// What the first start made. The token is kept nowhere else.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FirstStart {
    /// The address of the first project that Sentry's clients want.
    pub dsn: String,
    /// Where any report is sent: `curl --data-binary @FILE URL`.
    pub reports: String,
    /// The token that people log in with.
    pub token: String,
}

impl Server {
    /// Starts a server: from its return on it takes requests.
    ///
    /// # Errors
    /// Where the directory, the database or the address cannot be used.
    pub fn start(config: Config) -> Result<Self, ServerError> {
        let data = config.data.clone();
        let lock = lock(&data)?;
        let files = |what: &'static str| {
            let data = data.display().to_string();
            move |error| ServerError::files(format!("{data}: {what}"), error)
        };
        let database = Database::open(Source::of(&config)?)?;
        let objects = Objects::open(&config)?;
        objects.claim(&database)?;
        let running = data.join("running");
        if running.exists() && !objects.is_remote() {
            // The last server was killed; requests that it did not answer may have left files.
            objects.sweep(&database)?;
        }
        File::create(&running).map_err(files("cannot write"))?;
        let symbols = SymbolFiles::open(&data.join("symbols"))
            .map_err(files("cannot make the directory of symbols"))?;
        let are_made = config.tables.is_some();
        database.write(move |connection| tables::prepare(connection, are_made))?;
        if !objects.is_remote() {
            symbols
                .restore(&database.read(symbols::files)?, |digest| objects.path(digest))
                .map_err(files("cannot link the files of symbols"))?;
        }
        let first = projects::first(&database)?;
        database.write(queue::release)?;
        let waiting = database.read(queue::waiting)?;
        let app: App = Arc::new(State::new(config, database, objects, symbols));
        app.counters.waiting.store(waiting, Ordering::Relaxed);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .max_blocking_threads(MAX_BLOCKING)
            .thread_name("http")
            .enable_all()
            .build()
            .map_err(files("cannot start threads"))?;
        let listen = app.config.listen;
        let listener = runtime
            .block_on(TcpListener::bind(listen))
            .map_err(|error| ServerError::listen(format!("cannot listen at {listen}"), error))?;
        let address = listener.local_addr().map_err(|error| ServerError::listen("no address", error))?;
        let (stop, stopped) = watch::channel(false);
        let mut workers = work::start(&app).map_err(files("cannot start threads"))?;
        workers
            .push(webhooks::start(&app, url(&app.config, address)).map_err(files("cannot start threads"))?);
        workers.push(tables::start(&app).map_err(files("cannot start threads"))?);
        workers.push(owner_sources::start(&app).map_err(files("cannot start threads"))?);
        if app.database.is_shared() || app.objects.is_remote() {
            workers.push(replicas::start(&app).map_err(files("cannot start threads"))?);
        }
        let limits = app.config.limits.clone();
        let keep = Keep { age: app.config.keep, bytes: app.config.keep_bytes };
        if keep.age.is_some() || keep.bytes.is_some() {
            runtime.spawn(keep_removing(Arc::clone(&app), keep, stopped.clone()));
        }
        let task = runtime.spawn(http::serve(listener, router(&app), limits, stopped));
        let first = first.map(|first| {
            let url = url(&app.config, address);
            let (scheme, host) = url.split_once("://").unwrap_or(("http", &url));
            FirstStart {
                dsn: format!("{scheme}://{}@{host}/{}", first.key, first.project),
                reports: format!("{scheme}://{}@{host}/api/{}/reports/", first.key, first.project),
                token: first.token,
            }
        });
        Ok(Self { app, address, first, stop, runtime, task, workers, _lock: lock })
    }

    /// What its parts share.
    pub(crate) fn app(&self) -> &State {
        &self.app
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address for people.
    pub fn url(&self) -> String {
        url(&self.app.config, self.address)
    }

    /// What the first start made; `None` for later ones.
    pub fn first_start(&self) -> Option<&FirstStart> {
        self.first.as_ref()
    }

    /// Calls `started`, waits until the process is asked to end (SIGTERM, SIGINT), then stops. The process may be asked
    /// from the moment that `started` is called.
    ///
    /// # Errors
    /// What `started` answered: the server stops at once.
    pub fn run<E>(self, started: impl FnOnce(&Self) -> Result<(), E>) -> Result<(), E> {
        let asked = {
            let _runtime = self.runtime.enter();
            asked_to_end()
        };
        let result = started(&self);
        if result.is_ok() {
            self.runtime.block_on(asked);
        }
        self.stop();
        result
    }

    /// Answers what was begun, commits what waits, and ends.
    pub fn stop(self) {
        let Self { app, stop, runtime, task, workers, .. } = self;
        let _ = stop.send(true);
        let _ = runtime.block_on(task);
        drop(runtime);
        app.bell.close();
        app.conversions.close();
        app.owners.known.bell.close();
        app.notices.close();
        for worker in workers {
            let _ = worker.join();
        }
        let left_files = &app.left_files;
        if app.database.is_shared() && !app.objects.is_remote() && left_files.load(Ordering::Relaxed) {
            // Others cannot know that these are nobody's.
            left_files.store(app.objects.sweep(&app.database).is_err(), Ordering::Relaxed);
        }
        app.database.close();
        // What could not be kept may have left files: the next start looks for them.
        if !app.left_files.load(Ordering::Relaxed) {
            let _ = fs::remove_file(app.config.data.join("running"));
        }
    }
}

/// What `serve --check` found.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Checked {
    /// The version of the database's schema.
    pub schema: usize,
    /// What is wrong, one sentence each.
    pub problems: Vec<String>,
}

/// Looks whether a server's data is whole; changes nothing, and may run beside a server.
///
/// # Errors
/// Where there is no database that can be read.
pub fn check(config: &Config) -> Result<Checked, ServerError> {
    let database = Database::open_to_read(Source::of(config)?)?;
    let (schema, sound) = database.check()?;
    let objects = Objects::at(config)?;
    let mut problems = Vec::new();
    if sound != "ok" {
        problems.push(format!("the database is broken: {sound}"));
    }
    if !database.read(is_current)? {
        problems.push("the database is of an earlier program: start a server on it once".to_owned());
        return Ok(Checked { schema, problems });
    }
    problems.extend(database.read(issues::faults)?);
    let needed = database.read(objects::digests)?;
    let failed = |error| ServerError::files(config.data.display().to_string(), error);
    let missing = objects.missing(&needed).map_err(failed)?;
    problems.extend(missing.iter().map(|digest| format!("the file {digest} is missing")));
    if is_at_rest(&config.data) && database.read(Connection::is_unused)? {
        let more = objects.others(&needed).map_err(failed)?;
        if more > 0 {
            problems.push(format!("{more} files that nothing needs"));
        }
        // Those of a replica follow some seconds later, and at its next start.
        if !database.is_shared() && !objects.is_remote() {
            let linked = database.read(symbols::files)?;
            problems.extend(SymbolFiles::faults(&config.data.join("symbols"), &linked).map_err(failed)?);
        }
    }
    Ok(Checked { schema, problems })
}

/// Whether no server runs and the last one ended well: else there may be files that requests left, and a start removes them.
fn is_at_rest(data: &Path) -> bool {
    let Ok(lock) = File::open(data.join("lock")) else { return false };
    flock(&lock, FlockOperation::NonBlockingLockShared).is_ok() && !data.join("running").exists()
}

/// Makes a token to log in with in the place of all earlier ones, and returns it. Who was logged in is so no more. Not beside a
/// server that runs in the same directory.
///
/// # Errors
/// Where there is no database, or a server uses it.
pub fn renew_token(config: &Config) -> Result<String, ServerError> {
    let source = Source::of(config)?;
    // Where there is none, none is made.
    drop(Database::open_to_read(source.clone())?);
    let _lock = lock(&config.data)?;
    let token = secret::token().map_err(|error| ServerError::files("no random numbers", error))?;
    let database = Database::open(source)?;
    let renewed = token.clone();
    database.write(move |connection| projects::renew(connection, &renewed))?;
    database.close();
    Ok(token)
}

fn lock(data: &Path) -> Result<File, ServerError> {
    let failed = |error| ServerError::files(data.display().to_string(), error);
    fs::create_dir_all(data).map_err(failed)?;
    let file =
        File::options().create(true).truncate(false).write(true).open(data.join("lock")).map_err(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Err(ServerError::in_use(format!("{}: another server uses it", data.display())))
        }
        Err(error) => Err(failed(error.into())),
    }
}

fn url(config: &Config, address: SocketAddr) -> String {
    let url = config.url.clone().unwrap_or_else(|| format!("http://{address}"));
    url.trim_end_matches('/').to_owned()
}

fn router(app: &App) -> Router {
    let headers = {
        let app = Arc::clone(app);
        axum::middleware::from_fn(move |request, next| http::with_headers(Arc::clone(&app), request, next))
    };
    Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .merge(api::routes())
        .merge(admin::routes())
        .merge(deletion::routes())
        .merge(chunks::routes())
        .merge(intake::routes())
        .merge(pages::routes())
        .merge(symbols::routes())
        .merge(symbol_list::routes())
        .merge(owner_api::routes())
        .merge(symbol_server::routes())
        .merge(symbolicator::routes())
        .merge(webhooks::routes())
        .fallback(|| async { http::Refused::not_found() })
        .layer(headers)
        .with_state(Arc::clone(app))
}

/// Removes what is old, now and then, until the server stops.
async fn keep_removing(app: App, keep: Keep, mut stopped: watch::Receiver<bool>) {
    loop {
        let (state, stop) = (Arc::clone(&app), stopped.clone());
        let run = move || retention::run(&state, keep, || *stop.borrow());
        if let Ok(Err(error)) = tokio::task::spawn_blocking(run).await {
            crate::error::eprint_problem(&error.to_string());
        }
        tokio::select! {
            () = tokio::time::sleep(retention::PATROL) => {}
            _ = stopped.changed() => return,
        }
    }
}

/// Catches the signals at once, within a runtime; the future is ready when one has come.
fn asked_to_end() -> impl Future<Output = ()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let signals = [SignalKind::interrupt(), SignalKind::terminate()].map(signal);
        async {
            let one = |signal: io::Result<tokio::signal::unix::Signal>| async {
                match signal {
                    Ok(mut signal) => drop(signal.recv().await),
                    Err(_) => std::future::pending().await,
                }
            };
            let [interrupt, terminate] = signals.map(one);
            tokio::select! {
                () = interrupt => {}
                () = terminate => {}
            }
        }
    }
    #[cfg(not(unix))]
    async {
        let _ = tokio::signal::ctrl_c().await;
    }
}
