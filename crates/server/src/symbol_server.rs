//! Symbols go out: files, in the ways that debuginfod's, Breakpad's and Microsoft's clients ask for them, and names of addresses, in
//! Mozilla's.

use crate::database::{OptionalExtension as _, Row, params};
use crate::http::{self, Refused, blocking};
use crate::projects::Project;
use crate::state::{App, State};
use crate::symbols::{allowed, image_id, shown};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use backtrail::{
    Arch, Avma, ConvertSettings, Frame, FrameAddress, Image, ImageId, Process, TableFormat, Thread,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs::{self, File};
use std::io::{self, Read as _};

/// The paths of symbols.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/symbols/{project}/{first}/{second}/{third}", get(file))
        .route("/symbols/{project}/symbolicate/v5", post(symbolicate))
}

/// Bytes that are read at a time.
const PIECE: usize = 1 << 20;

/// What a client asks for by a path.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    /// The file with the code, by its UUID or build id in lower-case digits.
    Executable(String),
    /// The file with the debug information.
    DebugInfo(String),
    /// Breakpad's symbol file, by Breakpad's id in upper-case digits.
    Breakpad(String),
}

impl Asked {
    /// By the three last parts of a path.
    fn of(first: &str, second: &str, third: &str) -> Option<Self> {
        let lower = second.to_ascii_lowercase();
        // debuginfod: `buildid/ID/debuginfo`.
        if first == "buildid" {
            return Self::by_kind(lower, third);
        }
        // Symbolicator's unified layout: `ab/cdef…/debuginfo`, of Breakpad's id.
        if first.len() == 2 && is_digits(first) && is_digits(second) && !third.ends_with(".sym") {
            let id = format!("{}{lower}", first.to_ascii_lowercase());
            return match third {
                "breakpad" => Some(Self::Breakpad(id.to_ascii_uppercase())),
                _ => Self::by_kind(id, third),
            };
        }
        // Microsoft's server as others use it: `NAME/elf-buildid-ID/NAME`. Clients may write all of it in lower case.
        for (prefix, kind) in [
            ("elf-buildid-sym-", "debuginfo"),
            ("mach-uuid-sym-", "debuginfo"),
            ("elf-buildid-", "executable"),
            ("mach-uuid-", "executable"),
        ] {
            if let Some(id) = lower.strip_prefix(prefix) {
                return Self::by_kind(id.to_owned(), kind);
            }
        }
        // Breakpad's: `NAME/ID/NAME.sym`.
        let is_breakpad = third.ends_with(".sym") && (33..=40).contains(&second.len()) && is_digits(second);
        is_breakpad.then(|| Self::Breakpad(second.to_ascii_uppercase()))
    }

