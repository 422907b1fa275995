//! A server to look at: the sample of this repository.

use crate::outcome::Failure;
use backtrail_server::Server;
use std::fs::{self, DirBuilder};
use std::path::PathBuf;

/// Files of `fixtures/sample`.
macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sample/", $path)).as_slice())),*]
    };
}

const REPORTS: [(&str, &[u8]); 10] = sample![
    "reports/null-member.ips",
    "reports/null-member.crash",
    "reports/null-member-simulator.ips",
    "reports/null-member-simulator.crash",
    "reports/sdk-exception.ips",
    "reports/sdk-exception.crash",
    "reports/watchdog.ips",
    "reports/watchdog.crash",
    "reports/worker-assertion.ips",
    "reports/worker-assertion.crash",
];

const SYMBOLS: [(&str, &[u8]); 2] = sample![
    "symbols/Weather.app.dSYM/Contents/Resources/DWARF/Weather",
    "symbols/Telemetry.framework.dSYM/Contents/Resources/DWARF/Telemetry",
];

/// The directory of a demonstration, removed when this is dropped.
pub(super) struct Demo {
    pub(super) directory: PathBuf,
}

/// Names that are tried.
const TRIES: u32 = 64;

impl Demo {
    pub(super) fn new() -> Result<Self, Failure> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let mut number = 0;
        loop {
            let name = format!("backtrail-demo-{}-{number}", std::process::id());
            let directory = std::env::temp_dir().join(name);
            match builder.create(&directory) {
                Ok(()) => return Ok(Self { directory }),
                // Of an earlier process that was killed.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < TRIES => {
                    number += 1;
                }
                Err(error) => return Err(Failure::Input(format!("{}: {error}", directory.display()))),
            }
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Gives a server the reports, and then the symbols.
pub(super) fn fill(server: &Server) -> Result<(), Failure> {
    let failed = |error: backtrail_server::ServerError| Failure::Input(error.to_string());
    for (_, report) in REPORTS {
        server.add_report(report).map_err(failed)?;
    }
    for (path, symbols) in SYMBOLS {
        let name = path.rsplit('/').next().unwrap_or(path);
        server.add_symbols(name, symbols).map_err(failed)?;
    }
    Ok(())
}
