//! Exceptions of Apple's kernels in words, and as the signals that these kernels make of them. Plain code: tested on any system.
//!
//! Sources: XNU `osfmk/mach/exception_types.h`, `osfmk/mach/kern_return.h`, `osfmk/mach/arm/exception.h`,
//! `osfmk/mach/i386/exception.h`; `bsd/uxkern/ux_exception.c` and `bsd/dev/i386/unix_signal.c` for the signals.

use backtrail_core::Family;

/// What the kernel raised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exception {
    /// `EXC_BAD_ACCESS` and its like, by number.
    pub kind: u32,
    /// What it was for; the meaning depends on the kind and the processor.
    pub code: u64,
    /// More of that; of a bad access the address.
    pub subcode: u64,
    /// What the processor says of it: `esr` of arm64; of x86 the trap's number in the low 16 bits, and the error code in the upper 32. 0
    /// where it is not known.
    pub syndrome: u64,
}

const BAD_ACCESS: u32 = 1;
const BAD_INSTRUCTION: u32 = 2;
const ARITHMETIC: u32 = 3;
const SOFTWARE: u32 = 5;
const BREAKPOINT: u32 = 6;
const SYSCALL: u32 = 7;

const KINDS: [&str; 13] = [
    "EXC_BAD_ACCESS",
    "EXC_BAD_INSTRUCTION",
    "EXC_ARITHMETIC",
    "EXC_EMULATION",
    "EXC_SOFTWARE",
    "EXC_BREAKPOINT",
    "EXC_SYSCALL",
    "EXC_MACH_SYSCALL",
    "EXC_RPC_ALERT",
    "EXC_CRASH",
    "EXC_RESOURCE",
    "EXC_GUARD",
    "EXC_CORPSE_NOTIFY",
];

/// Codes of a bad access on every processor.
const ACCESS: &[(u64, &str)] = &[
    (1, "KERN_INVALID_ADDRESS"),
    (2, "KERN_PROTECTION_FAILURE"),
    (10, "KERN_MEMORY_ERROR"),
    (14, "KERN_ABORTED"),
    (50, "KERN_CODESIGN_ERROR"),
];
/// By kind and processor.
const ARM: &[(u32, &[(u64, &str)])] = &[
    (
        BAD_ACCESS,
        &[
            (0x101, "EXC_ARM_DA_ALIGN"),
            (0x102, "EXC_ARM_DA_DEBUG"),
            (0x103, "EXC_ARM_SP_ALIGN"),
            (0x104, "EXC_ARM_SWP"),
            (0x105, "EXC_ARM_PAC_FAIL"),
            (0x106, "EXC_ARM_MTE_TAGCHECK_FAIL"),
            (0x107, "EXC_ARM_MTE_CANONICAL_FAIL"),
        ],
    ),
    (BAD_INSTRUCTION, &[(1, "EXC_ARM_UNDEFINED")]),
    (
        ARITHMETIC,
        &[
            (1, "EXC_ARM_FP_IO"),
            (2, "EXC_ARM_FP_DZ"),
            (3, "EXC_ARM_FP_OF"),
            (4, "EXC_ARM_FP_UF"),
            (5, "EXC_ARM_FP_IX"),
            (6, "EXC_ARM_FP_ID"),
        ],
    ),
    (BREAKPOINT, &[(1, "EXC_ARM_BREAKPOINT")]),
];
const X86: &[(u32, &[(u64, &str)])] = &[
    (BAD_ACCESS, &[(GENERAL_PROTECTION, "EXC_I386_GPFLT")]),
    (BAD_INSTRUCTION, &[(1, "EXC_I386_INVOP")]),
    (ARITHMETIC, &[(1, "EXC_I386_DIV"), (2, "EXC_I386_INTO")]),
    (BREAKPOINT, &[(1, "EXC_I386_SGL"), (2, "EXC_I386_BPT")]),
];

/// x86's general protection fault, of which the processor tells no address.
const GENERAL_PROTECTION: u64 = 13;
/// Set in the code where pointer authentication may be the reason (`EXC_PTRAUTH_BIT`).
const PTRAUTH_BIT: u64 = 0x200;
/// Codes of `EXC_SOFTWARE`.
const SOFT_BAD_SYSCALL: u64 = 0x10000;
const SOFT_BAD_PIPE: u64 = 0x10001;
const SOFT_ABORT: u64 = 0x10002;
const BOUND: u64 = 3;

