//! Text that others chose, made safe to look at.
//!
//! Reports, symbols, paths and processes have whatever names they like. A terminal obeys some characters (ECMA-48), others
//! turn the order of what follows (Unicode's bidirectional controls), and some cannot be seen, so that two names look alike.
//! All of them are shown as Rust writes them: `\n`, `\u{1b}`, `\u{202e}`.

use std::borrow::Cow;

/// Names longer than this many characters are cut for people. C++ names of a thousand characters are common.
const MAX_CHARACTERS: usize = 2_000;
/// What stays of a longer name in front, and at its end, where offsets and suffixes are.
const HEAD: usize = 1_500;
const TAIL: usize = 250;

/// Whether a character must not be shown as it is: controls (C0, DEL, C1), format characters (general category Cf), line
/// and paragraph separators, and what Unicode calls default-ignorable, which shows as nothing.
pub fn is_unsafe(character: char) -> bool {
    if (' '..='~').contains(&character) {
        return false;
    }
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether all bytes are printable ASCII, which nearly all text is. Without a branch for each byte, so that it is cheap.
pub fn is_printable_ascii(bytes: &[u8]) -> bool {
    !bytes.iter().fold(false, |found, byte| found | (byte.wrapping_sub(b' ') > b'~' - b' '))
}

/// The text on one line, with unsafe characters escaped.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if is_printable_ascii(text.as_bytes()) || !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_unsafe(character) {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Bytes that should be text, on one line; those that are no UTF-8 as `\xff`.
pub fn escaped_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&escaped(chunk.valid()));
        chunk.invalid().iter().for_each(|byte| shown.push_str(&format!("\\x{byte:02x}")));
    }
    shown
}

/// The text, or its beginning and end with a mark between them that says how long it is.
pub fn shortened(text: &str) -> Cow<'_, str> {
    // A character has at least one byte.
    if text.len() <= MAX_CHARACTERS {
        return Cow::Borrowed(text);
    }
    let count = text.chars().count();
    if count <= MAX_CHARACTERS {
        return Cow::Borrowed(text);
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(count - TAIL).collect();
    let left_out = count - HEAD - TAIL;
    Cow::Owned(format!("{head}…[{left_out} of {count} characters left out]…{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(escaped("a\nb\x1b[2J\u{9b}1m\tc\r\u{7f}"), r"a\nb\u{1b}[2J\u{9b}1m\tc\r\u{7f}");
        assert!(matches!(escaped("größer \\ 'x' 漢字"), Cow::Borrowed("größer \\ 'x' 漢字")));
        assert_eq!(escaped_bytes(b"a\xffb\x1b"), r"a\xffb\u{1b}");
    }

    #[test]
    fn what_turns_or_hides_text_is_shown() {
        let hidden = "\u{202e}\u{2066}\u{2069}\u{200e}\u{61c}\u{200b}\u{200d}\u{2060}\u{feff}\u{ad}\u{2028}\u{2029}\u{e0041}";
        assert!(hidden.chars().all(is_unsafe));
        assert_eq!(escaped("a\u{202e}b"), r"a\u{202e}b");
    }

    #[test]
    fn printable_is_from_space_to_tilde() {
        for byte in 0..=255u8 {
            let expected = (b' '..=b'~').contains(&byte);
            assert_eq!(is_printable_ascii(&[b'a', byte, b'b']), expected, "{byte}");
        }
        assert!(is_printable_ascii(b""));
    }

    #[test]
    fn long_names_are_cut_and_say_so() {
        let name = "é".repeat(60_000);
        let shown = shortened(&name);
        assert!(shown.contains("[58250 of 60000 characters left out]"), "{shown}");
        assert!(shown.chars().count() < MAX_CHARACTERS);
        assert!(matches!(shortened(&"x".repeat(MAX_CHARACTERS)), Cow::Borrowed(_)));
    }
}
