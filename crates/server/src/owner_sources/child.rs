//! What the process does that reads linkers' maps and compares binaries with libraries: it limits itself, does one thing, and writes down
//! what came of it.

use crate::known_owners::Build;
use crate::symbols::image_id;
use crate::tables::{Line, TableLimits, limit, write_line};
use backtrail::sdk::{self, LinkMap, NamedLinkMap};
use backtrail::{AddrRange, Arch, FileData, Svma};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The files in the process's directory: what is asked, and the answer.
pub(super) const REQUEST: &str = "request";
pub(super) const ANSWER: &str = "answer";

/// What is asked.
#[derive(Serialize, Deserialize)]
pub(super) enum Request {
    /// Where a linker's map says that the code section is. The answer is its start and its end in JSON.
    LinkMap(PathBuf),
    /// Whose code is where in a build. The answer is where its code section is, in JSON, and on the next line that.
    Build(Build),
}

/// Does what `DIR/request` asks, and writes `DIR/answer`. To be called by a process of its own, which has these limits from then on.
///
/// # Errors
/// Where the limits cannot be set, or `out` not be written to.
pub fn find_owners(directory: &Path, limits: TableLimits, out: &mut dyn Write) -> io::Result<()> {
    limit(limits)?;
    let request = serde_json::from_slice(&fs::read(directory.join(REQUEST))?)?;
    let (problem, again) = match answer(&request) {
        // A larger answer than it may have ends the process; what fails here is the disk's matter.
        Ok(answer) => match fs::write(directory.join(ANSWER), answer) {
            Ok(()) => (None, false),
            Err(error) => (Some(format!("the answer cannot be written: {error}")), true),
        },
        Err(problem) => (Some(problem), false),
    };
    write_line(out, &Line { problem, again, ..Line::default() })?;
    write_line(out, &Line { end: true, ..Line::default() })?;
    out.flush()
}

/// The bytes of the answer, or what is wrong.
pub(super) fn answer(request: &Request) -> Result<Vec<u8>, String> {
    match request {
        Request::LinkMap(file) => {
            let data = FileData::map(file).map_err(|_| "it cannot be read".to_owned())?;
            let map = LinkMap::parse(&data).map_err(|error| error.to_string())?;
            let code = map.code().ok_or("the link map has no section __text or .text".to_owned())?;
            serde_json::to_vec(&(code.start().get(), code.end().get())).map_err(|error| error.to_string())
        }
        Request::Build(build) => {
            let id = image_id(&build.id).ok_or("expected an identity".to_owned())?;
            let arch = Arch::from_name(&build.arch).ok_or("expected an architecture".to_owned())?;
            let maps = build.link_maps.iter().map(|(name, path, (start, end))| NamedLinkMap {
                name: name.clone(),
                path: path.clone(),
                code: AddrRange::new(Svma::new(*start), Svma::new(*end)),
            });
            let maps: Vec<_> = maps.collect();
            let found = sdk::build_owners(&build.files, id, arch, &build.fingerprints, &maps);
            let found = found.map_err(|error| error.to_string())?.ok_or("the binary is gone".to_owned())?;
            let code = found.code.map(|code| (code.start().get(), code.end().get()));
            let mut bytes = serde_json::to_vec(&code).map_err(|error| error.to_string())?;
            bytes.push(b'\n');
            bytes.extend(found.owners.to_bytes());
            Ok(bytes)
        }
    }
}
