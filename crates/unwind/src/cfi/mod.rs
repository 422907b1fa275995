//! DWARF call frame information: `.eh_frame` and `.debug_frame`.
//!
//! Specifications: DWARF 5 section 6.4 and, for `.eh_frame`, its header and its pointer encodings, the Linux
//! Standard Base Core 5.0 sections 10.5 and 10.6. [`Frames`] is one section; a [`Module`](crate::Module) asks all of
//! an image's.

mod cursor;
mod entry;
mod header;
mod pointer;
mod program;
mod table;
#[cfg(test)]
mod tests;

pub use entry::{Cie, Fde, Flavour};
pub use header::eh_frame_start;
pub use table::{Entries, Entry, Frames, Rows};

pub(crate) use cursor::Cursor;
