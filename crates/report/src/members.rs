//! Reading JSON reports of reporters: each member goes into the model or is kept as text under its path.

use crate::json::{Json, Outcome};
use crate::leftovers::{keep, keep_rest};
use crate::notes::{Notes, cut};
use crate::{Error, ErrorKind, Limits};
use backtrail_core::{Arch, Avma};
use backtrail_model::{AppInfo, Report, Source, ThrownException};

/// A JSON report that is being read.
#[derive(Debug)]
pub(crate) struct Members<'d, 'l> {
    pub(crate) input: &'d [u8],
    pub(crate) limits: &'l Limits,
    pub(crate) report: Report,
    pub(crate) notes: Notes,
    pub(crate) frames_left: usize,
}

impl<'d, 'l> Members<'d, 'l> {
    pub(crate) fn new(input: &'d [u8], source: Source, limits: &'l Limits) -> Self {
        Self {
            input,
            limits,
            report: Report { source, ..Report::default() },
            notes: Notes::new(limits.max_notes),
            frames_left: limits.max_frames,
        }
    }

    /// Keeps what the model has no place for. What says nothing (`null`, `{}`, `[]`, an empty text) is left out.
    pub(crate) fn keep(&mut self, path: String, value: &Json<'_>) {
        let says_nothing = match &value.value {
            crate::json::Value::Null => true,
            crate::json::Value::Array(items) => items.is_empty(),
            crate::json::Value::Object(members) => members.is_empty(),
            crate::json::Value::String(raw) => raw.bytes().is_empty(),
            _ => false,
        };
        if !says_nothing {
            keep(&mut self.report, self.input, path, value, self.limits.max_items);
        }
    }

    /// Goes through the members of an object; those that `take` does not take are kept as text under their path.
    pub(crate) fn each(
        &mut self,
        path: &str,
        object: &Json<'_>,
        mut take: impl FnMut(&mut Self, &str, &Json<'_>) -> bool,
    ) -> bool {
        for member in object.members() {
            let name = member.name();
            if !take(self, &name, &member.value) {
                let path = if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") };
                self.keep(path, &member.value);
            }
        }
        object.is_object()
    }

    /// The items of an array, no more than `most`; a note says where there are more.
    pub(crate) fn items<'j, 'i>(&mut self, path: &str, array: &'j Json<'i>, most: usize) -> &'j [Json<'i>] {
        let items = array.items();
        if items.len() > most {
            let count = items.len();
            self.notes
                .add(|| format!("{path}: {count} items, more than the limit allows; the rest is not read"));
        }
        let items = items.get(..most.min(items.len())).unwrap_or_default();
        // What should be an object and is none has no members to be taken or kept.
        for (position, item) in items.iter().enumerate().filter(|(_, item)| !item.is_object()) {
            self.keep(format!("{path}[{position}]"), item);
        }
        items
    }

    /// The report, once everything was read.
    pub(crate) fn finish(mut self, outcome: &Outcome<'_>) -> Report {
        self.report.process.place_frames();
        let mut report = self.report;
        report.notes = self.notes.finish();
        if let Some(problem) = outcome.problem {
            let why = Error::new(ErrorKind::Malformed, format!("expected {}", problem.expected))
                .at(self.input, problem.at);
            report.notes.insert(0, cut(&why));
        }
        keep_rest(&mut report, self.input, outcome.end);
        report
    }
}

/// The architecture that Mach-O's numbers stand for (`mach/machine.h`).
pub(crate) fn mach_arch(cpu_type: u64, cpu_subtype: u64) -> Option<Arch> {
    // The upper byte of a subtype has flags.
    Some(match (cpu_type & 0xffff_ffff, cpu_subtype & 0xff_ffff) {
        (7, _) => Arch::X86,
        (0x0100_0007, 8) => Arch::X86_64h,
        (0x0100_0007, _) => Arch::X86_64,
        (12, 6) => Arch::Armv6,
        (12, 9) => Arch::Armv7,
        (12, 11) => Arch::Armv7s,
        (12, 12) => Arch::Armv7k,
        (12, _) => Arch::Arm,
        (0x0100_000c, 2) => Arch::Arm64e,
        (0x0100_000c, _) => Arch::Arm64,
        (0x0200_000c, _) => Arch::Arm64_32,
        (18, _) => Arch::Ppc,
        (0x0100_0012, _) => Arch::Ppc64,
        _ => return None,
    })
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).find(|name| !name.is_empty()).unwrap_or(path)
}

/// The first address behind an image.
pub(crate) fn end_address(start: u64, size: Option<u64>) -> Option<Avma> {
    let size = size.filter(|size| *size > 0)?;
    start.checked_add(size).map(Avma::new)
}

/// How far an address lies behind where something begins, which may not be stated.
pub(crate) fn offset(address: Option<u64>, from: Option<u64>) -> Option<u64> {
    address?.checked_sub(from.filter(|from| *from != 0)?)
}

/// The parts that there are, with blanks between them.
pub(crate) fn joined(parts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Notes what a reporter states of an exception of the program's language, and says it in a line: `NAME: reason`.
pub(crate) fn note_thrown(report: &mut Report, thrown: ThrownException) {
    let lines = thrown.text().lines().map(str::to_owned).collect();
    report.app_info.push(AppInfo { image: None, lines });
    report.thrown = Some(thrown);
}
