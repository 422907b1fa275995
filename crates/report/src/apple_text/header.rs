//! `Key: value` lines: the header, and the block that says what was raised and who ended the process.

use super::words::{hex_value, name_and_pid};
use backtrail_core::{Arch, Avma};
use backtrail_model::{Exception, Field, Report, Termination};

/// A line `Key: value`.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct KeyValue<'t> {
    pub(crate) key: &'t str,
    pub(crate) value: &'t str,
}

/// What a report says of the blamed thread, besides the mark at the thread.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blamed {
    /// The number that the header names.
    pub(crate) number: Option<u64>,
    /// Position of the thread whose state was printed.
    pub(crate) state: Option<usize>,
}

/// Keys that Apple's systems and the reporters that imitate them write, beyond those that [`set`] puts into the model.
/// They are fields wherever they stand, except inside of free text.
const FIELD_KEYS: [&str; 50] = [
    "Anonymous UUID",
    "App Item ID",
    "App External ID",
    "AppStoreTools",
    "AppVariant",
    "Base Address",
    "Baseband Version",
    "Beta",
    "Beta Identifier",
    "Binary Image",
    "Boot Volume File System Type",
    "Bridge OS Version",
    "Build Info",
    "Coalition",
    "CPU Type",
    "CrashReporter Key",
    "Crash Reporter Key",
    "Date",
    "dSYM UUID",
    "Duration",
    "Error Code",
    "Event",
    "Execution Time",
    "Framework Version",
    "Heartbeat",
    "Host Name",
    "Interval Since Last Report",
    "Launch Time",
    "Logical CPU",
    "Model",
    "Monitored Resources",
    "OS Build",
    "PlugIn Identifier",
    "PlugIn Path",
    "PlugIn Version",
    "Per-App Interval Since Last Report",
    "Release Type",
    "Report Version",
    "Responsible",
    "Responsible Process",
    "Share With Devs",
    "Sleep/Wake UUID",
    "Slide Address",
    "StoreKit",
    "System Integrity Protection",
    "Time Awake Since Boot",
    "Time Since Wake",
    "Trap Number",
    "Treatment",
    "User ID",
];

/// Keys that [`set`] knows.
const MODEL_KEYS: [&str; 26] = [
    "Code Type",
    "Crashed Thread",
    "Date/Time",
    "Exception Codes",
    "Exception Message",
    "Exception Note",
    "Exception Reason",
    "Exception Subtype",
    "Exception Type",
    "Hardware Model",
    "Highlighted Thread",
    "Highlighted by Thread",
    "Identifier",
    "Incident Identifier",
    "OS Version",
    "Parent Process",
    "Path",
    "Process",
    "Role",
    "Terminating Process",
    "Termination Description",
    "Termination Reason",
    "Termination Signal",
    "Triggered by Thread",
    "Version",
    "Faulting Thread",
];

impl<'t> KeyValue<'t> {
    /// Reads a line, without blanks around it.
    pub(crate) fn read(text: &'t str) -> Option<Self> {
        let (key, value) = text.split_once(':')?;
        let is_key = |c: char| c.is_ascii_alphanumeric() || " /-_().".contains(c);
        let well = (1..=60).contains(&key.len()) && key.starts_with(|c: char| c.is_ascii_alphabetic());
        // `https://…` is no key, neither is `std::vector`.
        let ends_well = !value.starts_with("//") && !value.starts_with(':');
        let (key, value) = (key.trim_end(), value.trim());
        // How people shorten it: `Termination: FRONTBOARD 0x8BADF00D`.
        let key = if key == "Termination" && value.contains(" 0x") { "Termination Reason" } else { key };
        (well && ends_well && key.chars().all(is_key)).then_some(Self { key, value })
    }

    /// Whether the key is one that reports use, so that the line means what it looks like.
    pub(crate) fn is_known(&self) -> bool {
        MODEL_KEYS.contains(&self.key) || FIELD_KEYS.contains(&self.key)
    }

