//! General registers as Linux lays them out (`elf_gregset_t`), in core dumps and from ptrace alike.

use crate::bytes::word_at;
use crate::procfs::SystemCall;
use backtrail_core::{Arch, Avma, Family, Register, Registers};

/// The kernel's order of the registers; an empty name for what unwinding does not need.
const X86_64: [&str; 20] = [
    "r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi",
    "", "rip", "", "", "rsp",
];
const X86: [&str; 16] =
    ["ebx", "ecx", "edx", "esi", "edi", "ebp", "eax", "", "", "", "", "", "eip", "", "", "esp"];

/// Which register lies where in a set.
pub(crate) struct Layout {
    family: Family,
    registers: Vec<(usize, Register)>,
}

impl Layout {
    pub(crate) fn of(family: Family) -> Self {
        let names = match family {
            Family::X86_64 => &X86_64[..],
            Family::X86 => &X86[..],
            // ARM's and ARM64's orders are DWARF's.
            _ => family.register_names(),
        };
        let places = names.iter().enumerate();
        let registers = places.filter_map(|(index, name)| Some((index, family.register(name)?))).collect();
        Self { family, registers }
    }

    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
    pub(crate) fn family(&self) -> Family {
        self.family
    }

    /// Reads a set of registers; what the bytes are too few for stays unknown.
    pub(crate) fn read(&self, data: &[u8]) -> Registers {
        let mut registers = Registers::new(self.family);
        let width = usize::from(self.family.word_size());
        for (index, register) in &self.registers {
            if let Some(value) = word_at(data, index * width, width == 8) {
                registers.set(*register, value);
            }
        }
        registers
    }
}

/// Reads one set of registers.
pub(crate) fn registers(family: Family, data: &[u8]) -> Registers {
    Layout::of(family).read(data)
}

/// Place of the base of `fs` in x86-64's set.
const FS_BASE: usize = 21;

/// What thread-local storage is counted from: the base of `fs`. ARM's are in a set of their own (`NT_ARM_TLS`), 32-bit x86 has
/// them in a table of the kernel's.
pub(crate) fn thread_pointer(family: Family, data: &[u8]) -> Option<Avma> {
    let base = (family == Family::X86_64).then(|| word_at(data, FS_BASE * 8, true)).flatten()?;
    (base != 0).then_some(Avma::new(base))
}

/// Registers of a 64-bit thread as the kernel lays them out; what is not known is 0, and it is in no system call. What thread-local
/// storage is counted from is that of `standing`, what the kernel says of the thread: a signal handler has its thread's.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn raw(registers: &Registers, standing: &[u8]) -> Option<Vec<u8>> {
    let family = registers.family();
    let words = match family {
        Family::X86_64 => 27,
        Family::Aarch64 => 34,
        _ => return None,
    };
    let mut set = vec![0_u64; words];
    if let (Family::X86_64, Some(call)) = (family, set.get_mut(15)) {
        *call = u64::MAX;
    }
    if let (Some(base), Some(to)) = (thread_pointer(family, standing), set.get_mut(FS_BASE)) {
        *to = base.get();
    }
    for (index, register) in &Layout::of(family).registers {
        if let (Some(to), Some(value)) = (set.get_mut(*index), registers.get(*register)) {
            *to = value;
        }
    }
    Some(set.iter().flat_map(|word| word.to_le_bytes()).collect())
}

/// Whether [`call`] knows this family.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn tells_calls(family: Family) -> bool {
    matches!(family, Family::X86_64 | Family::X86)
}

/// The system call that a thread was in when it stopped: what `/proc/PID/syscall` tells. The kernel keeps the number beside the
/// register that the call's answer goes to, and -1 where it is none (`orig_rax`). Other architectures have it elsewhere, or
/// overwrite the first argument.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn call(family: Family, data: &[u8]) -> Option<SystemCall> {
    let (number, arguments, width) = match family {
        Family::X86_64 => (15, [14, 13, 12, 7, 9, 8], 8),
        Family::X86 => (11, [0, 1, 2, 3, 4, 5], 4),
        _ => return None,
    };
    let word = |index: usize| word_at(data, index * width, width == 8);
    let number = word(number)?;
    // Of 32 bits the sign is in the 32nd.
    let is_none = number >> (width * 8 - 1) & 1 == 1;
    let arguments = arguments.map(|index| word(index).unwrap_or_default());
    (!is_none).then_some(SystemCall { number, arguments })
}

