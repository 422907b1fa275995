//! Places in the source that a report's words name: `panicked at src/cart.rs:10:5`.
//!
//! A line moves with every release, so that such a place is in no key by names. Without names it is as good as a place in the build, and better
//! where the innermost places are those of the runtime's own functions: these are the same for all bugs.

use super::name::normalised_message;
use super::places::short_path;
use crate::explain::kill::account;
use backtrail_model::{Report, Source};

/// Lines looked at.
const MAX_LINES: usize = 64;

/// What a report's words say of the place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stated {
    /// The file, as short as keys have it, with the line: `cart.rs:10:5`.
    pub(super) place: String,
    /// The file alone.
    pub(super) file: String,
    /// Whether it is a panic's. Words of checks have the file.
    pub(super) is_panic: bool,
}

/// The place that a panic of Rust's, or a failed check of Chromium's, glog's or Abseil's, names: they end the program by several functions
/// of their own that are linked into it. Panics in Rust's own library name no place of the program.
pub(super) fn stated(report: &Report) -> Option<Stated> {
    let own = report.exception.as_ref().and_then(|exception| exception.message.as_deref());
    let info = report.app_info.iter().flat_map(|info| &info.lines).map(String::as_str);
    let mut lines = own.into_iter().chain(info).flat_map(str::lines).take(MAX_LINES);
    let mut fields = report.fields.iter().filter(|_| report.source == Source::RustPanic);
    match fields.find(|field| field.key == "place") {
        Some(field) => in_rust(&field.value),
        None => lines.find_map(|line| in_panic(line).or_else(|| in_check(line))),
    }
}

/// `panicked at src/cart.rs:10:5:`; before Rust 1.73 `panicked at 'no cart', src/cart.rs:10:5`.
fn in_panic(line: &str) -> Option<Stated> {
    let (_, rest) = line.split_once("panicked at ")?;
    let place = match rest.strip_prefix('\'') {
        Some(quoted) => quoted.rsplit_once("', ")?.1,
        None => rest,
    };
    in_rust(place.trim_end().trim_end_matches(':'))
}

fn in_rust(place: &str) -> Option<Stated> {
    let (front, column) = place.rsplit_once(':')?;
    let (path, line) = front.rsplit_once(':')?;
    if !path.ends_with(".rs") || !is_number(line) || !is_number(column) {
        return None;
    }
    const LIBRARY: [&str; 4] = ["/rustc/", "library/", "src/libcore/", "src/libstd/"];
    let path = path.trim();
    if LIBRARY.iter().any(|start| path.starts_with(start)) || path.contains("/rustlib/src/") {
        return None;
    }
    Some(Stated { is_panic: true, ..Stated::new(path, &format!("{line}:{column}")) })
}

/// `[1:2:0711/101010.123:FATAL:cart.cc(10)] Check failed: …`; `F0711 10:10:10.123456 12 cart.cc:10] Check failed: …`.
fn in_check(line: &str) -> Option<Stated> {
    let (head, _) = line.split_once(']')?;
    let is_glogs = head.strip_prefix('F').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let place = match head.rsplit_once("FATAL:") {
        Some((_, place)) => place,
        None if is_glogs => head.rsplit(' ').next()?,
        None => return None,
    };
    let (path, line) = match place.strip_suffix(')') {
        Some(place) => place.rsplit_once('(')?,
        None => place.rsplit_once(':')?,
    };
    (path.contains('.') && is_number(line)).then(|| Stated::new(path, line))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Stated {
    fn new(path: &str, line: &str) -> Self {
        let file = short_path(path).to_owned();
        Self { place: format!("{file}:{line}"), file, is_panic: false }
    }
}

/// The library or symbol that Apple's loader did not find, in short: programs that lack another one have the same stack and code.
pub(super) fn missing(report: &Report) -> Option<String> {
    let account = account(report);
    let info = report.app_info.iter().flat_map(|info| &info.lines).map(String::as_str);
    let sections = report.sections.iter().flat_map(|section| section.text.lines());
    let mut lines = account.lines().chain(info).chain(sections).take(4 * MAX_LINES);
    let name = lines.find_map(|line| {
        let told = ["Library not loaded:", "Symbol not found:"].iter().find_map(|mark| line.split_once(mark));
        Some(told?.1.trim()).filter(|name| !name.is_empty())
    })?;
    Some(normalised_message(name.rsplit('/').next().unwrap_or(name)))
}

/// How messages of Rust's own library begin, without numbers: any program has several places that say the same.
const GENERAL: [&str; 20] = [
    "called `Option::unwrap()`",
    "called `Option::expect()`",
    "called `Result::unwrap()`",
    "called `Result::unwrap_err()`",
    "index out of bounds",
    "attempt to ",
    "explicit panic",
    "not yet implemented",
    "not implemented",
    "internal error: entered unreachable code",
    "already borrowed",
    "already mutably borrowed",
    "RefCell already ",
    "slice index starts at",
    "range start index",
    "range end index",
    "byte index",
    "start byte index",
    "end byte index",
    "capacity overflow",
];

/// Whether words say what went wrong and not in which code.
pub(super) fn is_general(words: &str) -> bool {
    words.is_empty() || GENERAL.iter().any(|start| words.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_from_words() {
        for (line, expected) in [
            ("thread 'main' panicked at src/cart.rs:10:5:", Some("cart.rs:10:5")),
            ("thread 'main' panicked at 'no cart', src/cart.rs:10:5", Some("cart.rs:10:5")),
            ("thread 'a' panicked at 'it's \"x\", y', /b/shop/src/main.rs:10:5", Some("src/main.rs:10:5")),
            (
                "panicked at /rustc/90b35a6239c3d8bdabc530a6a0816f7ff89a0aaf/library/core/src/ops.rs:250:5:",
                None,
            ),
            ("panicked at library/core/src/ops.rs:250:5:", None),
            ("thread 'main' panicked at 'no end", None),
            ("thread 'main' panicked at src/cart.rs", None),
            ("thread 'main' panicked at src/cart.rs:10:x:", None),
            ("[1:2:0711/101010.123:FATAL:cart.cc(10)] Check failed: ok.", Some("cart.cc:10")),
            ("[FATAL:base/cart.cc:10] Check failed: ok.", Some("cart.cc:10")),
            ("F0711 10:10:10.123456 12 cart.cc:10] Check failed: ok", Some("cart.cc:10")),
            ("E0711 10:10:10.123456 12 cart.cc:10] no cart", None),
            ("FATAL: no ] cart", None),
            ("", None),
        ] {
            let found = in_panic(line).or_else(|| in_check(line)).map(|stated| stated.place);
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }
}
