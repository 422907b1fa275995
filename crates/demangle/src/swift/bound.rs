//! Nominal types with generic arguments.

use super::kinds::Kind;
use super::node::{Arena, NodeRef};
use super::standard;

/// What kind of nominal type has got arguments: some have sugar, a protocol is written differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    Class,
    Structure,
    Enum,
    Protocol,
    Other,
}

/// Set beside a packed [`Bound`] whose arguments conform retroactively to something.
pub(super) const RETROACTIVE: u32 = 8;

impl Bound {
    pub(super) fn pack(self) -> u32 {
        self as u32
    }

    pub(super) fn unpack(packed: u32) -> Self {
        match packed & !RETROACTIVE {
            0 => Bound::Class,
            1 => Bound::Structure,
            2 => Bound::Enum,
            3 => Bound::Protocol,
            _ => Bound::Other,
        }
    }
}

/// What a nominal type would be with arguments; `None` if it cannot have any.
pub(super) fn kind_of(nominal: NodeRef, arena: &Arena) -> Option<Bound> {
    let kind = match arena.own_kind(nominal) {
        Kind::Standard => standard::unpack(arena.extra(nominal))?.0,
        kind => kind,
    };
    Some(match kind {
        Kind::Class => Bound::Class,
        Kind::Structure => Bound::Structure,
        Kind::Enum => Bound::Enum,
        Kind::Protocol => Bound::Protocol,
        Kind::OtherNominalType | Kind::TypeAlias => Bound::Other,
        _ => return None,
    })
}
