//! Tests of the rules as a whole; the parts that they are made of have theirs beside them.

mod arbitrary;
mod captures;
mod corpus;
mod documentation;
mod expert;
mod forms;
mod last_words;
mod phones;
mod rules;
mod sentences;
mod tables;
mod wild;

use super::{Explanation, explain};
use crate::attribute;
use backtrail_model::Report;
use backtrail_report::{Limits, parse};

fn read(text: &str) -> Report {
    parse(text.as_bytes(), &Limits::default()).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn explained(text: &str) -> Explanation {
    explain(&read(text))
}

fn titles(cases: &[(&str, &str)]) {
    for (text, title) in cases {
        assert_eq!(&explained(text).title, title, "{text}");
    }
}

/// The verdict, in its word.
fn whose(text: &str) -> &'static str {
    let report = read(text);
    attribute(&report, &explain(&report)).verdict.as_str()
}
