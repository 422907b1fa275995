//! What each line is, by itself and by the block that it stands in.

use super::Place;
use super::header::{self, Blamed, KeyValue};
use super::heading::{Heading, Label};
use super::image_row::ImageRow;
use super::lines::Line;
use super::state;
use crate::Limits;
use crate::model::{AppInfo, Backtrace, Field, Report, Section, Termination, Thread};
use crate::notes::Notes;

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
    /// Blank lines directly before.
    blanks: usize,
    /// Whether the lines before, without a blank one, speak of who ended the process.
    in_termination: bool,
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
            blanks: 0,
            in_termination: false,
            announced_stack: false,
        }
    }

    pub(super) fn line(&mut self, line: &Line<'_>) -> Place {
        if line.bytes.len() > self.limits.max_line {
            let (number, bytes) = (line.number, line.bytes.len());
            self.notes.add(|| format!("line {number}: {bytes} bytes long, kept as text only"));
            return self.text(&line.text());
        }
        let text = line.text();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            self.blanks += 1;
            self.in_termination = false;
            return Place::Blank;
        }
        let place = self.in_context(line, &text, trimmed);
        self.blanks = 0;
        place
    }

    /// What stands inside of free text is text, unless a blank line lets something new begin.
    fn is_free_text(&self) -> bool {
        self.blanks == 0 && matches!(self.block, Block::Section(_) | Block::AppInfo)
    }

    fn in_context(&mut self, line: &Line<'_>, text: &str, trimmed: &str) -> Place {
        let in_stack = matches!(self.block, Block::Thread(_) | Block::Backtrace(_));
        if let Some(heading) = Heading::read(trimmed, self.blanks > 0 || in_stack) {
            return self.heading(&heading, line);
        }
        if let Some(place) = self.row(line, trimmed) {
            return place;
        }
        if let Some(key_value) = KeyValue::read(trimmed).filter(|key_value| self.takes(key_value)) {
            return self.key_value(key_value);
        }
        if self.in_termination {
            let termination = self.report.termination.get_or_insert_with(Termination::default);
            termination.details.push(trimmed.to_owned());
            return Place::Termination;
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
    fn row(&mut self, line: &Line<'_>, trimmed: &str) -> Option<Place> {
        if self.announced_stack
            && let Some(place) = self.announced_row(line, trimmed)
        {
            return Some(place);
        }
        match self.block {
            Block::Section(_) | Block::AppInfo if self.blanks == 0 => None,
            Block::State(thread) => self.registers(thread, trimmed).or_else(|| self.image(line)),
            Block::Images => self.image(line),
            _ => self.image(line).or_else(|| self.stack_row(line, trimmed)),
        }
    }

    fn image(&mut self, line: &Line<'_>) -> Option<Place> {
        let row = ImageRow::read(line.bytes)?;
        let number = line.number;
        if self.report.images.len() >= self.limits.max_images {
            self.notes.add(|| format!("line {number}: more images than the limit allows, kept as text"));
            return None;
        }
        if let Some(oddity) = row.oddity {
            let name = &row.image.name;
            self.notes.add(|| format!("line {number}: image {name}: {oddity}"));
            // The model cannot hold the addresses as printed.
            self.stray("Binary Images", &line.text());
        }
        self.block = Block::Images;
        self.report.images.push(row.image);
        Some(Place::Image)
    }

    fn registers(&mut self, thread: usize, trimmed: &str) -> Option<Place> {
        let registers = state::read(trimmed)?;
        self.report.threads.get_mut(thread)?.registers.extend(registers);
        Some(Place::Registers)
    }

    /// Whether a `Key: value` line is one here.
    fn takes(&self, line: &KeyValue<'_>) -> bool {
        if self.is_free_text() {
            return false;
        }
        line.is_known() || (self.block == Block::Header && !self.in_termination && !self.titles_block(line))
    }

    /// Whether a line with nothing behind its colon opens a block, rather than being a key without a value.
    fn titles_block(&self, line: &KeyValue<'_>) -> bool {
        line.value.is_empty() && self.blanks > 0
    }

    fn key_value(&mut self, line: KeyValue<'_>) -> Place {
        header::set(&mut self.report, &mut self.blamed, line);
        self.in_termination = line.is_termination();
        self.block = Block::Header;
        Place::KeyValue
    }

    fn heading(&mut self, heading: &Heading<'_>, line: &Line<'_>) -> Place {
        self.in_termination = false;
        self.announced_stack = false;
        match *heading {
            Heading::Thread { number, crashed, label } => {
                return self.open_thread(line, number, crashed, label);
            }
            Heading::ThreadName { number, label } => return self.open_thread(line, number, false, label),
            Heading::ThreadState { number, flavor } => self.open_state(number, flavor),
            Heading::LastException => return self.open_backtrace(line, "Last Exception Backtrace", true),
            Heading::AppBacktrace(title) => return self.open_backtrace(line, title, false),
            Heading::AppInfo(rest) => {
                self.report.app_info.push(AppInfo::default());
                self.block = Block::AppInfo;
                if !rest.is_empty() {
                    self.text(rest);
                }
            }
            Heading::BinaryImages => self.block = Block::Images,
            Heading::Section { title, rest } => return self.open_section(title, rest),
            // What follows is somebody else's.
            Heading::End => self.block = Block::Header,
        }
        Place::Heading
    }

    /// Opens the thread of that number; a line with its name may stand before the one that opens its stack.
    fn open_thread(&mut self, line: &Line<'_>, number: u64, crashed: bool, label: Label<'_>) -> Place {
        let goes_on =
            |thread: &Thread| thread.number == number && thread.frames.is_empty() && !thread.crashed;
        if !self.report.threads.last().is_some_and(goes_on) {
            if self.report.threads.len() >= self.limits.max_threads {
                let line_number = line.number;
                self.notes
                    .add(|| format!("line {line_number}: more threads than the limit allows, kept as text"));
                return self.open_section(&line.text(), "");
            }
            self.report.threads.push(Thread { number, ..Thread::default() });
        }
        let position = self.report.threads.len().saturating_sub(1);
        if let Some(thread) = self.report.threads.last_mut() {
            thread.crashed |= crashed;
            thread.name = thread.name.take().or(label.name.map(str::to_owned));
            thread.queue = thread.queue.take().or(label.queue.map(str::to_owned));
        }
        self.block = Block::Thread(position);
        Place::Heading
    }

    pub(super) fn open_backtrace(&mut self, line: &Line<'_>, title: &str, is_exception: bool) -> Place {
        if self.report.backtraces.len() >= self.limits.max_threads {
            let number = line.number;
            self.notes.add(|| format!("line {number}: more backtraces than the limit allows, kept as text"));
            return self.open_section(title, "");
        }
        self.block = Block::Backtrace(self.report.backtraces.len());
        self.report.backtraces.push(Backtrace { title: title.to_owned(), is_exception, frames: Vec::new() });
        Place::Heading
    }

    fn open_state(&mut self, number: Option<u64>, flavor: &str) {
        let value = number.map_or_else(|| flavor.to_owned(), |number| format!("thread {number}: {flavor}"));
        self.report.fields.push(Field { key: "Thread State".to_owned(), value });
        let threads = &mut self.report.threads;
        let found = match number {
            Some(number) => threads.iter().rposition(|thread| thread.number == number),
            None => threads.iter().position(|thread| thread.crashed),
        };
        let position = found.unwrap_or_else(|| {
            // The stack is missing: the file begins behind it.
            threads.push(Thread { number: number.unwrap_or_default(), ..Thread::default() });
            threads.len() - 1
        });
        self.blamed.state.get_or_insert(position);
        self.block = Block::State(position);
    }

    fn open_section(&mut self, title: &str, rest: &str) -> Place {
        self.block = Block::Section(self.report.sections.len());
        self.report.sections.push(Section { title: title.to_owned(), text: rest.to_owned() });
        Place::Heading
    }

    /// Keeps a line that is nothing else as text, where it stands.
    pub(super) fn text(&mut self, text: &str) -> Place {
        let blanks = self.blanks;
        match self.block {
            Block::AppInfo => {
                if let Some(info) = self.report.app_info.last_mut() {
                    let blanks = if info.lines.is_empty() { 0 } else { blanks };
                    info.lines.extend(std::iter::repeat_n(String::new(), blanks));
                    info.lines.push(text.trim_end().to_owned());
                    self.announced_stack = text.trim_end().ends_with("call stack:");
                    return Place::AppInfo;
                }
            }
            Block::Section(position) => {
                if let Some(section) = self.report.sections.get_mut(position) {
                    append(&mut section.text, blanks, text);
                    return Place::Text;
                }
            }
            Block::Thread(position) | Block::State(position) => {
                let number = self.report.threads.get(position).map_or(0, |thread| thread.number);
                return self.stray(&format!("Thread {number}"), text);
            }
            Block::Backtrace(position) => {
                let title = self.report.backtraces.get(position).map(|backtrace| backtrace.title.clone());
                return self.stray(&title.unwrap_or_default(), text);
            }
            Block::Images => return self.stray("Binary Images", text),
            Block::Header => {}
        }
        self.stray("", text)
    }

    /// Keeps a line as text under the title of the block that it stands in, which goes on.
    fn stray(&mut self, title: &str, text: &str) -> Place {
        let last = self.report.sections.last_mut().filter(|section| section.title == title);
        match last {
            Some(section) => append(&mut section.text, 0, text),
            None => {
                let text = text.trim_end().to_owned();
                self.report.sections.push(Section { title: title.to_owned(), text });
            }
        }
        Place::Text
    }
}

fn append(to: &mut String, blanks: usize, line: &str) {
    if !to.is_empty() {
        to.extend(std::iter::repeat_n('\n', blanks + 1));
    }
    to.push_str(line.trim_end());
}
