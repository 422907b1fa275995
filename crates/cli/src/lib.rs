//! The `backtrail` program, as a function of its command line and its streams: tests and fuzzers run it in their own process.
#![forbid(unsafe_code)]

mod argv;
mod cmd;
mod io;
mod outcome;
mod render;
mod tally;

pub use argv::run;
pub use io::console::{Console, Environment, Streams};
