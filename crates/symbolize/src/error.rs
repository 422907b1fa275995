//! Why files cannot be joined to one image.

use backtrail_core::ImageId;
use std::fmt;

/// Why a [`Symbolizer`](crate::Symbolizer) cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No file was given.
    NoObject,
    /// The files belong to different builds.
    IdMismatch {
        /// The identity of the first file that states one.
        first: Box<ImageId>,
        /// Another file's.
        other: Box<ImageId>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoObject => f.write_str("expected at least one file to symbolize with"),
            Self::IdMismatch { first, other } => {
                write!(
                    f,
                    "expected files of one build, found {} {first} and {} {other}",
                    first.kind(),
                    other.kind()
                )
            }
        }
    }
}

impl std::error::Error for Error {}
