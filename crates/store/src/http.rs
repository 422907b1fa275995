//! The HTTP client: one request, its answer, and what can go wrong with either.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use rustls::CertificateError;
use ureq::http::StatusCode;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Error};

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
            .timeout_per_read(Some(timeout));
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
    client: Client,
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
}

/// Bytes of an answer that are read.
const MAX_ANSWER: u64 = 64 << 20;

impl JsonClient {
    /// `base` is the server's address, `token` what it gave for this; `timeout` bounds each wait for an answer.
    pub fn new(base: impl Into<String>, token: Option<String>, timeout: Duration) -> Self {
        let base = base.into().trim_end_matches('/').to_owned();
        Self { client: Client::new(timeout), base, token }
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
        let url = format!("{}{path}", self.base);
        let request = match method {
            Method::Post => self.client.agent.post(&url),
            Method::Put => self.client.agent.put(&url),
        };
        // A redirect would take the token along to somebody else.
        let request = request.config().max_redirects(0).https_only(url.starts_with("https:")).build();
        let request = match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send(body).map_err(|error| explain(&error))?;
        let status = response.status().as_u16();
        let mut answer = Vec::new();
        let mut reader = response.into_body().into_with_config().limit(MAX_ANSWER).reader();
        reader.read_to_end(&mut answer).map_err(|error| format!("broke off its answer: {error}"))?;
        Ok((status, answer))
    }
}

/// The reason in words, without the address, which may have a password in it.
fn explain(error: &Error) -> String {
    if let Some(why) = certificate_fault(error) {
        return format!("cannot be trusted: {why}");
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

/// What is wrong with the certificate that a server has shown, if that is what is wrong.
fn certificate_fault(error: &Error) -> Option<String> {
    let tls = match error {
        Error::Rustls(tls) => Some(tls),
        Error::Io(io) => io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()),
        _ => None,
    };
    let rustls::Error::InvalidCertificate(fault) = tls? else { return None };
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

/// Whether a body's bytes did not come in time.
pub(crate) fn is_timeout(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::Timeout(_))) || error.kind() == io::ErrorKind::TimedOut
}
