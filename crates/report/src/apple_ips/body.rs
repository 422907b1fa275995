//! The body of a crash report.

use super::leftovers::{fill, keep, text};
use super::{asi, exception, images, threads};
use crate::Limits;
use crate::apple_text::mark_throw;
use crate::json::{Json, Member};
use crate::notes::Notes;
use backtrail_core::Arch;
use backtrail_model::{Exception, Report, Section, Source};

/// Whether a JSON object is a crash report's body, possibly cut.
pub(super) fn looks_like_crash(document: &Json<'_>) -> bool {
    let telling = ["threads", "usedImages", "exception", "procName", "lastExceptionBacktrace", "termination"];
    telling.iter().filter(|name| document.get(name).is_some()).count() >= 2
}

/// Reads a body, member by member.
#[derive(Debug)]
pub(super) struct Body<'d, 'l> {
    pub(super) input: &'d [u8],
    pub(super) limits: &'l Limits,
    pub(super) report: Report,
    pub(super) notes: Notes,
    pub(super) frames_left: usize,
    pub(super) lines_left: usize,
    faulting_thread: Option<u64>,
    version: Versions,
    os: Os,
}

/// The two halves of a version.
#[derive(Debug, Default)]
struct Versions {
    short: Option<String>,
    build: Option<String>,
}

/// The two halves of an operating system's name.
#[derive(Debug, Default)]
struct Os {
    train: Option<String>,
    build: Option<String>,
}

impl<'d, 'l> Body<'d, 'l> {
    pub(super) fn new(input: &'d [u8], limits: &'l Limits) -> Self {
        Self {
            input,
            limits,
            report: Report { source: Source::AppleIps, ..Report::default() },
            notes: Notes::new(limits.max_notes),
            frames_left: limits.max_frames,
            lines_left: limits.max_items,
            faulting_thread: None,
            version: Versions::default(),
            os: Os::default(),
        }
    }

    pub(super) fn read(mut self, document: &Json<'_>) -> Report {
        // Frames name images by position, so these come first wherever they stand.
        let is_images = |member: &&Member<'_>| member.name() == "usedImages";
        let images = document.members().iter().rev().find(is_images);
        if let Some(images) = images {
            images::read(&mut self, &images.value);
        }
        for member in document.members() {
            if images.is_some_and(|images| std::ptr::eq(images, member)) {
                continue;
            }
            let name = member.name();
            if !self.member(&name, &member.value) {
                self.keep(name.into_owned(), &member.value);
            }
        }
        self.finish(document)
    }

    /// Keeps what the model has no place for.
    pub(super) fn keep(&mut self, path: String, value: &Json<'_>) {
        keep(&mut self.report, self.input, path, value, self.limits.max_items);
    }

