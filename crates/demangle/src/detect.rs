//! Which scheme made a name.

use crate::{Scheme, d, itanium, objc, rust, suffix, swift};

/// Which scheme made this name, judged by how it starts (and, for Rust's legacy names, ends).
///
/// `None`: it is no mangled name, most likely plain C. `Some` does not promise that the rest of the name is valid.
#[must_use]
pub fn scheme(name: &str) -> Option<Scheme> {
    scheme_marked(name, suffix::has_mark(name))
}

/// As [`scheme()`], where it is known whether there is a dot or an `@` in the name.
pub(crate) fn scheme_marked(name: &str, has_mark: bool) -> Option<Scheme> {
    let bytes = unescaped(name).as_bytes();
    match bytes {
        _ if is_itanium(bytes) => {
            let is_rust = if has_mark { rust::is_legacy(name) } else { rust::is_legacy_without_suffix(name) };
            Some(if is_rust { Scheme::Rust } else { Scheme::Itanium })
        }
        _ if swift::is_mangled(unescaped(name)) => Some(Scheme::Swift),
        _ if itanium::keyed(unescaped(name)).is_some() => Some(Scheme::Itanium),
        _ if rust::is_v0(bytes) => Some(Scheme::Rust),
        _ if d::is_mangled(unescaped(name)) => Some(Scheme::D),
        _ if objc::is_method(unescaped(name)) => Some(Scheme::ObjC),
        [b'?', b'?' | b'@' | b'$' | b'_' | b'A'..=b'Z' | b'a'..=b'z', ..] | [b'.', b'?', b'A', ..] => {
            Some(Scheme::Msvc)
        }
        _ => None,
    }
}

/// The name without LLVM's "take this name as it is" mark.
pub(crate) fn unescaped(name: &str) -> &str {
    name.strip_prefix('\x01').unwrap_or(name)
}

/// One to four underscores and a `Z`: the third and fourth are a block invocation's, or Mach-O's.
fn is_itanium(bytes: &[u8]) -> bool {
    let underscores = bytes.iter().take_while(|&&byte| byte == b'_').count();
    (1..=4).contains(&underscores) && bytes.get(underscores) == Some(&b'Z')
}
