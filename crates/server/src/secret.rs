//! Random keys and tokens, and the digests by which they are known.

use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;

/// A new token: 256 random bits as hexadecimal digits.
pub(crate) fn token() -> io::Result<String> {
    random::<32>()
}

/// A new key of clients, or a report's id: 128 random bits, as Sentry's are.
pub(crate) fn key() -> io::Result<String> {
    random::<16>()
}

fn random<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    getrandom::getrandom(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(hex(&bytes))
}

/// The SHA-256 of bytes, as hexadecimal digits. Tokens have 256 random bits, so that a slow hash would add nothing.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}
