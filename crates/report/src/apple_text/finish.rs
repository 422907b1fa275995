//! What can be said only when all lines are read: which images addresses lie in, which thread is blamed.

use super::header::{fault_address, loaders_code};
use super::reader::Reader;
use crate::signal_words;
use crate::stack::{Origin, settle};
use backtrail_core::Avma;
use backtrail_model::{Exception, Field, Recursion, Report, Termination, Thread};

impl Reader<'_> {
    pub(super) fn finish(mut self) -> Report {
        self.add_umeng_image();
        self.blame();
        let report = &mut self.report;
        for thread in &mut report.process.threads {
            settle(&mut thread.frames, Origin::Thread);
            find_elided(thread);
        }
        for backtrace in &mut report.process.backtraces {
            settle(&mut backtrace.frames, Origin::Backtrace);
        }
        mark_throw(report);
        find_translation(report);
        report.process.place_frames();
        name_signal(report);
        chromiums_signal(report);
        loaders_words(report);
        if let Some(exception) = &mut report.exception {
            exception.address = exception.address.or_else(|| fault_address(exception));
        }
        let mut report = self.report;
        report.notes = self.notes.finish();
        report
    }

    /// The mark at a thread counts; then the header's word; then whose state was printed.
    fn blame(&mut self) {
        let threads = &mut self.report.process.threads;
        let marked = threads.iter().position(|thread| thread.crashed);
        let named = self.blamed.number.and_then(|number| threads.iter().position(|t| t.number == number));
        if let (Some(number), Some(marked)) =
            (self.blamed.number, marked.filter(|marked| named != Some(*marked)))
        {
            let other = threads.get(marked).map_or(0, |thread| thread.number);
            self.notes.add(|| {
                format!("the header blames thread {number}, but thread {other} is marked as crashed")
            });
        }
        if let Some(number) = self.blamed.number.filter(|_| marked.is_none() && named.is_none()) {
            // The report was cut before the stack of that thread.
            let field = Field { key: "Crashed Thread".to_owned(), value: number.to_string() };
            self.report.fields.push(field);
        }
        self.report.process.crashed_thread = marked.or(named).or(self.blamed.state);
        if let Some(thread) =
            self.report.process.crashed_thread.and_then(|position| threads.get_mut(position))
        {
            thread.crashed = true;
        }
    }
}

/// An exception's stack shows itself by the functions that throw. A report that states where its exception was thrown
/// needs no second one.
pub(crate) fn mark_throw(report: &mut Report) {
    if report.process.backtraces.iter().any(|backtrace| backtrace.is_exception) {
        return;
    }
    let throws =
        |name: &str| matches!(name, "objc_exception_throw" | "__exceptionPreprocess" | "__cxa_throw");
    let thrown = report.process.backtraces.iter_mut().find(|backtrace| {
        let top = backtrace.frames.iter().take(4);
        top.filter_map(|frame| frame.reported.as_ref()).any(|symbol| throws(&symbol.name))
    });
    if let Some(backtrace) = thrown {
        backtrace.is_exception = true;
    }
}

/// Where Rosetta made the code, the crash reporter has no image to name.
fn find_translation(report: &mut Report) {
    const NO_IMAGE: &str = "<translation info unavailable>";
    for frame in report.process.threads.iter_mut().flat_map(|thread| &mut thread.frames) {
        if frame.image_name.take_if(|name| *name == NO_IMAGE).is_some() {
            report.process.translated = true;
        }
    }
}

/// `Termination Signal` says in words what ended the process, where no reason does.
fn name_signal(report: &mut Report) {
    let signal = report.fields.iter().find(|field| field.key == "Termination Signal");
    if let Some(signal) = signal.map(|field| field.value.clone()) {
        let reason = &mut report.termination.get_or_insert_with(Termination::default).reason;
        reason.get_or_insert(signal);
    }
}

/// What Chromium says of a signal before the stack that it prints itself.
fn chromiums_signal(report: &mut Report) {
    if report.exception.is_some() || report.termination.is_some() {
        return;
    }
    let mut lines = report.sections.iter().flat_map(|section| section.text.lines());
    let told = lines.find_map(|line| Some((signal_words::chromiums_signal(line)?, line)));
    let Some(((signal, address), line)) = told else { return };
    report.exception = Some(Exception {
        signal: Some(signal.to_owned()),
        codes: line.split_whitespace().nth(3).map(str::to_owned),
        address: address.map(Avma::new),
        ..Exception::default()
    });
}

/// Older reports have the loader's words in a section of their own; of a part of one these may be all that tells what happened.
fn loaders_words(report: &mut Report) {
    if report.exception.is_some() || report.termination.is_some() {
        return;
    }
    let of_section = report.sections.iter().filter(|section| section.title == "Dyld Error Message");
    let lines = of_section.flat_map(|section| section.text.lines()).map(str::trim);
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("Dyld Message: ").unwrap_or(line)).collect();
    let found = lines.iter().enumerate().find_map(|(at, line)| Some((at, loaders_code(line)?)));
    let Some((at, code)) = found else { return };
    let details = lines.iter().skip(at).map(|line| (*line).to_owned()).collect();
    report.termination = Some(Termination {
        namespace: Some("DYLD".to_owned()),
        code: Some(code),
        details,
        ..Termination::default()
    });
}

/// What was left out shows as a gap in the numbers of the rows.
fn find_elided(thread: &mut Thread) {
    let Some(recursion) = &mut thread.recursion else { return };
    let gap = thread.frames.windows(2).find_map(|pair| match pair {
        [row, next] if next.index > row.index.saturating_add(1) => Some((row.index, next.index)),
        _ => None,
    });
    let depth = thread.frames.last().map_or(0, |frame| u64::from(frame.index) + 1);
    *recursion = Recursion {
        depth,
        first_elided: gap.map(|(before, _)| u64::from(before) + 1),
        last_elided: gap.map(|(_, behind)| u64::from(behind) - 1),
    };
}
