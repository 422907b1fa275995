//! Which format an input is in, from a look at its beginning.

use crate::android::{self, Telling};
use crate::text::lossy;
use crate::{
    apple_text, bugsnag, call_tree, crashlytics, exception_log, jetsam_text, kscrash, last_words, panic_text,
    plcrash, runtimes, sentry,
};
use backtrail_model::Source;

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
    /// Text of `sample`, spindump, or of Apple's reports on hangs and limits.
    AppleSamples,
    /// Text of a kernel panic.
    ApplePanic,
    /// Text of iOS up to 6 on a memory event.
    AppleJetsamText,
    /// A payload of MetricKit.
    MetricKit,
    /// A crash log of Swift's runtime, as text or JSON.
    SwiftBacktrace,
    /// Crashlytics' text export for Apple's systems.
    Crashlytics,
    /// Text of Android or of a Java virtual machine: a tombstone, an ANR trace, a Java exception, a thread dump.
    AndroidOrJava,
    /// An Android tombstone as a protocol buffer.
    TombstoneProto,
    /// KSCrash's JSON report, or SentryCrash's.
    KsCrash,
    /// PLCrashReporter's binary report.
    PlCrash,
    /// A Sentry event, perhaps in an envelope.
    Sentry,
    /// A Bugsnag event, perhaps in a request.
    Bugsnag,
    /// A log of an uncaught exception, as apps write it.
    ExceptionLog,
    /// What a program's runtime, a sanitizer, a debugger or Linux's kernel wrote, of this kind.
    Runtimes(Source),
    /// A kind of report that backtrail knows by this name, and does not read yet.
    NotReadYet(&'static str),
    /// Nothing that backtrail knows.
    Unknown,
}

/// How much of the input is looked at.
pub(crate) const SNIFFED: usize = 256 << 10;

/// How much is looked at to tell text from binary files.
const LOOKED_AT_FOR_ZEROS: usize = 4096;
/// One zero byte in so many is the most that text has: a transfer or a broken disk leaves some. Binary files have more.
const MOST_ZEROS: usize = 64;

/// First bytes of binary files that people hand over as crash reports.
const MAGICS: [(&[u8], &str); 5] = [
    (b"MDMP", "minidump"),
    (b"\x7fELF", "ELF file"),
    (b"\x1f\x8b", "gzip archive"),
    (b"PK\x03\x04", "zip archive"),
    (b"bplist00", "binary property list"),
];

/// Words that occur together in JSON reports of each kind. The first that fits decides, so the surest come first.
const JSON_WORDS: [(&[&str], Detected); 15] = [
    (&["\"crashDiagnostics\""], Detected::MetricKit),
    (&["\"hangDiagnostics\""], Detected::MetricKit),
    (&["\"cpuExceptionDiagnostics\""], Detected::MetricKit),
    (&["\"diskWriteExceptionDiagnostics\""], Detected::MetricKit),
    (&["\"appLaunchDiagnostics\""], Detected::MetricKit),
    (&["\"callStackRootFrames\""], Detected::MetricKit),
    (&["\"callStackTree\"", "\"diagnosticMetaData\""], Detected::MetricKit),
    (&["\"bug_type\""], Detected::AppleIps),
    (&["\"usedImages\""], Detected::AppleIps),
    (&["\"procName\""], Detected::AppleIps),
    (&["\"processByPid\""], Detected::AppleIps),
    (&["\"macOSPanicString\""], Detected::AppleIps),
    (&["\"panicString\""], Detected::AppleIps),
    (&["\"largestProcess\""], Detected::AppleIps),
    (&["\"crashReport\"", "\"threads\"", "\"architecture\""], Detected::SwiftBacktrace),
];

/// Words that the line of metadata has which Apple's reports begin with, and how long such a line may be.
const METADATA: [&[u8]; 2] = [b"\"bug_type\"", b"\"timestamp\""];
const MAX_METADATA: usize = 4096;

/// Words that metrics of MetricKit have both.
const METRICS: [&str; 2] = ["\"timeStampBegin\"", "Metrics\""];

