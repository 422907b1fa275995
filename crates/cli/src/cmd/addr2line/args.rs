//! The flags of GNU addr2line (binutils 2.40).

use crate::io::file::read_at_most;
use clap::Args;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// GNU addr2line: turns addresses into functions, files and lines, in the form that scripts know.
///
/// Takes the flags of GNU addr2line and prints what it prints; `@FILE` reads options from a file. Addresses are
/// hexadecimal; they are read from standard input, one a line, where none are given, and each is answered at once.
/// Also runs under its own name: as a link called `addr2line`, or with a prefix such as `aarch64-linux-gnu-addr2line`.
#[derive(Args, Clone, Debug)]
#[command(infer_long_args = true)]
pub(crate) struct Addr2line {
    /// Show each address before its answer.
    #[arg(short = 'a', long)]
    pub(crate) addresses: bool,
    /// Accepted and not needed: the format of the file is detected.
    #[arg(short = 'b', long, value_name = "BFDNAME")]
    pub(crate) target: Option<OsString>,
    /// The file to look in.
    #[arg(short = 'e', long = "exe", value_name = "FILE", default_value = "a.out")]
    pub(crate) exe: PathBuf,
    /// Show the functions that were inlined at the address, innermost first.
    #[arg(short = 'i', long)]
    pub(crate) inlines: bool,
    /// Addresses are offsets from the start of this section.
    #[arg(short = 'j', long, value_name = "NAME")]
    pub(crate) section: Option<OsString>,
    /// One line for each function instead of two.
    #[arg(short = 'p', long)]
    pub(crate) pretty_print: bool,
    /// Show files without their directories.
    #[arg(short = 's', long)]
    pub(crate) basenames: bool,
    /// Show the names of functions.
    #[arg(short = 'f', long)]
    pub(crate) functions: bool,
    /// Make the names of functions readable.
    #[arg(
        short = 'C',
        long,
        value_name = "STYLE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "auto"
    )]
    pub(crate) demangle: Option<String>,
    /// Accepted: recursion is always limited.
    #[arg(short = 'R', long, alias = "recursion-limit")]
    pub(crate) recurse_limit: bool,
    /// Accepted and ignored: recursion is always limited.
    #[arg(short = 'r', long, alias = "no-recursion-limit")]
    pub(crate) no_recurse_limit: bool,
    /// Show the version.
    #[arg(short = 'v', short_alias = 'V', long)]
    pub(crate) version: bool,
    /// The addresses.
    #[arg(value_name = "ADDR", allow_hyphen_values = false)]
    pub(crate) words: Vec<OsString>,
}

/// The styles that GNU's tools know. All but `none` let the name itself say how it is mangled.
const STYLES: [&str; 7] = ["none", "auto", "gnu-v3", "java", "gnat", "dlang", "rust"];

impl Addr2line {
    /// Whether names are to be made readable.
    pub(crate) fn demangles(&self) -> Result<bool, String> {
        match self.demangle.as_deref() {
            None | Some("none") => Ok(false),
            Some(style) if STYLES.contains(&style) => Ok(true),
            Some(style) => Err(format!("unknown demangling style `{style}'")),
        }
    }
}

/// Reads an address as GNU does with `strtoul`: what follows the digits is ignored, what has none is 0, what is too
/// large is the largest address.
pub(crate) fn address(text: &str) -> u64 {
    let text = text.trim_start();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let end = digits.find(|character: char| !character.is_ascii_hexdigit()).unwrap_or(digits.len());
    let value = match digits.get(..end) {
        None | Some("") => 0,
        Some(digits) => u64::from_str_radix(digits, 16).unwrap_or(u64::MAX),
    };
    if negative && value != u64::MAX { value.wrapping_neg() } else { value }
}

/// Replaces every `@FILE` by the words in that file, as GNU's tools do: words are separated by white space, quotes
/// and backslashes protect it. A file that cannot be read leaves its word as it is.
pub(crate) fn expand(words: Vec<OsString>) -> Vec<OsString> {
    /// Files that name further files; GNU stops a little later, at 2000.
    const MAX_FILES: usize = 64;
    let mut files = 0;
    let mut pending: Vec<_> = words.into_iter().rev().collect();
    let mut expanded = Vec::new();
    while let Some(word) = pending.pop() {
        let path = word.as_encoded_bytes().strip_prefix(b"@").filter(|_| files < MAX_FILES).map(native);
        match path.and_then(|path| read_options(path.as_ref())) {
            Some(text) => {
                files += 1;
                pending.extend(split(&text).into_iter().rev());
            }
            None => expanded.push(word),
        }
    }
    expanded
}

/// The text of a file of options; none of a pipe, which may never end, nor of what is larger than options are.
fn read_options(path: &Path) -> Option<Vec<u8>> {
    const MAX_BYTES: u64 = 1 << 24;
    read_at_most(path, MAX_BYTES).ok()
}

/// Bytes as the system has them in paths, where they need not be UTF-8.
#[cfg(unix)]
fn native(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn native(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn split(text: &[u8]) -> Vec<OsString> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', _) => word.get_or_insert_default().extend(bytes.next()),
            (mark, Some(open)) if mark == open => quote = None,
            (b'\'' | b'"', None) => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            // As `isspace` has it.
            (b' ' | b'\t'..=b'\r', None) => words.extend(word.take()),
            (other, _) => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    words.iter().map(|word| native(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_strtoul_does() {
        for (text, value) in [
            ("0x10", 0x10),
            ("10", 0x10),
            ("  0X1130 foo\n", 0x1130),
            ("zz", 0),
            ("", 0),
            ("0x", 0),
            ("-1", u64::MAX),
            ("+12", 0x12),
            ("12:34", 0x12),
            ("0xffffffffffffffffff", u64::MAX),
        ] {
            assert_eq!(address(text), value, "{text:?}");
        }
    }

    #[test]
    fn words_of_a_file_are_split_as_the_shell_would() {
        assert_eq!(split(b" -e  'a b' \"c'd\" e\\ f ''\n0x1"), ["-e", "a b", "c'd", "e f", "", "0x1"]);
        assert_eq!(expand(vec!["@/nowhere/at/all".into(), "1".into()]), ["@/nowhere/at/all", "1"]);
    }
}
