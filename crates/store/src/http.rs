//! The HTTP client: one request, its answer, and what can go wrong with either.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use rustls::CertificateError;
use ureq::http::{Request, Response, StatusCode};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Body, Error};

/// A client that keeps its connections.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
}

/// What a server answered.
pub(crate) enum Answer {
    /// The file, and its length where the server states one.
    File(Option<u64>, Box<dyn Read>),
    /// It does not have it.
    NotThere,
    /// It refused this request.
    Refused(String),
    /// It could not be asked, or is broken or overloaded.
    Failed(String),
}

/// Redirects that are followed for one file.
const MAX_REDIRECTS: u32 = 5;

/// A server that is there accepts a connection long before that.
const CONNECT: Duration = Duration::from_secs(15);

impl Client {
    /// `timeout` bounds each wait for bytes. Proxies are those of the environment, certificates those of the system.
    pub(crate) fn new(timeout: Duration) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(provider);
        let config = Agent::config_builder()
            .user_agent(concat!("backtrail/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(MAX_REDIRECTS)
            .max_redirects_will_error(true)
            .timeout_resolve(Some(timeout))
            .timeout_connect(Some(timeout.min(CONNECT)))
            .timeout_recv_response(Some(timeout))
            .timeout_per_read(Some(timeout))
            .timeout_per_write(Some(timeout));
        Self { agent: config.build().into() }
    }

    /// Asks for a file. A server that is asked by TLS may not send the request on to one that is not.
    pub(crate) fn get(&self, url: &str) -> Answer {
        let is_secure = url.starts_with("https:");
        let request = self.agent.get(url).config().https_only(is_secure).build();
        let response = match request.call() {
            Ok(response) => response,
            Err(error) => return Answer::Failed(explain(&error)),
        };
        let status = response.status();
        match status {
            StatusCode::OK => {
                let length = response.body().content_length();
                let body = response.into_body().into_with_config().limit(u64::MAX);
                Answer::File(length, Box::new(body.reader()))
            }
            StatusCode::NOT_FOUND => Answer::NotThere,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
                Answer::Failed(format!("answered {status}"))
            }
            status if status.is_server_error() => Answer::Failed(format!("answered {status}")),
            status => Answer::Refused(format!("answered {status}")),
        }
    }
}

/// Asks a server that speaks JSON, such as `backtrail serve`.
#[derive(Debug)]
pub struct JsonClient {
    client: HttpClient,
    base: String,
    token: Option<String>,
}

/// A request's method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Method {
    /// Asks, with a body that says what for.
    Post,
    /// Gives a file.
    Put,
    /// Asks for a file.
    Get,
    /// Asks what is known of a file.
    Head,
    /// Removes a file.
    Delete,
}

/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 << 20;

impl JsonClient {
    /// `base` is the server's address, `token` what it gave for this; `timeout` bounds each wait for an answer.
    pub fn new(base: impl Into<String>, token: Option<String>, timeout: Duration) -> Self {
        let base = base.into().trim_end_matches('/').to_owned();
        Self { client: HttpClient::new(timeout), base, token }
    }

    /// Sends a body to a path that begins with a slash, and gives the status and what was answered.
    ///
    /// # Errors
    /// Why there is no answer, in words that do not have the address.
    pub fn send(&self, method: Method, path: &str, body: &[u8]) -> Result<(u16, Vec<u8>), String> {
        self.send_with(method, path, &[], body)
    }

