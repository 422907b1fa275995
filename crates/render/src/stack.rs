//! A stack as rows: one row a machine frame, and one for each function inlined there. Source paths are shortened by what they
//! all have in common.

use backtrail::{Frame, Function, Image, OwnerKind, Report, Trust, is_system};
use std::fmt::Write as _;

/// One line of a stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The frame's number; `None` on the rows of a frame that follow its first.
    pub index: Option<u32>,
    /// The image's name.
    pub image: String,
    /// The function, `name + offset`, or the bare address.
    pub what: String,
    /// `file:line:column`.
    pub place: Option<String>,
    /// Whether this function is inlined into the next row's.
    pub inlined: bool,
    /// Why there is no name.
    pub reason: Option<&'static str>,
    /// How the frame was found, where that is no sure way: `by frame-pointer`, `by scan, a guess`.
    pub doubt: Option<String>,
    /// Whether the frame was found by scanning, and may be none.
    pub is_guess: bool,
    /// Whether backtrail found the name, or the report has it with a line.
    pub located: bool,
    /// Whether the code is the system's.
    pub is_system: bool,
    /// The library that the code is, where the image has another's name: one that was linked into the app.
    pub owner: Option<String>,
}

/// The longest cycle of calls that is folded: mutual recursion seldom has more members.
const MAX_CYCLE: usize = 8;
/// How often a cycle has to repeat before it is folded.
const MIN_REPEATS: usize = 3;

/// The rows of `frames`; recursion is shown once, with how often it repeats.
pub fn rows(report: &Report, frames: &[Frame], directory: Option<&str>) -> Vec<Row> {
    rows_of(&report.process.images, frames, directory, &|frame| is_system(report, frame))
}

/// The same, of a process with these images.
pub fn rows_in(images: &[Image], frames: &[Frame], directory: Option<&str>) -> Vec<Row> {
    rows_of(images, frames, directory, &|_| false)
}

fn rows_of(
    images: &[Image],
    frames: &[Frame],
    directory: Option<&str>,
    is_system: &dyn Fn(&Frame) -> bool,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut rest = frames;
    while let Some(frame) = rest.first() {
        let (cycle, repeats) = recursion(rest);
        let (shown, after) = rest.split_at(cycle.max(1));
        rows.extend(shown.iter().flat_map(|frame| frame_rows(images, frame, directory, is_system(frame))));
        let folded = cycle * repeats;
        rest = after.get(folded..).unwrap_or_default();
        if folded > 0 {
            rows.push(folded_row(frame.index, cycle, repeats));
        }
    }
    rows
}

/// The shortest cycle that `frames` begin with, and how often it repeats after its first round; 0 without one.
fn recursion(frames: &[Frame]) -> (usize, usize) {
    // A guess is shown where it stands.
    let is_certain = |frame: &Frame| frame.address.is_some() && frame.trust != Trust::Scan;
    let same =
        |a: &Frame, b: &Frame| is_certain(a) && is_certain(b) && a.address == b.address && a.image == b.image;
    for cycle in 1..=MAX_CYCLE.min(frames.len() / 2) {
        let pairs = frames.iter().zip(frames.get(cycle..).unwrap_or_default());
        let repeats = pairs.take_while(|(a, b)| same(a, b)).count() / cycle;
        if repeats >= MIN_REPEATS {
            return (cycle, repeats);
        }
    }
    (0, 0)
}

fn folded_row(first: u32, cycle: usize, repeats: usize) -> Row {
    let frames = if cycle == 1 { "the frame above".to_owned() } else { format!("the {cycle} frames above") };
    let last = u32::try_from(cycle * (repeats + 1)).map_or(u32::MAX, |count| first.saturating_add(count - 1));
    let what = format!("… {frames} {repeats} more times, up to frame {last}");
    further_row(what)
}

/// A row that belongs to the frame above.
fn further_row(what: String) -> Row {
    Row {
        index: None,
        image: String::new(),
        what,
        place: None,
        inlined: false,
        reason: None,
        doubt: None,
        is_guess: false,
        located: false,
        is_system: false,
        owner: None,
    }
}

/// The library that a frame's code is, with its version, where that is not told by the name of the image.
fn library(frame: &Frame, image: &str) -> Option<String> {
    let owner = frame.owner.as_ref().filter(|owner| owner.kind == OwnerKind::Sdk)?;
    let name = owner.name.as_deref().filter(|name| *name != image)?;
    let version = owner.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    Some(format!("{name}{version}"))
}

