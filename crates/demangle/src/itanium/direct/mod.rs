//! Common names in one pass: the text is written while the name is read.
//!
//! Nine of ten names are made of scopes, class templates, pointers, references and builtin types only. For those no
//! tree is needed: each part's text is appended to the output, and a substitution or template parameter copies the text
//! that its part has there. What has to be written around or before something that was written already is moved: a return
//! type in front of its function's name, a `*` into a function type.
//!
//! Everything else (expressions, lambdas with template parameters, packs in unusual places, ...) answers `None`, and the
//! whole name is read again in the general way, which also decides whether it is valid. The two ways never differ in
//! what they write: the tests and the fuzz target compare them.

mod names;
mod templates;
mod types;

use super::cursor::Cursor;
use super::node::{Qualifiers, Reference};
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut, Range};

/// Deeper names are left to the general way, which knows how deep is too deep.
const MAX_DEPTH: u32 = 48;

/// Where a text is in the output: the start in the low half, the end in the high one, so that it is passed in a
/// register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Text(u64);

/// What else is to be known of a part that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    LValueReference,
    RValueReference,
    /// A function or array type, not yet pointed to: a pointer opens parentheses at the place.
    Bare(u32),
    /// A pointer to such a type: what is added goes to the place, within the parentheses.
    Wrapped(u32),
    /// A pack of template arguments: `text` is a range of [`Buffers::elements`].
    Pack,
    /// Not to be copied: it depends on a pack, or was changed afterwards.
    Unusable,
}

/// A part that a substitution or template parameter can stand for.
#[derive(Debug, Clone, Copy)]
struct Part {
    text: Text,
    /// The class's own name, which its constructors bear.
    base: Text,
    kind: Kind,
}

/// What is kept from name to name.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    substitutions: Vec<Part>,
    /// What template parameters stand for, innermost encoding last.
    args: Vec<Part>,
    /// The elements of packs among them.
    elements: Vec<Part>,
}

/// What the name of an encoding tells about the rest of it.
#[derive(Debug, Default)]
struct State {
    is_without_return_type: bool,
    ends_with_args: bool,
    qualifiers: Qualifiers,
    reference: Option<Reference>,
}

/// Reads and writes one name.
pub(super) struct Direct<'n, 'b> {
    cursor: Cursor<'n>,
    out: &'b mut Vec<u8>,
    max_len: usize,
    buffers: &'b mut Buffers,
    /// `args` from here on belong to the innermost encoding; `None` before its name has shown them.
    args_from: Option<usize>,
    /// What a constructor of the last substitution would be called.
    substituted: Text,
    /// The element of packs that is being written, and how many there are once a pack was met.
    pack_index: Option<usize>,
    pack_len: Option<usize>,
    /// Within a lambda's parameters, the level of its template parameters: 1 in an encoding that has some of its own.
    lambda_level: Option<usize>,
    depth: u32,
}

impl<'n> Deref for Direct<'n, '_> {
    type Target = Cursor<'n>;

    fn deref(&self) -> &Cursor<'n> {
        &self.cursor
    }
}

impl<'n> DerefMut for Direct<'n, '_> {
    fn deref_mut(&mut self) -> &mut Cursor<'n> {
        &mut self.cursor
    }
}

/// Writes the readable form of the encoding at `at` and of the suffix behind it to `out`; `None` if it is not one of the
/// common names, or has more than about `max_len` bytes.
pub(super) fn write(
    name: &str,
    at: usize,
    max_len: usize,
    buffers: &mut Buffers,
    out: &mut Vec<u8>,
) -> Option<()> {
    buffers.substitutions.clear();
    buffers.args.clear();
    buffers.elements.clear();
    let mut direct = Direct {
        cursor: Cursor { bytes: name.as_bytes(), at },
        out,
        max_len: max_len.min(u32::MAX as usize / 2),
        buffers,
        args_from: None,
        substituted: Text::NONE,
        pack_index: None,
        pack_len: None,
        lambda_level: None,
        depth: 0,
    };
    direct.encoding()?;
    if direct.peek(0) == b'.' {
        direct.push(b" (");
        let suffix = direct.bytes.get(direct.at..)?;
        direct.out.extend_from_slice(suffix);
        direct.push(b")");
    } else if !direct.is_at_end() {
        return None;
    }
    (direct.out.len() <= max_len).then_some(())
}

impl Text {
    /// What has no name that a constructor could bear.
    const NONE: Text = Text(0);

    fn new(start: u32, end: u32) -> Text {
        Text(u64::from(start) | u64::from(end) << 32)
    }

