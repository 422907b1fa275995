//! What nobody may keep is masked before a report is written: each project has patterns for it.
//!
//! Masking keeps lengths and punctuation, so that a report's structure stays, also a minidump's: letters become `x`, digits `9`.
//! JSON's escapes stay escapes.

use regex::bytes::{Regex, RegexBuilder};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Patterns of one project.
pub(crate) const MAX_PATTERNS: usize = 20;
/// Bytes of one of them.
const MAX_PATTERN: usize = 300;
/// Bytes that one of them may have when it is compiled, and that looking for it may take.
const MAX_COMPILED: usize = 1 << 20;

/// The patterns of a project, compiled.
#[derive(Debug, Default)]
pub(crate) struct Scrubber(Vec<Regex>);

impl Scrubber {
    /// Compiles patterns; what is wrong with one of them is said.
    pub(crate) fn new(patterns: &[String]) -> Result<Self, String> {
        if patterns.len() > MAX_PATTERNS {
            return Err(format!("expected at most {MAX_PATTERNS} patterns"));
        }
        patterns.iter().map(|pattern| compile(pattern)).collect::<Result<_, _>>().map(Self)
    }

    /// Masks what the patterns match.
    pub(crate) fn mask(&self, bytes: &mut [u8]) {
        for pattern in &self.0 {
            let mut from = 0;
            while let Some(found) = pattern.find_at(bytes, from).map(|found| found.range()) {
                // The pattern matches no empty text.
                from = found.end.max(from + 1);
                mask(bytes, found.start, found.end);
                if from > bytes.len() {
                    break;
                }
            }
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    let wrong =
        |why: String| format!("the pattern {:?}: {why}", pattern.chars().take(80).collect::<String>());
    if pattern.len() > MAX_PATTERN {
        return Err(wrong(format!("expected at most {MAX_PATTERN} bytes")));
    }
    let mut builder = RegexBuilder::new(pattern);
    let compiled = builder.unicode(false).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).build();
    let compiled = compiled.map_err(|error| wrong(error.to_string()))?;
    if compiled.is_match(b"") {
        return Err(wrong("it matches the empty text, and so everything".to_owned()));
    }
    Ok(compiled)
}

/// Masks a range, and the rest of letters that it cuts in two.
fn mask(bytes: &mut [u8], start: usize, end: usize) {
    let is_rest = |byte: Option<&u8>| byte.is_some_and(|byte| (0x80..0xc0).contains(byte));
    let (mut start, mut end) = (start, end);
    while start > 0 && is_rest(bytes.get(start)) {
        start -= 1;
    }
    while is_rest(bytes.get(end)) {
        end += 1;
    }
    let mut is_escape = start.checked_sub(1).and_then(|at| bytes.get(at)) == Some(&b'\\');
    let mut digits =
        (0..4).find(|count| ends_in_unicode(bytes.get(..start), *count)).map_or(0, |count| 4 - count);
    for byte in bytes.get_mut(start..end).unwrap_or_default() {
        let masked = match *byte {
            byte if digits > 0 && byte.is_ascii_hexdigit() => b'9',
            byte if is_escape => byte,
            b'0'..=b'9' => b'9',
            byte if byte.is_ascii_alphabetic() || !byte.is_ascii() => b'x',
            byte => byte,
        };
        digits = if is_escape && *byte == b'u' { 4 } else { digits.saturating_sub(1) };
        is_escape = *byte == b'\\' && !is_escape;
        *byte = masked;
    }
}

/// Whether a text ends in `\u` and so many digits.
fn ends_in_unicode(text: Option<&[u8]>, digits: usize) -> bool {
    let text = text.unwrap_or_default();
    let split = text.len().checked_sub(digits).and_then(|at| text.split_at_checked(at));
    split.is_some_and(|(before, last)| before.ends_with(b"\\u") && last.iter().all(u8::is_ascii_hexdigit))
}

/// Compiled patterns by their text: each request needs them.
#[derive(Debug, Default)]
pub(crate) struct Scrubbers(Mutex<HashMap<String, Arc<Scrubber>>>);

/// Projects whose patterns are kept compiled.
const MAX_KEPT: usize = 100;

impl Scrubbers {
    /// The scrubber of patterns as the database has them: an array in JSON. They were looked at when they were set.
    pub(crate) fn get(&self, patterns: &str) -> Result<Arc<Scrubber>, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scrubber) = kept.get(patterns) {
            return Ok(Arc::clone(scrubber));
        }
        let list: Vec<String> = serde_json::from_str(patterns).map_err(|error| error.to_string())?;
        let scrubber = Arc::new(Scrubber::new(&list)?);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(patterns.to_owned(), Arc::clone(&scrubber));
        Ok(scrubber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(patterns: &[&str], text: &str) -> String {
        let patterns: Vec<_> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let mut bytes = text.as_bytes().to_vec();
        Scrubber::new(&patterns).unwrap().mask(&mut bytes);
        assert_eq!(bytes.len(), text.len());
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_matches_is_masked_and_keeps_its_form() {
        let email = r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}";
        assert_eq!(masked(&[email], "to a.b7@mail.example.com, and c"), "to x.x9@xxxx.xxxxxxx.xxx, and c");
        assert_eq!(
            masked(&["user=[^ ]+", "1234"], "user=M\u{fc}ller 1234 x"),
            "xxxx=Mxxller 9999 x".replace("Mxxller", "xxxxxxx")
        );
        assert_eq!(masked(&["aa"], "aaaaa"), "xxxxa");
        assert_eq!(masked(&["(?i)SECRET"], "Secret"), "xxxxxx");
    }

    #[test]
    fn json_stays_json() {
        let text = r#"{"name":"a\nb\u00fc\"c","id":12345,"tail":"z"}"#;
        let masked = self::masked(&[r#""name":"([^"\\]|\\.)*""#, "[0-9]{4,}"], text);
        let value: serde_json::Value = serde_json::from_str(&masked).unwrap();
        assert_eq!(value["tail"], "z");
        assert_eq!(value["id"], 99999);
        assert!(!masked.contains('b') && !masked.contains("fc"), "{masked}");
        assert_eq!(self::masked(&["0fcq"], r"\u00fcq u00fcq"), r"\u0999x u09xxx");
    }

    #[test]
    fn a_letter_is_not_cut_in_two() {
        let mut bytes = "\u{fc}".as_bytes().to_vec();
        Scrubber::new(&[r"\xc3".to_owned()]).unwrap().mask(&mut bytes);
        assert_eq!(bytes, b"xx");
        let mut bytes = "\u{fc}".as_bytes().to_vec();
        Scrubber::new(&[r"\xbc".to_owned()]).unwrap().mask(&mut bytes);
        assert_eq!(bytes, b"xx");
    }

    #[test]
    fn patterns_that_are_refused() {
        for pattern in ["(", "a*", "", "(a{1000}){1000}", &"a".repeat(301)] {
            assert!(Scrubber::new(&[pattern.to_owned()]).is_err(), "{pattern}");
        }
        assert!(Scrubber::new(&vec!["a".to_owned(); MAX_PATTERNS + 1]).is_err());
    }
}
