//! One line on the terminal that shows how far the work is.

use super::console::Console;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the line changes.
const PERIOD: Duration = Duration::from_millis(100);

/// Width of the bar.
const BAR: u64 = 40;

/// Shows progress on standard error when that is a terminal; silent otherwise. Spaces wipe the line out: escape sequences
/// are not needed.
pub(crate) struct Meter<'a> {
    console: &'a Console,
    shown: Option<Mutex<SymbolInfoRef>>,
}

struct SymbolInfoRef {
    changed: Instant,
    width: usize,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(console: &'a Console) -> Self {
        let shown =
            console.shows_progress().then(|| Mutex::new(SymbolInfoRef { changed: Instant::now(), width: 0 }));
        Self { console, shown }
    }

    /// Shows a line if the last one has been there for long enough.
    fn show(&self, line: impl FnOnce() -> String) {
        let Some(Ok(mut shown)) = self.shown.as_ref().map(Mutex::try_lock) else { return };
        if shown.changed.elapsed() >= PERIOD {
            let line = line();
            self.console.write_to_stderr(format!("\r{line:<width$}", width = shown.width).as_bytes());
            *shown = SymbolInfoRef { changed: Instant::now(), width: line.chars().count() };
        }
    }
}

impl backtrail::Progress for Meter<'_> {
    fn scanned(&self, counts: &backtrail::Counts) {
        let (files, found) = (counts.files, counts.found);
        self.show(|| format!("looking for symbols: {files} files, {found} binaries"));
    }
}

impl backtrail::ConvertProgress for Meter<'_> {
    fn advanced(&self, done: u64, total: u64) {
        self.show(|| {
            let filled = (done * BAR / total.max(1)).min(BAR) as usize;
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(BAR as usize - filled));
            format!("converting [{bar}] {} of {} MB", done / 1_000_000, total / 1_000_000)
        });
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        let Some(shown) = &self.shown else { return };
        let width = shown.lock().unwrap_or_else(PoisonError::into_inner).width;
        if width > 0 {
            self.console.write_to_stderr(format!("\r{:width$}\r", "").as_bytes());
        }
    }
}
