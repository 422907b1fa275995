//! From bytes to a report, whatever the format.

use crate::detect::BYTE_ORDER_MARK;
use crate::{
    Detected, Error, ErrorKind, Limits, android, apple_ips, apple_text, bugsnag, call_tree, crashlytics,
    detect, exception_log, fragment, jetsam_text, kscrash, metrickit, panic_text, plcrash, runtimes, sentry,
    swift_backtrace, thrown_script,
};
use backtrail_model::{Report, Section, Source};
use std::ops::Range;

/// Reads a crash report of any format that backtrail reads.
///
/// # Errors
///
/// The input is empty, larger than [`Limits::max_bytes`], no report, or of a kind that is known by name only
/// ([`ErrorKind::NotReadYet`]). A report that is broken or cut somewhere is no error: what could be read is given,
/// [`Report::notes`] says what is amiss.
pub fn parse(input: &[u8], limits: &Limits) -> Result<Report, Error> {
    parse_as(input, None, limits)
}

/// The same, where the format may be known already.
pub(crate) fn parse_as(input: &[u8], detected: Option<Detected>, limits: &Limits) -> Result<Report, Error> {
    if input.len() > limits.max_bytes {
        let message = format!("expected at most {} bytes, found {}", limits.max_bytes, input.len());
        return Err(Error::new(ErrorKind::TooLarge, message));
    }
    let detected = detected.unwrap_or_else(|| detect(input));
    let mut report = match read(input, detected, limits) {
        // Mono writes its crash into the log of Apple's device, with rows of Apple's form.
        Err(error) if error.kind() == ErrorKind::Unrecognized => {
            runtimes::read(Source::DotNetException, input, text_start(input), limits)?.ok_or(error)?
        }
        read => read?,
    };
    if report.source.is_apple() || report.source.is_android_or_java() {
        thrown_script::part(&mut report, limits);
    }
    if matches!(report.source, Source::AppleText | Source::ExceptionLog | Source::DebuggerBacktrace) {
        fragment::add_said(&mut report, input, limits, parse);
    }
    Ok(report)
}

fn read(input: &[u8], detected: Detected, limits: &Limits) -> Result<Report, Error> {
    match detected {
        Detected::Empty => Err(Error::new(ErrorKind::Empty, "expected a crash report, found nothing")),
        Detected::NotReadYet(name) => Err(Error::not_read_yet(name)),
        Detected::KsCrash => kscrash::read(input, start_of(input), limits),
        Detected::ExceptionLog => {
            exception_log::read(input, start_of(input), limits).ok_or_else(|| unrecognized(input))
        }
        Detected::Sentry => sentry::read(input, start_of(input), limits),
        Detected::Bugsnag => bugsnag::read(input, start_of(input), limits),
        Detected::PlCrash => plcrash::read(input.get(start_of(input)..).unwrap_or_default(), limits),
        Detected::AppleIps => apple_ips::read(input, start_of(input), limits),
        Detected::AppleText => read_text(input, limits),
        Detected::Crashlytics => {
            crashlytics::read(input, text_start(input), limits).ok_or_else(|| unrecognized(input))
        }
        Detected::MetricKit => metrickit::read(input, start_of(input), limits),
        Detected::SwiftBacktrace => swift_backtrace::read(input, start_of(input), limits),
        Detected::ApplePanic => Ok(panic_text::read(&text_of(input), limits)),
        Detected::AppleJetsamText => Ok(jetsam_text::read(&text_of(input), limits)),
        Detected::AppleSamples => Ok(call_tree::read(input, text_start(input)..input.len(), 1, limits)),
        Detected::AndroidOrJava => accept(android::read(input, text_start(input), limits), input),
        Detected::Runtimes(kind) => runtimes::read(kind, input, start_of_text(kind, input), limits)?
            .ok_or_else(|| unrecognized(input)),
        Detected::TombstoneProto => Ok(android::proto::read(input, limits)),
        Detected::Unknown => fragment::read(input, limits, parse).ok_or_else(|| unrecognized(input)),
    }
}

