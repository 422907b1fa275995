//! Relocations of code and data in the input of a linker, and what an image imports.

use std::borrow::Cow;

use backtrail_core::Svma;

use crate::symbol::Binding;

/// What a relocation does with its target, whatever the format calls it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum RelocationKind {
    /// The address itself, as pointers in data have it.
    Absolute,
    /// The distance to the target, in a field of its own: `target + addend - place`. x86.
    Relative,
    /// The same to a slot that holds the address; linkers may turn the load into one of the address itself.
    RelativeToSlot,
    /// A call or a jump. On x86 the field is `target + addend - place`; elsewhere it is part of the instruction.
    Branch,
    /// The page of the target: `adrp`.
    Page,
    /// Where in its page the target lies: `add`, `ldr`.
    PageOffset,
    /// The page of a slot that holds the address.
    SlotPage,
    /// Where in its page that slot lies.
    SlotPageOffset,
    /// Anything else that a linker fills in.
    Other,
}

/// What a relocation names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RelocationTarget<'d> {
    /// Something in this object.
    Defined {
        /// The symbol's name; `None` for a place in a section.
        name: Option<Cow<'d, str>>,
        /// Index into [`Object::sections`](crate::Object::sections).
        section: usize,
        /// Where it lies; in an ELF `.o` from the start of its section. The Thumb bit is cleared for code.
        address: Svma,
        /// How far the name reaches.
        binding: Binding,
    },
    /// Something in another object.
    Undefined(Cow<'d, str>),
    /// It does not say, or in a way that is not read.
    Unknown,
}

/// One field that a linker fills in.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Relocation<'d> {
    /// Bytes from the start of the section to the field.
    pub offset: u64,
    /// Bytes that may change.
    pub size: u8,
    /// What becomes of the target.
    pub kind: RelocationKind,
    /// What it names.
    pub target: RelocationTarget<'d>,
    /// What is added to the target's address.
    pub addend: i64,
}

/// A place of an image that stands for a function or variable of another image.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Import<'d> {
    /// A slot that the dynamic linker fills, or a stub that jumps through one.
    pub address: Svma,
    /// What it stands for.
    pub name: Cow<'d, str>,
}
