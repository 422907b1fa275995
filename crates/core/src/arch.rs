//! Architectures, with the sub-architectures by which Apple tells slices apart.

use core::fmt;

/// An architecture as files and reports name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Arch {
    /// 32-bit x86 (`i386`).
    X86,
    /// 64-bit x86.
    X86_64,
    /// 64-bit x86 with Haswell's instructions, a slice of its own in Apple's fat files.
    X86_64h,
    /// 32-bit ARM of no further known kind.
    Arm,
    /// ARMv6.
    Armv6,
    /// ARMv7-A.
    Armv7,
    /// ARMv7-A with VFPv4 (Apple A6).
    Armv7s,
    /// ARMv7-A of the first watches.
    Armv7k,
    /// 64-bit ARM.
    Arm64,
    /// 64-bit ARM with pointer authentication.
    Arm64e,
    /// 64-bit ARM instructions with 32-bit pointers (watches).
    Arm64_32,
    /// 32-bit PowerPC.
    Ppc,
    /// 64-bit PowerPC.
    Ppc64,
    /// 32-bit RISC-V.
    Riscv32,
    /// 64-bit RISC-V.
    Riscv64,
    /// Anything that backtrail has no word for.
    Unknown,
}

/// What register sets, unwinding and address rules depend on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Family {
    /// 32-bit x86.
    X86,
    /// 64-bit x86.
    X86_64,
    /// 32-bit ARM: code addresses may carry the Thumb bit.
    Arm,
    /// 64-bit ARM: code addresses may carry pointer authentication bits.
    Aarch64,
    /// None of the four that backtrail unwinds.
    Other,
}

const NAMES: [(Arch, &str); 15] = [
    (Arch::X86, "i386"),
    (Arch::X86_64, "x86_64"),
    (Arch::X86_64h, "x86_64h"),
    (Arch::Arm, "arm"),
    (Arch::Armv6, "armv6"),
    (Arch::Armv7, "armv7"),
    (Arch::Armv7s, "armv7s"),
    (Arch::Armv7k, "armv7k"),
    (Arch::Arm64, "arm64"),
    (Arch::Arm64e, "arm64e"),
    (Arch::Arm64_32, "arm64_32"),
    (Arch::Ppc, "ppc"),
    (Arch::Ppc64, "ppc64"),
    (Arch::Riscv32, "riscv32"),
    (Arch::Riscv64, "riscv64"),
];

impl Arch {
    /// The architecture that this code was built for.
    pub const HOST: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "x86") {
        Self::X86
    } else if cfg!(target_arch = "aarch64") {
        Self::Arm64
    } else if cfg!(target_arch = "arm") {
        Self::Arm
    } else {
        Self::Unknown
    };

    /// The name that `lipo`, crash reports and `--arch` use.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(arch, _)| *arch == self).map_or("unknown", |(_, name)| name)
    }

    /// Reads a name; the other common spellings of the same thing count too (`aarch64`, `x86-64`, `ARM-64`…).
    pub fn from_name(name: &str) -> Option<Self> {
        const ALIASES: [(&str, Arch); 11] = [
            ("x86", Arch::X86),
            ("i486", Arch::X86),
            ("i586", Arch::X86),
            ("i686", Arch::X86),
            ("x86-64", Arch::X86_64),
            ("amd64", Arch::X86_64),
            ("aarch64", Arch::Arm64),
            ("arm-64", Arch::Arm64),
            ("arm64v8", Arch::Arm64),
            ("armv7l", Arch::Armv7),
            ("armv7f", Arch::Armv7),
        ];
        let known = NAMES.iter().map(|(arch, name)| (*name, *arch));
        known.chain(ALIASES).find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, arch)| arch)
    }

    /// The family whose rules hold for this architecture.
    pub const fn family(self) -> Family {
        match self {
            Self::X86 => Family::X86,
            Self::X86_64 | Self::X86_64h => Family::X86_64,
            Self::Arm | Self::Armv6 | Self::Armv7 | Self::Armv7s | Self::Armv7k => Family::Arm,
            Self::Arm64 | Self::Arm64e | Self::Arm64_32 => Family::Aarch64,
            _ => Family::Other,
        }
    }

    /// Bytes in a pointer; 8 where the architecture is unknown.
    pub fn pointer_size(self) -> u8 {
        match self {
            Self::X86 | Self::Arm64_32 | Self::Ppc | Self::Riscv32 => 4,
            _ if self.family() == Family::Arm => 4,
            _ => 8,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for (arch, name) in NAMES {
            assert_eq!(Arch::from_name(name), Some(arch));
            assert_eq!(arch.name(), name);
        }
        assert_eq!(Arch::from_name("AArch64"), Some(Arch::Arm64));
        assert_eq!(Arch::from_name("m68k"), None);
    }
}
