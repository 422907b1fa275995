//! What each line is, by itself and by the block that it stands in.

use super::LineKind;
use super::header::{self, Blamed, KeyValue};
use super::heading::Heading;
use super::image_row::ImageRow;
use super::lines::Line;
use super::state;
use crate::Limits;
use crate::notes::Notes;
use backtrail_model::{Report, Termination};
use std::collections::HashMap;

/// The block that the reader is inside of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// `Key: value` lines.
    Header,
    /// Position in the sections.
    Section(usize),
    AppInfo,
    /// Position in the threads.
    Thread(usize),
    /// State of the thread at that position.
    State(usize),
    /// Position in the backtraces.
    Backtrace(usize),
    Images,
}

#[derive(Debug)]
pub(super) struct Reader<'l> {
    pub(super) limits: &'l Limits,
    pub(super) report: Report,
    pub(super) notes: Notes,
    pub(super) blamed: Blamed,
    pub(super) block: Block,
    pub(super) frames_left: usize,
    pub(super) lines_left: usize,
    registers_left: usize,
    /// Position of the last thread of each number.
    pub(super) by_number: HashMap<u64, usize>,
    /// Position of the first thread that is marked as crashed.
    pub(super) first_crashed: Option<usize>,
    /// Blank lines directly before.
    pub(super) blanks: usize,
    /// Whether the lines before, without a blank one, speak of who ended the process.
    pub(super) in_termination: bool,
    /// Whether the last line of application-specific information announced a stack.
    pub(super) announced_stack: bool,
}

impl<'l> Reader<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            report: Report::default(),
            notes: Notes::new(limits.max_notes),
            blamed: Blamed::default(),
            block: Block::Header,
            frames_left: limits.max_frames,
            lines_left: limits.max_items,
            registers_left: limits.max_items,
            by_number: HashMap::new(),
            first_crashed: None,
            blanks: 0,
            in_termination: false,
            announced_stack: false,
        }
    }

    pub(super) fn line(&mut self, line: &Line<'_>) -> LineKind {
        if line.bytes.len() > self.limits.max_line {
            let (number, bytes) = (line.number, line.bytes.len());
            self.notes.add(|| format!("line {number}: {bytes} bytes long, kept as text only"));
            let place = self.text(&line.text());
            self.blanks = 0;
            return place;
        }
        let text = line.text();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            self.blanks += 1;
            self.in_termination = false;
            return LineKind::Blank;
        }
        let place = self.in_context(line, &text, trimmed);
        self.blanks = 0;
        place
    }

    /// What stands inside of free text is text, unless a blank line lets something new begin.
    fn is_free_text(&self) -> bool {
        self.blanks == 0 && matches!(self.block, Block::Section(_) | Block::AppInfo)
    }

    fn in_context(&mut self, line: &Line<'_>, text: &str, trimmed: &str) -> LineKind {
        let in_stack = matches!(self.block, Block::Thread(_) | Block::Backtrace(_));
        if let Some(heading) = Heading::read(trimmed, self.blanks > 0 || in_stack) {
            return self.heading(&heading, line);
        }
        if let Some(place) = self.row(line, trimmed) {
            return place;
        }
        self.console(trimmed);
        if let Some((code, words)) = header::loader(trimmed).filter(|_| self.report.termination.is_none()) {
            self.report.termination = Some(Termination {
                namespace: Some("DYLD".to_owned()),
                code: Some(code),
                details: vec![words.to_owned()],
                ..Termination::default()
            });
            self.in_termination = true;
            return LineKind::Termination;
        }
        if let Some(key_value) = KeyValue::read(trimmed).filter(|key_value| self.takes(key_value, text)) {
            return self.key_value(key_value);
        }
        if self.in_termination && self.lines_left > 0 {
            let termination = self.report.termination.get_or_insert_with(Termination::default);
            termination.details.push(trimmed.to_owned());
            self.lines_left -= 1;
            return LineKind::Termination;
        }
        // A report without blank lines has no titles but the known ones.
        if let Some(Heading::Section { title, .. }) =
            Heading::unknown_section(text).filter(|_| self.blanks > 0)
        {
            return self.open_section(title, "");
        }
        self.text(text)
    }

    /// Rows that are known by their own form.
    fn row(&mut self, line: &Line<'_>, trimmed: &str) -> Option<LineKind> {
        if self.announced_stack
            && let Some(place) = self.announced_row(line, trimmed)
        {
            return Some(place);
        }
        match self.block {
            // A list of images may stand under any title; a row with an identity is nothing else.
            Block::Section(_) if self.blanks == 0 => self.identified_image(line),
            Block::AppInfo if self.blanks == 0 => None,
            Block::State(thread) => self.registers(thread, trimmed).or_else(|| self.image(line)),
            Block::Images => self.image(line),
            _ => self.image(line).or_else(|| self.stack_row(line, trimmed)),
        }
    }

    fn identified_image(&mut self, line: &Line<'_>) -> Option<LineKind> {
        let has_identity = ImageRow::read(line.bytes)?.image.id.is_some();
        has_identity.then(|| self.image(line)).flatten()
    }

    fn image(&mut self, line: &Line<'_>) -> Option<LineKind> {
        let row = ImageRow::read(line.bytes)?;
        let number = line.number;
        if self.report.process.images.len() >= self.limits.max_images {
            self.beyond_limit(line, "images");
            return None;
        }
        if let Some(oddity) = row.oddity {
            let name = &row.image.name;
            self.notes.add(|| format!("line {number}: image {name}: {oddity}"));
            // The model cannot hold the addresses as printed.
            self.stray("Binary Images", &line.text());
        }
        self.block = Block::Images;
        self.report.process.images.push(row.image);
        Some(LineKind::Image)
    }

    fn registers(&mut self, thread: usize, trimmed: &str) -> Option<LineKind> {
        let registers = state::read(trimmed)?;
        self.registers_left = self.registers_left.checked_sub(registers.len())?;
        self.report.process.threads.get_mut(thread)?.registers.extend(registers);
        Some(LineKind::Registers)
    }

    /// Whether a `Key: value` line is one here.
    fn takes(&self, line: &KeyValue<'_>, text: &str) -> bool {
        if self.report.fields.len() >= self.limits.max_items {
            return false;
        }
        if self.is_free_text() {
            // Some iOS versions leave no blank line between the region's lines and who ended the process.
            let at_margin = !text.starts_with(char::is_whitespace);
            return at_margin && line.is_verdict() && matches!(self.block, Block::Section(_));
        }
        line.is_known() || (self.block == Block::Header && !self.in_termination && !self.titles_block(line))
    }

    /// Whether a line with nothing behind its colon opens a block, rather than being a key without a value.
    fn titles_block(&self, line: &KeyValue<'_>) -> bool {
        line.value.is_empty() && self.blanks > 0
    }

    fn key_value(&mut self, line: KeyValue<'_>) -> LineKind {
        header::set(&mut self.report, &mut self.blamed, line);
        self.in_termination = line.is_termination();
        self.block = Block::Header;
        LineKind::KeyValue
    }
}
