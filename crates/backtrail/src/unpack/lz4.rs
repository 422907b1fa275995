//! LZ4 frames. LZ4 Frame Format 1.6.x and LZ4 Block Format, as the project's `doc/` has them. Checksums are skipped:
//! bytes that flipped are told by what they do to the capture.

use std::io::{self, Read};

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// How far back a block may refer.
const WINDOW: usize = 64 << 10;

pub(super) fn is_lz4(data: &[u8]) -> bool {
    data.starts_with(&MAGIC)
}

/// What a frame's descriptor says.
#[derive(Clone, Copy)]
struct Descriptor {
    blocks_are_independent: bool,
    blocks_have_checksums: bool,
    content_has_checksum: bool,
    max_block: usize,
}

/// All frames of a file.
pub(super) struct Frames<'d> {
    rest: &'d [u8],
    frame: Option<Descriptor>,
    /// The last bytes that were unpacked, as many as may be referred to.
    unpacked: Vec<u8>,
    /// How many of them have been read.
    read: usize,
}

impl<'d> Frames<'d> {
    pub(super) fn new(data: &'d [u8]) -> Self {
        Self { rest: data, frame: None, unpacked: Vec::new(), read: 0 }
    }

    fn take(&mut self, count: usize) -> io::Result<&'d [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.rest = rest;
        Ok(taken)
    }

    fn word(&mut self) -> io::Result<u32> {
        let bytes = self.take(4)?.try_into().map_err(io::Error::other)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn descriptor(&mut self) -> io::Result<Descriptor> {
        if self.take(4)? != MAGIC {
            return Err(invalid("expected a further frame"));
        }
        let [flags, block] = *self.take(2)? else { return Err(invalid("no descriptor")) };
        if flags >> 6 != 1 || flags & 1 != 0 {
            return Err(invalid("a version or a dictionary that is not known"));
        }
        let max_block = match block >> 4 & 7 {
            size @ 4..=7 => 1_usize << (8 + 2 * u32::from(size)),
            _ => return Err(invalid("a block size that is not known")),
        };
        let content_size = if flags & 8 != 0 { 8 } else { 0 };
        self.take(content_size + 1)?;
        Ok(Descriptor {
            blocks_are_independent: flags & 0x20 != 0,
            blocks_have_checksums: flags & 0x10 != 0,
            content_has_checksum: flags & 4 != 0,
            max_block,
        })
    }

    /// Unpacks the next block; `false` behind the last.
    fn next_block(&mut self) -> io::Result<bool> {
        let frame = match self.frame {
            Some(frame) => frame,
            None if self.rest.is_empty() => return Ok(false),
            None => {
                self.unpacked.clear();
                let frame = self.descriptor()?;
                *self.frame.insert(frame)
            }
        };
        let window = if frame.blocks_are_independent { 0 } else { WINDOW };
        self.unpacked.drain(..self.unpacked.len().saturating_sub(window));
        self.read = self.unpacked.len();
        let size = self.word()?;
        if size == 0 {
            self.take(if frame.content_has_checksum { 4 } else { 0 })?;
            self.frame = None;
            return Ok(true);
        }
        let is_plain = size >> 31 != 0;
        let block = self.take(usize::try_from(size & 0x7fff_ffff).unwrap_or(usize::MAX))?;
        self.take(if frame.blocks_have_checksums { 4 } else { 0 })?;
        let most = self.read + frame.max_block;
        if is_plain && block.len() <= frame.max_block {
            self.unpacked.extend(block);
        } else if is_plain {
            return Err(invalid("a block that is too large"));
        } else {
            unpack(block, &mut self.unpacked, most).ok_or_else(|| invalid("a broken block"))?;
        }
        Ok(true)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Read for Frames<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.read == self.unpacked.len() {
            if !self.next_block()? {
                return Ok(0);
            }
        }
        let ready = self.unpacked.get(self.read..).unwrap_or_default();
        let count = ready.len().min(buf.len());
        for (to, from) in buf.iter_mut().zip(ready) {
            *to = *from;
        }
        self.read += count;
        Ok(count)
    }
}

/// Appends a block to what was unpacked before; `None` if it is broken or gives more than `most` bytes in all.
fn unpack(block: &[u8], out: &mut Vec<u8>, most: usize) -> Option<()> {
    let mut rest = block;
    loop {
        let (token, after) = rest.split_first()?;
        rest = after;
        let literals = length(usize::from(token >> 4), &mut rest)?;
        let (bytes, after) = rest.split_at_checked(literals)?;
        if out.len() + literals > most {
            return None;
        }
        out.extend(bytes);
        if after.is_empty() {
            return Some(());
        }
        let (&[low, high], after) = after.split_first_chunk()?;
        rest = after;
        let back = usize::from(u16::from_le_bytes([low, high]));
        let count = length(usize::from(token & 15), &mut rest)?.checked_add(4)?;
        if out.len().checked_add(count)? > most {
            return None;
        }
        copy(out, back, count)?;
    }
}

/// A length of four bits, or of those and all following bytes up to one that is not full.
fn length(start: usize, rest: &mut &[u8]) -> Option<usize> {
    let mut length = start;
    if start < 15 {
        return Some(length);
    }
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        length = length.checked_add(usize::from(*byte))?;
        if *byte != 255 {
            return Some(length);
        }
    }
}

/// Repeats what was unpacked `back` bytes ago; what is copied may itself be copied again.
fn copy(out: &mut Vec<u8>, back: usize, count: usize) -> Option<()> {
    let start = out.len().checked_sub(back).filter(|_| back > 0)?;
    let mut left = count;
    while left > 0 {
        let size = left.min(out.len() - start);
        out.extend_from_within(start..start + size);
        left -= size;
    }
    Some(())
}
