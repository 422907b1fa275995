//! S3's protocol as far as files by their content need it: PUT, GET, DELETE, a list; signed (Signature Version 4), each with limits of
//! time and some attempts.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>

use crate::config::BucketOptions;
use crate::secret::{digest, hex};
use crate::time::{now, rfc3339};
use backtrail_core::Utc;
use backtrail_store::{HttpAnswer, HttpBody, HttpClient, Method};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// How long the bucket may be silent: for a connection, an answer, and bytes in either direction.
const SILENCE: Duration = Duration::from_secs(10);

/// How often a request is tried, and until when a further attempt begins.
const ATTEMPTS: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(15);

/// What is waited before the second attempt; before each further one three times as long.
const BACKOFF: Duration = Duration::from_millis(200);

/// How long nobody asks a bucket that failed.
const REST: Duration = Duration::from_secs(2);

/// Bytes of an answer that is no file.
const MAX_ANSWER: u64 = 8 << 20;

/// Pages of a list: each has 1,000 files.
const MAX_PAGES: usize = 1_000_000;

/// A bucket, or a part of it.
pub(super) struct Client {
    options: BucketOptions,
    http: HttpClient,
    standing: Mutex<Standing>,
}

#[derive(Default)]
struct Standing {
    /// When it failed, if it was not answered since.
    failed: Option<Instant>,
    /// Whether somebody asks it again.
    is_asked: bool,
}

/// Why the bucket did not do what it was asked for. It may do it later.
#[derive(Debug)]
pub(super) struct Unavailable {
    what: String,
    /// Whether it said no: for its keys, say. Somebody has to change something.
    pub(super) is_refusal: bool,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Unavailable {}

/// What came of one attempt.
enum Failed {
    NotThere,
    /// The next attempt may go better.
    Passing(String),
    /// It would not.
    Refused(String),
    /// The fault is this machine's.
    Local(io::Error),
}

/// A file of the bucket.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Its name, without the prefix.
    pub(super) name: String,
    /// When it was written, in seconds, by the bucket's clock.
    pub(super) written: i64,
}