    /// Whether the key alone tells a crash report; `Version` or `Path` stand in many files.
    pub(crate) fn is_telling(&self) -> bool {
        let telling = [
            "Incident Identifier",
            "CrashReporter Key",
            "Exception Type",
            "Exception Codes",
            "Code Type",
            "Termination Reason",
            "Termination Description",
        ];
        let is_loaders = self.key == "Dyld Message" && self.value.contains(" not ");
        is_loaders
            || telling.contains(&self.key)
            || (self.key == "Process" && name_and_pid(self.value).1.is_some())
    }

    /// Whether the line is one of those that say what was raised, who ended the process and which thread is blamed.
    pub(crate) fn is_verdict(&self) -> bool {
        let verdicts =
            ["Exception ", "Termination ", "Terminating ", "Triggered by ", "Crashed ", "Highlighted "];
        MODEL_KEYS.contains(&self.key) && verdicts.iter().any(|verdict| self.key.starts_with(verdict))
    }

    /// Whether the line speaks of who ended the process; what follows it without a blank line belongs to it.
    pub(crate) fn is_termination(&self) -> bool {
        matches!(self.key, "Termination Reason" | "Termination Description")
    }
}

/// What the loader prints of a library or symbol that it does not find, when the program is started from a terminal or by Xcode:
/// `dyld[45002]: Library not loaded: …`, `dyld: Symbol not found: …`. Its code as a termination, and its words.
pub(crate) fn loader(line: &str) -> Option<(u64, &str)> {
    let rest = line.strip_prefix("dyld")?;
    let rest = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, rest)| rest);
    let words = rest.strip_prefix(": ")?;
    let words = words.strip_prefix("lazy symbol binding failed: ").unwrap_or(words);
    loaders_code(words).map(|code| (code, words))
}

/// The code of a termination for which the loader has these words.
pub(crate) fn loaders_code(words: &str) -> Option<u64> {
    let codes = [("Library not loaded:", 1), ("Symbol not found:", 4), ("missing symbol called", 4)];
    codes.iter().find(|(begin, _)| words.starts_with(begin)).map(|(_, code)| *code)
}

/// Puts a line into the model, or among the fields where the model has no place for all of it.
pub(crate) fn set(report: &mut Report, blamed: &mut Blamed, line: KeyValue<'_>) {
    let whole = set_process(report, line)
        || set_exception(report, line)
        || set_termination(report, line)
        || set_blamed(blamed, line);
    if !whole {
        report.fields.push(Field { key: line.key.to_owned(), value: line.value.to_owned() });
    }
}

/// Puts `value` into an empty place; `false` where something stands there already.
fn fill<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let fits = place.is_none() && value.is_some();
    if fits {
        *place = value;
    }
    fits
}

/// Each of these says whether the model holds all of the line.
fn set_process(report: &mut Report, line: KeyValue<'_>) -> bool {
    let value = Some(line.value).filter(|value| !value.is_empty()).map(str::to_owned);
    let process = &mut report.process;
    match line.key {
        "Process" => {
            let (name, pid) = name_and_pid(line.value);
            let name = Some(name).filter(|name| !name.is_empty()).map(str::to_owned);
            let is_first = fill(&mut process.name, name);
            is_first && (pid.is_none() || fill(&mut process.pid, pid))
        }
        "Path" => fill(&mut process.path, value),
        "Identifier" => fill(&mut process.identifier, value),
        "Version" => fill(&mut process.version, value),
        "Role" => fill(&mut process.role, value),
        "Parent Process" => {
            let (name, pid) = name_and_pid(line.value);
            fill(&mut process.parent, Some(name.to_owned())) && pid.is_none()
        }
        "Code Type" => {
            process.translated |= line.value.contains("(Translated)");
            let word = line.value.split_whitespace().next().unwrap_or_default();
            process.translated |= line.value.contains("(Translated)");
            // Printed `ARM-64 (Native)`: the field keeps Apple's spelling.
            let arch = Arch::from_name(word);
            fill(&mut process.arch, arch) && arch.is_some_and(|arch| arch.name() == line.value)
        }
        "OS Version" => fill(&mut report.os, value),
        "Hardware Model" => fill(&mut report.device, value),
        "Date/Time" => fill(&mut report.time, value),
        "Incident Identifier" => fill(&mut report.incident, value),
        _ => false,
    }
}

