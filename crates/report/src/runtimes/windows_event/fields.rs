//! What events of Windows state by name, whichever way they were copied: the message in lines or in one, in the system's
//! language, as XML, or as the signature of Windows Error Reporting.

use crate::apple_text::Lines;
use crate::words::Words;
use std::sync::LazyLock;

/// What is stated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Slot {
    App,
    AppVersion,
    AppStamp,
    Module,
    ModuleVersion,
    ModuleStamp,
    Code,
    Offset,
    /// Of a fast failure its reason, of a breach of data execution prevention the access.
    Data,
    Pid,
    Started,
    AppPath,
    ModulePath,
    ReportId,
    Package,
    PackageApp,
    /// `APPCRASH`, `BEX64`, `CLR20r3`, `AppHangB1`.
    EventName,
    Time,
    Os,
    /// Of `CLR20r3`: the exception's class.
    Managed,
}

const SLOTS: usize = Slot::Managed as usize + 1;

/// The values; the first statement of each counts.
#[derive(Default)]
pub(super) struct Fields {
    values: [Option<String>; SLOTS],
    signature: [Option<String>; 10],
}

/// Words of English events and of the dialogue of Windows Error Reporting.
const LABELS: [(&str, Option<Slot>); 33] = [
    ("faulting application name:", Some(Slot::App)),
    ("faulting module name:", Some(Slot::Module)),
    ("exception code:", Some(Slot::Code)),
    ("fault offset:", Some(Slot::Offset)),
    ("faulting process id:", Some(Slot::Pid)),
    ("faulting application start time:", Some(Slot::Started)),
    ("faulting application path:", Some(Slot::AppPath)),
    ("faulting module path:", Some(Slot::ModulePath)),
    ("faulting package full name:", Some(Slot::Package)),
    ("faulting package-relative application id:", Some(Slot::PackageApp)),
    ("report id:", Some(Slot::ReportId)),
    ("problem event name:", Some(Slot::EventName)),
    ("event name:", Some(Slot::EventName)),
    ("application name:", Some(Slot::App)),
    ("application version:", Some(Slot::AppVersion)),
    ("application timestamp:", Some(Slot::AppStamp)),
    ("fault module name:", Some(Slot::Module)),
    ("fault module version:", Some(Slot::ModuleVersion)),
    ("fault module timestamp:", Some(Slot::ModuleStamp)),
    ("exception offset:", Some(Slot::Offset)),
    ("exception data:", Some(Slot::Data)),
    ("os version:", Some(Slot::Os)),
    ("date:", Some(Slot::Time)),
    // Where values end.
    ("event id:", None),
    ("event xml:", None),
    ("locale id:", None),
    ("fault bucket", None),
    ("response:", None),
    ("problem signature:", None),
    ("additional information", None),
    ("task category:", None),
    ("log name:", None),
    ("description:", None),
];

/// The lines of event 1000 in their order, which is that of every language.
const ORDER: [Slot; 11] = [
    Slot::App,
    Slot::Module,
    Slot::Code,
    Slot::Offset,
    Slot::Pid,
    Slot::Started,
    Slot::AppPath,
    Slot::ModulePath,
    Slot::ReportId,
    Slot::Package,
    Slot::PackageApp,
];

/// The values of event 1000 as XML.
const DATA: [Slot; 15] = [
    Slot::App,
    Slot::AppVersion,
    Slot::AppStamp,
    Slot::Module,
    Slot::ModuleVersion,
    Slot::ModuleStamp,
    Slot::Code,
    Slot::Offset,
    Slot::Pid,
    Slot::Started,
    Slot::AppPath,
    Slot::ModulePath,
    Slot::ReportId,
    Slot::Package,
    Slot::PackageApp,
];

