//! Unwinding: from registers, stack bytes and an image's tables to frames.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod aarch64;
mod arch;
mod arm;
pub mod cfi;
pub mod compact;
mod execute;
pub mod exidx;
mod expression;
mod image;
mod module;
mod read;
mod row;
mod rules;
mod sections;
mod walk;
mod x86;
mod x86_64;

pub use expression::ExpressionError;
pub use image::{Image, Images};
pub use module::Module;
pub use row::{Cfa, Expression, Found, Malformed, Miss, Row, Rule};
pub use rules::{Rules, Size};
pub use sections::{Section, Sections};
pub use walk::{Cache, End, Ended, Failure, Folded, Frame, Options, Recover, Repeat, Step, Walk, fold};
