//! Captured processes as text and as collapsed stacks.

use super::diff;
use super::locks::deadlocks;
use super::missing;
use super::threads::Threads;
use crate::io::text::{Look, Text};
use backtrail::{Frame, Report, StackDiff, Stacks, Thread, Trust};
use backtrail_render::escape::is_unsafe;
use backtrail_render::facts::{subject, what};
use backtrail_render::stack::common_directory;
use backtrail_render::threads::folded;
use std::collections::BTreeMap;
use std::io;

/// What became of the threads since the capture in a file.
pub(crate) struct Since<'a> {
    /// The file's name.
    pub(crate) earlier: String,
    pub(crate) diff: &'a StackDiff,
}

/// Writes the process, its deadlocks and what became of its threads, its stacks (identical ones once, unless `fold` is off), and what
/// was missing.
pub(crate) fn write(
    out: &mut Text<'_>,
    stacks: &Stacks,
    fold: bool,
    since: Option<&Since<'_>>,
) -> io::Result<()> {
    let report = &stacks.report;
    let directory = common_directory(report);
    head(out, report)?;
    deadlocks(out, &report.process)?;
    if let Some(since) = since {
        diff::write(out, &since.earlier, since.diff)?;
    }
    if let Some(directory) = &directory {
        out.painted_line(Look::Faint, format_args!("Source files are below {directory}"))?;
    }
    let threads = Threads { images: &report.process.images, directory: directory.as_deref() };
    if let Some(thread) = report.crashed() {
        threads.thread(out, &[thread])?;
        threads.registers(out, thread)?;
    }
    let others = report.process.threads.iter().enumerate();
    let others =
        others.filter(|(index, _)| Some(*index) != report.process.crashed_thread).map(|(_, thread)| thread);
    let groups: Vec<Vec<&Thread>> =
        if fold { folded(others) } else { others.map(|thread| vec![thread]).collect() };
    for group in groups {
        threads.thread(out, &group)?;
    }
    missing::write(out, report)?;
    notes(out, report)
}

/// What process this was, and what stopped it.
fn head(out: &mut Text<'_>, report: &Report) -> io::Result<()> {
    let subject = subject(report);
    if !subject.is_empty() {
        out.painted_line(Look::Title, subject)?;
    }
    let process = &report.process;
    for line in [process.command_line.as_ref().or(process.path.as_ref())].into_iter().flatten() {
        out.painted_line(Look::Faint, line)?;
    }
    if let Some(what) = what(report) {
        let address = report.exception.as_ref().and_then(|exception| exception.address);
        let place = address.map(|address| format!(" at {address}")).unwrap_or_default();
        out.line(format_args!("{what}{place}"))?;
    }
    Ok(())
}

fn notes(out: &mut Text<'_>, report: &Report) -> io::Result<()> {
    if !report.notes.is_empty() {
        out.end()?;
        out.painted_line(Look::Heading, "Notes")?;
    }
    report.notes.iter().try_for_each(|note| out.line(format_args!("  - {note}")))
}

/// What stands for the frames that are not known.
const UNKNOWN: &str = "[unknown]";

/// Writes each distinct stack as `outermost;…;innermost count`, in the order of the names: what flame graphs are made of.
/// A frame that was found by scanning is a guess, and so are its callers: `[unknown]` stands in their place. The kernel's functions are
/// marked by `_[k]`, as flame graphs have them. `process` is the outermost frame of all, where there are several processes.
pub(crate) fn write_collapsed(out: &mut Text<'_>, stacks: &Stacks, process: Option<&str>) -> io::Result<()> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for thread in stacks.report.process.threads.iter().filter(|thread| !thread.frames.is_empty()) {
        let kernel = thread.kernel_stack.iter().rev().chain(&thread.wait_channel);
        let kernel: Vec<_> = kernel.map(|name| format!(";{}_[k]", plain(name))).collect();
        let process = process.map(|process| format!("{};", plain(process))).unwrap_or_default();
        let stack = format!("{process}{}{}", collapsed(&stacks.report, &thread.frames), kernel.concat());
        *counts.entry(stack).or_default() += 1;
    }
    counts.iter().try_for_each(|(stack, count)| out.line(format_args!("{stack} {count}")))
}

/// One stack, outermost first.
fn collapsed(report: &Report, frames: &[Frame]) -> String {
    let certain = frames.iter().take_while(|frame| frame.trust != Trust::Scan);
    let mut names: Vec<_> = certain.flat_map(|frame| names(report, frame)).collect();
    if frames.iter().any(|frame| frame.trust == Trust::Scan) {
        names.push(UNKNOWN.to_owned());
    }
    names.reverse();
    names.join(";")
}

/// The names of one frame, innermost first; `image+0x…` where it has none. A semicolon would end the frame, a line break
/// the stack.
fn names(report: &Report, frame: &Frame) -> Vec<String> {
    let mut names: Vec<_> = frame.names().map(str::to_owned).collect();
    if names.is_empty() {
        let image =
            frame.image.and_then(|index| report.process.images.get(index)).map(|image| image.name.as_str());
        let place = frame.relative_pc.map(|pc| pc.to_string());
        let address = || frame.address.map(|address| address.raw().to_string()).unwrap_or_default();
        names.push(match (image.or(frame.image_name.as_deref()), place) {
            (Some(image), Some(place)) => format!("{image}+{place}"),
            _ => address(),
        });
    }
    names.iter_mut().for_each(|name| *name = plain(name));
    names
}

/// A name that ends neither the frame nor the line.
fn plain(name: &str) -> String {
    name.replace(';', ":").replace(is_unsafe, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail::Symbol;

    fn frame(name: &str, trust: Trust) -> Frame {
        let mut frame = Frame::new(0);
        frame.symbol = Some(Symbol { name: name.to_owned(), linkage_name: None, offset: 0 });
        frame.trust = trust;
        frame
    }

    #[test]
    fn what_was_scanned_is_not_known() {
        let of = |frames: &[(&str, Trust)]| {
            let frames: Vec<_> = frames.iter().map(|(name, trust)| frame(name, *trust)).collect();
            collapsed(&Report::default(), &frames)
        };
        assert_eq!(of(&[("read", Trust::Context), ("work", Trust::Cfi)]), "work;read");
        let scanned = [("read", Trust::Context), ("phantom", Trust::Scan), ("main", Trust::Cfi)];
        assert_eq!(of(&scanned), "[unknown];read");
        assert_eq!(of(&[("a;b\n\u{202e}", Trust::Context)]), "a:b  ");
    }
}
