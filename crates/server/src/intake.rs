//! Reports come in: raw, by Sentry's clients, from crashpad and breakpad. What is acknowledged is on disk.

use crate::envelope::{Envelope, Item};
use crate::files::{File, Files};
use crate::form::{self, FormField};
use crate::health;
use crate::http::{self, Refused, blocking};
use crate::projects::{self, Project, Scope, Used};
use crate::queue::{self, Added, NewAttachment, NewReport};
use crate::secret;
use crate::state::{App, Counters, State};
use crate::time::{DAY, day, now};
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use backtrail::{CaptureKind, Grouped, Limits, Symbols, unpack};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// The paths of intake, with and without a slash at the end: clients differ.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route("/api/{project}/reports/", post(raw))
        .route("/api/{project}/reports", post(raw))
        .route("/api/{project}/envelope/", post(envelope))
        .route("/api/{project}/envelope", post(envelope))
        .route("/api/{project}/store/", post(store))
        .route("/api/{project}/store", post(store))
        .route("/api/{project}/minidump/", post(minidump))
        .route("/api/{project}/minidump", post(minidump))
        .route("/api/{project}/sessions/", post(sessions))
        .route("/api/{project}/sessions", post(sessions))
}

/// A report as a client sent it.
#[derive(Debug, Default)]
struct Sent {
    event_id: Option<String>,
    kind: &'static str,
    name: Option<String>,
    bytes: Vec<u8>,
    release: Option<String>,
    /// Name, kind, bytes.
    attachments: Vec<(String, String, Vec<u8>)>,
}

/// Any reports that are read: one or more as the body, or as the files of a form.
async fn raw(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let client = Client::new(project, &headers, query.as_deref());
    client.may_send_much(&app, &headers).await?;
    let received = http::body(&app, &headers, body).await?;
    let added = blocking(&app, move |app| {
        let project = client.project(app)?;
        let (received, _place) = received.into_parts();
        let limits = &app.config.limits;
        let files = match form_type(&headers) {
            Some(content_type) => {
                let fields = form::fields(content_type, received, limits.items);
                let fields = fields.map_err(|error| Refused::bad(error.to_string()))?;
                // KSCrash sends its reports as a field; other fields that are no files say things about the form.
                let is_file = |field: &FormField| field.file_name.is_some() || field.name == "reports";
                let files = fields.into_iter().filter(is_file);
                files.map(|field| (field.file_name, field.bytes)).collect()
            }
            None => vec![(None, received)],
        };
        keep_all(app, &project, Files::apart(files, limits)?)
    });
    let kept = added.await?;
    Ok(http::json(&match kept.problems.is_empty() {
        true => json!({ "ids": kept.ids }),
        false => json!({ "ids": kept.ids, "problems": kept.problems }),
    }))
}

/// What became of reports that came together.
pub(crate) struct KeptReports {
    pub(crate) ids: Vec<String>,
    /// What of them could not be kept, and why.
    pub(crate) problems: Vec<String>,
}

/// Keeps the reports of one input without a name.
pub(crate) fn keep(app: &State, project: &Project, bytes: Vec<u8>) -> Result<KeptReports, Refused> {
    keep_all(app, project, Files::apart(vec![(None, bytes)], &app.config.limits)?)
}

/// Keeps the reports of a file that a person chose, who wants to hear at once that it has none.
pub(crate) fn keep_readable(
    app: &State,
    project: &Project,
    name: &str,
    bytes: Vec<u8>,
) -> Result<KeptReports, Refused> {
    let files = Files::apart(vec![(Some(name.to_owned()), bytes)], &app.config.limits)?;
    // A stranger's report names files, and none of this machine is opened for that.
    let symbols = Symbols::none();
    let problem = |(_, report): &File| match Grouped::new(report, &symbols, &Limits::default()) {
        Ok(grouped) if grouped.report.is_empty() => Some("nothing of it can be read".to_owned()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    };
    let problems: Vec<_> = files.reports.iter().map_while(problem).collect();
    if problems.len() == files.reports.len() {
        let why = problems.into_iter().next().unwrap_or_else(|| "it is empty".to_owned());
        return Err(Refused::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("neither symbols nor a report that is read: {why}"),
        ));
    }
    keep_all(app, project, files)
}

