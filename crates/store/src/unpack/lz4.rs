//! LZ4: frames one after the other. LZ4 Frame Format 1.6.

use lz4_flex::frame::FrameDecoder;
use std::io::{self, Read};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

pub(super) fn is_lz4(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

/// All frames of a file.
pub(super) struct Frames<'d> {
    decoder: FrameDecoder<&'d [u8]>,
    /// Whether the file ends as frames do. The decoder takes a file that ends between two blocks for a whole one.
    is_whole: bool,
}

impl<'d> Frames<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        // The end mark, and a checksum behind it in most frames.
        let ends = |data: &[u8]| data.ends_with(&[0; 4]);
        let is_whole = ends(data) || data.split_last_chunk::<4>().is_some_and(|(before, _)| ends(before));
        Self { decoder: FrameDecoder::new(data), is_whole }
    }
}

impl Read for Frames<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            // At a frame's end the decoder stops once, and begins with the next one when it is asked again.
            if self.decoder.get_ref().is_empty() {
                return if self.is_whole { Ok(0) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }
}
