//! The file of rules that users write for their own code: TOML, one table for each rule.
//!
//! ```toml
//! [[owner]]
//! name = "FooSDK"
//! symbol = ["FOO", "foo::"]
//! path = "Pods/FooSDK"
//! ```
//!
//! A further kind of rule is a field of [`Rules`] and of `File`, and a file below this one that says what it may hold.

mod owner;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use owner::Code;
pub use owner::OwnerRule;

use owner::OwnerEntry;
use serde::Deserialize;
use std::fmt;
use toml::Spanned;

/// A file of rules has no more bytes.
const MAX_BYTES: usize = 4 << 20;

/// What users say of their own code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Rules {
    /// Whose code is whose; the first that fits counts.
    pub owners: Vec<OwnerRule>,
}

/// The file as TOML has it. Unknown keys are errors: a rule that is spelled wrong would silently do nothing.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    owner: Vec<Spanned<OwnerEntry>>,
}

/// What is wrong with a file of rules, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesError {
    kind: RulesErrorKind,
    file: String,
    line: Option<usize>,
    detail: String,
}

/// The kinds of trouble with a file of rules.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RulesErrorKind {
    /// It has more bytes than any file of rules needs.
    TooLarge,
    /// It is no text.
    NotText,
    /// It is no TOML, or a key or a value is none that rules have.
    Syntax,
    /// A rule contradicts itself, or says nothing.
    Rule,
}

impl Rules {
    /// Reads a file of rules; `file` is its name, for errors.
    ///
    /// # Errors
    /// Where it is no TOML, has a key that no rule has, or a rule that says nothing.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, RulesError> {
        let error = |kind, line, detail: String| RulesError { kind, file: file.to_owned(), line, detail };
        if bytes.len() > MAX_BYTES {
            let detail = format!("expected at most {MAX_BYTES} bytes, found {}", bytes.len());
            return Err(error(RulesErrorKind::TooLarge, None, detail));
        }
        let text = std::str::from_utf8(bytes).map_err(|problem| {
            let line = line_of(bytes, problem.valid_up_to());
            error(RulesErrorKind::NotText, Some(line), "expected UTF-8".to_owned())
        })?;
        let read: File = toml::from_str(text).map_err(|problem| {
            let line = problem.span().map(|span| line_of(bytes, span.start));
            error(RulesErrorKind::Syntax, line, problem.message().trim().replace('\n', "; "))
        })?;
        let wrong = |at: usize, detail| error(RulesErrorKind::Rule, Some(line_of(bytes, at)), detail);
        let owners = read.owner.into_iter().map(|entry| {
            let at = entry.span().start;
            OwnerRule::new(entry.into_inner()).map_err(|detail| wrong(at, detail))
        });
        Ok(Self { owners: owners.collect::<Result<_, _>>()? })
    }
}

/// The line, counted from 1, of a byte.
fn line_of(bytes: &[u8], at: usize) -> usize {
    bytes.iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

impl RulesError {
    /// What kind of trouble it is.
    pub fn kind(&self) -> RulesErrorKind {
        self.kind
    }

    /// The line that it is in, counted from 1, where there is one.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.detail)
    }
}

impl std::error::Error for RulesError {}
