//! The symbol table file of backtrail, `.btsym`: what debug info and symbol tables know of one image, packed once and
//! then mapped and asked without any parsing.
#![forbid(unsafe_code)]

mod body;
mod build;
mod bytes;
mod error;
mod format;
mod ops;
mod packed;
mod read;
mod stats;
mod text;
mod types;

pub use build::{Batch, Builder};
pub use error::{Error, ErrorKind};
pub use read::{
    File, Found, Frame, Frames, Function, Functions, Inline, Lookup, Row, Symbol, Symbols, Table, Text,
};
pub use stats::{Stats, Summary};
pub use types::{
    CallSite, DropReason, FileId, FunctionHead, Header, Language, SourceKind, StringId, SymbolPiece,
};
