//! Lines of standard input, as many at a time as are there.
//!
//! Many addresses together are answered faster than one by one, while somebody who writes one address and waits for
//! its answer must not wait for more.

use crate::outcome::Failure;
use std::io::{BufRead as _, BufReader, Read};

/// Bytes of lines that are taken in at a time.
const MAX_BYTES: usize = 1 << 18;

/// Bytes that are read at a time: what a pipe of Linux holds.
const READ_AT_ONCE: usize = 1 << 16;

/// A line longer than this is no address, nor a name.
const MAX_LINE: usize = 1 << 20;

/// Reads lines in batches.
pub(crate) struct LineBatches<R> {
    input: BufReader<R>,
    /// A line whose end has not been read yet.
    rest: Vec<u8>,
    is_at_end: bool,
}

impl<R: Read> LineBatches<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input: BufReader::with_capacity(READ_AT_ONCE, input), rest: Vec::new(), is_at_end: false }
    }

    /// The lines that can be had without waiting, at least one; `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Vec<String>>, Failure> {
        while !self.is_at_end {
            let bytes = self.input.fill_buf();
            let bytes = bytes.map_err(|error| Failure::Input(format!("standard input: {error}")))?;
            let (length, is_full) = (bytes.len(), bytes.len() >= READ_AT_ONCE);
            self.is_at_end = bytes.is_empty();
            self.rest.extend_from_slice(bytes);
            self.input.consume(length);
            if self.rest.len() > MAX_LINE && !self.rest.contains(&b'\n') {
                return Err(Failure::Input("standard input: a line of more than a megabyte".to_owned()));
            }
            // A full buffer that ends within a line says that there is more behind it.
            if is_full && self.rest.len() < MAX_BYTES && !self.rest.ends_with(b"\n") {
                continue;
            }
            if let Some(lines) = self.take_lines() {
                return Ok(Some(lines));
            }
        }
        Ok(None)
    }

    /// What is there up to the last end of line; at the end of the input, all of it.
    fn take_lines(&mut self) -> Option<Vec<String>> {
        let end = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            _ if self.is_at_end => self.rest.len(),
            Some(last) => last + 1,
            None => return None,
        };
        let lines: Vec<u8> = self.rest.drain(..end).collect();
        let lines = String::from_utf8_lossy(&lines).lines().map(str::to_owned).collect::<Vec<_>>();
        Some(lines).filter(|lines| !lines.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// Gives its pieces one by one, as a pipe whose writer waits for answers does.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    fn batches(input: impl Read) -> Vec<Vec<String>> {
        let mut batches = LineBatches::new(input);
        std::iter::from_fn(|| batches.next_batch().unwrap()).collect()
    }

    #[test]
    fn a_writer_who_waits_gets_each_line() {
        let input = Pieces(vec![b"0x10\n", b"0x", b"20\n0x30\n0x4", b"0"]);
        assert_eq!(batches(input), [vec!["0x10"], vec!["0x20", "0x30"], vec!["0x40"]]);
    }

    #[test]
    fn a_file_comes_in_large_batches_and_loses_nothing() {
        let text: String = (0..100_000).map(|number| format!("{number:#x}\n")).collect();
        let got = batches(Cursor::new(text.clone()));
        assert!(got.len() < 20, "{} batches", got.len());
        let got: String = got.concat().iter().map(|line| format!("{line}\n")).collect();
        assert_eq!(got, text);
    }

    #[test]
    fn a_writer_who_fills_the_buffer_and_waits_is_answered() {
        let line = [b'1'; 15].iter().chain(b"\n").copied();
        let full: &'static [u8] = line.cycle().take(READ_AT_ONCE).collect::<Vec<_>>().leak();
        let mut batches = LineBatches::new(Pieces(vec![full, b"2\n"]));
        assert_eq!(batches.next_batch().unwrap().unwrap().len(), READ_AT_ONCE / 16);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut batches = LineBatches::new(Cursor::new(vec![b'x'; MAX_LINE * 2]));
        assert!(batches.next_batch().is_err());
    }
}
