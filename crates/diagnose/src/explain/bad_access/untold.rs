//! Accesses whose address the report does not give.

use super::details::cite_fill;
use super::{ADDRESS_SANITIZER, Accessing, DANGLING, GARBAGE, NULL_PAGE};
use crate::explain::draft::Draft;
use crate::explain::facts::Facts;
use crate::explain::fault::FaultAddress;
use crate::explain::stack::broken_frame_pointer;
use crate::explain::tables::access::Failure;
use backtrail_core::{Avma, Family, Trust};
use backtrail_model::Register;

/// The address is not told.
pub(in crate::explain) fn untold(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    if on.fault.failure() == Some(Failure::GeneralProtection) {
        match overwritten_return(facts) {
            Some(line) => overwritten_stack(draft, &line),
            None => general_protection(&on, draft),
        }
        return true;
    }
    let why = match on.fault.address {
        FaultAddress::Untold(why) => why.to_owned(),
        // Assumed and near null: `null` has found no register that could have led there.
        FaultAddress::Assumed(address, _) if address.get() < NULL_PAGE => {
            format!("it gives {address}, but no register holds a value near 0")
        }
        FaultAddress::Stated(_) | FaultAddress::Assumed(..) => return false,
    };
    if let Some(line) = broken_frame_pointer(facts) {
        overwritten_stack(draft, &line);
    } else {
        nothing_known(&on, draft);
        draft.nexts(&[
            "Look at the named line and at the registers for a pointer that is no address.",
            ADDRESS_SANITIZER,
        ]);
    }
    let why = if why.is_empty() { why } else { format!(": {why}") };
    draft.say(format!("The report does not tell the address{why}."));
    true
}

fn overwritten_stack(draft: &mut Draft, line: &str) {
    draft.lead(
        "Bad memory access after the stack was overwritten",
        "Memory was accessed that may not be, and the stack holds values that are no addresses: it was overwritten.",
    );
    draft.evidence(line);
    draft.cause("A write beyond the end of an array on the stack: memset, memcpy, strcpy or a loop with a wrong length.");
    draft.nexts(&[
        "Run with Address Sanitizer: it stops at the write.",
        "Look at the last frames that are left, and at what they had called.",
    ]);
}

/// The innermost function is to return to what is no address: x86-64 refuses the return itself, and the program counter stays there.
fn overwritten_return(facts: &Facts<'_>) -> Option<String> {
    let (innermost, caller) = (facts.frames.first()?, facts.frames.get(1)?);
    let address = caller.address?.raw();
    let is_garbage = caller.trust != Trust::Scan && is_non_canonical(address.get());
    is_garbage.then(|| {
        format!("{} is to return to {address}: no address that the processor has", facts.cite(innermost))
    })
}

fn nothing_known(on: &Accessing<'_, '_>, draft: &mut Draft) {
    if on.fault.failure() == Some(Failure::Protected) {
        draft.lead(
            "Memory access that its protection forbids",
            "The code accessed memory that is mapped but may not be used that way: a write to read-only memory, or a jump into data.",
        );
        draft.causes(&[
            "A write to a constant, to code, or to a file mapped for reading.",
            "A stack that ran out into its guard page.",
        ]);
        return;
    }
    draft.lead(
        "Bad memory access at an address that the report does not give",
        "The code accessed memory that it may not access.",
    );
    draft.causes(&[GARBAGE, DANGLING]);
    if matches!(on.facts.family(), Family::X86 | Family::X86_64) {
        draft.cause("An instruction that only the kernel may execute: x86 reports it the same way.");
    }
}

/// x86's general protection fault: a pointer beyond the address space, or a forbidden instruction.
fn general_protection(on: &Accessing<'_, '_>, draft: &mut Draft) {
    let odd: Vec<&Register> =
        on.facts.registers.general().filter(|register| is_non_canonical(register.value)).collect();
    if let [first, ..] = odd.as_slice() {
        let value = Avma::new(first.value);
        draft.lead(
            format!("Bad pointer, probably {value}: no address that the processor has"),
            "The code used a pointer beyond the processor's address space (general protection fault).",
        );
        for register in odd.iter().take(4) {
            draft.evidence(format!(
                "Register {} = {:#x}: no address that the processor has",
                register.name, register.value
            ));
            cite_fill(on, draft, Avma::new(register.value));
        }
        draft.causes(&[DANGLING, "A pointer that was overwritten, often by text."]);
    } else {
        draft.lead(
            "General protection fault",
            "The processor refused an instruction: a pointer beyond its address space, or an instruction that only the kernel may execute.",
        );
        draft.say("The report does not tell which: no register holds such a pointer.");
        draft.causes(&[DANGLING, GARBAGE]);
    }
    draft.say("The processor does not report the address in this case.");
    draft.next(ADDRESS_SANITIZER);
}

/// x86-64 has 48 address bits, the upper ones copies of bit 47.
fn is_non_canonical(value: u64) -> bool {
    let upper = value >> 47;
    upper != 0 && upper != 0x1_ffff
}
