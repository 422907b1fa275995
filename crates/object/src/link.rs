//! Names of other files that hold the debug info of this one.

use std::borrow::Cow;

use backtrail_core::ImageId;

/// `.gnu_debuglink`: the name of the file with this one's debug info, without directories, and the CRC-32 of its
/// contents.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DebugLink<'d> {
    /// A file name, looked for beside the binary, in `.debug` beside it, and below the global debug directory.
    pub name: Cow<'d, str>,
    /// CRC-32 (as zlib counts it) of the whole debug file.
    pub crc32: u32,
}

/// `.gnu_debugaltlink`: the file that several debug files share, as `dwz` writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct DebugAltLink<'d> {
    /// An absolute path, or one relative to the directory of this file.
    pub path: Cow<'d, str>,
    /// The shared file's build id.
    pub id: Option<ImageId>,
}
