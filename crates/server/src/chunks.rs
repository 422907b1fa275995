//! Symbols in pieces, as sentry-cli sends them: it asks what is missing, sends that, and has the pieces put together.
//!
//! The protocol is that of `sentry-cli debug-files upload`; files and pieces are named by SHA-1. Organizations are nothing here.

use crate::database::{OptionalExtension as _, Result as DatabaseResult, params};
use crate::form;
use crate::http::{self, Refused, blocking};
use crate::projects::{Grant, Scope};
use crate::state::{App, State};
use crate::symbols::{self, Upload};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use axum::routing::{get, post};
use backtrail_store::NewFile;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha1::{Digest as _, Sha1};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// Bytes of a piece.
const CHUNK: usize = 8 << 20;

/// Pieces of one request, and the bytes that these may have: less than a body may have.
const CHUNKS_OF_REQUEST: usize = 8;

/// Files that are asked for in one request, and pieces of all of them.
const MAX_FILES: usize = 1000;
const MAX_CHUNKS: usize = 100_000;

/// The paths of sentry-cli.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/0/organizations/{organization}/chunk-upload/", get(options).post(upload))
        .route("/api/0/projects/{organization}/{project}/files/difs/assemble/", post(assemble))
}

/// Who may send symbols of any project.
fn allowed(app: &State, headers: &HeaderMap) -> Result<Grant, Refused> {
    let grant = http::grant(&app.database, http::token(headers, None).as_deref())?;
    if grant.scope.includes(Scope::Symbols) {
        return Ok(grant);
    }
    Err(http::needs(Scope::Symbols, grant.scope))
}

async fn options(
    Shared(app): Shared<App>,
    Path(organization): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    blocking(&app, move |app| {
        allowed(app, &headers)?;
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let base = match (&app.config.url, host) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(host)) => format!("http://{host}"),
            (None, None) => String::new(),
        };
        let is_plain = organization.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        let organization = if is_plain { organization.as_str() } else { "default" };
        Ok(http::json(&json!({
            "url": format!("{base}/api/0/organizations/{organization}/chunk-upload/"),
            "chunkSize": CHUNK,
            "chunksPerRequest": CHUNKS_OF_REQUEST,
            "maxFileSize": app.config.limits.symbol_file,
            "maxRequestSize": CHUNK * CHUNKS_OF_REQUEST,
            "concurrency": 2,
            "hashAlgorithm": "sha1",
            "compression": ["gzip"],
            "accept": ["debug_files"],
        })))
    })
    .await
}

/// Takes pieces: fields `file`, or `file_gzip`, whose file names are what they hash to.
async fn upload(Shared(app): Shared<App>, headers: HeaderMap, body: Body) -> Result<Response, Refused> {
    // Asked before the body is read.
    let asked = headers.clone();
    let grant = blocking(&app, move |app| allowed(app, &asked)).await?;
    let received = http::body(&app, &headers, body).await?;
    blocking(&app, move |app| {
        let (bytes, _place) = received.into_parts();
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let fields = form::fields(content_type.unwrap_or_default(), bytes, CHUNKS_OF_REQUEST)
            .map_err(|error| Refused::bad(error.to_string()))?;
        for field in fields {
            let bytes = match field.name.as_str() {
                "file" => field.bytes,
                "file_gzip" => http::gunzipped(&field.bytes, &app.config.limits)?,
                _ => return Err(Refused::bad("expected fields named file or file_gzip")),
            };
            if bytes.len() > CHUNK {
                return Err(Refused::bad(format!("expected pieces of at most {CHUNK} bytes")));
            }
            let name = sha1_of(&bytes);
            if field.file_name.as_deref() != Some(name.as_str()) {
                return Err(Refused::bad(format!("expected the piece's SHA-1, {name}, as its file name")));
            }
            let pieces = Pieces::of(app, grant);
            pieces.keep(&name, &bytes)?;
        }
        Ok(http::json(&json!({})))
    })
    .await
}

fn sha1_of(bytes: &[u8]) -> String {
    crate::secret::hex(&Sha1::digest(bytes))
}

