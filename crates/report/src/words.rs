//! Words of which a line may have any.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// Words that are looked for in one go: of every line of a text many are asked for, and most have none.
pub(crate) struct Words(Option<AhoCorasick>);

impl Words {
    /// None of `words` is empty.
    pub(crate) fn new(words: &[&str]) -> Self {
        // The kind that costs least to make: a search goes by the words' rarest bytes, and seldom comes to the automaton.
        let kind = Some(AhoCorasickKind::NoncontiguousNFA);
        // Too many words for the search are none of these few.
        Self(AhoCorasick::builder().kind(kind).build(words).ok())
    }

    /// Whether a text has one of them.
    pub(crate) fn any_in(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|words| words.is_match(text))
    }
}
