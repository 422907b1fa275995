//! What Apple's kernel and services log of a process that went over a limit or may not do what it did.
//!
//! Sources: xnu's `osfmk/kern/task.c` and `bsd/kern/kern_memorystatus.c`, which have the kernel's words; TCC's own sentence,
//! which is also the termination reason of reports.

use super::logged::Logged;
use crate::numbers::{fault_named, hex};
use backtrail_core::Avma;
use backtrail_model::Exception;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// What a line tells.
#[derive(Clone, Debug)]
pub(super) enum Told<'t> {
    /// A limit that was exceeded: which, in the kernel's words, and by whom.
    Limit { resource: &'static str, words: &'t str, program: Option<&'t str>, pid: Option<u64> },
    /// The system ended it for want of memory, with this code of the namespace JETSAM.
    Jetsam { code: u64, words: &'t str, program: Option<&'t str>, pid: Option<u64> },
    /// It violated a guard, with the codes of the exception. The kernel's log says no more.
    Guard { code: u64, subcode: u64, words: &'t str, program: Option<&'t str>, pid: Option<u64> },
    /// It was suspended while it held locks on files, whose names follow in lines of their own.
    Lock { words: &'t str, program: Option<&'t str>, pid: Option<u64> },
    /// It crashed, with this exception.
    Crash { exception: Exception, program: Option<&'t str> },
    /// It asked for private data.
    Privacy { words: &'t str },
    /// The rest of that sentence, where it was broken.
    Key { words: &'t str },
}

/// What the service that suspends processes logs of one that it ends for its locks.
const LOCKED: &str = "suspended with locked system files:";
/// The event that Apple's systems count crashes by.
const STABILITY: &str = "com.apple.stability.crash {";

/// Whether a line announces the files that a process held.
pub(super) fn names_files(said: &str) -> bool {
    said.contains(LOCKED)
}

const PRIVACY: &str = "attempted to access privacy-sensitive data without a usage description";
const PRIVACY_BROKEN: &str = "This app has crashed because it attempted to access";
const KEY: &str = "UsageDescription key with a string value";

/// Reasons of kills for want of memory, with their codes (`bsd/sys/kern_memorystatus.h`).
const REASONS: [(&str, u64); 8] = [
    ("highwater", 2),
    ("vnode-limit", 3),
    ("vm-pageshortage", 4),
    ("per-process-limit", 7),
    ("idle-exit", 9),
    ("zone-map-exhaustion", 10),
    ("vm-compressor-thrashing", 11),
    ("vm-compressor-space-shortage", 12),
];

/// What the lines have in them, made ready once: this is asked of every line.
static MARKS: LazyLock<[Finder<'static>; 6]> = LazyLock::new(|| {
    [" caught ", " EXC_GUARD AST: ", " exceeded mem limit: ", "jetsam", LOCKED, STABILITY].map(Finder::new)
});

/// What the line tells, if it is one of these.
pub(super) fn read<'t>(line: &Logged<'t>) -> Option<Told<'t>> {
    // A log's `process app[12]` is a part of the message.
    let text = line.whole;
    // A few searches dismiss nearly all lines.
    let [caught, guarded, exceeded, jetsam, locked, stability] = &*MARKS;
    let has = |mark: &Finder<'_>| mark.find(text.as_bytes()).is_some();
    if has(caught) {
        return over_limit(text);
    }
    if has(guarded) {
        return guard(text);
    }
    if has(exceeded) {
        return memory(text);
    }
    let is_jetsams = has(jetsam);
    if let Some((_, reason)) = is_jetsams.then(|| text.split_once(" killed by jetsam reason ")).flatten() {
        let reason = reason.split([' ', ',']).next().unwrap_or_default();
        let (_, code) = REASONS.iter().find(|(name, _)| *name == reason)?;
        let (program, pid) = text.split_once("rocess ").map_or((None, None), |(_, rest)| named(rest));
        return Some(Told::Jetsam { code: *code, words: text, program, pid });
    }
    // How RunningBoard tells why a process ended: `RBSProcessExitStatus| domain:jetsam(1) code:per-process-limit(7)`.
    if let Some((_, code)) = is_jetsams.then(|| text.split_once("domain:jetsam(1) code:")).flatten() {
        let reason = code.split(['(', ' ', '>']).next().unwrap_or_default();
        let (_, code) = REASONS.iter().find(|(name, _)| *name == reason)?;
        let words = text.get(text.find("domain:jetsam")?..)?;
        let end = words.match_indices(')').nth(1).map_or(words.len(), |(at, _)| at + 1);
        let words = words.get(..end)?;
        return Some(Told::Jetsam { code: *code, words, program: None, pid: None });
    }
    if let Some((before, _)) = has(locked).then(|| text.split_once(LOCKED)).flatten() {
        let pid = before.rsplit_once(">:").and_then(|(_, rest)| rest.split([']', ' ']).next()?.parse().ok());
        let program = before.rsplit_once('<').and_then(|(_, rest)| Some(rest.split_once(">:")?.0));
        // `[application<com.example.shop>:186] suspended …`, `<FBApplicationProcess: 0x1432; Shop; pid: 28> was suspended …`.
        let at = before.find("[application<").or_else(|| before.rfind('<')).unwrap_or(0);
        let words = text.get(at..)?;
        return Some(Told::Lock { words, program: program.filter(|_| pid.is_some()), pid });
    }
    if has(stability) {
        return crash(text);
    }
    // Cr4shed's word for it, which reports of jailbroken devices have.
    if is_jetsams && text.contains("terminated for exceeding jetsam memory limits") {
        return Some(Told::Limit { resource: "MEMORY", words: text, program: None, pid: None });
    }
    // Xcode's console, of a program that it had started.
    if let Some((_, reason)) = text.split_once("Message from debugger: ") {
        let is_whole = reason.trim_end_matches(['.', '"']) == "Terminated due to memory issue";
        return is_whole.then_some(Told::Jetsam { code: 1, words: text, program: None, pid: None });
    }
    if text.contains("UsageDescription") && text.contains(KEY) && !text.contains(PRIVACY) {
        return text.split_whitespace().any(is_key).then_some(Told::Key { words: text });
    }
    let words = text.find(PRIVACY_BROKEN).and_then(|at| text.get(at..))?;
    Some(Told::Privacy { words })
}

