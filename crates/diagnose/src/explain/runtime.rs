//! Runtimes of other languages on the blamed stack: their code has names that this report cannot have.

use super::draft::Draft;
use super::facts::Facts;
use super::tables::runtimes::RUNTIMES;
use crate::names::{base_name, image_name};
use backtrail_model::Frame;

/// Frames further out called half of the program.
const DEPTH: usize = 64;

/// Names the runtime that the blamed stack runs through, and where its own stack is to be found.
pub(super) fn managed(facts: &Facts<'_>, draft: &mut Draft) {
    let frames = facts.fault_frames.iter().take(DEPTH);
    let found = RUNTIMES.iter().find_map(|runtime| {
        let is = |frame: &&Frame| {
            let image = image_name(facts.report, frame).unwrap_or_default();
            let in_image =
                runtime.images.iter().any(|known| image == *known || image.starts_with(&format!("{known}.")));
            in_image
                || frame.names().any(|name| {
                    let name = base_name(name);
                    runtime.functions.iter().any(|known| name.starts_with(known))
                })
        };
        Some((runtime, frames.clone().find(is)?))
    });
    let Some((runtime, frame)) = found else { return };
    draft.say(format!("The stack runs through {}.", runtime.name));
    // The place is cited already where the runtime is it.
    if facts.suspect.as_ref().is_none_or(|suspect| !std::ptr::eq(suspect.frame, frame)) {
        draft.evidence(crate::names::cite(facts.report, &facts.stack, frame));
    }
    draft.next(runtime.next);
}
