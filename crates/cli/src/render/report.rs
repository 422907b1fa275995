//! The text that a person reads first: what, where, why, whose; then the stacks.

use super::missing;
use super::threads::Threads;
use crate::io::text::{Look, Text};
use backtrail::{Analysis, Process, Report, SymbolStatus};
use backtrail_render::facts::{evidence, id, layers, messages, subject, what, where_lines, whose};
use backtrail_render::stack::common_directory;
use backtrail_render::threads::folded;
use backtrail_render::tree::process_line;
use std::fmt::Display;
use std::io;

/// Writes one analysed report.
pub(crate) fn write(out: &mut Text<'_>, analysis: &Analysis) -> io::Result<()> {
    let directory = common_directory(&analysis.report);
    let page = Page { analysis, directory: directory.as_deref() };
    page.summary(out)?;
    page.advice(out)?;
    page.stacks(out)?;
    page.symbols(out)?;
    page.notes(out)
}

/// Writes the explanation alone.
pub(crate) fn write_explanation(out: &mut Text<'_>, analysis: &Analysis) -> io::Result<()> {
    let page = Page { analysis, directory: None };
    page.summary(out)?;
    page.advice(out)?;
    page.notes(out)
}

/// Tells where the next of several reports begins.
pub(crate) fn banner(out: &mut Text<'_>, name: &str) -> io::Result<()> {
    out.painted_line(Look::Faint, format_args!("==> {name} <=="))
}

/// Whether there is more to show of a process than a line.
fn has_stacks(process: &Process) -> bool {
    !process.threads.is_empty() || !process.trees.is_empty() || !process.backtraces.is_empty()
}

struct Page<'a> {
    analysis: &'a Analysis,
    directory: Option<&'a str>,
}

