//! Symbols come in: uploads.

use crate::database::{Connection, DatabaseError, Result as DatabaseResult, params};
use crate::http::{self, Refused, blocking};
use crate::objects::{self, Object, Objects};
use crate::projects::{self, Project, Scope};
use crate::queue;
use crate::secret;
use crate::state::{App, State};
use crate::symbol_files::SymbolFiles;
use crate::tables;
use crate::time::{now, rfc3339};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{post, put};
use backtrail::ImageId;
use backtrail_store::{Entry, Index, Location, NewFile, NoProgress, ScanOptions};
use futures_util::{Stream, StreamExt as _};
use multer::bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::timeout;

/// The paths of symbols.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/projects/{project}/symbols/{name}", put(upload))
        .route("/api/v1/projects/{project}/symbols-missing", post(missing))
        .route("/upload/", post(tecken))
}

/// Bytes that are gathered before they are written.
const PIECE: usize = 1 << 20;

/// Digests that are asked for at a time.
const MAX_ASKED: usize = 10_000;

/// Slices of one upload that are kept: an archive of a whole system's files has thousands.
const MAX_SLICES: usize = 100_000;

/// Takes a binary, a debug file, or an archive of such.
async fn upload(
    Shared(app): Shared<App>,
    Path((project, name)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let project = allowed(&app, project, &headers, query).await?;
    let received = receive(&app, body.into_data_stream()).await?;
    let place = app.large.clone().acquire_owned().await.ok();
    let answer = blocking(&app, move |app| {
        let _place = place;
        keep(app, &project, &shown(&name), &received, None)
    });
    Ok(http::json(&answer.await?))
}

/// Files of a form that Tecken takes in one request.
const MAX_FILES: usize = 100;

/// Tecken's upload: a form with an archive of `NAME/ID/NAME.sym` files. Its token alone says which project it is of; one that is good
/// for all means the first. <https://tecken.readthedocs.io/en/latest/upload.html>
async fn tecken(Shared(app): Shared<App>, headers: HeaderMap, body: Body) -> Result<Response, Refused> {
    let token = http::token(&headers, None);
    let found = blocking(&app, move |app| {
        let grant = http::grant(&app.database, token.as_deref())?;
        let all = app.database.read(projects::all)?;
        let mut mine = all.into_iter().filter(|project| grant.allows(Scope::Symbols, project.id));
        mine.next().ok_or_else(|| http::needs(Scope::Symbols, grant.scope))
    });
    let project = found.await?;
    let mut form = FilesOfForm::new(&headers, body)?;
    let mut uploads = Vec::new();
    while let Some(field) = form.next(&app).await? {
        let Some(name) = field.file_name().map(shown) else { continue };
        let received = receive(&app, field).await?;
        let place = app.large.clone().acquire_owned().await.ok();
        let project = project.clone();
        let kept = blocking(&app, move |app| {
            let _place = place;
            let size = received.object.size;
            let kept = keep(app, &project, &name, &received, None)?;
            Ok(json!({ "filename": name, "size": size, "completed_at": rfc3339(now()),
                "files": kept.get("files"), "problems": kept.get("problems") }))
        });
        uploads.push(kept.await?);
    }
    let first = uploads.first().cloned().ok_or_else(|| Refused::bad("expected a file in the form"))?;
    let mut response = http::json(&json!({ "upload": first, "uploads": uploads }));
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// The fields of a form that comes, one after the other: its files may be larger than memory.
pub(crate) struct FilesOfForm {
    form: multer::Multipart<'static>,
    count: usize,
}

impl FilesOfForm {
    pub(crate) fn new(headers: &HeaderMap, body: Body) -> Result<Self, Refused> {
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let boundary = content_type.and_then(|text| multer::parse_boundary(text).ok());
        let boundary = boundary.ok_or_else(|| Refused::bad("expected multipart/form-data with a file"))?;
        Ok(Self { form: multer::Multipart::new(body.into_data_stream(), boundary), count: 0 })
    }

    /// The next one; `None` at the end.
    pub(crate) async fn next(&mut self, app: &App) -> Result<Option<multer::Field<'static>>, Refused> {
        let field = timeout(app.config.limits.body_time, self.form.next_field()).await;
        let late = |_| Refused::new(StatusCode::REQUEST_TIMEOUT, "the form did not come in time");
        let field = field.map_err(late)?.map_err(|error| Refused::bad(error.to_string()))?;
        self.count += 1;
        if field.is_some() && self.count > MAX_FILES {
            return Err(Refused::bad(format!("expected at most {MAX_FILES} files in a form")));
        }
        Ok(field)
    }
}

pub(crate) async fn allowed(
    app: &App,
    project: String,
    headers: &HeaderMap,
    query: Option<String>,
) -> Result<Project, Refused> {
    let token = http::token(headers, query.as_deref());
    blocking(app, move |app| Ok(http::project(&app.database, &project, token.as_deref(), Scope::Symbols)?.0))
        .await
}

/// A file's name, as it is shown. It never becomes a path.
pub(crate) fn shown(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// An upload on its way: a file that has no other name yet.
pub(crate) struct Upload {
    file: NewFile,
    path: PathBuf,
    hash: Sha256,
    size: u64,
}

/// An upload that is whole, on disk, and removed when this is dropped.
pub(crate) struct Received {
    path: PathBuf,
    object: Object,
}

impl Received {
    pub(crate) fn size(&self) -> u64 {
        self.object.size
    }

    /// Where it is until this is dropped.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    pub(crate) fn read(&self) -> std::io::Result<Vec<u8>> {
        fs::read(&self.path)
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        // It was moved to its place, or is not wanted.
        let _ = fs::remove_file(&self.path);
    }
}

impl Upload {
    pub(crate) fn begin(app: &State) -> Result<Self, Refused> {
        let path = app.symbols.uploads().join(secret::key()?);
        Ok(Self { file: NewFile::create(&path)?, path, hash: Sha256::new(), size: 0 })
    }

    pub(crate) fn write(mut self, bytes: &[u8]) -> Result<Self, Refused> {
        self.hash.update(bytes);
        self.file.write_all(bytes)?;
        self.size = self.size.saturating_add(bytes.len() as u64);
        Ok(self)
    }

    /// How many bytes came.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn finish(self) -> Result<Received, Refused> {
        self.file.finish()?;
        let digest = secret::hex(&self.hash.finalize());
        Ok(Received {
            path: self.path,
            object: Object { digest, size: self.size, packed: None, placed: None },
        })
    }
}

