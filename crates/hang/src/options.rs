//! How a thread is watched.

use crate::monitor::Settings;
use backtrail_stacks::own::Capturer;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// When a thread hangs, how closely it is looked at then, and where that is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How late a beat is when the thread hangs. Default: 250 ms.
    pub threshold: Duration,
    /// Time between two captures of a hanging thread; it grows where a hang lasts long. Default: 10 ms.
    pub interval: Duration,
    /// The directory that hangs are written to while they last. Default: none.
    pub directory: Option<PathBuf>,
    /// Whether the file of a hang stays when the hang is over, completed; else it is removed. Default: no.
    pub keep: bool,
    /// How often the file is made to reach the disk. A killed process loses nothing without it, a machine that fails loses
    /// so much. Default: 1 s.
    pub sync_every: Duration,
    /// Stacks of one hang. Default: 4,000, with the growing interval about twenty minutes.
    pub max_samples: u64,
    /// Distinct frames, each with its callers, of one hang. Default: 20,000.
    pub max_nodes: u32,
    /// Bytes of one hang's file. Beyond them it is only told, ever more rarely, that the hang still lasts. Default: 1 MiB.
    pub max_bytes: u64,
    /// Files of complete hangs that are kept in the directory; beyond, the oldest are removed. Default: 100.
    pub max_files: usize,
    /// What stacks are captured with. Default: a capturer of the watch's own.
    pub capturer: Option<Arc<Capturer>>,
}

impl Default for Options {
    fn default() -> Self {
        let settings = Settings::default();
        Self {
            threshold: settings.threshold,
            interval: settings.interval,
            directory: None,
            keep: false,
            sync_every: Duration::from_secs(1),
            max_samples: settings.max_samples,
            max_nodes: settings.max_nodes,
            max_bytes: 1 << 20,
            max_files: 100,
            capturer: None,
        }
    }
}

impl Options {
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            threshold: self.threshold,
            interval: self.interval,
            max_samples: self.max_samples,
            max_nodes: self.max_nodes,
            ..Settings::default()
        }
    }
}
