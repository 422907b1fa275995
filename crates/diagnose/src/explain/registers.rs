//! The blamed thread's registers by meaning, whatever the architecture calls them.

use backtrail_core::{Avma, Family, FrameAddress};
use backtrail_model::{Register, Report, Thread};

const PC: [&str; 4] = ["pc", "rip", "eip", "r15"];
const SP: [&str; 3] = ["sp", "rsp", "esp"];
const FP: [&str; 4] = ["fp", "x29", "rbp", "ebp"];
const LR: [&str; 2] = ["lr", "x30"];
/// Registers whose values are no addresses that code works with.
const NOT_GENERAL: [&str; 22] = [
    "pc", "rip", "eip", "sp", "rsp", "esp", "cpsr", "esr", "far", "rflags", "efl", "eflags", "rfl", "cs",
    "ss", "ds", "es", "fs", "gs", "cr2", "trap", "err",
];

/// A view of a thread's registers.
pub(crate) struct Registers<'r> {
    all: &'r [Register],
    family: Family,
}

impl<'r> Registers<'r> {
    pub(crate) fn of(report: &Report, thread: Option<&'r Thread>) -> Self {
        let all = thread.map(|thread| thread.registers.as_slice()).unwrap_or_default();
        let family = report.process.arch.map(backtrail_core::Arch::family);
        let mut registers = Self { all, family: Family::Other };
        registers.family = family.unwrap_or_else(|| registers.guessed_family());
        registers
    }

    /// The architecture's family, by the names where the report does not say.
    pub(crate) fn family(&self) -> Family {
        self.family
    }

    fn guessed_family(&self) -> Family {
        let has = |name: &str| self.get(name).is_some();
        match () {
            () if has("rip") => Family::X86_64,
            () if has("eip") => Family::X86,
            () if has("x0") => Family::Aarch64,
            () if has("r0") => Family::Arm,
            () => Family::Other,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The register of that name, in any case.
    pub(crate) fn get(&self, name: &str) -> Option<&'r Register> {
        self.all.iter().find(|register| register.name.eq_ignore_ascii_case(name))
    }

    fn first(&self, names: &[&str]) -> Option<&'r Register> {
        names.iter().find_map(|name| self.get(name))
    }

    fn address(&self, names: &[&str]) -> Option<Avma> {
        self.first(names).map(|register| Avma::new(register.value))
    }

    /// The instruction that was running. `r15` counts on 32-bit ARM only: x86-64 has another one.
    pub(crate) fn pc(&self) -> Option<Avma> {
        let names = if self.family == Family::Arm { &PC[..] } else { &PC[..3] };
        self.address(names)
    }

    pub(crate) fn sp(&self) -> Option<Avma> {
        self.address(&SP)
    }

    /// The frame pointer: `r7` on 32-bit ARM as Apple's ABI has it.
    pub(crate) fn fp(&self) -> Option<&'r Register> {
        if self.family == Family::Arm { self.get("r7") } else { self.first(&FP) }
    }

    pub(crate) fn lr(&self) -> Option<Avma> {
        self.address(&LR)
    }

    /// The register that holds argument `index` of a call.
    pub(crate) fn argument(&self, index: usize) -> Option<&'r Register> {
        let names: [&str; 2] = match self.family {
            Family::Aarch64 => ["x0", "x1"],
            Family::Arm => ["r0", "r1"],
            Family::X86_64 => ["rdi", "rsi"],
            _ => return None,
        };
        self.get(names.get(index)?)
    }

    /// The registers that code keeps addresses and numbers in.
    pub(crate) fn general(&self) -> impl Iterator<Item = &'r Register> {
        let is_general = |register: &&Register| {
            let name = register.name.to_ascii_lowercase();
            let arms_pc = self.family == Family::Arm && name == "r15";
            !(arms_pc || NOT_GENERAL.contains(&name.as_str()))
        };
        self.all.iter().filter(is_general)
    }
}

/// The instruction that was running, from the registers, else from the first frame.
pub(crate) fn current_instruction(registers: &Registers<'_>, thread: Option<&Thread>) -> Option<Avma> {
    let first = || match thread?.frames.first()?.address? {
        FrameAddress::Exact(avma) => Some(avma),
        FrameAddress::Return(_) => None,
    };
    registers.pc().or_else(first)
}
