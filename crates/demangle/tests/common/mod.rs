//! What the tests of this crate share.
#![allow(dead_code, reason = "each test uses a part of it")]
#![allow(clippy::panic, reason = "a list that cannot be read fails the test")]

use backtrail_demangle::{Demangler, Options};
use std::path::PathBuf;

/// The pairs of a list: mangled name, tab, readable name. Lines that start with `#` are comments.
pub(crate) fn pairs(list: &str) -> Vec<(&str, &str)> {
    list.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.split_once('\t').unwrap_or_else(|| panic!("no tab: {line}")))
        .collect()
}

/// A list of this crate's own.
pub(crate) fn own(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pairs that come out differently, as lines to read.
pub(crate) fn differences(pairs: &[(&str, &str)], options: &Options) -> Vec<String> {
    let mut demangler = Demangler::new();
    pairs
        .iter()
        .filter_map(|(name, expected)| {
            let got = demangler.demangle(name, options).unwrap_or(name);
            (got != *expected).then(|| format!("{name}\n  expected {expected}\n  got      {got}"))
        })
        .collect()
}

/// Fails with the first differences.
pub(crate) fn assert_all(pairs: &[(&str, &str)]) {
    let differences = differences(pairs, &Options::default());
    let first: Vec<&str> = differences.iter().take(20).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} of {} differ:\n{}", differences.len(), pairs.len(), first.join("\n"));
}