/// What is sent.
#[derive(Clone, Copy)]
pub(super) enum Content<'c> {
    Bytes(&'c [u8]),
    File(&'c std::path::Path),
}

impl Client {
    pub(super) fn new(options: BucketOptions) -> Self {
        Self { options, http: HttpClient::new(SILENCE), standing: Mutex::default() }
    }

    /// Writes a file. When this returns the bucket has it. The bucket compares it with its digest: some with the one that is signed, others
    /// with the checksum alone.
    pub(super) fn put(&self, name: &str, content: Content<'_>, digest: &str) -> io::Result<()> {
        self.attempts(|| {
            let file = match content {
                Content::File(path) => Some(File::open(path).map_err(Failed::Local)?),
                Content::Bytes(_) => None,
            };
            let body = match (content, &file) {
                (Content::Bytes(bytes), _) => HttpBody::Bytes(bytes),
                (Content::File(_), Some(file)) => HttpBody::File(file),
                (Content::File(_), None) => HttpBody::None,
            };
            match self.ask(Method::Put, name, "", body, digest) {
                Err(Failed::NotThere) => Err(Failed::Refused("answered 404 to a file".to_owned())),
                answer => answer.and_then(drained),
            }
        })
    }

    /// Reads a file by `read`, which says whether it came whole.
    pub(super) fn get<T>(&self, name: &str, read: impl Fn(HttpAnswer) -> Result<T, String>) -> io::Result<T> {
        self.attempts(|| {
            let answer = self.ask(Method::Get, name, "", HttpBody::None, EMPTY)?;
            read(answer).map_err(Failed::Passing)
        })
    }

    /// Removes a file, if it is there.
    pub(super) fn delete(&self, name: &str) -> io::Result<()> {
        let deleted =
            self.attempts(|| self.ask(Method::Delete, name, "", HttpBody::None, EMPTY).and_then(drained));
        match deleted {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            deleted => deleted,
        }
    }

    /// Calls `each` with every file below the prefix, and returns the bucket's clock, in seconds, of the time before.
    pub(super) fn list(&self, mut each: impl FnMut(Listed)) -> io::Result<i64> {
        let prefix = self.options.path_of("");
        let (mut clock, mut token) = (None, None::<String>);
        for _ in 0..MAX_PAGES {
            let mut query = String::new();
            if let Some(token) = &token {
                let _ = write!(query, "continuation-token={}&", encoded(token));
            }
            let _ = write!(query, "list-type=2&prefix={}", encoded(&prefix));
            let page = self.attempts(|| {
                let answer = self.ask(Method::Get, "", &query, HttpBody::None, EMPTY)?;
                let date = answer.date.as_deref().and_then(http_date);
                let bytes = answer.bytes(MAX_ANSWER).map_err(Failed::Passing)?;
                let text = String::from_utf8(bytes).map_err(|_| Failed::Passing(NO_LIST.to_owned()))?;
                page(&text, &prefix)
                    .map(|(listed, next)| (listed, next, date))
                    .ok_or_else(|| Failed::Passing(NO_LIST.to_owned()))
            });
            let (listed, next, date) = page?;
            clock = clock.or(date);
            listed.into_iter().for_each(&mut each);
            if next.is_none() {
                return clock.ok_or_else(|| self.failure("answers without a Date", false));
            }
            token = next;
        }
        Err(self.failure("its list does not end", false))
    }

    /// Does it in some attempts. Once a bucket failed, one asks it again after a while, and nobody else until that one was answered: those
    /// who wait would take up all threads.
    fn attempts<T>(&self, attempt: impl Fn() -> Result<T, Failed>) -> io::Result<T> {
        {
            let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(failed) = standing.failed {
                if standing.is_asked || failed.elapsed() < REST {
                    return Err(self.failure("failed a moment ago", false));
                }
                standing.is_asked = true;
            }
        }
        let (done, failed) = match self.some_attempts(attempt) {
            Ok(done) => (Ok(done), None),
            Err(Failed::NotThere) => (Err(io::ErrorKind::NotFound.into()), None),
            Err(Failed::Local(error)) => (Err(error), None),
            Err(Failed::Refused(why)) => (Err(self.failure(&why, true)), None),
            Err(Failed::Passing(why)) => (Err(self.failure(&why, false)), Some(Instant::now())),
        };
        *self.standing.lock().unwrap_or_else(PoisonError::into_inner) = Standing { failed, is_asked: false };
        done
    }

    fn some_attempts<T>(&self, attempt: impl Fn() -> Result<T, Failed>) -> Result<T, Failed> {
        let begun = Instant::now();
        let mut wait = BACKOFF;
        for _ in 1..ATTEMPTS {
            match attempt() {
                Err(Failed::Passing(why)) if begun.elapsed() + wait > PATIENCE => {
                    return Err(Failed::Passing(why));
                }
                Err(Failed::Passing(_)) => {}
                done => return done,
            }
            // Those that failed together do not come back together.
            let spread = wait.mul_f64(f64::from(begun.elapsed().subsec_nanos() % 1000) / 2000.0);
            std::thread::sleep(wait / 2 + spread);
            wait *= 3;
        }
        attempt()
    }

    /// Says which bucket it was. Neither keys nor what the bucket wrote about them is in it.
    pub(super) fn failure(&self, why: &str, is_refusal: bool) -> io::Error {
        let BucketOptions { bucket, endpoint, .. } = &self.options;
        let at = endpoint.as_ref().map(|endpoint| format!(" at {endpoint}")).unwrap_or_default();
        io::Error::other(Unavailable { what: format!("the bucket {bucket}{at}: {why}"), is_refusal })
    }

    fn ask(
        &self,
        method: Method,
        name: &str,
        query: &str,
        body: HttpBody<'_>,
        digest: &str,
    ) -> Result<HttpAnswer, Failed> {
        let (origin, host) = self.options.origin();
        let path = match (name, self.options.is_in_path()) {
            ("", true) => format!("/{}", self.options.bucket),
            ("", false) => "/".to_owned(),
            (name, true) => format!("/{}/{}", self.options.bucket, self.options.path_of(name)),
            (name, false) => format!("/{}", self.options.path_of(name)),
        };
        let time = rfc3339(now()).replace(['-', ':'], "");
        let checksum = matches!(method, Method::Put).then(|| checksum(digest));
        // In the order of the signature.
        let mut headers = vec![("host", host.as_str())];
        headers.extend(checksum.as_deref().map(|checksum| ("x-amz-checksum-sha256", checksum)));
        headers.extend([("x-amz-content-sha256", digest), ("x-amz-date", &time)]);
        headers.extend(self.options.session_token.as_deref().map(|token| ("x-amz-security-token", token)));
        let signed = sign(&self.options, verb(method), &path, query, &headers, digest, &time);
        headers.push(("authorization", &signed));
        let question = if query.is_empty() { "" } else { "?" };
        let url = format!("{origin}{path}{question}{query}");
        let answer = self.http.send(method, &url, &headers, body).map_err(Failed::Passing)?;
        let status = answer.status;
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let text = answer.bytes(MAX_ANSWER).unwrap_or_default();
        Err(refused(status, &String::from_utf8_lossy(&text)))
    }
}

/// What a status says that is no success, with the error that came along.
fn refused(status: u16, text: &str) -> Failed {
    // Its code alone, and a region: further on a bucket may repeat keys.
    let plain = |name: &str, others: &str| {
        let value = between(text, &format!("<{name}>"), &format!("</{name}>")).unwrap_or_default();
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || others.contains(*c);
        value.chars().filter(is_plain).take(60).collect::<String>()
    };
    let code = plain("Code", "");
    if (status, code.as_str()) == (404, "NoSuchKey") {
        return Failed::NotThere;
    }
    let space = if code.is_empty() { "" } else { " " };
    let why = format!("answered {status}{space}{code}");
    match (status, code.as_str()) {
        (408 | 409 | 429 | 500..=599, _) | (400, "RequestTimeout" | "IncompleteBody") => Failed::Passing(why),
        // The file was broken on its way.
        (400, "BadDigest" | "InvalidDigest" | "XAmzContentSHA256Mismatch") => Failed::Passing(why),
        _ => {
            let advice = advice(status, &code, &plain("Region", "-"));
            let colon = if advice.is_empty() { "" } else { ": " };
            Failed::Refused(format!("{why}{colon}{advice}"))
        }
    }
}

/// What somebody has to do about it.
fn advice(status: u16, code: &str, region: &str) -> String {
    let advice = match code {
        "NoSuchBucket" => "make the bucket first",
        "InvalidAccessKeyId" => "it knows no key with the id in AWS_ACCESS_KEY_ID",
        "SignatureDoesNotMatch" => {
            "AWS_SECRET_ACCESS_KEY is not the key of AWS_ACCESS_KEY_ID, or AWS_REGION not its region"
        }
        "AccessDenied" | "AllAccessDisabled" => {
            "AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not right, or the key may not get, put, delete and list files here"
        }
        "ExpiredToken" | "InvalidToken" => "AWS_SESSION_TOKEN holds no more, or is of another key",
        "RequestTimeTooSkewed" => "its clock and this machine's are too far apart",
        "QuotaExceeded" => "it takes no more until there is room",
        "EntityTooLarge" => "the file is larger than it takes in one request",
        "AuthorizationHeaderMalformed"
        | "PermanentRedirect"
        | "TemporaryRedirect"
        | "IllegalLocationConstraintException" => {
            return match region {
                "" => "AWS_REGION is to be the bucket's region".to_owned(),
                region => format!("AWS_REGION is to be {region}"),
            };
        }
        _ if status == 301 || status == 307 => "AWS_REGION is to be the bucket's region",
        "" => "is AWS_ENDPOINT_URL the address of a service of S3's protocol?",
        _ => "",
    };
    advice.to_owned()
}

const NO_LIST: &str = "answered with no list of files";

/// The digest of nothing.
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// An answer that says nothing, read to its end: then the connection serves the next one.
fn drained(answer: HttpAnswer) -> Result<(), Failed> {
    answer.bytes(MAX_ANSWER).map(drop).map_err(Failed::Passing)
}

fn verb(method: Method) -> &'static str {
    match method {
        Method::Put => "PUT",
        Method::Delete => "DELETE",
        _ => "GET",
    }
}

