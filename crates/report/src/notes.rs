//! What a reader found odd, bounded in number.

use std::fmt::Display;

/// Collects notes; beyond the limit they are counted only.
#[derive(Debug)]
pub(crate) struct Notes {
    list: Vec<String>,
    max: usize,
    left_out: usize,
}

impl Notes {
    pub(crate) fn new(max: usize) -> Self {
        Self { list: Vec::new(), max, left_out: 0 }
    }

    /// Adds a note; built only when there is room, so that a million odd lines cost nothing.
    pub(crate) fn add(&mut self, note: impl FnOnce() -> String) {
        if self.list.len() < self.max {
            self.list.push(note());
        } else {
            self.left_out += 1;
        }
    }

    pub(crate) fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.list.push(format!("{} further oddities are not listed", self.left_out));
        }
        self.list
    }
}

/// The note that not all of a report could be read. The program knows by its beginning that a report is incomplete.
pub(crate) fn cut(why: &impl Display) -> String {
    format!("the report is cut or broken, what stands before is read: {why}")
}
