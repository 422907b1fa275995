//! How the stacks of one thread differ, and whether that is explained.

use crate::gdb::{self, Stack};
use crate::ours::{self, Thread};

/// How one thread compares with one peer.
#[derive(Debug)]
pub enum Verdict {
    /// The same addresses.
    Same,
    /// How it differs, and why.
    Explained(String, &'static str),
    /// How it differs; nothing explains that.
    Different(String),
    /// The peer is not here.
    NotCompared,
}

/// Where one thread's frames first differ from a peer's.
#[derive(Debug)]
pub struct Difference<'d> {
    /// What was run.
    pub case: &'d str,
    /// Whose the other stack is.
    pub peer: &'static str,
    /// The first frame that is not the same.
    pub at: usize,
    /// Our stack.
    pub thread: &'d Thread,
    /// The peer's.
    pub stack: &'d Stack,
}

impl Difference<'_> {
    /// Our frame at that place.
    pub fn ours(&self) -> Option<&ours::Frame> {
        self.thread.frames.get(self.at)
    }

    /// The peer's frame at that place.
    pub fn theirs(&self) -> Option<&gdb::Frame> {
        self.stack.frames.get(self.at)
    }

    /// Whether it is a case of these.
    pub fn is_of(&self, family: &str) -> bool {
        self.case.starts_with(family)
    }

    /// Whether we found the frame without a table.
    pub fn is_found_without_tables(&self) -> bool {
        self.ours().is_some_and(|frame| !matches!(frame.trust.as_str(), "cfi" | "exidx" | "context"))
    }

    /// Whether the last frame that both have lies in no function, and the next is where a call from there returns to.
    pub fn is_wild_call(&self) -> bool {
        let last = self.at.checked_sub(1).and_then(|last| self.thread.frames.get(last));
        let is_nowhere = last.is_some_and(|frame| frame.functions.is_empty());
        is_nowhere
            && self
                .ours()
                .is_some_and(|frame| matches!(frame.trust.as_str(), "scan" | "link-register" | "analysis"))
    }

    /// Whether we stopped, saying that we could not go on.
    pub fn is_given_up(&self) -> bool {
        self.ours().is_none() && self.thread.ended == "failed"
    }
}

/// Why a difference is right; `None` where that is not known.
pub fn why(difference: &Difference<'_>, rules: &[Rule]) -> Option<&'static str> {
    rules.iter().find(|(holds, _)| holds(difference)).map(|(_, why)| *why)
}

/// Whether a difference is of a kind that is known, and why it is right.
pub type Rule = (fn(&Difference<'_>) -> bool, &'static str);

/// gdb has one frame more, at address zero, where we say that the stack ends.
pub const ZERO_FRAME: Rule = (
    |difference| {
        let is_last = difference.at + 1 == difference.stack.frames.len();
        let is_zero = difference.theirs().is_some_and(|frame| frame.address == 0);
        let has_ended = difference.ours().is_none() && difference.thread.ended == "end-of-stack";
        difference.peer == "gdb" && is_last && is_zero && has_ended
    },
    "gdb shows the zero that ends the stack as a frame",
);

/// Peers go on behind the function that a thread of Go's runtime begins with.
pub const GO_THREAD_START: Rule = (
    |difference| {
        let callee = difference.at.checked_sub(1).and_then(|at| difference.thread.frames.get(at));
        let is_start = callee
            .is_some_and(|callee| callee.functions.iter().any(|name| name.starts_with("runtime.mstart")));
        let has_ended = difference.ours().is_none() && difference.thread.ended == "end-of-stack";
        let is_clone = difference.theirs().is_some_and(|theirs| theirs.name.starts_with("runtime.clone"));
        is_start && has_ended && is_clone
    },
    "Go's own traces end at runtime.mstart; the peer goes on into the code that asked the kernel for the thread",
);

/// Thumb's bit is part of our addresses.
fn plain(case: &str, address: u64) -> u64 {
    if case.starts_with("c arm/") || case.starts_with("c++ arm/") { address & !1 } else { address }
}

/// Compares the stacks of one thread.
pub fn compare(case: &str, peer: &'static str, thread: &Thread, stack: &Stack, rules: &[Rule]) -> Verdict {
    let ours: Vec<u64> = thread.frames.iter().map(|frame| plain(case, frame.address)).collect();
    let theirs: Vec<u64> = stack.frames.iter().map(|frame| plain(case, frame.address)).collect();
    if ours == theirs {
        return Verdict::Same;
    }
    let at = ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours == theirs).count();
    let difference = Difference { case, peer, at, thread, stack };
    let shown = shown(&difference);
    match why(&difference, rules) {
        Some(why) => Verdict::Explained(shown, why),
        None => Verdict::Different(shown),
    }
}

fn shown(difference: &Difference<'_>) -> String {
    let Difference { at, thread, stack, .. } = *difference;
    let ours = thread.frames.get(at).map_or_else(
        || format!("ours ends ({}: {})", thread.ended, thread.because),
        |frame| {
            let name = frame.functions.last().map_or("?", String::as_str);
            format!("ours {:#x} {name} by {}", frame.address, frame.trust)
        },
    );
    let theirs = stack.frames.get(at).map_or_else(
        || format!("theirs ends ({})", stack.stopped),
        |frame| format!("theirs {:#x} {}", frame.address, frame.name),
    );
    format!("{} and {} frames; at {at}: {ours}, {theirs}", thread.frames.len(), stack.frames.len())
}

/// How many frames have inlined functions, and as many as the peer says.
pub fn same_inlined(thread: &Thread, stack: &Stack) -> usize {
    let pairs = thread.frames.iter().zip(&stack.frames);
    pairs
        .filter(|(ours, theirs)| ours.functions.len() == theirs.functions && ours.functions.len() > 1)
        .count()
}
