//! JSON that is safe to look at.
//!
//! Characters that `escape` calls unsafe stand inside of strings only, where `\u202e` means the same: programs read what
//! they read before, and a terminal has nothing to obey.

use backtrail_render::escape::is_unsafe;
use std::io::{self, BufWriter, Write};

/// Writes one document with `write`, and safely. The writers of JSON write a token at a time, which is looked through in large
/// pieces.
pub(crate) fn document<W: Write>(
    out: W,
    write: impl FnOnce(&mut BufWriter<SafeJson<W>>) -> io::Result<()>,
) -> io::Result<()> {
    let mut json = buffered(out);
    write(&mut json)?;
    json.flush()
}

/// Passes JSON on safely, in large pieces.
pub(crate) fn buffered<W: Write>(out: W) -> BufWriter<SafeJson<W>> {
    BufWriter::with_capacity(1 << 16, SafeJson::new(out))
}

/// Passes JSON on, with unsafe characters as JSON's escapes.
pub(crate) struct SafeJson<W> {
    out: W,
    /// The beginning of a character whose end comes with the next write.
    rest: Vec<u8>,
}

impl<W: Write> SafeJson<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, rest: Vec::new() }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.put_str(chunk.valid())?;
            // Writers of JSON write whole UTF-8, but not with one call.
            if chunks.peek().is_none() && chunk.invalid().len() < 4 {
                self.rest = chunk.invalid().to_vec();
            } else {
                self.out.write_all("\u{fffd}".as_bytes())?;
            }
        }
        Ok(())
    }

    fn put_str(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        // Line ends and tabs are the writer's own: those of strings are escaped already.
        while let Some(at) =
            rest.find(|character: char| is_unsafe(character) && !matches!(character, '\n' | '\t'))
        {
            let (before, after) = rest.split_at(at);
            self.out.write_all(before.as_bytes())?;
            let Some(character) = after.chars().next() else { break };
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(self.out, "\\u{unit:04x}")?;
            }
            rest = after.get(character.len_utf8()..).unwrap_or_default();
        }
        self.out.write_all(rest.as_bytes())
    }
}

impl<W: Write> Write for SafeJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A maximum, not a search: compilers know how to take it of many bytes at once.
        let highest = bytes.iter().copied().fold(0, u8::max);
        if self.rest.is_empty() && highest < 0x7f {
            self.out.write_all(bytes)?;
        } else {
            let mut whole = std::mem::take(&mut self.rest);
            whole.extend_from_slice(bytes);
            self.put(&whole)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_without_unsafe_characters() {
        let value = "a\x1b\u{7f}\u{9b}\u{202e}é\u{e0041}漢\n";
        let json = serde_json::to_string(value).unwrap() + "\n";
        for step in 1..5 {
            let mut out = SafeJson::new(Vec::new());
            json.as_bytes().chunks(step).for_each(|chunk| out.write_all(chunk).unwrap());
            let written = String::from_utf8(out.out).unwrap();
            assert_eq!(written, "\"a\\u001b\\u007f\\u009b\\u202eé\\udb40\\udc41漢\\n\"\n");
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), value);
        }
    }
}
