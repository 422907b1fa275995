//! What could not be read, each said once.

use crate::malformed::Malformed;
use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// A piece of a file that could not be read. Everything else of the file counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Problem {
    kind: ProblemKind,
    message: String,
}

/// What kind of piece it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ProblemKind {
    /// A unit of debug info: its functions may be incomplete.
    Unit,
    /// A line table: lines may be missing.
    Lines,
    /// A whole section.
    Section,
    /// A file that is cut off, or was asked for and is not to be had, or is not the one that was asked for.
    File,
    /// A symbol table.
    Symbols,
}

impl Problem {
    /// What kind of piece is concerned.
    pub fn kind(&self) -> ProblemKind {
        self.kind
    }
}

/// One sentence with the place and what was expected there. Offsets are in the decompressed section.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// More problems of one file than this are counted, not kept: a hostile file has a million.
const MAX_KEPT: usize = 256;

/// Collects problems from all threads.
#[derive(Default, Debug)]
pub(crate) struct Problems {
    inner: Mutex<Inner>,
}

#[derive(Default, Debug)]
struct Inner {
    kept: Vec<Problem>,
    seen: HashSet<Problem>,
    dropped: usize,
}

impl Problems {
    /// A broken unit at a section offset.
    pub(crate) fn unit(&self, unit: u64, error: Malformed) {
        self.add(ProblemKind::Unit, format!("unit at {unit:#x}: {error}"));
    }

    pub(crate) fn lines(&self, error: Malformed) {
        self.add(ProblemKind::Lines, error.to_string());
    }

    pub(crate) fn add(&self, kind: ProblemKind, message: String) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = Problem { kind, message };
        if inner.seen.contains(&problem) {
            return;
        }
        if inner.kept.len() >= MAX_KEPT {
            inner.dropped += 1;
            return;
        }
        inner.seen.insert(problem.clone());
        inner.kept.push(problem);
    }

    /// Everything so far, in the order of discovery.
    pub(crate) fn all(&self) -> Vec<Problem> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = inner.kept.clone();
        if inner.dropped > 0 {
            let message = format!("{} further broken pieces", inner.dropped);
            all.push(Problem { kind: ProblemKind::Unit, message });
        }
        all
    }
}
