//! What compilers and linkers append to a finished name.

use crate::error::Failed;
use crate::limited::Limited;
use core::fmt::{self, Write as _};

/// What the names of Swift's macro expansions start with.
pub(crate) const SWIFT_MACRO: &str = "@__swiftmacro_";

/// Writes what follows a mangled name: ` (.cold)` for a compiler's suffix, nothing for none.
pub(crate) fn write<W: fmt::Write>(suffix: &str, out: &mut Limited<W>) -> Result<(), Failed> {
    if suffix.is_empty() {
        return Ok(());
    }
    if !suffix.starts_with('.') {
        return Err(Failed::Invalid(0));
    }
    Ok(write!(out, " ({suffix})")?)
}

/// Whether there is a dot or an `@` anywhere in a name, which few names have; faster than two searches.
pub(crate) fn has_mark(name: &str) -> bool {
    // Without an early end, so that the compiler can look at many bytes at once.
    name.as_bytes().iter().fold(0, |found, &byte| found | u8::from(byte == b'.') | u8::from(byte == b'@'))
        != 0
}

/// Parts the name from what a linker or a disassembler appended: `@plt`, `@@GLIBCXX_3.4`.
pub(crate) fn split_version(name: &str) -> (&str, &str) {
    // Swift's macro expansions start with an `@` of their own.
    let from = name.bytes().take_while(|&byte| byte == b'_' || byte == b'@').count();
    match name.get(from..).and_then(|rest| rest.find('@')) {
        Some(at) => name.split_at_checked(from + at).unwrap_or((name, "")),
        None => (name, ""),
    }
}
