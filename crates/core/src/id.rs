//! The identity of a binary, by which its debug file is found.

use core::fmt;

/// What tells one build of a binary from every other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ImageId {
    /// Mach-O `LC_UUID`, in the order of the file's bytes.
    Uuid([u8; 16]),
    /// The GNU build id note of an ELF file.
    BuildId(BuildId),
    /// Stands in for ELF files that carry no build id: an XOR over the first page of code, as Breakpad makes it.
    CodeHash([u8; 16]),
}

/// The bytes of a GNU build id: 20 by default, 8 or 16 with other linker options.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; MAX_BUILD_ID],
    len: u8,
}

const MAX_BUILD_ID: usize = 64;

/// A text that is no identity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseIdError;

/// What each byte is worth as a hexadecimal digit.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < 16 {
        digits[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digits[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};
const NO_DIGIT: u8 = u8::MAX;

impl ImageId {
    /// A build id from a note's bytes; `None` when there are none, or more than 64.
    pub fn from_build_id(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let mut id = BuildId { bytes: [0; MAX_BUILD_ID], len: u8::try_from(bytes.len()).ok()? };
        id.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self::BuildId(id))
    }

    /// A UUID from 32 hexadecimal digits of either case; hyphens are passed over.
    pub fn parse_uuid(text: &str) -> Result<Self, ParseIdError> {
        // Reports have hundreds of images: this is quicker than what serves any radix, and goes over the text once.
        let mut value = 0_u128;
        let mut digits = 0_u32;
        for byte in text.as_bytes() {
            let digit = DIGITS.get(usize::from(*byte)).copied().unwrap_or(NO_DIGIT);
            if digit < 16 {
                value = value << 4 | u128::from(digit);
                digits = digits.saturating_add(1);
            } else if *byte != b'-' {
                return Err(ParseIdError);
            }
        }
        if digits == 32 { Ok(Self::Uuid(value.to_be_bytes())) } else { Err(ParseIdError) }
    }

    /// A build id from its hexadecimal digits.
    pub fn parse_build_id(text: &str) -> Result<Self, ParseIdError> {
        let mut bytes = [0; MAX_BUILD_ID];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(ParseIdError);
        }
        let mut len = 0;
        for (slot, pair) in bytes.iter_mut().zip(pairs) {
            let digit = |byte: u8| (byte as char).to_digit(16).ok_or(ParseIdError);
            *slot = u8::try_from(digit(pair[0])? << 4 | digit(pair[1])?).map_err(|_| ParseIdError)?;
            len += 1;
        }
        if len != pairs.len() {
            return Err(ParseIdError);
        }
        Self::from_build_id(bytes.get(..len).unwrap_or_default()).ok_or(ParseIdError)
    }

    /// The identifying bytes, in the order of the file.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Uuid(bytes) | Self::CodeHash(bytes) => bytes,
            Self::BuildId(id) => id.bytes.get(..usize::from(id.len)).unwrap_or_default(),
        }
    }

    /// What kind of identity this is, in the words of its format.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Uuid(_) => "UUID",
            Self::BuildId(_) => "build id",
            Self::CodeHash(_) => "code hash",
        }
    }

    /// Whether every byte is zero, which is how reports and linkers write "no identity".
    pub fn is_nil(&self) -> bool {
        self.as_bytes().iter().all(|byte| *byte == 0)
    }
}

/// UUIDs as `AAAAAAAA-BBBB-CCCC-DDDD-EEEEEEEEEEEE` in upper case as Apple's tools print them, the rest as lower-case
/// hexadecimal digits as GNU's do.
impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Uuid(bytes) = self else {
            return self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"));
        };
        // Output of reports has hundreds of them: formatting numbers costs several times as much.
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        let mut text = [b'-'; 36];
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let places = (0..text.len()).filter(|at| !matches!(at, 8 | 13 | 18 | 23));
        for (at, digit) in places.zip(digits) {
            if let (Some(place), Some(digit)) = (text.get_mut(at), HEX.get(usize::from(digit))) {
                *place = *digit;
            }
        }
        f.write_str(core::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {self}", self.kind())
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&ImageId::BuildId(*self), f)
    }
}

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an identity: expected 32 hexadecimal digits of a UUID, or 2 to 128 of a build id")
    }
}

impl core::error::Error for ParseIdError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn uuids_read_in_both_spellings_and_print_in_apples() {
        let plain = ImageId::parse_uuid("3baca52bdb6c3f4faf87b0bbe60a97c2").unwrap();
        let hyphens = ImageId::parse_uuid("3BACA52B-DB6C-3F4F-AF87-B0BBE60A97C2").unwrap();
        assert_eq!(plain, hyphens);
        assert_eq!(format!("{plain}"), "3BACA52B-DB6C-3F4F-AF87-B0BBE60A97C2");
    }

    #[test]
    fn what_is_no_identity_is_refused() {
        for text in ["", "3baca52b", "zbaca52bdb6c3f4faf87b0bbe60a97c2", "3baca52bdb6c3f4faf87b0bbe60a97c200"]
        {
            assert_eq!(ImageId::parse_uuid(text), Err(ParseIdError), "{text}");
        }
        for text in ["", "abc", "xy"] {
            assert_eq!(ImageId::parse_build_id(text), Err(ParseIdError), "{text}");
        }
        let long: String = core::iter::repeat_n("ab", 65).collect();
        assert_eq!(ImageId::parse_build_id(&long), Err(ParseIdError));
    }

    #[test]
    fn build_ids_of_any_length_read_back() {
        for text in ["00", "0123456789abcdef", "0123456789abcdef0123456789abcdef01234567"] {
            assert_eq!(format!("{}", ImageId::parse_build_id(text).unwrap()), text);
        }
        assert!(ImageId::parse_build_id("0000").unwrap().is_nil());
    }
}
