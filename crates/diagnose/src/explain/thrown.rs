//! Exceptions that nobody caught: Objective-C's and C++'s, by the texts that they leave.

use super::draft::Draft;
use super::facts::{Class, Facts};
use super::tables::messages::{CPP_TYPES, EXCEPTION_NAMES, Hint, REASONS};
use super::words::one_line;
use backtrail_model::Report;

/// An exception's name and reason.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Thrown {
    pub(crate) name: String,
    pub(crate) reason: Option<String>,
}

/// Words by which texts announce an exception's name. The name follows in quotes of either kind.
const ANNOUNCED: [&str; 3] =
    ["due to uncaught exception ", "due to uncaught exception of class ", "Uncaught exception of class "];

/// Reads `*** Terminating app due to uncaught exception 'NSX', reason: '…'` in its spellings.
pub(crate) fn parse_objc(text: &str) -> Option<Thrown> {
    let rest = ANNOUNCED.iter().rev().find_map(|words| text.split_once(words)).map(|(_, rest)| rest)?;
    let rest = rest.trim_start();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let (name, rest) = rest.get(1..)?.split_once(quote)?;
    if name.is_empty() || name.contains('\n') {
        return None;
    }
    Some(Thrown { name: name.to_owned(), reason: reason(rest) })
}

/// The quoted text behind `reason:`. It may hold quotes itself, so the last one ends it.
fn reason(rest: &str) -> Option<String> {
    let (_, rest) = rest.split_once("reason:")?;
    let rest = rest.trim();
    let quote = rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'));
    let Some(quote) = quote else { return (!rest.is_empty()).then(|| one_line(rest)) };
    let inner = rest.get(1..)?;
    // Older systems append the stack: `reason: '…'\n*** Call stack at first throw:`.
    let inner = inner.split_once("\n*** ").map_or(inner, |(inner, _)| inner);
    let inner = inner.rsplit_once(quote).map_or(inner, |(inner, _)| inner);
    Some(one_line(inner)).filter(|reason| !reason.is_empty() && reason != "(null)")
}

/// Reads the member `exceptionReason` of newer `.ips` reports, which readers keep as a field or, where it is long, as a
/// section.
pub(crate) fn from_field(report: &Report) -> Option<Thrown> {
    let fields = report.fields.iter().map(|field| (&field.key, &field.value));
    let sections = report.sections.iter().map(|section| (&section.title, &section.text));
    let (_, text) = fields.chain(sections).find(|(key, _)| key.eq_ignore_ascii_case("exceptionReason"))?;
    let object: serde_json::Value = serde_json::from_str(text).ok()?;
    let text = |key: &str| object.get(key).and_then(serde_json::Value::as_str).map(one_line);
    let name = ["name", "class", "exceptionName", "className"]
        .into_iter()
        .find_map(text)
        .filter(|name| !name.is_empty())?;
    Some(Thrown {
        name,
        reason: text("composed_message")
            .or_else(|| text("composedMessage"))
            .filter(|reason| !reason.is_empty()),
    })
}

/// The exception that ended the process, with the line that tells of it.
pub(super) fn find(facts: &Facts<'_>) -> Option<(Thrown, String)> {
    let said = facts.said.iter().find_map(|said| Some((parse_objc(&said.text)?, said.cite())));
    said.or_else(|| {
        let thrown = from_field(facts.report)?;
        let reason = thrown.reason.as_deref().unwrap_or("none");
        let line = format!("exceptionReason: {}, reason: {reason}", thrown.name);
        Some((thrown, line))
    })
}

/// An Objective-C exception with its name.
pub(super) fn objc(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    let Some((thrown, line)) = find(facts) else { return false };
    let reason = thrown.reason.as_deref();
    let title = reason.map_or_else(
        || format!("Uncaught {}", thrown.name),
        |reason| format!("Uncaught {}: {reason}", thrown.name),
    );
    let known = EXCEPTION_NAMES.iter().find(|(name, _)| *name == thrown.name).map(|(_, meaning)| *meaning);
    let meaning = known.map(|meaning| format!(": {meaning}")).unwrap_or_default();
    draft.lead(
        title,
        format!("An exception of name {} was thrown and nobody caught it{meaning}.", thrown.name),
    );
    draft.evidence(line);
    match reason.and_then(|reason| hint_for(&REASONS, reason)) {
        Some(hint) => tell(hint, draft),
        None if reason.is_none() => draft.say("The report does not tell the reason."),
        None => draft.cause("A condition that the code which throws checks for; the reason names it."),
    }
    cite_throw(facts, draft);
    draft.next("Look at the first frame of the throw that is not the system's; set an exception breakpoint (objc_exception_throw) to stop there.");
    true
}

