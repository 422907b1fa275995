//! What of a file has an identity.

use crate::Limits;
use crate::data::FileData;
use crate::error::Fault;
use crate::source::{Source, Window};
use backtrail_core::ImageId;
use backtrail_object::Identity;

pub(crate) fn check_id(data: &FileData, id: &ImageId) -> Result<(), String> {
    identity_of(data, id).map(drop)
}

/// What of a file has that identity: of a fat one a slice.
pub(crate) fn identity_of(data: &FileData, id: &ImageId) -> Result<Identity, String> {
    let source = Source::Bytes(data.clone());
    let window = Window::new(&source, 0, source.len());
    let identities = backtrail_object::identify(&window, &Limits::default().object)
        .map_err(|error| Fault::object(&error).what)?;
    let other = identities.iter().find_map(|identity| identity.id);
    match identities.into_iter().find(|identity| identity.id == Some(*id)) {
        Some(found) => Ok(found),
        None => Err(match other {
            Some(other) => format!("has {} {other}, not {id}", other.kind()),
            None => format!("has no identity, expected {} {id}", id.kind()),
        }),
    }
}
