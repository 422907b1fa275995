//! Sends the files of earlier crashes: a directory, and an address or (behind `--sentry`) a DSN.
//!
//! `cargo run -p backtrail-crash --features upload --example send_pending -- /tmp/crashes http://KEY@127.0.0.1:8700/api/1/reports/`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "that is what it is for")]

use backtrail_crash::upload::{Upload, send_pending};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (directory, upload) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [directory, url] => (directory, Upload::to(url)),
        [directory, "--sentry", dsn] => (directory, Upload::to_sentry(dsn)),
        _ => {
            eprintln!("usage: send_pending DIRECTORY URL | DIRECTORY --sentry DSN");
            return ExitCode::from(2);
        }
    };
    match send_pending(directory.as_ref(), &upload) {
        Ok(outcome) => {
            println!("{} sent, {} sessions told", outcome.sent, outcome.sessions);
            outcome.left.iter().for_each(|(file, why)| eprintln!("{}: {why}", file.display()));
            ExitCode::from(u8::from(!outcome.left.is_empty()))
        }
        Err(error) => {
            eprintln!("{directory}: {error}");
            ExitCode::FAILURE
        }
    }
}
