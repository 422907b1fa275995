//! Faults that tombstones tell as accesses: jumps to nowhere, abort() of old versions.

use super::bad_access;
use super::draft::Draft;
use super::facts::{Facts, field};
use crate::names::image_of;

/// A call through a bad function pointer: the program counter is the address that failed. `debuggerd` calls it a null pointer
/// dereference where that is near null.
pub(super) fn code_fetch(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let cause = field(&facts.report.fields, "Cause");
    let is_told = cause.is_some_and(|cause| !cause.starts_with("null pointer dereference"));
    // An address in an image was mapped: another rule tells why it may not be executed.
    let lands_nowhere = facts.frames.first().is_none_or(|frame| {
        let image = image_of(facts.report, frame);
        image.is_none_or(|image| image.path.as_deref().unwrap_or(&image.name).starts_with('<'))
    });
    if is_told || !lands_nowhere || !bad_access::code_fetch(facts, draft) {
        return false;
    }
    cause.iter().for_each(|cause| draft.evidence(format!("Cause: {cause}")));
    true
}

/// The address that bionic before Android 5 wrote to in abort(), and where its malloc found the heap damaged.
const DEADBAAD: u64 = 0xdead_baad;

/// abort() of an old C library.
pub(super) fn deadbaad(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if facts.exception().address.map(backtrail_core::Avma::get) != Some(DEADBAAD) {
        return false;
    }
    draft.lead(
        "The process ended itself with abort()",
        "The C library ended the process on purpose: before Android 5 it wrote to 0xdeadbaad for that.",
    );
    draft.causes(&[
        "A check in the calling code failed and it called abort().",
        "malloc found its bookkeeping damaged: a write to freed memory or beyond the end of a block.",
    ]);
    draft.next("Look at the frame that called the C library, and in the log for the lines before the end.");
    true
}
