//! Thread states, as Mach's `thread_get_state` gives them. Plain code: tested on any system.

use backtrail_core::{Family, Register, Registers};

/// Eight-byte words of `ARM_THREAD_STATE64`. XNU, `osfmk/mach/arm/_structs.h`.
pub const ARM64_WORDS: usize = 34;
/// Eight-byte words of `x86_THREAD_STATE64`. XNU, `osfmk/mach/i386/_structs.h`.
pub const X86_64_WORDS: usize = 21;

/// The registers of an `ARM_THREAD_STATE64`: x0 to x28, fp, lr, sp, pc, and the status word. Those that hold addresses may
/// be signed.
///
/// # Signal safety
///
/// Safe.
pub fn arm64_registers(words: &[u64; ARM64_WORDS]) -> Registers {
    let mut registers = Registers::new(Family::Aarch64);
    for (number, word) in (0..=32).zip(words) {
        registers.set(Register(number), *word);
    }
    registers
}

/// The registers of an `x86_THREAD_STATE64`: rax, rbx, rcx, rdx, rdi, rsi, rbp, rsp, r8 to r15, rip, flags and segments.
///
/// # Signal safety
///
/// Safe.
pub fn x86_64_registers(words: &[u64; X86_64_WORDS]) -> Registers {
    /// DWARF's numbers of the words.
    const ORDER: [u8; 17] = [0, 3, 2, 1, 5, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let mut registers = Registers::new(Family::X86_64);
    for (number, word) in ORDER.into_iter().zip(words) {
        registers.set(Register(number), *word);
    }
    registers
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test's helpers may")]
mod tests {
    use super::*;

    fn value(registers: &Registers, name: &str) -> u64 {
        registers.get(registers.family().register(name).unwrap()).unwrap()
    }

    #[test]
    fn words_are_put_to_the_registers_they_are_of() {
        let arm = arm64_registers(&std::array::from_fn(|word| word as u64));
        for (name, word) in [("x0", 0), ("x28", 28), ("fp", 29), ("lr", 30), ("sp", 31), ("pc", 32)] {
            assert_eq!(value(&arm, name), word, "{name}");
        }
        let x86 = x86_64_registers(&std::array::from_fn(|word| word as u64));
        let order = ["rax", "rbx", "rcx", "rdx", "rdi", "rsi", "rbp", "rsp", "r8"];
        for (name, word) in order.into_iter().zip(0..).chain([("r15", 15), ("rip", 16)]) {
            assert_eq!(value(&x86, name), word, "{name}");
        }
    }
}
