//! The body of a crash report: what its parts are read into.

use crate::Limits;
use crate::json::Json;
use crate::leftovers::{flatten, keep};
use crate::notes::Notes;
use backtrail_model::{Report, Source};
use std::fmt;

/// Whether a JSON object is a crash report's body, possibly cut.
pub(super) fn looks_like_crash(document: &Json<'_>) -> bool {
    TELLING.iter().filter(|name| document.get(name).is_some()).count() >= 2
}

/// Whether an object has a member of such a body.
pub(super) fn has_any(document: &Json<'_>) -> bool {
    TELLING.iter().any(|name| document.get(name).is_some())
}

/// Members of which no other JSON has two.
const TELLING: [&str; 6] =
    ["threads", "usedImages", "exception", "procName", "lastExceptionBacktrace", "termination"];

/// Members of an object that become fields of their own; larger ones are tables, which stay together.
const MAX_FLAT: usize = 100;

/// A body that is being read.
#[derive(Debug)]
pub(super) struct Body<'d, 'l> {
    pub(super) input: &'d [u8],
    pub(super) limits: &'l Limits,
    pub(super) report: Report,
    pub(super) notes: Notes,
    pub(super) frames_left: usize,
    pub(super) lines_left: usize,
    pub(super) faulting_thread: Option<u64>,
    pub(super) version: Versions,
    pub(super) os: Os,
}

/// The two halves of a version.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub(super) short: Option<String>,
    pub(super) build: Option<String>,
}

/// The two halves of an operating system's name.
#[derive(Debug, Default)]
pub(super) struct Os {
    pub(super) train: Option<String>,
    pub(super) build: Option<String>,
}

impl<'d, 'l> Body<'d, 'l> {
    pub(super) fn new(input: &'d [u8], limits: &'l Limits) -> Self {
        Self {
            input,
            limits,
            report: Report { source: Source::AppleIps, ..Report::default() },
            notes: Notes::new(limits.max_notes),
            frames_left: limits.max_frames,
            lines_left: limits.max_items,
            faulting_thread: None,
            version: Versions::default(),
            os: Os::default(),
        }
    }

    /// Keeps what the model has no place for.
    pub(super) fn keep(&mut self, path: String, value: &Json<'_>) {
        keep(&mut self.report, self.input, path, value, self.limits.max_items);
    }

    /// Keeps what the model has no place for: the members of objects each as a field, all else as [`Self::keep`] does.
    pub(super) fn keep_flat(&mut self, path: &str, value: &Json<'_>) {
        let is_small = value.members().len() <= MAX_FLAT && !value.members().is_empty();
        if is_small && self.report.fields.len() + MAX_FLAT < self.limits.max_items {
            flatten(&mut self.report.fields, self.input, path, value, self.limits.max_items);
        } else {
            self.keep(path.to_owned(), value);
        }
    }

    /// Goes through the members of an object; those that `take` does not take are kept as text under their path.
    pub(super) fn members_of(
        &mut self,
        path: impl fmt::Display,
        object: &Json<'_>,
        mut take: impl FnMut(&mut Self, &str, &Json<'_>) -> bool,
    ) -> bool {
        for member in object.members() {
            let name = member.name();
            if !take(self, &name, &member.value) {
                self.keep(format!("{path}.{name}"), &member.value);
            }
        }
        object.is_object()
    }
}
