//! Differences between tools that are known and explained; each is also in `docs/stacks.md`.

use super::ours::Thread;
use super::peers::Stack;

/// Where one thread's frames first differ from a peer's.
pub(super) struct Difference<'d> {
    pub(super) case: &'d str,
    pub(super) peer: &'static str,
    /// The first frame that is not the same.
    pub(super) at: usize,
    pub(super) thread: &'d Thread,
    pub(super) stack: &'d Stack,
}

/// Why a difference is right; `None` where that is not known.
pub(super) fn why(difference: &Difference<'_>) -> Option<&'static str> {
    RULES.iter().find(|(holds, _)| holds(difference)).map(|(_, why)| *why)
}

type Rule = (fn(&Difference<'_>) -> bool, &'static str);

const RULES: [Rule; 0] = [];
