//! What the processor says of an exception: 64-bit ARM's syndrome register, x86's page fault error code.

use super::registers::Registers;
use super::tables::esr::{BREAKS, CLASSES, FAULTS, PAGE_FAULT_BITS, SANITIZER_CHECKS};
use super::words::number;
use backtrail_core::Family;
use backtrail_model::Report;
use std::ops::RangeInclusive;

/// What an access was for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    Read,
    Write,
    Execute,
}

impl Access {
    /// As a noun: `read`, `write`, `jump`.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Execute => "jump",
        }
    }
}

/// The processor's account.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Syndrome {
    /// What the access was for, where it was one.
    pub(crate) access: Option<Access>,
    /// Whether memory is mapped there and the permission is what was missing.
    pub(crate) permission: bool,
    pub(crate) misaligned: bool,
    /// Whether memory tagging refused the pointer.
    pub(crate) tag_fault: bool,
    /// Whether a pointer's authentication failed.
    pub(crate) ptrauth: bool,
    /// BRK's immediate value.
    pub(crate) break_code: Option<u16>,
    /// The report's line, decoded.
    pub(crate) evidence: String,
}

/// Reads the account from the registers, or from the `Error Code` line of older text reports.
pub(crate) fn read(report: &Report, registers: &Registers<'_>) -> Option<Syndrome> {
    match registers.get("esr") {
        Some(esr) if registers.family() == Family::Aarch64 => Some(decode_esr(esr.value)),
        _ => page_fault_code(report, registers).map(decode_page_fault),
    }
}

fn bits(value: u64, low: u32, width: u32) -> u32 {
    let mask = (1u64 << width) - 1;
    u32::try_from(value >> low & mask).unwrap_or_default()
}

/// Decodes ESR_EL1: exception class in bits 31 to 26, for aborts WnR in bit 6 and the fault status in bits 5 to 0.
pub(crate) fn decode_esr(esr: u64) -> Syndrome {
    let class = bits(esr, 26, 6);
    let class_name =
        CLASSES.iter().find(|(known, _)| u32::from(*known) == class).map_or("reserved", |(_, name)| name);
    let is_data = matches!(class, 0x24 | 0x25);
    let is_fetch = matches!(class, 0x20..=0x22);
    let is_abort = is_data || matches!(class, 0x20 | 0x21);
    let status = bits(esr, 0, 6);
    let fault = FAULTS.iter().find(|(low, high, _)| (u32::from(*low)..=u32::from(*high)).contains(&status));
    let fault = fault.filter(|_| is_abort);
    let access = match () {
        () if is_data => Some(if bits(esr, 6, 1) == 1 { Access::Write } else { Access::Read }),
        () if is_fetch => Some(Access::Execute),
        () => None,
    };
    let break_code = (class == 0x3c).then(|| u16::try_from(bits(esr, 0, 16)).unwrap_or_default());
    let noun = access.filter(|_| is_data).map(|access| format!(", {}", access.noun())).unwrap_or_default();
    let fault_name = fault.map(|(_, _, name)| format!(", {name}")).unwrap_or_default();
    let immediate = break_code.map(|code| format!(" {code:#x}")).unwrap_or_default();
    Syndrome {
        access,
        permission: is_abort && (0x0c..=0x0f).contains(&status),
        misaligned: matches!(class, 0x22 | 0x26) || (is_abort && status == 0x21),
        tag_fault: is_data && status == 0x11,
        ptrauth: class == 0x1c || break_code.is_some_and(|code| (0xc470..=0xc473).contains(&code)),
        break_code,
        evidence: format!("Register esr = {esr:#x}: {class_name}{immediate}{noun}{fault_name}"),
    }
}

/// What a BRK immediate says.
pub(crate) fn break_meaning(code: u16) -> Option<&'static str> {
    BREAKS.iter().find(|(low, high, _)| (*low..=*high).contains(&code)).map(|(_, _, meaning)| *meaning)
}

