//! Threads' stacks as text, of reports and of captured processes alike.

use super::thread_list::{Listed, ThreadList};
use crate::io::text::{Look, Text};
use backtrail::{EndKind, Frame, Image, Thread, Tree};
use backtrail_render::escape::escaped;
use backtrail_render::stack::{Row, rows_in};
use backtrail_render::threads::{cpu, doing, thread_title};
use backtrail_render::tree::tree_rows;
use std::fmt::Display;
use std::io;

/// Image names are cut to this many characters in the stacks; the images' list has them in full.
const MAX_IMAGE_WIDTH: usize = 28;

/// Deeper frames of a tree are not set further in; their depth is printed.
const MAX_INDENT: usize = 60;

/// The stacks of one process.
pub(crate) struct Threads<'a> {
    /// The images of the process that the threads are of.
    pub(crate) images: &'a [Image],
    /// What all source files have in common.
    pub(crate) directory: Option<&'a str>,
}

impl Threads<'_> {
    fn heading(&self, out: &mut Text<'_>, title: impl Display) -> io::Result<()> {
        out.end()?;
        out.painted_line(Look::Heading, title)
    }

    /// How the walk ended, where the stack was walked here.
    fn end(&self, out: &mut Text<'_>, thread: &Thread) -> io::Result<()> {
        let Some(ended) = &thread.ended else { return Ok(()) };
        let what = match ended.kind {
            EndKind::EndOfStack => "end of stack",
            EndKind::Failed => "could not go on",
            EndKind::Truncated => "cut off",
        };
        out.put_str("      ")?;
        out.painted_line(Look::Faint, format_args!("{what}: {}", ended.why))
    }

    /// One stack under the heads of all threads that share it.
    pub(crate) fn thread(&self, out: &mut Text<'_>, group: &[&Thread]) -> io::Result<()> {
        if let [first, _, ..] = group {
            self.heading(out, group_title(group))?;
            kernel(out, first)?;
            self.frames(out, &first.frames)?;
            return self.end(out, first);
        }
        for thread in group {
            self.heading(out, thread_title(thread))?;
            kernel(out, thread)?;
            self.frames(out, &thread.frames)?;
            self.end(out, thread)?;
            if let Some(recursion) = &thread.recursion {
                let note =
                    format!("  … the report left frames out; the stack was {} frames deep", recursion.depth);
                out.painted_line(Look::Faint, note)?;
            }
        }
        Ok(())
    }

    pub(crate) fn frames(&self, out: &mut Text<'_>, frames: &[Frame]) -> io::Result<()> {
        if frames.is_empty() {
            return out.painted_line(Look::Faint, "  no frames");
        }
        let rows = rows_in(self.images, frames, self.directory);
        let width = rows.iter().map(|row| row.image.chars().count()).max().unwrap_or(0).min(MAX_IMAGE_WIDTH);
        for row in &rows {
            self.row(out, row, width)?;
        }
        Ok(())
    }

    fn row(&self, out: &mut Text<'_>, row: &Row, width: usize) -> io::Result<()> {
        let index = row.index.map_or_else(String::new, |index| index.to_string());
        let image: String = escaped(&row.image).chars().take(width).collect();
        out.put(format_args!("{index:>4}  {image:<width$}  "))?;
        match row.located {
            true => out.paint(Look::Strong, &row.what)?,
            false => out.put_str(&row.what)?,
        }
        if let Some(place) = &row.place {
            out.put(format_args!("  at {place}"))?;
        }
        let reason = row.reason.map(|reason| format!("({reason})"));
        let inlined = row.inlined.then(|| "[inlined]".to_owned());
        let owner = row.owner.as_ref().map(|owner| format!("[{owner}]"));
        let notes = [inlined, owner, row.doubt.as_ref().map(|doubt| format!("[{doubt}]")), reason];
        for note in notes.into_iter().flatten() {
            out.put_str("  ")?;
            out.paint(Look::Faint, note)?;
        }
        out.end()
    }

    /// A call tree: how many samples have each frame, by how deep it stands.
    pub(crate) fn tree(&self, out: &mut Text<'_>, tree: &Tree) -> io::Result<()> {
        self.heading(out, format_args!("{} ({})", tree.title, tree.unit.as_str()))?;
        for shown in tree_rows(tree, self.images, self.directory) {
            let indent = shown.depth.min(MAX_INDENT);
            out.put(format_args!("{:>7}  {:indent$}", shown.weight, ""))?;
            if shown.depth > MAX_INDENT {
                out.put(format_args!("[{}] ", shown.depth))?;
            }
            let row = shown.row;
            match row.located {
                true => out.paint(Look::Strong, &row.what)?,
                false => out.put_str(&row.what)?,
            }
            out.put(format_args!("  in {}", escaped(&row.image)))?;
            if let Some(place) = &row.place {
                out.put(format_args!("  at {place}"))?;
            }
            let reason = row.reason.map(|reason| format!("({reason})"));
            let inlined = row.inlined.then(|| "[inlined]".to_owned());
            for note in [inlined, shown.note, reason].into_iter().flatten() {
                out.put_str("  ")?;
                out.paint(Look::Faint, note)?;
            }
            out.end()?;
        }
        Ok(())
    }

    /// The blamed thread's registers, four in a row, with what the report says of them.
    pub(crate) fn registers(&self, out: &mut Text<'_>, thread: &Thread) -> io::Result<()> {
        if thread.registers.is_empty() {
            return Ok(());
        }
        self.heading(out, format_args!("Registers of thread {}", thread.number))?;
        let (plain, noted): (Vec<_>, Vec<_>) = thread.registers.iter().partition(|reg| reg.note.is_none());
        for chunk in plain.chunks(4) {
            for register in chunk {
                out.put(format_args!("  {:>6} {:#018x}", register.name, register.value))?;
            }
            out.end()?;
        }
        for register in noted {
            let note = register.note.as_deref().unwrap_or_default();
            out.line(format_args!("  {:>6} {:#018x}  {note}", register.name, register.value))?;
        }
        Ok(())
    }
}

