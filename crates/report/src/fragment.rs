//! Parts of reports between words, where nothing tells a whole one: members of Apple's JSON without the braces around them,
//! processes of a memory event, the form of a tracker, and messages that a sentence quotes.

use crate::apple_text::Lines;
use crate::detect::{Detected, detect_text};
use crate::json::{Arena, read as read_json};
use crate::{Error, Limits, android, apple_ips, bugsnag, exception_log, last_words, runtimes};
use backtrail_model::{Report, Section, Source};

/// Members of Apple's JSON that tell what happened.
const MEMBERS: [&str; 11] = [
    "asi",
    "exception",
    "faultingThread",
    "largestProcess",
    "lastExceptionBacktrace",
    "memoryStatus",
    "processes",
    "procName",
    "termination",
    "threads",
    "usedImages",
];

/// Reads a text that is a whole report.
type Parse = fn(&[u8], &Limits) -> Result<Report, Error>;

/// Reads what is left of a report; `None` where there is nothing of one.
pub(crate) fn read(input: &[u8], limits: &Limits, parse: Parse) -> Option<Report> {
    let cut = members(input, limits)
        .or_else(|| processes(input, limits))
        .or_else(|| bugsnag::form::read(input, limits));
    // The others are asked of what people write.
    if cut.is_some() || input.len() > MAX_PROSE {
        return cut;
    }
    exception_log::read_named(input, limits)
        .or_else(|| {
            let mut report = android::read_head(input, limits)?;
            keep(&mut report, input);
            Some(report)
        })
        .or_else(|| quoted(input, limits, parse))
}

/// Members of an object whose opening brace was cut off.
fn members(input: &[u8], limits: &Limits) -> Option<Report> {
    let is_member = |line: &[u8]| {
        let inside = line.trim_ascii_start().strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', inside.get(..64.min(inside.len()))?)?;
        let name = std::str::from_utf8(inside.get(..end)?).ok()?;
        let behind = inside.get(end + 1..)?.trim_ascii_start();
        (MEMBERS.contains(&name) && behind.starts_with(b":")).then_some(())
    };
    let first = Lines::new(input, 0..input.len(), 1).find(|line| is_member(line.bytes).is_some())?;
    braced(b"{", input, first.span.start, limits)
}

/// Processes of a memory event whose list was cut off. What each held in pages, no other JSON has.
fn processes(input: &[u8], limits: &Limits) -> Option<Report> {
    const PAGES: &[u8] = b"\"rpages\"";
    let at = memchr::memmem::find(input, PAGES)?;
    let mut depth = 0_usize;
    let opening = input.get(..at)?.iter().rposition(|byte| match byte {
        b'}' => {
            depth += 1;
            false
        }
        b'{' if depth > 0 => {
            depth -= 1;
            false
        }
        byte => *byte == b'{',
    })?;
    braced(b"{\"memoryStatus\":{},\"processes\":[", input, opening, limits)
}

/// Reads JSON from a place on, with what was cut off before it.
fn braced(before: &[u8], input: &[u8], from: usize, limits: &Limits) -> Option<Report> {
    let mut whole = before.to_vec();
    whole.extend_from_slice(input.get(from..)?);
    let arena = Arena::default();
    let first = read_json(&arena, &whole, 0, limits);
    let mut report = apple_ips::read_part(&whole, &first, limits)?;
    // They are places in the text that was put together.
    report.all_processes_mut().for_each(|process| process.frames_mut().for_each(|frame| frame.span = None));
    keep(&mut report, input);
    Some(report)
}

/// The whole text, as it was given.
fn keep(report: &mut Report, input: &[u8]) {
    report
        .sections
        .push(Section { title: "Text".to_owned(), text: String::from_utf8_lossy(input).into_owned() });
}

/// A longer text is not looked through for messages inside of its sentences, or for names and reasons alone: what people write is shorter.
const MAX_PROSE: usize = 64 << 10;

/// Messages inside of sentences, each of which would be a report where it stood alone: those that are quoted, and those that end a
/// sentence behind a colon.
fn quoted(input: &[u8], limits: &Limits, parse: Parse) -> Option<Report> {
    let mut said = String::new();
    for line in
        Lines::new(input, 0..input.len(), 1).filter(|line| line.bytes.len() <= limits.max_line.min(4096))
    {
        let text = line.text();
        for message in messages(&text) {
            said.push_str(message.trim());
            said.push('\n');
        }
    }
    if said.is_empty() {
        return None;
    }
    let read = match detect_text(said.as_bytes()) {
        Detected::ExceptionLog => exception_log::read(said.as_bytes(), 0, limits),
        Detected::Unknown => match android::read_head(said.as_bytes(), limits) {
            Some(report) => Some(report),
            None => runtimes::read(Source::DotNetException, said.as_bytes(), 0, limits).ok()?,
        },
        _ => parse(said.as_bytes(), limits).ok(),
    };
    let mut report = read?;
    report.sections.clear();
    // They are places in the text that was put together.
    report.all_processes_mut().for_each(|process| process.frames_mut().for_each(|frame| frame.span = None));
    keep(&mut report, input);
    Some(report)
}

/// What a sentence around a stack tells of its reason, where the report itself tells none.
pub(crate) fn add_said(report: &mut Report, input: &[u8], limits: &Limits, parse: Parse) {
    let tells = report.exception.is_some()
        || report.thrown.is_some()
        || report.termination.is_some()
        || report.event.is_some()
        || !report.app_info.is_empty();
    if tells || input.len() > MAX_PROSE {
        return;
    }
    let Some(said) = quoted(input, limits, parse).filter(|said| said.source == Source::ExceptionLog) else {
        return;
    };
    report.exception = said.exception;
    report.thrown = said.thrown;
    report.app_info = said.app_info;
}

