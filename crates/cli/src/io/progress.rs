//! One line on the terminal that shows how far the work is.

use super::console::{Console, Stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often the line changes.
const PERIOD: Duration = Duration::from_millis(100);

/// Width of the bar.
const BAR: u64 = 40;

/// Shows progress on standard error when that is a terminal; silent otherwise. Spaces wipe the line out: escape sequences
/// are not needed.
pub(crate) struct Meter {
    stderr: Option<Stderr>,
    shown: Mutex<Shown>,
}

struct Shown {
    changed: Instant,
    width: usize,
}

impl Meter {
    pub(crate) fn new(console: &Console) -> Self {
        let shown = Mutex::new(Shown { changed: Instant::now(), width: 0 });
        Self { stderr: console.progress_line(), shown }
    }

    /// Shows a line if the last one has been there for long enough.
    fn show(&self, line: impl FnOnce() -> String) {
        let (Some(stderr), Ok(mut shown)) = (&self.stderr, self.shown.try_lock()) else { return };
        if shown.changed.elapsed() >= PERIOD {
            let line = line();
            stderr.write(format!("\r{line:<width$}", width = shown.width).as_bytes());
            *shown = Shown { changed: Instant::now(), width: line.chars().count() };
        }
    }

    /// Wipes the line out.
    fn clear(&self) {
        let Some(stderr) = &self.stderr else { return };
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.width > 0 {
            stderr.write(format!("\r{:width$}\r", "", width = shown.width).as_bytes());
            shown.width = 0;
        }
    }

    /// Shows how many reports were put into how many groups.
    pub(crate) fn grouped(&self, done: usize, inputs: usize, groups: usize) {
        self.show(|| format!("grouping: {done} of {inputs} files, {groups} groups"));
    }

    /// Shows how far fetching is; the line is gone when nothing is left to fetch.
    #[cfg(feature = "debuginfod")]
    pub(crate) fn fetched(&self, counts: &backtrail::FetchCounts) {
        let (done, wanted, bytes) = (counts.done, counts.wanted, counts.bytes);
        if done == wanted {
            return self.clear();
        }
        self.show(|| format!("asking debuginfod: {done} of {wanted} files, {:.1} MB", bytes as f64 / 1e6));
    }
}

impl backtrail::Progress for Meter {
    fn scanned(&self, counts: &backtrail::Counts) {
        let (files, found) = (counts.files, counts.found);
        self.show(|| format!("looking for symbols: {files} files, {found} binaries"));
    }
}

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
        self.clear();
    }
}
