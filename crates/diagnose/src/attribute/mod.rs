//! Whose code a report points at, from the owners of its frames alone.
//!
//! Three layers: whose code it was that crashed, whose called that, and who is to blame. The innermost frame that is not the
//! system's decides. Frames are passed over from the innermost outwards while they are the system's, or are functions that
//! end up on top without being at fault ([`crate::suspect`]: abort, throw, reference counting, locks, allocators, crash
//! reporters). The first frame left belongs to the app, or to a library that the app ships or loads; where none is left, it
//! was the system. Where code throws because of what it was called with, its caller is to blame.
//!
//! That is where to look first, not proof of guilt. A damaged heap breaks whoever uses it next: then nobody is blamed, and the
//! evidence says so. The evidence says what the verdict rests on.

mod blame;
mod walk;

#[cfg(test)]
mod tests;

use crate::Explanation;
use backtrail_core::Confidence;
use backtrail_model::{OwnerKind, Report};

/// A verdict with what it rests on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attribution {
    /// Who is to blame.
    pub verdict: OwnerKind,
    /// The app, the library or the system's image, by name.
    pub name: Option<String>,
    /// The library's version, where it is known.
    pub version: Option<String>,
    /// How sure that is; `None` where nothing is known.
    pub confidence: Option<Confidence>,
    /// Whose code it was that crashed: the innermost frame.
    pub crashed: Option<Layer>,
    /// Whose code called that: the innermost frame of another owner.
    pub called: Option<Layer>,
    /// The frame that the verdict rests on.
    pub blamed: Option<Layer>,
    /// What says so, the deciding statement first.
    pub evidence: Vec<String>,
}

impl Attribution {
    /// Whose code it is by one text, for counting: the verdict and the name, `sdk Foo` say.
    pub fn owner(&self) -> String {
        let word = self.verdict.as_str();
        self.name.as_ref().map_or_else(|| word.to_owned(), |name| format!("{word} {name}"))
    }
}

/// One layer of a stack: a frame and whose it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layer {
    /// Whose.
    pub kind: OwnerKind,
    /// The app, the library or the system's image, by name.
    pub name: Option<String>,
    /// The frame's number.
    pub frame: u32,
}

/// Tells whose code `report` points at. Frames that have no owner yet ([`add_owners`](crate::add_owners)) are told by their
/// images alone.
pub fn attribute(report: &Report, explanation: &Explanation) -> Attribution {
    walk::attribute(report, explanation)
}