    /// Goes through the members of an object; those that `take` does not take are kept as text under their path.
    pub(super) fn members_of(
        &mut self,
        path: &str,
        object: &Json<'_>,
        mut take: impl FnMut(&mut Self, &str, &Json<'_>) -> bool,
    ) -> bool {
        for member in object.members() {
            let name = member.name();
            if !take(self, &name, &member.value) {
                self.keep(format!("{path}.{name}"), &member.value);
            }
        }
        object.is_object()
    }

    /// Each of these takes a member into the model, or says `false`.
    fn member(&mut self, name: &str, value: &Json<'_>) -> bool {
        self.process_member(name, value) || self.text_block(name, value) || self.part(name, value)
    }

    fn process_member(&mut self, name: &str, value: &Json<'_>) -> bool {
        let report = &mut self.report;
        let process = &mut report.process;
        match name {
            "procName" => fill(&mut process.name, text(value)),
            "pid" => fill(&mut process.pid, value.number()),
            "procPath" => fill(&mut process.path, text(value)),
            "procRole" => fill(&mut process.role, text(value)),
            "parentProc" => fill(&mut process.parent, text(value)),
            "modelCode" => fill(&mut report.device, text(value)),
            "captureTime" => fill(&mut report.time, text(value)),
            "incident" => fill(&mut report.incident, text(value)),
            "cpuType" => {
                let name = value.text().unwrap_or_default();
                let arch = Arch::from_name(&name);
                fill(&mut process.arch, arch) && arch.is_some_and(|arch| arch.name() == name)
            }
            _ => false,
        }
    }

    /// Texts of many lines; the titles are those of the text reports.
    fn text_block(&mut self, name: &str, value: &Json<'_>) -> bool {
        let title = match name {
            "vmregioninfo" => "VM Region Info",
            "vmSummary" => "VM Region Summary",
            "ktriageinfo" => "Kernel Triage",
            "reportNotes" => "Notes",
            _ => return false,
        };
        let lines: Vec<_> = value.items().iter().filter_map(text).collect();
        let text = match text(value) {
            Some(text) => text,
            None if !lines.is_empty() && lines.len() == value.items().len() => lines.join("\n"),
            None => return false,
        };
        self.report.sections.push(Section { title: title.to_owned(), text });
        true
    }

    fn part(&mut self, name: &str, value: &Json<'_>) -> bool {
        match name {
            "exception" => exception::read_exception(self, value),
            "termination" => exception::read_termination(self, value),
            "isSimulated" => self.exception_note(value, "SIMULATED (this is NOT a crash)"),
            "isNonFatal" => self.exception_note(value, "NON-FATAL CONDITION (this is NOT a crash)"),
            "isCorpse" => self.exception_note(value, "EXC_CORPSE_NOTIFY"),
            "osVersion" => self.members_of(name, value, |body, name, value| match name {
                "train" => fill(&mut body.os.train, text(value)),
                "build" => fill(&mut body.os.build, text(value)),
                _ => false,
            }),
            "bundleInfo" => self.members_of(name, value, |body, name, value| match name {
                "CFBundleIdentifier" => fill(&mut body.report.process.identifier, text(value)),
                "CFBundleShortVersionString" => fill(&mut body.version.short, text(value)),
                "CFBundleVersion" => fill(&mut body.version.build, text(value)),
                _ => false,
            }),
            "asi" => asi::read_messages(self, value),
            "asiBacktraces" => asi::read_backtraces(self, value),
            "lastExceptionBacktrace" => threads::read_last_exception(self, value),
            "threads" => threads::read(self, value),
            "faultingThread" => fill(&mut self.faulting_thread, value.number()),
            _ => false,
        }
    }

    /// Text reports print these flags as notes.
    fn exception_note(&mut self, flag: &Json<'_>, words: &str) -> bool {
        if flag.truth() != Some(true) {
            return false;
        }
        let note = &mut self.report.exception.get_or_insert_with(Exception::default).note;
        match note {
            Some(note) => note.extend([", ", words]),
            None => *note = Some(words.to_owned()),
        }
        true
    }

    fn finish(mut self, document: &Json<'_>) -> Report {
        self.blame(document);
        let os = [self.os.train.take(), self.os.build.take().map(|build| format!("({build})"))];
        self.report.os = join(os);
        let version =
            [self.version.short.take(), self.version.build.take().map(|build| format!("({build})"))];
        self.report.process.version = join(version);
        exception::finish(&mut self.report);
        mark_throw(&mut self.report);
        self.report.process.place_frames();
        let mut report = self.report;
        report.notes = self.notes.finish();
        report
    }

    /// The mark at a thread counts, then the position that the body names.
    fn blame(&mut self, document: &Json<'_>) {
        let threads = &mut self.report.process.threads;
        let marked = threads.iter().position(|thread| thread.crashed);
        let named = self.faulting_thread.and_then(|number| usize::try_from(number).ok());
        if let (Some(named), Some(marked)) = (named, marked)
            && named != marked
        {
            self.notes
                .add(|| format!("`faultingThread` is {named}, but thread {marked} is marked as triggered"));
        }
        let position = marked.or(named.filter(|position| *position < threads.len()));
        self.report.process.crashed_thread = position;
        let Some(thread) = position.and_then(|position| threads.get_mut(position)) else { return };
        thread.crashed = true;
        let legacy = document.get("legacyInfo").and_then(|info| info.get("threadTriggered"));
        let legacy = |name: &str| legacy.and_then(|info| info.get(name)).and_then(text);
        thread.name = thread.name.take().or_else(|| legacy("name"));
        thread.queue = thread.queue.take().or_else(|| legacy("queue"));
    }
}

fn join(parts: [Option<String>; 2]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}
