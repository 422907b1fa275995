//! What a function type says besides its parameters and its result, as bits of its node.

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Convention {
    Swift,
    NoEscape,
    Uncurried,
    CalledOnce,
    AutoClosure,
    EscapingAutoClosure,
    Thin,
    CPointer,
    ObjCBlock,
    EscapingObjCBlock,
}

impl Convention {
    pub(super) fn pack(self) -> u32 {
        self as u32
    }

    pub(super) fn unpack(bits: u32) -> Self {
        match bits & CONVENTION {
            0 => Convention::Swift,
            1 => Convention::NoEscape,
            2 => Convention::Uncurried,
            3 => Convention::CalledOnce,
            4 => Convention::AutoClosure,
            5 => Convention::EscapingAutoClosure,
            6 => Convention::Thin,
            7 => Convention::CPointer,
            8 => Convention::ObjCBlock,
            _ => Convention::EscapingObjCBlock,
        }
    }

    /// Whether an entity of this type is written like a function: `f(Int) -> Int` rather than `f : (Int) -> Int`.
    pub(super) fn is_function_style(self) -> bool {
        matches!(
            self,
            Convention::Swift
                | Convention::NoEscape
                | Convention::Uncurried
                | Convention::CalledOnce
                | Convention::Thin
                | Convention::CPointer
        )
    }

    /// Whether nothing stands before the parameters.
    pub(super) fn is_bare(self) -> bool {
        matches!(
            self,
            Convention::Swift | Convention::NoEscape | Convention::Uncurried | Convention::CalledOnce
        )
    }
}

const CONVENTION: u32 = 0xF;
pub(super) const THROWS: u32 = 1 << 4;
pub(super) const ASYNC: u32 = 1 << 5;
pub(super) const SENDABLE: u32 = 1 << 6;
pub(super) const SENDING_RESULT: u32 = 1 << 7;
pub(super) const ISOLATED_ANY: u32 = 1 << 8;
pub(super) const NONISOLATED_CALLER: u32 = 1 << 9;
/// A child says so, in this order: the C type, the global actor, the thrown error.
pub(super) const HAS_C_TYPE: u32 = 1 << 10;
pub(super) const HAS_ACTOR: u32 = 1 << 11;
pub(super) const HAS_ERROR: u32 = 1 << 12;
const DIFFERENTIABLE_SHIFT: u32 = 16;

/// The letter of `differentiable` as bits.
pub(super) fn differentiable(letter: u32) -> u32 {
    (letter & 0xFF) << DIFFERENTIABLE_SHIFT
}

/// What is written for the letter of `differentiable` in the bits; empty if there is none.
pub(super) fn differentiable_text(bits: u32) -> &'static str {
    let [_, letter, _, _] = bits.to_be_bytes();
    differentiable_letter_text(letter)
}

/// What is written for a letter of `differentiable`.
pub(super) fn differentiable_letter_text(letter: u8) -> &'static str {
    match letter {
        b'f' => "@differentiable(_forward)",
        b'r' => "@differentiable(reverse)",
        b'l' => "@differentiable(_linear)",
        b'd' => "@differentiable",
        _ => "",
    }
}
