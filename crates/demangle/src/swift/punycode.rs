//! RFC 3492 with Swift's alphabet: `_` delimits, `A` to `J` stand for the digits.

use alloc::string::String;
use alloc::vec::Vec;

const BASE: u32 = 36;
const T_MIN: u32 = 1;
const T_MAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const INITIAL_BIAS: u32 = 72;
const INITIAL_N: u32 = 128;

/// Decoding inserts within the text, which is quadratic: longer identifiers than anybody writes are refused.
const MAX_CHARS: usize = 2048;

/// Where Swift moves ASCII characters that may not stand in a symbol: a surrogate that no text can hold.
const MOVED_ASCII: core::ops::Range<u32> = 0xD800..0xD880;

/// Appends what `encoded` stands for; `None` if it is not valid.
pub(super) fn decode(encoded: &str, out: &mut String) -> Option<()> {
    let (plain, deltas) = match encoded.rfind('_') {
        Some(at) => (encoded.get(..at)?, encoded.get(at + 1..)?),
        None => ("", encoded),
    };
    if !plain.is_ascii() || encoded.len() > MAX_CHARS {
        return None;
    }
    let mut chars: Vec<u32> = plain.bytes().map(u32::from).collect();
    let mut digits = deltas.bytes();
    let (mut code, mut position, mut bias) = (INITIAL_N, 0_u32, INITIAL_BIAS);
    while digits.len() > 0 {
        let before = position;
        position = position.checked_add(delta(&mut digits, bias)?)?;
        let count = u32::try_from(chars.len()).ok()?.checked_add(1)?;
        bias = adapt(position - before, count, before == 0);
        code = code.checked_add(position / count)?;
        position %= count;
        chars.insert(usize::try_from(position).ok()?, code);
        position += 1;
    }
    for char in chars {
        let char = if MOVED_ASCII.contains(&char) { char - MOVED_ASCII.start } else { char };
        out.push(char::from_u32(char)?);
    }
    Some(())
}

/// A number of variable length, least significant digit first.
fn delta(digits: &mut core::str::Bytes<'_>, bias: u32) -> Option<u32> {
    let (mut number, mut weight, mut k) = (0_u32, 1_u32, BASE);
    loop {
        let digit = match digits.next()? {
            letter @ b'a'..=b'z' => u32::from(letter - b'a'),
            letter @ b'A'..=b'J' => u32::from(letter - b'A') + 26,
            _ => return None,
        };
        number = number.checked_add(digit.checked_mul(weight)?)?;
        let threshold = k.saturating_sub(bias).clamp(T_MIN, T_MAX);
        if digit < threshold {
            return Some(number);
        }
        weight = weight.checked_mul(BASE - threshold)?;
        k += BASE;
    }
}

/// Section 6.1 of the RFC.
fn adapt(delta: u32, count: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / count;
    let mut k = 0;
    while delta > ((BASE - T_MIN) * T_MAX) / 2 {
        delta /= BASE - T_MIN;
        k += BASE;
    }
    k + (((BASE - T_MIN + 1) * delta) / (delta + SKEW))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoded: &str) -> Option<String> {
        let mut text = String::new();
        decode(encoded, &mut text).map(|()| text)
    }

    #[test]
    fn decodes_swift_identifiers() {
        assert_eq!(decoded("vergenza_JFa").as_deref(), Some("verg\u{fc}enza"));
        assert_eq!(decoded("p_qcaDc").as_deref(), Some("\u{ab}p\u{bb}"));
        assert_eq!(decoded("abc_").as_deref(), Some("abc"));
    }

    #[test]
    fn refuses_what_is_not_punycode() {
        for bad in ["vergenza_JF", "a_0", "a_J9", "\u{fc}_JFa", "zzzzzzzzzzzzzzz"] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
        let long = "a".repeat(MAX_CHARS) + "_a";
        assert_eq!(decoded(&long), None);
    }
}
