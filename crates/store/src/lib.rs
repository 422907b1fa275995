//! Finds binaries and debug files by their identity.
//!
//! [`Index::scan`] looks into everything below the given paths and reads headers only: a few kilobytes of each file,
//! the directory of each zip and the first kilobytes of each member in it (more where a fat file's or an ELF file's
//! headers lie deeper). It finds dSYM bundles, `.xcarchive` and `.xcframework` directories, device-support directories, bare
//! Mach-O and ELF files, `.build-id` trees and zips of all of them (`.ipa` too), zips within zips one level deep. It
//! knows no layouts for that: a file is what its headers say.
//!
//! [`Index::resolve`] then tells for an image of a report which files belong to it, or that only another build of
//! it was found, or nothing. [`Index::open`] gives the bytes: mapped, or inflated out of a zip. [`Locator`] looks in
//! the places where one file names another, without a scan: debug links, build-id directories, `.dwo` and `.dwp` files,
//! object files of a Mach-O debug map.
//!
//! A file that another process makes shorter while it is mapped does not end this process: what is gone reads as zeros,
//! [`FileData::check`] says so for one file, [`truncated_files`] for all of the process. To that end a handler for SIGBUS is
//! installed when the first file is mapped. It acts on faults in mapped files alone and hands everything else to the
//! handler that was there before; one that is set later should do the same with what it replaces, and is followed by ours
//! above it when the next file is mapped, at most three times. A program that wants SIGBUS for itself calls
//! [`handle_bus_errors`]`(false)` first: then such a file ends the process, as it does with any tool that maps files.
//!
//! What cannot be read never ends a scan: it is listed in [`Index::problems`] and the rest is read. Everything is
//! bounded by [`Limits`]. Nothing is ever written, nothing but regular files is opened, and names out of zips serve
//! for showing alone.
#![deny(unsafe_code)]

mod archive;
mod data;
#[cfg(feature = "debuginfod")]
mod debuginfod;
mod entry;
mod error;
mod go_frames;
#[cfg(feature = "debuginfod")]
mod http;
mod identity;
mod image_files;
mod index;
mod limits;
mod locate;
mod map;
mod new_file;
mod open;
mod open_file;
mod progress;
mod remote;
mod resolve;
mod scan;
mod source;
mod unpack;
mod unwind_tables;
mod vdso;
mod zip;

pub use archive::Archive;
pub use backtrail_sys::handle_bus_errors;
pub use data::FileData;
#[cfg(feature = "debuginfod")]
pub use debuginfod::{Debuginfod, DebuginfodError, DebuginfodOptions, FetchCounts};
pub use entry::{Entry, Location};
pub use error::{Error, ErrorKind, object_error};
#[cfg(feature = "debuginfod")]
pub use http::{HttpAnswer, HttpBody, HttpClient, JsonClient, Method, certificate_fault};
pub use image_files::{ImageFiles, LoadedFiles, Search};
pub use index::{Index, Places};
pub use limits::Limits;
pub use locate::{DebugLinkCheck, Located, Locator};
pub use map::{FileStamp, truncated_files};
pub use new_file::NewFile;
pub use open_file::{ExternalSymbolFile, Names, OpenFile};
pub use progress::{Counts, NoProgress, Progress};
pub use remote::{RemoteError, RemoteErrorKind, RemoteFile, RemoteFiles, RemoteKind};
pub use resolve::{Outcome, Resolution, Wanted};
pub use scan::ScanOptions;
pub use unpack::{Unpacked, unpack, unpack_file, unpacked_head};
pub use unwind_tables::{UnwindSection, UnwindTables};
