//! Which threads of a process are wanted.

use regex_lite::Regex;
use std::fmt;

/// Chooses threads by id and by name. One that says nothing takes all; with ids and a pattern it takes what has one of the ids or a
/// name that fits.
#[derive(Clone, Debug, Default)]
pub struct ThreadFilter {
    ids: Vec<u64>,
    name: Option<Regex>,
}

impl ThreadFilter {
    /// Takes threads with one of these ids, too.
    #[must_use]
    pub fn with_ids(mut self, ids: impl IntoIterator<Item = u64>) -> Self {
        self.ids.extend(ids);
        self
    }

    /// Takes threads with a name that a regular expression matches somewhere, too.
    ///
    /// # Errors
    /// Where it is none.
    pub fn with_name(mut self, pattern: &str) -> Result<Self, PatternError> {
        let regex = Regex::new(pattern);
        self.name = Some(regex.map_err(|source| PatternError { pattern: pattern.to_owned(), source })?);
        Ok(self)
    }

    /// Whether it takes all threads.
    pub fn takes_all(&self) -> bool {
        self.ids.is_empty() && self.name.is_none()
    }

    /// Whether it takes a thread of this id and name.
    pub fn matches(&self, id: Option<u64>, name: Option<&str>) -> bool {
        let fits = |regex: &Regex| name.is_some_and(|name| regex.is_match(name));
        self.takes_all()
            || id.is_some_and(|id| self.ids.contains(&id))
            || self.name.as_ref().is_some_and(fits)
    }
}

impl PartialEq for ThreadFilter {
    fn eq(&self, other: &Self) -> bool {
        let pattern = |filter: &'_ Self| filter.name.as_ref().map(|regex| regex.as_str().to_owned());
        self.ids == other.ids && pattern(self) == pattern(other)
    }
}

impl Eq for ThreadFilter {}

/// What is no regular expression.
#[derive(Debug)]
#[non_exhaustive]
pub struct PatternError {
    pattern: String,
    source: regex_lite::Error,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no regular expression: {}", self.pattern, self.source)
    }
}

impl std::error::Error for PatternError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_taken_by_id_or_by_name() {
        let all = ThreadFilter::default();
        assert!(all.takes_all() && all.matches(None, None));
        let named = all.clone().with_name("^conn-[0-9]+$").unwrap();
        assert!(named.matches(Some(1), Some("conn-12")));
        assert!(!named.matches(Some(1), Some("my conn-12")) && !named.matches(Some(1), None));
        let both = named.clone().with_ids([7, 9]);
        assert!(both.matches(Some(9), None) && both.matches(None, Some("conn-1")));
        assert!(!both.matches(Some(8), Some("main")) && both != named);
        let error = all.with_name("(").unwrap_err().to_string();
        assert!(error.starts_with("`(` is no regular expression: "), "{error}");
    }
}
