//! Opening blocks.

use super::LineKind;
use super::heading::{Heading, Label};
use super::lines::Line;
use super::reader::{Block, Reader};
use super::texts::APP_INFO;
use backtrail_model::{AppInfo, Backtrace, Field, Section, Thread};

impl Reader<'_> {
    pub(super) fn heading(&mut self, heading: &Heading<'_>, line: &Line<'_>) -> LineKind {
        self.in_termination = false;
        self.announced_stack = false;
        match *heading {
            Heading::Thread { number, crashed, label } => self.open_thread(line, number, crashed, label),
            Heading::ThreadName { number, label } => self.open_thread(line, number, false, label),
            Heading::ThreadState { number, flavor } => self.open_state(number, flavor),
            Heading::LastException => self.open_backtrace(line, "Last Exception Backtrace", true),
            Heading::AppBacktrace(title) => self.open_backtrace(line, title, false),
            Heading::AppInfo(rest) => self.open_app_info(rest),
            Heading::Section { title, rest } => self.open_section(title, rest),
            Heading::BinaryImages => self.open(Block::Images),
            Heading::MoreImages(title) => {
                self.report.fields.push(Field { key: title.to_owned(), value: String::new() });
                self.open(Block::Images)
            }
            // What follows is somebody else's.
            Heading::End => self.open(Block::Header),
        }
    }

    fn open(&mut self, block: Block) -> LineKind {
        self.block = block;
        LineKind::Heading
    }

    /// Opens the thread of that number; a line with its name may stand before the one that opens its stack.
    fn open_thread(&mut self, line: &Line<'_>, number: u64, crashed: bool, label: Label<'_>) -> LineKind {
        let goes_on =
            |thread: &Thread| thread.number == number && thread.frames.is_empty() && !thread.crashed;
        if !self.report.process.threads.last().is_some_and(goes_on) {
            if self.report.process.threads.len() >= self.limits.max_threads {
                self.beyond_limit(line, "threads");
                return self.open_section(&line.text(), "");
            }
            self.add_thread(number);
        }
        let position = self.report.process.threads.len().saturating_sub(1);
        if let Some(thread) = self.report.process.threads.last_mut() {
            thread.crashed |= crashed;
            thread.name = thread.name.take().or(label.name.map(str::to_owned));
            thread.queue = thread.queue.take().or(label.queue.map(str::to_owned));
        }
        if crashed {
            self.first_crashed.get_or_insert(position);
        }
        self.open(Block::Thread(position))
    }

    /// Adds a thread, and says where.
    fn add_thread(&mut self, number: u64) -> usize {
        let position = self.report.process.threads.len();
        self.report.process.threads.push(Thread { number, ..Thread::default() });
        self.by_number.insert(number, position);
        position
    }

    pub(super) fn beyond_limit(&mut self, line: &Line<'_>, what: &str) {
        let number = line.number;
        self.notes.add(|| format!("line {number}: more {what} than the limit allows, kept as text"));
    }

    pub(super) fn open_backtrace(&mut self, line: &Line<'_>, title: &str, is_exception: bool) -> LineKind {
        if self.report.process.backtraces.len() >= self.limits.max_threads {
            self.beyond_limit(line, "backtraces");
            return self.open_section(title, "");
        }
        let position = self.report.process.backtraces.len();
        self.report.process.backtraces.push(Backtrace {
            title: title.to_owned(),
            is_exception,
            frames: Vec::new(),
        });
        self.open(Block::Backtrace(position))
    }

    fn open_state(&mut self, number: Option<u64>, flavor: &str) -> LineKind {
        let known = match number {
            Some(number) => self.by_number.get(&number).copied(),
            None => self.first_crashed,
        };
        let room = self.report.process.threads.len() < self.limits.max_threads;
        if (known.is_none() && !room) || self.report.fields.len() >= self.limits.max_items {
            return self.open_section(flavor, "");
        }
        let value = number.map_or_else(|| flavor.to_owned(), |number| format!("thread {number}: {flavor}"));
        self.report.fields.push(Field { key: "Thread State".to_owned(), value });
        // Where the file begins behind the thread's stack, the thread is known by its state alone.
        let position = known.unwrap_or_else(|| self.add_thread(number.unwrap_or_default()));
        self.blamed.state.get_or_insert(position);
        self.open(Block::State(position))
    }

    fn open_app_info(&mut self, rest: &str) -> LineKind {
        if self.report.app_info.len() >= self.limits.max_items {
            return self.open_section(APP_INFO, rest);
        }
        self.report.app_info.push(AppInfo::default());
        self.block = Block::AppInfo;
        if !rest.is_empty() {
            self.text(rest);
        }
        LineKind::Heading
    }

    pub(super) fn open_section(&mut self, title: &str, rest: &str) -> LineKind {
        if self.report.sections.len() >= self.limits.max_items {
            self.stray(title, &format!("{title}: {rest}"));
            return self.open(Block::Section(self.report.sections.len().saturating_sub(1)));
        }
        let position = self.report.sections.len();
        self.report.sections.push(Section { title: title.to_owned(), text: rest.to_owned() });
        self.open(Block::Section(position))
    }
}
