//! Where results go, and how a command ends.

use crate::args::Colour;
use crate::render::style::Style;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// How a command ended; the worst of all its inputs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Outcome {
    /// Everything was done and found.
    Done,
    /// Something was not found.
    Incomplete,
    /// Some input could not be read.
    BadInput,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::Incomplete => Self::from(1),
            Outcome::BadInput => Self::from(2),
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
    /// The same, in the words of a tool that the program stands in for.
    Verbatim(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "cannot write the output: {error}"),
            Self::File(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            Self::Input(message) | Self::Verbatim(message) => f.write_str(message),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Colour as asked for, for what goes to standard output.
pub(crate) fn style(colour: Colour, to_file: bool) -> Style {
    let coloured = match colour {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => !to_file && io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
    };
    Style { coloured }
}

/// The place that reports are written to.
pub(crate) enum Sink {
    Stdout(io::BufWriter<io::Stdout>),
    File(PathBuf, io::BufWriter<std::fs::File>),
    Folder(PathBuf),
}

impl Sink {
    /// Standard output without a path; a folder where the path is one, or ends like one; else a file.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::Stdout(io::BufWriter::new(io::stdout()))) };
        let failed = |error| Failure::File(path.to_owned(), error);
        if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
            std::fs::create_dir_all(path).map_err(failed)?;
            return Ok(Self::Folder(path.to_owned()));
        }
        let file = std::fs::File::create(path).map_err(failed)?;
        Ok(Self::File(path.to_owned(), io::BufWriter::new(file)))
    }

    /// Writes one result; `name` names its file in a folder.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout(out) => out.write_all(bytes).map_err(Failure::Output),
            Self::File(path, out) => out.write_all(bytes).map_err(|error| Failure::File(path.clone(), error)),
            Self::Folder(folder) => {
                let path = folder.join(name);
                std::fs::write(&path, bytes).map_err(|error| Failure::File(path, error))
            }
        }
    }

    /// Hands over what is still buffered.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        match self {
            Self::Stdout(mut out) => out.flush().map_err(Failure::Output),
            Self::File(path, mut out) => out.flush().map_err(|error| Failure::File(path, error)),
            Self::Folder(_) => Ok(()),
        }
    }
}
