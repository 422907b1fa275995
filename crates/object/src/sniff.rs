//! What a file is, by its first bytes.

/// How many bytes [`sniff`] looks at.
pub(crate) const ENOUGH: u64 = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sniffed {
    MachO,
    Elf,
    Fat,
    Archive,
    SharedCache,
    /// Not for us, with a word for what it is.
    Other(&'static str),
}

/// Fat headers and Java classes share a magic number. The next four bytes are the number of architectures here, and a
/// version of at least 45 there.
const JAVA_FROM: u32 = 44;

pub(crate) fn sniff(start: &[u8]) -> Sniffed {
    let word = |at: usize| Some(u32::from_be_bytes(*start.get(at..)?.first_chunk()?));
    match word(0) {
        Some(0xfeed_face | 0xfeed_facf | 0xcefa_edfe | 0xcffa_edfe) => return Sniffed::MachO,
        Some(0x7f45_4c46) => return Sniffed::Elf,
        Some(0xcafe_babe) if word(4).is_some_and(|count| count >= JAVA_FROM) => {
            return Sniffed::Other("a Java class");
        }
        Some(0xcafe_babe | 0xcafe_babf) => return Sniffed::Fat,
        _ => {}
    }
    if start.starts_with(b"!<arch>\n") || start.starts_with(b"!<thin>\n") {
        return Sniffed::Archive;
    }
    if start.starts_with(b"dyld_v") {
        return Sniffed::SharedCache;
    }
    Sniffed::Other(describe(start))
}

/// What people put beside their symbols by mistake.
fn describe(start: &[u8]) -> &'static str {
    const KNOWN: [(&[u8], &str); 14] = [
        (b"\x00\x05\x16\x07", "an AppleDouble file (the `._` twin of another file)"),
        (b"PK\x03\x04", "a zip file"),
        (b"\x1f\x8b", "gzip data"),
        (b"BZh", "bzip2 data"),
        (b"\xfd7zXZ\x00", "xz data"),
        (b"\x28\xb5\x2f\xfd", "zstd data"),
        (b"bplist00", "a property list"),
        (b"MZ", "a Windows program"),
        (b"Microsoft C/C++ MSF", "a Windows PDB file"),
        (b"\x00asm", "WebAssembly"),
        (b"BC\xc0\xde", "LLVM bitcode"),
        (b"\xde\xc0\x17\x0b", "LLVM bitcode"),
        (b"MODULE ", "a Breakpad symbol file"),
        (b"version https://git-lfs", "a Git LFS pointer (the file itself was not fetched)"),
    ];
    if start.is_empty() {
        return "an empty file";
    }
    if let Some((_, what)) = KNOWN.iter().find(|(magic, _)| start.starts_with(magic)) {
        return what;
    }
    if start.iter().all(|byte| *byte == 0) {
        return "zeros";
    }
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    let starts = |tag: &[u8]| text.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag));
    if starts(b"<!doctype html") || starts(b"<html") {
        return "an HTML page";
    }
    if starts(b"<?xml") || starts(b"<!doctype plist") {
        return "XML";
    }
    // The last character may be cut through.
    let is_utf8 = std::str::from_utf8(text).map_or_else(|error| error.error_len().is_none(), |_| true);
    let is_plain = text.iter().all(|byte| byte.is_ascii_whitespace() || !byte.is_ascii_control());
    if is_utf8 && is_plain { "text" } else { "unknown data" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_named() {
        for (start, what) in [
            (&b""[..], "an empty file"),
            (
                b"\x00\x05\x16\x07\x00\x02\x00\x00Mac OS X        ",
                "an AppleDouble file (the `._` twin of another file)",
            ),
            (b"\n <!DOCTYPE HTML><html>", "an HTML page"),
            (b"just some words\n", "text"),
            (b"\x00\x00\x00\x00\x00\x00", "zeros"),
            (b"\x01\x02\x03", "unknown data"),
            (b"\xca\xfe\xba\xbe\x00\x00\x00\x34", "a Java class"),
        ] {
            assert_eq!(sniff(start), Sniffed::Other(what));
        }
        assert_eq!(sniff(b"\xca\xfe\xba\xbe\x00\x00\x00\x02"), Sniffed::Fat);
        assert_eq!(sniff(b"\xca\xfe\xba"), Sniffed::Other("unknown data"));
    }
}
