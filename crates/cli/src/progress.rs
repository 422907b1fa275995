//! One line on the terminal that tells how far it is.

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

impl Meter {
    /// Shows a line if the last one has been there for long enough.
    fn show(&self, line: impl FnOnce() -> String) {
        let Some(Ok(mut last)) = self.shown.as_ref().map(Mutex::try_lock) else { return };
        if last.elapsed() >= PERIOD {
            *last = Instant::now();
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", line());
        }
    }
}

impl backtrail::Progress for Meter {
    fn scanned(&self, counts: &backtrail::Counts) {
        let (files, found) = (counts.files, counts.found);
        self.show(|| format!("looking for symbols: {files} files, {found} binaries"));
    }
}

/// Width of the bar.
const BAR: u64 = 40;

impl backtrail::ConvertProgress for Meter {
    fn advanced(&self, done: u64, total: u64) {
        self.show(|| {
            let filled = (done * BAR / total.max(1)).min(BAR) as usize;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR as usize - filled));
            format!("converting [{bar}] {} of {} MB", done / 1_000_000, total / 1_000_000)
        });
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
