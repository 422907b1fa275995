//! The frames that a report is grouped by, and the places in images that they are at.

use super::kind::Kind;
use super::{FIFTH, FIRST, FOURTH, SECOND, THIRD, stall};
use crate::explain::blamed::{FaultPlace, fault_place};
use crate::explain::stack::repeat_of;
use crate::names::{BASES, image_name, image_of, is_any_of};
use crate::suspect::{EVENT_LOOPS, handlers_frames, is_of_sentrys_script, is_reporters, kind_of, owner_of};
use backtrail_core::{Arch, Trust};
use backtrail_model::{Backtrace, Frame, Language, OwnerKind, Report, Source};

/// Frames that are looked at; what lies further out called half of the program.
const MAX_FRAMES: usize = 512;

/// Places of the program's own that a key has. The number must not depend on names, which may be found later. Without names
/// nothing tells a helper from what calls it, so that there are as many places as a symbol key has names.
const OWN_SPOTS: usize = 5;

/// The same where the program may be one of Rust's that panicked: up to 14 of its own innermost functions are then those of all panics.
const PANIC_SPOTS: usize = 20;

/// Places that the key of a stack without own frames has: its innermost are the same in every abort.
const SYSTEM_SPOTS: usize = 8;

/// Places that a key has where nothing identifies the build.
const MAX_UNPROVEN: usize = 64;

/// Images of C++'s runtimes.
const CPP_RUNTIMES: [&str; 3] = ["libstdc++", "libc++", "libgcc_s"];

/// Whose frames are there to group by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Level {
    /// The program's, or those of libraries that it ships.
    Own,
    /// Those of which nobody knows whose they are.
    Unknown,
    /// The system's alone.
    System,
}

/// The frames that a report is grouped by, innermost first.
pub(super) struct Places<'r> {
    /// How evidence names the stack.
    pub(super) stack: String,
    pub(super) level: Level,
    pub(super) frames: Vec<&'r Frame>,
    /// Frames of the system in front of the only own one, which is where the program began: they tell more.
    before: Vec<&'r Frame>,
    /// Whether the innermost frame is Objective-C's runtime: a message to a broken object is another bug than a fault of the
    /// function that sent it, or of one that a reporter lost since message sending has no frame of its own.
    pub(super) is_in_objc: bool,
    /// Whether they are one round of a recursion that used up the stack.
    pub(super) is_recursion: bool,
    /// Whether the stack goes on to where its thread began.
    pub(super) is_whole: bool,
    /// Frames of the interrupt that reported a stall, which are left out.
    pub(super) reporting: usize,
    /// Own frames of the exception around a shortened cause of Java's, which go on where the cause's end. They have no part in the
    /// key without names, which they would change.
    pub(super) behind: Vec<&'r Frame>,
    /// Whether the runtime of C++ is among the innermost frames: what ended the program may have been thrown.
    pub(super) is_cpp_runtimes: bool,
    /// Whether the innermost places may be those of any panic of Rust's.
    pub(super) may_be_panic: bool,
    /// How many frames of the stack make one round, where it consists of rounds up to where it was cut.
    round: Option<usize>,
}

/// What a report has to be grouped by.
pub(super) enum Found<'r> {
    Places(Places<'r>),
    /// A stack that ends in the system's code: as very many bugs' do, so that the report's words tell no more than may be.
    OfSystemAndCut,
    /// No stack.
    Nothing,
}

