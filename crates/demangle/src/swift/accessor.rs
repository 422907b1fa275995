//! How storage is got at.

/// Declares [`Accessor`] with the word that each is shown as.
macro_rules! accessors {
    ($($name:ident = $text:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Accessor { $($name,)* }

        const TEXTS: &[&str] = &[$($text,)*];
    };
}

accessors! {
    Getter = "getter",
    Setter = "setter",
    MaterializeForSet = "materializeForSet",
    WillSet = "willset",
    DidSet = "didset",
    Read = "read",
    Modify = "modify",
    // Renamed to `yielding_borrow` and `yielding_mutate` by compilers after Swift 6.3.
    Read2 = "read2",
    Modify2 = "modify2",
    Init = "init",
    Borrow = "borrow",
    Mutate = "mutate",
    OwningAddressor = "owningAddressor",
    NativeOwningAddressor = "nativeOwningAddressor",
    NativePinningAddressor = "nativePinningAddressor",
    UnsafeAddressor = "unsafeAddressor",
    OwningMutableAddressor = "owningMutableAddressor",
    NativeOwningMutableAddressor = "nativeOwningMutableAddressor",
    NativePinningMutableAddressor = "nativePinningMutableAddressor",
    UnsafeMutableAddressor = "unsafeMutableAddressor",
}

impl Accessor {
    /// `ACCESSOR`, without the addressors. The old manglings use a subset with the same letters.
    pub(super) fn from_letter(letter: u8) -> Option<Self> {
        Some(match letter {
            b'g' | b'G' => Accessor::Getter,
            b's' => Accessor::Setter,
            b'm' => Accessor::MaterializeForSet,
            b'w' => Accessor::WillSet,
            b'W' => Accessor::DidSet,
            b'r' => Accessor::Read,
            b'M' => Accessor::Modify,
            b'y' => Accessor::Read2,
            b'x' => Accessor::Modify2,
            b'i' => Accessor::Init,
            b'b' => Accessor::Borrow,
            b'z' => Accessor::Mutate,
            _ => return None,
        })
    }

    /// `ADDRESSOR-KIND` after `l`.
    pub(super) fn addressor(letter: u8) -> Option<Self> {
        Some(match letter {
            b'O' => Accessor::OwningAddressor,
            b'o' => Accessor::NativeOwningAddressor,
            b'p' => Accessor::NativePinningAddressor,
            b'u' => Accessor::UnsafeAddressor,
            _ => return None,
        })
    }

    /// `ADDRESSOR-KIND` after `a`. The document says `p`, the compilers wrote `P`.
    pub(super) fn mutable_addressor(letter: u8) -> Option<Self> {
        Some(match letter {
            b'O' => Accessor::OwningMutableAddressor,
            b'o' => Accessor::NativeOwningMutableAddressor,
            b'p' | b'P' => Accessor::NativePinningMutableAddressor,
            b'u' => Accessor::UnsafeMutableAddressor,
            _ => return None,
        })
    }

    /// To be kept in a node.
    pub(super) fn pack(self) -> u32 {
        self as u32
    }
}

/// The word of a packed accessor.
pub(super) fn text(packed: u32) -> &'static str {
    usize::try_from(packed).ok().and_then(|at| TEXTS.get(at)).copied().unwrap_or_default()
}
