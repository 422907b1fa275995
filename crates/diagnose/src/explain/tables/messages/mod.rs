//! What the texts mean that runtimes and libraries leave before they stop a process. Each is looked for as a part of
//! the text; the first that fits counts, so the more telling ones stand first.

mod exceptions;
mod libraries;
mod sanitizers;
mod swift;

pub(crate) use exceptions::{CPP_TYPES, EXCEPTION_NAMES, REASONS};
pub(crate) use libraries::{CLIENT_BUGS, MALLOC};
pub(crate) use sanitizers::{ENDS, SANITIZERS};
pub(crate) use swift::SWIFT;

/// A text and what it means.
pub(crate) struct Hint {
    /// The part of the text by which it is known.
    pub(crate) text: &'static str,
    /// What it means, as a sentence; empty where the text says it all.
    pub(crate) meaning: &'static str,
    /// Usual causes.
    pub(crate) causes: &'static [&'static str],
    /// What to do.
    pub(crate) next: &'static [&'static str],
}

const fn hint(
    text: &'static str,
    meaning: &'static str,
    causes: &'static [&'static str],
    next: &'static [&'static str],
) -> Hint {
    Hint { text, meaning, causes, next }
}

const GUARD_MALLOC: &str = "Run with Address Sanitizer (or Guard Malloc, Malloc Scribble): it stops where the memory is damaged, not later.";
const THREAD_SANITIZER: &str = "Run with Thread Sanitizer: it names both threads.";
