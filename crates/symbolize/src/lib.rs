//! Turns addresses of a binary into functions, inline chains, files and lines.
#![forbid(unsafe_code)]

mod answer;
mod code;
pub mod convert;
mod debug_map;
mod details;
mod dwarf;
mod error;
mod go;
mod malformed;
pub mod mapping;
mod open;
mod parallel;
mod problem;
mod request;
mod symbolizer;
mod symtab;
mod table;

pub use answer::{Answer, FunctionRef, Step, SymbolRef};
pub use details::{Declaration, Details};
pub use dwarf::FilePath;
pub use error::Error;
pub use problem::{Problem, ProblemKind};
pub use request::FileRequest;
pub use symbolizer::Symbolizer;
pub use table::{TableTexts, table_answer, table_lookup};
