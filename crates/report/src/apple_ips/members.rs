//! The body of a crash report, member by member.

use super::body::Body;
use super::{asi, exception, images, threads};
use crate::apple_text::mark_throw;
use crate::json::{Json, Member};
use crate::leftovers::{fill, text};
use crate::members::joined;
use backtrail_core::Arch;
use backtrail_model::{Exception, Report, Section};

impl Body<'_, '_> {
    /// Reads the whole of it.
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

    /// Each of these takes a member into the model, or says `false`.
    pub(super) fn member(&mut self, name: &str, value: &Json<'_>) -> bool {
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
            "translated" => {
                process.translated |= value.truth() == Some(true);
                // `false` is kept, too: that it was not translated is said by newer systems only.
                value.truth() == Some(true)
            }
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
            "asiSignatures" => "Application Specific Signatures",
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

    pub(super) fn finish(mut self, document: &Json<'_>) -> Report {
        self.blame(document);
        let os = [self.os.train.take(), self.os.build.take().map(|build| format!("({build})"))];
        self.report.os = joined(os);
        let version =
            [self.version.short.take(), self.version.build.take().map(|build| format!("({build})"))];
        self.report.process.version = joined(version);
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