fn keep_all(app: &State, project: &Project, files: Files) -> Result<KeptReports, Refused> {
    if files.reports.is_empty() {
        return Err(Refused::bad("expected a report"));
    }
    let sent = |(name, bytes)| Sent { kind: "report", name, bytes, ..Sent::default() };
    let added = accept(app, project, files.reports.into_iter().map(sent).collect())?;
    let problem = |(name, why): (Option<String>, Refused)| match name {
        Some(name) => format!("{name}: {}", why.message()),
        None => why.message().to_owned(),
    };
    Ok(KeptReports {
        ids: added.into_iter().map(|added| added.event_id).collect(),
        problems: files.refused.into_iter().map(problem).collect(),
    })
}

/// Sentry's envelope: an event, its minidump or Apple report, attachments.
async fn envelope(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    not_too_many(&app)?;
    let mut client = Client::new(project, &headers, query.as_deref());
    if client.key.is_some() {
        client.may_send_much(&app, &headers).await?;
    }
    // Else the envelope itself has the key.
    let received = http::body(&app, &headers, body).await?;
    let answer = blocking(&app, move |app| {
        let (received, _place) = received.into_parts();
        let envelope = Envelope::parse(&received, app.config.limits.items)
            .map_err(|error| Refused::bad(error.to_string()))?;
        client.key = client.key.or_else(|| key_of(envelope.dsn.as_deref()?));
        let project = client.project(app)?;
        let id = envelope.event_id.clone();
        let sessions =
            envelope.items.iter().filter(|item| matches!(item.kind.as_str(), "session" | "sessions"));
        let told: Vec<_> = sessions.filter_map(|item| health::told(item.bytes)).collect();
        if !told.is_empty() {
            let project = project.id;
            app.database.write(move |connection| health::count(connection, project, &told))?;
        }
        let sent: Vec<_> = of_envelope(&envelope).into_iter().chain(feedback(&envelope)).collect();
        let unwanted = unwanted(&envelope);
        if sent.is_empty() {
            return match envelope.problem {
                // What is broken is no success, where it has nothing else.
                Some(problem) if envelope.items.is_empty() => Err(Refused::bad(problem.to_string())),
                // Sending it again helps nobody.
                _ => Ok((id, unwanted)),
            };
        }
        let added = accept(app, &project, sent)?;
        Ok((added.into_iter().next().map(|added| added.event_id).or(id), unwanted))
    });
    let (id, unwanted) = answer.await?;
    let mut response = http::json(&id.map_or_else(|| json!({}), |id| json!({ "id": id })));
    if let Some(unwanted) = unwanted {
        response.headers_mut().insert(RATE_LIMITS, unwanted);
    }
    Ok(response)
}

/// Sentry's header by which clients learn what not to send.
const RATE_LIMITS: HeaderName = HeaderName::from_static("x-sentry-rate-limits");

/// Items that are not kept, and what clients call their categories, which differ.
const UNWANTED: [(&str, &str); 16] = [
    ("transaction", "transaction"),
    ("span", "span"),
    ("profile", "profile"),
    ("profile_chunk", "profile;profile_chunk"),
    ("replay_event", "replay"),
    ("replay_recording", "replay"),
    ("replay_video", "replay"),
    ("check_in", "monitor"),
    ("log", "log_item;log_byte"),
    ("otel_log", "log_item;log_byte"),
    ("trace_metric", "metric;trace_metric"),
    ("metric", "metric;trace_metric"),
    ("metric_buckets", "metric_bucket"),
    ("statsd", "metric_bucket"),
    ("raw_security", "security"),
    ("nel", "security"),
];

