//! Accesses at null, a little above and a little below it.

use super::{Accessing, NULL_PAGE};
use crate::explain::draft::Draft;
use crate::explain::facts::Facts;
use crate::explain::fault::FaultAddress;
use backtrail_core::{Avma, Family};

/// An access at or a little above null.
pub(in crate::explain) fn null(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.target().filter(|address| address.get() < NULL_PAGE) else { return false };
    if !is_plausible(&on, address) {
        return false;
    }
    let unsure = matches!(on.fault.address, FaultAddress::Assumed(..)) && facts.registers.is_empty();
    let condition = if unsure { ", if the reported address is right" } else { "" };
    draft.lead(format!("Null pointer access{}{condition}", on.act(address)), null_sentence(&on, address));
    if unsure && address.get() == 0 && matches!(facts.family(), Family::X86 | Family::X86_64) {
        draft.say("On x86 a pointer beyond the address space and a forbidden instruction are reported the same way; without registers the report does not tell them apart.");
    }
    draft.cause("A pointer or reference that was never set, was cleared, or is the unchecked result of a call that failed.");
    if address.get() != 0 {
        draft.cause("A number where a pointer is expected, or an index into an array that is null.");
        draft.next(format!("See which member lies at offset {address} of the struct or class used at that line: the pointer before it is null."));
    } else {
        draft.next("See which pointer the named line uses: it is null.");
    }
    draft.next("Check where that pointer is set, and what happens when it is not.");
    true
}

fn null_sentence(on: &Accessing<'_, '_>, address: Avma) -> String {
    let verb = on.verb();
    match address.get() {
        0 => format!("The code {verb} memory through a null pointer."),
        _ => format!(
            "The code {verb} memory at {address}: a member at that offset of an object whose pointer is null."
        ),
    }
}

/// An address that the report states counts as it is. One that is only assumed counts where a register holds a base
/// for it: code reaches memory through a register, and an access that failed leaves it unchanged.
fn is_plausible(on: &Accessing<'_, '_>, address: Avma) -> bool {
    match on.fault.address {
        FaultAddress::Stated(_) => true,
        FaultAddress::Assumed(..) => {
            on.facts.registers.is_empty()
                || on.facts.registers.general().any(|register| register.value <= address.get())
        }
        FaultAddress::Untold(_) => false,
    }
}

/// An access a little below null: an index of -1, or a header that stands before an object.
pub(in crate::explain) fn below_null(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let width =
        if matches!(facts.family(), Family::X86 | Family::Arm) { u64::from(u32::MAX) } else { u64::MAX };
    let below = on
        .fault
        .address()
        .and_then(|address| width.checked_sub(address.get()))
        .and_then(|bytes| bytes.checked_add(1));
    let Some(offset) = below.filter(|bytes| *bytes < NULL_PAGE) else { return false };
    draft.lead(
        format!("Null pointer access: {offset:#x} bytes below null"),
        format!("The code {} memory {offset:#x} bytes below null: something before an object whose pointer is null.", on.verb()),
    );
    draft.cause("A null pointer with a negative index or offset (a header that stands before an object).");
    draft.cause("A value of -1 or another error code taken for a pointer.");
    draft.next("See which pointer the named line uses, and what it is when a call fails.");
    true
}
