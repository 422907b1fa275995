//! What goes in and out of the program: standard streams, reports to read, files to write, and the one writer of text for
//! people.

pub(crate) mod console;
pub(crate) mod file;
pub(crate) mod input;
pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod text;
