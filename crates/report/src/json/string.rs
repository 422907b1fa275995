//! Escapes of JSON strings, both ways.

use crate::text::lossy;
use memchr::memchr;
use std::borrow::Cow;
use std::fmt::Write as _;

/// The text of what stands between the quotes. Never fails: a broken escape stays as it is written, and bytes that are
/// no UTF-8 become U+FFFD, since the rest of the text is still of use.
pub(crate) fn decode(raw: &[u8]) -> Cow<'_, str> {
    let Some(first) = memchr(b'\\', raw) else { return lossy(raw) };
    // Paths of Apple's reports have an escape before each name; text that is sound is not looked at again between them.
    let sound = std::str::from_utf8(raw).ok();
    let mut text = String::with_capacity(raw.len());
    let (mut rest, mut next) = (raw, Some(first));
    while let Some(at) = next {
        let (plain, escape) = rest.split_at(at);
        let from = raw.len() - rest.len();
        match sound.and_then(|sound| sound.get(from..from + at)) {
            Some(plain) => text.push_str(plain),
            None => text.push_str(&lossy(plain)),
        }
        let (character, length) = one_escape(escape);
        match character {
            Some(character) => text.push(character),
            None => text.push_str(&lossy(escape.get(..length).unwrap_or(escape))),
        }
        rest = escape.get(length..).unwrap_or_default();
        next = memchr(b'\\', rest);
    }
    text.push_str(&lossy(rest));
    Cow::Owned(text)
}

/// Reads the escape that `bytes` begin with: the character, and how many bytes it took.
fn one_escape(bytes: &[u8]) -> (Option<char>, usize) {
    let Some(letter) = bytes.get(1) else { return (None, 1) };
    let character = match letter {
        b'"' | b'\\' | b'/' => Some(char::from(*letter)),
        b'b' => Some('\u{8}'),
        b'f' => Some('\u{c}'),
        b'n' => Some('\n'),
        b'r' => Some('\r'),
        b't' => Some('\t'),
        b'u' => return unicode_escape(bytes),
        _ => None,
    };
    (character, if character.is_some() { 2 } else { 1 })
}

fn unicode_escape(bytes: &[u8]) -> (Option<char>, usize) {
    let Some(unit) = code_unit(bytes) else { return (None, 2) };
    if (0xd800..0xdc00).contains(&unit) {
        let low = bytes.get(6..).and_then(code_unit).filter(|low| (0xdc00..0xe000).contains(low));
        let Some(low) = low else { return (Some(char::REPLACEMENT_CHARACTER), 6) };
        let code = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        return (Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)), 12);
    }
    (Some(char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)), 6)
}

/// The number of a `\uXXXX` at the start of `bytes`.
fn code_unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
}

/// The text with escapes, without quotes: only what JSON demands is escaped.
pub(crate) fn encode(text: &str) -> String {
    let mut raw = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => raw.push_str("\\\""),
            '\\' => raw.push_str("\\\\"),
            '\n' => raw.push_str("\\n"),
            '\r' => raw.push_str("\\r"),
            '\t' => raw.push_str("\\t"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(raw, "\\u{:04x}", u32::from(control));
            }
            other => raw.push(other),
        }
    }
    raw
}
