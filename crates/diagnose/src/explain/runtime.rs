//! Runtimes of other languages on the blamed stack: their code has names that this report cannot have.

use super::draft::Draft;
use super::facts::Facts;
use super::tables::runtimes::RUNTIMES;
use crate::names::{Names, image_name};
use backtrail_model::Frame;

/// Frames further out called half of the program.
const DEPTH: usize = 64;

/// Names the runtime that the blamed stack runs through, and where its own stack is to be found.
pub(super) fn managed(facts: &Facts<'_>, draft: &mut Draft) {
    let named = |frame| (frame, image_name(facts.report, frame).unwrap_or_default(), Names::of(frame));
    let frames: Vec<(&Frame, &str, Names<'_>)> = facts.fault_frames.iter().take(DEPTH).map(named).collect();
    let found = RUNTIMES.iter().find_map(|runtime| {
        let is_image = |image: &str, known: &str| {
            image.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is = |(_, image, names): &&(&Frame, &str, Names<'_>)| {
            runtime.images.iter().any(|known| is_image(image, known))
                || runtime.functions.iter().any(|known| names.start_with(known))
        };
        Some((runtime, frames.iter().find(is)?.0))
    });
    let Some((runtime, frame)) = found else { return };
    draft.say(format!("The stack runs through {}.", runtime.name));
    // The place is cited already where the runtime is it.
    if facts.suspect.as_ref().is_none_or(|suspect| !std::ptr::eq(suspect.frame, frame)) {
        draft.evidence(crate::names::cite(facts.report, &facts.stack, frame));
    }
    draft.next(runtime.next);
}
