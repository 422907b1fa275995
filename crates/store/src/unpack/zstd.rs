//! zstd: frames one after the other, some of them to be skipped. RFC 8878.

use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::io::{self, Read};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frames to skip start with any of sixteen magics.
const SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

pub(super) fn is_zstd(data: &[u8]) -> bool {
    let rest = skip(data).unwrap_or(data);
    rest.starts_with(&MAGIC)
}

/// What follows a frame that is to be skipped; `None` where none begins here.
fn skip(data: &[u8]) -> Option<&[u8]> {
    let (head, rest) = data.split_at_checked(8)?;
    let [0x50..=0x5f, magic @ .., a, b, c, d] = head else { return None };
    let size = usize::try_from(u32::from_le_bytes([*a, *b, *c, *d])).ok()?;
    (*magic == SKIPPED).then(|| rest.get(size..).unwrap_or_default())
}

/// All frames of a file.
pub(super) struct Frames<'d> {
    rest: &'d [u8],
    current: Option<StreamingDecoder<&'d [u8], FrameDecoder>>,
    max_window: u64,
}

impl<'d> Frames<'d> {
    pub(super) fn new(data: &'d [u8], max_window: u64) -> Self {
        Self { rest: data, current: None, max_window }
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.current {
                let count = frame.read(buf)?;
                if count > 0 || buf.is_empty() {
                    return Ok(count);
                }
                self.rest = frame.get_ref();
                self.current = None;
            }
            while let Some(rest) = skip(self.rest) {
                self.rest = rest;
            }
            if self.rest.is_empty() {
                return Ok(0);
            }
            let frame = StreamingDecoder::new_with_max_window_size(self.rest, self.max_window);
            self.current = Some(frame.map_err(io::Error::other)?);
        }
    }
}