/// What of an envelope is not kept, in the words by which clients are told not to send it for a day: they count it as dropped then, instead
/// of taking it for stored.
fn unwanted(envelope: &Envelope<'_>) -> Option<HeaderValue> {
    let is_there = |kind: &str| envelope.items.iter().any(|item| item.kind == kind);
    let mut categories: Vec<_> =
        UNWANTED.iter().filter(|(kind, _)| is_there(kind)).map(|(_, category)| *category).collect();
    categories.dedup();
    let limit = format!("{}:{}:organization:not_kept", DAY / 1000, categories.join(";"));
    HeaderValue::from_str(&limit).ok().filter(|_| !categories.is_empty())
}

/// What users said of crashes: reports of their own. The older form has the id of the crash, which is another report.
fn feedback<'e>(envelope: &'e Envelope<'_>) -> impl Iterator<Item = Sent> + 'e {
    let items = envelope.items.iter().filter(|item| matches!(item.kind.as_str(), "feedback" | "user_report"));
    items.map(|item| {
        let said = said(item.bytes);
        let event_id = said.event_id.filter(|_| item.kind == "feedback");
        Sent { event_id, kind: "event", bytes: item.bytes.to_vec(), release: said.release, ..Sent::default() }
    })
}

/// What of an envelope is a crash or an error. The report that a client attached says more than the event that it made of it.
fn of_envelope(envelope: &Envelope<'_>) -> Option<Sent> {
    let is = |item: &&Item<'_>, kind: &str| item.attachment_type.as_deref() == Some(kind);
    let event = envelope.items.iter().find(|item| item.kind == "event");
    let minidump = envelope.items.iter().find(|item| is(item, "event.minidump"));
    let apple = envelope.items.iter().find(|item| is(item, "event.applecrashreport"));
    let (main, kind) = minidump
        .map(|item| (item, "minidump"))
        .or(apple.map(|item| (item, "report")))
        .or(event.map(|item| (item, "event")))?;
    let said = event.map(|event| said(event.bytes)).unwrap_or_default();
    let others = envelope.items.iter().filter(|item| !std::ptr::eq(*item, main));
    let others = others.filter(|item| item.kind == "event" || item.kind == "attachment");
    let attachments = others.map(|item| {
        let kind = item.attachment_type.as_deref().unwrap_or(&item.kind);
        (item.file_name.clone().unwrap_or_default(), kind.to_owned(), item.bytes.to_vec())
    });
    Some(Sent {
        event_id: envelope.event_id.clone().or(said.event_id),
        kind,
        name: main.file_name.clone(),
        bytes: main.bytes.to_vec(),
        release: said.release,
        attachments: attachments.collect(),
    })
}

/// What an event says of itself.
#[derive(Debug, Default)]
struct Said {
    event_id: Option<String>,
    release: Option<String>,
}

fn said(event: &[u8]) -> Said {
    let event: Value = serde_json::from_slice(event).unwrap_or_default();
    let text = |name: &str| event.get(name).and_then(Value::as_str).map(str::to_owned);
    Said { event_id: text("event_id"), release: text("release") }
}

/// Sentry's old way: the event alone.
async fn store(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    not_too_many(&app)?;
    let client = Client::new(project, &headers, query.as_deref());
    client.may_send_much(&app, &headers).await?;
    let received = http::body(&app, &headers, body).await?;
    let added = blocking(&app, move |app| {
        let project = client.project(app)?;
        let (bytes, _place) = received.into_parts();
        if !serde_json::from_slice::<Value>(&bytes).is_ok_and(|event| event.is_object()) {
            return Err(Refused::bad("expected an event as JSON"));
        }
        let Said { event_id, release } = said(&bytes);
        accept(app, &project, vec![Sent { event_id, release, kind: "event", bytes, ..Sent::default() }])
    });
    let id = added.await?.into_iter().next().map(|added| added.event_id);
    Ok(http::json(&json!({ "id": id })))
}

