//! The flags of Apple's atos (manual page of macOS 14; usage text of macOS 26).

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Apple's atos: turns addresses into symbols, in the form that scripts know.
///
/// Takes the flags of Apple's atos, long ones with one dash or two, and prints what it prints. Addresses are read from
/// standard input where none are given, and each line is answered at once. Also runs under its own name, as a link
/// called `atos`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Atos {
    /// The binary, dSYM bundle or debug file to look in.
    #[arg(short = 'o', value_name = "FILE")]
    pub(crate) object: Option<PathBuf>,
    /// Refused: running processes are not read.
    #[arg(short = 'p', value_name = "PID")]
    pub(crate) process: Option<OsString>,
    /// Which slice of a fat file; arm64 or else the first one without it.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Addresses are of a process that has the file mapped at this hexadecimal address.
    #[arg(short = 'l', long = "loadAddress", value_name = "ADDRESS", conflicts_with_all = ["slide", "offset"])]
    pub(crate) load_address: Option<String>,
    /// Addresses are of a process that has the file this many bytes above its stated address, in hexadecimal.
    #[arg(short = 's', long, value_name = "SLIDE", conflicts_with = "offset")]
    pub(crate) slide: Option<String>,
    /// Addresses are of a kernel that has the segment `__TEXT_EXEC` at this hexadecimal address.
    #[arg(long = "textExecAddress", value_name = "ADDRESS", conflicts_with_all = ["load_address", "slide", "offset"])]
    pub(crate) text_exec_address: Option<String>,
    /// Addresses are offsets from the start of the image.
    #[arg(long)]
    pub(crate) offset: bool,
    /// Show the functions that were inlined at the address, innermost first, and an empty line behind each answer.
    #[arg(short = 'i', long = "inlineFrames")]
    pub(crate) inline_frames: bool,
    /// Show files with their directories.
    #[arg(long = "fullPath")]
    pub(crate) full_path: bool,
    /// What stands between the functions of one address.
    #[arg(short = 'd', long, value_name = "TEXT", default_value = "\n", hide_default_value = true)]
    pub(crate) delimiter: OsString,
    /// Read addresses from a file; white space separates them.
    #[arg(short = 'f', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Accepted: there is a header for processes only.
    #[arg(long = "printHeader")]
    pub(crate) print_header: bool,
    /// Accepted: all names of an address are one answer here.
    #[arg(long)]
    pub(crate) dedup: bool,
    /// The addresses.
    #[arg(value_name = "ADDRESS")]
    pub(crate) addresses: Vec<OsString>,
}

/// The flags that atos takes with one dash.
const LONG: [&str; 10] = [
    "arch",
    "loadAddress",
    "slide",
    "textExecAddress",
    "offset",
    "inlineFrames",
    "fullPath",
    "delimiter",
    "printHeader",
    "dedup",
];

/// Gives long flags the second dash that atos does not need.
pub(crate) fn with_two_dashes(argv: Vec<OsString>) -> Vec<OsString> {
    let is_long = |word: &OsString| {
        let name = word.as_encoded_bytes().strip_prefix(b"-");
        let name = name.map(|name| name.split(|byte| *byte == b'=').next().unwrap_or(name));
        name.is_some_and(|name| LONG.iter().any(|long| long.as_bytes() == name))
    };
    let with_dash = |word: OsString| match is_long(&word) {
        true => {
            let mut longer = OsString::from("-");
            longer.push(word);
            longer
        }
        false => word,
    };
    argv.into_iter().map(with_dash).collect()
}

/// Reads an address: hexadecimal with `0x` or with a digit that only hexadecimal numbers have, else decimal.
pub(crate) fn address(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    text.parse().ok().or_else(|| u64::from_str_radix(text, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_flags_need_one_dash_only() {
        let words =
            ["-arch", "arm64", "-fullPath", "-i", "--offset", "-o", "x", "-d=;", "-delimiter=;", "-archive"];
        let words = with_two_dashes(words.map(OsString::from).into());
        let wanted = [
            "--arch",
            "arm64",
            "--fullPath",
            "-i",
            "--offset",
            "-o",
            "x",
            "-d=;",
            "--delimiter=;",
            "-archive",
        ];
        assert_eq!(words, wanted);
    }

    #[test]
    fn addresses_are_decimal_unless_marked() {
        assert_eq!(address("0x10"), Some(16));
        assert_eq!(address("10"), Some(10));
        assert_eq!(address("1000041cc"), Some(0x1_0000_41cc));
        assert_eq!(address("main"), None);
        assert_eq!(address(""), None);
    }
}
