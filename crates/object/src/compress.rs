//! Compressed sections: zlib, zstd, xz; always bounded.

use std::io::Read;

use flate2::{Decompress, FlushDecompress, Status};
use lzma_rust2::XzReader;
use ruzstd::decoding::FrameDecoder;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// Deflate cannot give more than 258 bytes for 2 bits.
const ZLIB_RATIO: u64 = 1032;
/// A zstd block of 4 bytes can stand for 128 KiB (RFC 8878, "RLE_Block", 3.1.1.2).
const ZSTD_RATIO: u64 = 32 * 1024;
/// No large section of debug info comes near: the best one of 341 of Debian's `libc6-dbg`, of 160 kB, has 83.
const BOMB_RATIO: u64 = 200;
/// Memory for an xz stream: the dictionary of `xz -9`, which is 64 MiB, and what decoding takes besides.
const XZ_MEMORY_KIB: u32 = 66 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Zlib,
    Zstd,
}

/// Bytes that decompress to `size` bytes, as their header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compressed<'d> {
    pub(crate) format: Format,
    pub(crate) bytes: &'d [u8],
    pub(crate) size: u64,
    /// Where `bytes` lie in the outermost file.
    pub(crate) offset: u64,
}

impl Compressed<'_> {
    /// The decompressed bytes: exactly `size`. Whether so many may be had is the caller's to decide, see
    /// [`Budget`](crate::budget::Budget).
    pub(crate) fn decompress(&self) -> Result<Vec<u8>> {
        let mut out = self.reserve()?;
        match self.format {
            Format::Zlib => self.zlib(&mut out)?,
            Format::Zstd => self.zstd(&mut out)?,
        }
        if out.len() as u64 == self.size {
            return Ok(out);
        }
        Err(self.broken(format!("expected {} bytes, got {}", self.size, out.len())))
    }

    /// Whether only data that was made to exhaust memory compresses as well as this.
    pub(crate) fn is_bomb(&self, limits: &Limits) -> bool {
        let given = self.bytes.len() as u64;
        self.size > limits.decompressed_freely && self.size / BOMB_RATIO > given
    }

    /// An empty vector for the result, once the size that the header claims is possible.
    fn reserve(&self) -> Result<Vec<u8>> {
        let (size, offset) = (self.size, self.offset);
        let ratio = if self.format == Format::Zlib { ZLIB_RATIO } else { ZSTD_RATIO };
        let given = self.bytes.len() as u64;
        if size / ratio > given {
            let detail =
                format!("{given} compressed bytes cannot hold the {size} bytes that their header claims");
            return Err(Error::malformed(offset, detail));
        }
        let mut out = Vec::new();
        let capacity = usize::try_from(size).ok();
        capacity.and_then(|capacity| out.try_reserve_exact(capacity).ok()).ok_or_else(|| {
            Error::new(ErrorKind::LimitExceeded, offset, format!("no memory for a section of {size} bytes"))
        })?;
        Ok(out)
    }

    fn broken(&self, detail: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Decompression, self.offset, detail)
    }

    fn zlib(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut stream = Decompress::new(true);
        let status = stream.decompress_vec(self.bytes, out, FlushDecompress::Finish);
        match status {
            Ok(Status::StreamEnd) => Ok(()),
            Ok(_) => Err(self.broken(format!(
                "the zlib stream does not end with its {} bytes: {} came of {} expected",
                self.bytes.len(),
                out.len(),
                self.size
            ))),
            Err(error) => Err(self.broken(format!("zlib: {error}"))),
        }
    }

    fn zstd(&self, out: &mut Vec<u8>) -> Result<()> {
        let decoded = FrameDecoder::new().decode_all_to_vec(self.bytes, out);
        decoded.map_err(|error| self.broken(format!("zstd: {error}")))
    }
}

/// An xz stream of unknown size.
pub(crate) fn xz(bytes: &[u8], limit: u64, offset: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let reader = XzReader::new_mem_limit(bytes, false, XZ_MEMORY_KIB);
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut out)
        .map_err(|error| Error::new(ErrorKind::Decompression, offset, format!("xz: {error}")))?;
    if out.len() as u64 > limit {
        let detail = format!("an xz stream holds more than the {limit} bytes that are allowed");
        return Err(Error::new(ErrorKind::LimitExceeded, offset, detail));
    }
    Ok(out)
}

/// The header of old compressed sections (`.zdebug_info`): `ZLIB` and the size, big-endian in every file.
pub(crate) fn gnu(bytes: &[u8], offset: u64) -> Result<Compressed<'_>> {
    const MAGIC: &[u8] = b"ZLIB";
    let header = bytes.strip_prefix(MAGIC).and_then(|rest| rest.split_first_chunk::<8>());
    let (size, data) = header.ok_or_else(|| {
        Error::malformed(offset, "expected `ZLIB` and a size at the start of a .zdebug section")
    })?;
    let header_size = (MAGIC.len() + size.len()) as u64;
    let offset = offset.saturating_add(header_size);
    Ok(Compressed { format: Format::Zlib, bytes: data, size: u64::from_be_bytes(*size), offset })
}

#[cfg(test)]
mod tests;