/// What the values of a signature are, by the event's name.
const SIGNATURES: [(&str, &[Option<Slot>]); 6] = [
    ("appcrash", &[App, AppV, AppS, Mod, ModV, ModS, Code, Offset]),
    ("bex", &[App, AppV, AppS, Mod, ModV, ModS, Offset, Code, Data]),
    ("moappcrash", &[None, None, AppV, AppS, Mod, ModV, ModS, Code, Offset]),
    ("mobex", &[None, None, AppV, AppS, Mod, ModV, ModS, Offset, Code, Data]),
    ("clr20r3", &[App, AppV, AppS, Mod, ModV, ModS, None, None, Managed]),
    ("apphang", &[App, AppV, AppS]),
];

use shorthand::{App, AppS, AppV, Code, Data, Managed, Mod, ModS, ModV, Offset};

mod shorthand {
    #![expect(non_upper_case_globals, reason = "the table is read as the documentation lists the values")]
    use super::Slot;
    pub(super) const App: Option<Slot> = Some(Slot::App);
    pub(super) const AppV: Option<Slot> = Some(Slot::AppVersion);
    pub(super) const AppS: Option<Slot> = Some(Slot::AppStamp);
    pub(super) const Mod: Option<Slot> = Some(Slot::Module);
    pub(super) const ModV: Option<Slot> = Some(Slot::ModuleVersion);
    pub(super) const ModS: Option<Slot> = Some(Slot::ModuleStamp);
    pub(super) const Code: Option<Slot> = Some(Slot::Code);
    pub(super) const Offset: Option<Slot> = Some(Slot::Offset);
    pub(super) const Data: Option<Slot> = Some(Slot::Data);
    pub(super) const Managed: Option<Slot> = Some(Slot::Managed);
}

/// What is looked at of a text, and the longest value.
const LOOKED_AT: usize = 256 << 10;
const MAX_VALUE: usize = 1024;

