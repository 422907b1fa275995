//! What spindump prints, and what the systems write of hangs, spins, and processes that exceed a limit.

use super::builder::Builder;
use super::{Common, process_field, row};
use crate::Limits;
use crate::apple_text::{ImageRow, KeyValue, Line, Lines, name_and_pid};
use crate::stack::{Origin, settle};
use backtrail_core::Arch;
use backtrail_model::{Backtrace, Process, Report};

/// The block that a line stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    /// The report's own lines.
    Header,
    /// The stack that most samples have, outermost frame first.
    Heaviest,
    /// A process: its lines, then its threads.
    Process,
    /// Its images.
    Images,
}

struct Reader<'l> {
    common: Common<'l>,
    block: Block,
    /// Processes as they are printed; the one that the report is about is taken out at the end.
    processes: Vec<Process>,
    tree: Option<Builder>,
    heaviest: Option<Backtrace>,
    /// Threads so far, of all processes.
    trees: usize,
}

pub(super) fn read(lines: Lines<'_>, limits: &Limits) -> Report {
    let mut reader = Reader {
        common: Common::new(limits),
        block: Block::Header,
        processes: Vec::new(),
        tree: None,
        heaviest: None,
        trees: 0,
    };
    for line in lines {
        reader.line(&line);
    }
    reader.finish()
}

/// Titles of a process's block.
const PROCESS_KEYS: [&str; 2] = ["Process", "Powerstats for"];

impl Reader<'_> {
    fn line(&mut self, line: &Line<'_>) {
        let text = line.text();
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return;
        }
        if self.common.is_too_long(line) || !self.take(line, &text, trimmed) {
            self.common.text("Text between the parts", &text);
        }
    }

    /// Puts a line into the model; `false` where it has no place there.
    fn take(&mut self, line: &Line<'_>, text: &str, trimmed: &str) -> bool {
        if trimmed.starts_with("Heaviest stack for ") {
            self.block = Block::Heaviest;
            return self.open_heaviest(trimmed.trim_end_matches(':'));
        }
        if trimmed == "Binary Images:" {
            self.close_tree();
            self.block = Block::Images;
            return true;
        }
        let key_value = KeyValue::read(trimmed);
        if let Some(opened) = key_value.filter(|line| PROCESS_KEYS.contains(&line.key)) {
            return self.open_process(opened);
        }
        if self.is_thread(trimmed) {
            return self.open_tree(trimmed);
        }
        match self.block {
            Block::Header => key_value.is_some_and(|line| self.header(line)) || self.continues(text, trimmed),
            Block::Heaviest => self.heaviest_row(text) || key_value.is_some_and(|line| self.header(line)),
            Block::Process => self.row(text) || key_value.is_some_and(|line| self.process_line(line, text)),
            Block::Images => self.image(line.bytes) || key_value.is_some_and(|line| self.header(line)),
        }
    }

    /// `Thread 0x3316  DispatchQueue "com.apple.main-thread"(1)  1000 samples (1-1000)  priority 46 (base 46)`.
    fn is_thread(&self, trimmed: &str) -> bool {
        let in_body = self.block != Block::Header;
        let rest = trimmed.strip_prefix("Thread 0x").filter(|_| in_body);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()))
    }

    fn open_heaviest(&mut self, title: &str) -> bool {
        let is_first = self.heaviest.is_none();
        if is_first {
            let title = title.to_owned();
            self.heaviest = Some(Backtrace { title, is_exception: false, frames: Vec::new() });
        }
        is_first
    }

    fn heaviest_row(&mut self, text: &str) -> bool {
        let Some(row) = row::spindump(text) else { return false };
        let Some(left) = self.common.nodes_left.checked_sub(1) else { return false };
        self.common.nodes_left = left;
        let Some(heaviest) = &mut self.heaviest else { return false };
        heaviest.frames.push(row.frame);
        // The number of samples has no place in a stack; it stands in the tree again.
        self.common.text(HEAVIEST_ROWS, text);
        true
    }

    fn open_process(&mut self, line: KeyValue<'_>) -> bool {
        self.close_tree();
        if self.processes.len() >= self.common.limits.max_threads {
            self.common
                .notes
                .add(|| "more processes than the limit allows; the rest is kept as text".to_owned());
            return false;
        }
        let (name, pid) = name_and_pid(line.value);
        let process = Process { name: Some(name.to_owned()), pid, ..Process::default() };
        self.processes.push(process);
        self.block = Block::Process;
        true
    }

    /// A `Key: value` line of a process.
    fn process_line(&mut self, line: KeyValue<'_>, text: &str) -> bool {
        // Below a tree nothing of the kind is known, and names of functions hold colons.
        if self.tree.is_some() || text.starts_with("  ") {
            return false;
        }
        let Some(left) = self.common.fields_left.checked_sub(1) else { return false };
        self.common.fields_left = left;
        if let Some(process) = self.processes.last_mut() {
            set_process(process, line);
        }
        true
    }

    fn open_tree(&mut self, title: &str) -> bool {
        self.close_tree();
        self.trees += 1;
        if self.trees > self.common.limits.max_threads {
            self.common
                .notes
                .add(|| "more threads than the limit allows; the rest is kept as text".to_owned());
            return false;
        }
        self.block = Block::Process;
        self.tree = Some(Builder::new(title));
        true
    }

    fn row(&mut self, text: &str) -> bool {
        let Some(row) = row::spindump(text) else { return false };
        let Some(left) = self.common.nodes_left.checked_sub(1) else {
            self.common
                .notes
                .add(|| "more frames than the limit allows; the rest is kept as text".to_owned());
            return false;
        };
        self.common.nodes_left = left;
        // Reports on limits print one tree for all threads, without a line of its own.
        let tree = self.tree.get_or_insert_with(|| Builder::new("all threads"));
        tree.push(row.indent, row.weight, row.frame, row.note);
        true
    }

    fn close_tree(&mut self) {
        let Some(tree) = self.tree.take() else { return };
        match self.processes.last_mut() {
            Some(process) => process.trees.push(tree.tree),
            None => self.common.report.process.trees.push(tree.tree),
        }
    }

    /// A star says that the image is the kernel's.
    fn image(&mut self, line: &[u8]) -> bool {
        let row = ImageRow::read(line.trim_ascii_start().strip_prefix(b"*").unwrap_or(line));
        let Some(row) = row else { return false };
        let Some(left) = self.common.images_left.checked_sub(1) else { return false };
        self.common.images_left = left;
        let is_whole = row.oddity.is_none();
        let process = self.processes.last_mut().unwrap_or(&mut self.common.report.process);
        process.images.push(row.image);
        is_whole
    }

    fn header(&mut self, line: KeyValue<'_>) -> bool {
        let report = &mut self.common.report;
        let value = Some(line.value.to_owned()).filter(|value| !value.is_empty());
        let taken = match line.key {
            "Command" => fill(&mut report.process.name, value),
            "PID" => fill(&mut report.process.pid, line.value.parse().ok()),
            "Hardware model" => fill(&mut report.device, value),
            "Event" => fill(&mut report.event, value),
            "Parent" => fill(&mut report.process.parent, value),
            _ => false,
        };
        taken || self.common.header(line)
    }

    /// The rest of a value that was broken in two where it has a comma.
    fn continues(&mut self, text: &str, trimmed: &str) -> bool {
        let Some(field) = self.common.report.fields.last_mut() else { return false };
        let fits = text.starts_with("    ") && field.value.ends_with(',');
        if fits {
            field.value.push(' ');
            field.value.push_str(trimmed);
        }
        fits
    }

    fn finish(mut self) -> Report {
        self.close_tree();
        let common = &mut self.common;
        let target = &common.report.process;
        let is_target = |process: &Process| match target.pid {
            Some(_) => process.pid == target.pid,
            None => target.name.is_some() && process.name == target.name,
        };
        let position = self.processes.iter().position(is_target);
        // A report on the whole system names no process: the first one stands for it.
        let position = position.or((target.pid.is_none() && target.name.is_none()).then_some(0));
        if let Some(position) = position.filter(|position| *position < self.processes.len()) {
            let found = self.processes.remove(position);
            merge(&mut common.report.process, found);
        }
        common.report.processes = self.processes;
        if let Some(mut heaviest) = self.heaviest {
            heaviest.frames.reverse();
            for (frame, index) in heaviest.frames.iter_mut().zip(0..) {
                frame.index = index;
            }
            settle(&mut heaviest.frames, Origin::Thread);
            common.report.process.backtraces.push(heaviest);
        }
        self.common.finish()
    }
}

