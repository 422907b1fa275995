//! What is settled when the whole report is known.

use super::foreign;
use super::header::{self, states_file_offsets, unquoted};
use super::java_row::trace_head;
use super::reader::{KindsSeen, Reader};
use backtrail_core::{FileOffset, ImageId};
use backtrail_model::{AppInfo, Exception, Language, Process, Report, Section, Source, Thread};
use std::collections::{BTreeMap, HashMap};

impl Reader<'_> {
    pub(super) fn finish(mut self) -> Report {
        self.report.sections.retain(|section| !section.title.is_empty() || !section.text.trim().is_empty());
        if !self.prefixes.is_empty() {
            let text = self.prefixes.join("\n");
            self.report.sections.push(Section { title: "What the log says of these lines".to_owned(), text });
        }
        self.report.notes = self.notes.finish();
        add_channels(&mut self.report.process, self.channels);
        let mut report = self.report;
        if !self.finished.is_empty() {
            self.finished.push(std::mem::take(&mut report.process));
            let mut processes = self.finished.into_iter();
            report.process = processes.next().unwrap_or_default();
            report.processes = processes.collect();
        }
        if let Some(line) = self.fatal.filter(|_| report.exception.is_none()) {
            only_fatal(&mut report, &line);
        }
        let is_untold =
            report.exception.as_ref().is_some_and(|known| known.signal.is_some() && known.message.is_none());
        if is_untold && let Some(message) = &self.jni {
            header::set(&mut report, "Abort message", message);
        } else if is_untold && let Some((tag, words)) = self.last_words {
            let info = AppInfo { image: Some(tag), lines: vec![words.clone()] };
            report.app_info.push(info);
            report.exception.get_or_insert_with(Exception::default).message = Some(words);
        }
        if let Some(message) = self.jni.filter(|_| report.exception.is_none()) {
            header::set(&mut report, "Abort message", &message);
            self.found.tombstone = true;
            // The runtime shows the thread that called.
            if let Some(thread) = report.process.threads.first_mut() {
                thread.crashed = true;
                report.process.crashed_thread = Some(0);
            }
        }
        foreign::part(&mut report.process, self.limits);
        report.source = source(&report, self.found);
        settle(&mut report);
        report
    }
}

/// The signal that the C library logged, where no tombstone followed.
fn only_fatal(report: &mut Report, line: &str) {
    let Some((exception, id, name)) = header::fatal(line) else { return };
    report.exception = Some(exception);
    if report.process.threads.is_empty() {
        let name = name.map(str::to_owned);
        report.process.threads.push(Thread { id, name, crashed: true, ..Thread::default() });
        report.process.crashed_thread = Some(0);
    }
}

/// What the kernel has threads wait in. A trace that could not be taken has nothing else of them.
fn add_channels(process: &mut Process, channels: BTreeMap<u64, (Option<String>, Option<String>)>) {
    if process.threads.is_empty() {
        let thread = |(number, (id, (state, channel)))| Thread {
            number: number as u64,
            id: Some(id),
            state,
            waiting_in: channel,
            ..Thread::default()
        };
        process.threads = channels.into_iter().enumerate().map(thread).collect();
        return;
    }
    for thread in &mut process.threads {
        let known = thread.id.and_then(|id| channels.get(&id));
        thread.waiting_in = known.and_then(|(_, channel)| channel.clone());
    }
}

/// What all readers of these kinds settle last.
pub(super) fn settle(report: &mut Report) {
    join_names(report);
    blame(report);
    ids_of_sections(report);
    if states_file_offsets(report) {
        to_file_offsets(report);
    }
    mark_thrown(report);
    for process in report.all_processes_mut() {
        let arch = process.arch;
        process.images.iter_mut().for_each(|image| image.arch = arch);
    }
}

fn source(report: &Report, found: KindsSeen) -> Source {
    let crash_type = report.fields.iter().find(|field| field.key == "Crash type");
    let is_anr = crash_type.is_some_and(|field| unquoted(&field.value) == "anr");
    let has_native =
        report.process.threads.iter().any(|thread| thread.frames.iter().any(|f| f.language.is_none()));
    match found {
        _ if is_anr => Source::AndroidAnr,
        KindsSeen { tombstone: true, .. } => Source::AndroidTombstone,
        KindsSeen { art: true, .. } => Source::AndroidAnr,
        KindsSeen { hotspot: true, .. } => Source::JavaThreadDump,
        KindsSeen { java: true, .. } if !has_native => Source::JavaTrace,
        _ => Source::AndroidTombstone,
    }
}

