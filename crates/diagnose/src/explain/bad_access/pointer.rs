//! Pointers that the processor itself found to be wrong: by their signature, or by their tag.

use super::{ADDRESS_SANITIZER, Accessing, DANGLING};
use crate::explain::draft::Draft;
use crate::explain::esr;
use crate::explain::facts::Facts;
use crate::explain::tables::access::Failure;
use backtrail_core::Avma;

/// A pointer that failed its authentication.
pub(in crate::explain) fn pointer_authentication(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return failed_check(facts, draft) };
    let by_processor = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.ptrauth);
    let certain = on.fault.failure() == Some(Failure::PointerAuthentication) || by_processor;
    let likely = on.fault.maybe_ptrauth && on.fault.stripped.is_some();
    if !(certain || likely) {
        return false;
    }
    let Some(address) = on.fault.address() else { return false };
    let stripped = on.fault.stripped.map(|stripped| format!(" (without its upper bits {stripped})"));
    let stripped = stripped.unwrap_or_default();
    if certain {
        draft.lead(
            format!("A pointer failed its authentication: {address}{stripped}"),
            format!("A signed pointer ({address}) does not carry the signature that belongs to it."),
        );
    } else {
        let title = format!("Bad pointer {address}{stripped}: its upper bits are no address");
        draft.lead(title, format!("The code used {address}, whose upper bits no address has: a failed pointer authentication, or a pointer that was overwritten."));
        draft.say("The report does not tell which of the two it was.");
    }
    draft.causes(&SIGNED);
    draft.next(ADDRESS_SANITIZER);
    true
}

/// Compilers check signed pointers themselves where the processor would only make them unusable: BRK 0xc470 and the number
/// of the key (clang's pointer authentication; the keys as Apple's arm64e uses them).
fn failed_check(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let syndrome = esr::read(facts.report, &facts.registers).filter(|syndrome| syndrome.ptrauth);
    let Some(syndrome) = syndrome else { return false };
    let key = match syndrome.break_code {
        Some(0xc470) => ", with the key of code pointers (IA)",
        Some(0xc471) => ", with the key of return addresses (IB)",
        Some(0xc472) => ", with the key of data pointers (DA): vtables, classes of objects",
        Some(0xc473) => ", with the second key of data pointers (DB)",
        _ => "",
    };
    draft.lead(
        "A pointer failed its authentication",
        format!("The code checked the signature of a pointer{key}, found a wrong one and stopped."),
    );
    draft.say("The report does not tell the pointer's address.");
    draft.evidence(&syndrome.evidence);
    draft.causes(&SIGNED);
    draft.next(ADDRESS_SANITIZER);
    true
}

/// How a signature goes wrong.
const SIGNED: [&str; 2] = [
    "The pointer was overwritten, or the object that holds it was freed and its memory reused.",
    "A signed pointer (function pointer, vtable, isa) was copied or changed as plain data.",
];

/// Memory tagging caught the pointer.
pub(in crate::explain) fn memory_tagging(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let by_processor = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.tag_fault);
    if !by_processor && on.fault.failure() != Some(Failure::Tag) {
        return false;
    }
    // The tag is bits 59 to 56 of the pointer (Arm's Memory Tagging Extension).
    let address = on.fault.address();
    let plain = address.map(|address| Avma::new(address.get() & 0x00ff_ffff_ffff_ffff));
    let at = plain.map(|plain| format!(" at {plain}")).unwrap_or_default();
    draft.lead(
        format!("Memory tagging caught a stale or stray pointer{at}"),
        "The pointer's tag does not fit the tag of the memory: the block was freed and reused, or the access went beyond its end.",
    );
    if let Some(address) = address {
        draft.evidence(format!("The pointer {address} has the tag {:#x}", address.get() >> 56 & 0xf));
    }
    draft.causes(&[DANGLING, "A read or write beyond the end of a block."]);
    draft.next(ADDRESS_SANITIZER);
    true
}
