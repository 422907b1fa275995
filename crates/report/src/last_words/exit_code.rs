//! Sentences by which shells, build systems, containers and editors tell a program's exit code, where the code itself tells
//! something: Windows' codes of exceptions, and shells' 126, 127 and 128 plus a signal's number.

use super::logged::Logged;
use crate::numbers::fault_numbered;

/// What such a sentence tells.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct ExitCode<'t> {
    pub(super) code: u32,
    /// The signal that a shell puts into such a code.
    pub(super) signal: Option<&'static str>,
    pub(super) program: Option<&'t str>,
}

/// How such a line begins, with the code right behind.
const BEGINS: [&str; 25] = [
    // `docker inspect`.
    "\"ExitCode\": ",
    "Process completed with exit code ",
    "Process finished with exit code ",
    "Process exited with code ",
    "Process exited with status ",
    "Job failed: exit code ",
    "Job failed: exit status ",
    "Command exited with code ",
    "Command exited with non-zero status ",
    "Command failed with exit code ",
    "Command failed with exit status ",
    "Script failed with exit code ",
    // kubectl's and docker's `exec`, and what waits for a container.
    "command terminated with exit code ",
    "command terminated with non-zero exit code: Error executing in Docker Container: ",
    "Error executing in Docker Container: ",
    "Container exited with a non-zero exit code ",
    "npm ERR! Exit status ",
    "npm ERR! errno ",
    "npm error code ",
    "Exit Code: ",
    "Exit code: ",
    "exit code: ",
    "exit status ",
    "ExitCode: ",
    "ExitCode ",
];

/// Words that may stand before those.
const BEFORE: [&str; 8] =
    ["##[error]", "Error: ", "ERROR: ", "error: ", "error ", "ELIFECYCLE ", "FATAL: ", "\"ExitCode\": "];

/// Windows' codes of exceptions that a sentence may have; others than these are programs' own numbers.
const WINDOWS: [u32; 21] = [
    0x4000_0015,
    0x8000_0003,
    0x8013_1506,
    0x8013_1623,
    0xc000_0005,
    0xc000_0006,
    0xc000_0017,
    0xc000_001d,
    0xc000_007b,
    0xc000_0094,
    0xc000_00fd,
    0xc000_0135,
    0xc000_0138,
    0xc000_0139,
    0xc000_013a,
    0xc000_0142,
    0xc000_0374,
    0xc000_0409,
    0xc000_041d,
    0xe043_4352,
    0xe06d_7363,
];

/// What a line says of an exit code.
pub(super) fn read<'t>(line: &Logged<'t>) -> Option<ExitCode<'t>> {
    let text = line.text;
    // This is asked of every line.
    if !text.contains(|c: char| c.is_ascii_digit()) || text.len() > 1024 {
        return None;
    }
    if let Some((name, rest)) = compose(text) {
        return code(rest, Some(name));
    }
    // Spark's, on Kubernetes: `The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).`
    if let Some(rest) = text.strip_prefix("The executor with id ") {
        return code(rest.split_once(" exited with exit code ")?.1, None);
    }
    if let Some(state) = container(text) {
        return code(state, None);
    }
    // `'[1234] shop.exe'` looks as a log's program does.
    by_beginning(text).or_else(|| by_middle(text)).or_else(|| by_middle(line.whole))
}

/// `docker ps -a`: a row of the table has `Exited (137) 5 minutes ago`, and people quote the state alone.
fn container(text: &str) -> Option<&str> {
    let (before, rest) = text.split_once("Exited (")?;
    let (digits, behind) = rest.split_once(')')?;
    let is_row = before.ends_with("  ") || before.is_empty() && behind.trim().split(' ').count() <= 5;
    let is_ago = behind.trim().is_empty() || behind.contains(" ago");
    (is_row && is_ago).then_some(digits)
}

/// Docker Compose's `web-1 exited with code 137`.
fn compose(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(" exited with code ")?;
    let is_name = !name.is_empty()
        && name.contains(['-', '_'])
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    is_name.then_some((name, rest))
}

fn by_beginning(text: &str) -> Option<ExitCode<'_>> {
    let mut rest = text;
    for _ in 0..2 {
        if BEGINS.iter().any(|begin| rest.starts_with(begin)) {
            break;
        }
        if let Some(behind) = BEFORE.iter().find_map(|word| rest.strip_prefix(word)) {
            rest = behind.trim_start();
        }
    }
    let behind = BEGINS.iter().find_map(|begin| rest.strip_prefix(begin))?;
    code(behind.trim_start(), None)
}