fn frame_rows(images: &[Image], frame: &Frame, directory: Option<&str>, is_system: bool) -> Vec<Row> {
    // What is known by its name belongs to a module, or to none that the report tells.
    let is_named = frame.language.is_some() || frame.names().next().is_some();
    let without = if is_named { "" } else { "???" };
    let image = frame.image.and_then(|index| images.get(index)).map(|image| image.name.as_str());
    let image = image.filter(|name| !name.is_empty());
    let image = image.or(frame.image_name.as_deref()).unwrap_or(without).to_owned();
    if frame.functions.is_empty() {
        let row = Row { is_system, ..plain_row(frame, image) };
        return std::iter::once(row).chain(annotations(frame)).collect();
    }
    let owner = library(frame, &image);
    let row = |(position, function): (usize, &Function)| Row {
        owner: owner.clone().filter(|_| position == 0),
        index: (position == 0).then_some(frame.index),
        image: image.clone(),
        what: function.name.clone(),
        place: place(function, directory),
        inlined: function.inlined,
        reason: None,
        doubt: doubt(frame).filter(|_| position == 0 || frame.trust == Trust::Scan),
        is_guess: frame.trust == Trust::Scan,
        located: function.file.is_some(),
        is_system,
    };
    let rows = frame.functions.iter().enumerate().map(row);
    rows.chain(alternatives(frame, directory)).chain(annotations(frame)).collect()
}

/// What may have run in the place of a frame's functions.
fn alternatives<'f>(frame: &'f Frame, directory: Option<&'f str>) -> impl Iterator<Item = Row> + 'f {
    frame.alternatives.iter().flat_map(move |chain| {
        chain.iter().enumerate().map(move |(position, function)| {
            let or = if position == 0 { "or " } else { "   " };
            let row = further_row(format!("{or}{}", function.name));
            Row { place: place(function, directory), inlined: function.inlined, ..row }
        })
    })
}

/// Lines of the report about a frame.
fn annotations(frame: &Frame) -> impl Iterator<Item = Row> {
    frame.annotations.iter().map(|line| further_row(format!("  {line}")))
}

/// The word for a way of finding frames that can go wrong. Tables are sure, and of a report's frames it is not known.
fn doubt(frame: &Frame) -> Option<String> {
    match frame.trust {
        Trust::Scan => Some("by scan, a guess".to_owned()),
        Trust::Context
        | Trust::Cfi
        | Trust::CompactUnwind
        | Trust::Exidx
        | Trust::RuntimeTable
        | Trust::Report => None,
        trust => Some(format!("by {}", trust.as_str())),
    }
}

/// A frame without debug info: a symbol with its offset, the report's own words, or the address.
fn plain_row(frame: &Frame, image: String) -> Row {
    let reported = frame.reported.as_ref();
    let (what, place) = match (&frame.symbol, reported) {
        (Some(symbol), _) => (format!("{} + {}", symbol.name, symbol.offset), None),
        (None, Some(symbol)) if frame.names().next().is_some() => {
            let mut what = symbol.name.clone();
            if let Some(offset) = symbol.offset {
                let _ = write!(what, " + {offset}");
            }
            (what, symbol.file.as_ref().map(|file| with_line(file, symbol.line, symbol.column)))
        }
        (None, Some(_)) if frame.follows().is_some() => (end_of_function(frame), None),
        _ => (bare_address(frame), None),
    };
    let reason = frame.reason.map(backtrail::Reason::as_str);
    Row {
        index: Some(frame.index),
        owner: library(frame, &image),
        image,
        what,
        located: place.is_some(),
        place,
        inlined: frame.inlined,
        reason,
        doubt: doubt(frame),
        is_guess: frame.trust == Trust::Scan,
        is_system: false,
    }
}

/// A caller whose call is its last instruction: the report names the function behind it.
fn end_of_function(frame: &Frame) -> String {
    format!("{}, right before {}", bare_address(frame), frame.follows().unwrap_or_default())
}

/// `0x102f4d3d4 (+ 54228)`: the address, and where it lies in the image.
fn bare_address(frame: &Frame) -> String {
    if let (None, Some(offset)) = (frame.address, frame.image_offset) {
        // Who states no address has offsets in hexadecimal.
        return format!("+ {offset:#x}");
    }
    let address = frame.address.map_or_else(|| "no address".to_owned(), |address| address.raw().to_string());
    match (frame.image_offset, frame.relative_pc) {
        (Some(offset), _) => format!("{address} (+ {offset})"),
        (None, Some(stated)) => format!("{address} (pc {stated})"),
        (None, None) => address,
    }
}