/// The kernel's functions that a thread waits in.
fn kernel(out: &mut Text<'_>, thread: &Thread) -> io::Result<()> {
    let mut names = thread.kernel_stack.iter().chain(&thread.wait_channel);
    names.try_for_each(|name| out.line(format_args!("      [kernel]  {name}")))
}

/// Which threads share a stack, and what they do.
fn group_title(group: &[&Thread]) -> String {
    let is_live = group.iter().any(|thread| thread.priority.is_some());
    let listed = |thread: &Thread| match (is_live, thread.id) {
        (true, Some(number)) => (number, thread.name.clone()),
        _ => (thread.number, None),
    };
    let listed: Vec<_> = group.iter().map(|thread| listed(thread)).collect();
    let list = ThreadList::new(
        listed.iter().map(|(number, name)| Listed { number: *number, name: name.as_deref() }),
    );
    let what = doings(group).map(|what| format!(" · {what}")).unwrap_or_default();
    format!("{list}{what}")
}

/// What threads with the same stack do, if it is the same, and what time they take together.
fn doings(group: &[&Thread]) -> Option<String> {
    group.first()?.priority?;
    let mut what: Vec<_> = group.iter().filter_map(|thread| doing(thread)).collect();
    what.sort();
    what.dedup();
    let usage = group.iter().filter_map(|thread| thread.cpu_usage).reduce(|one, other| one + other);
    let what = if what.len() <= 2 { what.join(", ") } else { format!("{} and others", what.first()?) };
    let words = [Some(what).filter(|what| !what.is_empty()), usage.map(cpu)];
    Some(words.into_iter().flatten().collect::<Vec<_>>().join(" · ")).filter(|words| !words.is_empty())
}
