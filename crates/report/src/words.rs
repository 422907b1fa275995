//! Words of which a line may have any.

use aho_corasick::AhoCorasick;

/// Words that are looked for in one go: of every line of a text many are asked for, and most have none.
pub(crate) struct Words(Option<AhoCorasick>);

impl Words {
    /// None of `words` is empty.
    pub(crate) fn new(words: &[&str]) -> Self {
        // Too many words for the search are none of these few.
        Self(AhoCorasick::new(words).ok())
    }

    /// Whether a text has one of them.
    pub(crate) fn any_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|words| words.is_match(text))
    }
}