/// The digest as S3 writes checksums.
fn checksum(digest: &str) -> String {
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).unwrap_or_default(), 16).unwrap_or_default()
    };
    STANDARD.encode(digest.as_bytes().chunks(2).map(byte).collect::<Vec<_>>())
}

/// The value of `Authorization`. Headers are in the order of their names.
fn sign(
    options: &BucketOptions,
    verb: &str,
    path: &str,
    query: &str,
    headers: &[(&str, &str)],
    content: &str,
    time: &str,
) -> String {
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let headers: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let request = format!("{verb}\n{path}\n{query}\n{headers}\n{names}\n{content}");
    let (day, region) = (time.get(..8).unwrap_or_default(), &options.region);
    let scope = format!("{day}/{region}/s3/aws4_request");
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", digest(request.as_bytes()));
    let mut key = format!("AWS4{}", options.secret_key).into_bytes();
    for part in [day, region, "s3", "aws4_request"] {
        key = hmac(&key, part.as_bytes());
    }
    let signature = hex(&hmac(&key, text.as_bytes()));
    let id = &options.access_key;
    format!("AWS4-HMAC-SHA256 Credential={id}/{scope},SignedHeaders={names},Signature={signature}")
}

fn hmac(key: &[u8], bytes: &[u8]) -> Vec<u8> {
    // A key of any length is one.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(bytes);
    mac.finalize().into_bytes().to_vec()
}