/// The title of the section that keeps the heaviest stack's rows with their numbers of samples.
const HEAVIEST_ROWS: &str = "Heaviest stack, with samples";

fn fill<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let fits = place.is_none() && value.is_some();
    if fits {
        *place = value;
    }
    fits
}

fn set_process(process: &mut Process, line: KeyValue<'_>) {
    let value = Some(line.value.to_owned()).filter(|value| !value.is_empty());
    let taken = match line.key {
        "Path" => fill(&mut process.path, value),
        "Identifier" => fill(&mut process.identifier, value),
        "Version" => fill(&mut process.version, value),
        "Parent" => fill(&mut process.parent, value),
        "Architecture" => {
            let arch = Arch::from_name(line.value);
            fill(&mut process.arch, arch) && arch.is_some_and(|arch| arch.name() == line.value)
        }
        "Footprint" => {
            process.memory = process.memory.or_else(|| bytes(line.value));
            false
        }
        _ => false,
    };
    if !taken {
        process_field(process, line);
    }
}

/// `733.79 MB`, `1716 KB -> 80 KB`: the first.
fn bytes(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()? {
        "B" => 1.0,
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * unit;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked, and printed in few digits"
    )]
    (0.0..1e18).contains(&bytes).then_some(bytes as u64)
}

/// The header and the process's own block speak of the same process.
fn merge(target: &mut Process, found: Process) {
    let mut fields = found.fields;
    let mut either = |key: &str, mine: &mut Option<String>, theirs: Option<String>| match (&mine, theirs) {
        (None, theirs) => *mine = theirs,
        (Some(mine), Some(theirs)) if *mine != theirs => {
            fields.push(backtrail_model::Field { key: key.to_owned(), value: theirs });
        }
        _ => {}
    };
    either("Process", &mut target.name, found.name);
    either("Path", &mut target.path, found.path);
    either("Identifier", &mut target.identifier, found.identifier);
    either("Version", &mut target.version, found.version);
    either("Parent", &mut target.parent, found.parent);
    target.pid = target.pid.or(found.pid);
    target.arch = target.arch.or(found.arch);
    target.memory = target.memory.or(found.memory);
    target.trees.extend(found.trees);
    target.images.extend(found.images);
    target.fields.extend(fields);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_they_are_printed() {
        assert_eq!(bytes("1716 KB"), Some(1716 * 1024));
        assert_eq!(bytes("1 MB -> 80.08 MB (max 88.73 MB )"), Some(1024 * 1024));
        assert_eq!((bytes("-1 KB"), bytes("much"), bytes("1 KiB")), (None, None, None));
    }
}
