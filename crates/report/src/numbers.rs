//! Numbers that reports state where others print the word.

use backtrail_core::Utc;

/// The Mach exception of that number: `osfmk/mach/exception_types.h` of XNU.
pub(crate) fn mach_exception(number: u64) -> Option<&'static str> {
    Some(match number {
        1 => "EXC_BAD_ACCESS",
        2 => "EXC_BAD_INSTRUCTION",
        3 => "EXC_ARITHMETIC",
        4 => "EXC_EMULATION",
        5 => "EXC_SOFTWARE",
        6 => "EXC_BREAKPOINT",
        7 => "EXC_SYSCALL",
        8 => "EXC_MACH_SYSCALL",
        9 => "EXC_RPC_ALERT",
        10 => "EXC_CRASH",
        11 => "EXC_RESOURCE",
        12 => "EXC_GUARD",
        13 => "EXC_CORPSE_NOTIFY",
        _ => return None,
    })
}

/// The name of a Mach exception, or that it is none that is known.
pub(crate) fn exception_name(number: u64) -> String {
    mach_exception(number).map_or_else(|| format!("exception {number}"), str::to_owned)
}

/// A signal.
struct Signal {
    name: &'static str,
    on_linux: u64,
    on_apples: u64,
    /// Whether an end by it tells of a fault or a limit. Others are how users, timers and terminals end a program.
    is_fault: bool,
}

const fn fault(name: &'static str, on_linux: u64, on_apples: u64) -> Signal {
    Signal { name, on_linux, on_apples, is_fault: true }
}

const fn request(name: &'static str, number: u64) -> Signal {
    Signal { name, on_linux: number, on_apples: number, is_fault: false }
}

/// Linux and Apple's systems agree on the numbers of most.
const SIGNALS: [Signal; 15] = [
    request("SIGHUP", 1),
    request("SIGINT", 2),
    fault("SIGQUIT", 3, 3),
    fault("SIGILL", 4, 4),
    fault("SIGTRAP", 5, 5),
    fault("SIGABRT", 6, 6),
    fault("SIGBUS", 7, 10),
    fault("SIGFPE", 8, 8),
    fault("SIGKILL", 9, 9),
    fault("SIGSEGV", 11, 11),
    fault("SIGPIPE", 13, 13),
    request("SIGALRM", 14),
    fault("SIGTERM", 15, 15),
    fault("SIGXCPU", 24, 24),
    fault("SIGSYS", 31, 12),
];

/// The signal of that number.
pub(crate) fn signal(number: u64, is_linux: bool) -> Option<&'static str> {
    let has_number = |signal: &&Signal| number == if is_linux { signal.on_linux } else { signal.on_apples };
    SIGNALS.iter().find(has_number).map(|signal| signal.name)
}

/// The signal of that name, where an end by it tells of a fault or a limit.
pub(crate) fn fault_named(name: &str) -> Option<&'static str> {
    SIGNALS.iter().find(|signal| signal.is_fault && signal.name == name).map(|signal| signal.name)
}

/// The signal of that number on Linux, where an end by it tells of a fault or a limit.
pub(crate) fn fault_numbered(number: u64) -> Option<&'static str> {
    SIGNALS.iter().find(|signal| signal.is_fault && signal.on_linux == number).map(|signal| signal.name)
}

/// A number with `0x` before it.
pub(crate) fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Whether a text is a decimal number of digits alone.
pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Words for signals, as C libraries, shells and runtimes have them, and whether they stand alone for an end by that signal:
/// programs say the others for other reasons. Longer ones come before their beginnings.
const SIGNAL_WORDS: [(&str, &str, bool); 14] = [
    ("segmentation fault", "SIGSEGV", true),
    ("segmentation violation", "SIGSEGV", false),
    ("bus error", "SIGBUS", true),
    ("illegal instruction", "SIGILL", true),
    ("illegal hardware instruction", "SIGILL", false),
    ("floating point exception", "SIGFPE", true),
    ("floating-point exception", "SIGFPE", false),
    ("trace/breakpoint trap", "SIGTRAP", true),
    ("trace/bpt trap", "SIGTRAP", true),
    ("trace trap", "SIGTRAP", false),
    ("abort trap", "SIGABRT", true),
    ("aborted", "SIGABRT", false),
    ("abort", "SIGABRT", false),
    ("killed", "SIGKILL", false),
];

/// The signal that the words at the beginning of a text stand for.
pub(crate) struct SignalWords<'t> {
    pub(crate) signal: &'static str,
    /// Whether the words are a whole message by themselves, in the C library's letters.
    pub(crate) stand_alone: bool,
    /// What follows the words.
    pub(crate) rest: &'t str,
}

impl<'t> SignalWords<'t> {
    pub(crate) fn read(text: &'t str) -> Option<Self> {
        let begins =
            |known: &str| text.get(..known.len()).is_some_and(|head| head.eq_ignore_ascii_case(known));
        let (words, signal, stand_alone) = SIGNAL_WORDS.iter().find(|(known, ..)| begins(known))?;
        let is_upper = text.starts_with(|first: char| first.is_ascii_uppercase());
        Some(Self { signal, stand_alone: *stand_alone && is_upper, rest: text.get(words.len()..)? })
    }
}

/// The signal that words stand for: `Segmentation fault`, `Bus error: 10`.
pub(crate) fn signal_in_words(words: &str) -> Option<&'static str> {
    SignalWords::read(words.trim()).map(|words| words.signal)
}

/// A time as it is stated, in words where it is a count since 1970: half of Sentry's clients and old reports of KSCrash count seconds,
/// KSCrash since 2.0 microseconds, scripts milliseconds.
pub(crate) fn time_stated(stated: String) -> String {
    /// Seconds up to the year 5138.
    const MANY: u64 = 100_000_000_000;
    let (whole, fraction) = stated.split_once('.').unwrap_or((&stated, ""));
    let is_plain = is_number(whole) && (fraction.is_empty() || is_number(fraction));
    let count = whole.parse::<u64>().ok().filter(|_| is_plain);
    let (seconds, fraction) = match count {
        Some(count @ 0..MANY) => (count, fraction.to_owned()),
        Some(count @ MANY..100_000_000_000_000) => (count / 1000, format!("{:03}", count % 1000)),
        Some(count @ 100_000_000_000_000..100_000_000_000_000_000) => {
            (count / 1_000_000, format!("{:06}", count % 1_000_000))
        }
        _ => return stated,
    };
    let time = Utc::from_unix(i64::try_from(seconds).unwrap_or_default()).to_string();
    match fraction.trim_end_matches('0') {
        "" => time,
        fraction => format!("{}.{fraction}Z", time.trim_end_matches('Z')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_every_unit() {
        for (stated, time) in [
            ("1478560643", "2016-11-07T23:17:23Z"),
            ("1700000000.250", "2023-11-14T22:13:20.25Z"),
            ("1700000000250", "2023-11-14T22:13:20.25Z"),
            ("1716226564474658", "2024-05-20T17:36:04.474658Z"),
            ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
            ("171622656447465800", "171622656447465800"),
            ("1.2.3", "1.2.3"),
            ("", ""),
        ] {
            assert_eq!(time_stated(stated.to_owned()), time, "{stated}");
        }
    }
}