impl Fields {
    /// Reads all that a text states.
    pub(super) fn read(text: &str) -> Self {
        let text = text.get(..LOOKED_AT).unwrap_or(text);
        let mut fields = Self::default();
        fields.sentence(text);
        fields.labels(text);
        fields.by_order(text);
        fields.xml(text);
        fields.signature(text);
        fields
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&str> {
        self.values.get(slot as usize)?.as_deref()
    }

    /// A number in hexadecimal, with `0x` before it or twice, as some versions of Windows write, or without.
    pub(super) fn number(&self, slot: Slot) -> Option<u64> {
        hex(self.get(slot)?)
    }

    fn set(&mut self, slot: Slot, value: &str) {
        let value = value.trim().trim_matches(MARKS).trim();
        let value = value.get(..MAX_VALUE).unwrap_or(value);
        if let Some(held) =
            self.values.get_mut(slot as usize).filter(|held| held.is_none() && !value.is_empty())
        {
            *held = Some(value.to_owned());
        }
    }

    /// A name with a version and a time stamp.
    fn program(&mut self, slot: Slot, program: &Program<'_>) {
        let (version, stamp) = match slot {
            Slot::App => (Slot::AppVersion, Slot::AppStamp),
            _ => (Slot::ModuleVersion, Slot::ModuleStamp),
        };
        self.set(slot, program.name);
        self.set(version, program.version);
        self.set(stamp, program.stamp);
    }

    /// English words, wherever they stand: lines are wrapped or joined by who pastes them.
    fn labels(&mut self, text: &str) {
        let lower = text.to_ascii_lowercase();
        let mut found = label_in(&lower, 0);
        while let Some((at, length, slot)) = found {
            let begin = at + length;
            found = label_in(&lower, begin);
            let end = found.map_or(text.len(), |(next, ..)| next);
            let Some(slot) = slot else { continue };
            let value = text.get(begin..end).unwrap_or_default();
            if matches!(slot, Slot::App | Slot::Module)
                && let Some(program) = Program::read(&value.replace(['\r', '\n'], " "))
            {
                self.program(slot, &program);
                continue;
            }
            self.set(slot, &settled(slot, value, found.is_some()));
        }
    }

    /// `Faulting application a.exe, version 1.2.3.4, faulting module b.dll, version 5.1.2600.0, fault address 0x00012345.`, as
    /// Windows wrote it up to Vista.
    fn sentence(&mut self, text: &str) {
        const BEGIN: &str = "Faulting application ";
        let Some((_, rest)) = text.split_once(BEGIN).filter(|(_, rest)| rest.contains(", faulting module "))
        else {
            return;
        };
        let line = rest.lines().next().unwrap_or_default();
        let mut in_module = false;
        for (at, part) in line.split(", ").enumerate() {
            let part = part.trim().trim_end_matches('.');
            let value =
                |word: &str| part.strip_prefix(word).map(|value| value.trim_start_matches(':').trim());
            if at == 0 {
                self.set(Slot::App, part);
            } else if let Some(name) = value("faulting module ") {
                in_module = true;
                self.set(Slot::Module, name);
            } else if let Some(version) = value("version ") {
                self.set(if in_module { Slot::ModuleVersion } else { Slot::AppVersion }, version);
            } else if let Some(stamp) = value("time stamp ") {
                self.set(if in_module { Slot::ModuleStamp } else { Slot::AppStamp }, stamp);
            } else if let Some(code) = value("exception code ") {
                self.set(Slot::Code, code);
            } else if let Some(offset) = value("fault offset ").or_else(|| value("fault address ")) {
                self.set(Slot::Offset, offset);
            } else if let Some(pid) = value("process id ") {
                self.set(Slot::Pid, pid);
            } else if let Some(start) = value("application start time ") {
                self.set(Slot::Started, start);
            }
        }
    }

    /// The message in another language: its lines stand in the same order.
    fn by_order(&mut self, text: &str) {
        let mut lines = text.lines().map(|line| line.trim().trim_start_matches(MARKS));
        let Some((app, module)) = lines.by_ref().find_map(app_of).zip(lines.next()) else {
            return;
        };
        let Some(module) = Program::read(module) else { return };
        self.program(Slot::App, &app);
        self.program(Slot::Module, &module);
        for (slot, line) in ORDER.iter().skip(2).zip(lines) {
            let Some((_, value)) = line.split_once([':', '\u{ff1a}']) else { return };
            let is_number = matches!(slot, Slot::Code | Slot::Offset | Slot::Pid | Slot::Started);
            if is_number && hex(value.trim().trim_matches(MARKS)).is_none() {
                return;
            }
            self.set(*slot, value);
        }
    }

    /// The values of an event as XML, without names up to Windows 10.
    fn xml(&mut self, text: &str) {
        if let Some((_, rest)) = text.split_once("SystemTime=\"") {
            self.set(Slot::Time, rest.split('"').next().unwrap_or_default());
        }
        let Some(at) = text.find("<Provider Name=\"Application Error\"") else { return };
        let rest = text.get(at..).unwrap_or_default();
        let event = rest.split("</EventData>").next().unwrap_or(rest);
        let mut values = event.split("<Data").skip(1).map(|part| {
            let (tag, behind) = part.split_once('>').unwrap_or((part, ""));
            if tag.ends_with('/') { "" } else { behind.split("</Data>").next().unwrap_or_default() }
        });
        DATA.iter().for_each(|slot| self.set(*slot, values.next().unwrap_or_default()));
    }

    /// `P1: a.exe`, `Problem Signature 01: a.exe`, in the order that the event's name tells.
    fn signature(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            let Some((label, value)) = line.split_once(':') else { continue };
            let number = label
                .strip_prefix('P')
                .and_then(|digits| digits.parse::<usize>().ok())
                .or_else(|| label.strip_prefix("Problem Signature ").and_then(|digits| digits.parse().ok()));
            let place = number.and_then(|number| self.signature.get_mut(number.checked_sub(1)?));
            if let Some(place) = place.filter(|place| place.is_none()) {
                *place = Some(value.trim().to_owned());
            }
        }
        let Some(name) = self.get(Slot::EventName).map(str::to_ascii_lowercase) else { return };
        let Some((_, slots)) = SIGNATURES.iter().find(|(event, _)| name.starts_with(event)) else { return };
        let values = self.signature.clone();
        for (slot, value) in slots.iter().zip(&values) {
            if let (Some(slot), Some(value)) = (slot, value) {
                self.set(*slot, value);
            }
        }
    }
}