/// The first byte that counts.
pub(crate) fn start_of(input: &[u8]) -> usize {
    let mark = text_start(input);
    let rest = input.get(mark..).unwrap_or_default();
    mark + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

pub(crate) fn unrecognized(input: &[u8]) -> Error {
    const SHOWN: usize = 40;
    let start = start_of(input);
    let rest = input.get(start..).unwrap_or_default();
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shown: String = String::from_utf8_lossy(line.get(..SHOWN).unwrap_or(line)).escape_debug().collect();
    let dots = if line.len() > SHOWN { "…" } else { "" };
    let message =
        format!("expected a crash report, found no line that one has; it begins with `{shown}{dots}`");
    Error::new(ErrorKind::Unrecognized, message).at(input, start)
}

/// Where text begins.
fn text_start(input: &[u8]) -> usize {
    if input.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

/// Where a report of a runtime begins: JSON behind blanks, text with them.
fn start_of_text(kind: Source, input: &[u8]) -> usize {
    if matches!(kind, Source::NodeReport | Source::Casr) { start_of(input) } else { text_start(input) }
}

/// All of the input as text.
fn text_of(input: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(input.get(text_start(input)..).unwrap_or_default())
}

/// A text report; macOS may have put the full report in JSON behind it, which then says more.
fn read_text(input: &[u8], limits: &Limits) -> Result<Report, Error> {
    let start = text_start(input);
    let Some(json) = full_report(input) else {
        return accept(apple_text::read(input, start..input.len(), 1, limits), input);
    };
    let text = apple_text::read(input, start..json, 1, limits);
    let frames =
        |report: &Report| report.process.threads.iter().map(|thread| thread.frames.len()).sum::<usize>();
    match apple_ips::read(input, json, limits) {
        Ok(mut full) if frames(&full) >= frames(&text) => {
            let translation = String::from_utf8_lossy(input.get(start..json).unwrap_or_default());
            full.sections
                .push(Section { title: TRANSLATION.to_owned(), text: translation.trim_end().to_owned() });
            Ok(full)
        }
        full => {
            let mut text = apple_text::read(input, start..input.len(), 1, limits);
            let why = full.map_or_else(|error| error.to_string(), |_| "it is cut".to_owned());
            text.notes.push(format!("the full report behind the translated one was not used: {why}"));
            accept(text, input)
        }
    }
}

/// The title of the section that keeps a translated report's text.
pub(crate) const TRANSLATION: &str = "Translated Report";

/// Where the JSON begins that stands behind a translated report.
pub(crate) fn full_report(input: &[u8]) -> Option<usize> {
    let lines = apple_text::Lines::new(input, 0..input.len(), 1);
    let mut opening = lines.filter(|line| line.bytes.first() == Some(&b'{'));
    let names = |line: &apple_text::Line<'_>| {
        let head = line.bytes.get(..4096).unwrap_or(line.bytes);
        contains(head, b"\"bug_type\"") || contains(head, b"\"app_name\"")
    };
    opening.find(names).map(|line| line.span.start)
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}

/// The part of a translated report that is its text.
pub(crate) fn translated_part(input: &[u8]) -> Option<Range<usize>> {
    let is_text = input.get(start_of(input)).is_some_and(|byte| *byte != b'{' && *byte != b'[');
    full_report(input).filter(|_| is_text).map(|json| 0..json)
}

/// Text in which nothing of a report was found is none.
fn accept(report: Report, input: &[u8]) -> Result<Report, Error> {
    let names_process = report.process.name.is_some() && report.process.identifier.is_some();
    let says_something = !report.process.threads.is_empty()
        || !report.process.backtraces.is_empty()
        || !report.process.images.is_empty()
        || report.exception.is_some()
        || report.termination.is_some()
        || report.incident.is_some()
        || names_process;
    if says_something { Ok(report) } else { Err(unrecognized(input)) }
}
