//! What the readers of runtimes' reports share: they go through the lines of a text, put the rows of stacks into the model,
//! and keep every other line.

use crate::Limits;
use crate::apple_text::{Line, Lines};
use crate::log_prefix::plain;
use crate::notes::Notes;
pub(super) use crate::numbers::hex;
use crate::numbers::is_number;
use backtrail_core::{Avma, FrameAddress, ImageId, Trust};
use backtrail_model::{Backtrace, Frame, Image, Report, ReportedSymbol, Section, Source, Thread};
use std::collections::HashMap;

/// The title of the section that has the lines which are no rows.
const TITLE: &str = "Log";

/// A text that is being read.
pub(super) struct Log<'l> {
    pub(super) limits: &'l Limits,
    pub(super) report: Report,
    notes: Notes,
    frames_left: usize,
    items_left: usize,
    text: String,
    stack: Option<Stack>,
    /// The stack that ended last.
    ended: Option<Stack>,
    images: HashMap<String, usize>,
}

/// The stack that rows go to.
#[derive(Clone, Copy)]
enum Stack {
    Thread(usize),
    Backtrace(usize),
}

/// One kind's reader.
pub(super) trait Reader<'l> {
    fn log(&mut self) -> &mut Log<'l>;

    /// Reads a line, given without what a log put before it. `true` where the model has all of it.
    fn line(&mut self, text: &str, line: &Line<'_>) -> bool;
}

/// Gives the reader each line, and keeps those that it does not take.
pub(super) fn drive<'l>(reader: &mut impl Reader<'l>, input: &[u8], start: usize) {
    for line in Lines::new(input, start..input.len(), 1) {
        let raw = line.text();
        let is_long = raw.len() > reader.log().limits.max_line;
        if is_long {
            reader.log().notes.add(|| format!("line {} is long and kept as text only", line.number));
        }
        if is_long || !reader.line(plain(&raw), &line) {
            reader.log().keep(&raw);
        }
    }
}

impl<'l> Log<'l> {
    pub(super) fn new(source: Source, limits: &'l Limits) -> Self {
        Self {
            limits,
            report: Report { source, ..Report::default() },
            notes: Notes::new(limits.max_notes),
            frames_left: limits.max_frames,
            items_left: limits.max_items,
            text: String::new(),
            stack: None,
            ended: None,
            images: HashMap::new(),
        }
    }

    /// Keeps a line as text.
    pub(super) fn keep(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Whether one more field or annotation may be kept outside of the text.
    pub(super) fn has_room(&mut self) -> bool {
        let has_room = self.items_left > 0;
        self.items_left = self.items_left.saturating_sub(1);
        has_room
    }

    fn has_room_for_stack(&mut self) -> bool {
        let process = &self.report.process;
        let has_room = process.threads.len() + process.backtraces.len() < self.limits.max_threads;
        if !has_room {
            self.stack = None;
        }
        has_room
    }

    /// Begins a thread. Rows go there from now on.
    pub(super) fn begin_thread(&mut self, thread: Thread) -> bool {
        if !self.has_room_for_stack() {
            return false;
        }
        let threads = &mut self.report.process.threads;
        threads.push(thread);
        self.stack = Some(Stack::Thread(threads.len() - 1));
        true
    }

    /// Begins a stack that is no thread's.
    pub(super) fn begin_backtrace(&mut self, title: impl Into<String>, is_exception: bool) -> bool {
        if !self.has_room_for_stack() {
            return false;
        }
        let backtraces = &mut self.report.process.backtraces;
        backtraces.push(Backtrace { title: title.into(), is_exception, frames: Vec::new() });
        self.stack = Some(Stack::Backtrace(backtraces.len() - 1));
        true
    }

    /// Goes on with the stack that ended last, where its frames are fewer than `index`. Says whether it does.
    pub(super) fn go_on(&mut self, index: u32) -> bool {
        if self.stack.is_none() {
            self.stack = self.ended;
            let last = self.frames().and_then(|frames| frames.last().map(|frame| frame.index));
            if last.is_none_or(|last| last >= index) {
                self.stack = None;
            }
        }
        self.stack.is_some()
    }

    /// Goes on with the first thread.
    pub(super) fn resume(&mut self) {
        self.stack = (!self.report.process.threads.is_empty()).then_some(Stack::Thread(0));
    }

    /// Ends the stack.
    pub(super) fn end_stack(&mut self) {
        self.ended = self.stack.take().or(self.ended);
    }

    pub(super) fn is_in_stack(&self) -> bool {
        self.stack.is_some()
    }

    /// The thread that rows go to.
    pub(super) fn thread(&mut self) -> Option<&mut Thread> {
        match self.stack? {
            Stack::Thread(at) => self.report.process.threads.get_mut(at),
            Stack::Backtrace(_) => None,
        }
    }

    /// The frames of the stack that rows go to.
    pub(super) fn frames(&mut self) -> Option<&mut Vec<Frame>> {
        match self.stack? {
            Stack::Thread(at) => self.report.process.threads.get_mut(at).map(|thread| &mut thread.frames),
            Stack::Backtrace(at) => {
                self.report.process.backtraces.get_mut(at).map(|backtrace| &mut backtrace.frames)
            }
        }
    }

    /// Adds a frame; `false` where there is no stack, or no room.
    pub(super) fn push(&mut self, frame: Frame) -> bool {
        if self.frames_left == 0 {
            return false;
        }
        let Some(frames) = self.frames() else { return false };
        frames.push(frame);
        self.frames_left -= 1;
        true
    }

    /// The number of the next frame.
    pub(super) fn next_index(&mut self) -> u32 {
        let last = self.frames().and_then(|frames| frames.last().map(|frame| frame.index));
        last.map_or(0, |last| last.saturating_add(1))
    }

    /// Keeps a line with the frame before it.
    pub(super) fn annotate(&mut self, line: &str) -> bool {
        if !self.has_room() {
            return false;
        }
        let Some(frame) = self.frames().and_then(|frames| frames.last_mut()) else { return false };
        frame.annotations.push(line.to_owned());
        true
    }

    /// The image of that path; the first mention decides where it lies, and the first identity counts.
    pub(super) fn image(
        &mut self,
        path: &str,
        load_address: Option<Avma>,
        id: Option<ImageId>,
    ) -> Option<usize> {
        let images = &mut self.report.process.images;
        if let Some(&at) = self.images.get(path) {
            if let Some(image) = images.get_mut(at) {
                image.id = image.id.or(id);
            }
            return Some(at);
        }
        if images.len() >= self.limits.max_images {
            return None;
        }
        let image = Image {
            name: file_name(path).to_owned(),
            path: Some(path.to_owned()),
            id,
            load_address: load_address.unwrap_or_default(),
            ..Image::default()
        };
        images.push(image);
        self.images.insert(path.to_owned(), images.len() - 1);
        Some(images.len() - 1)
    }

    pub(super) fn finish(mut self) -> Report {
        if !self.text.trim().is_empty() {
            self.report.sections.push(Section { title: TITLE.to_owned(), text: self.text });
        }
        self.report.notes.extend(self.notes.finish());
        self.report
    }
}

/// The last part of a path of any system.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// A frame with a name and perhaps a place in the source.
pub(super) fn named(index: u32, name: &str, place: Option<SourcePlace<'_>>) -> Frame {
    let reported = ReportedSymbol {
        name: name.to_owned(),
        offset: None,
        file: place.map(|place| place.file.to_owned()),
        line: place.map(|place| place.line).filter(|line| *line != 0),
        column: place.and_then(|place| place.column),
    };
    Frame { reported: Some(reported), ..Frame::new(index) }
}

/// A place in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SourcePlace<'t> {
    pub(super) file: &'t str,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
}

