//! Pages that are there and cannot be used: by their protection, their signature, their alignment, their file.

use super::{ADDRESS_SANITIZER, Accessing, GARBAGE, holds};
use crate::explain::draft::Draft;
use crate::explain::esr::Access;
use crate::explain::facts::Facts;
use crate::explain::region::{self, Region};
use crate::explain::stack::guards_another_thread;
use crate::explain::tables::access::Failure;
use backtrail_core::Avma;
use backtrail_model::Image;

/// A page whose signature was refused.
pub(in crate::explain) fn codesign(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    // `SIGKILL (Code Signature Invalid)` in newer reports.
    let by_signal = facts.signal().contains("Code Signature Invalid") || is_refused_page(facts);
    if on.fault.failure() != Some(Failure::CodeSigning) && !by_signal {
        return false;
    }
    draft.lead(
        "Killed for a page of code whose signature does not fit",
        "A page of a signed file was changed after signing, on disk or in memory; the kernel denied it.",
    );
    if let Some(said) = facts.find_said(|text| text.contains("CODE SIGNING") && text.contains("in file")) {
        draft.evidence(said.cite());
    }
    draft.causes(&[
        "A signed file was overwritten in place while it was in use (an update, a copy over the old file).",
        "A library of the app was changed after signing, or is not signed.",
        "Code was written into memory without the entitlement for it.",
    ]);
    draft.nexts(&[
        "Run `codesign --verify --deep --strict --verbose=4` on the installed app.",
        "Replace signed files by moving a new file into place, never by writing into the old one.",
    ]);
    true
}

/// CODESIGNING's code 2 ends a process for a page, whatever is left of the exception's codes.
fn is_refused_page(facts: &Facts<'_>) -> bool {
    let termination = facts.report.termination.as_ref();
    termination.is_some_and(|it| it.namespace.as_deref() == Some("CODESIGNING") && it.code == Some(2))
}

/// An address that the instruction cannot use since it is not a multiple of its size.
pub(in crate::explain) fn misaligned(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let by_processor = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.misaligned);
    if on.fault.failure() != Some(Failure::Misaligned) && !by_processor {
        return false;
    }
    let at = on.fault.address().map(|address| format!(" at {address}")).unwrap_or_default();
    draft.lead(
        format!("Misaligned access{at}"),
        format!("The code accessed memory{at} with an instruction that needs an aligned address."),
    );
    draft.causes(&[
        "A pointer cast to a type of larger alignment: bytes of a file or message read as numbers.",
        "Atomic or exclusive instructions on a packed field.",
        GARBAGE,
    ]);
    draft.next("Copy the bytes with memcpy (or loadUnaligned in Swift) instead of casting; Undefined Behavior Sanitizer finds such places.");
    true
}

/// A page that is there, and not for this.
pub(in crate::explain) fn protection(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    let Some(address) = on.fault.target() else { return false };
    let region = region::of(facts.report);
    let image = facts.report.process.images.iter().find(|image| holds(image, address));
    let permission = on.syndrome.as_ref().is_some_and(|syndrome| syndrome.permission);
    let denied = on.fault.failure() == Some(Failure::Protected) || permission;
    // Without a code: an image's range is mapped and can be read, so what failed was no read.
    let inferred = on.fault.code.is_none() && image.is_some();
    if !denied && !inferred {
        return false;
    }
    if let Some(region) = region.as_ref().filter(|region| guards_another_thread(facts, region)) {
        stray_into_guard(draft, address, region);
        return true;
    }
    let place = place_of(image, region.as_ref(), address);
    if inferred || is_read_only(&on, region.as_ref(), image) {
        write_to_read_only(&on, draft, address, &place);
    } else {
        let title = format!("Memory access that its protection forbids{}{place}", on.act(address));
        let what =
            format!("The code {} {address}{place}, which is mapped but may not be used that way.", on.verb());
        draft.lead(title, what);
        draft.causes(&[
            "A pointer that was overwritten or never set.",
            "A write to read-only memory, or use of a guard page.",
        ]);
    }
    if inferred {
        draft.evidence(format!(
            "{address} lies{place}, which can be read and executed: an access that fails there is a write"
        ));
    }
    region.iter().for_each(|region| draft.evidence(&region.evidence));
    draft.nexts(&["See what the pointer in the named line points to.", ADDRESS_SANITIZER]);
    true
}

fn write_to_read_only(on: &Accessing<'_, '_>, draft: &mut Draft, address: Avma, place: &str) {
    let sure = if on.access() == Some(Access::Write) { "" } else { ", by all appearance" };
    draft.lead(
        format!("Write to read-only memory: {address}{place}"),
        format!("The code wrote to {address}{place}, which is read-only{sure}."),
    );
    draft.causes(&[
        "A write through a pointer to a constant: a string literal, a const table, code.",
        "A write through a pointer that was overwritten or never set.",
        "A write to a file that is mapped for reading only.",
    ]);
}

fn stray_into_guard(draft: &mut Draft, address: Avma, region: &Region) {
    draft.lead(
        format!("Stray access to another thread's stack guard at {address}"),
        "The code accessed the guard page of a stack that is not its own: a stray pointer, not a recursion of this thread.",
    );
    draft.evidence(&region.evidence);
    draft.causes(&[GARBAGE, "A pointer to a local variable of another thread, with a wrong offset."]);
    draft.next(ADDRESS_SANITIZER);
}

fn place_of(image: Option<&Image>, region: Option<&Region>, address: Avma) -> String {
    match (image, region) {
        (Some(image), _) => format!(" in {} + {}", image.name, address.get() - image.load_address.get()),
        (None, Some(region)) => format!(" in {}", region.kind),
        (None, None) => String::new(),
    }
}

/// Whether the page can be read and not written, so that what failed was a write.
fn is_read_only(on: &Accessing<'_, '_>, region: Option<&Region>, image: Option<&Image>) -> bool {
    let no_write = region.and_then(|region| region.protection.as_deref()).map(|bits| !bits.contains('w'));
    let readable =
        region.and_then(|region| region.protection.as_deref()).is_none_or(|bits| bits.starts_with('r'));
    match on.access() {
        Some(Access::Write) => no_write.unwrap_or(true),
        Some(_) => false,
        None => readable && no_write.unwrap_or(image.is_some()),
    }
}

/// The contents of a page could not be brought in.
pub(in crate::explain) fn memory_error(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some(on) = Accessing::of(facts) else { return false };
    if on.fault.failure() != Some(Failure::Pager) {
        return false;
    }
    let at = on.fault.address().map(|address| format!(" at {address}")).unwrap_or_default();
    draft.lead(
        format!("A page could not be read from its file{at}"),
        format!("Memory{at} is backed by a file or device that could not deliver its contents."),
    );
    if let Some(region) = region::of(facts.report) {
        draft.evidence(region.evidence);
    }
    draft.causes(&[
        "A mapped file was truncated or deleted while it was in use.",
        "The volume is gone, or its storage fails (an unplugged disk, a network share, a full or damaged flash).",
    ]);
    draft
        .next("See which file is mapped there; read files that others may truncate instead of mapping them.");
    true
}
