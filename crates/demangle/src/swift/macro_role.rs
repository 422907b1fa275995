//! What an attached macro adds.

/// The role behind the letter of a macro expansion.
pub(super) fn name(letter: u8) -> Option<&'static str> {
    Some(match letter {
        b'a' => "accessor",
        b'r' => "memberAttribute",
        b'm' => "member",
        b'p' => "peer",
        b'c' => "conformance",
        b'e' => "extension",
        b'q' => "preamble",
        b'b' => "body",
        _ => return None,
    })
}
