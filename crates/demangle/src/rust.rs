//! Rust: legacy and v0 names, read by the `rustc-demangle` crate.
//!
//! The hash that ends a legacy name is left out, as is v0's crate disambiguator: both change with every build.

use crate::error::Failed;
use crate::limited::Limited;
use crate::{FoldTemplates, Options, suffix};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

/// A legacy name's last part: `17h`, sixteen digits, `E`.
const HASH_LEN: usize = "17h0123456789abcdefE".len();

/// A hash with fewer different digits is a C++ identifier that happens to look like one.
const MIN_DIFFERENT_DIGITS: u32 = 5;

/// True for a v0 name: `_R` (one underscore more in Mach-O) and a path's first letter.
pub(crate) fn is_v0(bytes: &[u8]) -> bool {
    let underscores = bytes.iter().take_while(|&&byte| byte == b'_').count();
    (1..=2).contains(&underscores)
        && bytes.get(underscores) == Some(&b'R')
        && bytes.get(underscores + 1).is_some_and(u8::is_ascii_uppercase)
}

/// True for a legacy name: a C++ nested name that ends in a hash.
pub(crate) fn is_legacy(name: &str) -> bool {
    name.trim_start_matches(['\x01', '_']).starts_with("ZN") && legacy_len(name).is_some()
}

/// As [`is_legacy`], for a name that has no suffix.
pub(crate) fn is_legacy_without_suffix(name: &str) -> bool {
    name.ends_with('E')
        && name.len().checked_sub(HASH_LEN).and_then(|at| name.get(at..)).is_some_and(is_hash)
        && name.trim_start_matches(['\x01', '_']).starts_with("ZN")
}

/// Where a legacy name ends: behind the hash, at the end or a suffix. Its parts may hold dots too (`..` for `::`).
fn legacy_len(name: &str) -> Option<usize> {
    name.match_indices("17h").map(|(at, _)| at + HASH_LEN).find(|&end| {
        let hash = name.get(end - HASH_LEN..end);
        let last = name.as_bytes().get(end).is_none_or(|&byte| byte == b'.' || byte == b'@');
        last && hash.is_some_and(is_hash)
    })
}

fn is_hash(part: &str) -> bool {
    let Some(digits) = part.strip_prefix("17h").and_then(|rest| rest.strip_suffix('E')) else { return false };
    let mut seen = 0_u32;
    for byte in digits.bytes() {
        match byte {
            b'0'..=b'9' => seen |= 1 << (byte - b'0'),
            b'a'..=b'f' => seen |= 1 << (byte - b'a' + 10),
            _ => return false,
        }
    }
    seen.count_ones() >= MIN_DIFFERENT_DIGITS
}

/// Writes the readable form of a legacy or v0 name.
pub(crate) fn demangle<W: fmt::Write>(
    name: &str,
    options: &Options,
    out: &mut Limited<W>,
) -> Result<(), Failed> {
    let end = legacy_len(name).or_else(|| name.find('.')).unwrap_or(name.len());
    let (body, rest) = name.split_at_checked(end).ok_or(Failed::Invalid(0))?;
    let parsed = rustc_demangle::try_demangle(body).map_err(|_| Failed::Invalid(0))?;
    if let Some(fold) = options.fold_templates {
        let mut text = String::new();
        // What is longer is cut before it is folded.
        let is_whole = write!(Limited::new(&mut text, options.max_len), "{parsed:#}").is_ok();
        out.write_str(&folded(&text, fold))?;
        if !is_whole {
            return Err(Failed::Full);
        }
    } else {
        write!(out, "{parsed:#}")?;
    }
    if out.is_empty() {
        // A crate without a name
        return Err(Failed::Invalid(0));
    }
    suffix::write(rest, out)
}

/// Replaces generic arguments by `<...>`: what stands in angle brackets behind a path, unlike `<T as Trait>`.
fn folded(text: &str, fold: FoldTemplates) -> String {
    let mut out = String::with_capacity(text.len());
    // Where each bracket was opened, and whether it opens arguments.
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut depth = 0;
    for letter in text.chars() {
        let before = out.chars().next_back().unwrap_or(' ');
        match letter {
            '<' => {
                let has_args = before.is_alphanumeric() || matches!(before, '_' | ':' | '}');
                open.push((out.len(), has_args));
                depth += u32::from(has_args);
                out.push(letter);
            }
            '>' if before != '-' => {
                out.push(letter);
                let Some((from, has_args)) = open.pop() else { continue };
                if has_args && (depth > fold.depth || out.len() - from > fold.len) {
                    out.truncate(from);
                    out.push_str("<...>");
                }
                depth -= u32::from(has_args);
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{FoldTemplates, Options, Scheme, demangle, scheme};

    #[test]
    fn both_generations() {
        for (name, readable) in [
            ("_ZN3std2io5stdio6_print17h0a1b2c3d4e5f6071E", "std::io::stdio::_print"),
            ("__ZN3std2io5stdio6_print17h0a1b2c3d4e5f6071E", "std::io::stdio::_print"),
            ("_ZN3std2io5stdio6_print17h0a1b2c3d4e5f6071E.llvm.77", "std::io::stdio::_print (.llvm.77)"),
            ("_ZN7a..b..c17h0a1b2c3d4e5f6071E.cold", "a::b::c (.cold)"),
            ("_RNvC6_123foo3bar", "123foo::bar"),
            ("__RNvC6_123foo3bar", "123foo::bar"),
            ("_RNvC6_123foo3bar.cold", "123foo::bar (.cold)"),
        ] {
            assert_eq!(scheme(name), Some(Scheme::Rust));
            assert_eq!(demangle(name, &Options::default()), readable);
        }
    }

    #[test]
    fn folded_arguments() {
        let name = "_RINvMNtC4core3vecINtB3_3VecNtB5_3StrE3mapNCNvC1a1b0hEC1a";
        let whole = "<core::vec::Vec<core::Str>>::map::<a::b::{closure#0}, u8>";
        let folded = |depth, len| {
            let fold_templates = Some(FoldTemplates { depth, len });
            demangle(name, &Options { fold_templates, ..Options::default() }).into_owned()
        };
        assert_eq!(demangle(name, &Options::default()), whole);
        assert_eq!(folded(9, 99), whole);
        assert_eq!(folded(0, 99), "<core::vec::Vec<...>>::map::<...>");
        assert_eq!(folded(9, 12), "<core::vec::Vec<core::Str>>::map::<...>");
    }

    #[test]
    fn a_name_without_a_hash_is_not_rust() {
        assert_eq!(scheme("_ZN3std2io6_printE"), Some(Scheme::Itanium));
        assert_eq!(scheme("_ZN3std17h0000000000000000E"), Some(Scheme::Itanium));
        assert_eq!(scheme("_Rust"), None);
    }
}