/// Beginnings of lines by which text reports of other kinds are known. The first line that has one decides.
const TEXT_LINES: [(&str, Detected); 14] = [
    (panic_text::PANIC, Detected::ApplePanic),
    (panic_text::MEMBER, Detected::ApplePanic),
    ("*** Panic Report ***", Detected::ApplePanic),
    (jetsam_text::JETSAM, Detected::AppleJetsamText),
    ("*** Program crashed:", Detected::SwiftBacktrace),
    ("*** Swift runtime failure:", Detected::SwiftBacktrace),
    ("\u{1f4a3} Program crashed:", Detected::SwiftBacktrace),
    ("\u{1f4a3} Swift runtime failure:", Detected::SwiftBacktrace),
    (call_tree::SAMPLE, Detected::AppleSamples),
    ("Call graph:", Detected::AppleSamples),
    (call_tree::SPINDUMP, Detected::AppleSamples),
    ("Heaviest stack for ", Detected::AppleSamples),
    ("Powerstats for:", Detected::AppleSamples),
    ("*** Crash dump is missing", Detected::NotReadYet("Windows crash dump")),
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
    if android::proto::is_tombstone(head) {
        return Detected::TombstoneProto;
    }
    if *first == b'{' || *first == b'[' {
        let json = detect_json(head);
        // Logs have times and ids in brackets.
        if json != Detected::Unknown || *first == b'{' || is_array(head) {
            return json;
        }
    }
    let zeros = head.iter().take(LOOKED_AT_FOR_ZEROS).filter(|byte| **byte == 0).count();
    if zeros * MOST_ZEROS > head.len().min(LOOKED_AT_FOR_ZEROS) {
        return Detected::Unknown;
    }
    detect_text(head)
}

/// UTF-8's byte order mark, which Windows editors put before a text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a text that begins with a bracket is an array of JSON.
fn is_array(text: &[u8]) -> bool {
    let inside = text.get(1..).unwrap_or_default().trim_ascii_start();
    // Brackets with nothing inside may be a time that a tool left out; a line follows them.
    let is_empty = || {
        let behind = inside.strip_prefix(b"]").unwrap_or_default();
        behind.split(|byte| *byte == b'\n').next().is_none_or(|rest| rest.trim_ascii().is_empty())
    };
    match inside.first() {
        None | Some(b'{' | b'[' | b'"') => true,
        Some(b']') => is_empty(),
        Some(_) => false,
    }
}

fn detect_json(head: &[u8]) -> Detected {
    // Apple's reports begin with a line of metadata: most inputs need no look at what follows.
    let line = head.get(..MAX_METADATA).unwrap_or(head);
    let line = memchr::memchr(b'\n', line).and_then(|end| line.get(..end)).unwrap_or_default();
    if METADATA.iter().all(|word| memchr::memmem::find(line, word).is_some()) {
        return Detected::AppleIps;
    }
    let has = |word: &&str| memchr::memmem::find(head, word.as_bytes()).is_some();
    if let Some((_, detected)) = JSON_WORDS.iter().find(|(words, _)| words.iter().all(has)) {
        return *detected;
    }
    let is_metrics = || METRICS.iter().all(has);
    let head = &*lossy(head);
    match () {
        () if sentry::is_sentry(head) => Detected::Sentry,
        () if runtimes::is_abrt(head) => Detected::Runtimes(Source::DebuggerBacktrace),
        () if runtimes::is_casr(head) => Detected::Runtimes(Source::Casr),
        () if runtimes::is_node_report(head) => Detected::Runtimes(Source::NodeReport),
        () if kscrash::is_kscrash(head) => Detected::KsCrash,
        () if bugsnag::is_bugsnag(head) => Detected::Bugsnag,
        () if is_metrics() => Detected::MetricKit,
        () => Detected::Unknown,
    }
}

pub(crate) fn detect_text(text: &[u8]) -> Detected {
    let head = text.get(..SNIFFED).unwrap_or(text);
    match detect_lines(head) {
        Detected::Unknown if has_last_words(head) => Detected::ExceptionLog,
        detected => detected,
    }
}