/// The names that several lines state.
fn join_names(report: &mut Report) {
    let process = &mut report.process;
    if process.path.is_none() {
        process.path =
            process.command_line.as_deref().and_then(|line| line.split(' ').next()).map(str::to_owned);
        process.path = process.path.take().filter(|path| path.starts_with('/'));
    }
    if process.identifier.is_none()
        && let Some(name) = process.name.as_deref().filter(|name| name.contains('.') && !name.contains('/'))
    {
        // A package's further processes are named behind a colon.
        process.identifier = name.split(':').next().map(str::to_owned);
    }
}

/// The thread that the report is about, where no line marks it: the one that a Java exception ended, or the main thread
/// that did not respond.
fn blame(report: &mut Report) {
    let process = &mut report.process;
    if process.crashed_thread.is_some() || process.threads.is_empty() {
        return;
    }
    let crash_type = report.fields.iter().find(|field| field.key == "Crash type");
    let is_java = crash_type.is_some_and(|field| unquoted(&field.value) == "java");
    if is_java || report.exception.as_ref().is_some_and(|exception| exception.signal.is_some()) {
        process.crashed_thread = Some(0);
        if let Some(thread) = process.threads.first_mut() {
            thread.crashed = true;
        }
    } else if report.source == Source::AndroidAnr {
        let is_main = |thread: &backtrail_model::Thread| {
            thread.name.as_deref() == Some("main") || thread.id.is_some() && thread.id == process.pid
        };
        process.crashed_thread = process.threads.iter().position(is_main);
    }
}

/// xCrash states the identities of files in a list behind the stack.
fn ids_of_sections(report: &mut Report) {
    let mut ids = HashMap::new();
    for section in report.sections.iter().filter(|section| section.title == "build id") {
        for line in section.text.lines() {
            let Some((path, rest)) = line.trim().split_once(" (BuildId: ") else { continue };
            let word = rest.split(['.', ')', ' ']).next().unwrap_or_default();
            if let Ok(id) = ImageId::parse_build_id(word) {
                ids.insert(path.to_owned(), id);
            }
        }
    }
    for image in report.process.images.iter_mut().filter(|image| image.id.is_none()) {
        image.id = image.path.as_ref().and_then(|path| ids.get(path)).copied();
    }
}

fn to_file_offsets(report: &mut Report) {
    for process in report.all_processes_mut() {
        for frame in process.frames_mut() {
            frame.file_offset = frame.relative_pc.take().map(|pc| FileOffset::new(pc.get()));
        }
    }
}

/// The exception that nobody caught, and the stack of its root cause.
fn mark_thrown(report: &mut Report) {
    let Process { backtraces, .. } = &mut report.process;
    let heads: Vec<_> = backtraces
        .iter()
        .enumerate()
        .filter_map(|(at, backtrace)| {
            let line = backtrace.title.lines().next()?;
            let head =
                trace_head(line).map(|(before, class, message)| (before, class, message.map(str::to_owned)));
            // A script's error bears no class.
            let is_scripts =
                || backtrace.frames.first().is_some_and(|frame| frame.language == Some(Language::JavaScript));
            let is_cause = |line: &str| line.starts_with("Caused by: ") && is_scripts();
            let (before, class, message) =
                head.or_else(|| is_cause(line).then_some(("Caused by: ", "", None)))?;
            Some((at, before.to_owned(), class.to_owned(), message))
        })
        .collect();
    let Some((_, before, class, message)) = heads.first().cloned() else { return };
    let is_java = report.exception.as_ref().is_none_or(|exception| exception.signal.is_none());
    if !is_java {
        return;
    }
    let first = heads.first().map_or(0, |(at, ..)| *at);
    // The causes stand right behind what they caused.
    let causes = heads.iter().skip(1).take_while(|(_, before, ..)| !before.is_empty());
    let root = causes.filter(|(_, before, ..)| before.starts_with("Caused by")).map(|(at, ..)| *at).last();
    if let Some(backtrace) = backtraces.get_mut(root.unwrap_or(first)) {
        backtrace.is_exception = true;
    }
    let lines = backtraces.get(first).map(|backtrace| backtrace.title.clone()).unwrap_or_default();
    let more = lines.split_once('\n').map(|(_, more)| format!("\n{more}")).unwrap_or_default();
    let known = report.exception.take().unwrap_or_default();
    // Crashlytics' pages have it below the class.
    let below =
        Some(more.trim().to_owned()).filter(|below| before == "Fatal Exception: " && !below.is_empty());
    let message = message.map(|message| format!("{message}{more}")).or(below);
    report.exception = Some(Exception { kind: Some(class), message: message.or(known.message), ..known });
    if let Some(thread) = before.strip_prefix("Exception in thread \"") {
        header::field(report, "Thread", thread.trim_end().trim_end_matches('"'));
    }
}
