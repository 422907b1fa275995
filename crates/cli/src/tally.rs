//! What became of the inputs of one command.

use crate::io::console::Console;
use crate::outcome::Outcome;

/// Names that a summary lists before it only counts them.
const MAX_NAMES: usize = 20;

/// What became of the inputs of one command.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    read: usize,
    is_incomplete: bool,
    failed: Vec<String>,
    cut: Vec<String>,
    passed_over: Vec<String>,
}

impl Tally {
    /// An input was read.
    pub(crate) fn read(&mut self, outcome: Outcome) {
        self.read += 1;
        self.is_incomplete |= outcome > Outcome::Done;
    }

    /// A report was read, perhaps only as far as it goes.
    pub(crate) fn report(&mut self, name: String, outcome: Outcome, is_cut: bool) {
        self.read(outcome);
        if is_cut {
            self.cut.push(name);
        }
    }

    /// An input is no report that can be read; `is_meant` tells whether somebody said that it is one.
    pub(crate) fn no_report(&mut self, name: String, is_meant: bool) {
        if is_meant { self.failed(name) } else { self.passed_over.push(name) }
    }

    /// An input could not be read.
    pub(crate) fn failed(&mut self, name: String) {
        self.failed.push(name);
    }

    /// Says at the end what failed, where there were several inputs: messages between results are easily missed.
    pub(crate) fn finish(self, what: &str, console: &Console) -> Outcome {
        let all = self.read + self.failed.len() + self.passed_over.len();
        if all > 1 {
            let say = |names: &[String], became: &str| {
                if !names.is_empty() {
                    console.warn(format_args!("{} of {all} {what} {became}: {}", names.len(), list(names)));
                }
            };
            say(&self.failed, "could not be read");
            say(&self.cut, "cut or broken, read as far as possible");
            say(&self.passed_over, "passed over, being something else");
        }
        match self.read {
            0 => Outcome::BadInput,
            _ if self.is_incomplete || !self.failed.is_empty() || !self.cut.is_empty() => Outcome::Incomplete,
            _ => Outcome::Done,
        }
    }
}

fn list(names: &[String]) -> String {
    let shown: Vec<_> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let more = names.len().saturating_sub(MAX_NAMES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}