impl<'r> Places<'r> {
    pub(super) fn of(report: &'r Report, kind: &Kind) -> Found<'r> {
        let Some((stack, mut frames)) = stall::stalled(report).or_else(|| stack_of(report)) else {
            return Found::Nothing;
        };
        let reporting = stall::reporting(report, &frames);
        frames.drain(..reporting);
        let all = frames.len();
        let mut is_recursion = false;
        let frames = match round_of(&frames) {
            Some(round) => {
                is_recursion = true;
                round
            }
            None => frames,
        };
        let behind = behind_cause(report);
        let is_whole = is_recursion || (is_whole(&frames) && !is_shortened(report, &behind));
        let round = if is_whole { None } else { round_up_to_the_end(&frames) };
        let mut owners = Owners::new(report);
        let owner: Vec<OwnerKind> = frames.iter().map(|frame| owners.of(frame)).collect();
        let with = |wanted: &dyn Fn(OwnerKind) -> bool| -> Vec<(usize, &'r Frame)> {
            let pairs = frames.iter().zip(&owner).enumerate();
            let pairs = pairs.filter(|(_, (frame, owner))| wanted(**owner) && !is_reporters(report, frame));
            pairs.map(|(at, (frame, _))| (at, *frame)).collect()
        };
        let own = with(&|owner| matches!(owner, OwnerKind::App | OwnerKind::Sdk));
        let unknown = || with(&|owner| owner == OwnerKind::Unknown);
        let is_in_objc = frames
            .first()
            .is_some_and(|frame| image_name(report, frame).is_some_and(|name| name.starts_with("libobjc.")));
        let known_of =
            |(_, frame): &(usize, &Frame)| image_name(report, frame).is_some() || !frame.is_unnamed();
        // An address in no image is no place: it is what was left of a pointer that was overwritten.
        let systems =
            || with(&|owner| owner == OwnerKind::System || matches!(owner, OwnerKind::App | OwnerKind::Sdk));
        let (level, chosen) = match own.is_empty() {
            false => (Level::Own, own),
            true => {
                let unknown: Vec<_> = unknown().into_iter().filter(known_of).collect();
                if unknown.is_empty() { (Level::System, systems()) } else { (Level::Unknown, unknown) }
            }
        };
        // The program's only frame is the one that called the system's event loop, or may be: `main`.
        let only = chosen
            .first()
            .filter(|(at, _)| level == Level::Own && chosen.len() == 1 && *at > 0 && at + 3 > all);
        let before = only.and_then(|(at, _)| frames.get(..*at)).unwrap_or_default().to_vec();
        let ran_loop = before.iter().any(|frame| is_any_of(frame, &EVENT_LOOPS));
        let (level, chosen) = if ran_loop { (Level::System, systems()) } else { (level, chosen) };
        let before = if ran_loop { Vec::new() } else { before };
        // The top of a stack whose rest is lost is the same in very many bugs: the throw of an exception, a call to `abort`.
        if level == Level::System && !is_whole {
            return if all == 0 { Found::Nothing } else { Found::OfSystemAndCut };
        }
        let first = chosen.first().map_or(0, |(at, _)| *at);
        let is_cpp = |frame: &&Frame| {
            image_name(report, frame).is_some_and(|name| CPP_RUNTIMES.iter().any(|it| name.starts_with(it)))
        };
        let is_cpp_runtimes = frames.iter().take(first).any(is_cpp);
        let behind = behind.into_iter().filter(|frame| {
            let owner = owners.of(frame);
            match level {
                Level::Own => matches!(owner, OwnerKind::App | OwnerKind::Sdk),
                Level::Unknown => owner == OwnerKind::Unknown,
                Level::System => false,
            }
        });
        let behind: Vec<&Frame> = behind.collect();
        let frames: Vec<&Frame> = chosen.into_iter().map(|(_, frame)| frame).collect();
        if frames.is_empty() {
            return Found::Nothing;
        }
        Found::Places(Self {
            stack,
            level,
            frames,
            before,
            is_in_objc,
            is_recursion,
            is_whole,
            reporting,
            behind,
            is_cpp_runtimes,
            may_be_panic: level == Level::Own && may_be_panic(report, kind),
            round,
        })
    }

    /// What the innermost frame adds to the sort of event.
    pub(super) fn via(&self) -> &'static str {
        if self.is_in_objc { " in Objective-C's runtime" } else { "" }
    }