/// The messages that a line has in a sentence. What stands between two marks of one kind is quoted.
fn messages(line: &str) -> Vec<&str> {
    // Rows of a table are no sentences.
    if line.matches('\t').count() > 3 {
        return Vec::new();
    }
    const MARKS: [&str; 3] = ["`", "**", "\""];
    let of_mark = |mark: &&&str| line.split(**mark).skip(1).step_by(2).any(is_message);
    if let Some(mark) = MARKS.iter().find(of_mark) {
        return line.split(*mark).skip(1).step_by(2).filter(|inner| is_message(inner)).collect();
    }
    if let Some(stop) = last_words::stop_within(line) {
        return vec![stop];
    }
    let behind = |at: usize| line.get(at + 1..).map(str::trim).filter(|rest| is_message(rest));
    line.match_indices(": ").find_map(|(at, _)| behind(at)).into_iter().collect()
}

/// Whether words would be a report where they stood alone. Rows of stacks and names of classes that a sentence mentions are none.
fn is_message(words: &str) -> bool {
    let words = words.trim();
    if words.len() < 12 || !words.contains(' ') {
        return false;
    }
    match detect_text(words.as_bytes()) {
        Detected::ExceptionLog => last_words::is(words) && !last_words::is_class_alone(words),
        // `panic: ` begins others' lines, too; and the kernel's drivers warn of much.
        Detected::Runtimes(Source::GoTrace) => {
            words.contains("runtime error: ") || words.contains("goroutine ")
        }
        Detected::Runtimes(Source::LinuxKernel) => !words.starts_with("WARNING: "),
        Detected::Runtimes(_) | Detected::ApplePanic => true,
        Detected::AndroidOrJava => words.contains("signal "),
        Detected::AppleText => words.starts_with("dyld") || words.starts_with("Termination Reason: "),
        Detected::Unknown => runtimes::is_dotnet_head(words) || android::is_head(words),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::{Limits, parse};

    #[test]
    fn members_between_words() {
        let text = "We saw this:\n  \"termination\" : {\"code\":2343432205,\"namespace\":\"FRONTBOARD\",\"reasons\":[\"scene-update watchdog\"]},\n  \"threads\" : [{\"triggered\":true,\"id\":7,\"frames\":[{\"imageOffset\":16,\"symbol\":\"f\"";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.termination.unwrap().code, Some(0x8bad_f00d));
        assert_eq!(report.process.threads.len(), 1);
        assert!(report.process.threads[0].frames.iter().all(|frame| frame.span.is_none()));
        assert!(report.sections.iter().any(|section| section.text.contains("We saw this:")));
    }

    #[test]
    fn processes_of_a_memory_event() {
        let text = "The log has\n {\n \"states\" : [ \"frontmost\" ],\n \"rpages\" : 1200,\n \"reason\" : \"per-process-limit\",\n \"name\" : \"Shop\", \"pid\" : 12 },\nand no more\n";
        let mut report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.source, backtrail_model::Source::AppleJetsam);
        assert!(report.all_processes_mut().any(|process| process.name.as_deref() == Some("Shop")));
    }

    #[test]
    fn messages_that_a_sentence_quotes() {
        let text = "It stops at `sections[0]` with `Thread 1: Fatal error: Index out of range`. Why?\n";
        let report = parse(text.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.app_info[0].lines, ["Fatal error: Index out of range"]);
        for text in ["`a` and `b`\n", "{\"a\":1}\n", "\"name\": \"x\"\n", "the `termination` of it\n"] {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn what_quotes_a_message() {
        let said = |text: &str| {
            let report =
                parse(text.as_bytes(), &Limits::default()).unwrap_or_else(|why| panic!("{why}: {text}"));
            report.app_info.first().map(|info| info.lines.join("|")).unwrap_or_default()
        };
        let message = "-[Cart total]: unrecognized selector sent to instance 0x600000012340";
        for (open, close) in [("`", "`"), ("**", "**"), ("\"", "\"")] {
            assert!(said(&format!("It says {open}{message}{close} and stops.\n")).ends_with(message));
        }
        assert!(said(&format!("I get this when I tap it: {message}\n")).ends_with(message));
        let report =
            parse(b"It stops with EXC_BAD_ACCESS (code=1, address=0x18) there.\n", &Limits::default())
                .unwrap();
        assert_eq!(report.exception.unwrap().kind.as_deref(), Some("EXC_BAD_ACCESS"));
        // Words about a crash are none.
        for text in
            ["It is an EXC_BAD_ACCESS somewhere.\n", "The `NSRangeException` came back: it is there.\n"]
        {
            assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn fences_with_a_text_of_their_own() {
        let text = "We see ```*** Terminating app due to uncaught exception 'NSRangeException', reason: 'index 3 beyond bounds'``` there\n";
        assert!(parse(text.as_bytes(), &Limits::default()).is_ok());
        let escaped = "**\\*** Terminating app due to uncaught exception 'NSRangeException', reason: 'index 3 beyond bounds'\n";
        let report = parse(escaped.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.thrown.as_ref().map(|it| it.name.as_str()), Some("NSRangeException"));
    }

    #[test]
    fn the_first_line_of_an_exception() {
        let head = "java.io.IOException: no cart\n";
        let report = parse(head.as_bytes(), &Limits::default()).unwrap();
        assert_eq!(report.exception.unwrap().message.as_deref(), Some("no cart"));
        assert_eq!(report.sections[0].text, head);
        let rows = format!("{head}\tat some.int price()(some.java:76)\n");
        assert!(parse(rows.as_bytes(), &Limits::default()).is_err());
    }
}