/// Writes a file to disk as it comes, from a stream of its bytes: symbols of a large app have more than this machine may have memory.
pub(crate) async fn receive<E>(
    app: &App,
    mut file: impl Stream<Item = Result<Bytes, E>> + Unpin,
) -> Result<Received, Refused> {
    let limits = &app.config.limits;
    let mut upload = blocking(app, Upload::begin).await?;
    let mut piece = Vec::new();
    loop {
        let bytes = timeout(limits.body_time, file.next()).await;
        let bytes =
            bytes.map_err(|_| Refused::new(StatusCode::REQUEST_TIMEOUT, "the file did not come in time"))?;
        let Some(bytes) = bytes else { break };
        let bytes = bytes.map_err(|_| Refused::bad("the file cannot be read to its end"))?;
        piece.extend_from_slice(&bytes);
        if upload.size.saturating_add(piece.len() as u64) > limits.symbol_file {
            let most = limits.symbol_file;
            let why = format!("expected a file of at most {most} bytes");
            return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why));
        }
        if piece.len() >= PIECE {
            let full = std::mem::take(&mut piece);
            upload = blocking(app, move |_| upload.write(&full)).await?;
        }
    }
    blocking(app, move |_| upload.write(&piece)?.finish()).await
}

/// An image that a file tells about.
#[derive(Clone)]
struct Slice {
    id: String,
    arch: &'static str,
    kind: &'static str,
    name: String,
    /// What it does not tell of addresses.
    lacks: Option<&'static str>,
}