/// Minidumps of crashpad, breakpad and Sentry's native clients: a form, or the bytes alone. They are never asked to come later: such
/// clients send once.
async fn minidump(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let client = Client::new(project, &headers, query.as_deref());
    client.may_send_much(&app, &headers).await?;
    let received = http::body(&app, &headers, body).await?;
    let added = blocking(&app, move |app| {
        let project = client.project(app)?;
        let (bytes, _place) = received.into_parts();
        let limits = &app.config.limits;
        let mut sent = match form_type(&headers) {
            Some(content_type) => {
                let fields = form::fields(content_type, bytes, limits.items);
                of_form(fields.map_err(|error| Refused::bad(error.to_string()))?, limits.items)?
            }
            None => Sent { kind: "minidump", bytes, ..Sent::default() },
        };
        sent.bytes = unpack(sent.bytes, limits.decoded).map_err(Refused::bad)?.data;
        if CaptureKind::of(&sent.bytes) != Some(CaptureKind::Minidump) {
            return Err(Refused::bad("expected a minidump"));
        }
        accept(app, &project, vec![sent])
    });
    // Chromium's breakpad takes exactly 16 digits for the report's id; crashpad keeps whatever comes.
    let id = added.await?.into_iter().next().map(|added| added.event_id).unwrap_or_default();
    Ok(id.get(..16).unwrap_or(&id).to_owned().into_response())
}

/// Sessions of programs that have no client of Sentry. When this answers they are on disk.
async fn sessions(
    Shared(app): Shared<App>,
    Path(project): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let client = Client::new(project, &headers, query.as_deref());
    client.may_send_much(&app, &headers).await?;
    let received = http::body(&app, &headers, body).await?;
    let counted = blocking(&app, move |app| {
        let project = client.project(app)?.id;
        let (bytes, _place) = received.into_parts();
        let told = health::posted(&bytes);
        let told = told.map_err(|why| Refused::bad(format!("expected sessions as JSON: {why}")))?;
        Ok(app.database.write(move |connection| health::count(connection, project, &told))?)
    });
    let counted = counted.await?;
    Ok(http::json(&json!({ "new": counted.new, "known": counted.known })))
}

/// The field that has the minidump, after breakpad.
const MINIDUMP: &str = "upload_file_minidump";

fn of_form(mut fields: Vec<FormField>, most: usize) -> Result<Sent, Refused> {
    let find = |fields: &[FormField]| fields.iter().position(|field| field.name == MINIDUMP);
    let expected = || Refused::bad(format!("expected the field {MINIDUMP:?}"));
    let mut main = fields.swap_remove(find(&fields).ok_or_else(expected)?);
    if let Some(mut inner) = form::nested(&main.bytes, most) {
        main = inner.swap_remove(find(&inner).ok_or_else(expected)?);
        fields.append(&mut inner);
    }
    let mut said = Said::default();
    let mut notes = serde_json::Map::new();
    let mut attachments = Vec::new();
    for field in fields {
        let text = String::from_utf8(field.bytes);
        match text {
            Ok(text) if field.file_name.is_none() => {
                match field.name.as_str() {
                    "sentry" => said = self::said(text.as_bytes()),
                    "sentry[release]" | "release" => said.release = Some(text.clone()),
                    "sentry[event_id]" => said.event_id = Some(text.clone()),
                    "ver" | "version" | "_version" => said.release = said.release.or(Some(text.clone())),
                    _ => {}
                }
                notes.insert(field.name, Value::String(text));
            }
            text => {
                let bytes = text.map_or_else(std::string::FromUtf8Error::into_bytes, String::into_bytes);
                attachments.push((field.file_name.unwrap_or_default(), field.name, bytes));
            }
        }
    }
    if !notes.is_empty() {
        let notes = Value::Object(notes).to_string().into_bytes();
        attachments.push(("annotations.json".to_owned(), "annotations".to_owned(), notes));
    }
    Ok(Sent {
        event_id: said.event_id,
        kind: "minidump",
        name: main.file_name,
        bytes: main.bytes,
        release: said.release,
        attachments,
    })
}

/// How often reports are written whose files somebody removes at that moment, being those of old reports, too.
const TRIES: usize = 5;

