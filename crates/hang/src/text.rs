//! A hang for people.

use crate::merge::{MergedTree, names, place};
use crate::{Activity, End, Hang};
use backtrail_core::Function;
use backtrail_model::Frame;
use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

/// Lines of the tree; what is further down has few samples.
const MAX_ROWS: usize = 400;

impl Hang {
    /// Writes it for people: what happened, the heaviest stack, the tree of all.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", title(self))?;
        writeln!(out, "{}", circumstances(self))?;
        if let Some(line) = excused(self) {
            writeln!(out, "{line}")?;
        }
        let tree = MergedTree::of(self);
        if let Some(place) = tree.heaviest()
            && let Some(node) = tree.nodes.get(place)
        {
            writeln!(out, "\nHeaviest stack ({} of {} samples)", node.samples, self.samples)?;
            stack(self, node.sample, out)?;
            writeln!(out, "\nAll samples")?;
            all(self, &tree, out)?;
        }
        if !self.notes.is_empty() {
            writeln!(out, "\nNotes")?;
        }
        self.notes.iter().try_for_each(|note| writeln!(out, "  - {note}"))
    }
}

/// The text form.
impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_text(&mut text).map_err(|_| fmt::Error)?;
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

fn title(hang: &Hang) -> String {
    let process = &hang.process;
    let with_id = |name: &str, id: Option<u64>| match id {
        Some(id) => format!("{name} [{id}]"),
        None => name.to_owned(),
    };
    let thread = with_id(hang.thread_name.as_deref().unwrap_or("a thread"), hang.thread_id);
    let name = with_id(process.name.as_deref().unwrap_or("a process"), process.pid);
    let end = match hang.end {
        Some(End::Recovered) => "",
        Some(End::ThreadEnded) => ", and ended",
        Some(_) => ", and was not watched any longer",
        None => ", and had not recovered",
    };
    format!("{thread} of {name} hung for {}{end}", seconds(hang.lasted))
}

fn circumstances(hang: &Hang) -> String {
    let mut parts = Vec::new();
    parts.extend(hang.began.map(crate::time::rfc3339));
    parts.push(match (hang.activity(), hang.cpu) {
        (Activity::Unknown, _) | (_, None) => "busy or waiting: not known".to_owned(),
        (activity, Some(cpu)) => {
            let percent = 100.0 * cpu.as_secs_f64() / hang.measured.as_secs_f64();
            format!("{} ({percent:.0} % of the time on a processor)", activity.as_str())
        }
    });
    parts.push(format!("noticed after {}", seconds(hang.threshold)));
    if hang.missed > 0 {
        let why = hang.missed_because.as_deref().unwrap_or("not known why");
        parts.push(format!("{} captures failed ({why})", hang.missed));
    }
    parts.join(" · ")
}

fn excused(hang: &Hang) -> Option<String> {
    let excused = hang.excused;
    let part = |time: Duration, what| (!time.is_zero()).then(|| format!("{} {what}", seconds(time)));
    let parts = [
        part(excused.suspended, "in which the machine was suspended"),
        part(excused.stopped, "in which the process was stopped or got no processor"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Not counted: {}", parts.join(", ")))
}

/// `1.250 s`, `250 ms`.
fn seconds(time: Duration) -> String {
    match time.as_millis() {
        millis if millis < 1_000 => format!("{millis} ms"),
        _ => format!("{:.3} s", time.as_secs_f64()),
    }
}

fn stack(hang: &Hang, node: usize, out: &mut dyn Write) -> io::Result<()> {
    let width = image_width(hang, hang.stack(node));
    for (frame, index) in hang.stack(node).zip(0..) {
        let image = image(hang, frame);
        for (position, row) in rows(hang, frame).into_iter().enumerate() {
            let index = if position == 0 { format!("{index:>4}") } else { "    ".to_owned() };
            writeln!(out, "{index}  {image:<width$}  {row}")?;
        }
    }
    Ok(())
}

fn image_width<'f>(hang: &Hang, frames: impl Iterator<Item = &'f Frame>) -> usize {
    frames.map(|frame| image(hang, frame).chars().count()).max().unwrap_or(0).min(24)
}

fn image<'h>(hang: &'h Hang, frame: &'h Frame) -> &'h str {
    let image = frame.image.and_then(|image| hang.process.images.get(image));
    image.map(|image| image.name.as_str()).or(frame.image_name.as_deref()).unwrap_or("???")
}

/// One row a function of the frame, innermost first.
fn rows(hang: &Hang, frame: &Frame) -> Vec<String> {
    let function = |function: &Function| {
        let inlined = if function.inlined { "  [inlined]" } else { "" };
        let at = located(function).map(|at| format!("  at {at}")).unwrap_or_default();
        format!("{}{at}{inlined}", function.name)
    };
    if !frame.functions.is_empty() {
        return frame.functions.iter().map(function).collect();
    }
    let symbol = frame.symbol.as_ref().map(|symbol| format!("{} + {}", symbol.name, symbol.offset));
    let reason = frame.reason.map(|reason| format!("  [{reason}]")).unwrap_or_default();
    vec![symbol.unwrap_or_else(|| format!("{}{reason}", place(hang, frame)))]
}

fn located(function: &Function) -> Option<String> {
    let file = function.file.as_deref()?;
    let numbers = [function.line, function.column];
    let numbers: Vec<_> = numbers.into_iter().flatten().map(|number| format!(":{number}")).collect();
    Some(format!("{file}{}", numbers.concat()))
}

/// The tree, outermost first. What calls only one function stands at the same indent as that: real stacks are deeper than
/// lines are wide.
fn all(hang: &Hang, tree: &MergedTree, out: &mut dyn Write) -> io::Result<()> {
    let mut open: Vec<(usize, usize)> = tree.roots.iter().rev().map(|root| (*root, 0)).collect();
    let mut shown = 0;
    while let Some((place, indent)) = open.pop() {
        let Some(node) = tree.nodes.get(place) else { continue };
        let Some(frame) = hang.nodes().get(node.sample).map(|node| &node.frame) else { continue };
        if shown == MAX_ROWS {
            return writeln!(out, "        … and {} more functions", tree.nodes.len() - shown);
        }
        shown += 1;
        let mut names = names(hang, frame);
        names.reverse();
        let here = frame.functions.first().and_then(located).map(|at| format!("  {at}")).unwrap_or_default();
        let own = if node.own_time * 20 >= node.time && !node.children.is_empty() {
            format!("  (itself {})", seconds(node.own_time))
        } else {
            String::new()
        };
        writeln!(out, "{:>7}  {}{}{here}{own}", node.samples, "  ".repeat(indent), names.join(" › "))?;
        let indent = if node.children.len() > 1 { indent + 1 } else { indent };
        open.extend(node.children.iter().rev().map(|child| (*child, indent.min(40))));
    }
    Ok(())
}
