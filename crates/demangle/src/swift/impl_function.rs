//! What a function type of the intermediate language says besides its types, as bits.

/// The children come in this order, each if its flag is set, followed by the [`ImplParameter`]s.
///
/// [`ImplParameter`]: super::kinds::Kind::ImplParameter
pub(super) const HAS_PATTERN: u32 = 1;
pub(super) const HAS_INVOCATION: u32 = 1 << 1;
pub(super) const HAS_SIGNATURE: u32 = 1 << 2;
pub(super) const HAS_C_TYPE: u32 = 1 << 3;

const ESCAPING: u32 = 1 << 4;
const ISOLATED_ANY: u32 = 1 << 5;
const CALLER_ISOLATED: u32 = 1 << 6;
const CALLED_ONCE: u32 = 1 << 7;
const SENDABLE: u32 = 1 << 8;
const ASYNC: u32 = 1 << 9;
pub(super) const SENDING_RESULT: u32 = 1 << 10;
const YIELD_ONCE: u32 = 1 << 11;
const YIELD_ONCE_2: u32 = 2 << 11;
const YIELD_MANY: u32 = 3 << 11;
const CONVENTION_SHIFT: u32 = 13;
const REPRESENTATION_SHIFT: u32 = 16;
const DIFFERENTIABLE_SHIFT: u32 = 20;

/// Attributes in the order in which they stand, with their letters.
pub(super) const BEFORE_CONVENTION: [(u8, u32); 4] =
    [(b'e', ESCAPING), (b'A', ISOLATED_ANY), (b'N', CALLER_ISOLATED), (b'O', CALLED_ONCE)];
pub(super) const COROUTINES: [(u8, u32); 3] = [(b'A', YIELD_ONCE), (b'I', YIELD_ONCE_2), (b'G', YIELD_MANY)];
pub(super) const AFTER_CONVENTION: [(u8, u32); 3] = [(b'h', SENDABLE), (b'H', ASYNC), (b'T', SENDING_RESULT)];

/// What is written for the attributes before the convention.
pub(super) const BEFORE_TEXTS: [(u32, &str); 4] = [
    (ESCAPING, "@escaping "),
    (ISOLATED_ANY, "@isolated(any) "),
    (CALLER_ISOLATED, "@caller_isolated "),
    (CALLED_ONCE, "@called(once) "),
];

/// What is written for the attributes after the convention.
pub(super) const AFTER_TEXTS: [(u32, &str); 2] = [(SENDABLE, "@Sendable "), (ASYNC, "@async ")];

pub(super) fn with_attributes(is_sendable: bool, is_async: bool) -> u32 {
    (if is_sendable { SENDABLE } else { 0 }) | (if is_async { ASYNC } else { 0 })
}

pub(super) fn coroutine_text(bits: u32) -> &'static str {
    match bits & YIELD_MANY {
        YIELD_ONCE => "@yield_once ",
        YIELD_ONCE_2 => "@yield_once_2 ",
        YIELD_MANY => "@yield_many ",
        _ => "",
    }
}

const CONVENTIONS: [&str; 4] =
    ["@callee_unowned ", "@callee_guaranteed ", "@callee_owned ", "@convention(thin) "];

/// `CALLEE-CONVENTION`
pub(super) fn callee_convention(letter: u8) -> Option<u32> {
    let index: u32 = match letter {
        b'y' => 0,
        b'g' => 1,
        b'x' => 2,
        b't' => 3,
        _ => return None,
    };
    Some(index << CONVENTION_SHIFT)
}

pub(super) fn callee_convention_text(bits: u32) -> &'static str {
    CONVENTIONS.get((bits >> CONVENTION_SHIFT & 3) as usize).copied().unwrap_or_default()
}

const REPRESENTATIONS: [&str; 8] =
    ["", "block", "c", "method", "objc_method", "closure", "witness_method", "com_method"];

