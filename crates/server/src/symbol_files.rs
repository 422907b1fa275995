//! The symbols of each project, open for those who name frames.
//!
//! A project's files are below `symbols/PROJECT/`. What they are is found out by their headers, so that names do not matter.

use backtrail::{NoProgress, SymbolOptions, Symbols};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where symbols are, and what of them is open.
pub(crate) struct SymbolFiles {
    directory: PathBuf,
    opened: Mutex<HashMap<i64, Arc<Symbols>>>,
}

impl SymbolFiles {
    /// Uses a directory, and makes it.
    pub(crate) fn open(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        Ok(Self { directory: directory.to_owned(), opened: Mutex::default() })
    }

    /// Where a project's files are.
    pub(crate) fn directory(&self, project: i64) -> PathBuf {
        self.directory.join(project.to_string())
    }

    /// A project's symbols. Neither this machine's own debug files are among them nor what reports name by a path: a
    /// stranger chose that.
    pub(crate) fn of_project(&self, project: i64) -> Arc<Symbols> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let open = || {
            let directory = self.directory(project);
            let mut options = SymbolOptions::default();
            options.paths = if directory.is_dir() { vec![directory] } else { Vec::new() };
            options.debug_directories = Some(Vec::new());
            Arc::new(Symbols::with_options(options, &NoProgress))
        };
        Arc::clone(opened.entry(project).or_insert_with(open))
    }

    /// Files came or went: who asks next finds them.
    #[expect(dead_code, reason = "nothing uploads symbols yet")]
    pub(crate) fn changed(&self, project: i64) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).remove(&project);
    }
}