    /// The own frames of one round, where the stack consists of rounds up to where it was cut.
    pub(super) fn cut_round(&self) -> Option<Vec<&'r Frame>> {
        let last = self.frames.len().checked_sub(self.round?)?;
        self.frames.get(last..).map(<[&Frame]>::to_vec)
    }

    /// Whether builds are told apart by the images' identities at all places that a key has.
    pub(super) fn is_proven(&self, report: &Report) -> bool {
        let least = self.least();
        let is_proven = |frame: &Frame| {
            let image = image_of(report, frame);
            frame.language.is_some()
                || image.is_some_and(|image| image.id.is_some() || image.version.is_some())
        };
        self.frames.iter().copied().take(least).all(is_proven)
    }

    /// How many places a key has.
    pub(super) fn least(&self) -> usize {
        match self.level {
            Level::Own | Level::Unknown if self.may_be_panic => PANIC_SPOTS,
            Level::Own | Level::Unknown => OWN_SPOTS,
            Level::System => SYSTEM_SPOTS,
        }
    }

    /// Says which frames were chosen.
    pub(super) fn why(&self) -> String {
        let what = match self.level {
            Level::Own => "the frames of the program and the libraries that it ships",
            Level::Unknown => "the frames of which the report does not tell whose they are",
            Level::System => "the system's frames: there are no others",
        };
        let round = if self.is_recursion { ", of one round of the recursion" } else { "" };
        let behind = match self.reporting {
            0 if self.may_be_panic => format!(
                "; the program may be Rust's, of whose panics the innermost places are the same, so that {PANIC_SPOTS} count"
            ),
            0 => String::new(),
            count => format!(", behind {count} of the interrupt that reported the stall"),
        };
        format!("{}: {what}{round}{behind}", self.stack)
    }

    /// The version of the rules that made these places.
    pub(super) fn version(&self, report: &Report) -> &'static str {
        match self.reporting {
            0 if self.frames.iter().any(|frame| is_of_sentrys_script(report, frame)) => THIRD,
            0 => FIRST,
            _ => SECOND,
        }
    }

    /// The same of the key without names.
    pub(super) fn version_of_places(&self, report: &Report) -> &'static str {
        let is_relative = || self.frames.iter().any(|frame| is_relative(report, frame));
        match () {
            () if self.may_be_panic => FIFTH,
            () if is_relative() => FOURTH,
            () => self.version(report),
        }
    }

    /// The first few places in images. Names have no part in it.
    pub(super) fn spots(&self, report: &Report) -> Vec<String> {
        let least = self.least();
        // Offsets in a build that nothing identifies are those of other builds as well: the whole stack has to be the same.
        let is_unproven = !self.is_proven(report);
        let least = if is_unproven { MAX_UNPROVEN } else { least };
        let inner = self.before.iter().take(SYSTEM_SPOTS);
        let frames = self.frames.iter().take(least);
        let mut spots: Vec<String> = inner.chain(frames).map(|frame| spot(report, frame)).collect();
        if self.is_recursion {
            // Where in the round the stack ran out is chance.
            spots.sort();
        }
        // Rows of functions that were inlined are at the same place as the row behind them.
        spots.dedup();
        spots
    }

    /// Where it happened, for a title.
    pub(super) fn first_spot(&self, report: &Report) -> Option<String> {
        let frame = self.frames.first()?;
        let name = image_name(report, frame)?;
        offset_of(report, frame).map(|offset| format!("{name} + {offset:#x}"))
    }
}

/// Whether a program that aborted may be one of Rust's that panicked, of which nothing but its stack is known: what unwinds stacks is
/// loaded, and no runtime of C++. Names would tell, but the places must be the same without them.
fn may_be_panic(report: &Report, kind: &Kind) -> bool {
    let is_loaded = |start: &str| report.process.images.iter().any(|image| image.name.starts_with(start));
    kind.is_plain_abort() && is_loaded("libgcc_s.so") && !is_loaded("libstdc++") && !is_loaded("libc++")
}