/// `FUNC-REPRESENTATION`. Objective-C methods were `O` before that became "called once" and they became `J`.
pub(super) fn representation(letter: u8) -> Option<u32> {
    let index: u32 = match letter {
        b'B' => 1,
        b'C' => 2,
        b'M' => 3,
        b'O' | b'J' => 4,
        b'K' => 5,
        b'W' => 6,
        b'V' => 7,
        _ => return None,
    };
    Some(index << REPRESENTATION_SHIFT)
}

pub(super) fn representation_text(bits: u32) -> &'static str {
    REPRESENTATIONS.get((bits >> REPRESENTATION_SHIFT & 7) as usize).copied().unwrap_or_default()
}

/// The letter of a differentiability kind as bits.
pub(super) fn differentiable(letter: u8) -> u32 {
    u32::from(letter) << DIFFERENTIABLE_SHIFT
}

pub(super) fn differentiable_letter(bits: u32) -> u8 {
    (bits >> DIFFERENTIABLE_SHIFT) as u8
}

/// What a value does for the function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Parameter,
    Result,
    Yield,
    Error,
}

pub(super) const NO_DERIVATIVE: u32 = 1 << 8;
const SENDING: u32 = 1 << 9;
const ISOLATED: u32 = 1 << 10;
const IMPLICIT_LEADING: u32 = 1 << 11;
const ROLE_SHIFT: u32 = 16;

/// What may follow a parameter's convention, in order.
pub(super) const PARAM_ATTRIBUTES: [(u8, u32); 4] =
    [(b'w', NO_DERIVATIVE), (b'T', SENDING), (b'I', ISOLATED), (b'L', IMPLICIT_LEADING)];

/// What is written for the attributes that a parameter may have besides `@noDerivative`.
pub(super) const PARAM_TEXTS: [(u32, &str); 3] =
    [(SENDING, "sending "), (ISOLATED, "isolated "), (IMPLICIT_LEADING, "sil_implicit_leading_param ")];

const VALUE_CONVENTIONS: [&str; 17] = [
    "@in",
    "@in_constant",
    "@inout",
    "@inout_aliasable",
    "@in_guaranteed",
    "@in_cxx",
    "@owned",
    "@guaranteed",
    "@deallocating",
    "@unowned",
    "@pack_owned",
    "@pack_guaranteed",
    "@pack_inout",
    "@out",
    "@unowned_inner_pointer",
    "@autoreleased",
    "@pack_out",
];
const GUARANTEED_ADDRESS: u32 = 17;

/// `PARAM-CONVENTION`
pub(super) fn param_convention(letter: u8) -> Option<u32> {
    Some(match letter {
        b'i' => 0,
        b'c' => 1,
        b'l' => 2,
        b'b' => 3,
        b'n' => 4,
        b'X' => 5,
        b'x' => 6,
        b'g' => 7,
        b'e' => 8,
        b'y' => 9,
        b'v' => 10,
        b'p' => 11,
        b'm' => 12,
        _ => return None,
    })
}

/// `RESULT-CONVENTION`
pub(super) fn result_convention(letter: u8) -> Option<u32> {
    Some(match letter {
        b'r' => 13,
        b'o' => 6,
        b'd' => 9,
        b'u' => 14,
        b'a' => 15,
        b'k' => 16,
        b'l' => GUARANTEED_ADDRESS,
        b'g' => 7,
        b'm' => 2,
        _ => return None,
    })
}

/// A value's node number: [`PARAM_ATTRIBUTES`]' flags may be set in it.
pub(super) fn value(role: Role, convention: u32) -> u32 {
    ((role as u32) << ROLE_SHIFT) | convention
}

pub(super) fn role(value: u32) -> Role {
    match value >> ROLE_SHIFT {
        0 => Role::Parameter,
        1 => Role::Result,
        2 => Role::Yield,
        _ => Role::Error,
    }
}

pub(super) fn value_convention_text(value: u32) -> &'static str {
    match value & 0xFF {
        GUARANTEED_ADDRESS => "@guaranteed_address",
        index => VALUE_CONVENTIONS.get(index as usize).copied().unwrap_or_default(),
    }
}
