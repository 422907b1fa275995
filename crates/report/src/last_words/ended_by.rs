//! What shells, service managers and editors say of a program that a signal ended: `Segmentation fault (core dumped)`.

use super::logged::Logged;
use crate::numbers::{SignalWords, fault_named, fault_numbered};

/// A program that a signal ended, as far as the line tells.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Ended<'t> {
    pub(super) signal: &'static str,
    pub(super) program: Option<&'t str>,
    pub(super) pid: Option<u64>,
}

const CORE: &str = "(core dumped)";

/// What a line says of such an end.
pub(super) fn read<'t>(line: &Logged<'t>) -> Option<Ended<'t>> {
    let text = line.text;
    alone(text)
        .or_else(|| by_shell(text))
        .or_else(|| by_shell(line.whole))
        .or_else(|| by_manager(text))
        .or_else(|| by_strace(text))
        .or_else(|| by_number(text))
        .or_else(|| by_tool(text))
        .map(|ended| Ended { program: ended.program.map(program_of), ..ended })
}

/// The program of a command line.
fn program_of(command: &str) -> &str {
    // A blank behind a backslash is one of the name.
    let is_end = |(at, _): &(usize, char)| !command.get(..*at).is_some_and(|before| before.ends_with('\\'));
    let end = command.char_indices().filter(|(_, c)| c.is_whitespace()).find(is_end).map(|(at, _)| at);
    command.get(..end.unwrap_or(command.len())).unwrap_or(command).trim_matches(['\'', '"'])
}

/// `Segmentation fault`, `Segmentation fault (core dumped)`, `Segmentation fault: 11`.
fn alone(text: &str) -> Option<Ended<'_>> {
    let SignalWords { signal, stand_alone, rest } = SignalWords::read(text)?;
    let number = rest.strip_prefix(": ").and_then(|number| number.parse::<u64>().ok());
    let is_whole =
        rest.trim() == CORE || number.is_some_and(|number| number < 32) || (rest.is_empty() && stand_alone);
    is_whole.then_some(Ended { signal, program: None, pid: None })
}

/// `./run.sh: line 3: 1234 Segmentation fault (core dumped) ./prog`, `zsh: abort      ./prog`,
/// `[1]  1234 segmentation fault (core dumped)  ./prog`, `make: *** [Makefile:3: run] Segmentation fault (core dumped)`.
fn by_shell(text: &str) -> Option<Ended<'_>> {
    let of_script = || {
        let (_, rest) = text.split_once(": line ")?;
        let (number, rest) = rest.split_once(": ")?;
        number.parse::<u32>().ok().and_then(|_| pid_and_rest(rest))
    };
    let of_job = || {
        let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
        number.parse::<u32>().ok()?;
        let rest = rest.trim_start_matches(['+', '-', ' ']);
        Some(pid_and_rest(rest).unwrap_or((None, rest)))
    };
    let of_zsh = || {
        let rest = text.strip_prefix("zsh: ")?;
        Some(pid_and_rest(rest).unwrap_or((None, rest)))
    };
    let of_make = || {
        let (_, rest) = text.split_once("make").and_then(|(_, rest)| rest.split_once(": *** ["))?;
        rest.split_once("] ").map(|(_, rest)| (None, rest))
    };
    let (pid, rest) = of_script().or_else(of_job).or_else(of_zsh).or_else(of_make)?;
    let SignalWords { signal, rest, .. } = SignalWords::read(rest.trim_start())?;
    // Shells part their words from the command by many blanks, or name the process before them.
    let is_apart = rest.is_empty()
        || rest.starts_with("  ")
        || rest.starts_with(':')
        || rest.trim_start().starts_with(CORE)
        || (pid.is_some() && rest.starts_with(' '));
    let rest = rest.trim_start_matches([':', ' ']).trim_start_matches(|c: char| c.is_ascii_digit());
    let command = rest.trim().strip_prefix(CORE).unwrap_or(rest).trim();
    let program = Some(command).filter(|command| !command.is_empty());
    is_apart.then_some(Ended { signal, program, pid })
}

fn pid_and_rest(text: &str) -> Option<(Option<u64>, &str)> {
    let (pid, rest) = text.trim_start().split_once(' ')?;
    Some((Some(pid.parse().ok()?), rest.trim_start()))
}

/// systemd's `app.service: Main process exited, code=dumped, status=11/SEGV`, fish's `Job 1, './app' terminated by signal
/// SIGSEGV (Address boundary error)`.
fn by_manager(text: &str) -> Option<Ended<'_>> {
    if let Some((unit, rest)) = text.split_once(": Main process exited, code=") {
        let (code, rest) = rest.split_once(", status=")?;
        let (_, name) = rest.split_once('/')?;
        let signal =
            matches!(code, "killed" | "dumped").then(|| fault_named(&format!("SIG{}", name.trim())))??;
        return Some(Ended { signal, program: Some(unit), pid: None });
    }
    let (before, rest) = text.split_once(" terminated by signal ")?;
    let program = before.strip_prefix("fish: Job ").and_then(|job| job.split_once(", "))?.1;
    let signal = fault_named(rest.split_whitespace().next()?)?;
    Some(Ended { signal, program: Some(program), pid: None })
}