fn set_blamed(blamed: &mut Blamed, line: KeyValue<'_>) -> bool {
    let keys = [
        "Crashed Thread",
        "Triggered by Thread",
        "Highlighted Thread",
        "Highlighted by Thread",
        "Faulting Thread",
    ];
    if !keys.contains(&line.key) {
        return false;
    }
    let digits = line.value.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.value.len());
    let (number, rest) = line.value.split_at(digits);
    fill(&mut blamed.number, number.parse().ok()) && rest.is_empty()
}

fn set_exception(report: &mut Report, line: KeyValue<'_>) -> bool {
    let Some(what) = line.key.strip_prefix("Exception ") else { return false };
    let exception = report.exception.get_or_insert_with(Exception::default);
    let value = Some(line.value.to_owned()).filter(|value| !value.is_empty());
    match what {
        "Type" => set_type(exception, line.value),
        "Codes" => set_codes(exception, line.value),
        "Subtype" => fill(&mut exception.subtype, value),
        "Message" | "Reason" => fill(&mut exception.message, value),
        "Note" => fill(&mut exception.note, value),
        _ => false,
    }
}

/// `EXC_BAD_ACCESS (SIGSEGV)`, `SIGSEGV`, `EXC_BAD_ACCESS (Code Signature Invalid)`, `EXC_CRASH (SIGKILL (Code Signature
/// Invalid))`, `00000020`.
fn set_type(exception: &mut Exception, value: &str) -> bool {
    if exception.kind.is_some() || exception.signal.is_some() || value.is_empty() {
        return false;
    }
    let is_signal = |text: &str| {
        let name = text.split_once(" (").filter(|(_, why)| why.ends_with(')')).map_or(text, |(name, _)| name);
        name.starts_with("SIG") && name.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    if is_signal(value) {
        exception.signal = Some(value.to_owned());
        return true;
    }
    let parts = value.strip_suffix(')').and_then(|rest| rest.split_once(" ("));
    exception.kind = Some(parts.map_or(value, |(kind, _)| kind).trim().to_owned());
    let Some((_, inside)) = parts else { return true };
    if is_signal(inside) {
        exception.signal = Some(inside.to_owned());
    }
    is_signal(inside)
}

/// Numbers (`0x1, 0x10`), or words with an address (`KERN_INVALID_ADDRESS at 0x10`). Systems that print one line of
/// each mean the words as the subtype.
fn set_codes(exception: &mut Exception, value: &str) -> bool {
    match numeric_codes(value) {
        Some(numbers) if exception.raw_codes.is_empty() => {
            exception.raw_codes = numbers;
            let words = exception.codes.replace(value.to_owned());
            words.is_none_or(|words| fill(&mut exception.subtype, Some(words)))
        }
        Some(_) => false,
        None if exception.codes.is_none() => fill(&mut exception.codes, Some(value.to_owned())),
        None => fill(&mut exception.subtype, Some(value.to_owned())),
    }
}

/// The codes where they are printed as numbers.
pub(crate) fn numeric_codes(value: &str) -> Option<Vec<u64>> {
    value.split(',').map(|code| hex_value(code.trim())).collect()
}

/// The address whose access failed, from what the exception block says.
pub(crate) fn fault_address(exception: &Exception) -> Option<Avma> {
    let texts = [exception.subtype.as_deref(), exception.codes.as_deref()];
    let bad_access = exception.kind.as_deref() == Some("EXC_BAD_ACCESS");
    let bad_signal =
        matches!(exception.signal.as_deref(), Some("SIGSEGV" | "SIGBUS")) && exception.kind.is_none();
    let stated = texts.into_iter().flatten().find_map(|text| {
        let (what, address) = text.split_once(" at ")?;
        let is_access = what.starts_with("KERN_") || what.starts_with("EXC_") || bad_access || bad_signal;
        // `… -> 0x…` states the address once more, without its authentication bits.
        let word = address.split_whitespace().next().filter(|_| is_access)?;
        hex_value(word).map(Avma::new)
    });
    stated.or_else(|| match exception.raw_codes[..] {
        [code, address, ..] if bad_access && is_access_code(code) => Some(Avma::new(address)),
        _ => None,
    })
}

/// Whether the kernel gives this as the first code of a bad access, with the address as the second: `KERN_*` of
/// `mach/kern_return.h`, `EXC_ARM_*` of `mach/arm/exception.h`. Other reporters put other numbers there (seen in
/// CrashProbe's reports: the address first), and a general protection fault (13) on x86 knows no address.
fn is_access_code(code: u64) -> bool {
    const POINTER_AUTHENTICATION_LIKELY: u64 = 0x200;
    matches!(code & !POINTER_AUTHENTICATION_LIKELY, 1 | 2 | 10 | 50 | 0x101..=0x105)
}

fn set_termination(report: &mut Report, line: KeyValue<'_>) -> bool {
    if !matches!(
        line.key,
        "Termination Reason" | "Termination Description" | "Termination Signal" | "Terminating Process"
    ) || line.value.is_empty()
    {
        return false;
    }
    let termination = report.termination.get_or_insert_with(Termination::default);
    match line.key {
        "Termination Reason" => set_reason(termination, line.value),
        "Termination Description" => {
            termination.details.push(line.value.to_owned());
            true
        }
        // Says in words which signal it was; the reason, where there is one, says more.
        "Termination Signal" => false,
        _ => {
            let (name, pid) = name_and_pid(line.value);
            let is_first = fill(&mut termination.by_process, Some(name.to_owned()));
            is_first && (pid.is_none() || fill(&mut termination.by_pid, pid))
        }
    }
}

/// `Namespace SIGNAL, Code 0xb`, `Namespace SIGNAL, Code 11 Segmentation fault: 11`, `SIGNAL 6 Abort trap: 6`,
/// `DYLD, [0x1] Library missing`, `FRONTBOARD 2343432205 <RBSTerminateContext| …>`.
fn set_reason(termination: &mut Termination, value: &str) -> bool {
    if termination.namespace.is_some() || termination.reason.is_some() {
        termination.details.push(value.to_owned());
        return true;
    }
    let text = value.strip_prefix("Namespace ").unwrap_or(value);
    let end = text.find([' ', ',']).unwrap_or(text.len());
    let (namespace, rest) = text.split_at(end);
    let rest = rest.trim_start_matches([',', ' ']);
    let rest = rest.strip_prefix("Code ").unwrap_or(rest);
    let (word, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    let word = word.trim_end_matches(',').trim_matches(['[', ']']);
    let code = hex_value(word).or_else(|| word.parse().ok());
    let is_namespace = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "_-".contains(c);
    if code.is_none()
        && text.get(end..).is_some_and(|behind| behind.starts_with(", "))
        && namespace.len() >= 4
        && namespace.chars().all(is_namespace)
    {
        // A watch's: `CAROUSEL, Background App Refresh watchdog transgression. …`.
        termination.namespace = Some(namespace.to_owned());
        return fill(&mut termination.reason, Some(rest.to_owned()));
    }
    if code.is_none() || !namespace.chars().all(is_namespace) {
        // None of the known forms: all of it is the reason.
        return fill(&mut termination.reason, Some(value.to_owned()));
    }
    termination.namespace = Some(namespace.to_owned());
    termination.code = code;
    let reason = reason.trim();
    termination.reason = (!reason.is_empty()).then(|| reason.to_owned());
    true
}

#[cfg(test)]
mod tests;
