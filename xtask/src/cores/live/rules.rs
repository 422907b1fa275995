//! Differences between gdb's stacks and ours that are known and explained; each is also in `docs/live.md`.

use crate::cores::explained::{Rule, ZERO_FRAME};
use crate::cores::ours::Frame;

pub(super) const RULES: [Rule; 3] = [
    ZERO_FRAME,
    (
        |difference| {
            let is_clone = |frame: &Frame| frame.functions.last().is_some_and(|name| name == "runtime.clone");
            let is_first = difference.thread.frames.iter().take(difference.at).any(is_clone);
            let is_nowhere = difference.theirs().is_none_or(|theirs| theirs.name == "None");
            let is_end = difference.ours().is_none_or(|ours| ours.image.is_empty());
            difference.case.starts_with("go/") && is_first && is_nowhere && is_end
        },
        "a thread of Go's begins in runtime.clone, whose table says that it has a caller: what the new stack holds there",
    ),
    (
        |difference| {
            let makes_code = ["node/", "java/"].iter().any(|family| difference.case.starts_with(family));
            let guessed =
                difference.ours().is_some_and(|ours| matches!(&*ours.trust, "frame-pointer" | "scan"));
            let callee = difference.at.checked_sub(1).and_then(|at| difference.thread.frames.get(at));
            // Code that was made at run time, or, of node, when node was built, by the same compiler.
            let is_made = callee.is_some_and(|callee| {
                callee.image.starts_with("<anonymous:") || callee.image == "node" && callee.trust != "cfi"
            });
            let is_nowhere = difference.theirs().is_none_or(|theirs| theirs.name == "None");
            makes_code && guessed && is_made && is_nowhere
        },
        "code that a run-time compiler made has no tables: we follow its frame pointers or scan, gdb goes astray",
    ),
];
