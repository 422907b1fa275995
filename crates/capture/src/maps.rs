//! Mapped ranges as Linux lists them: `/proc/PID/maps`.

use backtrail_core::{AddrRange, Avma, FileOffset};
use std::fmt::Write as _;

/// One mapped range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Where it is mapped.
    pub range: AddrRange<Avma>,
    /// Where in its file it begins.
    pub offset: FileOffset,
    /// Whether it may be read.
    pub readable: bool,
    /// Whether it may be written.
    pub writable: bool,
    /// Whether it may be executed.
    pub executable: bool,
    /// Its file's path; a name in brackets for what the kernel supplies; empty for anonymous memory.
    pub name: String,
}

/// Reads lines of `start-end perms offset dev inode name`, of which all after the offset may be missing. The second
/// part of the answer are the lines that are none, counted from 1. proc(5).
pub fn parse_maps(text: &[u8], max: usize) -> (Vec<Mapping>, Vec<usize>) {
    let (mut mappings, mut odd) = (Vec::new(), Vec::new());
    for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parse_line(line).filter(|_| mappings.len() < max) {
            Some(mapping) => mappings.push(mapping),
            None => odd.push(index + 1),
        }
    }
    mappings.sort_by_key(|mapping| mapping.range.start());
    (mappings, odd)
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let (range, rest) = word(&line)?;
    let (start, end) = range.split_once('-')?;
    let (permissions, rest) = word(rest)?;
    let (offset, rest) = word(rest)?;
    let rest = word(rest).map_or(rest, |(_device, rest)| rest);
    let name = word(rest).map_or(rest, |(_inode, rest)| rest);
    let (start, end) = (hex(start)?, hex(end)?);
    let has = |letter| permissions.contains(letter);
    (start < end && permissions.len() >= 3).then(|| Mapping {
        range: AddrRange::new(Avma::new(start), Avma::new(end)),
        offset: FileOffset::new(hex(offset).unwrap_or_default()),
        readable: has('r'),
        writable: has('w'),
        executable: has('x'),
        name: name.trim().to_owned(),
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// The first word, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if text.is_empty() {
        return None;
    }
    Some(text.split_once(char::is_whitespace).unwrap_or((text, "")))
}

/// As `/proc/PID/maps` has them, with device and inode left at 0. proc(5).
pub(crate) fn maps_text(mappings: &[Mapping]) -> String {
    let mut text = String::new();
    for one in mappings {
        let (start, end, offset) = (one.range.start().get(), one.range.end().get(), one.offset.get());
        let may = |may: bool, letter: char| if may { letter } else { '-' };
        let (read, write, execute) =
            (may(one.readable, 'r'), may(one.writable, 'w'), may(one.executable, 'x'));
        let name = one.name.replace('\n', "?");
        let _ = writeln!(text, "{start:x}-{end:x} {read}{write}{execute}p {offset:x} 00:00 0 {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_line_reads() {
        let text = b"f2d9a000-f2da7fff r-xp 00000000 00:00 0   libbase.so\n\
            7111-7112 --xp 42000 00:00 0   a name (deleted)\n\
            \nnonsense\n\
            10-20 rw-p 00000000 00:00 0 \n\
            5-5 r--p 0 00:00 0 empty\n\
            30-40 rwxs 1000\n";
        let (mappings, odd) = parse_maps(text, 100);
        let shown: Vec<_> = mappings
            .iter()
            .map(|m| {
                (m.range.start().get(), m.range.end().get(), m.offset.get(), m.executable, m.name.as_str())
            })
            .collect();
        let expected = [
            (0x10, 0x20, 0, false, ""),
            (0x30, 0x40, 0x1000, true, ""),
            (0x7111, 0x7112, 0x42000, true, "a name (deleted)"),
            (0xf2d9_a000, 0xf2da_7fff, 0, true, "libbase.so"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(odd, [4, 6]);
    }

    #[test]
    fn too_many_are_left_out_and_counted() {
        let (mappings, odd) = parse_maps(b"1-2 r--p 0 0 0\n2-3 r--p 0 0 0\n", 1);
        assert_eq!((mappings.len(), odd.len()), (1, 1));
    }
}