/// What Markdown puts around words.
const MARKS: [char; 3] = ['`', '*', '_'];

/// The next label from `from` on: where it stands, its length, and whose it is.
fn label_in(lower: &str, from: usize) -> Option<(usize, usize, Option<Slot>)> {
    let rest = lower.get(from..)?;
    // Every label ends in a colon but those that only end values.
    let found = LABELS.iter().filter_map(|(label, slot)| {
        let at = rest.match_indices(label).map(|(at, _)| at).find(|at| begins_word(rest, *at))?;
        Some((from + at, label.len(), *slot))
    });
    found.min_by_key(|(at, length, _)| (*at, usize::MAX - length))
}

fn begins_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default().chars().next_back();
    before.is_none_or(|before| !before.is_alphanumeric() && before != '-')
}

/// A value, of which only some go over several lines.
fn settled(slot: Slot, value: &str, is_followed: bool) -> String {
    let lines = || value.lines().map(|line| line.trim_start().trim_end_matches(['\r', '\n']));
    match slot {
        Slot::AppPath | Slot::ModulePath if is_followed && !value.trim().contains("\n\n") => {
            lines().collect()
        }
        Slot::Package | Slot::PackageApp => lines().next().unwrap_or_default().to_owned(),
        Slot::Code | Slot::Offset | Slot::Pid | Slot::Started | Slot::ReportId | Slot::Data => {
            value.split_whitespace().next().unwrap_or_default().to_owned()
        }
        _ => lines().find(|line| !line.is_empty()).unwrap_or_default().to_owned(),
    }
}

/// `LABEL: a.exe, LABEL: 1.2.3.4, LABEL: 0x12345678`, in any language.
pub(super) struct Program<'t> {
    pub(super) name: &'t str,
    version: &'t str,
    stamp: &'t str,
}

impl<'t> Program<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let mut parts = text.rsplitn(3, [',', '\u{ff0c}', '\u{3001}']);
        let (stamp, version, name) = (parts.next()?, parts.next()?, parts.next()?);
        let stamp = stamp.split_whitespace().find(|word| word.contains("0x"))?;
        let stamp = stamp.get(stamp.find("0x")?..)?.trim_matches(MARKS).trim_end_matches('.');
        let version = version.rsplit([' ', ':', '\u{ff1a}', '\u{a0}']).next()?.trim_matches(MARKS);
        let is_version =
            version.contains('.') && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let name = match name.rsplit_once([':', '\u{ff1a}']) {
            Some((_, name)) => name,
            // The words before it, where a language has no colon there, are not known.
            None => name,
        };
        let name = name.trim().trim_matches(MARKS);
        (is_version && hex(stamp).is_some() && !name.is_empty()).then_some(Self { name, version, stamp })
    }
}

/// The program that a line of event 1000 names.
pub(super) fn app_of(line: &str) -> Option<Program<'_>> {
    // This is asked of every line of every text: most name no program.
    static PROGRAM: LazyLock<Words> = LazyLock::new(|| Words::new(&[".exe", ".EXE"]));
    if line.len() > 1024 || !PROGRAM.any_in(line) || !line.contains("0x") {
        return None;
    }
    let program = Program::read(line)?;
    program.name.to_ascii_lowercase().ends_with(".exe").then_some(program)
}

fn hex(text: &str) -> Option<u64> {
    let mut digits = text.trim();
    while let Some(rest) = digits.strip_prefix("0x") {
        digits = rest;
    }
    u64::from_str_radix(digits, 16).ok()
}