/// The event that `analyticsd` logs of a crash: JSON, whose member `exceptionCodes` has the codes as numbers, the exception, the signal and
/// the code in words, with nothing between them.
fn crash(text: &str) -> Option<Told<'_>> {
    const KINDS: [&str; 7] = [
        "EXC_BAD_ACCESS",
        "EXC_BAD_INSTRUCTION",
        "EXC_ARITHMETIC",
        "EXC_BREAKPOINT",
        "EXC_CRASH",
        "EXC_RESOURCE",
        "EXC_GUARD",
    ];
    let (_, json) = text.split_once(STABILITY)?;
    let member = |name: &str| {
        let (_, rest) = json.split_once(&format!("\"{name}\":\""))?;
        Some(rest.split_once('"')?.0)
    };
    let codes = member("exceptionCodes")?;
    let kind = KINDS.iter().find(|kind| codes.contains(**kind))?;
    let numbers = codes.split('(').next().unwrap_or_default();
    let raw_codes: Vec<u64> = numbers.split(',').map_while(|code| hex(code.trim())).collect();
    // Names of signals have three or four letters behind the first three.
    let names = codes.find("SIG").and_then(|at| codes.get(at..));
    let signal =
        names.and_then(|name| [7, 6].into_iter().find_map(|length| fault_named(name.get(..length)?)));
    let at = codes.rsplit_once(" at ").and_then(|(_, address)| hex(address.trim()));
    let exception = Exception {
        kind: Some((*kind).to_owned()),
        signal: signal.map(str::to_owned),
        codes: Some(numbers.to_owned()).filter(|numbers| !numbers.is_empty()),
        raw_codes,
        address: at.map(Avma::new),
        ..Exception::default()
    };
    Some(Told::Crash { exception, program: member("process") })
}

fn is_key(word: &str) -> bool {
    word.starts_with("NS") && word.ends_with("UsageDescription")
}

/// `process smc[65819] caught causing excessive wakeups. …`, `process App[9] thread 12 caught burning CPU! It used more than 50%
/// CPU over 180 seconds`, `process App[9] caught waking the CPU 45005 times over ~3 seconds, …`.
fn over_limit(text: &str) -> Option<Told<'_>> {
    let at = text.find("process ")?;
    let words = text.get(at..)?;
    let (before, what) = words.split_once(" caught ")?;
    let resource = match what {
        what if what.starts_with("causing excessive wakeups") || what.starts_with("waking the CPU ") => {
            "WAKEUPS"
        }
        what if what.starts_with("burning CPU") => "CPU",
        _ => return None,
    };
    let (program, pid) = named(before.strip_prefix("process ")?);
    pid.map(|pid| Told::Limit { resource, words, program, pid: Some(pid) })
}

/// `[shop:12] EXC_GUARD AST: type=0x1 flavor=0x200 target=0x3029f code=0x200002000003029f subcode=0x0` (`guard_ast` in
/// `osfmk/kern/exception.c`).
fn guard(text: &str) -> Option<Told<'_>> {
    let (before, rest) = text.split_once(" EXC_GUARD AST: ")?;
    let number = |name: &str| {
        let value = rest.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix("=0x"))?;
        u64::from_str_radix(value, 16).ok()
    };
    let who = before.rsplit_once('[').and_then(|(_, who)| who.strip_suffix(']')?.rsplit_once(':'));
    Some(Told::Guard {
        code: number("code")?,
        subcode: number("subcode").unwrap_or(0),
        words: text,
        program: who.map(|(name, _)| name),
        pid: who.and_then(|(_, pid)| pid.parse().ok()),
    })
}

