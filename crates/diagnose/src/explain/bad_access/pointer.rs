//! Pointers that the processor itself found to be wrong: by their signature, or by their tag.

use super::{ADDRESS_SANITIZER, Accessing, DANGLING};
use crate::explain::draft::Draft;
use crate::explain::facts::Facts;
use crate::explain::tables::access::Failure;
use backtrail_core::Avma;

/// A pointer that failed its authentication.
pub(in crate::explain) fn pointer_authentication(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
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
    draft.causes(&[
        "The pointer was overwritten, or the object that holds it was freed and its memory reused.",
        "A signed pointer (function pointer, vtable, isa) was copied or changed as plain data.",
    ]);
    draft.next(ADDRESS_SANITIZER);
    true
}

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
