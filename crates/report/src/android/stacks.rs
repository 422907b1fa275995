//! Rows of stacks, and the lines that stand between them.

use super::images::frame_of;
use super::java_row::JavaRow;
use super::native_row::NativeRow;
use super::reader::{Block, Reader};
use super::thread_head;
use crate::apple_text::Line;
use backtrail_model::{Field, Frame, Language, Register, ReportedSymbol};

impl Reader<'_> {
    pub(super) fn native(&mut self, row: &NativeRow<'_>, line: &Line<'_>) -> bool {
        if !self.stack_for(true, Some(row.index)) {
            return false;
        }
        let (images, max) = (&mut self.report.process.images, self.limits.max_images);
        let image = self.images.of_row(row, images, max);
        let mut frame = frame_of(row, image);
        frame.span = Some(line.span.clone());
        self.push_frame(frame, false)
    }

    pub(super) fn java(&mut self, row: &JavaRow<'_>, line: &Line<'_>) -> bool {
        if !self.stack_for(false, None) {
            return false;
        }
        let mut frame = Frame::new(0);
        frame.span = Some(line.span.clone());
        frame.language = Some(Language::Java);
        frame.image_name = row.module.map(str::to_owned);
        frame.reported = Some(ReportedSymbol {
            name: format!("{}.{}", row.class, row.method),
            offset: None,
            file: Some(row.file.to_owned()).filter(|file| !file.is_empty()),
            line: row.line,
            column: None,
        });
        if !row.rest.is_empty() {
            frame.annotations.push(row.rest.to_owned());
        }
        self.found.java = true;
        self.push_frame(frame, true)
    }

    /// `__switch_to+0xb0/0xc0`: a frame of the kernel.
    pub(super) fn kernel(&mut self, function: &str, line: &Line<'_>) -> bool {
        let Block::Thread(_) = self.block else { return false };
        let mut frame = Frame::new(0);
        frame.span = Some(line.span.clone());
        frame.image_name = Some("kernel".to_owned());
        let (name, rest) = function.trim().split_once('+').unwrap_or((function.trim(), ""));
        let offset = rest
            .split('/')
            .next()
            .and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
        frame.reported = Some(ReportedSymbol { name: name.to_owned(), offset, ..ReportedSymbol::default() });
        if let Some((_, size)) = rest.split_once('/') {
            frame.annotations.push(format!("of {size}"));
        }
        self.push_frame(frame, true)
    }

    /// Makes sure that the block is a stack that a row can go to.
    fn stack_for(&mut self, is_native: bool, index: Option<u32>) -> bool {
        if self.frames_left == 0 {
            return false;
        }
        match self.block {
            Block::Thread(_) => true,
            Block::Backtrace(at) => {
                // Rows that begin anew are another stack.
                let frames =
                    self.report.process.backtraces.get(at).map_or(0, |backtrace| backtrace.frames.len());
                if index == Some(0) && frames > 0 { self.open_backtrace(String::new()) } else { true }
            }
            Block::Header if is_native => {
                let thread = self.current_thread();
                self.block = Block::Thread(thread);
                if index == Some(0)
                    && self.report.process.threads.get(thread).is_some_and(|it| !it.frames.is_empty())
                {
                    return self.open_backtrace(String::new());
                }
                true
            }
            Block::Header => self.open_backtrace(String::new()),
            Block::Section(section) => {
                // Some reporters' lines between the registers and the stack are nobody's title.
                let only =
                    self.report.process.threads.len() == 1 && self.report.process.backtraces.is_empty();
                let is_untitled =
                    self.report.sections.get(section).is_some_and(|section| section.title.is_empty());
                let is_bare = only && is_untitled && self.found.tombstone && self.has_no_frames(0);
                if is_native && index == Some(0) && is_bare && self.head.is_none() {
                    self.block = Block::Thread(0);
                    return true;
                }
                self.open_titled(section)
            }
        }
    }

    /// A stack that stands behind its title: a heading, or an exception and what it says.
    fn open_titled(&mut self, at: usize) -> bool {
        let Some(section) = self.report.sections.get_mut(at) else { return false };
        let head = self.head.take().filter(|head| head.section == at);
        let title = match head {
            Some(head) => {
                let title = section.text.get(head.offset..).unwrap_or_default().trim_end().to_owned();
                section.text.truncate(head.offset);
                title
            }
            // The heading itself, where nothing stands between it and the row.
            None if section.text.trim().is_empty() => std::mem::take(&mut section.title),
            // A line that ends in a colon is a title too: `"Thread-1":`.
            None => match section.text.trim_end().rsplit('\n').next() {
                Some(last) if last.ends_with(':') => {
                    let title = last.to_owned();
                    let end = section.text.trim_end().len() - title.len();
                    section.text.truncate(end);
                    title
                }
                _ => String::new(),
            },
        };
        self.open_backtrace(title)
    }

    fn push_frame(&mut self, mut frame: Frame, is_numbered_here: bool) -> bool {
        let frames = match self.block {
            Block::Thread(at) => self.report.process.threads.get_mut(at).map(|thread| &mut thread.frames),
            Block::Backtrace(at) => {
                self.report.process.backtraces.get_mut(at).map(|backtrace| &mut backtrace.frames)
            }
            _ => None,
        };
        let Some(frames) = frames else { return false };
        // Native rows of ART's traces are numbered on their own.
        if is_numbered_here || frames.iter().any(|frame| frame.language.is_some()) {
            frame.index = frames.last().map_or(0, |last| last.index.saturating_add(1));
        }
        frames.push(frame);
        self.frames_left -= 1;
        true
    }

    /// Lines within a thread or a stack that are no rows.
    pub(super) fn in_stack(&mut self, text: &str, trimmed: &str) -> bool {
        if self.items_left == 0 {
            return false;
        }
        let done = match self.block {
            Block::Thread(thread) => self.in_thread(thread, text, trimmed),
            Block::Backtrace(_) => self.between_rows(trimmed),
            _ => false,
        };
        self.items_left -= usize::from(done);
        done
    }

    fn in_thread(&mut self, thread: usize, text: &str, trimmed: &str) -> bool {
        if self.found.tombstone && !trimmed.starts_with("NOTE: ") && self.between_rows(trimmed) {
            return true;
        }
        let Some(thread) = self.report.process.threads.get_mut(thread) else { return false };
        if let Some(facts) = trimmed.strip_prefix("| ") {
            thread_head::facts(facts, thread);
            return true;
        }
        if let Some(state) = trimmed.strip_prefix("java.lang.Thread.State: ") {
            let before = thread.state.replace(state.to_owned());
            let field = before.map(|value| Field { key: "state".to_owned(), value });
            thread.fields.extend(field);
            return true;
        }
        let after_list = thread.fields.last().is_some_and(|field| field.key.starts_with("Locked ownable"));
        if trimmed.starts_with("- ")
            && !after_list
            && let Some(frame) = thread.frames.last_mut()
        {
            frame.annotations.push(trimmed.to_owned());
            return true;
        }
        if let Some(total) = trimmed.strip_suffix(" total frames") {
            let (key, value) = ("total frames".to_owned(), total.to_owned());
            thread.fields.push(Field { key, value });
            return true;
        }
        let is_note = trimmed.starts_with("NOTE: ");
        if !text.starts_with(char::is_whitespace) && !trimmed.starts_with('(') && !is_note {
            return false;
        }
        if self.found.tombstone && !is_note {
            return false;
        }
        // What else stands indented below a thread is about it.
        match trimmed.strip_prefix("- ").filter(|_| after_list) {
            Some(item) => {
                if let Some(field) = thread.fields.last_mut() {
                    field.value.push_str(if field.value.is_empty() { "" } else { "; " });
                    field.value.push_str(item);
                }
            }
            None => {
                let is_list = trimmed.starts_with("Locked ownable");
                let (key, value) = if is_list { (trimmed.trim_end_matches(':'), "") } else { ("", trimmed) };
                thread.fields.push(Field { key: key.to_owned(), value: value.to_owned() });
            }
        }
        true
    }

    /// `... 12 more`, locks, and what a writer left out.
    fn between_rows(&mut self, trimmed: &str) -> bool {
        let is_more = trimmed.starts_with("...") || trimmed.starts_with("[CIRCULAR REFERENCE");
        if !is_more && !trimmed.starts_with("- ") {
            return false;
        }
        let frames = match self.block {
            Block::Thread(at) => self.report.process.threads.get_mut(at).map(|thread| &mut thread.frames),
            Block::Backtrace(at) => {
                self.report.process.backtraces.get_mut(at).map(|backtrace| &mut backtrace.frames)
            }
            _ => None,
        };
        let Some(frame) = frames.and_then(|frames| frames.last_mut()) else { return false };
        frame.annotations.push(trimmed.to_owned());
        true
    }

    /// `x0  0000000000000003  x1  0000000000000000`.
    pub(super) fn registers(&mut self, trimmed: &str) -> bool {
        if !matches!(self.block, Block::Header | Block::Thread(_)) || !self.found.tombstone {
            return false;
        }
        let Some(registers) = read_registers(trimmed) else { return false };
        let at = self.current_thread();
        let Some(thread) = self.report.process.threads.get_mut(at) else { return false };
        let room = self.limits.max_items.min(1024).saturating_sub(thread.registers.len());
        if !thread.frames.is_empty() || room < registers.len() {
            return false;
        }
        thread.registers.extend(registers);
        true
    }
}

fn read_registers(line: &str) -> Option<Vec<Register>> {
    let mut words = line.split_whitespace();
    let mut registers = Vec::new();
    while let Some(name) = words.next() {
        let value = words.next()?;
        let (name, value) = (name.trim_end_matches(':'), value.strip_prefix("0x").unwrap_or(value));
        let is_name = name.len() <= 8
            && name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_value = matches!(value.len(), 8 | 16) && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u64::from_str_radix(value, 16).ok().filter(|_| is_name && is_value)?;
        registers.push(Register { name: name.to_owned(), value, note: None });
    }
    Some(registers).filter(|registers| !registers.is_empty())
}
