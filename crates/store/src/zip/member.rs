//! One member of a zip: where its bytes lie and how they are packed.

use std::ops::Range;
use std::sync::Arc;

use crate::Limits;
use crate::error::{ErrorKind, Fault};
use crate::source::Source;

/// What the central directory says of one member.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Member {
    name: Arc<str>,
    /// Position of its local header.
    header: u64,
    compressed_size: u64,
    size: u64,
    crc: u32,
    method: Method,
}

/// How a member is packed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Method {
    Stored,
    Deflated,
    Encrypted,
    /// By its number in APPNOTE.TXT 4.4.5.
    Other(u16),
}

/// Size of a local header without its name and extra field.
const LOCAL_HEADER: usize = 30;

impl Method {
    pub(super) fn new(number: u64, flags: u64) -> Self {
        let is_encrypted = flags & 1 != 0;
        match number {
            _ if is_encrypted => Self::Encrypted,
            0 => Self::Stored,
            8 => Self::Deflated,
            other => Self::Other(u16::try_from(other).unwrap_or(u16::MAX)),
        }
    }
}

impl Member {
    pub(super) fn new(
        name: String,
        header: u64,
        compressed_size: u64,
        size: u64,
        crc: u32,
        method: Method,
    ) -> Self {
        Self { name: name.into(), header, compressed_size, size, crc, method }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn header(&self) -> u64 {
        self.header
    }

    pub(crate) fn compressed_size(&self) -> u64 {
        self.compressed_size
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn crc(&self) -> u32 {
        self.crc
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// The first position that another member may have: local header and data, whose names may differ in length
    /// from those in the directory.
    pub(super) fn least_end(&self) -> Option<u64> {
        self.header.checked_add(LOCAL_HEADER as u64)?.checked_add(self.compressed_size)
    }

    /// Where the packed bytes lie in the zip. The sizes are the directory's: those of the local header are zero when
    /// the zip was written as a stream (a data descriptor follows the data).
    pub(crate) fn data(&self, source: &Source) -> Result<Range<u64>, Fault> {
        let mut header = [0; LOCAL_HEADER];
        source.read_exact(self.header, &mut header).map_err(|fault| {
            let what = format!("its local header at {:#x} of the zip: {}", self.header, fault.what);
            Fault::new(fault.kind, what)
        })?;
        if !header.starts_with(b"PK\x03\x04") {
            let what = format!("expected its local header (PK 3 4) at {:#x} of the zip", self.header);
            return Err(Fault::new(ErrorKind::Zip, what));
        }
        let range = data_start(&header, self.header)
            .and_then(|start| Some(start..start.checked_add(self.compressed_size)?))
            .filter(|range| range.end <= source.len());
        range.ok_or_else(|| {
            let what = format!(
                "expected {} bytes of data behind its header at {:#x} of the zip, which ends at {:#x}",
                self.compressed_size,
                self.header,
                source.len()
            );
            Fault::new(ErrorKind::Zip, what)
        })
    }

    /// Whether `limits` let this member be inflated.
    pub(crate) fn check_size(&self, max: u64, limits: &Limits) -> Result<(), Fault> {
        let (size, compressed) = (self.size, self.compressed_size);
        if size > max {
            let what = format!("{size} bytes; the limit is {max}");
            return Err(Fault::new(ErrorKind::Limit, what));
        }
        if limits.is_bomb(compressed, size) {
            let what =
                format!("{compressed} bytes that state to inflate to {size}, which only a zip bomb does");
            return Err(Fault::new(ErrorKind::Limit, what));
        }
        Ok(())
    }
}

/// Where a member's data begins, from the lengths in its local header (APPNOTE.TXT 4.3.7).
fn data_start(header: &[u8; LOCAL_HEADER], at: u64) -> Option<u64> {
    let [.., n0, n1, e0, e1] = *header;
    let lengths = u64::from(u16::from_le_bytes([n0, n1])) + u64::from(u16::from_le_bytes([e0, e1]));
    at.checked_add(LOCAL_HEADER as u64)?.checked_add(lengths)
}
