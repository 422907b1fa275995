//! What every request goes through: connections, bodies, keys, answers. All limits of HTTP are here.

use crate::config::{SMALL_BODY, ServerLimits};
use crate::database::{Database, DatabaseError};
use crate::error::eprint_problem;
use crate::projects::{self, Grant, Project, Scope};
use crate::state::{App, Counters, State};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutWriter;

/// The time that requests have to end after the server was told to.
const GRACE: Duration = Duration::from_secs(10);

/// Bytes of a request's head.
const MAX_HEAD: usize = 64 << 10;

/// Bytes that a packed body may always unpack to.
const UNSUSPICIOUS: usize = 4 << 20;

/// Bytes that brotli's decoder reads at a time.
const BUFFER: usize = 16 << 10;

/// What zstd's decoder may keep of what it unpacked: what every decoder of HTTP has to take, and no more. RFC 9659.
const MAX_WINDOW: u64 = 8 << 20;

/// Answers requests until `stop` says so, and then those that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ServerLimits,
    mut stop: watch::Receiver<bool>,
) {
    let most = u32::try_from(limits.connections.clamp(1, 100_000)).unwrap_or(1);
    let places = Arc::new(Semaphore::new(most as usize));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time).max_buf_size(MAX_HEAD);
    loop {
        let place = tokio::select! {
            _ = stop.changed() => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let accepted = tokio::select! {
            _ = stop.changed() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, _)) = accepted else {
            // No file handles are left, say. Others will end.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(router.clone());
        let mut stream = TimeoutWriter::new(stream);
        stream.set_timeout(Some(limits.answer_time));
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        let mut stop = stop.clone();
        tokio::spawn(async move {
            let _place = place;
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                _ = connection.as_mut() => return,
                _ = stop.changed() => {}
            }
            connection.as_mut().graceful_shutdown();
            let _ = timeout(GRACE, connection).await;
        });
    }
    drop(listener);
    let _ = timeout(GRACE, places.acquire_many(most)).await;
}

/// Why a request is not done.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), headers: Vec::new() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "there is nothing here")
    }

    /// Nothing can be kept or read. What exactly is wrong is the operator's matter.
    fn not_now(problem: &str) -> Self {
        eprint_problem(problem);
        let message = "the server cannot keep anything at present, try again later";
        let refused = Self::new(StatusCode::SERVICE_UNAVAILABLE, message);
        refused.with(header::RETRY_AFTER, HeaderValue::from_static("10"))
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }
}

/// In the form that Sentry's clients know.
impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "detail": self.message }).to_string();
        let content_type = [(header::CONTENT_TYPE, "application/json")];
        let mut response = (self.status, content_type, body).into_response();
        response.headers_mut().extend(self.headers);
        response
    }
}

impl From<DatabaseError> for Refused {
    fn from(error: DatabaseError) -> Self {
        Self::not_now(&error.to_string())
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::not_now(&error.to_string())
    }
}

/// A request's body, and its place among the large ones for as long as this lives.
#[derive(Debug)]
pub(crate) struct Received {
    bytes: Vec<u8>,
    place: Option<OwnedSemaphorePermit>,
}

impl Received {
    /// The bytes, and the place that they keep.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Option<OwnedSemaphorePermit>) {
        (self.bytes, self.place)
    }
}

/// Reads a body whole, and unpacks it where its headers say that it is packed.
pub(crate) async fn body(app: &State, headers: &HeaderMap, body: Body) -> Result<Received, Refused> {
    let limits = &app.config.limits;
    if stated(headers).is_some_and(|length| length > limits.body) {
        return Err(too_large(limits.body));
    }
    let encoding = encoding(headers);
    let place = if is_small(headers) { None } else { Arc::clone(&app.large).acquire_owned().await.ok() };
    let collected = timeout(limits.body_time, Limited::new(body, limits.body).collect()).await;
    let collected = collected
        .map_err(|_| Refused::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?
        .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => too_large(limits.body),
            None => Refused::bad("the body cannot be read to its end"),
        })?;
    let bytes = Vec::from(collected.to_bytes());
    let bytes = match encoding.as_str() {
        "identity" | "" => bytes,
        "gzip" | "x-gzip" => gunzipped(&bytes, limits)?,
        "deflate" => unpacked(ZlibDecoder::new(bytes.as_slice()), bytes.len(), limits)?,
        // Python's client packs so wherever the module `brotli` is installed.
        "br" => {
            unpacked(brotli_decompressor::Decompressor::new(bytes.as_slice(), BUFFER), bytes.len(), limits)?
        }
        "zstd" => {
            let frame = StreamingDecoder::new_with_max_window_size(bytes.as_slice(), MAX_WINDOW);
            unpacked(frame.map_err(|error| not_unpacked(&error))?, bytes.len(), limits)?
        }
        _ => {
            let refused = Refused::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "expected a Content-Encoding of gzip, deflate, br, zstd or identity",
            );
            let known = HeaderValue::from_static("gzip, deflate, br, zstd");
            return Err(refused.with(header::ACCEPT_ENCODING, known));
        }
    };
    Ok(Received { bytes, place })
}