    fn start(self) -> u32 {
        self.0 as u32
    }

    fn end(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn range(self) -> Range<usize> {
        self.start() as usize..self.end() as usize
    }

    /// Where it is after a move.
    fn moved(self, by: u32) -> Text {
        if self == Text::NONE {
            return self;
        }
        Text::new(self.start().wrapping_add(by), self.end().wrapping_add(by))
    }
}

impl Direct<'_, '_> {
    #[inline]
    fn push(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    #[inline]
    fn here(&self) -> u32 {
        // `copy` keeps the output below `max_len`, which fits, plus the length of the name.
        self.out.len() as u32
    }

    /// Makes what was written since `start` available as a substitution.
    #[inline]
    fn remember(&mut self, start: u32, base: Text, kind: Kind) {
        let text = Text::new(start, self.here());
        let kind = if self.pack_index.is_some() { Kind::Unusable } else { kind };
        self.buffers.substitutions.push(Part { text, base, kind });
    }

    /// Writes again what a part has written; answers what is to be known of the copy.
    #[inline]
    fn copy(&mut self, part: Part) -> Option<Kind> {
        let by = self.here().wrapping_sub(part.text.start());
        let kind = match part.kind {
            Kind::Bare(place) => Kind::Bare(place.wrapping_add(by)),
            Kind::Wrapped(place) => Kind::Wrapped(place.wrapping_add(by)),
            Kind::Pack | Kind::Unusable => return None,
            kind => kind,
        };
        self.write_again(part.text)?;
        Some(kind)
    }

    #[inline]
    fn write_again(&mut self, text: Text) -> Option<()> {
        let range = text.range();
        // The text of an empty pack's expansion may have been taken back.
        let is_there = range.start <= range.end && range.end <= self.out.len();
        if !is_there || self.out.len() + range.len() > self.max_len {
            return None;
        }
        self.out.extend_from_within(range);
        Some(())
    }

    /// Reads a part that may contain itself.
    #[inline]
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        let part = read(self)?;
        self.depth -= 1;
        Some(part)
    }

    /// Writes ` , ` between the members of a list, and nothing where a member writes nothing: an empty pack.
    ///
    /// `from` is where the list starts; the answer is where the member starts.
    #[inline]
    fn comma(&mut self, from: u32) -> u32 {
        if self.here() > from {
            self.push(b", ");
        }
        self.here()
    }

    /// Takes the comma back if nothing was written behind it.
    #[inline]
    fn uncomma(&mut self, from: u32, start: u32) {
        if self.here() == start && start > from {
            self.out.truncate(start as usize - 2);
        }
    }

    /// Inserts text at a place behind which only parts since `substitutions_from` were written.
    fn insert(&mut self, place: u32, text: &[u8], substitutions_from: usize) -> Option<()> {
        self.push(text);
        self.out.get_mut(place as usize..)?.rotate_right(text.len());
        let len = text.len() as u32;
        for part in self.buffers.substitutions.get_mut(substitutions_from..)? {
            if part.text.start() >= place {
                part.shift(len);
            } else if part.text.end() > place {
                part.kind = Kind::Unusable;
            }
        }
        Some(())
    }

    /// Moves what was written since `middle` in front of what was written since `start`.
    fn bring_forward(
        &mut self,
        start: u32,
        middle: u32,
        substitutions_from: usize,
        args_from: usize,
    ) -> Option<()> {
        let end = self.here();
        self.out.get_mut(start as usize..)?.rotate_left((middle - start) as usize);
        let (forward, back) = (end - middle, (middle - start).wrapping_neg());
        let substitutions = self.buffers.substitutions.get_mut(substitutions_from..)?;
        let args = self.buffers.args.get_mut(args_from..)?;
        for part in substitutions.iter_mut().chain(args) {
            // A pack's text is a range of elements.
            if part.kind != Kind::Pack {
                part.shift(if part.text.start() >= middle { back } else { forward });
            }
        }
        for part in &mut self.buffers.elements {
            if (start..middle).contains(&part.text.start()) {
                part.shift(forward);
            }
        }
        Some(())
    }
}

impl Part {
    /// Notes that the text was moved.
    fn shift(&mut self, by: u32) {
        self.text = Text::new(self.text.start().wrapping_add(by), self.text.end().wrapping_add(by));
        self.base = self.base.moved(by);
        self.kind = match self.kind {
            Kind::Bare(place) => Kind::Bare(place.wrapping_add(by)),
            Kind::Wrapped(place) => Kind::Wrapped(place.wrapping_add(by)),
            kind => kind,
        };
    }
}
