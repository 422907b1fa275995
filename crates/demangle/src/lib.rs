//! Makes mangled symbol names readable: C++ (Itanium), Swift, Rust (legacy and v0), Objective-C, D.
//!
//! ```
//! use backtrail_demangle::{Options, demangle};
//!
//! let name = demangle("_RNvC6_123foo3bar", &Options::default());
//! assert_eq!(name, "123foo::bar");
//! assert_eq!(demangle("main", &Options::default()), "main");
//! ```
//!
//! # Which scheme
//!
//! A name says by its first bytes which [`Scheme`] made it; [`scheme()`] tells. One leading underscore more than the
//! scheme has (Mach-O) or a leading `\x01` (LLVM's "take this name as it is") changes nothing. Rust's legacy names
//! look like C++ names and are told apart by the hash at their end.
//!
//! # What the caller decides
//!
//! [`Options`]: parameter lists, return types, Swift's full or simplified form, folded template arguments, and how
//! long an answer may become. The defaults are what a crash report wants.
//!
//! # Suffixes
//!
//! What a compiler appends to a name (`.cold`, `.part.0`, `.llvm.123`, `.resume`) is kept, in parentheses behind the
//! readable name; a symbol version (`@@GLIBCXX_3.4`) or `@plt` is kept as it is.
//!
//! # Hostile names
//!
//! Nothing here panics, recursion is bounded ([`MAX_DEPTH`]), and the time is bounded by the length of the name plus
//! [`Options::max_len`]: a name whose substitutions would grow exponentially is cut there, in a place where a reader
//! can see what is missing. A name that is not valid in its scheme is an [`Error`] with the byte offset, never a
//! guess.
//!
//! # Features
//!
//! `msvc` (off by default): names of Microsoft's compiler, read by the `undname` crate, which needs the standard
//! library. Without it such a name is an [`ErrorKind::Unsupported`].
//!
//! # Many names
//!
//! A [`Demangler`] keeps its buffers from one name to the next; [`Demangler::replace_names`] is a filter for any text,
//! [`pieces`] what it is made of.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod d;
mod demangler;
mod detect;
mod error;
mod filter;
mod itanium;
mod limited;
mod msvc;
mod objc;
mod options;
mod rust;
mod scheme;
mod suffix;
mod swift;

pub use demangler::{Demangler, demangle, demangle_to};
pub use detect::scheme;
pub use error::{Error, ErrorKind};
pub use filter::{Piece, Pieces, pieces};
pub use options::{FoldTemplates, Options, SwiftStyle, Underscore};
pub use scheme::Scheme;

/// How deeply the parts of a name may nest before it is refused as [`ErrorKind::TooComplex`].
///
/// Names in real binaries stay far below: of 440,000 in LLVM's, OpenJDK's and Node's libraries the deepest nests 32
/// deep. To read and print a C++ name of this depth takes less than 150 kilobytes of stack in a release build, and less
/// than a megabyte in a debug build.
pub const MAX_DEPTH: u32 = 512;
