//! How a frame's address is to be read, and how it was found.

use crate::{Arch, Avma, Family};
use core::fmt;

/// A frame's code address together with what it means.
///
/// A return address points behind the call, often into the next line and sometimes into the next function; it is
/// looked up one byte earlier. The first frame, and the frame that a signal interrupted, state the instruction
/// itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FrameAddress {
    /// The address of the instruction that was running: first frames and callers of signal frames.
    Exact(Avma),
    /// The address that the callee returns to.
    Return(Avma),
}

impl FrameAddress {
    /// The address as captured, with every bit it had.
    pub fn raw(self) -> Avma {
        match self {
            Self::Exact(avma) | Self::Return(avma) => avma,
        }
    }

    /// The address to search code by: Thumb and pointer authentication bits stripped, return addresses minus one.
    pub fn lookup(self, arch: Arch) -> Avma {
        let code = strip_code_bits(self.raw(), arch);
        match self {
            Self::Exact(_) => code,
            Self::Return(_) => code.checked_sub(1).unwrap_or(code),
        }
    }
}

/// Bits of a 64-bit ARM code address that hold an address in user space: 47 on Apple's systems, where alone arm64e
/// slices exist, 48 elsewhere (Linux maps libraries at `0xffff_…`). The rest may carry a pointer authentication code or
/// a tag. Kernel addresses (bit 55 set) are sign-extended instead. ARM ARM, "Pointer authentication"; XNU
/// `osfmk/arm64/proc_reg.h`; Linux `Documentation/arch/arm64/memory.rst`.
fn aarch64_address_bits(arch: Arch) -> u32 {
    if arch == Arch::Arm64e { 47 } else { 48 }
}

/// Clears what is no address: the Thumb bit on 32-bit ARM, pointer authentication on 64-bit ARM.
fn strip_code_bits(avma: Avma, arch: Arch) -> Avma {
    match arch.family() {
        Family::Arm => Avma::new(avma.get() & !1),
        Family::Aarch64 => {
            let high = u64::MAX << aarch64_address_bits(arch);
            let is_kernel = avma.get() & (1 << 55) != 0;
            Avma::new(if is_kernel { avma.get() | high } else { avma.get() & !high })
        }
        _ => avma,
    }
}

/// How a frame was found, from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Trust {
    /// The registers of the captured thread.
    Context,
    /// DWARF call frame information.
    Cfi,
    /// Apple's compact unwind information.
    CompactUnwind,
    /// ARM's exception index tables.
    Exidx,
    /// The chain of saved frame pointers.
    FramePointer,
    /// The link register of a function that had not saved it.
    LinkRegister,
    /// Reading the code of a prologue or epilogue.
    Analysis,
    /// The table of a language's runtime: Go's.
    RuntimeTable,
    /// A word on the stack that looks like a return address.
    Scan,
    /// A crash report said so; how its writer knew is not told.
    Report,
}

impl Trust {
    /// The word that text and JSON use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Cfi => "cfi",
            Self::CompactUnwind => "compact-unwind",
            Self::Exidx => "exidx",
            Self::FramePointer => "frame-pointer",
            Self::LinkRegister => "link-register",
            Self::Analysis => "analysis",
            Self::RuntimeTable => "runtime-table",
            Self::Scan => "scan",
            Self::Report => "report",
        }
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(arch: Arch, avma: u64) -> u64 {
        FrameAddress::Exact(Avma::new(avma)).lookup(arch).get()
    }

    #[test]
    fn return_addresses_are_looked_up_at_minus_one_after_stripping() {
        let ret = FrameAddress::Return(Avma::new(0x8001));
        assert_eq!(ret.lookup(Arch::Armv7).get(), 0x7fff);
        assert_eq!(ret.lookup(Arch::X86_64).get(), 0x8000);
        assert_eq!(FrameAddress::Return(Avma::new(0)).lookup(Arch::X86_64).get(), 0);
    }

    #[test]
    fn pointer_authentication_goes_and_kernel_addresses_stay() {
        assert_eq!(exact(Arch::Arm64e, 0x3c5a_8001_0000_4abc), 0x1_0000_4abc);
        assert_eq!(exact(Arch::Arm64, 0xffff_fff0_0712_3456), 0xffff_fff0_0712_3456);
        assert_eq!(exact(Arch::Arm64, 0x0034_ffff_8b5c_1234), 0xffff_8b5c_1234);
        assert_eq!(exact(Arch::Arm64e, 0x3cda_fff0_0712_3456), 0xffff_fff0_0712_3456);
        assert_eq!(exact(Arch::X86_64, 0xffff_8000_0000_1001), 0xffff_8000_0000_1001);
    }
}
