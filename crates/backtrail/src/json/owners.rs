//! Whose code is where in an app.

use crate::sdk::AppOwners;
use serde::Serialize;

/// One architecture of an app.
#[derive(Clone, Debug, Serialize)]
pub struct OwnersJson<'a> {
    /// The app's file.
    app: &'a str,
    arch: &'static str,
    id: Option<String>,
    ranges: Vec<OwnedRangeJson<'a>>,
    notes: &'a [String],
}

/// Stated addresses; the end is not part of the range.
#[derive(Clone, Debug, Serialize)]
struct OwnedRangeJson<'a> {
    start: String,
    end: String,
    owner: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    shared_by: &'a [String],
    version: Option<&'a str>,
    confidence: &'static str,
    how: &'static str,
}

/// The owners of one architecture of an app, for programs.
pub fn owners<'a>(app: &'a str, mapped: &'a AppOwners) -> OwnersJson<'a> {
    let ranges = mapped.owners.ranges.iter().map(|owned| OwnedRangeJson {
        start: owned.range.start().to_string(),
        end: owned.range.end().to_string(),
        owner: &owned.owner,
        shared_by: &owned.shared_by,
        version: owned.version.as_deref(),
        confidence: owned.confidence.as_str(),
        how: owned.how,
    });
    OwnersJson {
        app,
        arch: mapped.arch.name(),
        id: mapped.id.map(|id| id.to_string()),
        ranges: ranges.collect(),
        notes: &mapped.owners.notes,
    }
}