/// Writes reports to disk and adds their rows. When this returns both are durable.
fn accept(app: &State, project: &Project, mut sent: Vec<Sent>) -> Result<Vec<Added>, Refused> {
    scrub(app, project, &mut sent)?;
    let window = i64::try_from(app.config.limits.window.as_millis()).unwrap_or(i64::MAX);
    let (id, quota, today) = (project.id, project.quota, day(now()));
    for _ in 0..TRIES {
        let reports = sent.iter().map(|sent| on_disk(app, project, sent));
        let reports = reports.collect::<Result<Vec<_>, Refused>>();
        let reports = reports.inspect_err(|_| app.leave_files())?;
        let objects = app.objects.clone();
        let added = app.write_rows_of_files(move |connection| {
            // Nobody removes a file while this thread has the word.
            if !objects.has_all(connection, reports.iter().flat_map(NewReport::objects))? {
                return Ok(None);
            }
            if !quota.is_none() && !projects::admit(connection, id, quota, today)? {
                return Ok(Some(None));
            }
            let added = reports.iter().map(|report| queue::add(connection, report, window));
            let added = added.collect::<Result<Vec<_>, _>>()?;
            if !quota.is_none() {
                let new = reports.iter().zip(&added).filter(|(_, added)| added.is_new);
                let more = new.fold(Used::default(), |used, (report, _)| Used {
                    reports: used.reports + 1,
                    bytes: used.bytes.saturating_add(report.size()),
                    ..used
                });
                projects::count(connection, id, today, more)?;
            }
            Ok(Some(Some(added)))
        })?;
        let Some(added) = added else { continue };
        let added = added.ok_or_else(|| {
            app.leave_files();
            over_quota(today)
        })?;
        if added.iter().any(|added| !added.is_new) {
            app.leave_files();
        }
        let new = added.iter().filter(|added| added.is_new).count() as u64;
        Counters::add(&app.counters.accepted, new);
        Counters::add(&app.counters.waiting, new);
        app.bell.ring();
        return Ok(added);
    }
    Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, "the report's file is gone, send it again"))
}

/// Masks what the project does not want to keep, before anything is written.
fn scrub(app: &State, project: &Project, sent: &mut [Sent]) -> Result<(), Refused> {
    // Patterns that this program cannot use keep out everything: what was to be masked must not be kept.
    let scrubber = app.scrubbers.get(&project.scrubbed);
    let scrubber = scrubber.map_err(|why| Refused::new(StatusCode::SERVICE_UNAVAILABLE, why))?;
    for report in sent {
        scrubber.mask(&mut report.bytes);
        report.attachments.iter_mut().for_each(|(_, _, bytes)| scrubber.mask(bytes));
    }
    Ok(())
}

/// As Sentry's clients want it: for all that they send, until the next day of UTC begins.
fn over_quota(today: i64) -> Refused {
    let left =
        (today.saturating_add(1).saturating_mul(DAY).saturating_sub(now()) / 1000).clamp(1, DAY / 1000);
    let limits = HeaderValue::from_str(&format!("{left}::project:quota"));
    let refused = Refused::new(
        StatusCode::TOO_MANY_REQUESTS,
        "the project has got what it may be sent today (UTC): its quota is reached",
    );
    let refused = refused.with(header::RETRY_AFTER, HeaderValue::from(left));
    match limits {
        Ok(limits) => refused.with(RATE_LIMITS, limits),
        Err(_) => refused,
    }
}

/// Writes a report's files.
fn on_disk(app: &State, project: &Project, sent: &Sent) -> Result<NewReport, Refused> {
    let clients = sent.event_id.as_deref().and_then(plain_id);
    let attachments = sent.attachments.iter().map(|(name, kind, bytes)| {
        let object = app.objects.keep(&app.database, bytes)?;
        Ok(NewAttachment { name: shortened(name), kind: shortened(kind), object })
    });
    Ok(NewReport {
        project: project.id,
        is_clients_id: clients.is_some(),
        event_id: match clients {
            Some(id) => id,
            None => secret::key()?,
        },
        kind: sent.kind,
        name: sent.name.as_deref().map(shortened),
        attachments: attachments.collect::<std::io::Result<_>>()?,
        object: app.objects.keep(&app.database, &sent.bytes)?,
        release: sent.release.as_deref().map(shortened),
    })
}

