//! Files that came, taken apart into reports: archives, packed ones, several reports in one.

use crate::analyses;
use crate::config::ServerLimits;
use crate::http::Refused;
use axum::http::StatusCode;
use backtrail::{Archive, CaptureKind, FileError, Unpacked, documents, unpack};

/// A file that came, or a report of one, and the name that it may have.
pub(crate) type File = (Option<String>, Vec<u8>);

/// The reports of files, and what of the files is none, where others are.
pub(crate) struct Files {
    pub(crate) reports: Vec<File>,
    pub(crate) refused: Vec<(Option<String>, Refused)>,
}

impl Files {
    /// Takes files apart. One that is broken does not lose the others.
    pub(crate) fn apart(files: Vec<File>, limits: &ServerLimits) -> Result<Self, Refused> {
        let (mut all, mut refused) = (Vec::new(), Vec::new());
        for file in files {
            for (name, bytes) in members(file, limits.decoded)? {
                let reports = match bytes.and_then(|bytes| reports(bytes, limits.decoded)) {
                    Ok(reports) => reports,
                    Err(why) => {
                        refused.push((name, why));
                        continue;
                    }
                };
                if all.len() + reports.len() > limits.reports {
                    return Err(Refused::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        format!("expected at most {} reports in a request", limits.reports),
                    ));
                }
                all.extend(reports.into_iter().map(|report| (name.clone(), report)));
            }
        }
        if all.is_empty() && !refused.is_empty() {
            return Err(refused.swap_remove(0).1);
        }
        Ok(Self { reports: all, refused })
    }
}

/// A file of an archive: its name, and its bytes or why they cannot be read.
type Member = (Option<String>, Result<Vec<u8>, Refused>);

/// The files in a zip archive, each with its bytes or why they cannot be read; of anything else the file itself.
fn members((name, bytes): File, most: usize) -> Result<Vec<Member>, Refused> {
    if !Archive::is_archive(&bytes) {
        return Ok(vec![(name, Ok(bytes))]);
    }
    let refused = |error: FileError| Refused::bad(error.what().to_owned());
    let archive =
        Archive::of_bytes(name.as_deref().unwrap_or("the archive"), bytes.into(), most).map_err(refused)?;
    // Together they have no more room than one file has.
    let mut room = most;
    let names: Vec<_> = archive.members().map(str::to_owned).collect();
    let mut read = |position| {
        let bytes = archive.read(position).map_err(refused)?;
        room = room.checked_sub(bytes.len()).ok_or_else(|| {
            Refused::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("expected at most {most} bytes in an archive"),
            )
        })?;
        Ok(bytes.to_vec())
    };
    Ok(archive.reports().map(|position| (names.get(position).cloned(), read(position))).collect())
}

/// The reports of an input.
fn reports(bytes: Vec<u8>, most: usize) -> Result<Vec<Vec<u8>>, Refused> {
    let Unpacked { data, .. } = unpack(bytes, most).map_err(Refused::bad)?;
    if data.iter().all(u8::is_ascii_whitespace) {
        return Ok(Vec::new());
    }
    if analyses::is_core(&data) {
        return Err(Refused::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, analyses::NO_CORES));
    }
    if CaptureKind::of(&data).is_some() {
        return Ok(vec![data]);
    }
    let documents: Vec<_> =
        documents(&data).into_iter().map(|document| document.bytes.into_owned()).collect();
    Ok(documents)
}
