//! What each line is, by itself and by the block that it stands in.

use super::header::{self, ThreadLine};
use super::images::ImageTable;
use super::java_row::{JavaRow, trace_head};
use super::native_row::NativeRow;
use super::thread_head::{self, Writer};
use crate::Limits;
use crate::apple_text::Line;
use crate::logcat::log_line;
use crate::notes::Notes;
use backtrail_model::{Backtrace, Process, Report, Section, Thread};
use std::collections::BTreeMap;

/// The block that the reader is inside of; positions are those in the report's lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// `Key: value` lines.
    Header,
    Section(usize),
    Thread(usize),
    Backtrace(usize),
}

/// What was found, which tells the kind of the report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KindsSeen {
    pub(super) tombstone: bool,
    pub(super) art: bool,
    pub(super) hotspot: bool,
    pub(super) java: bool,
}

/// A line that may be the first of an exception's stack: where it stands in the text of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) section: usize,
    pub(super) offset: usize,
}

#[derive(Debug)]
pub(super) struct Reader<'l> {
    pub(super) limits: &'l Limits,
    pub(super) report: Report,
    pub(super) notes: Notes,
    pub(super) images: ImageTable,
    pub(super) block: Block,
    pub(super) found: KindsSeen,
    pub(super) head: Option<Head>,
    pub(super) frames_left: usize,
    pub(super) items_left: usize,
    /// Processes that the text dealt with before.
    pub(super) finished: Vec<Process>,
    /// Blank lines directly before.
    pub(super) blanks: usize,
    /// Whether a rule was crossed, so that the next `pid:` line begins another thread.
    after_rule: bool,
    /// What the C library logged before the tombstone, which may be all there is.
    pub(super) fatal: Option<String>,
    /// What the runtime logged of a wrong call of JNI, where no tombstone follows.
    pub(super) jni: Option<String>,
    /// The last words of another tag, with the priority of an end, and that tag.
    pub(super) last_words: Option<(String, String)>,
    /// How many more lines the abort message may have whose closing quote has not come yet.
    open_message: usize,
    /// The thread whose head stood last, for sections that follow it.
    pub(super) last_thread: Option<usize>,
    /// What a log put before lines that went into the model, each once in a row.
    pub(super) prefixes: Vec<String>,
    /// State and kernel's function of threads, by their ids.
    pub(super) channels: BTreeMap<u64, (Option<String>, Option<String>)>,
}

