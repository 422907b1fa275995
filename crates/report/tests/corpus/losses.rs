//! Nothing that a report says is lost: each of its words is found again somewhere in the model.

use crate::{json_reports, read, text_reports};
use backtrail_core::{Arch, Avma, FileOffset, FrameAddress, Svma};
use backtrail_model::{Field, Frame, Process, Report};
use serde_json::Value;
use std::collections::HashSet;

/// A word without what is only form: leading zeros, case of digits.
fn plain(word: &str) -> String {
    match word.strip_prefix("0x") {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_hexdigit()) && !digits.is_empty() => {
            format!("0x{}", digits.trim_start_matches('0').to_lowercase())
        }
        _ => word.to_lowercase(),
    }
}

pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).map(plain)
}

#[derive(Default)]
pub(crate) struct Words(pub(crate) HashSet<String>);

impl Words {
    fn text(&mut self, text: &str) {
        self.0.extend(words(text));
    }

    fn some(&mut self, text: Option<&String>) {
        self.0.extend(text.into_iter().flat_map(|text| words(text)));
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.insert(plain(&format!("{number:#x}")));
        self.0.insert(number.to_string());
    }

    fn frame(&mut self, frame: &Frame) {
        self.number(u64::from(frame.index));
        self.some(frame.image_name.as_ref());
        if let Some(symbol) = &frame.reported {
            self.text(&symbol.name);
            self.some(symbol.file.as_ref());
            self.number(symbol.offset.unwrap_or_default());
            self.number(u64::from(symbol.line.unwrap_or_default()));
        }
        let address = frame.address.map(FrameAddress::raw);
        self.number(address.map_or(0, Avma::get));
        self.number(frame.image_offset.unwrap_or_default());
        let start = frame.reported.as_ref().and_then(|symbol| address?.get().checked_sub(symbol.offset?));
        self.number(start.unwrap_or_default());
        let base = address.and_then(|address| address.get().checked_sub(frame.image_offset?));
        self.number(base.unwrap_or_default());
        self.number(frame.relative_pc.map_or(0, Svma::get));
        self.number(frame.file_offset.map_or(0, FileOffset::get));
        self.number(frame.stack_pointer.map_or(0, Avma::get));
        frame.annotations.iter().for_each(|line| self.text(line));
    }

    pub(crate) fn of(report: &Report) -> Self {
        let mut all = Self::default();
        all.some(report.event.as_ref());
        for text in [&report.os, &report.device, &report.time, &report.incident] {
            all.some(text.as_ref());
        }
        if let Some(exception) = &report.exception {
            for text in [&exception.kind, &exception.signal, &exception.codes, &exception.subtype] {
                all.some(text.as_ref());
            }
            all.some(exception.message.as_ref());
            all.some(exception.note.as_ref());
            exception.raw_codes.iter().for_each(|code| all.number(*code));
        }
        if let Some(termination) = &report.termination {
            all.some(termination.namespace.as_ref());
            all.number(termination.code.unwrap_or_default());
            all.some(termination.reason.as_ref());
            all.some(termination.by_process.as_ref());
            all.number(termination.by_pid.unwrap_or_default());
            termination.details.iter().for_each(|detail| all.text(detail));
        }
        for process in std::iter::once(&report.process).chain(&report.processes) {
            all.process(process);
        }
        for info in &report.app_info {
            all.some(info.image.as_ref());
            info.lines.iter().for_each(|line| all.text(line));
        }
        all.fields(&report.fields);
        report.sections.iter().for_each(|section| all.text(&format!("{} {}", section.title, section.text)));
        report.notes.iter().for_each(|note| all.text(note));
        all
    }

    fn fields(&mut self, fields: &[Field]) {
        fields.iter().for_each(|field| self.text(&format!("{} {}", field.key, field.value)));
    }

