//! Why a server cannot run, and what its operator is told while it does.

use crate::database::DatabaseError;
use std::error::Error;
use std::fmt;
use std::io::{self, Write as _};

/// Why a server cannot start, or had to end.
#[derive(Debug)]
pub struct ServerError {
    kind: ServerErrorKind,
    what: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The sort of a [`ServerError`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ServerErrorKind {
    /// A file or directory cannot be read or written.
    Files,
    /// Another server uses the directory.
    InUse,
    /// The database cannot be used.
    Database,
    /// The address cannot be listened at.
    Listen,
}

impl ServerError {
    pub(crate) fn files(what: impl Into<String>, source: io::Error) -> Self {
        Self { kind: ServerErrorKind::Files, what: what.into(), source: Some(source.into()) }
    }

    pub(crate) fn listen(what: impl Into<String>, source: io::Error) -> Self {
        Self { kind: ServerErrorKind::Listen, what: what.into(), source: Some(source.into()) }
    }

    pub(crate) fn in_use(what: impl Into<String>) -> Self {
        Self { kind: ServerErrorKind::InUse, what: what.into(), source: None }
    }

    /// What sort it is.
    pub fn kind(&self) -> ServerErrorKind {
        self.kind
    }
}

impl From<DatabaseError> for ServerError {
    fn from(error: DatabaseError) -> Self {
        Self { kind: ServerErrorKind::Database, what: error.to_string(), source: None }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        self.source.as_ref().map_or(Ok(()), |source| write!(f, ": {source}"))
    }
}

impl Error for ServerError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}

/// Tells the operator. That nobody reads it is no reason to stop.
pub(crate) fn eprint_problem(problem: &str) {
    let problem: String = problem.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(io::stderr(), "backtrail: {problem}");
}
