//! PostgreSQL's address, and how the connection to it is made: by TLS, as libpq's words `sslmode`, `sslrootcert`, `sslcert` and `sslkey`
//! say. PostgreSQL 17, "34.19. SSL Support".
//!
//! Other than libpq, whose default takes whatever it is offered: without `sslmode` a host is asked by TLS and has to show that it is the
//! one that is named. What stays on this machine needs none.

use super::tls::Tls;
use crate::database::{DatabaseError, Result};
use postgres::config::{Host, SslMode};
use postgres::{Client, Config, NoTls};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Where a database is, and how to get there.
pub(super) struct Address {
    config: Config,
    tls: Option<Tls>,
    /// Whether a host that has no TLS is refused though nobody asked for that.
    is_default: bool,
}

/// What a host has to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// No TLS.
    Disable,
    /// Nothing: TLS if it has that.
    Prefer,
    /// Nothing, by TLS.
    Require,
    /// A certificate that a root signed.
    VerifyCa,
    /// One that is for this host.
    VerifyFull,
}

/// What an address says of TLS, which the driver knows less of.
#[derive(Default)]
struct Told {
    mode: Option<Mode>,
    roots: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Address {
    /// Reads an address, and the files that it names. Errors never repeat it: it may have a password in it.
    pub(super) fn parse(url: &str) -> Result<Self> {
        if url.matches('@').count() > 1 {
            return Err(wrong(
                "one sign @ at most, before the host: in a name or a password it is written %40",
            ));
        }
        let (rest, told) = Told::taken_from(url)?;
        let mut config: Config = rest.parse()?;
        config.application_name("backtrail").keepalives_idle(Duration::from_secs(10));
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        let mode = match told.mode {
            // As with libpq there is no TLS where there is no network.
            _ if config.get_hosts().iter().all(is_socket) && config.get_hostaddrs().is_empty() => {
                Mode::Disable
            }
            Some(mode) => mode,
            None if is_here(&config) && told.roots.is_none() => Mode::Disable,
            None => Mode::VerifyFull,
        };
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        let is_default = told.mode.is_none();
        let tls = if mode == Mode::Disable { None } else { Some(told.tls(mode)?) };
        Ok(Self { config, tls, is_default })
    }

    pub(super) fn connect(&self) -> Result<Client> {
        let connected = match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        };
        connected.map_err(|error| match tls_fault(&error) {
            Some(Fault::None) if self.is_default => DatabaseError::Query(
                "its host has no TLS, which a connection over a network needs unless the address has ?sslmode=disable".into(),
            ),
            Some(Fault::None) => DatabaseError::Query("its host has no TLS, which sslmode wants".into()),
            Some(Fault::Of(why)) => DatabaseError::Query(format!("TLS to its host: {why}").into()),
            None => error.into(),
        })
    }
}

/// What went wrong with TLS.
enum Fault {
    /// There is none.
    None,
    Of(String),
}

fn tls_fault(error: &postgres::Error) -> Option<Fault> {
    // What the driver says has no type of its own.
    if error.source().is_some_and(|source| source.to_string() == "server does not support TLS") {
        return Some(Fault::None);
    }
    let fault = backtrail_store::certificate_fault(error)?;
    Some(Fault::Of(fault))
}

fn wrong(expected: &str) -> DatabaseError {
    DatabaseError::Address(format!("the database's address: expected {expected}"))
}

fn is_socket(host: &Host) -> bool {
    !matches!(host, Host::Tcp(_))
}

/// Whether nothing of it goes over a network.
fn is_here(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
    }
    let is_loopback = |name: &str| {
        name == "localhost" || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
    };
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_loopback(name),
        _ => true,
    })
}

impl Told {
    /// Takes what is about TLS out of an address.
    fn taken_from(url: &str) -> Result<(String, Self)> {
        let mut told = Self::default();
        let options = url.find('@').unwrap_or(0);
        let options = url.get(options..).and_then(|rest| rest.find('?')).map(|at| options + at);
        let Some((address, options)) = options.and_then(|at| url.split_at_checked(at)) else {
            return Ok((url.to_owned(), told));
        };
        let mut others = Vec::new();
        for option in options.trim_start_matches('?').split('&') {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let place = match name {
                "sslmode" => {
                    told.mode = Some(Mode::parse(value)?);
                    continue;
                }
                "sslrootcert" => &mut told.roots,
                "sslcert" => &mut told.certificate,
                "sslkey" => &mut told.key,
                _ => {
                    others.push(option);
                    continue;
                }
            };
            *place = Some(decoded(value).ok_or_else(|| wrong("%XX in the names of files"))?);
        }
        let others = others.join("&");
        let separator = if others.is_empty() { "" } else { "?" };
        Ok((format!("{address}{separator}{others}"), told))
    }

