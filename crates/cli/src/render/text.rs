//! The text that a person reads first: what, where, why, whose; then the stacks.

use super::paths::common_folder;
use super::stack::{Row, place, rows};
use super::style::{Look, Style};
use backtrail::{Analysis, Frame, Image, ImageSymbols, Report, SymbolStatus, Thread, Verdict};
use std::io::{self, Write};

/// Image names are cut to this many characters in the stacks; the images' list has them in full.
const MAX_IMAGE_WIDTH: usize = 28;

/// Writes one analysed report.
pub(crate) fn write(out: &mut dyn Write, analysis: &Analysis, style: Style) -> io::Result<()> {
    let folder = common_folder(&analysis.report);
    let page = Page { analysis, style, folder: folder.as_deref() };
    page.summary(out)?;
    page.advice(out)?;
    page.stacks(out)?;
    page.symbols(out)?;
    page.notes(out)
}

/// Writes the explanation alone.
pub(crate) fn write_explanation(out: &mut dyn Write, analysis: &Analysis, style: Style) -> io::Result<()> {
    let page = Page { analysis, style, folder: None };
    page.summary(out)?;
    page.advice(out)?;
    page.notes(out)
}

/// Tells where the next of several reports begins.
pub(crate) fn banner(out: &mut dyn Write, name: &str, style: Style) -> io::Result<()> {
    writeln!(out, "{}", style.paint(Look::Faint, format_args!("==> {name} <==")))
}

struct Page<'a> {
    analysis: &'a Analysis,
    style: Style,
    folder: Option<&'a str>,
}