/// `--- SIGSEGV {si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x8} ---`, `+++ killed by SIGSEGV (core dumped) +++`.
fn by_strace(text: &str) -> Option<Ended<'_>> {
    let killed = text.strip_prefix("+++ killed by ").and_then(|rest| rest.strip_suffix(" +++"));
    let name = killed?.split(' ').next()?;
    let signal = fault_named(name)?;
    Some(Ended { signal, program: None, pid: None })
}

/// JetBrains' `Process finished with exit code 139 (interrupted by signal 11: SIGSEGV)`, GNU time's `Command terminated by
/// signal 11`.
fn by_number(text: &str) -> Option<Ended<'_>> {
    let finished = text.strip_prefix("Process finished with exit code ");
    let number = match finished.and_then(|rest| rest.split_once("(interrupted by signal ")) {
        Some((_, inside)) => {
            let (number, name) = inside.strip_suffix(')')?.split_once(':')?;
            let signal = fault_named(name.trim())?;
            number.parse::<u64>().ok()?;
            return Some(Ended { signal, program: None, pid: None });
        }
        None => text.strip_prefix("Command terminated by signal ")?.parse::<u64>().ok()?,
    };
    let signal = fault_numbered(number)?;
    Some(Ended { signal, program: None, pid: None })
}

/// Cargo's ``error: process didn't exit successfully: `target/debug/app` (signal: 11, SIGSEGV: invalid memory reference)``, Go's
/// `signal: killed`, and compilers' `fatal error: Killed signal terminated program cc1plus`.
fn by_tool(text: &str) -> Option<Ended<'_>> {
    if let Some((_, rest)) = text.split_once("process didn't exit successfully: `") {
        let (command, rest) = rest.rsplit_once("` (signal: ")?;
        let (_, name) = rest.strip_suffix(')')?.split_once(", ")?;
        let signal = fault_named(name.split(':').next()?)?;
        return Some(Ended { signal, program: Some(command), pid: None });
    }
    if let Some(rest) = text.strip_prefix("signal: ") {
        let SignalWords { signal, rest, .. } = SignalWords::read(rest)?;
        let is_whole = rest.is_empty() || rest.trim() == CORE;
        return is_whole.then_some(Ended { signal, program: None, pid: None });
    }
    let (_, program) = text.split_once("fatal error: Killed signal terminated program ")?;
    (!program.contains(' ')).then_some(Ended { signal: "SIGKILL", program: Some(program), pid: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(line: &str) -> Option<(&'static str, Option<&str>, Option<u64>)> {
        read(&Logged::read(line)).map(|ended| (ended.signal, ended.program, ended.pid))
    }

    #[test]
    fn words_of_shells_and_managers() {
        for (line, expected) in [
            ("Segmentation fault (core dumped)", ("SIGSEGV", None, None)),
            ("Segmentation fault: 11", ("SIGSEGV", None, None)),
            ("Bus error", ("SIGBUS", None, None)),
            ("Aborted (core dumped)", ("SIGABRT", None, None)),
            (
                "./run.sh: line 3: 1234 Segmentation fault      (core dumped) ./prog --x",
                ("SIGSEGV", Some("./prog"), Some(1234)),
            ),
            ("bash: line 1: 12 Killed                  ./prog", ("SIGKILL", Some("./prog"), Some(12))),
            ("[1]    1234 abort (core dumped)  ./prog", ("SIGABRT", Some("./prog"), Some(1234))),
            ("[1]+  Segmentation fault      (core dumped) ./prog", ("SIGSEGV", Some("./prog"), None)),
            ("zsh: trace trap  ./prog", ("SIGTRAP", Some("./prog"), None)),
            ("make[1]: *** [Makefile:3: run] Illegal instruction (core dumped)", ("SIGILL", None, None)),
            (
                "Nov 22 17:00:00 host systemd[1]: app.service: Main process exited, code=dumped, status=11/SEGV",
                ("SIGSEGV", Some("app.service"), None),
            ),
            (
                "fish: Job 1, './prog' terminated by signal SIGSEGV (Address boundary error)",
                ("SIGSEGV", Some("./prog"), None),
            ),
            (
                "Process finished with exit code 139 (interrupted by signal 11:SIGSEGV)",
                ("SIGSEGV", None, None),
            ),
            ("Command terminated by signal 9", ("SIGKILL", None, None)),
            (
                "error: process didn't exit successfully: `target/debug/shop` (signal: 11, SIGSEGV: invalid memory reference)",
                ("SIGSEGV", Some("target/debug/shop"), None),
            ),
            ("signal: killed", ("SIGKILL", None, None)),
            ("signal: segmentation fault (core dumped)", ("SIGSEGV", None, None)),
            (
                "c++: fatal error: Killed signal terminated program cc1plus",
                ("SIGKILL", Some("cc1plus"), None),
            ),
            ("+++ killed by SIGABRT (core dumped) +++", ("SIGABRT", None, None)),
        ] {
            assert_eq!(ended(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn sentences_about_them_are_none() {
        for line in [
            "Segmentation fault (core dumped) is what I see",
            "Segmentation fault in my program",
            "Killed",
            "Aborted",
            "What does Segmentation fault: 11 mean?",
            "zsh: killedness",
            "signal: killed processes are these",
            "fatal error: Killed signal terminated program is what gcc says",
            "[1] Killed bugs are these",
            "app.service: Main process exited, code=exited, status=1/FAILURE",
            "Process finished with exit code 0",
            "The job was terminated by signal SIGTERM",
            "see line 3: 4 Segments",
        ] {
            assert_eq!(ended(line), None, "{line}");
        }
    }
}
