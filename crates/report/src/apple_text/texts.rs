//! Keeping lines as text.

use super::LineKind;
use super::reader::{Block, Reader};
use crate::last_words;
use backtrail_model::Section;

/// The title of what libraries wrote down, beyond what the model takes.
pub(super) const APP_INFO: &str = "Application Specific Information";

/// So many lines of a console are kept as what was said.
const MAX_SAID: usize = 16;
/// So many lines a reason may have.
const MAX_REASON_LINES: usize = 64;

impl Reader<'_> {
    /// Keeps a line that is nothing else as text, where it stands.
    pub(super) fn text(&mut self, text: &str) -> LineKind {
        match self.block {
            Block::AppInfo => self.app_info(text),
            Block::Section(position) => match self.report.sections.get_mut(position) {
                Some(section) => {
                    append(&mut section.text, self.blanks, text);
                    LineKind::Text
                }
                None => self.stray("", text),
            },
            Block::Thread(position) | Block::State(position) => {
                let number = self.report.process.threads.get(position).map_or(0, |thread| thread.number);
                self.stray(&format!("Thread {number}"), text)
            }
            Block::Backtrace(position) => {
                let title =
                    self.report.process.backtraces.get(position).map(|backtrace| backtrace.title.clone());
                self.stray(&title.unwrap_or_default(), text)
            }
            Block::Images => self.stray("Binary Images", text),
            Block::Header => self.stray("", text),
        }
    }

    /// What a console showed before a stack that has no report around it. The line is kept where it stands, too.
    pub(super) fn console(&mut self, text: &str) {
        let report = &mut self.report;
        let is_bare = report.incident.is_none()
            && report.process.threads.is_empty()
            && (report.exception.is_none() || last_words::is_own(text));
        if !is_bare || self.block == Block::AppInfo || report.app_info.len() >= MAX_SAID {
            return;
        }
        let open = report.app_info.last_mut().filter(|info| has_open_reason(&info.lines));
        match open {
            Some(info) if !text.starts_with("***") => info.lines.push(text.to_owned()),
            _ if last_words::is(text) => last_words::add(report, text),
            _ => {}
        }
    }

    fn app_info(&mut self, text: &str) -> LineKind {
        let Some(info) = self.report.app_info.last_mut() else { return self.stray(APP_INFO, text) };
        let blanks = if info.lines.is_empty() { 0 } else { self.blanks };
        match self.lines_left.checked_sub(blanks.saturating_add(1)) {
            Some(left) => self.lines_left = left,
            None => return self.stray(APP_INFO, text),
        }
        info.lines.extend(std::iter::repeat_n(String::new(), blanks));
        info.lines.push(text.trim_end().to_owned());
        self.announced_stack = text.trim_end().ends_with("call stack:");
        LineKind::AppInfo
    }

    /// Keeps a line as text under the title of the block that it stands in, which goes on.
    pub(super) fn stray(&mut self, title: &str, text: &str) -> LineKind {
        let is_full = self.report.sections.len() >= self.limits.max_items;
        let last = self.report.sections.last_mut().filter(|section| is_full || section.title == title);
        match last {
            Some(section) => append(&mut section.text, 0, text),
            None => {
                let text = text.trim_end().to_owned();
                self.report.sections.push(Section { title: title.to_owned(), text });
            }
        }
        LineKind::Text
    }
}

/// Whether lines announce the reason of an exception and do not end it. Reasons of Core Data and of table views have several
/// lines.
fn has_open_reason(lines: &[String]) -> bool {
    let Some(first) = lines.first().filter(|_| lines.len() < MAX_REASON_LINES) else { return false };
    let is_announced = first.contains(last_words::ANNOUNCED) && first.contains("reason: '");
    is_announced && !lines.last().is_some_and(|last| last.trim_end_matches('`').ends_with('\''))
}

fn append(to: &mut String, blanks: usize, line: &str) {
    if !to.is_empty() {
        to.extend(std::iter::repeat_n('\n', blanks + 1));
    }
    to.push_str(line.trim_end());
}