impl Page<'_> {
    fn report(&self) -> &Report {
        &self.analysis.report
    }

    /// What happened, to whom, where, whose code it was, and why.
    fn summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let explanation = &self.analysis.explanation;
        writeln!(out, "{}", self.style.paint(Look::Title, &explanation.title))?;
        let subject = subject(self.report());
        if !subject.is_empty() {
            writeln!(out, "{}", self.style.paint(Look::Faint, subject))?;
        }
        writeln!(out)?;
        if let Some(what) = what(self.report()) {
            self.labelled(out, "what", &what)?;
        }
        for (position, line) in where_lines(self.report(), self.folder).iter().enumerate() {
            self.labelled(out, if position == 0 { "where" } else { "" }, line)?;
        }
        self.labelled(out, "whose", &whose(self.analysis))?;
        self.labelled(out, "why", &explanation.summary)
    }

    fn labelled(&self, out: &mut dyn Write, label: &str, text: &str) -> io::Result<()> {
        for (position, line) in text.lines().enumerate() {
            let label = if position == 0 { label } else { "" };
            writeln!(out, "{}  {line}", self.style.paint(Look::Strong, format_args!("{label:>6}")))?;
        }
        Ok(())
    }

    /// Evidence, causes, next steps: each list only where there is something to say.
    fn advice(&self, out: &mut dyn Write) -> io::Result<()> {
        let explanation = &self.analysis.explanation;
        self.list(out, "Evidence", &explanation.evidence, |_| "-".to_owned())?;
        self.list(out, "Whose code", &self.analysis.attribution.evidence, |_| "-".to_owned())?;
        self.list(out, "Likely causes", &explanation.causes, |position| format!("{}.", position + 1))?;
        self.list(out, "What to do next", &explanation.next_steps, |position| format!("{}.", position + 1))
    }

    fn list(
        &self,
        out: &mut dyn Write,
        title: &str,
        items: &[String],
        bullet: impl Fn(usize) -> String,
    ) -> io::Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        self.heading(out, title)?;
        for (position, item) in items.iter().enumerate() {
            writeln!(out, "  {} {item}", bullet(position))?;
        }
        Ok(())
    }

    fn heading(&self, out: &mut dyn Write, title: &str) -> io::Result<()> {
        writeln!(out, "\n{}", self.style.paint(Look::Heading, title))
    }

    /// The blamed thread first, then the stacks that are no thread's, then the rest, identical ones folded.
    fn stacks(&self, out: &mut dyn Write) -> io::Result<()> {
        let report = self.report();
        if let Some(folder) = self.folder {
            let note = format!("\nSource files are below {folder}");
            writeln!(out, "{}", self.style.paint(Look::Faint, note))?;
        }
        for backtrace in report.backtraces.iter().filter(|backtrace| backtrace.is_exception) {
            self.heading(out, &backtrace.title)?;
            self.frames(out, &backtrace.frames)?;
        }
        if let Some(thread) = report.crashed() {
            self.thread(out, &[thread])?;
            self.registers(out, thread)?;
        }
        for backtrace in report.backtraces.iter().filter(|backtrace| !backtrace.is_exception) {
            self.heading(out, &backtrace.title)?;
            self.frames(out, &backtrace.frames)?;
        }
        let others = report.threads.iter().enumerate();
        let others =
            others.filter(|(index, _)| Some(*index) != report.crashed_thread).map(|(_, thread)| thread);
        for group in folded(others) {
            self.thread(out, &group)?;
        }
        Ok(())
    }

    /// One stack under the heads of all threads that share it.
    fn thread(&self, out: &mut dyn Write, group: &[&Thread]) -> io::Result<()> {
        if let [first, _, ..] = group {
            let numbers: Vec<_> = group.iter().map(|thread| thread.number.to_string()).collect();
            self.heading(out, &format!("{} identical threads: {}", group.len(), numbers.join(", ")))?;
            return self.frames(out, &first.frames);
        }
        for thread in group {
            self.heading(out, &thread_title(thread))?;
            self.frames(out, &thread.frames)?;
            if let Some(recursion) = &thread.recursion {
                let note =
                    format!("  … the report left frames out; the stack was {} frames deep", recursion.depth);
                writeln!(out, "{}", self.style.paint(Look::Faint, note))?;
            }
        }
        Ok(())
    }

    fn frames(&self, out: &mut dyn Write, frames: &[Frame]) -> io::Result<()> {
        if frames.is_empty() {
            return writeln!(out, "{}", self.style.paint(Look::Faint, "  no frames"));
        }
        let rows = rows(self.report(), frames, self.folder);
        let width = rows.iter().map(|row| row.image.chars().count()).max().unwrap_or(0).min(MAX_IMAGE_WIDTH);
        for row in &rows {
            self.row(out, row, width)?;
        }
        Ok(())
    }

    fn row(&self, out: &mut dyn Write, row: &Row, width: usize) -> io::Result<()> {
        let index = row.index.map_or_else(String::new, |index| index.to_string());
        let image: String = row.image.chars().take(width).collect();
        let look = if row.located { Look::Strong } else { Look::Faint };
        write!(out, "{index:>4}  {image:<width$}  ")?;
        match row.located {
            true => write!(out, "{}", self.style.paint(look, &row.what))?,
            false => write!(out, "{}", row.what)?,
        }
        if let Some(place) = &row.place {
            write!(out, "  at {place}")?;
        }
        if row.inlined {
            write!(out, "  {}", self.style.paint(Look::Faint, "[inlined]"))?;
        }
        if let Some(reason) = row.reason {
            write!(out, "  {}", self.style.paint(Look::Faint, format_args!("({reason})")))?;
        }
        writeln!(out)
    }

    /// The blamed thread's registers, four in a row, with what the report says of them.
    fn registers(&self, out: &mut dyn Write, thread: &Thread) -> io::Result<()> {
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

    /// Which images were found, which are missing, and where backtrail looked.
    fn symbols(&self, out: &mut dyn Write) -> io::Result<()> {
        let images: Vec<_> = self.report().images.iter().zip(&self.analysis.images).collect();
        let found: Vec<_> =
            images.iter().filter(|(_, symbols)| symbols.status == SymbolStatus::Found).collect();
        if !found.is_empty() {
            self.heading(out, "Symbols found")?;
            for (image, symbols) in found {
                writeln!(out, "  {}  {}  {}", image.name, id(image), symbols.files.join(", "))?;
            }
        }
        let missing: Vec<_> = images.iter().filter(|(_, symbols)| is_missing(symbols)).collect();
        if !missing.is_empty() {
            self.heading(out, "Symbols missing")?;
            for (image, symbols) in missing {
                self.missing(out, image, symbols)?;
            }
        }
        Ok(())
    }

    fn missing(&self, out: &mut dyn Write, image: &Image, symbols: &ImageSymbols) -> io::Result<()> {
        let frames = match symbols.unnamed_frames {
            1 => "1 frame".to_owned(),
            count => format!("{count} frames"),
        };
        let arch = image.arch.map_or("", backtrail::Arch::name);
        writeln!(out, "  {}  {}  {arch}  {frames}", self.style.paint(Look::Bad, &image.name), id(image))?;
        for tried in &symbols.tried {
            writeln!(out, "      {}", self.style.paint(Look::Faint, tried))?;
        }
        Ok(())
    }

    fn notes(&self, out: &mut dyn Write) -> io::Result<()> {
        self.list(out, "Notes", &self.report().notes, |_| "-".to_owned())
    }
}

/// Whether frames stayed without names for want of this image's symbols.
pub(crate) fn is_missing(symbols: &ImageSymbols) -> bool {
    matches!(symbols.status, SymbolStatus::Missing | SymbolStatus::IdMismatch(_))
}