/// BRK immediates by which Undefined Behavior Sanitizer says which check failed.
const SANITIZER_BREAKS: RangeInclusive<u16> = 0x5500..=0x55ff;

/// Whether a BRK immediate is one of Undefined Behavior Sanitizer's.
pub(crate) fn is_sanitizers(code: u16) -> bool {
    SANITIZER_BREAKS.contains(&code)
}

/// The check of Undefined Behavior Sanitizer that a BRK immediate stands for, where it is known.
pub(crate) fn sanitizer_check(code: u16) -> Option<&'static str> {
    let number = code.checked_sub(*SANITIZER_BREAKS.start())?;
    SANITIZER_CHECKS.get(usize::from(number)).copied()
}

/// The error code of a page fault (trap 14), from the registers or the field of older text reports.
fn page_fault_code(report: &Report, registers: &Registers<'_>) -> Option<u64> {
    let field = |key: &str| {
        let field = report.fields.iter().find(|field| field.key.eq_ignore_ascii_case(key))?;
        number(field.value.split_whitespace().next()?)
    };
    let register = |name: &str| registers.get(name).map(|register| register.value);
    if !matches!(registers.family(), Family::X86 | Family::X86_64) {
        return None;
    }
    let trap = register("trap").or_else(|| register("Trap Number")).or_else(|| field("Trap Number"))?;
    let code = register("err").or_else(|| register("Error Code")).or_else(|| field("Error Code"))?;
    (trap == 14).then_some(code)
}

/// Decodes the error code that x86 has for a page fault.
pub(crate) fn decode_page_fault(code: u64) -> Syndrome {
    let set = |bit: u32| bits(code, bit, 1) == 1;
    let said = PAGE_FAULT_BITS.iter().map(|(bit, yes, no)| if set(*bit) { *yes } else { *no });
    let said: Vec<&str> = said.filter(|text| !text.is_empty()).collect();
    let access = match () {
        () if set(4) => Access::Execute,
        () if set(1) => Access::Write,
        () => Access::Read,
    };
    Syndrome {
        access: Some(access),
        permission: set(0),
        misaligned: false,
        tag_fault: false,
        ptrauth: false,
        break_code: None,
        evidence: format!("Error Code {code:#x} of the page fault: {}", said.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_aborts_tell_direction_and_reason() {
        let write = decode_esr(0x9200_0046);
        assert_eq!((write.access, write.permission), (Some(Access::Write), false));
        assert!(write.evidence.contains("data abort, write, translation fault"), "{}", write.evidence);
        let read = decode_esr(0x9200_0006);
        assert_eq!(read.access, Some(Access::Read));
        let read_only = decode_esr(0x9200_004f);
        assert!(read_only.permission && read_only.access == Some(Access::Write));
        assert!(decode_esr(0x9200_0011).tag_fault && decode_esr(0x9200_0021).misaligned);
    }

    #[test]
    fn instruction_aborts_breaks_and_failed_authentication_are_told_apart() {
        assert_eq!(decode_esr(0x8200_0006).access, Some(Access::Execute));
        let trap = decode_esr(0xf200_0001);
        assert_eq!((trap.access, trap.break_code), (None, Some(1)));
        assert!(trap.evidence.ends_with("BRK instruction 0x1"), "{}", trap.evidence);
        assert!(decode_esr(0xf200_c471).ptrauth && decode_esr(0x7200_0000).ptrauth);
        assert!(break_meaning(0x5512).is_some() && break_meaning(0x1234).is_none());
        // A system call's syndrome, as seen in an abort: nothing about memory.
        let call = decode_esr(0x5600_0080);
        assert_eq!((call.access, call.permission, call.break_code), (None, false, None));
        assert!(call.evidence.ends_with("system call"), "{}", call.evidence);
    }

    #[test]
    fn page_fault_codes_are_decoded() {
        assert_eq!(decode_page_fault(0x6).access, Some(Access::Write));
        assert!(!decode_page_fault(0x6).permission && decode_page_fault(0x7).permission);
        assert_eq!(decode_page_fault(0x14).access, Some(Access::Execute));
    }
}