/// How large a body is, by its headers.
fn stated(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn encoding(headers: &HeaderMap) -> String {
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok());
    encoding.unwrap_or("identity").trim().to_ascii_lowercase()
}

/// Whether a body is a small one. What does not say how large it is, or will be larger, is none.
pub(crate) fn is_small(headers: &HeaderMap) -> bool {
    let is_plain = matches!(encoding(headers).as_str(), "identity" | "");
    is_plain && stated(headers).is_some_and(|length| length <= SMALL_BODY)
}

fn too_large(most: usize) -> Refused {
    Refused::new(StatusCode::PAYLOAD_TOO_LARGE, format!("expected a body of at most {most} bytes"))
}

/// What gzip packed, within what a body may have.
pub(crate) fn gunzipped(bytes: &[u8], limits: &ServerLimits) -> Result<Vec<u8>, Refused> {
    unpacked(MultiGzDecoder::new(bytes), bytes.len(), limits)
}

fn unpacked(reader: impl Read, packed: usize, limits: &ServerLimits) -> Result<Vec<u8>, Refused> {
    let most = packed.saturating_mul(limits.ratio).max(UNSUSPICIOUS).min(limits.decoded);
    let mut bytes = Vec::new();
    let read = reader.take(most as u64 + 1).read_to_end(&mut bytes);
    if bytes.len() > most {
        return Err(too_large(most));
    }
    read.map_err(|error| not_unpacked(&error))?;
    Ok(bytes)
}

fn not_unpacked(error: &dyn std::error::Error) -> Refused {
    Refused::bad(format!("the body cannot be unpacked: {error}"))
}

/// An answer for programs.
pub(crate) fn json(value: &serde_json::Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Does what blocks where that is allowed.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &App,
    work: impl FnOnce(&State) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let app = Arc::clone(app);
    let done = tokio::task::spawn_blocking(move || work(&app)).await;
    done.unwrap_or_else(|_| Err(Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "the server has a fault")))
}

/// The key or token that a request brings: in Sentry's header or query, in Tecken's, or as its user's name or bearer token.
pub(crate) fn token(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let in_fields = |fields: &str| {
        let fields = fields.trim_start_matches("Sentry").split(',').map(str::trim);
        fields.filter_map(|field| field.strip_prefix("sentry_key=")).map(str::to_owned).next()
    };
    if let Some(key) = text("x-sentry-auth").and_then(in_fields) {
        return Some(key);
    }
    if let Some(authorization) = text("authorization") {
        let (scheme, rest) = authorization.split_once(' ')?;
        return match scheme.to_ascii_lowercase().as_str() {
            "bearer" => Some(rest.trim().to_owned()),
            "sentry" => in_fields(rest),
            "basic" => {
                let decoded = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
                let (user, password) = decoded.split_once(':')?;
                Some(if password.is_empty() { user } else { password }.to_owned())
            }
            _ => None,
        };
    }
    if let Some(token) = text("auth-token") {
        return Some(token.trim().to_owned());
    }
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    pairs.filter(|(name, _)| *name == "sentry_key").map(|(_, value)| value.to_owned()).next()
}

/// What a request without one is told.
const NO_TOKEN: &str = "expected a key or token: the header \"Authorization: Bearer TOKEN\"";

/// What a key or token is good for.
pub(crate) fn grant(database: &Database, token: Option<&str>) -> Result<Grant, Refused> {
    let token = token.ok_or_else(|| unauthorized(NO_TOKEN))?;
    let grant = database.read(|connection| projects::grant(connection, token))?;
    grant.ok_or_else(|| unauthorized("the key or token is not known"))
}