/// The image's identity, or that it has none.
pub(crate) fn id(image: &Image) -> String {
    image.id.map_or_else(|| "no identity".to_owned(), |id| id.to_string())
}

/// Process, version, system, device, time: one line.
pub(crate) fn subject(report: &Report) -> String {
    let process = &report.process;
    let mut head = process.name.clone().unwrap_or_default();
    for (before, text, after) in
        [(" ", process.version.clone(), ""), (" [", process.pid.map(|pid| pid.to_string()), "]")]
    {
        if let Some(text) = text {
            head = format!("{head}{before}{text}{after}");
        }
    }
    let arch = process.arch.map(|arch| arch.name().to_owned());
    let parts = [Some(head), arch, report.os.clone(), report.device.clone(), report.time.clone()];
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.trim().is_empty()).collect();
    parts.join(" · ")
}

/// The exception or termination in the report's own words.
pub(crate) fn what(report: &Report) -> Option<String> {
    if let Some(exception) = &report.exception {
        let signal = exception.signal.as_deref();
        let head = match (exception.kind.as_deref(), signal) {
            (Some(kind), Some(signal)) => format!("{kind} ({signal})"),
            (kind, signal) => kind.or(signal).unwrap_or_default().to_owned(),
        };
        let detail = exception.subtype.as_deref().or(exception.codes.as_deref()).unwrap_or_default();
        let what = format!("{head} {detail}");
        return Some(what.trim().to_owned()).filter(|what| !what.is_empty());
    }
    let termination = report.termination.as_ref()?;
    let code = termination.code.map(|code| format!("{code:#x}"));
    let parts = [termination.namespace.clone(), code, termination.reason.clone()];
    Some(parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// The innermost frame of the fault that has a source line, with its inline callers; else the innermost named one.
pub(crate) fn where_lines(report: &Report, folder: Option<&str>) -> Vec<String> {
    let frames = report.fault_frames();
    let located = frames.iter().find(|frame| frame.functions.iter().any(|function| function.file.is_some()));
    if let Some(frame) = located {
        let line = |function: &backtrail::Function| match place(function, folder) {
            Some(place) => format!("{} at {place}", function.name),
            None => function.name.clone(),
        };
        let with_role = |(position, function): (usize, &backtrail::Function)| {
            if position == 0 { line(function) } else { format!("  inlined into {}", line(function)) }
        };
        return frame.functions.iter().enumerate().map(with_role).collect();
    }
    let rows = rows(report, frames, folder);
    let named = rows.iter().find(|row| row.reason.is_none()).or(rows.first());
    named.map(|row| format!("{} in {}", row.what, row.image)).into_iter().collect()
}

/// The verdict in words.
pub(crate) fn whose(analysis: &Analysis) -> String {
    let attribution = &analysis.attribution;
    let name = attribution.name.as_deref();
    match (attribution.verdict, name) {
        (Verdict::App, Some(name)) => format!("the app's own code ({name})"),
        (Verdict::App, None) => "the app's own code".to_owned(),
        (Verdict::Sdk, Some(name)) => format!("a library shipped inside the app: {name}"),
        (Verdict::Sdk, None) => "a library shipped inside the app".to_owned(),
        (Verdict::System, Some(name)) => format!("the system ({name}); no code of the app took part"),
        (Verdict::System, None) => "the system; no code of the app took part".to_owned(),
        _ => "the report does not tell".to_owned(),
    }
}

/// `Thread 3 name (crashed), queue com.apple.main-thread`.
pub(crate) fn thread_title(thread: &Thread) -> String {
    let crashed = if thread.crashed { " crashed" } else { "" };
    let name = thread.name.as_deref().map(|name| format!(" · {name}")).unwrap_or_default();
    let queue = thread.queue.as_deref().map(|queue| format!(" · queue {queue}")).unwrap_or_default();
    format!("Thread {}{crashed}{name}{queue}", thread.number)
}

/// Threads with the same stack together, in the order of each group's first.
pub(crate) fn folded<'a>(threads: impl Iterator<Item = &'a Thread>) -> Vec<Vec<&'a Thread>> {
    let mut groups: Vec<Vec<&Thread>> = Vec::new();
    let mut seen = std::collections::HashMap::new();
    for thread in threads {
        let key: Vec<_> = thread.frames.iter().map(|frame| (frame.address, &frame.image_name)).collect();
        let position = *seen.entry(key).or_insert(groups.len());
        match groups.get_mut(position) {
            Some(group) => group.push(thread),
            None => groups.push(vec![thread]),
        }
    }
    groups
}