/// Adds what a table knows of a text.
pub(super) fn tell(hint: &Hint, draft: &mut Draft) {
    draft.say(hint.meaning);
    draft.causes(hint.causes);
    draft.nexts(hint.next);
}

/// The first entry whose text is a part of `text`.
pub(super) fn hint_for<'t>(table: &'t [Hint], text: &str) -> Option<&'t Hint> {
    table.iter().find(|hint| text.contains(hint.text))
}

/// Where it was thrown, or that this is not told.
fn cite_throw(facts: &Facts<'_>, draft: &mut Draft) {
    const THROW: [&str; 4] =
        ["objc_exception_throw", "__cxa_throw", "-[NSException raise]", "+[NSException raise:format:]"];
    if let Some(thrown) = facts.report.process.backtraces.iter().find(|backtrace| backtrace.is_exception) {
        let at = thrown.frames.iter().take(8).find(|frame| crate::names::is_any_of(frame, &THROW));
        if let Some(frame) = at {
            draft.evidence(crate::names::cite(facts.report, &thrown.title, frame));
        } else {
            draft.evidence(format!("{}: {} frames", thrown.title, thrown.frames.len()));
        }
        return;
    }
    match facts.find_frame(&THROW, 12) {
        Some(frame) => draft.evidence(facts.cite(frame)),
        None => draft.say("The report has no stack of the place where it was thrown; the crashed thread shows where the process ended."),
    }
}

/// Texts that announce a C++ exception's type, and how they end.
const CPP: [&str; 6] = [
    "terminating with uncaught exception of type ",
    "terminating due to uncaught exception of type ",
    "terminating with unexpected exception of type ",
    "terminating due to unexpected exception of type ",
    "terminate called after throwing an instance of ",
    "terminating due to exception of type ",
];

/// Texts of a std::terminate whose exception has no type to tell.
const CPP_PLAIN: [&str; 6] = [
    "terminating with uncaught foreign exception",
    "terminating due to uncaught foreign exception",
    "terminate_handler unexpectedly returned",
    "terminate called without an active exception",
    "libc++abi.dylib: terminating",
    "libc++abi: terminating",
];

/// Reads `terminating with uncaught exception of type std::out_of_range: vector`.
pub(crate) fn parse_cpp(text: &str) -> Option<Thrown> {
    let rest = CPP.iter().find_map(|words| text.split_once(words)).map(|(_, rest)| rest)?;
    let (first, more) = rest.split_once('\n').unwrap_or((rest, ""));
    let first = first.trim().trim_matches('\'');
    // A colon that is not part of `::` ends the type.
    let bytes = first.as_bytes();
    let ends = |at: &usize| {
        let near = |offset: Option<usize>| offset.and_then(|at| bytes.get(at)) == Some(&b':');
        bytes.get(*at) == Some(&b':') && !near(at.checked_add(1)) && !near(at.checked_sub(1))
    };
    let end = (0..bytes.len()).find(ends).unwrap_or(bytes.len());
    let name = first.get(..end)?.trim();
    let what = first.get(end + 1..).map(str::trim).filter(|what| !what.is_empty());
    let what = what.or_else(|| more.split_once("what():").map(|(_, what)| what.trim()));
    (!name.is_empty()).then(|| Thrown { name: name.to_owned(), reason: what.map(one_line) })
}

/// A C++ exception, or std::terminate without one.
pub(super) fn cpp(facts: &Facts<'_>, draft: &mut Draft) -> bool {
    if let Some((thrown, line)) =
        facts.said.iter().find_map(|said| Some((parse_cpp(&said.text)?, said.cite())))
    {
        let what = thrown.reason.as_deref().map(|what| format!(": {what}")).unwrap_or_default();
        draft.lead(
            format!("Uncaught C++ exception: {}{what}", thrown.name),
            format!("A C++ exception of type {} was thrown and nobody caught it{what}.", thrown.name),
        );
        draft.evidence(line);
        if let Some(hint) = hint_for(&CPP_TYPES, &thrown.name) {
            tell(hint, draft);
        }
    } else if let Some(said) = facts.find_said(|text| CPP_PLAIN.iter().any(|words| text.contains(words))) {
        draft.lead("std::terminate was called", "C++ ended the process by std::terminate: an exception that nobody caught or that may not leave its function.");
        draft.evidence(said.cite());
        draft.say("The report does not tell the exception's type.");
    } else if let Some(frame) = terminate_frame(facts) {
        draft.lead("Uncaught exception", "The runtime ended the process since an exception was not caught.");
        draft.evidence(facts.cite(frame));
        draft.say("The report tells neither the exception's type nor its reason.");
    } else {
        return false;
    }
    draft.causes(&[
        "An exception that no caller handles.",
        "An exception that leaves a noexcept function, a destructor or a thread's function, or a std::thread that was not joined.",
    ]);
    cite_throw(facts, draft);
    draft.next("Set an exception breakpoint (__cxa_throw) to stop where it is thrown.");
    true
}