/// Tells of frames whose they are, by their images, which are asked once each, and else by the frames' own owners.
///
/// What the program ships is its own for this also where names tell that it is the compiler's: places must not change when names
/// are found later. The names of such frames are passed over.
struct Owners<'r> {
    report: &'r Report,
    known: Vec<Option<OwnerKind>>,
}

impl<'r> Owners<'r> {
    fn new(report: &'r Report) -> Self {
        Self { report, known: vec![None; report.process.images.len()] }
    }

    fn of(&mut self, frame: &Frame) -> OwnerKind {
        match self.of_image(frame) {
            own @ (OwnerKind::App | OwnerKind::Sdk) => own,
            of_image => match kind_of(self.report, frame) {
                OwnerKind::Unknown => of_image,
                kind => kind,
            },
        }
    }

    fn of_image(&mut self, frame: &Frame) -> OwnerKind {
        // Of managed code the class decides, and of what runtimes wrote the name, not the image.
        let is_by_image = frame.language.is_none() && !self.report.source.is_runtimes();
        let slot = frame.image.filter(|_| is_by_image).and_then(|image| self.known.get_mut(image));
        match slot {
            Some(Some(owner)) => *owner,
            Some(slot) => *slot.insert(owner_of(self.report, frame).owner),
            None => owner_of(self.report, frame).owner,
        }
    }
}

/// The stack that shows what happened, without guesses.
fn stack_of(report: &Report) -> Option<(String, Vec<&Frame>)> {
    let (stack, frames) = telling_stack(report)?;
    // Linux's kernel marks its guesses among frames that it is sure of.
    let certain = frames.into_iter().filter(|frame| frame.trust != Trust::Scan);
    Some((stack, certain.take(MAX_FRAMES).collect()))
}

/// The stack that shows what happened, innermost frame first and without the frames of signal handlers, and how evidence names it:
/// that of the fault, of the exception that nobody caught, of its root cause, or the heaviest of samples. Grouping goes by it.
pub fn telling_stack(report: &Report) -> Option<(String, Vec<&Frame>)> {
    if let Some(root) = root_cause(report) {
        return Some(root);
    }
    let (stack, frames) = match fault_place(report) {
        Some(FaultPlace::Frame(stack, frame)) => return Some((stack, vec![frame])),
        Some(FaultPlace::Stack(stack, frames)) if !frames.is_empty() => (stack, frames),
        _ => return heaviest(report),
    };
    let frames = frames.get(handlers_frames(frames)..).filter(|rest| !rest.is_empty()).unwrap_or(frames);
    Some((stack, frames.iter().collect()))
}

/// Java's exceptions are wrapped into others on their way out; the innermost cause is the bug.
fn root_cause(report: &Report) -> Option<(String, Vec<&Frame>)> {
    let root = root_of(report)?;
    let title = root.title.lines().next().unwrap_or_default().trim();
    Some((title.to_owned(), root.frames.iter().take(MAX_FRAMES).collect()))
}

fn root_of(report: &Report) -> Option<&Backtrace> {
    if !report.source.is_android_or_java() {
        return None;
    }
    let mut causes = report.process.backtraces.iter().filter(|it| it.is_exception && !it.frames.is_empty());
    causes.rfind(|it| it.title.trim_start().starts_with("Caused by"))
}

/// Of samples, the stack that most of them have.
fn heaviest(report: &Report) -> Option<(String, Vec<&Frame>)> {
    if !matches!(report.source, Source::AppleSamples | Source::MetricKit | Source::AppleIpsOther) {
        return None;
    }
    let trees = report.process.trees.iter();
    let tree = trees.max_by_key(|tree| tree.nodes.first().map_or(0, |node| node.weight))?;
    let frames: Vec<_> = tree.stack(tree.heaviest()?).take(MAX_FRAMES).collect();
    (!frames.is_empty()).then(|| (format!("the heaviest stack of {:?}", tree.title), frames))
}

