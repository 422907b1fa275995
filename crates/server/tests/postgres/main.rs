//! The tests of tests/server with PostgreSQL, a database of its own for each; with SQLite where it is not installed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../server/admin.rs"]
mod admin;
#[path = "../server/backup.rs"]
mod backup;
#[path = "../server/client.rs"]
mod client;
#[path = "../server/first.rs"]
mod first;
#[path = "../server/intake.rs"]
mod intake;
#[path = "../server/owner_sources.rs"]
mod owner_sources;
#[path = "../server/pages.rs"]
mod pages;
mod replicas;
#[path = "../server/retention.rs"]
mod retention;
#[path = "../server/symbols.rs"]
mod symbols;
mod tls;
mod transfer;
#[path = "../server/webhooks.rs"]
mod webhooks;
#[path = "../server/work.rs"]
mod work;

/// The address of a new database; `None` where PostgreSQL is not installed.
pub(crate) fn database() -> Option<String> {
    backtrail_testkit::postgres()
}

/// Files are in the directory.
pub(crate) fn objects() -> Option<backtrail_server::ObjectStore> {
    None
}
