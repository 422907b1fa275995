//! What functions are called, each kept once.

use super::intern::{Interner, Strings};
use crate::types::{FunctionHead, Language, NameId, StringId};

/// Names of functions, numbered from 1 on; 0 is what has none.
pub(crate) struct HeadInterner(Interner);

impl HeadInterner {
    pub(crate) fn new() -> Self {
        Self(Interner::new())
    }

    /// The number of a name.
    pub(crate) fn intern(&self, head: FunctionHead) -> NameId {
        if head == FunctionHead::default() {
            return NameId(0);
        }
        let number = |id: Option<StringId>| id.map_or(0, |id| id.0.wrapping_add(1)).to_le_bytes();
        let ([a, b, c, d], [e, f, g, h]) = (number(head.name), number(head.linkage_name));
        let [i, j] = head.language.0.to_le_bytes();
        NameId(self.0.intern(&[a, b, c, d, e, f, g, h, i, j]).map_or(0, |id| id.saturating_add(1)))
    }

    /// Ends the collecting.
    pub(crate) fn into_heads(self) -> Heads {
        Heads(self.0.into_strings())
    }
}

/// All names, no longer growing.
pub(crate) struct Heads(Strings);

impl Heads {
    /// What a number stands for.
    pub(crate) fn get(&self, name: NameId) -> FunctionHead {
        let Some(id) = name.0.checked_sub(1) else { return FunctionHead::default() };
        let &[a, b, c, d, e, f, g, h, i, j] = self.0.get(id) else { return FunctionHead::default() };
        let id = |bytes: [u8; 4]| u32::from_le_bytes(bytes).checked_sub(1).map(StringId);
        FunctionHead {
            name: id([a, b, c, d]),
            linkage_name: id([e, f, g, h]),
            language: Language(u16::from_le_bytes([i, j])),
        }
    }

    /// A number above all that were given out.
    pub(crate) fn bound(&self) -> usize {
        self.0.bound() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_equal_ones_share_a_number() {
        let interner = HeadInterner::new();
        let heads = [
            FunctionHead { name: Some(StringId(0)), linkage_name: None, language: Language(0) },
            FunctionHead { name: None, linkage_name: Some(StringId(0)), language: Language(0) },
            FunctionHead {
                name: Some(StringId(7)),
                linkage_name: Some(StringId(1 << 20)),
                language: Language(0x1c),
            },
            FunctionHead { name: None, linkage_name: None, language: Language(4) },
            FunctionHead::default(),
        ];
        let names = heads.map(|head| interner.intern(head));
        assert_eq!(names, heads.map(|head| interner.intern(head)));
        assert_eq!(names[4], NameId(0));
        let known = interner.into_heads();
        assert_eq!(names.map(|name| known.get(name)), heads);
        assert!(names.iter().all(|name| (name.0 as usize) < known.bound()));
    }
}
