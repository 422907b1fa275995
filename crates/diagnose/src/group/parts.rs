//! The names of a symbol key: from the innermost function to the first that tells the bug.

use super::name::{called_lambda, normalised, normalised_java, normalised_script};
use super::places::{Level, Places, file_of};
use super::telling::{is_entry, lately_passed, library_reason, sharing_reason, tells_panic};
use crate::names::{base_name, image_name};
use crate::suspect::skip::{PANICS, skip_reason};
use crate::suspect::{is_of_sentrys_script, kind_of};
use backtrail_model::{Frame, Language, OwnerKind, Report, Source};

/// A key has at most so many names: who calls a helper of a helper of a helper is told well enough.
const MAX_PARTS: usize = 5;

/// Names that the key of a stack without own frames has. Functions of the system have many callers.
const SYSTEM_PARTS: usize = 4;

/// So many frames are looked at for them.
const MAX_FRAMES: usize = 64;

/// So many lines say what was passed over.
const MAX_WHY: usize = 6;

/// What names tell.
#[derive(Default)]
pub(super) struct Parts {
    /// The names, each with its image, innermost first.
    pub(super) texts: Vec<String>,
    /// Whether they are all that a symbol key needs.
    pub(super) is_complete: bool,
    /// What it lacks.
    pub(super) lacks: String,
    /// Where reading them ended.
    pub(super) ending: Ending,
    /// Whether frames of the exception around a shortened cause are among them.
    pub(super) is_continued: bool,
    /// Whether the rules of version 5 made them other than those of version 1 did.
    pub(super) is_fifth: bool,
    /// The function to name in a title.
    pub(super) place: Option<String>,
    /// What was passed over and what was taken along, one sentence each.
    pub(super) why: Vec<String>,
    /// Whether one of the functions has a name of its own, where that has to be.
    is_named: bool,
    /// The function of Rust's library that a panic began in, where that tells what went wrong.
    panicked: Option<String>,
}

/// Where reading the names ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Ending {
    /// At a function that tells the bug, or at as many as a key has.
    #[default]
    Told,
    /// At a frame without a name.
    Name,
    /// With the stack.
    Stack,
}

/// Why a function without a name does not tell a bug.
const UNNAMED: &str = "has no name of its own";