/// The project that a path names, if the request may do that there. Whether there is such a project only they are told who have all.
pub(crate) fn project(
    database: &Database,
    name: &str,
    token: Option<&str>,
    scope: Scope,
) -> Result<(Project, Grant), Refused> {
    let token = token.ok_or_else(|| unauthorized(NO_TOKEN))?;
    let (project, grant) = database
        .read(|connection| Ok((projects::find(connection, name)?, projects::grant(connection, token)?)))?;
    let grant = grant.ok_or_else(|| unauthorized("the key or token is not known"))?;
    match project {
        Some(project) if grant.allows(scope, project.id) => Ok((project, grant)),
        Some(project) if grant.project.is_none_or(|own| own == project.id) => Err(needs(scope, grant.scope)),
        // Who has all projects may know which there are.
        None if grant.project.is_none() => Err(Refused::new(
            StatusCode::NOT_FOUND,
            "there is no such project: GET /api/v1/projects lists them",
        )),
        _ => Err(unauthorized("the key or token is not of this project")),
    }
}

/// Says which token is wanted, and where there are some.
pub(crate) fn needs(wanted: Scope, given: Scope) -> Refused {
    let (wanted, given) = (wanted.as_str(), given.as_str());
    let why = format!(
        "this needs a token for {wanted:?}, and the one that was sent is for {given:?}: the page of the project's set-up makes them"
    );
    Refused::new(StatusCode::FORBIDDEN, why)
}

fn unauthorized(message: &str) -> Refused {
    Refused::new(StatusCode::UNAUTHORIZED, message)
        .with(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
}

/// What all answers say to browsers: nothing from elsewhere, no scripts, no frames, no guesses.
pub(crate) async fn with_headers(app: App, request: Request, next: axum::middleware::Next) -> Response {
    let (is_api, method) = (request.uri().path().starts_with("/api/"), request.method().clone());
    let mut response = next.run(request).await;
    if is_api {
        response = with_detail(response, &method);
    }
    Counters::add(&app.counters.requests, 1);
    if response.status().is_client_error() || response.status().is_server_error() {
        Counters::add(&app.counters.refused, 1);
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// The router refuses methods without a word, and numbers in paths that are none in words of its own.
fn with_detail(response: Response, method: &Method) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE);
    match (response.status(), kind) {
        (StatusCode::METHOD_NOT_ALLOWED, None) => {
            // It adds the header later.
            let why = format!("this address does not take {method}: the header Allow says what it takes");
            Refused::new(StatusCode::METHOD_NOT_ALLOWED, why).into_response()
        }
        (StatusCode::BAD_REQUEST, Some(kind)) if kind.as_bytes().starts_with(b"text/plain") => {
            Refused::not_found().into_response()
        }
        _ => response,
    }
}

/// Attributes of style set call trees in; a style sheet can only be one of ours.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self'; \
form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        headers
    }

    #[test]
    fn keys_are_found_where_clients_put_them() {
        let sentry = "Sentry sentry_key=abc, sentry_version=7, sentry_client=sentry.python/2";
        assert_eq!(token(&headers("x-sentry-auth", sentry), None).as_deref(), Some("abc"));
        assert_eq!(token(&HeaderMap::new(), Some("a=1&sentry_key=q&b")).as_deref(), Some("q"));
        // `curl http://KEY@host/`
        assert_eq!(token(&headers("authorization", "Basic S0VZOg=="), None).as_deref(), Some("KEY"));
        assert_eq!(token(&headers("authorization", "Bearer t"), None).as_deref(), Some("t"));
        assert_eq!(token(&headers("authorization", "Basic ***"), None), None);
        assert_eq!(token(&HeaderMap::new(), None), None);
    }

    #[test]
    fn a_bomb_is_refused() {
        let limits = ServerLimits::default();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut packer, &vec![0; 32 << 20]).unwrap();
        let packed = packer.finish().unwrap();
        assert!(packed.len() < 64 << 10);
        let refused = unpacked(MultiGzDecoder::new(packed.as_slice()), packed.len(), &limits).unwrap_err();
        assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
        let cut = &packed[..packed.len() / 2];
        assert!(unpacked(MultiGzDecoder::new(cut), cut.len(), &limits).is_err());
    }
}
