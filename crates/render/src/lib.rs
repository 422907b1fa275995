//! What people read of a report, apart from terminals: its facts in words, the rows of its stacks, the HTML page. The program and the
//! server show the same.
//!
//! Everything here is text of strangers. [`escape`] makes it safe for one line; [`html`] for a page.
#![forbid(unsafe_code)]

pub mod escape;
pub mod facts;
pub mod html;
pub mod stack;
pub mod threads;
pub mod tree;
