//! What is known of instructions: which parts of them a linker may change, and what they refer to.

mod arm;
mod arm64;
mod x86;

use backtrail_core::{Arch, Family, Svma};

use crate::hash::{Digest, Domain};

/// The instruction sets that code is compared in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Isa {
    Arm64,
    Arm,
    X86_64,
    X86,
}

/// How an instruction, or two of them, refer to something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub(crate) enum Form {
    /// A call or jump; on x86 a displacement of 32 bits.
    Branch = 0,
    /// `adrp` and a second instruction.
    Pair = 1,
    /// The same by a slot that holds the address; linkers may replace it by the address itself.
    SlotPair = 2,
    /// A displacement of 32 bits.
    Relative = 3,
    /// The same by a slot.
    SlotRelative = 4,
}

impl Form {
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        [Self::Branch, Self::Pair, Self::SlotPair, Self::Relative, Self::SlotRelative]
            .into_iter()
            .find(|form| u64::from(*form as u8) == number)
    }
}

/// What a reference of a linked image turned out to name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Resolved {
    Address(Svma),
    /// The address that this slot holds.
    Slot(Svma),
}

/// A function's bytes as they compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outline {
    /// Without padding behind the last instruction.
    pub(crate) len: usize,
    pub(crate) digest: Digest,
}

impl Isa {
    pub(crate) fn of(arch: Arch) -> Option<Self> {
        match arch.family() {
            Family::Aarch64 => Some(Self::Arm64),
            Family::Arm => Some(Self::Arm),
            Family::X86_64 => Some(Self::X86_64),
            Family::X86 => Some(Self::X86),
            _ => None,
        }
    }

    /// The length without padding, and a hash of everything that linking leaves as it is, told from the bytes alone.
    pub(crate) fn outline(self, code: &[u8]) -> Outline {
        let mut canonical = Vec::with_capacity(code.len());
        let len = match self {
            Self::Arm64 => arm64::canonical(code, &mut canonical),
            Self::Arm => arm::canonical(code, &mut canonical),
            Self::X86_64 => x86::canonical(64, code, &mut canonical),
            Self::X86 => x86::canonical(32, code, &mut canonical),
        };
        canonical.truncate(len);
        Outline { len, digest: Digest::of(Domain::Outline, &canonical) }
    }

    /// What a reference names in a linked image. `at` and `page_at` count from the function's start; `bias` is what the
    /// relocation adds. `None` where the linker rewrote it in a way that is not known.
    pub(crate) fn resolve(
        self,
        form: Form,
        function: (Svma, &[u8]),
        at: usize,
        page_at: usize,
        bias: i64,
    ) -> Option<Resolved> {
        match self {
            Self::Arm64 => arm64::resolve(form, function, at, page_at, bias),
            Self::Arm => arm::resolve(form, function, at),
            Self::X86_64 | Self::X86 => x86::resolve(form, function, at, bias),
        }
    }

    /// Calls `found` for each address that the function calls or mentions.
    pub(crate) fn references(self, function: (Svma, &[u8]), found: &mut dyn FnMut(Svma)) {
        match self {
            Self::Arm64 => arm64::references(function, found),
            Self::Arm => {}
            Self::X86_64 => x86::references(64, function, found),
            Self::X86 => x86::references(32, function, found),
        }
    }

    /// Calls `found` for each call of the function, with the offset behind it, which is where the callee returns to, and
    /// what it calls, where the instruction names that.
    pub(crate) fn calls(self, function: (Svma, &[u8]), found: &mut dyn FnMut(usize, Option<Svma>)) {
        match self {
            Self::Arm64 => arm64::calls(function, found),
            Self::Arm => arm::calls(function, found),
            Self::X86_64 => x86::calls(64, function, found),
            Self::X86 => x86::calls(32, function, found),
        }
    }

    /// Compilers let functions start at multiples of it.
    pub(crate) fn alignment(self) -> u64 {
        match self {
            Self::Arm64 => 4,
            Self::Arm => 2,
            Self::X86_64 | Self::X86 => 16,
        }
    }

    /// Instructions start at multiples of it.
    pub(crate) fn instruction_step(self) -> u64 {
        match self {
            Self::Arm64 => 4,
            Self::Arm => 2,
            Self::X86_64 | Self::X86 => 1,
        }
    }

    /// The slot that a stub jumps through.
    pub(crate) fn stub_slot(self, stub: (Svma, &[u8])) -> Option<Svma> {
        match self {
            Self::Arm64 => arm64::stub_slot(stub),
            Self::X86_64 => x86::stub_slot(stub),
            Self::Arm | Self::X86 => None,
        }
    }

    /// Bytes besides the relocated field that a linker may change when it replaces a load from a slot, or a branch.
    pub(crate) fn rewritten_before(self, form: Form) -> u32 {
        match (self, form) {
            // mov becomes lea or a constant, `call *slot` a plain call.
            (Self::X86_64, Form::SlotRelative) => 3,
            (Self::X86, Form::SlotRelative) => 2,
            _ => 0,
        }
    }
}

/// The instruction word at `at`.
fn word(code: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*code.get(at..)?.first_chunk()?))
}

fn displaced(from: Svma, by: i64) -> Svma {
    Svma::new(from.get().wrapping_add_signed(by))
}
