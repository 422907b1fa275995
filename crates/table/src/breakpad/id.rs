//! Breakpad's form of identities: a GUID in hexadecimal digits with an age behind it.
//!
//! A GUID's first three fields are numbers, which Breakpad prints as such after it took them from little-endian bytes. So
//! the first eight bytes of a build id come out in another order than those of a UUID, which Apple stores big-endian.

use backtrail_core::ImageId;
use std::fmt::Write as _;

/// The debug id that Breakpad gives an image: 32 digits of its identity and the age, which is 0 but for Windows.
pub fn debug_id(id: &ImageId) -> String {
    let mut guid = [0u8; 16];
    for (to, from) in guid.iter_mut().zip(id.as_bytes()) {
        *to = *from;
    }
    if !matches!(id, ImageId::Uuid(_)) {
        guid = swapped(guid);
    }
    let mut text = String::with_capacity(33);
    for byte in guid {
        let _ = write!(text, "{byte:02X}");
    }
    text.push('0');
    text
}

/// The identity that a debug id stands for. `is_apple` tells whether it is of a Mach-O image. Of a build id only the first
/// 16 bytes are in it, and it may as well be a hash of code: `code_id`, from the file's `INFO CODE_ID`, has all of it.
pub fn image_id(debug_id: &str, code_id: Option<&str>, is_apple: bool) -> Option<ImageId> {
    let guid = debug_id.get(..32)?;
    let Ok(ImageId::Uuid(bytes)) = ImageId::parse_uuid(guid) else { return None };
    if is_apple {
        return Some(ImageId::Uuid(bytes));
    }
    match code_id.map(ImageId::parse_build_id) {
        Some(id) => id.ok(),
        None => Some(ImageId::CodeHash(swapped(bytes))),
    }
}

fn swapped(guid: [u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
    let mut swapped = [0; 16];
    let bytes = [d, c, b, a, f, e, h, g].into_iter().chain(rest);
    for (to, from) in swapped.iter_mut().zip(bytes) {
        *to = from;
    }
    swapped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_ids_are_guids_of_swapped_numbers() {
        // As dump_syms 2.3.9 has it.
        let text = "6fc3066a42132cbd9626c8f469af71b862e801c6";
        let id = ImageId::parse_build_id(text).unwrap();
        assert_eq!(debug_id(&id), "6A06C36F1342BD2C9626C8F469AF71B80");
        assert_eq!(image_id("6A06C36F1342BD2C9626C8F469AF71B80", Some(text), false), Some(id));
        let Some(ImageId::CodeHash(hash)) = image_id("6A06C36F1342BD2C9626C8F469AF71B80", None, false) else {
            panic!()
        };
        assert_eq!(hash, id.as_bytes()[..16]);
    }

    #[test]
    fn uuids_stay_as_they_are() {
        let id = image_id("4C4C44D455553144A1CF98CE2AA71BD70", Some("4C4C44D4"), true).unwrap();
        assert_eq!(id.to_string(), "4C4C44D4-5555-3144-A1CF-98CE2AA71BD7");
        assert_eq!(debug_id(&id), "4C4C44D455553144A1CF98CE2AA71BD70");
        assert_eq!(image_id("4C4C", None, true), None);
        assert_eq!(image_id("zC4C44D455553144A1CF98CE2AA71BD70", None, true), None);
    }
}