impl Slice {
    fn of(entry: &Entry, name: &str) -> Option<Self> {
        let identity = &entry.identity;
        let own = if entry.location.is_in_zip() { entry.location.file_name() } else { name };
        let lacks = match (identity.has_debug_info, identity.has_symbols) {
            (true, _) => None,
            (false, true) => Some("files and lines"),
            (false, false) => Some("names, files and lines"),
        };
        let (arch, kind) = (identity.arch.name(), identity.kind.as_str());
        Some(Self { id: identity.id?.to_string(), arch, kind, name: shown(own), lacks })
    }
}

/// The files of an upload, by their places in it, with what they tell about.
fn slices(index: &Index, name: &str) -> BTreeMap<Location, Vec<Slice>> {
    let mut files: BTreeMap<Location, Vec<Slice>> = BTreeMap::new();
    for entry in index.entries().iter().take(MAX_SLICES) {
        if let Some(slice) = Slice::of(entry, name) {
            files.entry(entry.location.clone()).or_default().push(slice);
        }
    }
    files
}

/// Keeps an upload, and has the reports worked again that waited for it. With its SHA-1, where the client knows it by that.
pub(crate) fn keep(
    app: &State,
    project: &Project,
    name: &str,
    received: &Received,
    sha1: Option<&str>,
) -> Result<Value, Refused> {
    keep_all(app, project, name, received, sha1).inspect_err(|_| app.leave_files())
}

fn keep_all(
    app: &State,
    project: &Project,
    name: &str,
    received: &Received,
    sha1: Option<&str>,
) -> Result<Value, Refused> {
    let index = Index::scan(std::slice::from_ref(&received.path), &ScanOptions::default(), &NoProgress);
    let mut kept = Vec::new();
    let mut problems: Vec<String> = Vec::new();
    for (location, slices) in slices(&index, name) {
        // Members of an archive are files of their own: they can be asked for.
        let object = if location.is_in_zip() {
            match index.open_file(&location) {
                Ok(data) => app.objects.put(&app.database, &data)?,
                Err(error) => {
                    // Where it lies here is nobody's matter.
                    let here = received.path.display().to_string();
                    problems.push(error.to_string().replace(&here, name));
                    continue;
                }
            }
        } else {
            app.objects.adopt(&app.database, &received.path, &received.object)?
        };
        kept.extend(slices.into_iter().map(|slice| (object.clone(), slice)));
    }
    if kept.is_empty() {
        let why =
            "expected a binary or debug file that has an identity (UUID, build id), or an archive of such";
        return Err(Refused::new(StatusCode::UNPROCESSABLE_ENTITY, why));
    }
    if app.objects.is_remote() {
        // What is linked in the transaction has to be here by then.
        let digests: BTreeSet<_> = kept.iter().map(|(object, _)| object.digest.as_str()).collect();
        for digest in digests {
            for link in app.database.read(|connection| tables::linked(connection, digest))? {
                app.objects.local(&app.database, &link)?;
            }
        }
    }
    let (objects, symbols, sha1) = (app.objects.clone(), Arc::clone(&app.symbols), sha1.map(str::to_owned));
    let (project, are_made) = (project.id, app.config.tables.is_some());
    let files = app.write_rows_of_files(move |connection| {
        if !objects.has_all(connection, kept.iter().map(|(object, _)| object))? {
            return Ok(None);
        }
        let adding = Adding { connection, project, are_made, symbols: &symbols, objects: &objects };
        let added = kept.iter().map(|(object, slice)| adding.add(object, slice, sha1.as_deref()));
        let added = added.collect::<DatabaseResult<Vec<_>>>().map(Some);
        // Whoever works a report once this is committed finds them.
        symbols.changed(project);
        added
    })?;
    // A report of the same bytes was removed at this very moment.
    let again = || Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the file is gone, send it again");
    let files = files.ok_or_else(again)?;
    app.bell.ring();
    app.conversions.ring();
    Ok(json!({ "files": files, "problems": problems }))
}

/// A project that gets files.
struct Adding<'a> {
    connection: &'a Connection,
    project: i64,
    /// Whether tables are made of files before they are used.
    are_made: bool,
    symbols: &'a SymbolFiles,
    objects: &'a Objects,
}

