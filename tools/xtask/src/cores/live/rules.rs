//! Differences between gdb's stacks and ours that are known and explained; each is also in `docs/live.md`.

use stacks_compared::compare::{GO_THREAD_START, Rule, ZERO_FRAME};

pub(super) const RULES: [Rule; 3] = [
    ZERO_FRAME,
    GO_THREAD_START,
    (
        |difference| {
            // V8 keeps a frame pointer in all of its code, HotSpot's compilers do not.
            let trusts: &[&str] = match difference.case.split_once('/') {
                Some(("node", _)) => &["frame-pointer"],
                Some(("java", _)) => &["frame-pointer", "analysis", "scan"],
                _ => &[],
            };
            let guessed = difference.ours().is_some_and(|ours| trusts.contains(&&*ours.trust));
            let callee = difference.at.checked_sub(1).and_then(|at| difference.thread.frames.get(at));
            // Code that was made at run time, or, of node, when node was built, by the same compiler.
            let is_made = callee.is_some_and(|callee| {
                callee.image.starts_with("<anonymous:") || callee.image == "node" && callee.trust != "cfi"
            });
            let is_nowhere = difference.theirs().is_none_or(|theirs| theirs.name == "None");
            guessed && is_made && is_nowhere
        },
        "code that a run-time compiler made has no tables: we follow its frame pointers or scan, gdb goes astray",
    ),
];
