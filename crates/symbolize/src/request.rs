//! The files that a lookup may need besides those it was given.

use backtrail_core::ImageId;
use std::fmt;

/// A file that debug info points at. Paths are as the compiler or linker wrote them, on the machine of the build.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FileRequest {
    /// The split debug info of one unit.
    Dwo {
        /// The path of the `.dwo` file, made absolute with the compilation directory.
        path: String,
        /// The id that must stand in the file.
        dwo_id: u64,
    },
    /// The split debug info of all units in one file, usually the image's path with `.dwp` behind it.
    Dwp,
    /// The file that dwz moved shared debug info into.
    Supplementary {
        /// Its path, possibly relative to the file that names it.
        path: String,
        /// The id that the file must have, where one is stated.
        id: Option<ImageId>,
    },
    /// An object file (or an archive with it) that a Mach-O image without dSYM was linked from.
    DebugMapObject {
        /// The path of the object file or archive.
        path: String,
        /// The archive's member.
        member: Option<String>,
        /// The modification time that the file must have, in seconds since 1970; 0 where none is stated.
        mtime: u64,
    },
}

/// What is asked for, in words.
impl fmt::Display for FileRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dwo { path, dwo_id } => write!(f, "split debug info {path} with id {dwo_id:#018x}"),
            Self::Dwp => f.write_str("package of split debug info (.dwp)"),
            Self::Supplementary { path, id: Some(id) } => {
                write!(f, "supplementary debug info {path} with {id:?}")
            }
            Self::Supplementary { path, id: None } => write!(f, "supplementary debug info {path}"),
            Self::DebugMapObject { path, member: Some(member), .. } => {
                write!(f, "object file {path}({member})")
            }
            Self::DebugMapObject { path, member: None, .. } => write!(f, "object file {path}"),
        }
    }
}