/// One round of the recursion that used up the stack.
fn round_of<'r>(frames: &[&'r Frame]) -> Option<Vec<&'r Frame>> {
    let found = repeat_of(frames.iter().copied())?;
    frames.get(found.start..found.start + found.period).map(<[&Frame]>::to_vec)
}

/// Frames that JavaScript's errors have at most, if nobody asked for more (`Error.stackTraceLimit`).
const SCRIPT_LIMIT: usize = 10;

/// Whether the outermost frames are those in which programs and threads begin.
fn is_whole(frames: &[&Frame]) -> bool {
    let is_limited = frames.len() == SCRIPT_LIMIT
        && frames.iter().all(|frame| frame.language == Some(Language::JavaScript));
    // Runtimes write down managed stacks from one end to the other.
    let is_managed = frames.last().is_some_and(|frame| frame.language.is_some()) && !is_limited;
    is_managed || frames.iter().rev().take(3).any(|frame| is_any_of(frame, &BASES))
}

/// Rounds of a recursion that a stack has to consist of where it was cut before so many that it is one for certain.
const MIN_ROUNDS: usize = 2;
const MIN_REPEATED: usize = 4;

/// How many frames make a round, where the stack consists of rounds up to its end; frames at its innermost end may be those in which
/// the recursion ran out.
fn round_up_to_the_end(frames: &[&Frame]) -> Option<usize> {
    const MAX_START: usize = 8;
    // Android's reports have places in images alone.
    let key = |frame: &&Frame| match (frame.address, frame.relative_pc) {
        (Some(address), _) => Some((None, address.raw().get())),
        (None, Some(place)) => Some((frame.image, place.get())),
        (None, None) => None,
    };
    let keys: Vec<_> = frames.iter().map(key).collect();
    (0..keys.len().min(MAX_START)).find_map(|start| {
        let rest = keys.get(start..)?;
        let most = rest.len() / MIN_ROUNDS;
        let repeats = |period: &usize| {
            let behind = rest.get(*period..).unwrap_or_default();
            behind.iter().zip(rest).all(|(one, other)| one.is_some() && one == other)
        };
        (rest.len() >= MIN_REPEATED).then(|| (1..=most).find(repeats))?
    })
}

/// The frames that Java leaves out of a cause, since the exception around it has the same: `... 45 more`.
fn behind_cause(report: &Report) -> Vec<&Frame> {
    /// So many are looked at.
    const MAX: usize = 64;
    if !report.source.is_android_or_java() {
        return Vec::new();
    }
    let told = |it: &&Backtrace| it.is_exception && !it.frames.is_empty();
    let causes: Vec<&Backtrace> = report.process.backtraces.iter().filter(told).collect();
    let is_cause = |it: &&Backtrace| it.title.trim_start().starts_with("Caused by");
    let Some(root) = causes.iter().rposition(is_cause) else { return Vec::new() };
    let Some(mut more) = causes.get(root).and_then(|cause| frames_more(cause)) else { return Vec::new() };
    let mut behind: Vec<&Frame> = Vec::new();
    for outer in causes.iter().take(root).rev() {
        let left_out = frames_more(outer).unwrap_or_default();
        // The exception around it is another one, which the report does not have.
        let first = outer.frames.len().checked_sub(more.saturating_sub(left_out));
        let Some(first) = first.filter(|_| !outer.title.trim_start().starts_with("Suppressed")) else {
            return Vec::new();
        };
        behind.extend(outer.frames.iter().skip(first));
        more = more.min(left_out);
        if more == 0 {
            break;
        }
    }
    behind.truncate(MAX);
    behind
}

/// Whether a cause of Java's was shortened, and what it says is elsewhere is not.
fn is_shortened(report: &Report, behind: &[&Frame]) -> bool {
    behind.is_empty() && root_of(report).is_some_and(|root| frames_more(root).is_some())
}

