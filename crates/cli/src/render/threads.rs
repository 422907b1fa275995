//! Threads' stacks as text, of reports and of captured processes alike.

use super::stack::{Row, rows};
use super::style::{Look, Style, plain};
use super::text::{group_title, thread_title};
use backtrail::{EndKind, Frame, Report, Thread};
use std::io::{self, Write};

/// Image names are cut to this many characters in the stacks; the images' list has them in full.
const MAX_IMAGE_WIDTH: usize = 28;

/// The stacks of one report.
pub(crate) struct Threads<'a> {
    pub(crate) report: &'a Report,
    pub(crate) style: Style,
    /// What all source files have in common.
    pub(crate) folder: Option<&'a str>,
}

impl Threads<'_> {
    fn heading(&self, out: &mut dyn Write, title: &str) -> io::Result<()> {
        writeln!(out, "\n{}", self.style.paint(Look::Heading, title))
    }

    /// How the walk ended, where the stack was walked here.
    fn end(&self, out: &mut dyn Write, thread: &Thread) -> io::Result<()> {
        let Some(ended) = &thread.ended else { return Ok(()) };
        let what = match ended.kind {
            EndKind::EndOfStack => "end of stack",
            EndKind::Failed => "could not go on",
            EndKind::Truncated => "cut off",
        };
        writeln!(out, "      {}", self.style.paint(Look::Faint, format_args!("{what}: {}", ended.why)))
    }

    /// One stack under the heads of all threads that share it.
    pub(crate) fn thread(&self, out: &mut dyn Write, group: &[&Thread]) -> io::Result<()> {
        if let [first, _, ..] = group {
            self.heading(out, &group_title(group))?;
            self.frames(out, &first.frames)?;
            return self.end(out, first);
        }
        for thread in group {
            self.heading(out, &thread_title(thread))?;
            self.frames(out, &thread.frames)?;
            self.end(out, thread)?;
            if let Some(recursion) = &thread.recursion {
                let note =
                    format!("  … the report left frames out; the stack was {} frames deep", recursion.depth);
                writeln!(out, "{}", self.style.paint(Look::Faint, note))?;
            }
        }
        Ok(())
    }

    pub(crate) fn frames(&self, out: &mut dyn Write, frames: &[Frame]) -> io::Result<()> {
        if frames.is_empty() {
            return writeln!(out, "{}", self.style.paint(Look::Faint, "  no frames"));
        }
        let rows = rows(self.report, frames, self.folder);
        let width = rows.iter().map(|row| row.image.chars().count()).max().unwrap_or(0).min(MAX_IMAGE_WIDTH);
        for row in &rows {
            self.row(out, row, width)?;
        }
        Ok(())
    }

    fn row(&self, out: &mut dyn Write, row: &Row, width: usize) -> io::Result<()> {
        let index = row.index.map_or_else(String::new, |index| index.to_string());
        let image: String = plain(&row.image).chars().take(width).collect();
        let look = if row.located { Look::Strong } else { Look::Faint };
        write!(out, "{index:>4}  {image:<width$}  ")?;
        match row.located {
            true => write!(out, "{}", self.style.paint(look, plain(&row.what)))?,
            false => write!(out, "{}", plain(&row.what))?,
        }
        if let Some(place) = &row.place {
            write!(out, "  at {}", plain(place))?;
        }
        if row.inlined {
            write!(out, "  {}", self.style.paint(Look::Faint, "[inlined]"))?;
        }
        if let Some(trust) = row.doubt {
            write!(out, "  {}", self.style.paint(Look::Faint, format_args!("[by {trust}]")))?;
        }
        if let Some(reason) = row.reason {
            write!(out, "  {}", self.style.paint(Look::Faint, format_args!("({reason})")))?;
        }
        writeln!(out)
    }

    /// The blamed thread's registers, four in a row, with what the report says of them.
    pub(crate) fn registers(&self, out: &mut dyn Write, thread: &Thread) -> io::Result<()> {
        if thread.registers.is_empty() {
            return Ok(());
        }
        self.heading(out, &format!("Registers of thread {}", thread.number))?;
        let (plain, noted): (Vec<_>, Vec<_>) = thread.registers.iter().partition(|reg| reg.note.is_none());
        for chunk in plain.chunks(4) {
            for register in chunk {
                write!(out, "  {:>6} {:#018x}", register.name, register.value)?;
            }
            writeln!(out)?;
        }
        for register in noted {
            let note = register.note.as_deref().unwrap_or_default();
            writeln!(out, "  {:>6} {:#018x}  {note}", register.name, register.value)?;
        }
        Ok(())
    }
}