/// What a function is to the key.
enum Role {
    /// Nothing: the one behind it is asked.
    Passed(&'static str),
    /// The same, by the rules of version 5 alone.
    PassedLately(&'static str),
    /// A part of it, but not enough.
    Shared(&'static str),
    /// The same, of a function that its file may have many of.
    Unnamed,
    /// Where the code was started from.
    Entry,
    /// The one that tells the bug.
    Telling,
}

impl Parts {
    pub(super) fn of(report: &Report, places: &Places<'_>) -> Self {
        let mut parts = Self::default();
        if places.is_recursion {
            parts.read_round(report, places.level, &places.frames);
        } else {
            parts.read(report, places);
        }
        parts
    }

    fn read(&mut self, report: &Report, places: &Places<'_>) {
        let inner = places.frames.iter().map(|frame| (frame, false));
        let outer = places.behind.iter().map(|frame| (frame, true));
        for (frame, is_behind) in inner.chain(outer).take(MAX_FRAMES) {
            let before = self.texts.len();
            let is_told = self.read_frame(report, places.level, frame);
            self.is_continued |= is_behind && self.texts.len() > before;
            if is_told || !self.lacks.is_empty() {
                return;
            }
        }
        self.ending = Ending::Stack;
        if self.texts.is_empty() {
            "none of the functions is more than a helper of others".clone_into(&mut self.lacks);
        } else if places.level == Level::System || places.is_whole {
            self.complete();
        } else {
            "the stack ends before a function that tells the bug".clone_into(&mut self.lacks);
        }
    }

    /// Reads the functions at one frame. Tells whether the key is complete.
    fn read_frame(&mut self, report: &Report, level: Level, frame: &Frame) -> bool {
        let mut is_named = false;
        for raw in frame.names() {
            is_named = true;
            let Some(name) = readable(frame, raw) else {
                self.lack(report, frame);
                return false;
            };
            // A lambda that a compiler put into what calls it, of which the debug information says nothing.
            let name = called_lambda(raw).filter(|_| frame.language.is_none()).unwrap_or(name);
            self.is_fifth |= raw.contains('`');
            let role = role(report, frame, raw, &name, level);
            match role {
                Role::Passed(reason) | Role::PassedLately(reason) => {
                    self.is_fifth |= matches!(role, Role::PassedLately(_));
                    if tells_panic(&name) && [base_name(raw), &name].into_iter().any(is_panics) {
                        self.panicked = Some(name.clone());
                    }
                    self.say(format!("frame {}: `{name}` is passed over: it {reason}", frame.index));
                }
                Role::Entry if !self.texts.is_empty() => return self.complete(),
                Role::Entry | Role::Telling => {
                    self.is_named = true;
                    self.push(report, frame, &name);
                    self.tell_closure(&name);
                    let needed = if level == Level::System { SYSTEM_PARTS } else { 1 };
                    if needed == 1 || self.texts.len() >= needed {
                        self.place = Some(name).filter(|_| level != Level::System).or(self.place.take());
                        return self.complete();
                    }
                }
                shared @ (Role::Shared(_) | Role::Unnamed) => {
                    self.is_named |= matches!(shared, Role::Shared(_));
                    let reason = if let Role::Shared(reason) = shared { reason } else { UNNAMED };
                    self.say(format!(
                        "frame {}: `{name}` {reason}, so its caller counts as well",
                        frame.index
                    ));
                    self.push(report, frame, &name);
                    if self.texts.len() >= MAX_PARTS {
                        return self.complete();
                    }
                }
            }
        }
        if !is_named {
            self.lack(report, frame);
        }
        false
    }

    /// The names of one round of a recursion that a cut stack shows; none where one of them is missing.
    pub(super) fn of_round(report: &Report, places: &Places<'_>, round: &[&Frame]) -> Vec<String> {
        let mut parts = Self::default();
        parts.read_round(report, places.level, round);
        if parts.is_complete { parts.texts } else { Vec::new() }
    }

    /// The names of one round of a recursion, in an order of their own.
    fn read_round(&mut self, report: &Report, level: Level, round: &[&Frame]) {
        for frame in round {
            let mut is_named = false;
            for raw in frame.names() {
                is_named = true;
                let Some(name) = readable(frame, raw) else {
                    self.lack(report, frame);
                    return;
                };
                match role(report, frame, raw, &name, level) {
                    Role::Passed(_) => {}
                    Role::PassedLately(_) => self.is_fifth = true,
                    _ => self.push(report, frame, &name),
                }
            }
            if !is_named {
                self.lack(report, frame);
                return;
            }
        }
        self.texts.sort();
        self.texts.dedup();
        self.is_complete = !self.texts.is_empty();
        if !self.is_complete {
            "all functions of the round are helpers of others".clone_into(&mut self.lacks);
        }
    }

    /// A function may have several closures, whose names are the same. Their numbers change with the next closure that is written in front
    /// of them; what went wrong does not.
    fn tell_closure(&mut self, name: &str) {
        let Some(panicked) = self.panicked.take().filter(|_| name.ends_with("::{closure}")) else { return };
        self.is_fifth = true;
        self.say(format!("`{name}` may be one of several closures, so that `{panicked}` counts as well"));
        self.texts.push(panicked);
    }

    fn complete(&mut self) -> bool {
        self.is_complete = self.is_named;
        if !self.is_named {
            "no function has a name of its own".clone_into(&mut self.lacks);
        }
        self.is_complete
    }

    fn lack(&mut self, report: &Report, frame: &Frame) {
        self.ending = Ending::Name;
        let image = image_name(report, frame).unwrap_or("an unknown image");
        self.lacks = format!("frame {} in {image} has no name", frame.index);
    }

    fn push(&mut self, report: &Report, frame: &Frame, name: &str) {
        let text = match module(report, frame) {
            Some(module) => format!("{name} ({module})"),
            None => name.to_owned(),
        };
        // A function that calls itself is one.
        if self.texts.last() != Some(&text) {
            self.texts.push(text);
        }
        if self.place.is_none() {
            self.place = Some(name.to_owned());
        }
    }

    fn say(&mut self, line: String) {
        if self.why.len() < MAX_WHY {
            self.why.push(line);
        }
    }
}

/// Whether a function is one of those by which Rust panics.
fn is_panics(name: &str) -> bool {
    skip_reason(name) == Some(PANICS)
}

fn readable(frame: &Frame, raw: &str) -> Option<String> {
    match frame.language {
        Some(Language::Java) => normalised_java(raw),
        Some(Language::Python | Language::JavaScript) => normalised_script(raw),
        _ => normalised(raw),
    }
}

/// Whether a function's name is what clients write in the place of one: `?`, `Object.<anonymous>`, `{closure}`. A file may have
/// many of them.
fn is_unnamed(name: &str) -> bool {
    let last = name.rsplit(['.', '/', '\\', ':']).next().unwrap_or(name).trim();
    matches!(last, "" | "?" | "anonymous") || last.starts_with('<') || last.starts_with('{')
}

fn role(report: &Report, frame: &Frame, raw: &str, name: &str, level: Level) -> Role {
    let is_managed = frame.language.is_some();
    if level == Level::Own && kind_of(report, frame) == OwnerKind::System {
        return Role::Passed("is the compiler's or the system's code inside of the program");
    }
    if let Some(reason) = skip_reason(base_name(raw)).or_else(|| skip_reason(name)).filter(|_| !is_managed) {
        return Role::Passed(reason);
    }
    if let Some(reason) = library_reason(name).filter(|_| !is_managed && level != Level::System) {
        return Role::Passed(reason);
    }
    if let Some(reason) = lately_passed(report.source, frame.language, name) {
        return Role::PassedLately(reason);
    }
    if is_entry(name) {
        return Role::Entry;
    }
    // Seen in syzbot's reports: all checks of locks, lists and timers end in a few functions.
    if report.source == Source::LinuxKernel {
        return Role::Shared("is the kernel's, where most functions have many callers");
    }
    // Java's constructors have brackets, and their class in front.
    let has_class = frame.language == Some(Language::Java);
    if is_of_sentrys_script(report, frame) && !has_class && is_unnamed(name) {
        return Role::Unnamed;
    }
    if is_managed && frame.language != Some(Language::Java) && raw.contains('<') {
        return Role::Shared(UNNAMED);
    }
    match sharing_reason(name).filter(|_| level != Level::System) {
        Some(reason) => Role::Shared(reason),
        None => Role::Telling,
    }
}

/// The image of a frame as its makers call it, whatever version and file it is, or the source file of one that has none: functions
/// of the same name in two programs are two functions.
fn module(report: &Report, frame: &Frame) -> Option<String> {
    if frame.language.is_some() {
        return file_of(frame).map(str::to_owned);
    }
    let Some(name) = image_name(report, frame) else { return file_of(frame).map(str::to_owned) };
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let name = name.split(".so").next().unwrap_or(name);
    let ends = [".debug.dylib", ".dylib", ".dll", ".exe", ".DLL", ".EXE"];
    let name = ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    // `libfoo.1.2` and `libfoo-1.2` are the next release's `libfoo.1.3` and `libfoo-1.3`.
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let name = name.strip_suffix('-').unwrap_or(name);
    (!name.is_empty()).then(|| name.to_owned())
}