/// Sentences that quote the command.
fn by_middle(text: &str) -> Option<ExitCode<'_>> {
    const SENTENCES: [(&str, &str); 7] = [
        ("The command \"", "\" exited with "),
        ("The command '", "' returned a non-zero code: "),
        ("process \"", "\" did not complete successfully: exit code: "),
        ("process didn't exit successfully: `", "` (exit code: "),
        ("process didn't exit successfully: `", "` (exit status: "),
        ("The program '[", " has exited with code "),
        ("Executable ", " returned exit code: "),
    ];
    for (begin, middle) in SENTENCES {
        let rest = text.split_once(begin).filter(|(before, _)| {
            let before = before.trim();
            before.is_empty() || before.ends_with(':') && before.len() < 40
        });
        let Some((command, behind)) = rest.and_then(|(_, rest)| rest.rsplit_once(middle)) else { continue };
        let command = command.split_once("] ").map_or(command, |(_, name)| name).trim_end_matches('\'');
        let command = command.strip_prefix("/bin/sh -c ").unwrap_or(command);
        return code(behind, command.split(' ').next());
    }
    // GNU make's `make: *** [Makefile:3: run] Error 139`.
    let (before, rest) = text.split_once(": *** [")?;
    let is_make = before.split(['[', ':']).next().is_some_and(|word| word.ends_with("make"));
    let (_, behind) = rest.split_once("] Error ").filter(|_| is_make)?;
    code(behind, None)
}

/// The code that a text begins with, where it tells something and the line ends with it.
fn code<'t>(text: &str, program: Option<&'t str>) -> Option<ExitCode<'t>> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end)?;
    let number: i64 = match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let rest = rest.trim_matches([' ', '.', ',', ')', '`', '"']);
    // `(0xc0000005) 'Access violation'`, `, STATUS_ACCESS_VIOLATION`, what JetBrains says of a signal.
    let is_end = rest.is_empty()
        || rest.starts_with("(0x")
        || rest.starts_with("(0X")
        || rest.starts_with("STATUS_")
        || rest.starts_with("(SIG")
        || rest.starts_with("(interrupted by signal");
    if !is_end {
        return None;
    }
    let code = u32::try_from(number).or_else(|_| i32::try_from(number).map(i32::cast_unsigned)).ok()?;
    let signal = code.checked_sub(128).filter(|signal| (1..32).contains(signal));
    let signal = signal.and_then(|signal| fault_numbered(u64::from(signal)));
    let is_telling = signal.is_some() || matches!(code, 126 | 127) || WINDOWS.contains(&code);
    is_telling.then_some(ExitCode { code, signal, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Option<(u32, Option<&str>)> {
        read(&Logged::read(line)).map(|exit| (exit.code, exit.signal))
    }

    #[test]
    fn codes_that_tell_something() {
        for (line, code, signal) in [
            ("Error: Process completed with exit code 137.", 137, Some("SIGKILL")),
            ("##[error]Process completed with exit code 139.", 139, Some("SIGSEGV")),
            ("2024-11-22T17:00:00.123Z ##[error]Process completed with exit code 134.", 134, Some("SIGABRT")),
            ("ERROR: Job failed: exit code 137", 137, Some("SIGKILL")),
            ("error Command failed with exit code 137.", 137, Some("SIGKILL")),
            (" ELIFECYCLE  Command failed with exit code 134.", 134, Some("SIGABRT")),
            ("The command \"./run --all\" exited with 137.", 137, Some("SIGKILL")),
            ("The command '/bin/sh -c make' returned a non-zero code: 127", 127, None),
            (
                "ERROR: process \"/bin/sh -c npm run build\" did not complete successfully: exit code: 137",
                137,
                Some("SIGKILL"),
            ),
            (
                "error: process didn't exit successfully: `target\\debug\\shop.exe` (exit code: 0xc0000135, STATUS_DLL_NOT_FOUND)",
                0xc000_0135,
                None,
            ),
            (
                "The program '[1234] shop.exe' has exited with code -1073741819 (0xc0000005) 'Access violation'.",
                0xc000_0005,
                None,
            ),
            ("Process finished with exit code -1073741515 (0xC0000135)", 0xc000_0135, None),
            ("Process finished with exit code 3221225477", 0xc000_0005, None),
            ("web-1 exited with code 139", 139, Some("SIGSEGV")),
            (
                "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM).",
                137,
                Some("SIGKILL"),
            ),
            ("      Exit Code:    137", 137, Some("SIGKILL")),
            ("command terminated with exit code 137", 137, Some("SIGKILL")),
            (
                "command terminated with non-zero exit code: Error executing in Docker Container: 139",
                139,
                Some("SIGSEGV"),
            ),
            ("make[2]: *** [Makefile:12: check] Error 139", 139, Some("SIGSEGV")),
        ] {
            assert_eq!(told(line), Some((code, signal)), "{line}");
        }
    }

    #[test]
    fn other_codes_and_sentences_are_none() {
        for line in [
            "Process finished with exit code 0",
            "Process completed with exit code 1.",
            "Process completed with exit code 255.",
            "Exit code: 42",
            "I always get exit code 137",
            "it exited with code 139",
            "The executor with id 3 exited with exit code 137 and went on",
            "exit code: 137 means that it was killed",
            "The command \"x\" exited with 137 and I do not know why",
            "make: *** [Makefile:3: run] Error 2",
            "error: process didn't exit successfully: `x` (exit status: 101)",
            "Error: 137 files were not found",
        ] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
