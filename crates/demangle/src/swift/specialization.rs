//! What a function was specialized for, as numbers of its nodes.

/// What kind of generic specialization it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavor {
    Generic,
    NotReAbstracted,
    Prespecialized,
    Inlined,
    Partial,
    PartialNotReAbstracted,
}

impl Flavor {
    pub(super) fn pack(self) -> u32 {
        self as u32
    }
}

/// What is written for a generic specialization's number.
pub(super) fn text(packed: u32) -> &'static str {
    match packed & !INFO_MASK {
        0 => "generic specialization",
        1 => "generic not re-abstracted specialization",
        2 => "generic pre-specialization",
        3 => "inlined generic function",
        4 => "generic partial specialization",
        _ => "generic not-reabstracted partial specialization",
    }
}

/// Whether the types of the specialization are a signature rather than arguments.
pub(super) fn is_partial(packed: u32) -> bool {
    packed & !INFO_MASK >= Flavor::Partial.pack()
}

pub(super) const SERIALIZED: u32 = 1 << 8;
pub(super) const ASYNC_REMOVED: u32 = 1 << 9;
pub(super) const REPRESENTATION_CHANGED: u32 = 1 << 10;
pub(super) const INFO_MASK: u32 = SERIALIZED | ASYNC_REMOVED | REPRESENTATION_CHANGED;

/// The letters of `SPEC-INFO` in their order.
pub(super) const INFO: [(u8, u32); 3] =
    [(b'q', SERIALIZED), (b'a', ASYNC_REMOVED), (b'r', REPRESENTATION_CHANGED)];

/// What is known about an argument; the flags below are used instead where several things may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParamKind {
    ConstantFunction,
    ConstantGlobal,
    ConstantInteger,
    ConstantFloat,
    ConstantString,
    Closure,
    BoxToValue,
    BoxToStack,
    InOutToOut,
    ConstantKeyPath,
    ConstantStruct,
    ClosurePreviousArg,
    EscapingClosure,
}

const KINDS: [(ParamKind, &str); 13] = [
    (ParamKind::ConstantFunction, "Constant Propagated Function"),
    (ParamKind::ConstantGlobal, "Constant Propagated Global"),
    (ParamKind::ConstantInteger, "Constant Propagated Integer"),
    (ParamKind::ConstantFloat, "Constant Propagated Float"),
    (ParamKind::ConstantString, "Constant Propagated String"),
    (ParamKind::Closure, "Closure Propagated"),
    (ParamKind::BoxToValue, "Value Promoted from Box"),
    (ParamKind::BoxToStack, "Stack Promoted from Box"),
    (ParamKind::InOutToOut, "InOut Converted to Out"),
    (ParamKind::ConstantKeyPath, "Constant Propagated KeyPath"),
    (ParamKind::ConstantStruct, "Constant Propagated Struct"),
    (ParamKind::ClosurePreviousArg, "Same As Argument"),
    (ParamKind::EscapingClosure, "Escaping Closure Propagated"),
];

impl ParamKind {
    pub(super) fn pack(self) -> u32 {
        self as u32
    }

    /// `None` for flags.
    pub(super) fn unpack(packed: u32) -> Option<Self> {
        KINDS.get(usize::try_from(packed).ok()?).map(|&(kind, _)| kind)
    }

    pub(super) fn text(self) -> &'static str {
        KINDS.get(self as usize).map(|&(_, text)| text).unwrap_or_default()
    }
}

pub(super) const DEAD: u32 = 1 << 6;
pub(super) const OWNED_TO_GUARANTEED: u32 = 1 << 7;
pub(super) const EXPLODED: u32 = 1 << 8;
pub(super) const GUARANTEED_TO_OWNED: u32 = 1 << 9;
pub(super) const EXISTENTIAL: u32 = 1 << 10;

/// The flags in the order in which they are shown.
pub(super) const OPTION_TEXTS: [(u32, &str); 5] = [
    (EXISTENTIAL, "Existential To Protocol Constrained Generic"),
    (DEAD, "Dead"),
    (OWNED_TO_GUARANTEED, "Owned To Guaranteed"),
    (GUARANTEED_TO_OWNED, "Guaranteed To Owned"),
    (EXPLODED, "Exploded"),
];

/// The flag behind a letter that may follow another flag's.
pub(super) fn option(letter: u8) -> u32 {
    match letter {
        b'D' => DEAD,
        b'G' => OWNED_TO_GUARANTEED,
        b'O' => GUARANTEED_TO_OWNED,
        _ => EXPLODED,
    }
}