/// `file:line:column`, as far as known.
pub fn place(function: &Function, directory: Option<&str>) -> Option<String> {
    let file = below(function.file.as_deref()?, directory);
    Some(with_line(file, function.line, function.column))
}

fn with_line(file: &str, line: Option<u32>, column: Option<u32>) -> String {
    // Compilers give line 0 to code that stands nowhere in the source.
    match (line.filter(|line| *line != 0), column) {
        (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
        (Some(line), None) => format!("{file}:{line}"),
        _ => file.to_owned(),
    }
}

/// The directory that every source file of a report's frames lies below, with its closing separator.
///
/// Build machines' directorys are long and say nothing; they are told once and left out of each line.
pub fn common_directory(report: &Report) -> Option<String> {
    let threads = report.process.threads.iter().flat_map(|thread| &thread.frames);
    let others = report.process.backtraces.iter().flat_map(|backtrace| &backtrace.frames);
    let mut files = threads.chain(others).flat_map(files);
    let mut common = directory(files.next()?);
    for file in files {
        while !file.starts_with(common) {
            common = directory(common.get(..common.len() - 1)?);
        }
        if common.is_empty() {
            return None;
        }
    }
    // A bare root tells nothing and would make absolute paths look relative.
    (common.matches(['/', '\\']).count() > 1).then(|| common.to_owned())
}

fn files(frame: &Frame) -> impl Iterator<Item = &str> {
    frame.functions.iter().filter_map(|function| function.file.as_deref())
}

/// The path up to and with its last separator.
pub fn directory(path: &str) -> &str {
    path.rfind(['/', '\\']).and_then(|end| path.get(..=end)).unwrap_or_default()
}

/// `file` below `directory`, or as it is.
pub fn below<'a>(file: &'a str, directory: Option<&str>) -> &'a str {
    directory.and_then(|directory| file.strip_prefix(directory)).unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail::{Avma, FrameAddress, Process, Thread};

    fn shown(addresses: &[u64]) -> Vec<String> {
        let frame = |(index, address): (usize, &u64)| {
            let mut frame = Frame::new(u32::try_from(index).unwrap());
            frame.address = Some(FrameAddress::Return(Avma::new(*address)));
            frame
        };
        let frames: Vec<_> = addresses.iter().enumerate().map(frame).collect();
        rows(&Report::default(), &frames, None).into_iter().map(|row| row.what).collect()
    }

    #[test]
    fn recursion_is_shown_once() {
        let mut addresses = vec![1, 2];
        addresses.extend(std::iter::repeat_n(3, 500));
        addresses.push(4);
        assert_eq!(
            shown(&addresses),
            ["0x1", "0x2", "0x3", "… the frame above 499 more times, up to frame 501", "0x4"]
        );
    }

    #[test]
    fn mutual_recursion_too_with_what_is_left_of_its_last_round() {
        let addresses = [5, 6, 5, 6, 5, 6, 5, 6, 5];
        assert_eq!(
            shown(&addresses),
            ["0x5", "0x6", "… the 2 frames above 3 more times, up to frame 7", "0x5"]
        );
    }

    #[test]
    fn a_few_equal_frames_stay() {
        assert_eq!(shown(&[1, 1, 1, 2]), ["0x1", "0x1", "0x1", "0x2"]);
    }

    fn report(files: &[&str]) -> Report {
        let frame = |file: &&str| {
            let mut frame = Frame::new(0);
            frame.functions.push(Function { file: Some((*file).to_owned()), ..Function::default() });
            frame
        };
        let thread = Thread { frames: files.iter().map(frame).collect(), ..Thread::default() };
        Report { process: Process { threads: vec![thread], ..Process::default() }, ..Report::default() }
    }

    #[test]
    fn the_deepest_shared_directory_is_found() {
        let shared = |files: &[&str]| common_directory(&report(files));
        assert_eq!(shared(&["/b/app/src/a.c", "/b/app/inc/b.h"]).as_deref(), Some("/b/app/"));
        assert_eq!(shared(&["/b/app/a.c", "/b/apple/b.h"]).as_deref(), Some("/b/"));
        assert_eq!(shared(&["/a/x.c", "/b/y.c"]), None, "a bare root is no directory to speak of");
        assert_eq!(shared(&["x.c", "/b/y.c"]), None);
        assert_eq!(shared(&[]), None);
    }

    #[test]
    fn only_the_directory_itself_is_cut() {
        assert_eq!(below("/b/app/src/a.c", Some("/b/app/")), "src/a.c");
        assert_eq!(below("/c/a.c", Some("/b/app/")), "/c/a.c");
    }
}
