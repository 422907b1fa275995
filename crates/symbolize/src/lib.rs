//! To come.
#![forbid(unsafe_code)]
mod answer;
mod code;
mod dwarf;
mod problem;
mod request;
pub use answer::Answer;
