//! Base64 (RFC 4648, 4), in which reports keep bytes and mails their bodies.

use alloc::vec::Vec;

/// The value of a digit; `None` of what is none, padding too.
pub fn base64_digit(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// The bytes that a text stands for, up to its first byte that is no digit.
pub fn base64(text: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0u32, 0u32);
    for value in text.into_iter().map_while(base64_digit) {
        held = held << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap_or_default());
            held &= (1 << bits) - 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::base64;

    /// The test vectors of RFC 4648, 10.
    #[test]
    fn the_standards_vectors() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.bytes()), bytes.as_bytes(), "{text}");
        }
        assert_eq!(base64(*b"//++ Zm9v"), [0xff, 0xff, 0xbe]);
    }
}