impl Page<'_> {
    fn report(&self) -> &Report {
        &self.analysis.report
    }

    /// What happened, to whom, where, whose code it was, and why.
    fn summary(&self, out: &mut Text<'_>) -> io::Result<()> {
        let explanation = &self.analysis.explanation;
        out.painted_line(Look::Title, &explanation.title)?;
        let subject = subject(self.report());
        if !subject.is_empty() {
            out.painted_line(Look::Faint, subject)?;
        }
        out.end()?;
        if let Some(what) = what(self.report()) {
            self.labelled(out, "what", &what)?;
        }
        self.lines(out, "said", &messages(self.report()))?;
        self.lines(out, "where", &where_lines(self.report(), self.directory))?;
        self.labelled(out, "whose", &whose(self.analysis))?;
        if let Some(layers) = layers(self.analysis) {
            self.labelled(out, "", &layers)?;
        }
        // The explanation makes lines of its own, and none of what it quotes.
        self.lines(out, "why", &explanation.summary.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    fn labelled(&self, out: &mut Text<'_>, label: &str, text: &str) -> io::Result<()> {
        out.paint(Look::Strong, format_args!("{label:>8}"))?;
        out.line(format_args!("  {text}"))
    }

    /// Lines of which the first has a label.
    fn lines(&self, out: &mut Text<'_>, label: &str, lines: &[String]) -> io::Result<()> {
        for (position, line) in lines.iter().enumerate() {
            self.labelled(out, if position == 0 { label } else { "" }, line)?;
        }
        Ok(())
    }

    /// Evidence, causes, next steps: each only where there is something to say.
    fn advice(&self, out: &mut Text<'_>) -> io::Result<()> {
        let explanation = &self.analysis.explanation;
        self.lines(out, "evidence", &evidence(self.analysis))?;
        self.lines(out, "causes", &numbered(&explanation.causes))?;
        self.lines(out, "next", &numbered(&explanation.next_steps))
    }

    fn list(&self, out: &mut Text<'_>, title: &str, items: &[String]) -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        self.heading(out, title)?;
        for item in items {
            out.line(format_args!("  - {item}"))?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut Text<'_>, title: impl Display) -> io::Result<()> {
        out.end()?;
        out.painted_line(Look::Heading, title)
    }

    /// The blamed thread first, then the stacks that are no thread's, then the rest, identical ones folded.
    fn stacks(&self, out: &mut Text<'_>) -> io::Result<()> {
        let report = self.report();
        let threads = Threads { images: &report.process.images, directory: self.directory };
        if let Some(directory) = self.directory {
            out.end()?;
            out.painted_line(Look::Faint, format_args!("Source files are below {directory}"))?;
        }
        for backtrace in report.process.backtraces.iter().filter(|backtrace| backtrace.is_exception) {
            self.heading(out, &backtrace.title)?;
            threads.frames(out, &backtrace.frames)?;
        }
        if let Some(thread) = report.crashed() {
            threads.thread(out, &[thread])?;
            threads.registers(out, thread)?;
        }
        for backtrace in report.process.backtraces.iter().filter(|backtrace| !backtrace.is_exception) {
            self.heading(out, &backtrace.title)?;
            threads.frames(out, &backtrace.frames)?;
        }
        let others = report.process.threads.iter().enumerate();
        let others = others
            .filter(|(index, _)| Some(*index) != report.process.crashed_thread)
            .map(|(_, thread)| thread);
        for group in folded(others) {
            threads.thread(out, &group)?;
        }
        report.process.trees.iter().try_for_each(|tree| threads.tree(out, tree))?;
        self.others(out)
    }

    /// The other processes: those without stacks in a list, then the others with theirs.
    fn others(&self, out: &mut Text<'_>) -> io::Result<()> {
        let (with, without): (Vec<_>, Vec<_>) =
            self.report().processes.iter().partition(|process| has_stacks(process));
        if !without.is_empty() {
            self.heading(out, "Other processes")?;
            without.iter().try_for_each(|process| out.line(format_args!("  {}", process_line(process))))?;
        }
        for process in with {
            self.heading(out, format_args!("Process {}", process_line(process)))?;
            let threads = Threads { images: &process.images, directory: self.directory };
            for backtrace in &process.backtraces {
                self.heading(out, &backtrace.title)?;
                threads.frames(out, &backtrace.frames)?;
            }
            for group in folded(process.threads.iter()) {
                threads.thread(out, &group)?;
            }
            process.trees.iter().try_for_each(|tree| threads.tree(out, tree))?;
        }
        Ok(())
    }

    /// Which images were found, which are missing, and where backtrail looked.
    fn symbols(&self, out: &mut Text<'_>) -> io::Result<()> {
        let processes = std::iter::once(&self.report().process).chain(&self.report().processes);
        let images: Vec<_> = processes
            .flat_map(|process| process.images.iter().map(|image| (image, &image.symbols)))
            .collect();
        let found: Vec<_> = images
            .iter()
            .filter(|(_, symbols)| symbols.has_file() && symbols.status != SymbolStatus::Stripped)
            .collect();
        if !found.is_empty() {
            self.heading(out, "Symbols found")?;
            for (image, symbols) in found {
                let unproven = if symbols.is_unproven { "  (by its name alone)" } else { "" };
                let files = symbols.files.join(", ");
                out.line(format_args!("  {}  {}  {files}{unproven}", image.name, id(image)))?;
                for tried in symbols.tried.iter().filter(|_| symbols.is_unproven) {
                    out.put_str("      ")?;
                    out.painted_line(Look::Faint, tried)?;
                }
            }
        }
        missing::write(out, self.report())
    }

    fn notes(&self, out: &mut Text<'_>) -> io::Result<()> {
        self.list(out, "Notes", &self.report().notes)
    }
}

/// `1. one`, `2. two`; a list of one needs no number.
fn numbered(items: &[String]) -> Vec<String> {
    match items {
        [only] => vec![only.clone()],
        many => many.iter().enumerate().map(|(position, item)| format!("{}. {item}", position + 1)).collect(),
    }
}
