//! `crash.error`: what was raised, and what was said of it.

use crate::json::Json;
use crate::leftovers::{fill, text};
use crate::members::{Members, note_thrown};
use crate::numbers::{mach_exception, signal};
use backtrail_core::Avma;
use backtrail_model::{AppInfo, Exception, Report, Section, Termination, ThrowingRuntime, ThrownException};

/// The parts of an error, put together at the end.
#[derive(Default)]
struct Parts {
    kind: Option<String>,
    reason: Option<String>,
    address: Option<u64>,
    exception: Option<u64>,
    exception_name: Option<String>,
    code: Option<u64>,
    code_name: Option<String>,
    subcode: Option<u64>,
    signal: Option<u64>,
    signal_name: Option<String>,
    signal_code: Option<u64>,
    signal_code_name: Option<String>,
    /// Of the language's exception.
    name: Option<String>,
    own_reason: Option<String>,
    user_line: Option<String>,
}

pub(super) fn read(members: &mut Members<'_, '_>, value: &Json<'_>) -> bool {
    let mut parts = Parts::default();
    let path = "crash.error";
    let is_object = members.each(path, value, |members, name, value| match name {
        "type" => fill(&mut parts.kind, text(value)),
        "reason" => fill(&mut parts.reason, text(value)),
        "address" => fill(&mut parts.address, value.number()),
        "mach" => members.each(&format!("{path}.mach"), value, |_, name, value| match name {
            "exception" => fill(&mut parts.exception, value.number()),
            "exception_name" => fill(&mut parts.exception_name, text(value)),
            "code" => fill(&mut parts.code, value.number()),
            "code_name" => fill(&mut parts.code_name, text(value)),
            "subcode" => fill(&mut parts.subcode, value.number()),
            _ => false,
        }),
        "signal" => members.each(&format!("{path}.signal"), value, |_, name, value| match name {
            "signal" => fill(&mut parts.signal, value.number()),
            "name" => fill(&mut parts.signal_name, text(value)),
            "code" => fill(&mut parts.signal_code, value.number()),
            "code_name" => fill(&mut parts.signal_code_name, text(value)),
            _ => false,
        }),
        "nsexception" | "cpp_exception" => {
            members.each(&format!("{path}.{name}"), value, |_, name, value| parts.thrown(name, value))
        }
        "user_reported" => {
            members.each(&format!("{path}.{name}"), value, |members, name, value| match name {
                "line_of_code" => fill(&mut parts.user_line, text(value)),
                "backtrace" => user_backtrace(members, value),
                _ => parts.thrown(name, value),
            })
        }
        _ => false,
    });
    parts.finish(members);
    is_object
}

/// A stack that the app's own runtime wrote, as text or as a list of rows.
fn user_backtrace(members: &mut Members<'_, '_>, value: &Json<'_>) -> bool {
    let rows: Vec<String> = value.items().iter().filter_map(text).collect();
    let lines = match text(value) {
        Some(text) => text,
        None if !rows.is_empty() && rows.len() == value.items().len() => rows.join("\n"),
        None => return false,
    };
    members.report.sections.push(Section { title: "Backtrace of the app's runtime".to_owned(), text: lines });
    true
}

impl Parts {
    fn thrown(&mut self, name: &str, value: &Json<'_>) -> bool {
        match name {
            "name" => fill(&mut self.name, text(value)),
            "reason" => fill(&mut self.own_reason, text(value)),
            _ => false,
        }
    }

