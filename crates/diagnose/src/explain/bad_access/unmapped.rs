//! Addresses where nothing is, or can be.

use super::details::cite_bytes;
use super::{ADDRESS_SANITIZER, Accessing, DANGLING, GARBAGE};
use crate::explain::draft::Draft;
use crate::explain::facts::Facts;
use crate::explain::region;
use crate::explain::tables::access::Failure;
use backtrail_core::{Avma, Family};

/// An address that the processor has no room for.
pub(in crate::explain) fn beyond_address_space(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.address().filter(|address| is_beyond(facts.family(), *address)) else {
        return false;
    };
    draft.lead(
        format!("Bad pointer{}, which no program can use", on.act(address)),
        format!(
            "The code {} {address}, which lies beyond the addresses of programs: the pointer is no pointer.",
            on.verb()
        ),
    );
    cite_bytes(&on, draft, address);
    draft.causes(&["The pointer was overwritten: by text, numbers or another structure.", DANGLING, GARBAGE]);
    draft.next(ADDRESS_SANITIZER);
    true
}

fn is_beyond(family: Family, address: Avma) -> bool {
    match family {
        Family::X86_64 | Family::Aarch64 | Family::Other => address.get() >> 47 != 0,
        _ => false,
    }
}

/// An address where nothing is.
pub(in crate::explain) fn unmapped(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.target() else { return false };
    let certain = on.fault.failure() == Some(Failure::Unmapped);
    let what = if certain { ", where nothing is mapped" } else { "" };
    draft.lead(format!("Bad pointer{}", on.act(address)), format!("The code {} {address}{what}.", on.verb()));
    cite_bytes(&on, draft, address);
    if is_in_zero_page(facts, address) {
        draft.evidence(format!(
            "{address} lies in the first 4 GB, which no 64-bit process of this system maps"
        ));
        draft.cause("A 64-bit pointer that was cut to 32 bits, or a number taken for a pointer.");
    }
    if let Some(line) = region::placement(facts.report) {
        draft.evidence(line);
    }
    draft.causes(&[DANGLING, GARBAGE, "An index far outside of an array."]);
    draft.next(ADDRESS_SANITIZER);
    true
}

/// 64-bit programs have a `__PAGEZERO` of 4 GB. Some reports carry addresses cut to 32 bits; they show it by their
/// images.
fn is_in_zero_page(facts: &Facts<'_>, address: Avma) -> bool {
    let is_64 = matches!(facts.family(), Family::X86_64 | Family::Aarch64);
    let images = &facts.report.process.images;
    is_64
        && address.get() >> 32 == 0
        && !images.is_empty()
        && images.iter().all(|image| image.load_address.get() >> 32 != 0)
}