/// Reads `FILE:LINE` or `FILE:LINE:COLUMN`.
pub(super) fn place(text: &str) -> Option<SourcePlace<'_>> {
    let (rest, last) = text.rsplit_once(':').filter(|(_, last)| is_number(last))?;
    match rest.rsplit_once(':').filter(|(file, line)| is_number(line) && !file.is_empty()) {
        Some((file, line)) => {
            Some(SourcePlace { file, line: line.parse().ok()?, column: Some(last.parse().ok()?) })
        }
        None if rest.is_empty() => None,
        None => Some(SourcePlace { file: rest, line: last.parse().ok()?, column: None }),
    }
}

/// The word that a text begins with, and the rest.
pub(super) fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// What stands between two marks.
pub(super) fn between<'t>(text: &'t str, before: &str, behind: &str) -> Option<&'t str> {
    text.split_once(before)?.1.split_once(behind).map(|(inside, _)| inside)
}

/// States how the addresses of a stack are to be read that a debugger walked: the first, and those that a signal
/// interrupted, are exact.
pub(super) fn settle_walked(frames: &mut [Frame], is_signal: impl Fn(&Frame) -> bool) {
    let mut exact = true;
    for frame in frames {
        let raw = frame.address.map(FrameAddress::raw);
        // The kernel returns to the first byte of the function that ends a handler.
        let is_exact = exact || is_signal(frame);
        frame.address =
            raw.map(|avma| if is_exact { FrameAddress::Exact(avma) } else { FrameAddress::Return(avma) });
        // Rows of inlined functions state no address; their machine frame does.
        exact = is_signal(frame) || (exact && frame.address.is_none());
    }
}

/// The name before the parentheses of its arguments, which end the text, and these. Names have parentheses of their own:
/// `(anonymous namespace)::f (x=1)`, `std::function<void (int)>::operator() (this=0x1)`.
pub(super) fn split_arguments(text: &str) -> (&str, Option<&str>) {
    let text = text.trim_end();
    let first = || text.find(" (").map(|at| at + 1);
    let mut depth = 0_usize;
    let opening = text.bytes().enumerate().rev().take(MAX_ARGUMENTS).find(|(_, byte)| {
        match byte {
            b')' => depth += 1,
            b'(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let opening = opening.map(|(at, _)| at).filter(|at| {
        text.ends_with(')') && at.checked_sub(1).and_then(|before| text.as_bytes().get(before)) == Some(&b' ')
    });
    // A parenthesis in a text among the arguments has no partner.
    let Some((name, arguments)) = opening.or_else(first).and_then(|at| text.split_at_checked(at)) else {
        return (text, None);
    };
    (name.trim_end(), Some(arguments))
}

/// Arguments longer than this are searched from their beginning.
const MAX_ARGUMENTS: usize = 64 << 10;

/// Marks a frame as a guess.
pub(super) fn guess(frame: Frame) -> Frame {
    Frame { trust: Trust::Scan, ..frame }
}