/// Sets the registers that a thread passed its system call's arguments in: the kernel leaves them as they are until the call is
/// over. Only the first one also takes the answer on ARM. syscall(2).
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "of threads that run"))]
pub(crate) fn set_arguments(registers: &mut Registers, family: Family, call: &SystemCall) {
    let names: [&str; 6] = match family {
        Family::X86_64 => ["rdi", "rsi", "rdx", "r10", "r8", "r9"],
        Family::X86 => ["ebx", "ecx", "edx", "esi", "edi", "ebp"],
        Family::Aarch64 => ["", "x1", "x2", "x3", "x4", "x5"],
        Family::Arm => ["", "r1", "r2", "r3", "r4", "r5"],
        _ => return,
    };
    for (name, value) in names.into_iter().zip(call.arguments) {
        if let Some(register) = family.register(name) {
            registers.set(register, value);
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_by_the_register_beside_the_answers() {
        let set = |words: usize, width: usize, values: &[(usize, i64)]| {
            let mut bytes = vec![0; words * width];
            for (index, value) in values {
                bytes[index * width..][..width].copy_from_slice(&value.to_le_bytes()[..width]);
            }
            bytes
        };
        let arguments = [(15, 202), (14, 1), (13, 2), (12, 3), (7, 4), (9, 5), (8, 6)];
        let expected = SystemCall { number: 202, arguments: [1, 2, 3, 4, 5, 6] };
        assert_eq!(call(Family::X86_64, &set(27, 8, &arguments)), Some(expected));
        assert_eq!(call(Family::X86_64, &set(27, 8, &[(15, -1), (14, 7)])), None);
        let expected = SystemCall { number: 240, arguments: [9, 0, 0, 0, 0, 8] };
        assert_eq!(call(Family::X86, &set(17, 4, &[(11, 240), (0, 9), (5, 8)])), Some(expected));
        assert_eq!(call(Family::X86, &set(17, 4, &[(11, -1), (0, 9)])), None);
        assert_eq!(call(Family::X86_64, &[0; 8]), None);
        assert_eq!(call(Family::Aarch64, &[0; 512]), None);
    }

    #[test]
    fn a_handlers_registers_keep_what_storage_is_counted_from() {
        let family = Family::X86_64;
        let mut before = Registers::new(family);
        before.set(family.register("rip").unwrap(), 0x1000);
        let mut standing = vec![1; 27 * 8];
        standing[FS_BASE * 8..][..8].copy_from_slice(&0x7000_u64.to_le_bytes());
        let raw = raw(&before, &standing).unwrap();
        assert_eq!(thread_pointer(family, &raw), Some(Avma::new(0x7000)));
        assert_eq!(registers(family, &raw).get(family.register("rip").unwrap()), Some(0x1000));
        assert_eq!(registers(family, &raw).get(family.register("rbx").unwrap()), Some(0));
        assert_eq!(call(family, &raw), None);
        assert_eq!(thread_pointer(family, &super::raw(&before, &[]).unwrap()), None);
    }

    #[test]
    fn arguments_are_in_the_registers_that_the_kernel_keeps() {
        let call = SystemCall { number: 1, arguments: [1, 2, 3, 4, 5, 6] };
        let value = |family: Family, name| {
            let mut registers = Registers::new(family);
            set_arguments(&mut registers, family, &call);
            registers.get(family.register(name).unwrap())
        };
        assert_eq!((value(Family::X86_64, "rdi"), value(Family::X86_64, "r10")), (Some(1), Some(4)));
        assert_eq!((value(Family::X86, "ecx"), value(Family::X86, "ebp")), (Some(2), Some(6)));
        // The first argument's register is the answer's as well.
        assert_eq!((value(Family::Aarch64, "x0"), value(Family::Aarch64, "x1")), (None, Some(2)));
        assert_eq!((value(Family::Arm, "r0"), value(Family::Arm, "r5")), (None, Some(6)));
    }
}