    /// The same with further headers.
    ///
    /// # Errors
    /// Why there is no answer, in words that do not have the address.
    pub fn send_with(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(u16, Vec<u8>), String> {
        let answer = self.ask(method, path, headers, body)?;
        Ok((answer.status, answer.bytes(MAX_ANSWER)?))
    }

    /// The same, with all of the answer; its body is not read yet.
    ///
    /// # Errors
    /// Why there is no answer, in words that do not have the address.
    pub fn ask(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<HttpAnswer, String> {
        let url = format!("{}{path}", self.base);
        let token = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let token = token.iter().map(|token| ("Authorization", token.as_str()));
        let headers: Vec<_> = token.chain(headers.iter().copied()).collect();
        self.client.send(method, &url, &headers, HttpBody::Bytes(body))
    }
}

/// Asks any server, with headers of the caller's own.
#[derive(Debug)]
pub struct HttpClient {
    client: Client,
}

/// What a request brings.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum HttpBody<'b> {
    /// Nothing.
    None,
    /// These bytes.
    Bytes(&'b [u8]),
    /// A file, from its beginning.
    File(&'b File),
}

/// What a server answered.
#[allow(missing_debug_implementations, reason = "a body has nothing to show")]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// The header `Date`: the server's clock.
    pub date: Option<String>,
    /// How many bytes it says that the body has.
    pub length: Option<u64>,
    /// The header `Retry-After`: how long it wants not to be asked. A point in time, which the header may have too, is left out.
    pub retry_after: Option<Duration>,
    /// The header `Location`: where what was asked for is.
    pub location: Option<String>,
    /// The body.
    pub body: Box<dyn Read>,
}

impl HttpAnswer {
    /// The body's bytes, so many at most.
    ///
    /// # Errors
    /// Where it breaks off, or there are more.
    pub fn bytes(self, most: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = self.body.take(most.saturating_add(1)).read_to_end(&mut bytes);
        read.map_err(|error| format!("broke off its answer: {error}"))?;
        if bytes.len() as u64 > most {
            return Err(format!("answered more than {most} bytes"));
        }
        Ok(bytes)
    }
}

impl HttpClient {
    /// `timeout` bounds each wait: for a connection, an answer, and bytes in either direction.
    pub fn new(timeout: Duration) -> Self {
        Self { client: Client::new(timeout) }
    }

    /// Sends a request, and gives the answer, whatever its status. Redirects are not followed: they would take the headers to somebody
    /// else.
    ///
    /// # Errors
    /// Why there is no answer, in words that do not have the address.
    pub fn send(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: HttpBody<'_>,
    ) -> Result<HttpAnswer, String> {
        let method = match method {
            Method::Post => ureq::http::Method::POST,
            Method::Put => ureq::http::Method::PUT,
            Method::Get => ureq::http::Method::GET,
            Method::Head => ureq::http::Method::HEAD,
            Method::Delete => ureq::http::Method::DELETE,
        };
        let request = Request::builder().method(method).uri(url);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = match body {
            HttpBody::None => self.client.run(url, request.body(())),
            HttpBody::Bytes(bytes) => self.client.run(url, request.body(bytes)),
            HttpBody::File(file) => self.client.run(url, request.body(file)),
        };
        let response = answer.map_err(|error| explain(&error))?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let (date, location) = (header("date").map(str::to_owned), header("location").map(str::to_owned));
        let retry_after = header("retry-after").and_then(|seconds| seconds.trim().parse().ok());
        let retry_after = retry_after.map(Duration::from_secs);
        let (status, length) = (response.status().as_u16(), response.body().content_length());
        let body = Box::new(response.into_body().into_with_config().limit(u64::MAX).reader());
        Ok(HttpAnswer { status, date, length, retry_after, location, body })
    }
}

impl Client {
    fn run<B: ureq::AsSendBody>(
        &self,
        url: &str,
        request: Result<Request<B>, ureq::http::Error>,
    ) -> Result<Response<Body>, Error> {
        let request = self.agent.configure_request(request?);
        // A redirect would take tokens along to somebody else.
        self.agent.run(request.max_redirects(0).https_only(url.starts_with("https:")).build())
    }
}

/// The reason in words, without the address, which may have a password in it.
fn explain(error: &Error) -> String {
    let inner: Option<&(dyn std::error::Error + 'static)> = match error {
        Error::Rustls(tls) => Some(tls),
        Error::Io(io) => Some(io),
        _ => None,
    };
    if let Some(why) = inner.and_then(certificate_fault) {
        return format!("cannot be trusted: {why}");
    }
    if let Some(rustls::Error::InvalidMessage(_)) = inner.and_then(tls_fault) {
        return "cannot be asked: what it says is no TLS".to_owned();
    }
    match error {
        Error::Timeout(_) => "did not answer in time".to_owned(),
        Error::HostNotFound => "no such host".to_owned(),
        Error::TooManyRedirects => {
            format!("sent on from one address to the next more than {MAX_REDIRECTS} times")
        }
        Error::RequireHttpsOnly(_) => "sent on to a server without TLS".to_owned(),
        Error::BadUri(_) => "is no address of a server".to_owned(),
        Error::Io(error) => format!("cannot be asked: {error}"),
        error => format!("cannot be asked: {error}"),
    }
}

/// What is wrong with the certificate that a server has shown, if that is what is wrong: of an error of TLS, or one with such an error
/// behind it.
pub fn certificate_fault(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let rustls::Error::InvalidCertificate(fault) = tls_fault(error)? else { return None };
    Some(match fault {
        CertificateError::UnknownIssuer => {
            "no authority that this machine trusts has signed its certificate".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name".into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".into()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet".into()
        }
        // What webpki says of certificates that are signed by themselves, as openssl makes them.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "its certificate is signed by itself".into()
        }
        other => format!("its certificate is refused: {other}"),
    })
}

/// The error of TLS that an error is, or has behind it.
fn tls_fault<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| {
        // What is in an error of input and output is not what it calls its source.
        let inner = error.downcast_ref().and_then(io::Error::get_ref);
        error.downcast_ref().or_else(|| inner?.downcast_ref())
    })
}

/// Whether a body's bytes did not come in time.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::Timeout(_))) || error.kind() == io::ErrorKind::TimedOut
}
