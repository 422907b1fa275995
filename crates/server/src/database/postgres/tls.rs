//! Joins the driver, which knows no TLS, and rustls.

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sha2::{Digest as _, Sha256, Sha384, Sha512};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsConnector, client};

/// Connects by TLS.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(config: ClientConfig) -> Self {
        Self(Arc::new(config).into())
    }
}

/// The same to one host.
pub(super) struct ToHost {
    connector: TlsConnector,
    /// `None` where it has no name that a certificate could have: it is a socket of this machine, which is not asked by TLS.
    name: Option<ServerName<'static>>,
}

/// What is read and written by TLS.
pub(super) struct Encrypted<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Encrypted<S>;
    type TlsConnect = ToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<ToHost> {
        Ok(ToHost { connector: self.0.clone(), name: ServerName::try_from(host.to_owned()).ok() })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ToHost {
    type Stream = Encrypted<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name =
                self.name.ok_or_else(|| io::Error::other("the host's name is none of a certificate"))?;
            Ok(Encrypted(self.connector.connect(name, stream).await?))
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Encrypted<S> {
    fn channel_binding(&self) -> ChannelBinding {
        let shown = self.0.get_ref().1.peer_certificates().and_then(<[_]>::first);
        match shown.and_then(|certificate| end_point(certificate)) {
            Some(digest) => ChannelBinding::tls_server_end_point(digest),
            None => ChannelBinding::none(),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Encrypted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, to)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Encrypted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

/// What a password's proof is bound to, so that nobody between can pass it on: the certificate's digest, by the hash that it is signed
/// with, and by SHA-256 where that is a weaker one (RFC 5929, section 4.1). `None` of signatures that have no such hash.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    Some(match signature_of(certificate)? {
        // RFC 8017, appendix C, and RFC 5758, section 3.2: with SHA-1, then 256, 384 and 512 bits.
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05 | 0x0b]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02] => Sha256::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03] => Sha384::digest(certificate).to_vec(),
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d]
        | [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04] => Sha512::digest(certificate).to_vec(),
        _ => return None,
    })
}

/// The object identifier of the algorithm that a certificate is signed by (RFC 5280, section 4.1): after what is signed.
fn signature_of(certificate: &[u8]) -> Option<&[u8]> {
    const SEQUENCE: u8 = 0x30;
    const OBJECT_IDENTIFIER: u8 = 0x06;
    let (certificate, _) = element(SEQUENCE, certificate)?;
    let (_, rest) = element(SEQUENCE, certificate)?;
    let (algorithm, _) = element(SEQUENCE, rest)?;
    Some(element(OBJECT_IDENTIFIER, algorithm)?.0)
}

/// The content of a DER element (X.690) with a tag of one byte, and what follows it.
fn element(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = length.iter().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
            (usize::try_from(length).ok()?, rest)
        }
        _ => return None,
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_testkit::fixtures;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    #[test]
    fn a_certificate_tells_how_it_is_signed() {
        let file = fixtures().join("tls/server.pem");
        let certificate = CertificateDer::from_pem_file(file).unwrap();
        // `openssl x509 -text` says ecdsa-with-SHA256.
        assert_eq!(signature_of(&certificate).unwrap(), [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]);
        assert_eq!(end_point(&certificate).unwrap(), Sha256::digest(&certificate).to_vec());
        for end in 0..certificate.len() {
            assert_eq!(end_point(&certificate[..end]), None, "cut at {end}");
        }
        // One that is signed by the next algorithm has a longer digest; by an unknown one it has none.
        let mut other = certificate.to_vec();
        let at = other.windows(8).rposition(|bytes| bytes == signature_of(&certificate).unwrap()).unwrap();
        for (algorithm, length) in [(3, Some(48)), (4, Some(64)), (9, None)] {
            other[at + 7] = algorithm;
            assert_eq!(end_point(&other).map(|digest| digest.len()), length);
        }
    }
}
