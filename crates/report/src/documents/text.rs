//! Where text reports begin that stand one after the other.

use crate::apple_text::Lines;

/// What has been seen of the report that is being gone through.
#[derive(Default)]
struct Seen {
    /// A line that names the incident.
    incident: bool,
    /// A line that names the process.
    process: bool,
    /// Stacks or images: what can only be followed by another report's header.
    body: bool,
    /// Words of an exception that nobody caught, before stacks and images.
    words: bool,
    /// The announcement that the same report follows in JSON.
    announced_json: bool,
}

/// What a line begins.
enum Begins {
    Incident,
    Process,
    Translation,
    Json,
    Exception,
    Body,
    Throw,
    FullReport,
}

/// The positions at which reports begin; the first is that of the text. With it, whether a line of the text is one that
/// crash reports have.
pub(super) fn starts(text: &[u8]) -> (Vec<usize>, bool) {
    let mut starts = vec![0];
    let mut is_known = false;
    let mut seen = Seen::default();
    let mut rule = None;
    // An exception behind a stack, which may be that stack's, or the next one's.
    let mut exception = None;
    for line in Lines::new(text, 0..text.len(), 1) {
        let Some(begins) = begins(line.bytes) else {
            rule = is_rule(line.bytes).then_some(line.span.start);
            continue;
        };
        is_known = true;
        let is_new = match begins {
            Begins::Incident => seen.body || seen.incident,
            Begins::Process => seen.body && (seen.process || !seen.incident),
            Begins::Translation => seen.body,
            Begins::Json => seen.body && !seen.announced_json,
            // Some systems say it behind the stack.
            Begins::Exception | Begins::FullReport => false,
            Begins::Throw => exception.is_some(),
            // A stack that had no words before it has those behind it.
            Begins::Body => exception.is_some() && seen.words,
        };
        if is_new {
            seen = Seen { words: exception.is_some(), ..Seen::default() };
            starts.push(exception.take().or(rule).unwrap_or(line.span.start));
        }
        match begins {
            Begins::Incident => seen.incident = true,
            Begins::Process => seen.process = true,
            Begins::FullReport => seen.announced_json = true,
            Begins::Json => (seen.body, seen.announced_json) = (true, false),
            Begins::Body | Begins::Throw => seen.body = true,
            // Inside of a report that has a header it is a message of that report.
            Begins::Exception if seen.body && !seen.process && !seen.incident => {
                exception.get_or_insert(line.span.start);
            }
            Begins::Exception => seen.words |= !seen.body,
            Begins::Translation => {}
        }
        rule = None;
    }
    (starts, is_known)
}

/// A line of dashes, as Apple's translated reports begin with.
fn is_rule(line: &[u8]) -> bool {
    line.len() >= 10 && line.iter().all(|byte| *byte == b'-')
}

fn begins(line: &[u8]) -> Option<Begins> {
    let line = line.trim_ascii_start();
    // This is asked of every line of every report: the first byte dismisses most.
    let (known, begins): (&[u8], Begins) = match line.first()? {
        b'I' => (b"Incident Identifier:", Begins::Incident),
        b'P' => (b"Process:", Begins::Process),
        b'B' => (b"Binary Images:", Begins::Body),
        b'L' => (b"Last Exception Backtrace:", Begins::Body),
        b'F' => (b"Full Report", Begins::FullReport),
        b'*' if line.starts_with(b"*** First throw call stack") => (b"***", Begins::Throw),
        b'*' => (b"*** Terminating app due to uncaught exception", Begins::Exception),
        b'T' if line.starts_with(b"Thread ") && line.get(7).is_some_and(u8::is_ascii_digit) => {
            (b"Thread ", Begins::Body)
        }
        b'T' => (b"Translated Report (Full Report Below)", Begins::Translation),
        b'#' => (b"# Crashlytics - ", Begins::Incident),
        b'{' => {
            let head = line.get(..4096).unwrap_or(line);
            let says = |word: &[u8]| head.windows(word.len()).any(|window| window == word);
            return (says(b"\"bug_type\"") || says(b"\"app_name\"")).then_some(Begins::Json);
        }
        _ => return None,
    };
    line.starts_with(known).then_some(begins)
}
