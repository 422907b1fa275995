//! Static libraries inside of apps.
//!
//! [`learn()`] turns a static library into a [`Fingerprint`]: hashes of its code, its classes, its texts. [`map()`] finds the
//! library's code in a stripped app by it. `docs/sdk.md` has the file format and measured figures.
//!
//! Bytes in, answers out: this crate opens no file.
#![forbid(unsafe_code)]

mod app;
mod error;
mod fingerprint;
mod format;
mod hash;
mod isa;
mod learn;
mod link_map;
mod map;
mod markers;
mod mine;
mod objc;
mod owned;
mod place;
mod sections;
mod stamp;

pub use error::{Error, ErrorKind};
pub use fingerprint::Fingerprint;
pub use learn::{LearnOptions, Learned, learn};
pub use link_map::{LinkMap, Piece, code_range};
pub use map::{AppOwners, MapOptions, OwnerMap, map, map_file};
pub use markers::Markers;
pub use mine::{BuildStacks, CodeOffset, Layout, Sighting, mine};
pub use owned::{OwnedRange, SHARED};
pub use stamp::{LONGEST_STAMP, LONGEST_STAMP_VERSION, Stamped, stamp, unstamp};
