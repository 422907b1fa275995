//! Rows of stacks: in threads, in backtraces, and where none was announced.

use super::LineKind;
use super::frame_row::{FrameRow, begins_without_addresses, without_address};
use super::lines::Line;
use super::reader::{Block, Reader};
use super::words::{Hex, hex, words};
use crate::stack::unsettled;
use crate::text::lossy;
use backtrail_core::Avma;
use backtrail_model::{Frame, Recursion};
use std::ops::Range;

/// What a stack is called that has no title: the file begins in its middle, or is a bare backtrace.
pub(super) const UNTITLED: &str = "Backtrace";

/// So many rows may be left out between two that state no address.
const MAX_GAP: usize = 64;

/// How Apple's systems mark what they left out of a recursion.
const RECURSION_MARK: &str = "--------";

impl Reader<'_> {
    /// A row of the stack that the reader is inside of; elsewhere a row opens a stack without a title.
    pub(super) fn stack_row(&mut self, line: &Line<'_>, trimmed: &str) -> Option<LineKind> {
        if matches!(self.block, Block::Thread(_) | Block::Backtrace(_)) {
            if let Some(place) = self.recursion(trimmed) {
                return Some(place);
            }
            if let Some(addresses) = raw_addresses(line.bytes) {
                return self.raw_row(line, &addresses);
            }
        }
        let Some(row) = FrameRow::read(line.bytes) else { return self.row_without_address(line, trimmed) };
        if self.frames_left == 0 {
            self.beyond_limit(line, "frames");
            return None;
        }
        if !matches!(self.block, Block::Thread(_) | Block::Backtrace(_)) || self.begins_anew(&row) {
            self.open_backtrace(line, UNTITLED, false);
        }
        if row.address == Hex::TooLong {
            let number = line.number;
            let word = lossy(line.bytes.get(row.address_span.clone())?).into_owned();
            self.notes.add(|| format!("line {number}: address {word} does not fit into 64 bits"));
        }
        let mut frame = row.frame();
        frame.span = Some(line.span.clone());
        self.push(frame).then_some(LineKind::Frame)
    }

    /// Only the row that comes next in a thread's stack is taken for one: nothing else tells such rows.
    fn row_without_address(&mut self, line: &Line<'_>, trimmed: &str) -> Option<LineKind> {
        if begins_without_addresses(trimmed) && !matches!(self.block, Block::Thread(_)) {
            self.open_backtrace(line, UNTITLED, false);
        }
        let next = match self.block {
            Block::Thread(position) => self.report.process.threads.get(position)?.frames.len(),
            Block::Backtrace(position) => self.report.process.backtraces.get(position)?.frames.len(),
            _ => return None,
        };
        // People leave rows out.
        let is_next =
            |frame: &Frame| usize::try_from(frame.index).is_ok_and(|at| (next..next + MAX_GAP).contains(&at));
        let frame = without_address(trimmed).filter(is_next)?;
        if self.frames_left == 0 {
            self.beyond_limit(line, "frames");
            return None;
        }
        self.push(frame).then_some(LineKind::Frame)
    }

    /// Stacks whose titles are of a form that is not known (Crashlytics has `Crashed: com.apple.main-thread`) are told
    /// apart by their numbers.
    fn begins_anew(&self, row: &FrameRow<'_>) -> bool {
        let Block::Backtrace(position) = self.block else { return false };
        let Some(backtrace) = self.report.process.backtraces.get(position) else { return false };
        let is_inline = backtrace.frames.last().is_some_and(|frame| frame.index == 0);
        row.index == 0 && backtrace.title == UNTITLED && !backtrace.frames.is_empty() && !is_inline
    }

    fn push(&mut self, frame: Frame) -> bool {
        let frames = match self.block {
            Block::Thread(position) => {
                self.report.process.threads.get_mut(position).map(|thread| &mut thread.frames)
            }
            Block::Backtrace(position) => {
                self.report.process.backtraces.get_mut(position).map(|b| &mut b.frames)
            }
            _ => None,
        };
        let Some(frames) = frames else { return false };
        frames.push(frame);
        self.frames_left = self.frames_left.saturating_sub(1);
        true
    }

    /// `(0x1aa 0x1bb …)`: how iOS prints an exception's stack that it could not symbolicate.
    fn raw_row(&mut self, line: &Line<'_>, addresses: &[(Range<usize>, Hex)]) -> Option<LineKind> {
        if addresses.len() > self.frames_left {
            self.beyond_limit(line, "frames");
            return None;
        }
        let first = match self.block {
            Block::Backtrace(position) => self.report.process.backtraces.get(position)?.frames.len(),
            _ => return None,
        };
        for (index, (span, address)) in (first..).zip(addresses) {
            let mut frame = Frame::new(u32::try_from(index).unwrap_or(u32::MAX));
            match address {
                Hex::Value(address) => frame.address = Some(unsettled(Avma::new(*address))),
                Hex::TooLong => {
                    let number = line.number;
                    let word = lossy(line.bytes.get(span.clone())?).into_owned();
                    self.notes.add(|| format!("line {number}: address {word} does not fit into 64 bits"));
                }
            }
            frame.span = Some(line.span.start + span.start..line.span.start + span.end);
            self.push(frame);
        }
        Some(LineKind::Frame)
    }

    /// `-------- RECURSION LEVEL 57991`, `-------- ELIDED 57985 LEVELS OF RECURSION THROUGH …`: what was left out shows
    /// in the numbers of the rows around; the words go into a note.
    fn recursion(&mut self, trimmed: &str) -> Option<LineKind> {
        let words = trimmed.strip_prefix(RECURSION_MARK)?.trim();
        let Block::Thread(position) = self.block else { return None };
        if words.starts_with("ELIDED ") || words.starts_with("RECURSION ") {
            let thread = self.report.process.threads.get_mut(position)?;
            if words.starts_with("ELIDED ") {
                thread.recursion.get_or_insert(Recursion { depth: 0, first_elided: None, last_elided: None });
            }
            let number = thread.number;
            self.notes.add(|| format!("thread {number}: {words}"));
        } else if !words.is_empty() {
            return None;
        }
        Some(LineKind::Recursion)
    }

    /// Rows below `*** First throw call stack:` in the application-specific information are a backtrace too. The text
    /// stays where it is.
    pub(super) fn announced_row(&mut self, line: &Line<'_>, trimmed: &str) -> Option<LineKind> {
        let is_open = self.report.process.backtraces.last().is_some_and(|b| b.title == FIRST_THROW);
        let addresses = raw_addresses(line.bytes);
        let row = FrameRow::read(line.bytes);
        // The list may open with a bracket on a line of its own, and close so.
        let is_bracket = matches!(trimmed, "(" | ")");
        if addresses.is_none() && row.is_none() && !is_bracket {
            self.announced_stack = false;
            return None;
        }
        self.text(trimmed);
        self.announced_stack = true;
        if !is_open && !is_bracket {
            self.open_backtrace(line, FIRST_THROW, false);
        }
        self.block = Block::Backtrace(self.report.process.backtraces.len().saturating_sub(1));
        if let Some(addresses) = addresses {
            self.raw_row(line, &addresses);
        } else if row.is_some() {
            self.stack_row(line, trimmed);
        }
        self.block = Block::AppInfo;
        Some(LineKind::AppInfo)
    }
}

/// The title of the stack that the Objective-C runtime's handler prints.
const FIRST_THROW: &str = "First throw call stack";

/// The addresses of a line `(0x1aa 0x1bb …)`, each with its place in the line. `None` where the line is anything else.
pub(crate) fn raw_addresses(line: &[u8]) -> Option<Vec<(Range<usize>, Hex)>> {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let inside = line.get(start..)?.trim_ascii_end().strip_prefix(b"(")?;
    let inside = inside.strip_suffix(b")").unwrap_or(inside);
    let offset = start + 1;
    let addresses: Option<Vec<_>> = words(inside)
        .map(|(span, word)| Some((span.start + offset..span.end + offset, hex(word)?)))
        .collect();
    addresses.filter(|addresses| !addresses.is_empty())
}
