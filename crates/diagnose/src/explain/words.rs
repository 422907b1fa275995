//! Small helpers for reading numbers out of prose and for writing sentences.

use backtrail_core::Avma;

/// Longest sentence or quotation that an explanation carries, in bytes; a report's own text may be of any length.
const MAX_TEXT: usize = 500;

/// `text` on one line, blanks folded, cut after [`MAX_TEXT`] bytes.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        let separator = usize::from(!line.is_empty());
        let room = MAX_TEXT.saturating_sub(line.len() + separator);
        if separator == 1 && room > 0 {
            line.push(' ');
        }
        if word.len() <= room {
            line.push_str(word);
            continue;
        }
        let end = (0..=room).rev().find(|end| word.is_char_boundary(*end)).unwrap_or(0);
        line.push_str(word.get(..end).unwrap_or_default());
        line.push('…');
        break;
    }
    line
}

/// The number in `text`: hexadecimal after `0x`, else decimal.
pub(crate) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The hexadecimal number that starts `text`, `0x` included, and what follows it.
pub(crate) fn leading_hex(text: &str) -> Option<(u64, &str)> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let (digits, rest) = digits.split_at_checked(end)?;
    Some((u64::from_str_radix(digits, 16).ok()?, rest))
}

/// The hexadecimal number that follows the first `marker` in `text`.
pub(crate) fn hex_after(text: &str, marker: &str) -> Option<u64> {
    let (_, rest) = text.split_once(marker)?;
    leading_hex(rest.trim_start()).map(|(value, _)| value)
}

/// The decimal number, with fraction, that follows the first `marker` in `text`.
pub(crate) fn decimal_after<'t>(text: &'t str, marker: &str) -> Option<&'t str> {
    let rest = text.split_once(marker)?.1.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let digits = rest.get(..end)?.trim_end_matches('.');
    (!digits.is_empty()).then_some(digits)
}

/// What stands between `open` and the next `close`.
pub(crate) fn between<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

/// The address as every sentence writes it.
pub(crate) fn hex(address: Avma) -> String {
    format!("{address}")
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_where_they_stand() {
        assert_eq!(hex_after("KERN_INVALID_ADDRESS at 0x0000000000000008", "at "), Some(8));
        assert_eq!(hex_after("KERN_INVALID_ADDRESS at nowhere", "at "), None);
        assert_eq!(decimal_after("allowance of 19.97 seconds", "allowance of"), Some("19.97"));
        assert_eq!(decimal_after("took 20.", "took"), Some("20"));
        assert_eq!(decimal_after("allowance of some seconds", "allowance of"), None);
        assert_eq!((number("0x10"), number("10"), number("ten")), (Some(16), Some(10), None));
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(one_line("  a \n b\t c "), "a b c");
        let long = one_line(&"ä".repeat(2000));
        assert!(long.len() <= MAX_TEXT + '…'.len_utf8() && long.ends_with('…'), "{}", long.len());
        assert!(one_line(&"ab ".repeat(2000)).len() <= MAX_TEXT + 4);
    }

    #[test]
    fn lists_read_as_a_person_writes_them() {
        let list = |items: &[&str]| listed(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!([list(&[]), list(&["x0"]), list(&["x0", "x1", "x2"])], ["", "x0", "x0, x1 and x2"]);
    }
}
