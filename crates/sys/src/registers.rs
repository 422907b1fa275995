//! The registers of the calling function.

use backtrail_core::{Arch, Family, Register, Registers};

/// Words that [`store`] fills, by DWARF number.
const WORDS: usize = 33;

/// The family of this program's code.
pub const FAMILY: Family = Arch::HOST.family();

/// DWARF numbers of the callee-saved registers, the stack pointer and the program counter.
const CALLEE_SAVED: &[u8] = match FAMILY {
    Family::X86_64 => &[3, 6, 7, 12, 13, 14, 15, 16],
    Family::X86 => &[3, 4, 5, 6, 7, 8],
    Family::Aarch64 => &[19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 31, 32],
    Family::Arm => &[4, 5, 6, 7, 8, 9, 10, 11, 13, 15],
    _ => &[],
};

/// The registers of the function that this is inlined into, as they are after a call in its body: those that a callee
/// saves, the stack pointer, the program counter. None on an unknown processor.
///
/// # Signal safety
///
/// Safe anywhere: it only stores registers.
#[inline(always)]
pub fn capture_registers() -> Registers {
    let mut words = [0usize; WORDS];
    // SAFETY: every place that is stored to lies within the words.
    unsafe { store(&mut words) };
    let mut registers = Registers::new(FAMILY);
    for number in CALLEE_SAVED {
        let word = words.get(usize::from(*number)).copied().unwrap_or_default();
        registers.set(Register(*number), word as u64);
    }
    registers
}

/// Stores what holds behind the return from here: callee-saved registers, the stack pointer without the return address,
/// the return address as program counter.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "sysv64" fn store(words: &mut [usize; WORDS]) {
    core::arch::naked_asm!(
        "mov [rdi + 24], rbx",
        "mov [rdi + 48], rbp",
        "lea rax, [rsp + 8]",
        "mov [rdi + 56], rax",
        "mov [rdi + 96], r12",
        "mov [rdi + 104], r13",
        "mov [rdi + 112], r14",
        "mov [rdi + 120], r15",
        "mov rax, [rsp]",
        "mov [rdi + 128], rax",
        "ret",
    )
}

#[cfg(target_arch = "x86")]
#[unsafe(naked)]
unsafe extern "C" fn store(words: &mut [usize; WORDS]) {
    core::arch::naked_asm!(
        "mov eax, [esp + 4]",
        "mov [eax + 12], ebx",
        "lea ecx, [esp + 4]",
        "mov [eax + 16], ecx",
        "mov [eax + 20], ebp",
        "mov [eax + 24], esi",
        "mov [eax + 28], edi",
        "mov ecx, [esp]",
        "mov [eax + 32], ecx",
        "ret",
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn store(words: &mut [usize; WORDS]) {
    core::arch::naked_asm!(
        "stp x19, x20, [x0, #152]",
        "stp x21, x22, [x0, #168]",
        "stp x23, x24, [x0, #184]",
        "stp x25, x26, [x0, #200]",
        "stp x27, x28, [x0, #216]",
        "str x29, [x0, #232]",
        "mov x9, sp",
        "str x9, [x0, #248]",
        "str x30, [x0, #256]",
        "ret",
    )
}

#[cfg(target_arch = "arm")]
#[unsafe(naked)]
unsafe extern "C" fn store(words: &mut [usize; WORDS]) {
    core::arch::naked_asm!(
        "add r1, r0, #16",
        "stm r1, {{r4, r5, r6, r7, r8, r9, r10, r11}}",
        "str sp, [r0, #52]",
        "str lr, [r0, #60]",
        "bx lr",
    )
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64", target_arch = "arm")))]
unsafe extern "C" fn store(_: &mut [usize; WORDS]) {}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_core::Avma;

    #[test]
    #[inline(never)]
    fn the_registers_are_those_of_the_asking_function() {
        let registers = capture_registers();
        let here = the_registers_are_those_of_the_asking_function as *const () as u64;
        let pc = registers.pc().map_or(0, Avma::get);
        assert!((here..here + 4096).contains(&(pc & !1)), "{pc:#x} is not behind {here:#x}");
        let local = &raw const registers as u64;
        let sp = registers.sp().map_or(0, Avma::get);
        assert!(sp <= local && local - sp < 1 << 16, "{sp:#x} is not below {local:#x}");
        assert_eq!(registers.iter().count(), CALLEE_SAVED.len());
    }
}
