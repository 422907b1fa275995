//! The text that a person reads first: what, where, why, whose; then the stacks.

use super::paths::common_folder;
use super::stack::{place, rows};
use super::style::{Look, Style, plain};
use super::threads::Threads;
use backtrail::{Analysis, Image, ImageSymbols, Report, SymbolStatus, Thread, Verdict};
use std::io::{self, Write};

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
        let threads = Threads { report, style: self.style, folder: self.folder };
        if let Some(folder) = self.folder {
            let note = format!("\nSource files are below {folder}");
            writeln!(out, "{}", self.style.paint(Look::Faint, note))?;
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
        let others =
            others.filter(|(index, _)| Some(*index) != report.process.crashed_thread).map(|(_, thread)| thread);
        for group in folded(others) {
            threads.thread(out, &group)?;
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
    let mut head = plain(process.name.as_deref().unwrap_or_default()).into_owned();
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

/// `Thread 3 crashed · name · queue com.apple.main-thread`; of a process that runs also its id, what it is doing and what
/// time it takes.
pub(crate) fn thread_title(thread: &Thread) -> String {
    let crashed = if thread.crashed { " crashed" } else { "" };
    let name = thread.name.as_deref().map(|name| format!(" · {}", plain(name))).unwrap_or_default();
    let queue = thread.queue.as_deref().map(|queue| format!(" · queue {}", plain(queue))).unwrap_or_default();
    format!("Thread {}{crashed}{name}{queue}{}", thread.number, live(thread))
}

/// What is known of a thread of a process that runs only.
fn live(thread: &Thread) -> String {
    let Some(priority) = thread.priority else { return String::new() };
    let mut words = Vec::new();
    words.extend(thread.id.map(|id| match thread.namespace_id {
        Some(inner) => format!("id {id} ({inner} in its namespace)"),
        None => format!("id {id}"),
    }));
    words.extend(doing(thread));
    words.extend(thread.cpu_usage.map(|usage| format!("{:.0} % CPU", usage * 100.0)));
    for (time, what) in [(thread.user_time, "user"), (thread.system_time, "system")] {
        words.extend(time.filter(|time| *time > 0.0).map(|time| format!("{time:.2} s {what}")));
    }
    match (priority, thread.nice) {
        (..0, _) => words.push(format!("real-time priority {}", -1 - priority)),
        (_, Some(nice)) if nice != 0 => words.push(format!("nice {nice}")),
        _ => {}
    }
    words.iter().map(|word| format!(" · {word}")).collect()
}

/// `sleeping in read of pipe:[4242]`.
fn doing(thread: &Thread) -> Option<String> {
    let state = thread.state.as_deref()?;
    let call = thread.waiting_in.as_deref().map(|call| format!(" in {call}")).unwrap_or_default();
    let file = thread.waiting_on.as_deref().map(|file| format!(" of {}", plain(file))).unwrap_or_default();
    Some(format!("{state}{call}{file}"))
}

/// `37 threads: 1, 2, 5 to 39`; of a process that runs with ids and names: `2 threads: 4711 pool-1, 4712 pool-2`.
pub(crate) fn group_title(group: &[&Thread]) -> String {
    let is_live = group.iter().any(|thread| thread.priority.is_some());
    let label = |thread: &&Thread| match (is_live, thread.id) {
        (true, Some(id)) => {
            let name = plain(thread.name.as_deref().unwrap_or_default());
            format!("{id} {name}").trim_end().to_owned()
        }
        _ => thread.number.to_string(),
    };
    let labels: Vec<_> = group.iter().map(label).collect();
    let what = doings(group).map(|what| format!(" · {what}")).unwrap_or_default();
    format!("{} threads: {}{what}", group.len(), labels.join(", "))
}

/// What threads with the same stack do, if it is the same, and what time they take together.
fn doings(group: &[&Thread]) -> Option<String> {
    group.first()?.priority?;
    let mut what: Vec<_> = group.iter().filter_map(|thread| doing(thread)).collect();
    what.sort();
    what.dedup();
    let usage: f64 = group.iter().filter_map(|thread| thread.cpu_usage).sum();
    let what = if what.len() <= 2 { what.join(", ") } else { format!("{} and others", what.first()?) };
    Some(format!("{what} · {:.0} % CPU", usage * 100.0))
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