/// The same without a program's last words, which take long to look for.
pub(crate) fn detect_lines(text: &[u8]) -> Detected {
    let head = text.get(..SNIFFED).unwrap_or(text);
    let mut is_apple = false;
    let mut has_java_rows = false;
    let mut is_log = false;
    let (mut has_head, mut is_apples, mut has_page_row) = (false, false, false);
    let mut likely = None;
    for line in apple_text::Lines::new(head, 0..head.len(), 1) {
        if line.bytes.len() > 4096 {
            continue;
        }
        // Rows of images are most of a report's lines, and begin so in no other text.
        if is_apple && line.bytes.trim_ascii_start().starts_with(b"0x") {
            continue;
        }
        let text = line.text();
        let start = text.trim_start();
        let other = TEXT_LINES.iter().find(|(word, _)| start.starts_with(word));
        if let Some((_, detected)) = other {
            return *detected;
        }
        if call_tree::is_threads_row(start) || call_tree::is_event(start) {
            return Detected::AppleSamples;
        }
        // Its rows look like Apple's.
        if runtimes::is_walk(start) {
            return Detected::Runtimes(Source::DebuggerBacktrace);
        }
        if start.starts_with('*') && start.contains(" Bugcheck Analysis ") {
            return Detected::NotReadYet(crate::error::WINDBG);
        }
        if crashlytics::is_platform(&text) {
            return Detected::Crashlytics;
        }
        is_apples = is_apples || crashlytics::is_apples(start);
        has_head = has_head || (!is_apples && crashlytics::is_head(start));
        has_page_row = has_page_row || (has_head && crashlytics::is_page_row(start));
        match android::telling(&text) {
            // Dart's runtime prints Android's line of stars on every system.
            Telling::Sure if is_darts(head) => return Detected::Runtimes(Source::DartTrace),
            Telling::Sure => return Detected::AndroidOrJava,
            telling => has_java_rows |= telling == Telling::Row,
        }
        is_apple = is_apple || apple_text::is_telling(&text);
        // Apple's reports quote what sanitizers and runtimes say.
        if !is_apple && !is_log {
            match runtimes::telling(&text) {
                runtimes::Telling::Sure(source) => return Detected::Runtimes(source),
                // The kernel's stack stands before whom it killed for want of memory.
                runtimes::Telling::Likely(source)
                    if source == Source::KernelLog && likely == Some(Source::LinuxKernel) =>
                {
                    likely = Some(source);
                }
                runtimes::Telling::Likely(source) => likely = likely.or(Some(source)),
                runtimes::Telling::No => {}
            }
        }
        is_log = is_log || is_apple || exception_log::is_telling(&text);
    }
    match (is_apple, is_log, has_java_rows, likely) {
        // Its heads alone are not enough: rows of Apple's kind follow them.
        (true, ..) if has_head => Detected::Crashlytics,
        _ if has_page_row => Detected::Crashlytics,
        (true, ..) => Detected::AppleText,
        (false, true, ..) => Detected::ExceptionLog,
        (false, false, true, _) => Detected::AndroidOrJava,
        (false, false, false, Some(source)) => Detected::Runtimes(source),
        (false, false, false, None) => Detected::Unknown,
    }
}

/// Whether a line of a text is what a program or its runtime says right before the end.
fn has_last_words(head: &[u8]) -> bool {
    apple_text::Lines::new(head, 0..head.len(), 1).any(|line| last_words::is(&line.text()))
}

/// Whether a text is a stack of Dart, and no tombstone.
fn is_darts(head: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    has(b"isolate_dso_base: ") && !has(b"Build fingerprint") && !has(b">>> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A good report with one byte that a transfer had lost.
    #[test]
    fn a_zero_byte_does_not_make_a_report_binary() {
        let lines = "Process: App [1]\nPath: /a\n\nThread 0 Crashed:\n0   App  0x1234 main + 1\n".repeat(3);
        let mut bytes = lines.into_bytes();
        bytes[30] = 0;
        assert_eq!(detect(&bytes), Detected::AppleText);
    }

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
            (b"{\"callStackTree\":{\"callStackRootFrames\":[]}}", Detected::MetricKit),
            (b"{\"diagnosticMetaData\":{},\"callStackTree\":{\"callStacks\":[]}}", Detected::MetricKit),
            (b"{\"timeStampBegin\":1,\"cpuMetrics\":{}}", Detected::MetricKit),
            (b"\n*** Program crashed: Illegal instruction ***\n", Detected::SwiftBacktrace),
            (b"panic(cpu 0 caller 0x1): \"x\"\n", Detected::ApplePanic),
            (b"{\"report\":{},\"binary_images\":[]}", Detected::KsCrash),
            (b"{\"exceptions\":[{\"errorClass\":\"E\"}]}", Detected::Bugsnag),
            (b"{\"a\":1}", Detected::Unknown),
            (b"MDMP\x93\xa7", not_yet("minidump")),
            (b"plcrash\x01", Detected::PlCrash),
            (b"*** *** *** *** ***\nBuild fingerprint: 'a'\n", Detected::AndroidOrJava),
            (b"a.b.C: d\n\tat a.b.C.e(F.java:1)\n", Detected::AndroidOrJava),
            (b"Process: App [1]\nPath: /a\n\tat a.b.C.e(F.java:1)\n", Detected::AppleText),
            (b"\x08\x01\x12\x05a/b:c\x28\x01", Detected::TombstoneProto),
            (b"\xff\xfeP\0r\0", not_yet("text in UTF-16")),
            (b"Process: App [1]\nAnalysis of sampling App\n", Detected::AppleSamples),
            (b"Crashed: com.x\n0  App  0x1234 f + 1\n", Detected::Crashlytics),
            (b"Process: App [1]\nCrashed: com.x\n0  App  0x1234 f + 1\n", Detected::AppleText),
            (b"Crashed: yes\nThe end\n", Detected::Unknown),
            (b"* Bugcheck Analysis *\nwords\n", not_yet(crate::error::WINDBG)),
            (b"[    ] words\n", Detected::Unknown),
            (b"hello\nworld\n", Detected::Unknown),
            (b"a\0b", Detected::Unknown),
            (b"P\0r\0o\0c\0e\0s\0s\0:\0 \0A\0p\0p\0", Detected::Unknown),
        ] {
            assert_eq!(detect(input), expected, "{}", String::from_utf8_lossy(input));
        }
    }
}