impl<'l> Reader<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            report: Report::default(),
            notes: Notes::new(limits.max_notes),
            images: ImageTable::default(),
            block: Block::Header,
            found: KindsSeen::default(),
            head: None,
            frames_left: limits.max_frames,
            items_left: limits.max_items,
            finished: Vec::new(),
            blanks: 0,
            after_rule: false,
            fatal: None,
            jni: None,
            last_words: None,
            open_message: 0,
            last_thread: None,
            prefixes: Vec::new(),
            channels: BTreeMap::new(),
        }
    }

    pub(super) fn line(&mut self, line: &Line<'_>) {
        let text = line.text();
        if line.bytes.len() > self.limits.max_line {
            let (number, bytes) = (line.number, line.bytes.len());
            self.notes.add(|| format!("line {number}: {bytes} bytes long, kept as text only"));
            self.text(&text);
            self.blanks = 0;
            return;
        }
        let log = log_line(&text).filter(|_| !self.is_log());
        // What stands before a message is the log's, and said of each line; what the report says is behind it.
        let content = log.map_or(&*text, |log| log.message);
        if content.trim().is_empty() {
            self.blank();
            return;
        }
        if self.fatal.is_none() && content.len() < 1024 && header::fatal(content).is_some() {
            self.fatal = Some(content.trim().to_owned());
        }
        match &mut self.jni {
            None => self.jni = header::jni(content.trim()).map(str::to_owned),
            Some(message) if message.len() < MAX_MESSAGE => {
                if let Some(more) = header::jni_detail(content.trim()) {
                    message.push_str("\n    ");
                    message.push_str(more);
                }
            }
            Some(_) => {}
        }
        if self.fatal.is_none() && self.report.exception.is_none() {
            let logged = log.filter(|log| log.is_fatal).map(|log| (log.tag, log.message));
            let words = logged.or_else(|| header::pasted_last_word(content));
            let words = words.filter(|(tag, message)| header::is_last_word(tag, message));
            if let Some((tag, message)) = words {
                self.last_words = Some((tag.to_owned(), message.trim().to_owned()));
            }
        }
        if self.open_message > 0 && self.goes_on(content) {
            self.keep_prefix(text.strip_suffix(content).unwrap_or_default());
            self.blanks = 0;
            return;
        }
        self.waiting_channel(content.trim());
        if self.known(line, content) || self.is_of_head(content) {
            self.keep_prefix(text.strip_suffix(content).unwrap_or_default());
        } else {
            // A line of another tag is text, with all that the log says of it.
            self.text(&text);
        }
        self.blanks = 0;
    }

    /// Adds a line to an abort message of several, which ends by a quote. Registers and stacks never are a part of one.
    fn goes_on(&mut self, content: &str) -> bool {
        self.open_message -= 1;
        let trimmed = content.trim();
        let first = trimmed.split(' ').next().unwrap_or_default();
        let is_register = first.len() <= 4
            && first.starts_with(['x', 'r', 'e', 'w'])
            && trimmed.split_whitespace().nth(1).is_some_and(|word| word.len() >= 8)
            && trimmed
                .split_whitespace()
                .nth(1)
                .is_some_and(|word| word.bytes().all(|b| b.is_ascii_hexdigit()));
        if is_register || trimmed == "backtrace:" || NativeRow::read(trimmed).is_some() {
            self.open_message = 0;
            return false;
        }
        let exception = self.report.exception.get_or_insert_with(backtrail_model::Exception::default);
        let message = exception.message.get_or_insert_with(String::new);
        if message.len() + trimmed.len() > MAX_MESSAGE {
            self.open_message = 0;
            return false;
        }
        let inside = content.trim_end();
        let inside = match inside.strip_suffix('\'') {
            Some(inside) => {
                self.open_message = 0;
                inside
            }
            None => inside,
        };
        message.push('\n');
        message.push_str(inside);
        if let Some(info) = self.report.app_info.last_mut() {
            info.lines.push(inside.to_owned());
        }
        true
    }

    /// Keeps what a log says of a line whose content went into the model.
    fn keep_prefix(&mut self, prefix: &str) {
        let prefix = prefix.trim();
        if !prefix.is_empty() && self.items_left > 0 && self.prefixes.last().is_none_or(|last| last != prefix)
        {
            self.prefixes.push(prefix.to_owned());
            self.items_left -= 1;
        }
    }

    /// Whether this is the part of a report that quotes a log.
    fn is_log(&self) -> bool {
        let title = self.section_title();
        title.starts_with("logcat") || title.starts_with("---------")
    }

    fn section_title(&self) -> &str {
        let Block::Section(section) = self.block else { return "" };
        self.report.sections.get(section).map_or("", |section| section.title.as_str())
    }

    /// `sysTid=9955     state=S    futex_wait_queue_me`: what the kernel has a thread wait in. The line stays text, too.
    fn waiting_channel(&mut self, trimmed: &str) {
        if !self.section_title().starts_with("Waiting Channels") || self.items_left == 0 {
            return;
        }
        let mut words = trimmed.split_whitespace();
        let id = words.next().and_then(|word| word.strip_prefix("sysTid="));
        let Some(id) = id.and_then(|id| id.parse().ok()) else { return };
        for word in words {
            let (state, channel) = self.channels.entry(id).or_default();
            match word.strip_prefix("state=") {
                Some(word) => *state = Some(word.to_owned()),
                // 0 stands for none.
                None => *channel = Some(word.to_owned()).filter(|word| word != "0"),
            }
        }
        self.items_left -= 1;
    }

    fn blank(&mut self) {
        self.blanks += 1;
        if self.blanks == 1
            && let Block::Section(_) = self.block
        {
            // Blocks of a section stay apart.
            self.push_text("");
        }
    }

    /// Whether the line is one that is known by itself.
    fn known(&mut self, line: &Line<'_>, text: &str) -> bool {
        let trimmed = text.trim();
        if self.rule(trimmed) {
            return true;
        }
        // logcat's own divider, not the title of a log that a tombstone quotes.
        if trimmed.starts_with("--------- beginning of ") && !self.is_log() {
            return false;
        }
        // A log that the report quotes may hold lines of every other kind; only a blank line ends it.
        if self.is_log() && self.blanks == 0 && !trimmed.starts_with("--------- ") {
            return false;
        }
        self.process(trimmed)
            || self.thread(text, trimmed)
            || self.signal(trimmed)
            || self.row(line, trimmed)
            || self.in_stack(text, trimmed)
            || self.registers(trimmed)
            || self.heading(text, trimmed)
            || self.key(text, trimmed)
    }

    /// `*** *** …`, `--- --- …`, `+++ +++ …`.
    fn rule(&mut self, trimmed: &str) -> bool {
        let is_of = |word: &str| trimmed.split(' ').all(|part| part == word) && trimmed.len() >= 15;
        if is_of("***") {
            self.found.tombstone = true;
            // Unity's crash has the signal before this line.
            let is_begun =
                self.report.process.threads.iter().all(is_blank) && self.report.process.pid.is_none();
            if !is_begun && (!self.report.process.threads.is_empty() || self.report.exception.is_some()) {
                self.next_process(None);
            }
        } else if is_of("---") || is_of("+++") {
            self.after_rule = true;
        } else {
            return false;
        }
        self.block = Block::Header;
        true
    }

    /// `----- pid 1 at 2023-04-04 22:06:31.064728684+0200 -----`.
    fn process(&mut self, trimmed: &str) -> bool {
        self.found.art |= header::not_responding(&mut self.report, trimmed, self.found.art);
        let inner = trimmed.strip_prefix("----- ").map(|inner| inner.trim_end_matches('-').trim());
        let Some(inner) = inner else { return false };
        let Some(rest) = inner.strip_prefix("pid ") else {
            self.found.art |= inner.starts_with("Waiting Channels");
            self.open_section(inner);
            return true;
        };
        let (pid, time) = rest.split_once(" at ").unwrap_or((rest, ""));
        let Ok(pid) = pid.trim().parse() else { return false };
        self.found.art = true;
        let has_threads = !self.report.process.threads.is_empty();
        if has_threads && self.report.process.pid != Some(pid) {
            self.next_process(Some(pid));
        }
        self.report.process.pid = Some(pid);
        if self.report.time.is_none() {
            self.report.time = Some(time.to_owned()).filter(|time| !time.is_empty());
        } else {
            header::field(&mut self.report, "pid", rest);
        }
        self.block = Block::Header;
        true
    }

    /// Puts the process that was read aside for another one.
    fn next_process(&mut self, pid: Option<u64>) {
        let next = Process { pid, ..Process::default() };
        self.finished.push(std::mem::replace(&mut self.report.process, next));
        self.images.clear();
        self.last_thread = None;
    }

    /// The head of a thread.
    fn thread(&mut self, text: &str, trimmed: &str) -> bool {
        if let Some(line) = ThreadLine::read(trimmed) {
            self.tombstone_thread(&line);
            return true;
        }
        let Some((thread, writer)) = thread_head::read(text, self.report.process.threads.len()) else {
            return false;
        };
        if self.report.process.threads.len() >= self.limits.max_threads {
            return false;
        }
        self.found.hotspot |= writer == Writer::HotSpot;
        self.found.art |= writer == Writer::Art;
        // Google Play's pages have a thread's name and state as a heading above its own first line.
        let threads = &mut self.report.process.threads;
        let is_heading = |last: &Thread| {
            last.frames.is_empty()
                && last.number == thread.number
                && last.name == thread.name
                && last.id.is_none()
        };
        if writer == Writer::Art && threads.last().is_some_and(is_heading) {
            threads.pop();
        }
        self.open_thread(thread);
        true
    }

    fn open_thread(&mut self, thread: Thread) {
        self.report.process.threads.push(thread);
        let position = self.report.process.threads.len() - 1;
        self.last_thread = Some(position);
        self.block = Block::Thread(position);
    }

    fn tombstone_thread(&mut self, line: &ThreadLine<'_>) {
        self.found.tombstone = true;
        let process = &mut self.report.process;
        if process.pid.is_some_and(|pid| pid != line.pid) {
            header::field(&mut self.report, "pid", &line.pid.to_string());
        } else {
            process.pid = Some(line.pid);
        }
        let process = &mut self.report.process;
        if let Some(name) = line.process {
            process.name.get_or_insert_with(|| name.to_owned());
        }
        self.after_rule = false;
        // Unity's crash has the signal before this line: the thread that it opened is this one.
        if let [only] = process.threads.as_mut_slice()
            && is_blank(only)
        {
            (only.id, only.name) = (line.tid, line.name.map(str::to_owned));
            (self.last_thread, self.block) = (Some(0), Block::Thread(0));
            return;
        }
        if line.tid.is_none() && line.name.is_none() || process.threads.len() >= self.limits.max_threads {
            return;
        }
        let thread = Thread {
            number: process.threads.len() as u64,
            id: line.tid,
            name: line.name.map(str::to_owned),
            ..Thread::default()
        };
        self.open_thread(thread);
    }

    fn signal(&mut self, trimmed: &str) -> bool {
        let Some(exception) = header::signal(trimmed).or_else(|| header::crashlytics(trimmed)) else {
            return false;
        };
        if self.report.exception.as_ref().is_some_and(|known| known.signal.is_some()) {
            return false;
        }
        self.found.tombstone = true;
        let message = self.report.exception.take().and_then(|known| known.message);
        self.report.exception = Some(backtrail_model::Exception { message, ..exception });
        let thread = self.current_thread();
        if let Some(thread) = self.report.process.threads.get_mut(thread) {
            thread.crashed = true;
            self.report.process.crashed_thread.get_or_insert(self.report.process.threads.len() - 1);
        }
        true
    }

    /// The thread that lines at its head belong to; one of its own where the text has no line that begins it.
    pub(super) fn current_thread(&mut self) -> usize {
        match (self.block, self.last_thread) {
            (Block::Thread(thread), _) => thread,
            (_, Some(thread)) => thread,
            _ => {
                let position = self.report.process.threads.len();
                self.open_thread(Thread { number: position as u64, ..Thread::default() });
                position
            }
        }
    }

    fn row(&mut self, line: &Line<'_>, trimmed: &str) -> bool {
        if let Some(row) = NativeRow::read(trimmed) {
            return self.native(&row, line);
        }
        if let Some(row) = JavaRow::read(trimmed) {
            return self.java(&row, line);
        }
        match trimmed.strip_prefix("kernel: ") {
            Some(function) if !function.starts_with('(') => self.kernel(function, line),
            _ => false,
        }
    }

    /// A title: at the margin, ended by a colon or known by its words.
    fn heading(&mut self, text: &str, trimmed: &str) -> bool {
        let at_margin = !text.starts_with(char::is_whitespace);
        let inner = trimmed.trim_end_matches(':');
        let is_stack = matches!(inner, "backtrace" | "java stacktrace");
        if is_stack && trimmed.ends_with(':') {
            let thread = self.current_thread();
            self.block = Block::Thread(thread);
            self.head = None;
            return true;
        }
        let starts = |words: &[&str]| words.iter().any(|word| trimmed.starts_with(word));
        let is_known = starts(&[
            "memory near ",
            "memory map",
            "stack:",
            "open files",
            "logcat:",
            "memory info:",
            "build id:",
            "--------- ",
            "deallocated by thread ",
            "allocated by thread ",
            "previously allocated",
            "Found one Java-level deadlock",
            "Java stack information for the threads",
            "DALVIK THREADS",
            "Full thread dump",
            "--- CriticalEventLog",
        ]);
        let is_title = trimmed.ends_with(':') && self.blanks > 0 && trace_head(trimmed).is_none();
        if !at_margin || !(is_known || is_title) || trimmed.len() > MAX_TITLE {
            return false;
        }
        self.found.art |= starts(&["DALVIK THREADS"]);
        self.found.hotspot |= starts(&["Full thread dump"]);
        self.open_section(trimmed);
        true
    }

    pub(super) fn open_section(&mut self, title: &str) {
        if self.report.sections.len() >= self.limits.max_items {
            return self.push_text(title);
        }
        let of_thread = title.starts_with("stack") || title.starts_with("memory near");
        let first = self.report.process.threads.first().and_then(|thread| thread.id);
        let thread = self.last_thread.and_then(|thread| self.report.process.threads.get(thread)?.id);
        // What another thread than the first has is told apart by its title.
        let title = match thread.filter(|id| of_thread && Some(*id) != first) {
            Some(id) => format!("{} (thread {id})", title.trim_end_matches(':')),
            None => title.trim_end_matches(':').to_owned(),
        };
        self.report.sections.push(Section { title, text: String::new() });
        self.block = Block::Section(self.report.sections.len() - 1);
        self.head = None;
    }

    /// `Key: value` at the margin of the head.
    fn key(&mut self, text: &str, trimmed: &str) -> bool {
        let in_head = self.block == Block::Header
            || matches!(self.block, Block::Thread(thread) if self.found.tombstone && self.has_no_frames(thread));
        let at_margin = !text.starts_with(char::is_whitespace);
        let Some((key, value)) = header::key_value(trimmed).filter(|_| in_head && at_margin) else {
            return false;
        };
        if trace_head(trimmed).is_some() || self.items_left == 0 || value.is_empty() {
            return false;
        }
        self.items_left -= 1;
        if let Block::Thread(thread) = self.block
            && matches!(key, "tagged_addr_ctrl" | "pac_enabled_keys")
            && let Some(thread) = self.report.process.threads.get_mut(thread)
        {
            let (key, value) = (key.to_owned(), value.to_owned());
            thread.fields.push(backtrail_model::Field { key, value });
            return true;
        }
        let is_open = key == "Abort message"
            && value.starts_with('\'')
            && !value.get(1..).is_some_and(|it| it.ends_with('\''));
        let value = if is_open { value.trim_start_matches('\'') } else { value };
        header::set(&mut self.report, key, value);
        if is_open {
            self.open_message = MAX_MESSAGE_LINES;
        }
        true
    }

    pub(super) fn has_no_frames(&self, thread: usize) -> bool {
        self.report.process.threads.get(thread).is_none_or(|thread| thread.frames.is_empty())
    }

    /// Whether a line may be the first of an exception's stack, or go on with what such a line says.
    fn is_of_head(&mut self, content: &str) -> bool {
        if trace_head(content).is_some() {
            self.text_of_head(content);
            return true;
        }
        let goes_on = self.head.is_some() && self.blanks == 0;
        if goes_on {
            self.text(content);
        }
        goes_on
    }

    /// Keeps a line that may be the first of an exception's stack.
    fn text_of_head(&mut self, content: &str) {
        // What an exception says follows its name, and may look like another one.
        let is_new = self.blanks > 0 || self.head.is_none() || !matches!(self.block, Block::Section(_));
        let is_cause = content.trim_start().starts_with("Caused by: ");
        let section = self.text_section();
        let offset = self.report.sections.get(section).map_or(0, |section| section.text.len());
        if is_new || is_cause {
            self.head = Some(Head { section, offset });
        }
        self.push_text(content);
    }

    /// Keeps a line as text: in the section that is open, or in one without a title.
    pub(super) fn text(&mut self, text: &str) {
        self.text_section();
        self.push_text(text);
    }

    fn text_section(&mut self) -> usize {
        if let Block::Section(section) = self.block {
            return section;
        }
        let is_open = self.report.sections.last().is_some_and(|section| section.title.is_empty());
        if !is_open {
            self.report.sections.push(Section::default());
        }
        let section = self.report.sections.len() - 1;
        self.block = Block::Section(section);
        section
    }

    fn push_text(&mut self, text: &str) {
        if self.report.sections.is_empty() {
            self.report.sections.push(Section::default());
        }
        let last = self.report.sections.len() - 1;
        let at = if let Block::Section(section) = self.block { section } else { last };
        if let Some(section) = self.report.sections.get_mut(at) {
            section.text.push_str(text.trim_end());
            section.text.push('\n');
        }
    }

    pub(super) fn open_backtrace(&mut self, title: String) -> bool {
        if self.report.process.backtraces.len() >= self.limits.max_threads {
            return false;
        }
        self.report.process.backtraces.push(Backtrace { title, is_exception: false, frames: Vec::new() });
        self.block = Block::Backtrace(self.report.process.backtraces.len() - 1);
        true
    }
}

/// Longest abort message, in bytes and lines. The runtime's has the stack of the call in it.
const MAX_MESSAGE: usize = 16 << 10;
const MAX_MESSAGE_LINES: usize = 256;

/// Longest title of a section.
const MAX_TITLE: usize = 200;

/// Whether nothing is known of a thread but that it is there.
fn is_blank(thread: &Thread) -> bool {
    thread.id.is_none() && thread.name.is_none() && thread.frames.is_empty() && thread.registers.is_empty()
}