/// As queries want it: everything but letters, digits and four signs.
fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => {
                let _ = write!(encoded, "%{other:02X}");
            }
        }
        encoded
    })
}

fn between<'t>(text: &'t str, start: &str, end: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// The files of a page of a list, and the token of the next page.
fn page(text: &str, prefix: &str) -> Option<(Vec<Listed>, Option<String>)> {
    let is_whole = text.contains("<ListBucketResult") && text.contains("</ListBucketResult>");
    let is_cut = between(text, "<IsTruncated>", "</IsTruncated>")? == "true";
    let next = between(text, "<NextContinuationToken>", "</NextContinuationToken>").map(unescaped);
    if !is_whole || is_cut != next.is_some() {
        return None;
    }
    let mut listed = Vec::new();
    for entry in text.split("<Contents>").skip(1) {
        let name = unescaped(between(entry, "<Key>", "</Key>")?);
        let written = seconds(between(entry, "<LastModified>", "</LastModified>")?)?;
        if let Some(name) = name.strip_prefix(prefix) {
            listed.push(Listed { name: name.to_owned(), written });
        }
    }
    Some((listed, next))
}

fn unescaped(text: &str) -> String {
    let plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&#34;", "\"");
    plain.replace("&apos;", "'").replace("&#39;", "'").replace("&amp;", "&")
}

/// Seconds since 1970 of `2026-01-02T03:04:05.000Z`.
fn seconds(text: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let time = number(11..13)? * 3600 + number(14..16)? * 60 + number(17..19)?;
    (text.ends_with('Z') && (1..=12).contains(&month)).then(|| Utc::days_to(year, month, day) * 86_400 + time)
}