    fn by_kind(id: String, kind: &str) -> Option<Self> {
        match kind {
            _ if !is_digits(&id) => None,
            "debuginfo" => Some(Self::DebugInfo(id)),
            "executable" => Some(Self::Executable(id)),
            _ => None,
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.len() <= 80 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A file of a project, by what it says about an image.
pub(crate) struct SymbolFileRow {
    digest: String,
    image_id: String,
    arch: Option<String>,
    kind: String,
}

impl SymbolFileRow {
    fn of(row: &Row<'_>) -> crate::database::Result<Self> {
        Ok(Self { digest: row.get(0)?, image_id: row.get(1)?, arch: row.get(2)?, kind: row.get(3)? })
    }

    /// The latest file of a project for which `condition` holds, whose parameter is `id`.
    pub(crate) fn find(
        app: &State,
        project: &Project,
        condition: &str,
        id: &str,
    ) -> Result<Option<Self>, Refused> {
        Ok(app.database.read(|connection| {
            let sql = format!(
                "SELECT blob, image_id, arch, kind FROM symbol_file WHERE project = ?1 AND {condition} \
                 ORDER BY id DESC LIMIT 1"
            );

            connection.query_row(&sql, params![project.id, id], Self::of).optional()
        })?)
    }

    pub(crate) fn image_id(&self) -> Option<ImageId> {
        image_id(&self.image_id)
    }

    pub(crate) fn arch(&self) -> Option<Arch> {
        self.arch.as_deref().and_then(Arch::from_name)
    }
}

/// A file, as one of the clients asks for it.
async fn file(
    Shared(app): Shared<App>,
    Path((project, first, second, third)): Path<(String, String, String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let project = allowed(&app, project, &headers, query).await?;
    let asked = Asked::of(&first, &second, &third).ok_or_else(Refused::not_found)?;
    let is_text = matches!(asked, Asked::Breakpad(_));
    // A conversion needs as much as a large body does.
    let place = if is_text { app.large.clone().acquire_owned().await.ok() } else { None };
    let file = blocking(&app, move |app| {
        let _place = place;
        open(app, &project, &asked, &first)
    });
    streamed(file.await?, if is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" })
}

fn open(app: &State, project: &Project, asked: &Asked, name: &str) -> Result<File, Refused> {
    let of_image = "replace(lower(image_id), '-', '') = ?2 AND kind NOT IN ('table', 'symbol file')";
    let (condition, id) = match asked {
        Asked::DebugInfo(id) => (format!("{of_image} AND lacks IS NULL"), id),
        Asked::Executable(id) => (format!("{of_image} AND kind IN ('executable', 'library', 'bundle')"), id),
        // Whatever has all that a symbol file has is as good as one.
        Asked::Breakpad(id) => ("debug_id = ?2 AND kind <> 'table'".to_owned(), id),
    };
    let found = SymbolFileRow::find(app, project, &condition, id)?.ok_or_else(Refused::not_found)?;
    if matches!(asked, Asked::Breakpad(_)) && found.kind != "symbol file" {
        return convert(app, project, &found, &shown(name));
    }
    Ok(File::open(app.objects.local(&app.database, &found.digest)?)?)
}

/// Breakpad's symbol file of an image, made for this request. Clients keep what they got.
fn convert(app: &State, project: &Project, found: &SymbolFileRow, name: &str) -> Result<File, Refused> {
    let id = found.image_id().ok_or_else(Refused::not_found)?;
    let symbols = app.symbols.of_project(project.id);
    let place = app.symbols.uploads().join(crate::secret::key()?);
    let settings =
        ConvertSettings { jobs: Some(1), format: TableFormat::Breakpad, ..ConvertSettings::default() };
    let converted = symbols.convert(id, found.arch(), name, &place, &settings);
    converted.ok_or_else(Refused::not_found)?.map_err(|_| Refused::not_found())?;
    let file = File::open(&place);
    // The open file stays, its name need not.
    fs::remove_file(&place)?;
    Ok(file?)
}

/// A file as an answer, piece by piece.
fn streamed(file: File, content_type: &str) -> Result<Response, Refused> {
    let length = file.metadata()?.len();
    let head = [
        (header::CONTENT_TYPE, content_type.to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::CONTENT_DISPOSITION, "attachment".to_owned()),
    ];
    let pieces = futures_util::stream::try_unfold(file, |file| async move {
        let read = move || {
            let mut bytes = vec![0; PIECE];
            let count = (&file).read(&mut bytes)?;
            bytes.truncate(count);
            Ok::<_, io::Error>((bytes, file))
        };
        let (bytes, file) = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
        Ok::<_, io::Error>(if bytes.is_empty() { None } else { Some((Bytes::from(bytes), file)) })
    });
    Ok((head, Body::from_stream(pieces)).into_response())
}

/// What Mozilla's protocol asks: images by name and Breakpad's id, and stacks of offsets in them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    memory_map: Vec<(String, String)>,
    /// Position in `memory_map`, or -1, and bytes from the image's start.
    stacks: Vec<Vec<(i64, u64)>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Jobs {
    Several { jobs: Vec<Job> },
    One(Job),
}

/// What a request may ask.
pub(crate) const MAX_IMAGES: usize = 10_000;
pub(crate) const MAX_FRAMES: usize = 200_000;

/// Bytes that each image has for itself where addresses are made of offsets.
const ROOM: u64 = 1 << 40;

/// Names of addresses, as <https://mozilla-services.github.io/eliot/> has it (version 5).
async fn symbolicate(
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
        let expected =
            |why: String| Refused::bad(format!("expected jobs with memoryMap and stacks as JSON: {why}"));
        let jobs = match serde_json::from_slice(&bytes).map_err(|error| expected(error.to_string()))? {
            Jobs::Several { jobs } => jobs,
            Jobs::One(job) => vec![job],
        };
        let images: usize = jobs.iter().map(|job| job.memory_map.len()).sum();
        let frames: usize = jobs.iter().flat_map(|job| &job.stacks).map(Vec::len).sum();
        if images > MAX_IMAGES || frames > MAX_FRAMES {
            return Err(expected(format!("at most {MAX_IMAGES} images and {MAX_FRAMES} frames")));
        }
        let results = jobs.iter().map(|job| work(app, &project, job));
        let results = results.collect::<Result<Vec<_>, _>>()?;
        Ok(json!({ "results": results }))
    });
    Ok(http::json(&answer.await?))
}

fn work(app: &State, project: &Project, job: &Job) -> Result<Value, Refused> {
    let mut process = Process::default();
    let mut found_modules = Map::new();
    for ((name, id), position) in job.memory_map.iter().zip(1..) {
        let known = match is_digits(id) {
            true => SymbolFileRow::find(app, project, "debug_id = ?2", &id.to_ascii_uppercase())?,
            false => None,
        };
        found_modules.insert(format!("{name}/{id}"), json!(known.is_some()));
        process.images.push(Image {
            name: name.clone(),
            id: known.as_ref().and_then(SymbolFileRow::image_id),
            arch: known.as_ref().and_then(SymbolFileRow::arch),
            load_address: Avma::new(ROOM * position),
            end_address: Some(Avma::new(ROOM * (position + 1))),
            ..Image::default()
        });
    }
    for stack in &job.stacks {
        let mut thread = Thread::default();
        for ((module, offset), index) in stack.iter().zip(0..) {
            let mut frame = Frame::new(index);
            let position = usize::try_from(*module).ok().filter(|at| *at < process.images.len());
            let image = position.and_then(|position| process.images.get(position));
            // An image that is not there has nothing to look at.
            if let Some(image) = image.filter(|image| image.id.is_some() && *offset < ROOM) {
                frame.image = position;
                // Who asks made addresses of calls of return addresses already.
                frame.address = image.load_address.checked_add(*offset).map(FrameAddress::Exact);
            }
            thread.frames.push(frame);
        }
        process.threads.push(thread);
    }
    app.symbols.of_project(project.id).symbolize(&mut process, false);
    let stacks = process.threads.iter().zip(&job.stacks).map(|(thread, asked)| {
        let frames = thread.frames.iter().zip(asked);
        frames.map(|(frame, asked)| told(job, frame, asked)).collect::<Vec<_>>()
    });
    let stacks: Vec<_> = stacks.collect();
    Ok(json!({ "stacks": stacks, "found_modules": found_modules }))
}

/// One frame of an answer: the function that the code belongs to, and the functions inlined there, innermost first.
fn told(job: &Job, frame: &Frame, (module, offset): &(i64, u64)) -> Value {
    let image = usize::try_from(*module).ok().and_then(|at| job.memory_map.get(at));
    let mut told = Map::new();
    told.insert("frame".to_owned(), json!(frame.index));
    told.insert("module".to_owned(), json!(image.map_or("<unknown>", |(name, _)| name)));
    told.insert("module_offset".to_owned(), json!(format!("{offset:#x}")));
    let place = |told: &mut Map<String, Value>, file: Option<&str>, line: Option<u32>| {
        if let Some(file) = file {
            told.insert("file".to_owned(), json!(file));
        }
        if let Some(line) = line {
            told.insert("line".to_owned(), json!(line));
        }
    };
    if let Some((outer, inlined)) = frame.functions.split_last() {
        told.insert("function".to_owned(), json!(outer.name));
        place(&mut told, outer.file.as_deref(), outer.line);
        let inlines = inlined.iter().map(|function| {
            let mut inline = Map::new();
            inline.insert("function".to_owned(), json!(function.name));
            place(&mut inline, function.file.as_deref(), function.line);
            Value::Object(inline)
        });
        if !inlined.is_empty() {
            told.insert("inlines".to_owned(), inlines.collect());
        }
    } else if let Some(symbol) = &frame.symbol {
        told.insert("function".to_owned(), json!(symbol.name));
    }
    let start = frame.function_offset.or(frame.symbol.as_ref().map(|symbol| symbol.offset));
    if let Some(start) = start.filter(|_| told.contains_key("function")) {
        told.insert("function_offset".to_owned(), json!(format!("{start:#x}")));
    }
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_ask_in_many_ways() {
        let of = |path: &str| {
            let parts: Vec<_> = path.split('/').collect();
            Asked::of(parts[0], parts[1], parts[2])
        };
        let uuid = "8b10ba6c111122223333444444444444";
        let build_id = "180a373d6afbabf0eb1f09be1bc45bd796a71085";
        assert_eq!(of(&format!("buildid/{build_id}/debuginfo")), Some(Asked::DebugInfo(build_id.to_owned())));
        assert_eq!(of(&format!("a/mach-uuid-{uuid}/a")), Some(Asked::Executable(uuid.to_owned())));
        let upper = uuid.to_uppercase();
        assert_eq!(
            of(&format!("_.dwarf/mach-uuid-sym-{upper}/_.dwarf")),
            Some(Asked::DebugInfo(uuid.to_owned()))
        );
        assert_eq!(of(&format!("a/elf-buildid-{build_id}/a")), Some(Asked::Executable(build_id.to_owned())));
        assert_eq!(
            of(&format!("_.debug/elf-buildid-sym-{build_id}/_.debug")),
            Some(Asked::DebugInfo(build_id.to_owned()))
        );
        assert_eq!(of(&format!("Demo/{uuid}0/Demo.sym")), Some(Asked::Breakpad(format!("{upper}0"))));
        assert_eq!(
            of(&format!("8b/{}/breakpad", &format!("{uuid}0")[2..])),
            Some(Asked::Breakpad(format!("{upper}0")))
        );
        assert_eq!(of(&format!("8b/{}/debuginfo", &uuid[2..])), Some(Asked::DebugInfo(uuid.to_owned())));
        for nothing in [
            "buildid/../debuginfo",
            "buildid/xyz/executable",
            "a/elf-buildid-/a",
            "Demo/123/Demo.sym",
            "a/b/c",
        ] {
            assert_eq!(of(nothing), None, "{nothing}");
        }
    }
}