    fn process(&mut self, process: &Process) {
        for text in [&process.name, &process.path, &process.identifier, &process.version, &process.role] {
            self.some(text.as_ref());
        }
        self.number(process.pid.unwrap_or_default());
        self.number(process.memory.unwrap_or_default());
        self.some(process.parent.as_ref());
        self.some(process.command_line.as_ref());
        self.some(process.kill_reason.as_ref());
        self.text(process.arch.map_or("", Arch::name));
        self.fields(&process.fields);
        for tree in &process.trees {
            self.text(&tree.title);
            for node in &tree.nodes {
                self.number(node.weight);
                self.some(node.note.as_ref());
                self.frame(&node.frame);
            }
        }
        for thread in &process.threads {
            self.fields(&thread.fields);
            self.some(thread.state.as_ref());
            self.some(thread.waiting_on.as_ref());
            self.number(thread.priority.unwrap_or_default().cast_unsigned());
            for seconds in [thread.user_time, thread.system_time].into_iter().flatten() {
                self.text(&format!("{:.0}", seconds * 1e6));
            }
            self.number(thread.number);
            self.number(thread.id.unwrap_or_default());
            self.some(thread.name.as_ref());
            self.some(thread.queue.as_ref());
            self.some(thread.state.as_ref());
            thread.frames.iter().for_each(|frame| self.frame(frame));
            for register in &thread.registers {
                self.text(&register.name);
                self.number(register.value);
                self.some(register.note.as_ref());
            }
        }
        for backtrace in &process.backtraces {
            self.text(&backtrace.title);
            backtrace.frames.iter().for_each(|frame| self.frame(frame));
        }
        for image in &process.images {
            self.text(&image.name);
            for text in [&image.path, &image.bundle_id, &image.version, &image.source] {
                self.some(text.as_ref());
            }
            self.text(image.arch.map_or("", Arch::name));
            self.number(image.file_offset.map_or(0, FileOffset::get));
            let id = image.id.map(|id| id.to_string()).unwrap_or_default();
            self.text(&id);
            self.text(&id.replace('-', ""));
            self.number(image.load_address.get());
            let end = image.end_address.map_or(1, Avma::get);
            self.number(end - 1);
            self.number(end - image.load_address.get().min(end));
        }
    }
}

/// Words of the form, which the model states by its own structure.
const FORM: &str = "Thread Crashed Triggered by name Dispatch queue crashed with Binary Images Last Exception \
    Backtrace Application Specific Information EOF Incident Identifier Hardware Model Process Path Version Code Type \
    Role Parent OS Date/Time Codes Subtype Note Termination Reason Namespace Terminating in";

#[test]
fn every_word_of_a_text_report_is_in_the_model() {
    let form: HashSet<String> = words(FORM).collect();
    for path in text_reports() {
        let (input, report) = read(&path);
        let model = Words::of(&report);
        for (number, line) in String::from_utf8(input).unwrap().lines().enumerate() {
            let lost: Vec<String> =
                words(line).filter(|word| !model.0.contains(word) && !form.contains(word)).collect();
            assert!(lost.is_empty(), "{} line {}: {lost:?} of `{line}`", path.display(), number + 1);
        }
    }
}

/// Every name that leads to a leaf, and the leaf.
pub(crate) fn leaves(path: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(k, v)| leaves(&format!("{path}.{k}"), v, found)),
        Value::Array(items) => items.iter().for_each(|item| leaves(path, item, found)),
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        other => found.push((path.to_owned(), other.to_string())),
    }
}

#[test]
fn every_leaf_of_a_json_report_is_in_the_model() {
    for path in json_reports() {
        let (input, report) = read(&path);
        let model = Words::of(&report);
        let text = String::from_utf8(input).unwrap();
        let mut found = Vec::new();
        for document in serde_json::Deserializer::from_str(&text).into_iter::<Value>().map_while(Result::ok) {
            leaves("", &document, &mut found);
        }
        assert!(found.len() > 100);
        // What the model says by its structure.
        let structure = [
            ".usedImages.uuid",
            ".threads.triggered",
            ".faultingThread",
            ".threads.frames.imageIndex",
            ".isCorpse",
        ];
        for (leaf, value) in found.iter().filter(|(leaf, _)| !structure.contains(&leaf.as_str())) {
            let lost: Vec<String> = words(value).filter(|word| !model.0.contains(word)).collect();
            assert!(lost.is_empty(), "{} {leaf}: {lost:?} of `{value}`", path.display());
        }
    }
}
