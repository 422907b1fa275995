//! What a report says of the address whose access failed, and how far that can be believed.

use super::registers::Registers;
use super::tables::access::{
    AccessCode, Failure, LINUX_CODES, LINUX_X86_CODES, PTRAUTH_BIT, by_name, by_number,
};
use super::words::{hex_after, leading_hex};
use backtrail_core::{Avma, Family};
use backtrail_model::{Exception, Report};

/// A failed access to memory.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    /// Why it failed, by the code's name or number.
    pub(crate) code: Option<&'static AccessCode>,
    /// Where.
    pub(crate) address: FaultAddress,
    /// The address without pointer authentication bits, where the report gives both.
    pub(crate) stripped: Option<Avma>,
    /// Whether the report itself holds a failed pointer authentication possible.
    pub(crate) maybe_ptrauth: bool,
}

/// The address, with how far it can be believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FaultAddress {
    /// The report states it.
    Stated(Avma),
    /// The report gives it in a place where it may mean something else; the reason says which.
    Assumed(Avma, &'static str),
    /// The report does not tell; the reason says why.
    Untold(&'static str),
}

const NO_CODE: &str = "the first number is no code that the kernel gives for a bad access; reporters other than Apple's put the address there";
const GENERAL_PROTECTION: &str = "the processor does not tell the address of a general protection fault";
const MISALIGNED: &str = "x86 does not tell the address of a misaligned access";
const WRONG_SIGNAL: &str = "the codes say KERN_INVALID_ADDRESS, which Apple's kernel never turns into SIGBUS, so they were not written by it";
const PROTECTED_ZERO: &str = "a protection failure at address 0 is not possible on this system, so the reporter did not know the address";
/// The report gives no address and no hint why.
pub(crate) const NOTHING: &str = "";

impl Fault {
    /// Reads the exception of `report`.
    pub(crate) fn read(report: &Report, registers: &Registers<'_>) -> Self {
        let empty = Exception::default();
        let exception = report.exception.as_ref().unwrap_or(&empty);
        // The number that a core or minidump states is that of the signal or exception, and no code of Apple's kernel.
        let numbers = || Some(exception).filter(|_| !report.source.is_capture());
        let linux = of_linux(report, exception, registers);
        let mut fault = linux
            .or_else(|| from_text(exception))
            .or_else(|| numbers().and_then(|exception| from_numbers(exception, registers)))
            .unwrap_or_else(none);
        if fault.code.is_some_and(|code| code.failure == Failure::GeneralProtection) {
            fault.address = FaultAddress::Untold(GENERAL_PROTECTION);
        } else if fault.address == FaultAddress::Untold(NOTHING)
            && let Some(address) = exception.address
        {
            fault.address = FaultAddress::Stated(address);
        } else if fault.address == FaultAddress::Untold(NOTHING)
            && let Some(address) = by_reporters_words(report)
        {
            fault.address = FaultAddress::Stated(address);
        }
        fault
    }

    /// The address, whether stated or assumed.
    pub(crate) fn address(&self) -> Option<Avma> {
        match self.address {
            FaultAddress::Stated(address) | FaultAddress::Assumed(address, _) => Some(address),
            FaultAddress::Untold(_) => None,
        }
    }

    /// The address that the access would have had with the bits of pointer authentication gone.
    pub(crate) fn target(&self) -> Option<Avma> {
        self.stripped.or_else(|| self.address())
    }

    /// In what way the access failed, as far as the report says.
    pub(crate) fn failure(&self) -> Option<Failure> {
        self.code.map(|code| code.failure)
    }
}

/// What Linux's kernel told, as captures state it: one code, and the address elsewhere.
fn of_linux(report: &Report, exception: &Exception, registers: &Registers<'_>) -> Option<Fault> {
    let is_linux = report.os.as_deref().is_some_and(|os| os.starts_with("Linux"));
    let text = exception.codes.as_deref().filter(|_| is_linux && report.source.is_capture())?;
    let named = |code: &&'static AccessCode| text.split(' ').next() == Some(code.name);
    if matches!(registers.family(), Family::X86 | Family::X86_64)
        && let Some(code) = LINUX_X86_CODES.iter().find(named)
    {
        let why = if code.failure == Failure::Misaligned { MISALIGNED } else { GENERAL_PROTECTION };
        return Some(Fault { code: Some(code), address: FaultAddress::Untold(why), ..none() });
    }
    LINUX_CODES.iter().find(named).map(|code| Fault { code: Some(code), ..none() })
}

fn none() -> Fault {
    Fault { code: None, address: FaultAddress::Untold(NOTHING), stripped: None, maybe_ptrauth: false }
}

/// KSCrash's diagnosis, which Sentry's and HockeyApp's texts have in place of codes: `Attempted to dereference garbage pointer
/// 0x16e023180.`
fn by_reporters_words(report: &Report) -> Option<Avma> {
    let lines = report.app_info.iter().flat_map(|info| &info.lines);
    let mut addresses = lines.filter_map(|line| hex_after(line, "Attempted to dereference garbage pointer "));
    addresses.next().map(Avma::new)
}

/// `KERN_INVALID_ADDRESS at 0x8`, `SEGV_MAPERR at 0x8`, `EXC_I386_GPFLT`, with or without
/// `-> 0x… (possible pointer authentication failure)`.
fn from_text(exception: &Exception) -> Option<Fault> {
    let lines = [exception.subtype.as_deref(), exception.codes.as_deref(), exception.message.as_deref()];
    let (text, code) = lines.into_iter().flatten().find_map(|text| Some((text, by_name(text)?)))?;
    let address = hex_after(text, " at ").map(Avma::new);
    Some(Fault {
        code: Some(code),
        address: address.map_or(FaultAddress::Untold(NOTHING), FaultAddress::Stated),
        stripped: hex_after(text, "->").map(Avma::new),
        maybe_ptrauth: text.contains("pointer authentication"),
    })
}

/// `0x1, 0x8`: code and address, as Apple writes it; or the address alone or first, as others do.
fn from_numbers(exception: &Exception, registers: &Registers<'_>) -> Option<Fault> {
    let numbers = code_numbers(exception);
    let first = *numbers.first()?;
    let second = numbers.get(1).copied();
    let is_arm = matches!(registers.family(), Family::Arm | Family::Aarch64);
    // One number alone may be an address, but 0x32 is none that people see.
    let possible = |code: &&AccessCode| {
        (second.is_some() || code.failure == Failure::CodeSigning)
            && !(is_arm && code.failure == Failure::GeneralProtection)
    };
    let Some(code) = by_number(first & !PTRAUTH_BIT).filter(possible) else {
        let nothing = first == 0 && second.unwrap_or(0) == 0;
        // SentryCrash writes the low half of the address where the code stands, and the whole of it elsewhere.
        let is_half =
            |whole: &Avma| first <= u64::from(u32::MAX) && whole.get() & u64::from(u32::MAX) == first;
        let address = match exception.address.filter(is_half) {
            Some(whole) => FaultAddress::Stated(whole),
            None => FaultAddress::Assumed(Avma::new(first), NO_CODE),
        };
        let address = if nothing { FaultAddress::Untold(NOTHING) } else { address };
        return Some(Fault { address, ..none() });
    };
    let stated =
        second.map_or(FaultAddress::Untold(NOTHING), |address| FaultAddress::Stated(Avma::new(address)));
    let signal = exception.signal.as_deref().unwrap_or_default();
    let address = if code.failure == Failure::Unmapped && signal == "SIGBUS" {
        FaultAddress::Untold(WRONG_SIGNAL)
    } else if code.failure == Failure::Protected && second == Some(0) && registers.family() != Family::X86 {
        FaultAddress::Untold(PROTECTED_ZERO)
    } else {
        stated
    };
    Some(Fault { code: Some(code), address, maybe_ptrauth: first & PTRAUTH_BIT != 0, ..none() })
}

/// The codes as numbers, from the text where the reader left them there.
pub(crate) fn code_numbers(exception: &Exception) -> Vec<u64> {
    if !exception.raw_codes.is_empty() {
        return exception.raw_codes.clone();
    }
    let text = exception.codes.as_deref().unwrap_or_default();
    let numbers = text.split(',').map(|part| leading_hex(part.trim()).map(|(value, _)| value));
    numbers.take(8).collect::<Option<Vec<u64>>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::testing::{Build, report};

    fn read(build: Build) -> Fault {
        let report = build.done();
        Fault::read(&report, &Registers::of(&report, report.crashed()))
    }

    #[test]
    fn apples_texts_state_code_and_address() {
        let fault =
            read(report("EXC_BAD_ACCESS", "SIGSEGV").subtype("KERN_INVALID_ADDRESS at 0x0000000000000008"));
        assert_eq!(fault.address, FaultAddress::Stated(Avma::new(8)));
        assert_eq!(fault.failure(), Some(Failure::Unmapped));
        let text = "KERN_INVALID_ADDRESS at 0x0f24000186a18d80 -> 0x0000000186a18d80 (possible pointer authentication failure)";
        let fault = read(report("EXC_BAD_ACCESS", "SIGSEGV").subtype(text));
        assert!(fault.maybe_ptrauth);
        assert_eq!(fault.target(), Some(Avma::new(0x1_86a1_8d80)));
        let fault = read(report("EXC_BAD_ACCESS", "SIGSEGV").codes("EXC_I386_GPFLT"));
        assert_eq!(fault.address, FaultAddress::Untold(GENERAL_PROTECTION));
    }

    #[test]
    fn pairs_of_numbers_are_code_and_address() {
        let fault = read(report("EXC_BAD_ACCESS", "SIGSEGV").codes("0x0000000000000001, 0x0000000000000010"));
        assert_eq!(
            (fault.address, fault.failure()),
            (FaultAddress::Stated(Avma::new(16)), Some(Failure::Unmapped))
        );
        let fault = read(report("EXC_BAD_ACCESS", "SIGSEGV").codes("0x0000000000000201, 0x0000600000000010"));
        assert!(fault.maybe_ptrauth && fault.failure() == Some(Failure::Unmapped));
    }

    #[test]
    fn numbers_that_are_no_code_are_taken_for_the_address_and_said_to_be() {
        let fault = read(report("EXC_BAD_ACCESS", "SIGBUS").codes("0x0000000000000010, 0x0000000000000008"));
        assert_eq!(fault.address, FaultAddress::Assumed(Avma::new(16), NO_CODE));
        assert!(fault.code.is_none());
    }

    #[test]
    fn half_of_an_address_that_is_stated_elsewhere_is_no_address() {
        let half = |whole| {
            let build = report("EXC_BAD_ACCESS", "SIGBUS").raw(&[0x246_8000, 8]);
            read(build.with(|report| report.exception.as_mut().unwrap().address = Some(Avma::new(whole))))
        };
        assert_eq!(half(0x1_0246_8000).address, FaultAddress::Stated(Avma::new(0x1_0246_8000)));
        assert_eq!(half(0x1_0246_8008).address, FaultAddress::Assumed(Avma::new(0x246_8000), NO_CODE));
    }

    #[test]
    fn contradictions_leave_the_address_untold() {
        let fault = read(report("EXC_BAD_ACCESS", "SIGBUS").codes("0x1, 0x0"));
        assert_eq!(fault.address, FaultAddress::Untold(WRONG_SIGNAL));
        let fault =
            read(report("EXC_BAD_ACCESS", "SIGBUS").arch(backtrail_core::Arch::Armv7).codes("0x2, 0x0"));
        assert_eq!(fault.address, FaultAddress::Untold(PROTECTED_ZERO));
        let fault =
            read(report("EXC_BAD_ACCESS", "SIGBUS").arch(backtrail_core::Arch::X86).codes("0x2, 0x0"));
        assert_eq!(fault.address, FaultAddress::Stated(Avma::new(0)));
        assert_eq!(read(report("EXC_BAD_ACCESS", "SIGSEGV")).address(), None);
        assert_eq!(read(report("EXC_BAD_ACCESS", "SIGSEGV").codes("0x0, 0x0")).address(), None);
    }
}