/// The same of `Fri, 02 Jan 2026 03:04:05 GMT`.
fn http_date(text: &str) -> Option<i64> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of a list in Amazon's documentation of the signature.
    #[test]
    fn signatures_are_those_of_the_documentation() {
        let mut options = BucketOptions::new("examplebucket", "AKIAIOSFODNN7EXAMPLE", "");
        options.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned();
        let (host, time) = ("examplebucket.s3.amazonaws.com", "20130524T000000Z");
        let headers = [("host", host), ("x-amz-content-sha256", EMPTY), ("x-amz-date", time)];
        let signed = sign(&options, "GET", "/", "max-keys=2&prefix=J", &headers, EMPTY, time);
        let expected = "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,\
            SignedHeaders=host;x-amz-content-sha256;x-amz-date,\
            Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
        assert_eq!(signed, expected);
        assert_eq!(digest(b""), EMPTY);
        assert_eq!(checksum(EMPTY), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    /// Answers as Ceph 16, Garage 2.5, SeaweedFS 4.48 and Amazon's documentation have them, and of servers of another sort.
    #[test]
    fn errors_say_what_to_do() {
        let of = |status, text: &str| match refused(status, text) {
            Failed::NotThere => "not there".to_owned(),
            Failed::Passing(why) => format!("passing: {why}"),
            Failed::Refused(why) => format!("refused: {why}"),
            Failed::Local(error) => error.to_string(),
        };
        let coded = |status, code: &str| {
            of(status, &format!("<Error><Code>{code}</Code><Message>SECRET</Message></Error>"))
        };
        assert_eq!(coded(404, "NoSuchKey"), "not there");
        assert_eq!(coded(404, "NoSuchBucket"), "refused: answered 404 NoSuchBucket: make the bucket first");
        for passing in ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "RequestTimeout"] {
            assert_eq!(coded(400, passing), format!("passing: answered 400 {passing}"));
        }
        assert_eq!(of(502, "<html>"), "passing: answered 502");
        assert!(coded(403, "InvalidAccessKeyId").contains("AWS_ACCESS_KEY_ID"));
        assert!(coded(403, "SignatureDoesNotMatch").contains("AWS_SECRET_ACCESS_KEY"));
        assert!(coded(403, "RequestTimeTooSkewed").contains("clock"));
        assert!(coded(301, "PermanentRedirect").ends_with("AWS_REGION is to be the bucket's region"));
        let region = "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>";
        assert!(of(400, region).ends_with("AWS_REGION is to be eu-west-1"));
        // Whoever knows nothing of S3 does not say that a file is lost.
        for status in [404, 405] {
            assert!(
                of(status, "<h1>not found</h1>")
                    .ends_with("is AWS_ENDPOINT_URL the address of a service of S3's protocol?")
            );
        }
        assert_eq!(coded(418, "Teapot"), "refused: answered 418 Teapot");
    }

    #[test]
    fn times_are_read() {
        assert_eq!(seconds("2024-02-29T23:59:59.000Z"), Some(1_709_251_199));
        assert_eq!(seconds("2024-03-01T00:00:00Z"), Some(1_709_251_200));
        assert_eq!(http_date("Thu, 29 Feb 2024 23:59:59 GMT"), Some(1_709_251_199));
        assert_eq!(seconds("1970-01-01T00:00:00Z"), Some(0));
        for broken in
            ["", "2024", "2024-13-01T00:00:00Z", "2024-03-01T00:00:00+01:00", "é024-03-01T00:00:00Z"]
        {
            assert_eq!(seconds(broken), None, "{broken}");
            assert_eq!(http_date(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_list_is_read_whole_or_not_at_all() {
        let entry = "<Contents><Key>p/ab/cd</Key><LastModified>1970-01-01T00:01:00.000Z</LastModified><Size>1</Size></Contents>";
        let all = format!(
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\"><IsTruncated>true</IsTruncated>{entry}\
             <NextContinuationToken>a&amp;b</NextContinuationToken></ListBucketResult>"
        );
        let one = Listed { name: "ab/cd".to_owned(), written: 60 };
        assert_eq!(page(&all, "p/"), Some((vec![one], Some("a&b".to_owned()))));
        for end in 0..all.len() {
            assert_eq!(page(&all[..end], "p/"), None, "{end}");
        }
        assert_eq!(encoded("a/b+c é"), "a%2Fb%2Bc%20%C3%A9");
    }
}