/// What clients call things, in the length of names.
fn shortened(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

const MAX_NAME: usize = 200;

/// An id of Sentry's clients as 32 digits; with dashes where they write it as a UUID.
fn plain_id(id: &str) -> Option<String> {
    let digits: String = id.chars().filter(|c| *c != '-').collect::<String>().to_ascii_lowercase();
    let is_id = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then_some(digits)
}

/// `http://KEY@host/1`.
fn key_of(dsn: &str) -> Option<String> {
    let (_, rest) = dsn.split_once("://")?;
    let (key, _) = rest.split_once('@')?;
    Some(key.split(':').next()?.to_owned())
}

fn form_type(headers: &HeaderMap) -> Option<&str> {
    let content_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    content_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data").then_some(content_type)
}

/// Who sends, and for which project.
#[derive(Clone, Debug)]
struct Client {
    project: String,
    key: Option<String>,
}

impl Client {
    fn new(project: String, headers: &HeaderMap, query: Option<&str>) -> Self {
        Self { project, key: http::token(headers, query) }
    }

    /// The project that it may send to.
    fn project(&self, app: &State) -> Result<Project, Refused> {
        Ok(http::project(&app.database, &self.project, self.key.as_deref(), Scope::Report)?.0)
    }

    /// Asked before a large body is read: a stranger's is not.
    async fn may_send_much(&self, app: &App, headers: &HeaderMap) -> Result<(), Refused> {
        if http::is_small(headers) {
            return Ok(());
        }
        let client = self.clone();
        blocking(app, move |app| client.project(app).map(drop)).await
    }
}

/// Asks clients that know how to wait to do so while too many reports are not worked yet.
fn not_too_many(app: &State) -> Result<(), Refused> {
    if app.counters.waiting.load(Ordering::Relaxed) < app.config.limits.waiting {
        return Ok(());
    }
    let limits = HeaderValue::from_static("60:default;error;attachment:organization");
    Err(Refused::new(StatusCode::TOO_MANY_REQUESTS, "too many reports wait, send it later")
        .with(header::RETRY_AFTER, HeaderValue::from_static("60"))
        .with(RATE_LIMITS, limits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_written_in_one_way() {
        let plain = "9ec79c33ec9942ab8353589fcb2e04dc";
        assert_eq!(plain_id(plain).as_deref(), Some(plain));
        assert_eq!(plain_id("9EC79C33-EC99-42AB-8353-589FCB2E04DC").as_deref(), Some(plain));
        assert_eq!(plain_id("../../etc"), None);
        assert_eq!(key_of("https://abc:secret@host/1").as_deref(), Some("abc"));
        assert_eq!(key_of("https://host/1"), None);
    }

    #[test]
    fn the_attached_report_is_the_report() {
        let bytes = b"{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n\
            {\"type\":\"event\"}\n{\"release\":\"demo@1.2\"}\n\
            {\"type\":\"attachment\",\"length\":4,\"attachment_type\":\"event.minidump\"}\nMDMP\n\
            {\"type\":\"session\"}\n{}\n";
        let sent = of_envelope(&Envelope::parse(bytes, 10).unwrap()).unwrap();
        assert_eq!((sent.kind, sent.bytes.as_slice()), ("minidump", b"MDMP".as_slice()));
        assert_eq!(sent.release.as_deref(), Some("demo@1.2"));
        assert_eq!(sent.attachments.len(), 1, "the event, and no session");
        let session = b"{}\n{\"type\":\"session\"}\n{}\n";
        assert!(of_envelope(&Envelope::parse(session, 10).unwrap()).is_none());
    }
}