fn terminate_frame<'r>(facts: &Facts<'r>) -> Option<&'r backtrail_model::Frame> {
    const TERMINATE: [&str; 7] = [
        "std::terminate",
        "std::__terminate",
        "demangling_terminate_handler",
        "_objc_terminate",
        "abort_message",
        "objc_exception_throw",
        "__cxa_throw",
    ];
    let ended = matches!(facts.class, Class::Abort | Class::Unknown);
    facts.find_frame(&TERMINATE, 12).filter(|_| ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use backtrail_model::Field;

    fn thrown(name: &str, reason: Option<&str>) -> Option<Thrown> {
        Some(Thrown { name: name.to_owned(), reason: reason.map(str::to_owned) })
    }

    #[test]
    fn objective_c_texts_in_their_spellings() {
        for (text, expected) in [
            (
                "*** Terminating app due to uncaught exception 'NSRangeException', reason: '*** -[__NSArrayM objectAtIndex:]: index 3 beyond bounds [0 .. 2]'",
                thrown(
                    "NSRangeException",
                    Some("*** -[__NSArrayM objectAtIndex:]: index 3 beyond bounds [0 .. 2]"),
                ),
            ),
            (
                "Terminating app due to uncaught exception \"MyException\", reason: \"it's over\"",
                thrown("MyException", Some("it's over")),
            ),
            (
                "*** Terminating app due to uncaught exception 'A', reason: 'can't do 'this''",
                thrown("A", Some("can't do 'this'")),
            ),
            (
                "*** Terminating app due to uncaught exception 'A', reason: 'x'\n*** Call stack at first throw:\n('y')",
                thrown("A", Some("x")),
            ),
            (
                "*** Terminating app due to uncaught exception 'A', reason: 'cut off",
                thrown("A", Some("cut off")),
            ),
            ("*** Terminating app due to uncaught exception of class 'B'", thrown("B", None)),
            ("*** Terminating app due to uncaught exception 'A', reason: '(null)'", thrown("A", None)),
            ("abort() called", None),
            ("due to uncaught exception ", None),
        ] {
            assert_eq!(parse_objc(text), expected, "{text}");
        }
    }

    #[test]
    fn cpp_texts_in_their_spellings() {
        for (text, expected) in [
            (
                "libc++abi.dylib: terminating with uncaught exception of type std::out_of_range: vector",
                thrown("std::out_of_range", Some("vector")),
            ),
            ("terminating due to uncaught exception of type NSException", thrown("NSException", None)),
            (
                "terminate called after throwing an instance of 'std::logic_error'\n  what():  basic_string",
                thrown("std::logic_error", Some("basic_string")),
            ),
            ("terminating with uncaught exception of type ", None),
            ("all is well", None),
        ] {
            assert_eq!(parse_cpp(text), expected, "{text}");
        }
    }

    #[test]
    fn the_member_of_newer_reports() {
        let value = r#"{"arguments":["NSNull"],"name":"NSInvalidArgumentException","type":"objc-exception","composed_message":"-[NSNull length]: unrecognized selector","class":"NSException"}"#;
        let field = |value: &str| Report {
            fields: vec![Field { key: "exceptionReason".to_owned(), value: value.to_owned() }],
            ..Report::default()
        };
        assert_eq!(
            from_field(&field(value)),
            thrown("NSInvalidArgumentException", Some("-[NSNull length]: unrecognized selector"))
        );
        let section =
            backtrail_model::Section { title: "exceptionReason".to_owned(), text: value.to_owned() };
        let report = Report { sections: vec![section], ..Report::default() };
        assert_eq!(from_field(&report), from_field(&field(value)));
        assert_eq!(from_field(&field("not json")), None);
        assert_eq!(from_field(&field("{}")), None);
    }
}
