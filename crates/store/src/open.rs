//! From a location to bytes.

use std::path::Path;

use backtrail_core::FileOffset;

use crate::Limits;
use crate::data::FileData;
use crate::entry::Location;
use crate::error::{Error, ErrorKind, Fault};
use crate::source::Source;
use crate::zip::{Member, Method, inflate_all};

/// All bytes of the file or member at `location`; `outermost` gives those of the file on the disk.
pub(crate) fn whole(
    location: &Location,
    outermost: &dyn Fn(&Path) -> Result<FileData, Error>,
    limits: &Limits,
) -> Result<FileData, Error> {
    let mut data = outermost(location.path())?;
    for member in location.zip_members() {
        data = unpack(data, member, limits).map_err(|fault| fault.at(location))?;
    }
    Ok(data)
}

/// A member of the zip `data`: in place when it is stored.
pub(crate) fn unpack(data: FileData, member: &Member, limits: &Limits) -> Result<FileData, Fault> {
    match member.method() {
        Method::Stored => {
            let range = member.data(&Source::Bytes(data.clone()))?;
            let part = data.part(FileOffset::new(range.start), range.end - range.start);
            part.ok_or_else(|| {
                Fault::new(ErrorKind::Changed, "expected the zip to be as it was when scanned")
            })
        }
        Method::Deflated => inflate_all(&Source::Bytes(data), member, limits).map(FileData::from),
        Method::Encrypted => Err(Fault::new(ErrorKind::Encrypted, "encrypted, and so cannot be read")),
        Method::Other(number) => {
            let what = format!("packed by method {number}; only stored and deflated members are read");
            Err(Fault::new(ErrorKind::NotRead, what))
        }
    }
}
