//! What containers list: the objects in them.

use backtrail_core::{Arch, FileOffset, ImageId};

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::macho::Placement;
use crate::section::FileRange;

/// One object as its container lists it.
#[derive(Debug)]
pub(crate) struct ListedObject {
    pub(crate) arch: Arch,
    pub(crate) member: Option<String>,
    pub(crate) modified: Option<u64>,
    pub(crate) range: FileRange,
    pub(crate) placement: Placement,
    /// The identity, where the container states it.
    pub(crate) id: Option<ImageId>,
    pub(crate) problem: Option<Error>,
}

impl ListedObject {
    pub(crate) fn whole(arch: Arch, offset: u64, size: u64) -> Self {
        let range = FileRange::from_size(FileOffset::new(offset), size);
        let (member, modified, id, problem) = (None, None, None, None);
        Self { arch, member, modified, range, placement: Placement::Whole, id, problem }
    }
}

pub(crate) fn too_many(offset: u64, limits: &Limits) -> Error {
    let detail = format!("more than {} members", limits.slices);
    Error::new(ErrorKind::LimitExceeded, offset, detail)
}