fn is_sha1(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The pieces that came by one token. What another one sent is nobody else's matter, not even that it is here. A start
/// removes them all: whoever was not at the end begins again.
struct Pieces {
    directory: PathBuf,
    /// Bytes that they may have together.
    most: u64,
}

impl Pieces {
    fn of(app: &State, grant: Grant) -> Self {
        let directory = app.symbols.uploads().join(format!("pieces-{}", grant.token));
        Self { directory, most: app.config.limits.symbol_file.saturating_mul(2) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn has(&self, name: &str) -> bool {
        fs::metadata(self.path(name)).is_ok()
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> Result<(), Refused> {
        if self.has(name) {
            return Ok(());
        }
        fs::create_dir_all(&self.directory)?;
        if self.size()?.saturating_add(bytes.len() as u64) > self.most {
            // Pieces that were never put together: whoever needs one sends it again.
            fs::remove_dir_all(&self.directory)?;
            fs::create_dir_all(&self.directory)?;
        }
        let mut file = NewFile::create(&self.path(name))?;
        file.write_all(bytes)?;
        Ok(file.finish()?)
    }

    fn size(&self) -> io::Result<u64> {
        let mut size = 0_u64;
        for file in fs::read_dir(&self.directory)? {
            // One that another request removes at this moment has no size.
            size = size.saturating_add(file?.metadata().map_or(0, |metadata| metadata.len()));
        }
        Ok(size)
    }
}

/// A file that is wanted: its name, and its pieces in their order.
#[derive(Deserialize)]
struct Wanted {
    name: Option<String>,
    #[serde(default)]
    chunks: Vec<String>,
}

/// Says of files whether they are here, what is missing of them, and puts together what is whole.
async fn assemble(
    Shared(app): Shared<App>,
    Path((_, project)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let token = http::token(&headers, None);
    let allowed = move |app: &State| http::project(&app.database, &project, token.as_deref(), Scope::Symbols);
    let (project, grant) = blocking(&app, allowed).await?;
    let (bytes, place) = http::body(&app, &headers, body).await?.into_parts();
    // Whoever has a place does not wait for another one.
    let place = match place {
        None => app.large.clone().acquire_owned().await.ok(),
        own => own,
    };
    blocking(&app, move |app| {
        let _place = place;
        let wanted: BTreeMap<String, Wanted> =
            serde_json::from_slice(&bytes).map_err(|error| Refused::bad(error.to_string()))?;
        let chunks: usize = wanted.values().map(|wanted| wanted.chunks.len()).sum();
        if wanted.len() > MAX_FILES || chunks > MAX_CHUNKS {
            return Err(Refused::bad(format!("expected at most {MAX_FILES} files and {MAX_CHUNKS} pieces")));
        }
        let names = wanted.iter().flat_map(|(name, wanted)| wanted.chunks.iter().chain([name]));
        if !names.clone().all(|name| is_sha1(name)) {
            return Err(Refused::bad("expected SHA-1 digests of 40 small hexadecimal digits"));
        }
        let pieces = Pieces::of(app, grant);
        let mut answers = Map::new();
        for (sha1, wanted) in &wanted {
            answers.insert(sha1.clone(), one(app, &project, &pieces, sha1, wanted)?);
        }
        Ok(http::json(&Value::Object(answers)))
    })
    .await
}

fn one(
    app: &State,
    project: &crate::projects::Project,
    pieces: &Pieces,
    sha1: &str,
    wanted: &Wanted,
) -> Result<Value, Refused> {
    let state = |state: &str, missing: Vec<&String>, detail: Option<&str>| json!({ "state": state, "missingChunks": missing, "detail": detail });
    if let Some(known) = known(app, project.id, sha1)? {
        return Ok(known);
    }
    let missing: Vec<_> = wanted.chunks.iter().filter(|name| !pieces.has(name)).collect();
    if !missing.is_empty() || wanted.chunks.is_empty() {
        return Ok(state("not_found", missing, None));
    }
    let mut upload = Upload::begin(app)?;
    let mut hash = Sha1::new();
    for name in &wanted.chunks {
        let bytes = match fs::read(pieces.path(name)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(state("not_found", vec![name], None));
            }
            Err(error) => return Err(error.into()),
        };
        hash.update(&bytes);
        upload = upload.write(&bytes)?;
        if upload.size() > app.config.limits.symbol_file {
            return Ok(state("error", Vec::new(), Some("the file is larger than this server takes")));
        }
    }
    if crate::secret::hex(&hash.finalize()) != sha1 {
        return Ok(state("error", Vec::new(), Some("the pieces make another file")));
    }
    let received = upload.finish()?;
    for name in &wanted.chunks {
        // Another file may have the same piece: then it is sent again.
        let _ = fs::remove_file(pieces.path(name));
    }
    let name = symbols::shown(wanted.name.as_deref().unwrap_or("unnamed"));
    let kept = match symbols::keep(app, project, &name, &received, Some(sha1)) {
        Ok(kept) => kept,
        Err(refused) if refused.status().is_client_error() => {
            return Ok(state("error", Vec::new(), Some(refused.message())));
        }
        Err(refused) => return Err(refused),
    };
    let mut answer =
        known(app, project.id, sha1)?.unwrap_or_else(|| state("error", Vec::new(), Some("it is not kept")));
    // For `backtrail upload`; sentry-cli passes over what it does not know.
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("kept".to_owned(), kept);
    }
    Ok(answer)
}

/// A file that is here.
fn known(app: &State, project: i64, sha1: &str) -> DatabaseResult<Option<Value>> {
    app.database.read(|connection| {
        let row = connection.query_row(
            "SELECT image_id, arch, kind, name, debug_id FROM symbol_file WHERE project = ?1 AND \
             sha1 = ?2 LIMIT 1",
            params![project, sha1],
            |row| {
                let (id, arch): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                let (kind, name): (String, String) = (row.get(2)?, row.get(3)?);
                let id = id.to_ascii_lowercase();
                let debug_id = debug_id(&row.get::<_, Option<String>>(4)?.unwrap_or_default());
                let file = json!({
                    "id": sha1, "sha1": sha1, "debugId": debug_id, "uuid": debug_id, "codeId": id,
                    "cpuName": arch, "objectName": name, "symbolType": kind,
                    "data": { "type": "dbg", "features": [] }, "headers": {}, "size": 0,
                });
                Ok(json!({ "state": "ok", "missingChunks": [], "detail": null, "dif": file }))
            },
        );
        row.optional()
    })
}

/// An id as Sentry writes it: Breakpad's without the age, in groups.
fn debug_id(id: &str) -> String {
    let mut text = String::new();
    for (position, digit) in id.to_ascii_lowercase().chars().take(32).enumerate() {
        if matches!(position, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_as_sentry_does() {
        // Of the build id 180a373d6afbabf0eb1f09be1bc45bd796a71085.
        assert_eq!(debug_id("3D370A18FB6AF0ABEB1F09BE1BC45BD70"), "3d370a18-fb6a-f0ab-eb1f-09be1bc45bd7");
        assert!(is_sha1(&"a".repeat(40)) && !is_sha1("../../x") && !is_sha1(&"A".repeat(40)));
    }
}
