//! The header: 48 bytes.

use super::bytes::Bytes;
use crate::error::{Error, ErrorKind, Result};
use backtrail_core::ImageId;

/// `GSYM` as a number.
pub(super) const MAGIC: u32 = 0x4753_594d;
pub(super) const VERSION: u16 = 1;
pub(super) const MAX_UUID: usize = 20;
pub(super) const SIZE: u64 = 48;

#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) is_big: bool,
    /// Bytes of an address offset: 1, 2, 4 or 8.
    pub(super) address_size: u8,
    pub(super) base: u64,
    pub(super) addresses: u32,
    pub(super) strings_offset: u32,
    pub(super) strings_size: u32,
    pub(super) uuid: [u8; MAX_UUID],
    pub(super) uuid_size: usize,
}

impl Header {
    pub(super) fn read(data: &[u8]) -> Result<Self> {
        let is_big = match data.get(..4) {
            Some(b"MYSG") => false,
            Some(b"GSYM") => true,
            _ => return Err(Error::new(ErrorKind::NotATable, 0, "expected the magic number of GSYM")),
        };
        let mut bytes = Bytes::new(data, 4, is_big);
        let version = bytes.uint(2).unwrap_or(0);
        if version != u64::from(VERSION) {
            let detail = format!("expected GSYM of version 1, found version {version}");
            return Err(Error::new(ErrorKind::UnsupportedVersion, 4, detail));
        }
        let header = Self::fields(bytes, is_big);
        let header =
            header.ok_or_else(|| Error::new(ErrorKind::Truncated, 4, "expected a header of 48 bytes"))?;
        if !matches!(header.address_size, 1 | 2 | 4 | 8) {
            let detail = format!("expected addresses of 1, 2, 4 or 8 bytes, found {}", header.address_size);
            return Err(Error::malformed(6, detail));
        }
        if header.uuid_size > MAX_UUID {
            return Err(Error::malformed(
                7,
                format!("expected a UUID of at most 20 bytes, found {}", header.uuid_size),
            ));
        }
        Ok(header)
    }

    fn fields(mut bytes: Bytes<'_>, is_big: bool) -> Option<Self> {
        Some(Self {
            is_big,
            address_size: bytes.u8()?,
            uuid_size: bytes.u8()?.into(),
            base: bytes.uint(8)?,
            addresses: bytes.u32()?,
            strings_offset: bytes.u32()?,
            strings_size: bytes.u32()?,
            uuid: bytes.take(MAX_UUID as u64)?.try_into().ok()?,
        })
    }

    /// The identity; 16 bytes are taken for a UUID.
    pub(super) fn id(&self) -> Option<ImageId> {
        let bytes = self.uuid();
        match <[u8; 16]>::try_from(bytes) {
            Ok(uuid) => Some(ImageId::Uuid(uuid)),
            Err(_) => ImageId::from_build_id(bytes),
        }
    }

    /// The identity's bytes; none where the file states none.
    pub(super) fn uuid(&self) -> &[u8] {
        self.uuid.get(..self.uuid_size).unwrap_or_default()
    }
}