    fn tls(self, mode: Mode) -> Result<Tls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let failed = |error: rustls::Error| DatabaseError::Query(format!("TLS: {error}").into());
        let verifier: Arc<dyn ServerCertVerifier> = match (mode, self.roots.as_deref()) {
            (Mode::VerifyFull, None | Some("system")) => {
                Arc::new(rustls_platform_verifier::Verifier::new(Arc::clone(&provider)).map_err(failed)?)
            }
            // Anybody can have a certificate of one of these, so that alone it shows nothing.
            (Mode::VerifyCa, None) => {
                return Err(wrong("sslrootcert=FILE with sslmode=verify-ca, or verify-full"));
            }
            (_, Some("system")) => return Err(wrong("sslmode=verify-full with sslrootcert=system")),
            (_, roots) => {
                let roots = roots.map(Roots::read).transpose()?;
                let is_named = mode == Mode::VerifyFull;
                Arc::new(Verifier { roots, is_named, provider: Arc::clone(&provider) })
            }
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match (self.certificate, self.key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(certificate), Some(key)) => {
                let unreadable = |error| {
                    // The file may have a key in it, and is not repeated.
                    DatabaseError::Address(format!(
                        "{key}: expected a key in PEM that needs no password: {error}"
                    ))
                };
                let private = PrivateKeyDer::from_pem_file(&key).map_err(unreadable)?;
                let chain = certificates(&certificate)?;
                builder
                    .with_client_auth_cert(chain, private)
                    .map_err(|error| DatabaseError::Address(format!("{certificate}, {key}: {error}")))?
            }
            _ => return Err(wrong("sslcert and sslkey together")),
        };
        // Servers from PostgreSQL 17 on want it where TLS begins at once.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Tls::new(config))
    }
}

impl Mode {
    fn parse(text: &str) -> Result<Self> {
        Ok(match text {
            "disable" => Self::Disable,
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => return Err(wrong("sslmode=disable, prefer, require, verify-ca or verify-full")),
        })
    }
}

/// A value of an address; `None` where it has no such signs.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        // Which would take a sign as well.
        let digits = Some(digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

/// The certificates of a file, of which there is one at least.
fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>> {
    let unreadable = |why: &dyn std::fmt::Display| {
        DatabaseError::Address(format!("{file}: expected certificates in PEM: {why}"))
    };
    let all = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let all = all.map_err(|error| unreadable(&error))?;
    if all.is_empty() { Err(unreadable(&"it has none")) } else { Ok(all) }
}

/// Those who sign certificates.
#[derive(Debug)]
struct Roots {
    store: RootCertStore,
    all: Vec<CertificateDer<'static>>,
}

impl Roots {
    fn read(file: &str) -> Result<Self> {
        let all = certificates(file)?;
        let mut store = RootCertStore::empty();
        for certificate in &all {
            store
                .add(certificate.clone())
                .map_err(|error| DatabaseError::Address(format!("{file}: {error}")))?;
        }
        Ok(Self { store, all })
    }
}

/// Looks at what a host shows.
#[derive(Debug)]
struct Verifier {
    roots: Option<Roots>,
    /// Whether the certificate has to be for the host's name.
    is_named: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        further: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.roots else { return Ok(ServerCertVerified::assertion()) };
        let certificate = ParsedCertificate::try_from(shown)?;
        // One that signed itself, and that is trusted as such, is no certificate that a root signed for a server.
        if !roots.all.iter().any(|root| root.as_ref() == shown.as_ref()) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&certificate, &roots.store, further, now, algorithms)?;
        }
        if self.is_named {
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, shown, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Over a network hosts have to show who they are, unless somebody says otherwise; what stays on the machine needs no TLS.
    #[test]
    fn without_a_word_a_network_needs_tls() {
        let tls = |url: &str| {
            let address = Address::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
            (address.config.get_ssl_mode(), address.tls.is_some())
        };
        for url in [
            "postgresql://db.example.org/d",
            "postgresql://localhost,db.example.org/d",
            "postgresql://localhost/d?hostaddr=192.0.2.1",
            "postgresql://localhost.example.org/d",
            "postgresql://u:p@[2001:db8::1]:5433/d?connect_timeout=3",
            "postgresql://192.0.2.1/d?sslmode=verify-full&connect_timeout=3",
        ] {
            assert_eq!(tls(url), (SslMode::Require, true), "{url}");
        }
        for url in [
            "postgresql://localhost/d",
            "postgresql://u:p@127.0.0.1:5433,[::1]/d",
            "postgresql://db.example.org/d?hostaddr=127.0.0.1",
            "postgresql://u@%2Fvar%2Frun%2Fpostgresql/d",
            "postgresql:///d?host=/var/run/postgresql&sslmode=require",
            "postgresql://db.example.org/d?sslmode=disable",
        ] {
            assert_eq!(tls(url), (SslMode::Disable, false), "{url}");
        }
        assert_eq!(tls("postgresql://db.example.org/d?sslmode=prefer"), (SslMode::Prefer, true));
    }

    #[test]
    fn what_is_not_about_tls_is_left_to_the_driver() {
        let taken = |url: &str| Told::taken_from(url).unwrap();
        let (rest, told) =
            taken("postgresql://u:a?b@h/d?connect_timeout=3&sslmode=require&sslkey=a%2Fb&options=-c%20x");
        assert_eq!(rest, "postgresql://u:a?b@h/d?connect_timeout=3&options=-c%20x");
        assert_eq!(
            (told.mode, told.key.as_deref(), told.certificate),
            (Some(Mode::Require), Some("a/b"), None)
        );
        assert_eq!(taken("postgresql://h/d?sslmode=disable").0, "postgresql://h/d");
        for wrong in ["%", "%1", "%zz", "a%2", "%ff", "%+1"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
        assert_eq!(decoded("%c3%a9%2F+").as_deref(), Some("é/+"));
    }
}