/// Whether a line is one that only events of Windows have.
pub(in crate::runtimes) fn is_sure(line: &str) -> bool {
    let line = line.trim_start_matches(MARKS);
    let begins = ["Faulting application name:", "Fault Module Name:", "Problem Event Name:"];
    let xml = ["Application Error", ".NET Runtime", "Windows Error Reporting"];
    static SAID: LazyLock<Words> = LazyLock::new(|| {
        Words::new(&[
            "The process was terminated due to an unhandled exception",
            "The process was terminated due to an internal error in the .NET Runtime",
            "The application requested process termination through System.Environment.FailFast",
        ])
    });
    begins.iter().any(|begin| line.starts_with(begin))
        || (line.starts_with("Faulting application ") && line.contains(", faulting module "))
        || SAID.any_in(line)
        || line.strip_prefix("Event Name: ").is_some_and(|name| {
            SIGNATURES.iter().any(|(event, _)| name.to_ascii_lowercase().starts_with(event))
        })
        || line
            .split_once("<Provider Name=\"")
            .is_some_and(|(_, name)| xml.iter().any(|known| name.starts_with(known)))
        || line.strip_prefix("Exception Info: ").is_some_and(|info| {
            info.starts_with("exception code ")
                || info.split([':', ' ']).next().is_some_and(|it| it.contains('.'))
        })
        || app_of(line).is_some()
}

/// The sorts of events that tell of one and the same crash.
const SORTS: usize = 3;

/// Which sort of event a line begins.
fn head(line: &str) -> Option<usize> {
    let provider = line.split_once("<Provider Name=\"").map(|(_, name)| name);
    if let Some(name) = provider {
        let known = ["Application Error", ".NET Runtime", "Windows Error Reporting"];
        return known.iter().position(|known| name.starts_with(known));
    }
    let line = line.trim_start_matches(MARKS);
    if line.starts_with("Faulting application name:")
        || (line.starts_with("Faulting application ") && line.contains(", faulting module "))
        || app_of(line).is_some()
    {
        return Some(0);
    }
    if line.starts_with("Framework Version:") || line.starts_with("CoreCLR Version:") {
        return Some(1);
    }
    (line.starts_with("Fault bucket") || line.starts_with("Problem Event Name:")).then_some(2)
}

/// Follows whether the lines are those of an event's XML, which says the same once more.
#[derive(Default)]
pub(super) struct InXml(bool);

impl InXml {
    /// Reads a line, and tells whether it is XML.
    pub(super) fn line(&mut self, line: &str) -> bool {
        self.0 |= line.contains("<Event ") || line.contains("<Provider Name=\"");
        let is_xml = self.0;
        self.0 &= !line.contains("</Event>") && !line.starts_with("Log Name:");
        is_xml
    }
}

/// Where the crashes of a text begin. Events of several sorts are one crash; a second one of a sort is the next.
pub(in crate::runtimes) fn starts(text: &[u8]) -> Vec<usize> {
    let mut starts = vec![0];
    // In words, as XML.
    let mut seen = [(false, false); SORTS];
    // A line that stands before the head of an event.
    let mut before = None;
    let mut xml = InXml::default();
    let mut was_head = false;
    for line in Lines::new(text, 0..text.len(), 1).filter(|line| line.bytes.len() <= 4096) {
        let words = line.text();
        let words = words.trim();
        let is_before =
            words.starts_with("Log Name:") || words.contains("<Event ") || words.starts_with("Application: ");
        if is_before && before.is_none() {
            before = Some(line.span.start);
        }
        let is_xml = xml.line(words);
        // The module's line looks like the program's.
        let is_behind_head = std::mem::take(&mut was_head);
        let sort = head(words).filter(|sort| !(is_behind_head && *sort == 0));
        let sort = sort.filter(|_| !is_xml || words.contains("<Provider Name=\""));
        let Some((sort, slot)) = sort.and_then(|sort| Some((sort, seen.get(sort)?))) else { continue };
        was_head = sort == 0 && !is_xml;
        if slot.1 || (slot.0 && !is_xml) {
            starts.push(before.unwrap_or(line.span.start));
            seen = [(false, false); SORTS];
        }
        before = None;
        if let Some(slot) = seen.get_mut(sort) {
            if is_xml { slot.1 = true } else { slot.0 = true }
        }
    }
    starts
}
