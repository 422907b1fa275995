//! LZ4: frames one after the other. LZ4 Frame Format 1.6.

use lz4_flex::frame::FrameDecoder;
use std::io::{self, Read};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

pub(super) fn is_lz4(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

/// All frames of a file.
pub(super) struct Frames<'d>(FrameDecoder<&'d [u8]>);

impl<'d> Frames<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self(FrameDecoder::new(data))
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            // At a frame's end the decoder stops once, and begins with the next one when it is asked again.
            if count > 0 || buffer.is_empty() || self.0.get_ref().is_empty() {
                return Ok(count);
            }
        }
    }
}
