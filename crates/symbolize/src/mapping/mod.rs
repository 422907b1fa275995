//! The mapping files of R8 and ProGuard, and what they make of obfuscated Java frames.
//!
//! The format is R8's `retrace.md`: a line a class, below it a line for each field and each range of lines of a method.
//! Ranges that follow each other with the same obfuscated lines are an inline chain. Comments in JSON say more: the source
//! file of a class, methods that are made up or outlined, frames to leave out.
//!
//! A mapping is read lazily: opening it only finds where each class stands.

mod comment;
mod members;
mod retrace;
mod text;

pub use retrace::{MappedFrame, Retraced, Retracer};

use std::collections::HashMap;
use std::ops::Range;

/// What the head of a mapping file says of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct MappingHead {
    /// `pg_map_id`, which the source files of frames may name: `r8-map-id-…`.
    pub id: Option<String>,
    /// `pg_map_hash` without the name of its algorithm.
    pub hash: Option<String>,
}

impl MappingHead {
    /// Reads the first lines of a file; `None` where it is no mapping.
    pub fn read(start: &[u8]) -> Option<Self> {
        let mut head = Self::default();
        let mut says = false;
        for line in lines(start, 0).map(|(_, line)| line) {
            let text = std::str::from_utf8(line).ok()?.trim_end();
            let Some(comment) = text.strip_prefix('#') else {
                if text.is_empty() {
                    continue;
                }
                return (says || class_line(text).is_some()).then_some(head);
            };
            let value = |key: &str| comment.trim().strip_prefix(key).map(|value| value.trim().to_owned());
            says |= comment.contains("com.android.tools.r8.") || value("compiler:").is_some();
            if let Some(id) = value("pg_map_id:") {
                (head.id, says) = (Some(id), true);
            }
            if let Some(hash) = value("pg_map_hash:") {
                let digits = hash.rsplit(' ').next().unwrap_or(&hash).to_owned();
                (head.hash, says) = (Some(digits), true);
            }
        }
        says.then_some(head)
    }

    /// Whether this is the file that a report names by `id`.
    pub fn is(&self, id: &str) -> bool {
        let is_start = |text: &String| !id.is_empty() && text.starts_with(id);
        self.id.as_deref() == Some(id) || self.hash.as_ref().is_some_and(is_start)
    }
}

/// A mapping file.
pub struct Mapping<B> {
    bytes: B,
    head: MappingHead,
    /// Where the lines of each class stand, by its obfuscated name.
    by_name: HashMap<Box<str>, Range<usize>>,
    /// Where each class stands by its own name.
    by_original: HashMap<Box<str>, usize>,
}

impl<B> std::fmt::Debug for Mapping<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mapping").field("head", &self.head).finish_non_exhaustive()
    }
}

/// The lines from `start` on, with the place of each.
fn lines(bytes: &[u8], start: usize) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = start;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = (at, rest.get(..length)?);
        at += length + 1;
        Some(line)
    })
}

/// `com.example.Cart -> a.b:`, split.
fn class_line(line: &str) -> Option<(&str, &str)> {
    let (original, name) = line.trim_end().strip_suffix(':')?.split_once(" -> ")?;
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace) && !name.contains('(');
    (is_name(original) && is_name(name)).then_some((original, name))
}

impl<B: AsRef<[u8]>> Mapping<B> {
    /// Finds the classes of a mapping file. A file without any is none.
    pub fn new(bytes: B) -> Option<Self> {
        let head =
            MappingHead::read(bytes.as_ref().get(..HEAD).unwrap_or(bytes.as_ref())).unwrap_or_default();
        let mut mapping = Self { bytes, head, by_name: HashMap::new(), by_original: HashMap::new() };
        let mut open: Option<(Box<str>, usize)> = None;
        let data = mapping.bytes.as_ref();
        for (at, line) in lines(data, 0) {
            if matches!(line.first(), None | Some(b' ' | b'\t' | b'#' | b'\r')) {
                continue;
            }
            let Some((original, name)) = std::str::from_utf8(line).ok().and_then(class_line) else {
                continue;
            };
            if let Some((name, start)) = open.take() {
                mapping.by_name.entry(name).or_insert(start..at);
            }
            mapping.by_original.entry(original.into()).or_insert(at);
            open = Some((name.into(), at));
        }
        if let Some((name, start)) = open {
            mapping.by_name.entry(name).or_insert(start..data.len());
        }
        (!mapping.by_name.is_empty()).then_some(mapping)
    }

    /// What the file says of itself.
    pub fn head(&self) -> &MappingHead {
        &self.head
    }

    /// The own name of an obfuscated class.
    pub fn class(&self, name: &str) -> Option<&str> {
        let place = self.by_name.get(name)?;
        self.class_at(place.start).map(|(original, _)| original)
    }

    fn class_at(&self, at: usize) -> Option<(&str, &str)> {
        let (_, line) = lines(self.bytes.as_ref(), at).next()?;
        class_line(std::str::from_utf8(line).ok()?)
    }

    /// The lines of a class, without its first.
    fn body(&self, name: &str) -> Option<impl Iterator<Item = &str>> {
        let place = self.by_name.get(name)?.clone();
        let bytes = self.bytes.as_ref().get(..place.end)?;
        Some(lines(bytes, place.start).skip(1).filter_map(|(_, line)| std::str::from_utf8(line).ok()))
    }

    /// The source file that a comment states for a class of that own name.
    fn source_file(&self, original: &str) -> Option<String> {
        let at = *self.by_original.get(original)?;
        let comments = lines(self.bytes.as_ref(), at)
            .skip(1)
            .map_while(|(_, line)| std::str::from_utf8(line).ok())
            .map_while(|line| line.trim_start().strip_prefix('#'));
        comments.take(MAX_COMMENTS).find_map(|comment| {
            let comment = comment::Comment::read(comment)?;
            (comment.id() == Some("sourceFile")).then(|| comment.text("fileName").map(str::to_owned))?
        })
    }
}

/// Bytes of the head that are looked at.
const HEAD: usize = 16 << 10;
/// Comments of one class that are looked at.
const MAX_COMMENTS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let head = |text: &str| MappingHead::read(text.as_bytes());
        let found =
            head("# compiler: R8\n# pg_map_id: 1a2b3c4\n# pg_map_hash: SHA-256 1a2b3c4d5e\na.B -> c:\n")
                .unwrap();
        assert_eq!((found.id.as_deref(), found.hash.as_deref()), (Some("1a2b3c4"), Some("1a2b3c4d5e")));
        assert!(found.is("1a2b3c4") && found.is("1a2b3c4d5e") && !found.is("9") && !found.is(""));
        assert!(head("a.B -> c:\n  int x -> y\n").is_some());
        for text in ["", "hello\n", "# compiled\nx\n", "a -> b\n", "\u{0}"] {
            assert_eq!(head(text), None, "{text:?}");
        }
    }

    #[test]
    fn classes_are_found_without_their_members() {
        let mapping = Mapping::new("a.B -> c:\n  int x() -> y\n# note\na.D -> e:\n".as_bytes()).unwrap();
        assert_eq!(
            (mapping.class("c"), mapping.class("e"), mapping.class("a.B")),
            (Some("a.B"), Some("a.D"), None)
        );
        assert!(Mapping::new(b"nothing".as_slice()).is_none());
    }
}
