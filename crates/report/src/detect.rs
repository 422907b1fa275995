//! Which format an input is in, from a look at its beginning.

use crate::text::lossy;
use crate::{apple_text, exception_log, kscrash, plcrash, sentry};

/// What an input looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Detected {
    /// Nothing but blanks.
    Empty,
    /// Apple's text report, or another reporter's imitation.
    AppleText,
    /// JSON that is Apple's `.ips`, or may be.
    AppleIps,
    /// KSCrash's JSON report, or SentryCrash's.
    KsCrash,
    /// PLCrashReporter's binary report.
    PlCrash,
    /// A Sentry event, perhaps in an envelope.
    Sentry,
    /// A log of an uncaught exception, as apps write it.
    ExceptionLog,
    /// A kind of report that backtrail knows by this name, and does not read yet.
    NotReadYet(&'static str),
    /// Nothing that backtrail knows.
    Unknown,
}

/// How much of the input is looked at.
const SNIFFED: usize = 256 << 10;

/// First bytes of binary files that people hand over as crash reports.
const MAGICS: [(&[u8], &str); 5] = [
    (b"MDMP", "minidump"),
    (b"\x7fELF", "ELF file"),
    (b"\x1f\x8b", "gzip archive"),
    (b"PK\x03\x04", "zip archive"),
    (b"bplist00", "binary property list"),
];

/// Words that occur together in JSON reports of other kinds. The first that fits decides, so the surest come first.
const JSON_WORDS: [(&[&str], &str); 3] = [
    (&["\"crashDiagnostics\""], "MetricKit payload"),
    (&["\"hangDiagnostics\""], "MetricKit payload"),
    (&["\"callStackRootFrames\""], "MetricKit payload"),
];

/// Beginnings of lines of text reports of other kinds.
const TEXT_LINES: [(&str, &str); 6] = [
    ("Analysis of sampling ", "sample's call graph"),
    ("Data Source:      ", "spindump or microstackshots report"),
    ("*** *** *** ***", "Android tombstone"),
    ("----- pid ", "Android thread dump"),
    ("#00 pc ", "Android tombstone"),
    ("*** Crash dump is missing", "Windows crash dump"),
];

/// Says which format `input` is in. A guess from its beginning: reading it may still find that it is something else.
pub fn detect(input: &[u8]) -> Detected {
    let input = input.strip_prefix(BYTE_ORDER_MARK).unwrap_or(input);
    let start = input.trim_ascii_start();
    let Some(first) = start.first() else { return Detected::Empty };
    if plcrash::is_plcrash(start) {
        return Detected::PlCrash;
    }
    if let Some((_, name)) = MAGICS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Detected::NotReadYet(name);
    }
    if input.get(257..262) == Some(b"ustar") {
        return Detected::NotReadYet("tar archive");
    }
    let head = start.get(..SNIFFED).unwrap_or(start);
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return Detected::NotReadYet("text in UTF-16");
    }
    if *first == b'{' || *first == b'[' {
        return detect_json(&lossy(head));
    }
    if head.iter().take(4096).any(|byte| *byte == 0) {
        return Detected::Unknown;
    }
    detect_text(head)
}

/// UTF-8's byte order mark, which Windows editors put before a text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn detect_json(head: &str) -> Detected {
    let is_apple = ["\"bug_type\"", "\"usedImages\"", "\"procName\""];
    if is_apple.iter().any(|word| head.contains(word)) {
        return Detected::AppleIps;
    }
    if sentry::is_sentry(head) {
        return Detected::Sentry;
    }
    if kscrash::is_kscrash(head) {
        return Detected::KsCrash;
    }
    let known = JSON_WORDS.iter().find(|(words, _)| words.iter().all(|word| head.contains(word)));
    known.map_or(Detected::Unknown, |(_, name)| Detected::NotReadYet(name))
}

fn detect_text(head: &[u8]) -> Detected {
    let (mut is_apple, mut is_log) = (false, false);
    for line in apple_text::Lines::new(head, 0..head.len(), 1) {
        if line.bytes.len() > 4096 {
            continue;
        }
        let text = line.text();
        let other = TEXT_LINES.iter().find(|(word, _)| text.trim_start().starts_with(word));
        if let Some((_, name)) = other {
            return Detected::NotReadYet(name);
        }
        is_apple |= apple_text::is_telling(&text);
        is_log |= exception_log::is_telling(&text);
    }
    match (is_apple, is_log) {
        (true, _) => Detected::AppleText,
        (false, true) => Detected::ExceptionLog,
        (false, false) => Detected::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_by_their_beginning() {
        let not_yet = Detected::NotReadYet;
        for (input, expected) in [
            (&b""[..], Detected::Empty),
            (b" \r\n\t", Detected::Empty),
            (b"\xef\xbb\xbfProcess: App [1]\nPath: /a\n", Detected::AppleText),
            (b"words\nThread 0 Crashed:\n", Detected::AppleText),
            (b"0   App  0x1234 main + 1\n", Detected::AppleText),
            (b"{\"bug_type\":\"309\"}", Detected::AppleIps),
            (b"{\"callStackTree\":{\"callStackRootFrames\":[]}}", not_yet("MetricKit payload")),
            (b"{\"report\":{},\"binary_images\":[]}", Detected::KsCrash),
            (b"{\"a\":1}", Detected::Unknown),
            (b"MDMP\x93\xa7", not_yet("minidump")),
            (b"plcrash\x01", Detected::PlCrash),
            (b"\xff\xfeP\0r\0", not_yet("text in UTF-16")),
            (b"Process: App [1]\nAnalysis of sampling App\n", not_yet("sample's call graph")),
            (b"hello\nworld\n", Detected::Unknown),
            (b"a\0b", Detected::Unknown),
        ] {
            assert_eq!(detect(input), expected, "{}", String::from_utf8_lossy(input));
        }
    }
}