/// Signals by Linux's numbers, which crash files have whatever the system.
const SIGILL: u32 = 4;
const SIGTRAP: u32 = 5;
const SIGABRT: u32 = 6;
const SIGBUS: u32 = 7;
const SIGFPE: u32 = 8;
const SIGKILL: u32 = 9;
const SIGSEGV: u32 = 11;
const SIGPIPE: u32 = 13;
const SIGSYS: u32 = 31;

/// The kinds that a handler in the process is told of, as `EXC_MASK_…`: those that an instruction raises.
pub const CAUGHT: u32 = 1 << BAD_ACCESS | 1 << BAD_INSTRUCTION | 1 << ARITHMETIC | 1 << BREAKPOINT;

impl Exception {
    /// Whether the same instruction raises it once more when its thread goes on, so that whoever is told next sees it as it was. x86 is
    /// behind the instruction at a breakpoint.
    ///
    /// # Signal safety
    ///
    /// Safe.
    pub fn comes_again(self, family: Family) -> bool {
        let is_x86 = matches!(family, Family::X86 | Family::X86_64);
        self.kind < u32::BITS && CAUGHT & (1 << self.kind) != 0 && !(is_x86 && self.kind == BREAKPOINT)
    }

    /// The kind's name; `None` for numbers that are not known.
    pub fn name(self) -> Option<&'static str> {
        KINDS.get(usize::try_from(self.kind).ok()?.checked_sub(1)?).copied()
    }

    /// The signal that the kernel makes of it, by Linux's number; `None` where it makes none.
    ///
    /// # Signal safety
    ///
    /// Safe.
    pub fn signal(self, family: Family) -> Option<u32> {
        let is_x86 = matches!(family, Family::X86 | Family::X86_64);
        Some(match (self.kind, self.code) {
            (BAD_ACCESS, GENERAL_PROTECTION) if is_x86 => SIGSEGV,
            (BAD_ACCESS, code) if code & !PTRAUTH_BIT == 1 => SIGSEGV,
            (BAD_ACCESS, _) => SIGBUS,
            (BAD_INSTRUCTION, _) => SIGILL,
            (ARITHMETIC, _) => SIGFPE,
            (BREAKPOINT, _) => SIGTRAP,
            (SYSCALL, _) | (SOFTWARE, SOFT_BAD_SYSCALL) => SIGSYS,
            (SOFTWARE, SOFT_BAD_PIPE) => SIGPIPE,
            (SOFTWARE, SOFT_ABORT) => SIGABRT,
            (SOFTWARE, BOUND) if is_x86 => SIGTRAP,
            (SOFTWARE, _) => SIGKILL,
            _ => return None,
        })
    }

    /// The code that Linux has for the same: what a reader sees that does not know of exceptions.
    ///
    /// # Signal safety
    ///
    /// Safe.
    pub fn linux_code(self) -> i32 {
        /// `SI_KERNEL`: the kernel raised it, and says no more.
        const KERNEL: i32 = 0x80;
        match (self.kind, self.code & !PTRAUTH_BIT) {
            // SEGV_MAPERR. A protection failure is SIGBUS here and SEGV_ACCERR there.
            (BAD_ACCESS, 1) => 1,
            _ => KERNEL,
        }
    }

    /// The address whose access failed.
    ///
    /// # Signal safety
    ///
    /// Safe.
    pub fn address(self, family: Family) -> Option<u64> {
        let is_x86 = matches!(family, Family::X86 | Family::X86_64);
        let has_one = self.kind == BAD_ACCESS && !(is_x86 && self.code == GENERAL_PROTECTION);
        has_one.then_some(self.subcode)
    }

    /// What it was for, as Apple's reports word it: `KERN_INVALID_ADDRESS at 0x0000000000000010`. `None` where the code has no name.
    pub fn subtype(self, family: Family) -> Option<String> {
        let is_x86 = matches!(family, Family::X86 | Family::X86_64);
        let code = if is_x86 { self.code } else { self.code & !PTRAUTH_BIT };
        let own = if is_x86 { X86 } else { ARM };
        let own = own.iter().find(|(kind, _)| *kind == self.kind).map_or(&[][..], |(_, names)| names);
        let common = if self.kind == BAD_ACCESS { ACCESS } else { &[] };
        let (_, name) = own.iter().chain(common).find(|(known, _)| *known == code)?;
        let address = self.address(family).map(|address| format!(" at {address:#018x}")).unwrap_or_default();
        let doubt = if code == self.code { "" } else { " (possible pointer authentication failure)" };
        Some(format!("{name}{address}{doubt}"))
    }

    /// The syndrome by the names that Apple's reports have among the registers.
    pub fn syndrome_registers(self, family: Family) -> impl Iterator<Item = (&'static str, u64)> {
        let all = if matches!(family, Family::X86 | Family::X86_64) {
            [Some(("trap", self.syndrome & 0xffff)), Some(("err", self.syndrome >> 32))]
        } else {
            [Some(("esr", self.syndrome)), None]
        };
        all.into_iter().flatten().filter(move |_| self.syndrome != 0)
    }

    /// Both codes, as Apple's reports have them.
    pub fn codes(self) -> String {
        format!("{:#018x}, {:#018x}", self.code, self.subcode)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    const ARM64: Family = Family::Aarch64;
    const X86_64: Family = Family::X86_64;

    fn of(kind: u32, code: u64, subcode: u64) -> Exception {
        Exception { kind, code, subcode, syndrome: 0 }
    }

    /// Against the words and signals of Apple's own reports.
    #[test]
    fn words_and_signals_are_those_of_apples_reports() {
        for (exception, family, name, signal, subtype) in [
            (of(1, 1, 0x10), ARM64, "EXC_BAD_ACCESS", 11, Some("KERN_INVALID_ADDRESS at 0x0000000000000010")),
            (
                of(1, 2, 0x1_0000_0300),
                ARM64,
                "EXC_BAD_ACCESS",
                7,
                Some("KERN_PROTECTION_FAILURE at 0x0000000100000300"),
            ),
            (
                of(1, 0x201, 0x20_0000_0010),
                ARM64,
                "EXC_BAD_ACCESS",
                11,
                Some("KERN_INVALID_ADDRESS at 0x0000002000000010 (possible pointer authentication failure)"),
            ),
            (of(1, 0x101, 3), ARM64, "EXC_BAD_ACCESS", 7, Some("EXC_ARM_DA_ALIGN at 0x0000000000000003")),
            (of(1, 13, 0), X86_64, "EXC_BAD_ACCESS", 11, Some("EXC_I386_GPFLT")),
            (of(2, 1, 0), X86_64, "EXC_BAD_INSTRUCTION", 4, Some("EXC_I386_INVOP")),
            (of(3, 1, 0), X86_64, "EXC_ARITHMETIC", 8, Some("EXC_I386_DIV")),
            (of(6, 1, 0x18a5_ca7b0), ARM64, "EXC_BREAKPOINT", 5, Some("EXC_ARM_BREAKPOINT")),
            (of(6, 9, 0), ARM64, "EXC_BREAKPOINT", 5, None),
            (of(5, 0x10002, 0), ARM64, "EXC_SOFTWARE", 6, None),
        ] {
            assert_eq!(exception.name(), Some(name));
            assert_eq!(exception.signal(family), Some(signal), "{exception:?}");
            assert_eq!(exception.subtype(family).as_deref(), subtype, "{exception:?}");
        }
    }

    #[test]
    fn only_an_instruction_that_is_run_again_raises_its_exception_again() {
        for (kind, family, comes) in
            [(1, ARM64, true), (6, ARM64, true), (6, X86_64, false), (2, X86_64, true), (5, ARM64, false)]
        {
            assert_eq!(of(kind, 1, 0).comes_again(family), comes, "{kind}");
        }
        assert!(!of(u32::MAX, 0, 0).comes_again(ARM64));
    }

    #[test]
    fn what_is_not_known_has_no_word() {
        for kind in [0, 14, u32::MAX] {
            assert_eq!(of(kind, 0, 0).name(), None);
            assert_eq!(of(kind, 0, 0).signal(ARM64), None);
            assert_eq!(of(kind, u64::MAX, 0).subtype(X86_64), None);
        }
        assert_eq!(of(1, 13, 8).address(X86_64), None);
        assert_eq!(of(1, 13, 8).address(ARM64), Some(8));
        assert_eq!(of(6, 1, 8).address(ARM64), None);
        assert_eq!(of(1, 1, 0x10).codes(), "0x0000000000000001, 0x0000000000000010");
    }
}
