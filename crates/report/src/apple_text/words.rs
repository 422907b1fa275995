//! The small words that rows are made of.

use std::ops::Range;

/// A `0x…` word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hex {
    Value(u64),
    /// Hexadecimal digits, more than 64 bits of them.
    TooLong,
}

/// Reads a word that is `0x` and hexadecimal digits, nothing else.
pub(crate) fn hex(word: &[u8]) -> Option<Hex> {
    let digits = word.strip_prefix(b"0x").or_else(|| word.strip_prefix(b"0X"))?;
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    let mut too_long = false;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16)?;
        too_long |= value >> 60 != 0;
        value = value << 4 | u64::from(digit);
    }
    Some(if too_long { Hex::TooLong } else { Hex::Value(value) })
}

/// The value of a `0x…` word of at most 64 bits.
pub(crate) fn hex_value(word: &str) -> Option<u64> {
    match hex(word.as_bytes())? {
        Hex::Value(value) => Some(value),
        Hex::TooLong => None,
    }
}

/// The words of a line, with where each stands. Blanks and tabs part them.
pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = (Range<usize>, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let start = at + rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        let word = bytes.get(start..)?;
        let length = word.iter().position(u8::is_ascii_whitespace).unwrap_or(word.len());
        at = start + length;
        Some((start..at, word.get(..length)?))
    })
}

/// `name [pid]` as header lines print a process.
pub(crate) fn name_and_pid(value: &str) -> (&str, Option<u64>) {
    let inside = value.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    match inside {
        Some((name, pid)) if pid.trim().parse::<u64>().is_ok() => (name.trim(), pid.trim().parse().ok()),
        _ => (value, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_words() {
        assert_eq!(hex(b"0x0000000000000000ffff"), Some(Hex::Value(0xffff)));
        assert_eq!(hex(b"0xffffffffffffffff"), Some(Hex::Value(u64::MAX)));
        assert_eq!(hex(b"0x10000000000000000"), Some(Hex::TooLong));
        assert_eq!(hex(b"0xfffffffffffffffffffffffffffffffff"), Some(Hex::TooLong));
        for word in [&b"0x"[..], b"1234", b"0x12g", b"0x-1", b"x12", b"0x1,"] {
            assert_eq!(hex(word), None, "{word:?}");
        }
    }

    #[test]
    fn processes() {
        assert_eq!(name_and_pid("My App [12]"), ("My App", Some(12)));
        assert_eq!(name_and_pid("My App []"), ("My App []", None));
        assert_eq!(name_and_pid("a [b] [ 7 ]"), ("a [b]", Some(7)));
        assert_eq!(name_and_pid("launchd"), ("launchd", None));
    }

    #[test]
    fn words_and_their_places() {
        let found: Vec<_> = words(b"  a \t bc  ").collect();
        assert_eq!(found, [(2..3, &b"a"[..]), (6..8, &b"bc"[..])]);
    }
}
