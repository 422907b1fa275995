//! A server in this process, asked over HTTP.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod admin;
mod backup;
mod client;
mod intake;
mod pages;
mod retention;
mod symbols;
mod webhooks;
mod work;
