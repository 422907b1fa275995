//! `regs.txt`.

use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Family, Registers};

/// A line that names one of these tells the architecture. RISC-V and MIPS are told apart to be refused by name.
const TELLING: [(&str, Option<Arch>); 14] = [
    ("rax", Some(Arch::X86_64)),
    ("rip", Some(Arch::X86_64)),
    ("rsp", Some(Arch::X86_64)),
    ("eax", Some(Arch::X86)),
    ("eip", Some(Arch::X86)),
    ("esp", Some(Arch::X86)),
    ("x0", Some(Arch::Arm64)),
    ("x19", Some(Arch::Arm64)),
    ("x29", Some(Arch::Arm64)),
    ("pst", Some(Arch::Arm64)),
    ("r0", Some(Arch::Arm)),
    ("r4", Some(Arch::Arm)),
    ("r11", Some(Arch::Arm)),
    ("ra", None),
];

/// The architecture and the registers. What is no `name: value` becomes a note.
pub(super) fn parse(
    text: &[u8],
    wanted: Option<Arch>,
    notes: &mut Vec<String>,
    limits: &Limits,
) -> Result<(Arch, Registers), Error> {
    let text = String::from_utf8_lossy(text);
    let mut values: Vec<(String, u64)> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match parse_line(line) {
            Some(value) => values.push(value),
            None if notes.len() < limits.notes => {
                notes.push(format!("regs.txt line {} is no `name: value`", index + 1));
            }
            None => {}
        }
    }
    let arch = arch(&values, wanted)?;
    let mut registers = Registers::new(arch.family());
    for (name, value) in &values {
        match arch.family().register(name) {
            Some(register) => registers.set(register, *value),
            // The processor's state, which unwinding does not need.
            None if matches!(name.as_str(), "pst" | "pstate" | "cpsr" | "eflags") => {}
            None if notes.len() < limits.notes => {
                notes.push(format!("regs.txt: {arch} has no register {name}"));
            }
            None => {}
        }
    }
    if registers.pc().is_none() {
        return Err(Error::new(
            ErrorKind::Malformed,
            "regs.txt: expected a line with the program counter (pc, rip or eip)",
        ));
    }
    Ok((arch, registers))
}

fn parse_line(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once(':')?;
    let value = value.trim();
    let digits = value.strip_prefix("0x").unwrap_or(value);
    Some((name.trim().to_ascii_lowercase(), u64::from_str_radix(digits, 16).ok()?))
}

/// What the names tell; else what the caller knows; else an address above 4 GiB makes it ARM64.
fn arch(values: &[(String, u64)], wanted: Option<Arch>) -> Result<Arch, Error> {
    let has = |wanted: &str| values.iter().any(|(name, _)| name == wanted);
    if let Some((name, arch)) = TELLING.iter().find(|(name, _)| has(name)) {
        let refused = || {
            Error::new(
                ErrorKind::Unsupported,
                format!("regs.txt: register {name} is of no architecture that can be unwound"),
            )
        };
        return arch.ok_or_else(refused);
    }
    let known = wanted.filter(|arch| arch.family() != Family::Other);
    if let Some(arch) = known {
        return Ok(arch);
    }
    let counter = values.iter().find(|(name, _)| name == "pc");
    match counter {
        Some((_, value)) if *value > u64::from(u32::MAX) => Ok(Arch::Arm64),
        Some(_) => Ok(Arch::Arm),
        None => Err(Error::new(
            ErrorKind::Malformed,
            "regs.txt: expected lines of `name: value` with the registers of x86, x86_64, arm or arm64",
        )),
    }
}
