//! General registers as Linux lays them out (`elf_gregset_t`), in core dumps and from ptrace alike.

use crate::bytes::word_at;
use backtrail_core::{Arch, Family, Registers};

/// The kernel's order of the registers; an empty name for what unwinding does not need.
const X86_64: [&str; 20] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
    "", "rip", "", "", "rsp",
];
const X86: [&str; 16] =
    ["ebx", "ecx", "edx", "esi", "edi", "ebp", "eax", "", "", "", "", "", "eip", "", "", "esp"];

/// Reads a set of registers; what the bytes are too few for stays unknown.
pub(crate) fn registers(family: Family, data: &[u8]) -> Registers {
    let mut registers = Registers::new(family);
    let names = match family {
        Family::X86_64 => &X86_64[..],
        Family::X86 => &X86[..],
        // ARM's and ARM64's orders are DWARF's.
        _ => family.register_names(),
    };
    let width = usize::from(family.word_size());
    for (index, name) in names.iter().enumerate() {
        if let (Some(register), Some(value)) =
            (family.register(name), word_at(data, index * width, width == 8))
        {
            registers.set(register, value);
        }
    }
    registers
}

/// Whose registers they are that a kernel of this machine gives in so many bytes: a 64-bit kernel runs 32-bit processes
/// too. `struct user_regs_struct` and its 32-bit form have 27 and 17 words on x86, 34 and 18 on ARM.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn arch_by_size(size: usize) -> Option<Arch> {
    let of_this_machine = if cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        [(27 * 8, Arch::X86_64), (17 * 4, Arch::X86)]
    } else {
        [(34 * 8, Arch::Arm64), (18 * 4, Arch::Arm)]
    };
    of_this_machine.into_iter().find(|(known, _)| *known == size).map(|(_, arch)| arch)
}
