//! One line on the terminal that tells how far the search for symbols is.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// How often the line changes.
const PERIOD: Duration = Duration::from_millis(100);

/// Shows progress on standard error when that is a terminal; silent otherwise.
pub(crate) struct Meter {
    shown: Option<Mutex<Instant>>,
}

impl Meter {
    pub(crate) fn new() -> Self {
        Self { shown: std::io::stderr().is_terminal().then(|| Mutex::new(Instant::now())) }
    }
}

impl backtrail::Progress for Meter {
    fn scanned(&self, counts: &backtrail::Counts) {
        let Some(Ok(mut last)) = self.shown.as_ref().map(Mutex::try_lock) else { return };
        if last.elapsed() >= PERIOD {
            *last = Instant::now();
            let (files, found) = (counts.files, counts.found);
            let _ = write!(std::io::stderr(), "\r\x1b[Klooking for symbols: {files} files, {found} binaries");
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