    fn finish(mut self, members: &mut Members<'_, '_>) {
        self.messages(members);
        let kind = self.kind.as_deref().unwrap_or_default();
        if matches!(kind, "memory_termination" | "termination") {
            let termination = members.report.termination.get_or_insert_with(Termination::default);
            termination.reason = Some(kind.to_owned());
        }
        let exception_name =
            self.exception_name.take().or_else(|| self.exception.and_then(mach_exception).map(str::to_owned));
        let signal_name = self
            .signal_name
            .take()
            .or_else(|| self.signal.and_then(|number| signal(number, false)).map(str::to_owned));
        if exception_name.is_none() && signal_name.is_none() && self.address.is_none() {
            self.keep_numbers(members, false);
            return;
        }
        let is_access = exception_name.as_deref() == Some("EXC_BAD_ACCESS")
            || (exception_name.is_none() && matches!(signal_name.as_deref(), Some("SIGSEGV" | "SIGBUS")));
        let address = self.address.filter(|_| is_access);
        let code = self.code_name.clone().or_else(|| self.code.map(|code| format!("{code:#x}")));
        let at = self.address.map(|address| format!("{address:#x}")).unwrap_or_default();
        let has_exception = exception_name.is_some();
        let stated = if has_exception { code } else { self.signal_code_name.clone() };
        let exception = members.report.exception.get_or_insert_with(Exception::default);
        exception.codes = stated.map(|code| format!("{code} at {at}").trim_end_matches(" at ").to_owned());
        exception.raw_codes.extend(self.code.into_iter().chain(self.subcode));
        exception.address = address.map(Avma::new);
        (exception.kind, exception.signal) = (exception_name, signal_name);
        let has_exception = exception.kind.is_some();
        self.keep_numbers(members, has_exception);
    }

    /// What somebody said, worded as the runtimes word it.
    fn messages(&mut self, members: &mut Members<'_, '_>) {
        let kind = self.kind.as_deref().unwrap_or_default();
        let reason = self.own_reason.as_deref().or(self.reason.as_deref());
        let report = &mut members.report;
        match (kind, &self.name) {
            (_, Some(name)) => {
                let runtime = match kind {
                    "nsexception" => ThrowingRuntime::ObjectiveC,
                    "cpp_exception" => ThrowingRuntime::Cpp,
                    _ => ThrowingRuntime::Other,
                };
                let name = if runtime == ThrowingRuntime::Cpp { cpp_type(name) } else { name.clone() };
                let reason = reason.map(str::to_owned);
                note_thrown(report, ThrownException { runtime, name, reason, is_handled: false });
            }
            ("deadlock", None) => say(report, "Main thread deadlocked"),
            (_, None) => reason.iter().for_each(|reason| say(report, reason)),
        }
        // Two reasons that differ are both kept.
        if let (Some(own), Some(outer)) = (&self.own_reason, &self.reason)
            && own != outer
        {
            say(report, outer);
        }
    }

    /// Numbers and words that the exception does not show.
    fn keep_numbers(self, members: &mut Members<'_, '_>, has_exception: bool) {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        for (key, value) in [
            ("crash.error.type", self.kind.clone()),
            (
                "crash.error.cpp_exception.name",
                self.name.filter(|_| self.kind.as_deref() == Some("cpp_exception")),
            ),
            ("crash.error.mach.exception", number(self.exception)),
            ("crash.error.mach.code_name", self.code_name.filter(|_| !has_exception)),
            ("crash.error.signal.signal", number(self.signal)),
            ("crash.error.signal.code", number(self.signal_code)),
            ("crash.error.signal.code_name", self.signal_code_name.filter(|_| has_exception)),
            ("crash.error.address", self.address.map(|address| format!("{address:#x}"))),
            ("crash.error.user_reported.line_of_code", self.user_line),
        ] {
            members
                .report
                .fields
                .extend(value.map(|value| backtrail_model::Field { key: key.to_owned(), value }));
        }
    }
}

fn say(report: &mut Report, text: &str) {
    report.app_info.push(AppInfo { image: None, lines: text.lines().map(str::to_owned).collect() });
}

/// The readable name of a C++ type, which the runtime has mangled (`11MyException`); what is none stays as it is.
fn cpp_type(name: &str) -> String {
    let mangled = format!("_ZTS{name}");
    let readable = backtrail_demangle::demangle(&mangled, &backtrail_demangle::Options::default());
    readable.strip_prefix("typeinfo name for ").unwrap_or(name).to_owned()
}