/// How many frames a cause says that it has more.
fn frames_more(cause: &Backtrace) -> Option<usize> {
    let notes = &cause.frames.last()?.annotations;
    notes.iter().find_map(|note| note.strip_prefix("... ")?.strip_suffix(" more")?.parse().ok())
}

/// The place of a frame, by its image's identity: what every report of that place in that build says.
fn spot(report: &Report, frame: &Frame) -> String {
    let is_place = frame.address.is_some()
        || (frame.image_offset.is_some() && frame.is_unnamed())
        || is_relative(report, frame);
    if !is_place || frame.language.is_some() {
        // Known by its names alone, which may be obfuscated: those of one version only are the same.
        let reported = frame.reported.as_ref();
        let name = reported.map_or_else(|| frame.names().next().unwrap_or("?"), |it| it.name.as_str());
        let file = file_of(frame).map(|file| format!(" {file}")).unwrap_or_default();
        let line = reported.and_then(|it| it.line).map(|line| format!(":{line}")).unwrap_or_default();
        let version = report.process.version.as_deref().unwrap_or_default();
        return format!("{name}{file}{line} {version}");
    }
    let image = image_of(report, frame);
    let id = image.and_then(|image| image.id).map(|id| id.to_string());
    let name = image_name(report, frame).unwrap_or("?");
    let offset = offset_of(report, frame);
    let address = frame.address.map(|address| address.raw().to_string()).unwrap_or_default();
    let place = offset.map_or(address, |offset| format!("{offset:#x}"));
    match id {
        Some(id) => format!("{id}+{place}"),
        // Nothing proves that it is the same build: what else is known of it must be the same.
        None => {
            let version =
                image.and_then(|image| image.version.as_deref()).or(report.process.version.as_deref());
            let who = report.process.identifier.as_deref().or(report.process.name.as_deref());
            format!("{name} {} {}+{place}", version.unwrap_or_default(), who.unwrap_or_default())
        }
    }
}

/// Whether a frame's place in its image is stated, and no other address: as Android's reports do.
fn is_relative(report: &Report, frame: &Frame) -> bool {
    let is_stated = frame.relative_pc.is_some() && image_of(report, frame).is_some();
    is_stated && frame.address.is_none() && frame.image_offset.is_none() && frame.language.is_none()
}

/// The source file of a function whose name alone does not tell it from those of other files. Names of Java, Go and .NET have their class or package in front.
pub(super) fn file_of(frame: &Frame) -> Option<&str> {
    if matches!(frame.language, Some(Language::Java | Language::Go | Language::DotNet)) {
        return None;
    }
    let reported = frame.reported.as_ref().and_then(|reported| reported.file.as_deref());
    let found = frame.functions.last().and_then(|function| function.file.as_deref());
    Some(short_path(found.or(reported).filter(|path| !path.is_empty())?))
}

/// The last part of a path, or two where the last is the same in very many directories.
pub(super) fn short_path(path: &str) -> &str {
    let is_separator = |c: char| matches!(c, '/' | '\\');
    let name = path.rsplit(is_separator).next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    if !matches!(stem, "index" | "main" | "mod" | "lib" | "__init__" | "__main__") {
        return name;
    }
    let start = path.rmatch_indices(is_separator).nth(1).map_or(0, |(at, _)| at + 1);
    path.get(start..).unwrap_or(path)
}

/// How far into its image a frame's instruction lies; of a return address, the call in front of it.
fn offset_of(report: &Report, frame: &Frame) -> Option<u64> {
    let relative = || frame.relative_pc.map(backtrail_core::Svma::get);
    let Some(address) = frame.address else { return frame.image_offset.or_else(relative) };
    let arch = report.process.arch.unwrap_or(Arch::X86_64);
    let load = image_of(report, frame).map(|image| image.load_address.get());
    let inside = load.and_then(|load| address.lookup(arch).get().checked_sub(load));
    inside.or(frame.image_offset)
}
