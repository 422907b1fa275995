//! Writes a hang down while it lasts.

use crate::log::{Head, Line, NodeLine};
use crate::monitor as core;
use crate::time::rfc3339;
use crate::unfinished::{OPEN, PREFIX};
use crate::watched_thread::WatchedThread;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What tells a file that is complete.
const DONE: &str = ".jsonl";

/// How much is written, and what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rules {
    pub(crate) max_bytes: u64,
    pub(crate) sync_every: Duration,
    pub(crate) keep: bool,
    pub(crate) max_files: usize,
}

/// The file of one hang.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    rules: Rules,
    written: u64,
    nodes: usize,
    synced: Instant,
    /// When the next line of a file that is full is due: they get rarer and rarer.
    rare: Duration,
}

impl Journal {
    /// Begins a file in `directory`, which is made where it is missing.
    pub(crate) fn begin(
        directory: &Path,
        subject: &WatchedThread,
        hang: &core::Hang,
        began: SystemTime,
        threshold: Duration,
        rules: Rules,
    ) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let pid = subject.process.pid.unwrap_or_default();
        let thread = subject.thread_id.unwrap_or_default();
        let time = rfc3339(began);
        // Local clocks are set back, and process ids come again.
        let stamp = time.replace([':', '.'], "");
        let path = directory.join(format!("{PREFIX}{stamp}-{pid}-{thread}-{}{OPEN}", hang.number));
        let file = OpenOptions::new().append(true).create_new(true).open(&path)?;
        let synced = Instant::now();
        let mut journal = Self { path, file, rules, written: 0, nodes: 0, synced, rare: Duration::ZERO };
        let mut text = line(&Head::of(subject, hang, &time, threshold))?;
        for image in &subject.process.images {
            text.extend(line(&Line::from(image))?);
        }
        journal.append(&text)?;
        Ok(journal)
    }

    /// Adds what came of a capture.
    pub(crate) fn add(&mut self, hang: &core::Hang, taken: core::Taken) -> io::Result<()> {
        let mut progress = Line::progress(hang);
        if self.written >= self.rules.max_bytes || taken == core::Taken::Skipped {
            if hang.lasted < self.rare {
                return Ok(());
            }
            self.rare = hang.lasted.saturating_mul(2);
            let text = line(&progress)?;
            return self.append(&text);
        }
        let nodes = hang.tree.nodes();
        progress.nodes = nodes.iter().skip(self.nodes).map(NodeLine::from).collect();
        self.nodes = nodes.len();
        match taken {
            core::Taken::Stack { node, time, is_complete } => {
                progress.node = node.and_then(|node| usize::try_from(node.0).ok());
                progress.time_ms = Some(crate::time::millis(time));
                progress.incomplete = !is_complete;
            }
            core::Taken::Missed(missed) => progress.missed_because = Some(missed.to_string().into()),
            _ => {}
        }
        let text = line(&progress)?;
        self.append(&text)
    }

    fn append(&mut self, text: &[u8]) -> io::Result<()> {
        // One call a line: whoever reads after a kill finds whole lines.
        self.file.write_all(text)?;
        self.written = self.written.saturating_add(text.len() as u64);
        if self.written == text.len() as u64 || self.synced.elapsed() >= self.rules.sync_every {
            self.file.sync_data()?;
            self.synced = Instant::now();
        }
        Ok(())
    }

    /// The hang is over: completes the file, or removes it.
    pub(crate) fn finish(mut self, hang: &core::Hang) -> io::Result<Option<PathBuf>> {
        if !self.rules.keep {
            return fs::remove_file(&self.path).map(|()| None);
        }
        let text = line(&Line::progress(hang))?;
        self.append(&text)?;
        self.file.sync_data()?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let done = self.path.with_file_name(name.replace(OPEN, DONE));
        fs::rename(&self.path, &done)?;
        self.clear_out();
        Ok(Some(done))
    }

    /// Removes the oldest complete files, where there are too many. The names' order is that of time.
    fn clear_out(&self) {
        let Some(entries) = self.path.parent().and_then(|directory| fs::read_dir(directory).ok()) else {
            return;
        };
        let is_done = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(PREFIX) && name.ends_with(DONE) && !name.ends_with(OPEN)
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(is_done).collect();
        paths.sort();
        let surplus = paths.len().saturating_sub(self.rules.max_files.max(1));
        for path in paths.iter().take(surplus) {
            // Another process may have been quicker.
            let _ = fs::remove_file(path);
        }
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(value)?;
    text.push(b'\n');
    Ok(text)
}