/// `memorystatus: Tunnel [1509] exceeded mem limit: ActiveHard 50 MB (fatal)`.
fn memory(text: &str) -> Option<Told<'_>> {
    let (_, words) = text.split_once("memorystatus: ")?;
    let (program, pid) = named(words);
    pid.map(|pid| Told::Limit { resource: "MEMORY", words, program, pid: Some(pid) })
}

/// The program and its id at the beginning of `App[9] …` or `App [9] …`.
fn named(text: &str) -> (Option<&str>, Option<u64>) {
    let Some((name, rest)) = text.split_once('[') else { return (None, None) };
    let pid = rest.split_once(']').and_then(|(digits, _)| digits.parse().ok());
    let name = Some(name.trim()).filter(|name| !name.is_empty() && name.len() <= 64);
    (name.filter(|_| pid.is_some()), pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<Told<'_>> {
        read(&Logged::read(line))
    }

    #[test]
    fn xcodes_word_of_memory() {
        let is = |line| matches!(told(line), Some(Told::Jetsam { code: 1, .. }));
        assert!(is("Message from debugger: Terminated due to memory issue"));
        assert!(!is("Message from debugger: Terminated due to memory issue is what I see"));
        assert!(!is("Message from debugger: killed"));
    }

    #[test]
    fn limits_and_kills() {
        let limit = |line| match told(line) {
            Some(Told::Limit { resource, program, pid, .. }) => Some((resource, program, pid)),
            _ => None,
        };
        for (line, expected) in [
            (
                "process shop[12] caught causing excessive wakeups. Observed wakeups rate (per sec): 4934; Maximum permitted wakeups rate (per sec): 150",
                ("WAKEUPS", Some("shop"), Some(12)),
            ),
            (
                "default\t12:26:38.075690 -0700\tkernel\tprocess my shop[12] caught waking the CPU 45005 times over ~3 seconds, averaging 14497 wakes / second and violating a limit of 45000 wakes over 300 seconds.",
                ("WAKEUPS", Some("my shop"), Some(12)),
            ),
            (
                "process shop[12] thread 77 caught burning CPU! It used more than 50% CPU (Actual recent usage: 86%) over 180 seconds.",
                ("CPU", Some("shop"), Some(12)),
            ),
            (
                "08:52:24.043  kernel         memorystatus: Shop [12] exceeded mem limit: ActiveHard 50 MB (fatal)",
                ("MEMORY", Some("Shop"), Some(12)),
            ),
        ] {
            assert_eq!(limit(line), Some(expected), "{line}");
        }
        let line = "ERROR: [shop:12] EXC_GUARD AST: type=0x1 flavor=0x200 target=0x3029f code=0x200002000003029f subcode=0x0";
        assert!(matches!(
            told(line),
            Some(Told::Guard { code: 0x2000_0200_0003_029f, program: Some("shop"), pid: Some(12), .. })
        ));
        let line = "ReportSystemMemory: Process Shop [12] killed by jetsam reason per-process-limit";
        assert!(matches!(
            told(line),
            Some(Told::Jetsam { code: 7, program: Some("Shop"), pid: Some(12), .. })
        ));
        let line = "Shop[1:2] [access] This app has crashed because it attempted to access privacy-sensitive data without a usage description.";
        assert!(matches!(told(line), Some(Told::Privacy { .. })));
        let line =
            "NSCameraUsageDescription key with a string value explaining to the user how the app uses this";
        assert!(matches!(told(line), Some(Told::Key { .. })));
    }

    #[test]
    fn locks_and_crashes() {
        let line = "error\t10:32:02.791285-0700\trunningboardd\t[application<com.example.shop>:186] suspended with locked system files:";
        assert!(matches!(
            told(line),
            Some(Told::Lock { program: Some("com.example.shop"), pid: Some(186), .. })
        ));
        let line = "<RBSProcessExitStatus| domain:jetsam(1) code:per-process-limit(7)>";
        assert!(matches!(told(line), Some(Told::Jetsam { code: 7, .. })));
        let line = "Dec  4 13:46:23 phone analyticsd[37] <Notice>: Received event: com.apple.stability.crash {\"bundleID\":\"com.example.shop\",\"exceptionCodes\":\"0x0000000000000001, 0x0000000000000010(\\134n    1,\\134n    16\\134n)EXC_BAD_ACCESSSIGSEGVKERN_INVALID_ADDRESS at 0x0000000000000010\",\"process\":\"Shop\"}";
        let Some(Told::Crash { exception, program: Some("Shop") }) = told(line) else { panic!() };
        assert_eq!(
            (exception.kind.as_deref(), exception.signal.as_deref(), exception.raw_codes.as_slice()),
            (Some("EXC_BAD_ACCESS"), Some("SIGSEGV"), &[1, 16][..])
        );
        assert_eq!(exception.address, Some(Avma::new(16)));
    }

    #[test]
    fn sentences_about_them_are_none() {
        for line in [
            "The process was caught burning CPU",
            "process shop[12] caught an exception",
            "it exceeded mem limit: what now",
            "killed by jetsam reason unknown-to-us",
            "Each key that ends so is a UsageDescription key with a string value",
        ] {
            assert!(told(line).is_none(), "{line}");
        }
    }
}
