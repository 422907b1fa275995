//! Zip files, read as PKWARE's APPNOTE.TXT describes them: the central directory first, members only on demand.
//!
//! Nothing is ever written to the disk, so a member's name is only text to show and to find bundles by.

mod directory;
mod inflate;
mod member;

pub(crate) use directory::Directory;
pub(crate) use inflate::{Inflater, inflate_all};
pub(crate) use member::{Member, Method};

#[cfg(test)]
mod tests;
