//! Errors that languages' runtimes print with names and places in the source: PHP, Ruby, Erlang and Elixir, OCaml, Haskell,
//! Lua, Julia, Tcl, Perl. Each has a reader of its own; what they share is here.

mod beam;
mod haskell;
mod julia;
mod lua;
mod ocaml;
mod perl;
mod php;
mod ruby;
mod tcl;

use super::log::{Log, SourcePlace, file_name, named};
use crate::Limits;
use crate::apple_text::{Line, Lines};
use crate::log_prefix::plain;
use backtrail_model::{Exception, Frame, Language, Report, Source};

/// A language: how its errors are known by a line, and read.
struct Known {
    is_sure: fn(&str) -> bool,
    read: fn(&[u8], usize, &Limits) -> Option<Report>,
}

/// In the order in which lines are asked.
const LANGUAGES: [Known; 9] = [
    Known { is_sure: php::is_sure, read: php::read },
    Known { is_sure: ruby::is_sure, read: ruby::read },
    Known { is_sure: beam::is_sure, read: beam::read },
    Known { is_sure: ocaml::is_sure, read: ocaml::read },
    Known { is_sure: haskell::is_sure, read: haskell::read },
    Known { is_sure: lua::is_sure, read: lua::read },
    Known { is_sure: julia::is_sure, read: julia::read },
    Known { is_sure: tcl::is_sure, read: tcl::read },
    Known { is_sure: perl::is_sure, read: perl::read },
];

/// Whether a line tells that the text is of this kind.
pub(super) fn is_sure(line: &str) -> bool {
    // This is asked of every line of a text.
    LANGUAGES.iter().any(|language| (language.is_sure)(line))
}

/// Whether a line tells it where nothing else tells another kind.
pub(super) fn is_likely(line: &str) -> bool {
    julia::is_head(line)
}

/// Reads such a text; `None` where it is none.
pub(super) fn read(input: &[u8], start: usize, limits: &Limits) -> Option<Report> {
    let mut lines =
        Lines::new(input, start..input.len(), 1).filter(|line| line.bytes.len() <= limits.max_line);
    let reader = |line: &str| {
        let known = LANGUAGES.iter().find(|language| (language.is_sure)(line));
        known.map(|language| language.read).or_else(|| is_likely(line).then_some(julia::read as _))
    };
    let read = lines.find_map(|line| reader(plain(&line.text()).trim()))?;
    read(input, start, limits)
}

/// A text of such a language that is being read.
struct Text<'l> {
    log: Log<'l>,
    language: Language,
}

impl<'l> Text<'l> {
    fn new(language: Language, limits: &'l Limits) -> Self {
        Self { log: Log::new(Source::RuntimeError, limits), language }
    }

    /// Says what was raised; the first counts.
    fn raise(&mut self, kind: &str, message: &str) {
        let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        self.log.report.exception.get_or_insert_with(|| Exception {
            kind: text(kind),
            message: text(message),
            ..Exception::default()
        });
    }

    fn has_raised(&self) -> bool {
        self.log.report.exception.is_some()
    }

    /// Adds the only frame of an error that says where it was and nothing else.
    fn push_place(&mut self, place: SourcePlace<'_>) -> bool {
        let frame = named(0, &format!("({})", file_name(place.file)), Some(place));
        let language = Some(self.language);
        self.log.begin_backtrace("", false) && self.log.push(Frame { language, ..frame })
    }

    /// Adds a frame to the stack; one without a title begins where there is none.
    fn push(&mut self, name: &str, place: Option<SourcePlace<'_>>, line: &Line<'_>) -> bool {
        if !self.log.is_in_stack() && !self.log.begin_backtrace("", false) {
            return false;
        }
        let index = self.log.next_index();
        // Where a row names no function, its file stands for it.
        let file = place.map(|place| format!("({})", file_name(place.file))).filter(|_| name.is_empty());
        let mut frame = named(index, file.as_deref().unwrap_or(name), place);
        frame.reported = frame.reported.filter(|symbol| !symbol.name.is_empty());
        frame.language = Some(self.language);
        frame.span = Some(line.span.clone());
        self.log.push(frame)
    }

    /// The report, where an error was found or a stack. The first stack is the error's.
    fn finish(self) -> Option<Report> {
        let mut report = self.log.finish();
        let title = report.exception.as_ref().map(title).unwrap_or_default();
        let stacks = &mut report.process.backtraces;
        stacks.retain(|stack| !stack.frames.is_empty());
        if let Some(first) = stacks.first_mut() {
            first.is_exception = true;
            if first.title.is_empty() {
                first.title = if title.is_empty() { "Stack".to_owned() } else { title };
            }
        }
        let is_empty = stacks.is_empty() && report.process.threads.is_empty();
        (!is_empty || report.exception.is_some()).then_some(report)
    }
}

/// An exception in a line.
fn title(exception: &Exception) -> String {
    let (kind, message) = (exception.kind.as_deref(), exception.message.as_deref());
    let message = message.map(|message| message.lines().next().unwrap_or_default());
    [kind, message].into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Turns around stacks that end with the innermost call.
fn turn_around(frames: &mut [Frame]) {
    frames.reverse();
    for (frame, index) in frames.iter_mut().zip(0..) {
        frame.index = index;
    }
}

/// The frames of traces that say of each function where it was called: the place belongs to the caller, whose name the next row
/// has. `first` is where the innermost function was.
fn give_places_to_callers(frames: &mut [Frame], first: Option<SourcePlace<'_>>) {
    let mut before = first.map(|place| (Some(place.file.to_owned()), Some(place.line), place.column));
    for symbol in frames.iter_mut().filter_map(|frame| frame.reported.as_mut()) {
        let own = (symbol.file.take(), symbol.line.take(), symbol.column.take());
        (symbol.file, symbol.line, symbol.column) = before.replace(own).unwrap_or_default();
    }
}

/// The text between quotes of any language's kind: `'x'`, `` `x' ``, `"x"`.
fn unquoted(text: &str) -> &str {
    text.trim_matches(['\'', '`', '"', '\u{2018}', '\u{2019}'])
}
