//! Values that rules have.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;

/// One text, or a list of them; none is empty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

/// An empty text would fit everything.
fn filled<E: Error>(text: &str) -> Result<String, E> {
    if text.is_empty() { Err(E::custom("expected a text that is not empty")) } else { Ok(text.to_owned()) }
}

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![filled(text)?]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Texts, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            texts.push(filled(&text)?);
        }
        if texts.is_empty() {
            return Err(A::Error::custom("expected a list that is not empty"));
        }
        Ok(Texts(texts))
    }
}

/// Whether `text` fits `pattern`, in which `*` stands for any text.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return text.ends_with(rest) };
    // The leftmost place of each part leaves the most for those behind it.
    for part in middle.split('*') {
        let Some(at) = text.find(part) else { return false };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(last)
}
