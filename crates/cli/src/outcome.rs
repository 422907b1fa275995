//! How a command ends.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// How a command ended; the worst of all that it did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// Everything was done and found.
    Done,
    /// Done, but something was not found, or one of many inputs could not be read.
    Incomplete,
    /// The command line is wrong, or nothing at all could be read.
    BadInput,
    /// Done, with the exit code of a program that was watched.
    OfProgram(u8),
}

impl Outcome {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Incomplete => 1,
            Self::BadInput => 2,
            Self::OfProgram(code) => code,
        }
    }
}

/// Why a command could not go on.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Results could not be written.
    Output(io::Error),
    /// A file could not be written.
    File(PathBuf, io::Error),
    /// What was asked for makes no sense, or its only input cannot be read.
    Input(String),
    /// The same, in the words of a tool that the program runs as, and how that tool is used.
    OfTool { message: String, usage: &'static str },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
            Self::File(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Input(message) | Self::OfTool { message, .. } => f.write_str(message),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
