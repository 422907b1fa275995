//! A server in this process, asked over HTTP. Its database is SQLite's file; tests/postgres has the same tests with the other one.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod admin;
mod backup;
mod client;
mod first;
mod intake;
mod owner_sources;
mod pages;
mod people;
mod retention;
mod symbols;
mod webhooks;
mod work;

/// The address of a new database, where it is not a file of the server's own.
pub(crate) fn database() -> Option<String> {
    None
}

/// Where files are, if not in the server's directory.
pub(crate) fn objects() -> Option<backtrail_server::ObjectStore> {
    None
}