impl Adding<'_> {
    /// Adds a row, and tells the reports that waited for it, at once or when its table is made.
    fn add(&self, object: &Object, slice: &Slice, sha1: Option<&str>) -> DatabaseResult<Value> {
        let Self { connection, project, .. } = *self;
        let Slice { id, arch, kind, name, lacks } = slice;
        let known = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM symbol_file WHERE project = ?1 AND image_id = ?2 AND blob = ?3)",
            params![project, id, object.digest],
            |row| row.get::<_, bool>(0),
        )?;
        if !known {
            objects::need(connection, object)?;
        }
        let is_used = tables::want(connection, &object.digest, self.are_made)?;
        if !known {
            connection.execute(
                "INSERT INTO symbol_file (project, image_id, debug_id, arch, kind, name, blob, lacks, uploaded, usable) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, \
                 CASE WHEN ?10 = 1 THEN (SELECT coalesce(max(usable), 0) + 1 FROM symbol_file) END)",
                params![project, id, debug_id(id), arch, kind, name, object.digest, lacks, now(), is_used],
            )?;
        }
        if let Some(sha1) = sha1 {
            let sql = "UPDATE symbol_file SET sha1 = ?4 WHERE project = ?1 AND image_id = ?2 AND blob = ?3";
            connection.execute(sql, params![project, id, object.digest, sha1])?;
        }
        if is_used {
            for link in tables::linked(connection, &object.digest)? {
                self.symbols.add(project, &link, &self.objects.path(&link)).map_err(DatabaseError::Thread)?;
            }
        }
        let waited = match (known, is_used) {
            (true, _) => 0,
            (false, true) => queue::work_again(connection, project, std::slice::from_ref(id))?,
            (false, false) => queue::waiting_for(connection, project, id)?,
        };
        let (table, problem) = tables::state(connection, &object.digest)?;
        Ok(json!({
            "id": id, "arch": arch, "kind": kind, "name": name, "lacks": lacks, "new": !known, "waited": waited,
            "sha256": object.digest, "table": table, "problem": problem,
        }))
    }
}

/// Which of some files are not here, by the SHA-256 of their bytes: what is here need not be sent.
async fn missing(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let project = allowed(&app, project, &headers, query).await?;
    let received = http::body(&app, &headers, body).await?;
    let answer = blocking(&app, move |app| {
        let (bytes, _place) = received.into_parts();
        let expected = || Refused::bad("expected {\"sha256\": [\"…\"]} with at most 10000 digests");
        let asked: Asked = serde_json::from_slice(&bytes).map_err(|_| expected())?;
        if asked.sha256.len() > MAX_ASKED {
            return Err(expected());
        }
        let missing = app.database.read(|connection| {
            let mut missing = Vec::new();
            for digest in asked.sha256 {
                if !connection.query_row(
                    "SELECT EXISTS (SELECT 1 FROM symbol_file WHERE project = ?1 AND blob = ?2)",
                    params![project.id, digest],
                    |row| row.get::<_, bool>(0),
                )? {
                    missing.push(digest);
                }
            }
            Ok(missing)
        })?;
        Ok(json!({ "missing": missing }))
    });
    Ok(http::json(&answer.await?))
}

#[derive(Deserialize)]
struct Asked {
    sha256: Vec<String>,
}

/// An identity as it is kept in rows.
pub(crate) fn image_id(text: &str) -> Option<ImageId> {
    if text.contains('-') { ImageId::parse_uuid(text).ok() } else { ImageId::parse_build_id(text).ok() }
}

/// The same as Breakpad writes it.
fn debug_id(text: &str) -> Option<String> {
    image_id(text).map(|id| backtrail::debug_id(&id))
}

/// The files that projects' symbols are found in, for a start: uploads and their tables.
pub(crate) fn files(connection: &Connection) -> DatabaseResult<Vec<(i64, String)>> {
    connection.query_map(
        "SELECT project, blob FROM symbol_file WHERE usable IS NOT NULL UNION SELECT project, \
         symbol_table.blob FROM symbol_file JOIN symbol_table ON source = symbol_file.blob WHERE \
         usable IS NOT NULL",
        params![],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}
