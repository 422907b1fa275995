//! Backtrail's server: takes crash reports and symbols from many clients, groups reports into issues, and shows them.
//!
//! [`Server::start`] runs everything in this process, with all data in one directory: SQLite, and files by their content; or with
//! PostgreSQL and a bucket (features `postgres` and `s3`). What
//! reports mean is `backtrail`'s matter; this crate has protocols, database, work and pages.
//!
//! From a request to an issue: `http` takes it, `intake` tells its reports apart and keeps them, `work` reads and groups them,
//! `pages` and `api` show them. Before a report is acknowledged its bytes and its row are on disk.
#![forbid(unsafe_code)]

mod admin;
mod analyses;
mod api;
mod backup;
mod bell;
mod chunks;
mod config;
mod database;
mod deletion;
mod demo;
pub mod envelope;
mod error;
mod export;
mod files;
pub mod form;
mod health;
mod http;
mod icicle;
mod intake;
mod issues;
mod known_owners;
mod likely;
mod objects;
mod owner_api;
mod owner_problems;
mod owner_sources;
mod owners;
mod pages;
mod passwords;
mod people;
mod projects;
mod queue;
mod replicas;
mod retention;
mod scrubbing;
mod secret;
mod server;
mod sessions;
mod state;
mod symbol_files;
mod symbol_list;
mod symbol_server;
mod symbolicator;
mod symbols;
mod tables;
mod time;
mod views;
mod webhooks;
mod work;

pub use backup::{Copied, copy, restore};
pub use config::{BucketOptions, Config, ObjectStore, SMALL_BODY, ServerLimits};
pub use error::{ServerError, ServerErrorKind};
pub use export::{Exported, export};
pub use owner_sources::find_owners;
pub use server::{Checked, FirstStart, Server, check, renew_token};
pub use tables::{TableLimits, make_tables};
